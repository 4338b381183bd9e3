"""How Hypothesis runs: on a developer's machine it explores; in CI it always tries the same examples, so that a red run is a change's own doing."""

import os

from hypothesis import settings

from tests.soak import examples

settings.register_profile("explore", deadline=None, max_examples=examples(100))
settings.register_profile("ci", parent=settings.get_profile("explore"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")

"""How Hypothesis runs: on a developer's machine it explores; in CI it always tries the same examples, so that a red run is a change's own doing.

And how tests in this process write: without waiting for a disk, outside of `make soak`.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.soak import examples, is_full

settings.register_profile("explore", deadline=None, max_examples=examples(100))
settings.register_profile("ci", parent=settings.get_profile("explore"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")


@pytest.fixture(autouse=True, scope="session")
def _disks_are_quick() -> Iterator[None]:
    """Only a crash of the machine takes what was written and not synced, and no test crashes it. Servers in processes of their own sync as always."""
    with pytest.MonkeyPatch.context() as patch:
        for name in () if is_full() else ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda _: None)
        yield

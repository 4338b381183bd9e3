"""How Hypothesis runs: on a developer's machine it explores; in CI it always tries the same examples, so that a red run is a change's own doing.

How tests in this process write: without waiting for a disk, outside of `make soak`. And which tests run in one process, beside those of one file.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

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


class SharedSessions(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Deals files to processes, but all of one folder to one, so that they share its Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        folder = "tests/pipeline/spark/"
        return folder if nodeid.startswith(folder) else str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedSessions | None:
    """Choose the scheduler of `--dist loadfile`."""
    return SharedSessions(config, log) if config.getvalue("dist") == "loadfile" else None

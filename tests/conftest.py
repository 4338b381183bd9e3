"""How Hypothesis runs: on a developer's machine it explores; in CI it always tries the same examples, so that a red
run is a change's own doing.

How tests in this process write: without waiting for a disk, outside of `make soak`. And which tests run in one
process, beside those of one file. Clients of httpx share what they trust. At the end of a run of many files stands
what each of the dearest ones cost.
"""

import gc
import os
import ssl
import subprocess
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import cache
from itertools import chain
from typing import Any

import httpx
import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.server.forked_starts import ForkedStarts
from tests.soak import examples, is_full

gc.set_threshold(50_000)  # as the command does: what is imported and collected stays
settings.register_profile("explore", deadline=None, max_examples=examples(100))
settings.register_profile("ci", parent=settings.get_profile("explore"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")


@pytest.fixture(autouse=True, scope="session")
def _disks_are_quick() -> Iterator[None]:
    """Only a crash of the machine takes what was written and not synced, and no test crashes it.

    Servers in processes of their own sync as always.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in () if is_full() else ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _authorities_are_read_once() -> Iterator[None]:
    """A client of httpx reads the world's certification authorities, which takes 50 ms of CPU, and tests make a
    client for each request.
    """
    create, usual = httpx.create_ssl_context, cache(httpx.create_ssl_context)

    def shared(verify: ssl.SSLContext | str | bool = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        return usual() if verify is True and cert is None and trust_env else create(verify, cert, trust_env)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", shared)
        yield


@pytest.fixture(autouse=True, scope="session")
def forked_starts() -> Iterator[ForkedStarts]:
    """Servers are started as forks.

    With a setting as a variable of their environment they are started by exec, as
    `test_a_stop_under_load_loses_nothing` does.
    """
    with closing(ForkedStarts()) as starts, pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "_fork_exec", starts)
        yield starts


class SharedSessions(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Deals files to processes, but all of these folders to one, so that they share its Spark session, its browser,
    its wheel or its npm package.
    """

    folders = ("tests/pipeline/spark/", "tests/browser/", "tests/artefacts/", "tests/clients/")

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in self.folders if nodeid.startswith(folder)), None) or str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedSessions | None:
    """Choose the scheduler of `--dist loadfile`."""
    return SharedSessions(config, log) if config.getvalue("dist") == "loadfile" else None


# ---------------------------------------------------------------- what tests cost
BEGAN = pytest.StashKey[float]()
DEAREST = 25


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[BEGAN] = _cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_s", _cpu_s() - item.stash[BEGAN]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    spent = defaultdict[str, float](float)
    for report in chain(*terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport) and report.when == "teardown":
            cost = (value for name, value in report.user_properties if name == "cpu_s" and isinstance(value, float))
            spent[report.nodeid.partition("::")[0]] += sum(cost)
    if len(spent) > DEAREST:
        terminalreporter.section(f"CPU seconds of the dearest files, {sum(spent.values()):.0f} in all")
        for file, seconds in sorted(spent.items(), key=lambda each: -each[1])[:DEAREST]:
            terminalreporter.write_line(f"{seconds:8.1f} {file}")

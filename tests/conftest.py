"""How Hypothesis runs: on a developer's machine it explores; in CI it always tries the same examples, so that a red
run is a change's own doing.

How tests in this process write: without waiting for a disk, outside of `make soak`. And which tests run in one
process, beside those of one file. Clients of httpx share what they trust. A test that hangs is ended and named. At the
end of a run of many files stands what each of the dearest ones cost.
"""

import faulthandler
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
from xdist.workermanage import WorkerController

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

    def remove_node(self, node: WorkerController) -> str | None:
        """Return the test in which a process ended, and deal its other tests again.

        xdist would deal that test again, too: one that hangs would hang in each process that replaces the last one.
        """
        units = self.assigned_work.pop(node)
        left = [(unit, test) for unit in units.values() for test, is_done in unit.items() if not is_done]
        if not left:
            return None
        unit, crashed = left[0]
        unit[crashed] = True
        self.workqueue.update((scope, unit) for scope, unit in units.items() if not all(unit.values()))
        for other in self.assigned_work:
            self._reschedule(other)
        return str(crashed)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedSessions | None:
    """Choose the scheduler of `--dist loadfile`."""
    return SharedSessions(config, log) if config.getvalue("dist") == "loadfile" else None


# ---------------------------------------------------------------- tests that hang
TERMINAL = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TERMINAL] = os.dup(2)  # what tests write there is captured later


def end_if_it_hangs(config: pytest.Config) -> None:
    """Let this process show its stacks and end when `faulthandler_timeout` has passed.

    pytest does so for each test. It stops when a test has failed, and so before that test's fixtures are torn down.
    """
    limit_s = float(config.getini("faulthandler_timeout"))
    if limit_s:
        faulthandler.dump_traceback_later(limit_s, file=config.stash[TERMINAL], exit=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """See to it that the process ends, though a thread of a test may go on."""
    end_if_it_hangs(config)


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
    end_if_it_hangs(item.config)
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

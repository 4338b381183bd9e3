"""This module tries mutants in forked children of one process that has collected the tests: nothing is imported or
collected twice.

1. Mutants are drawn: of functions in Python (python_functions.py), or in C (native_functions.py).
2. The tests run once as they are, while each place of a mutant says that it is reached. So it is known which tests reach what, and what they cost.
3. For each, a child puts it in place and runs the tests that reach that place until one fails: first those that are cheap
   and have killed others.

A child that ends by itself, takes far longer than the tests did, or asks for far more memory is a mutant killed, too.
"""

import gc
import os
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from mmap import mmap
from pathlib import Path
from typing import Any, Protocol

import pytest

KILLED, SURVIVED, UNFINISHED = "killed", "survived", "unfinished"
FATES = (SURVIVED, KILLED, UNFINISHED)
"""What becomes of a mutant, by the code with which its child exits.

UNFINISHED: no test failed in the time that there was.
"""
UNREACHED = "unreached"
LONGER, AT_LEAST_S = 10, 2
"""A test hangs that takes so many times what it took, and so many seconds more."""
WALL_S = 900
MORE_MEMORY = 4 << 30
ROOT = Path(__file__).parents[2]
Place = tuple[str, int, int]
"""A file, with a line and a column of it."""


class FunctionChange(Protocol):
    """Describes a change of one function."""

    @property
    def function(self) -> str: ...
    @property
    def line(self) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class Mutant:
    """Represents a mutant: a change, and what the program has of it. Those of a seed are numbered from 1.

    A test that does not reach its place cannot notice it.
    """

    number: int
    file: str
    change: FunctionChange
    place: Place
    made: Any


class Program(Protocol):
    """Gives mutants of a program, and puts them into this process."""

    def load(self) -> None:
        """Look for what mutants replace, now that the tests are collected."""
        ...

    def draw_mutants(self, number: int, seed: int) -> list[Mutant]:
        """Draw so many mutants; fewer if there are not as many."""
        ...

    def marked(self, mutants: Sequence[Mutant]) -> AbstractContextManager[Callable[[], set[Place]]]:
        """Let each place of a mutant say that it is reached; the function that is given returns those reached since
        it was called.
        """
        ...

    def install(self, mutant: Mutant) -> None:
        """Run a mutant from now on, in this process."""
        ...


@dataclass(frozen=True, slots=True)
class MutantDraw:
    """Says how many mutants a seed draws, and which of these are tried by their numbers; all if none is named."""

    number: int
    seed: int
    only: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """Says what became of a mutant, and how many tests reach its statement."""

    mutant: Mutant
    fate: str
    tests: int

    def __str__(self) -> str:
        change, path = self.mutant.change, Path(self.mutant.file)
        place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
        return f"{self.fate} {self.tests} tests: {place}:{change.line} {change.function}: {change}"

    @property
    def folder(self) -> str:
        return str(Path(self.mutant.file).parent.relative_to(ROOT)) if Path(self.mutant.file).is_relative_to(ROOT) else ""


@dataclass
class Survey:
    """Holds what the run of the tests as they are has shown: by statement with a mutant the tests that reach it, and
    the CPU seconds of each test.
    """

    reaching: dict[Place, list[int]] = field(default_factory=lambda: defaultdict(list))
    cost_s: list[float] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    kills: memoryview = field(default_factory=lambda: memoryview(b""))

    def tests_of(self, mutant: Mutant) -> list[int]:
        """Return the numbers of the tests that reach a mutant's statement, first those that are cheap for the mutants
        that they have killed.
        """
        return sorted(self.reaching.get(mutant.place, ()), key=lambda test: self.cost_s[test] / (1 + self.kills[test]))


class Trials:
    """Serves as a pytest plugin that runs the tests in its own way. `found` has the trials in the end."""

    def __init__(self, program: Program, draw: MutantDraw, jobs: int, most_s: float) -> None:
        self.program, self.draw, self.jobs, self.most_s = program, draw, jobs, most_s
        self.tell: Callable[[str], object] = print
        self.survey, self.found = Survey(), list[Trial]()
        self._caches: list[_lru_cache_wrapper[object]] = []
        self._failed, self._late = False, False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Let Hypothesis try the same examples each time, and not look for simpler ones."""
        from hypothesis import Phase, settings  # pytest is the first to import it

        settings.register_profile(
            "mutants", derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate], parent=settings()
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.program.load()
        self.survey.kills = memoryview(mmap(-1, 8 * max(len(session.items), 1))).cast("q")  # children share it
        mutants = self.program.draw_mutants(self.draw.number, self.draw.seed)
        mutants = [each for each in mutants if each.number in self.draw.only or not self.draw.only]
        self._look_at(session.items, mutants)
        self.tell(f"{len(session.items)} tests took {sum(self.survey.cost_s):.0f} s of CPU as they are")
        for text in self.survey.unused:
            self.tell(text)
        self._caches = [each for each in gc.get_objects() if isinstance(each, _lru_cache_wrapper) and ".native." not in each.__module__]
        gc.freeze()  # children share what is there
        running: dict[int, Mutant] = {}
        for mutant in mutants:
            if not self.survey.tests_of(mutant):
                self._note(Trial(mutant, UNREACHED, 0))
                continue
            if len(running) == self.jobs:
                self._await(running)
            child = os.fork()
            if child == 0:
                self._try(mutant, session.items)
            running[child] = mutant
        while running:
            self._await(running)
        return True

    def _await(self, running: dict[int, Mutant]) -> None:
        """Wait for the end of a child."""
        child, status = os.wait()
        mutant = running.pop(child)
        fate = FATES[os.WEXITSTATUS(status)] if os.WIFEXITED(status) and os.WEXITSTATUS(status) < len(FATES) else KILLED
        self._note(Trial(mutant, fate, len(self.survey.tests_of(mutant))))

    def _note(self, trial: Trial) -> None:
        self.found.append(trial)
        if trial.fate != KILLED:
            self.tell(f"{trial.mutant.number} of {self.draw.number}: {trial}")

    # ------------------------------------------------------------ the tests as they are
    def _look_at(self, items: Sequence[pytest.Item], mutants: Sequence[Mutant]) -> None:
        """Run all tests once. Those that fail are of no use, nor are those that alone take longer than a mutant's
        tests may.

        Tests that measure their CPU time need the clock of their thread: under an interval timer, Linux counts that
        of the process in ticks.
        """
        before = signal.signal(signal.SIGVTALRM, self._give_up)
        with self.program.marked(mutants) as reached:
            for number, item in enumerate(items):
                reached()
                self._failed, self._late, began = False, False, time.process_time()
                signal.setitimer(signal.ITIMER_VIRTUAL, self.most_s)
                self._run(item, items[number + 1] if number + 1 < len(items) else None)
                self.survey.cost_s.append(time.process_time() - began)
                if self._failed:
                    reason = f"takes more than {self.most_s:g} s" if self._late else "fails as it is"
                    self.survey.unused.append(f"{reason}, and was not used: {item.nodeid}")
                    continue
                for place in reached():
                    self.survey.reaching[place].append(number)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)

    def _give_up(self, *_: object) -> None:
        self._late = True
        raise TimeoutError(f"a test takes more than {self.most_s:g} s")

    def _run(self, item: pytest.Item, following: pytest.Item | None) -> None:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    # ------------------------------------------------------------ a child
    def _try(self, mutant: Mutant, items: Sequence[pytest.Item]) -> None:
        """Run the tests of a mutant in this process, which ends."""
        try:
            signal.alarm(WALL_S)
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + MORE_MEMORY, resource.RLIM_INFINITY))
            self.program.install(mutant)
            for cache in self._caches:
                cache.cache_clear()  # it may hold what the function as it was has made
            os._exit(FATES.index(self._judge(self.survey.tests_of(mutant), items)))
        finally:
            os._exit(FATES.index(KILLED))

    def _judge(self, tests: Sequence[int], items: Sequence[pytest.Item]) -> str:
        began = time.process_time()
        for number, following in zip(tests, [*tests[1:], None], strict=True):
            if time.process_time() - began > self.most_s:
                return UNFINISHED
            self._failed = False
            signal.setitimer(signal.ITIMER_VIRTUAL, AT_LEAST_S + LONGER * self.survey.cost_s[number])
            self._run(items[number], None if following is None else items[following])
            if self._failed:
                self.survey.kills[number] += 1
                return KILLED
        return SURVIVED

"""Runs tests of queries and reports what differs."""

import io
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path
from xml.etree import ElementTree

from epsparql.deferred_methods import dataclass
from pipeline.diagnosis.model import Diagnosis
from pipeline.query_tests.cases import Case
from pipeline.query_tests.solutions import Solution, parse_solution
from pipeline.query_tests.timelines import ORIGIN
from pipeline.replay.query_files import SourceFault
from pipeline.replay.replay import ReplaySummary, RunnerFailed, run

SHOWN = 20
"""A report names this many missing solutions, and as many that are not expected."""


@dataclass(frozen=True, slots=True)
class Result:
    """Reports a test. `fault` says why it could not run; `count` is the number of its solutions, `seconds` how long
    it took.

    `left_out` counts the rows that `on_error` left out of its files. `silent` says why queries found nothing, where
    solutions are expected.
    """

    case: Case
    seconds: float
    count: int = 0
    missing: list[Solution] = field(default_factory=list)
    extra: list[Solution] = field(default_factory=list)
    fault: str = ""
    is_updated: bool = False
    left_out: int = 0
    silent: tuple[Diagnosis, ...] = ()

    @property
    def passed(self) -> bool:
        return self.is_updated or not (self.missing or self.extra or self.fault)

    def headline(self) -> str:
        if self.fault:
            return f"FAILED {self.case.name}: {self.fault}"
        if self.is_updated:
            return f"updated {self.case.name}: {self.count} solutions"
        if self.passed:
            return f"ok {self.case.name}: {self.count} solutions in {self.seconds:.2f} s{self._left_out_words}"
        return f"FAILED {self.case.name}: {len(self.missing)} solutions are missing, {len(self.extra)} are not expected{self._left_out_words}"

    @property
    def _left_out_words(self) -> str:
        return f"; {self.left_out} row{'s' if self.left_out > 1 else ''} of its files left out" if self.left_out else ""

    def details(self) -> list[str]:
        """Return a line for each solution that differs, the first ones of each kind."""
        return [*_list_differing("missing", self.missing), *_list_differing("not expected", self.extra)]


def _list_differing(kind: str, solutions: list[Solution]) -> list[str]:
    more = [f"  ... and {len(solutions) - SHOWN} more {kind}"] if len(solutions) > SHOWN else []
    return [f"  {kind}: {solution}" for solution in solutions[:SHOWN]] + more


def run_case(case: Case, *, update: bool = False, on_error: str | None = None) -> Result:
    """Replay a test's events and compare the solutions as a bag: each as often as it is expected, in any order.

    `update` writes what was found in place of what is expected. `on_error` is in place of what the test says.
    """
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="epsparql-test-") as directory:
            found, expected, summary = _replayed(case, Path(directory), update=update, on_error=on_error)
        if update and Counter(found) != Counter(expected):
            case.update(found)
            return Result(case, time.monotonic() - began, len(found), is_updated=True, left_out=_count_left_out(summary))
    except SourceFault as fault:
        return Result(case, time.monotonic() - began, fault=str(fault))
    except RunnerFailed as failure:
        return Result(case, time.monotonic() - began, fault=f"the runner {failure}")
    missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    differing = sorted(missing.elements(), key=str), sorted(extra.elements(), key=str)
    return Result(case, time.monotonic() - began, len(found), *differing, left_out=_count_left_out(summary), silent=summary.silent)


def _count_left_out(summary: ReplaySummary) -> int:
    return sum(each.count for each in summary.left_out)


def _replayed(case: Case, directory: Path, *, update: bool, on_error: str | None) -> tuple[list[Solution], list[Solution], ReplaySummary]:
    """Return the solutions that were found, those that are expected, and the summary of the replay."""
    if update and not case.path.exists():
        case.path.touch()
    replay, expected = case.read(directory)
    if on_error is not None:
        replay = replace(replay, on_error=on_error)
    out = io.BytesIO()
    summary = run(replay, "ndjson", out, lambda: ORIGIN, lambda _: None, lambda _: None, explains=bool(expected) and not update)
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    if len(replay.queries) == 1:
        told = [{name: value for name, value in each.items() if name != "query"} for each in told]
    return [parse_solution(each) for each in told], expected, summary


def write_junit(path: Path, results: Iterable[Result]) -> None:
    """Write the results as JUnit XML, which CI systems read. Raises: OSError."""
    results = list(results)
    failures = sum(not result.passed for result in results)
    suite = ElementTree.Element(
        "testsuite", name="epsparql", tests=str(len(results)), failures=str(failures), time=f"{sum(r.seconds for r in results):.3f}"
    )
    for result in results:
        element = ElementTree.SubElement(suite, "testcase", name=result.case.name, classname="epsparql", time=f"{result.seconds:.3f}")
        if not result.passed:
            ElementTree.SubElement(element, "failure", message=result.headline()).text = "\n".join(result.details())
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)

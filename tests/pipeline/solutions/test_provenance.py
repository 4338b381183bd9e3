"""Deriving a solution again from the log: how much of it is looked through."""

from contextlib import closing
from pathlib import Path

import pytest

from engine.messages import Register
from pipeline.errors import TooMuchWork
from pipeline.log import LogWriter
from pipeline.runners.in_process import InProcessRunner
from pipeline.solutions.provenance import Justifier
from pipeline.solutions.solution_log import SolutionReader, listed
from tests.support.logs import Clock, occurrences, until

PAIRS = "SELECT ?a ?b WHERE { { <http://e/s> <http://e/p> ?a } SEQ { <http://e/s> <http://e/p> ?b } WITHIN 0.000003 }"
UNSEEN = "SELECT ?a WHERE { <http://e/s> <http://e/p> ?a MINUS { <http://e/s> <http://e/q> ?b } }"


@pytest.mark.parametrize(("text", "bounded"), [(PAIRS, True), (UNSEEN, False)])
def test_what_ended_before_the_solution_began_is_passed_over_where_nothing_looks_back(tmp_path: Path, text: str, bounded: bool) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append(lambda offset: Register(offset, "q", text))
        for first in range(0, 1_000, 10):
            log.append_events("default", occurrences(*range(first, first + 10)))
        runner = InProcessRunner(tmp_path, log.reader())
        runner.start()
        until(lambda: runner.position == log.head(), "the head is reached")
        runner.stop()
        registration = log.catalogue.queries["q"]
    with closing(SolutionReader(tmp_path)) as solutions:
        last = listed(solutions.read(0, None, 10_000))[-1]
        justifier = Justifier(tmp_path, solutions, [registration], most_rows=20)
        if bounded:
            assert justifier.why(registration, last).solution == last
        else:
            with pytest.raises(TooMuchWork, match="20 rows"):
                justifier.why(registration, last)

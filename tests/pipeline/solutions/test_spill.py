"""Long solutions on their way from a task to the driver."""

from pathlib import Path

import pyarrow as pa
import pytest

from engine.messages import SOLUTIONS
from pipeline.errors import StoreFailed
from pipeline.runners.spill import Spill
from tests.support import spark_cases as cases


def solutions(number: int) -> pa.RecordBatch:
    at = cases.START
    return pa.RecordBatch.from_pylist(
        [{"query": "q", "registered": 0, "entry": k, "start": at, "end": at + k, "values": [str(k)]} for k in range(number)], schema=SOLUTIONS
    )


def objects(store: Path) -> set[str]:
    return {path.name for path in (store / "spill").glob("[!.]*")}


def test_they_are_read_as_they_were_and_swept_when_taken(tmp_path: Path) -> None:
    spill, long = Spill(str(tmp_path)), solutions(40_000)
    one, other = (spill.send_solutions(3, 7, long) for _ in range(2))  # of two workers
    later = spill.send_solutions(7, 11, long)
    assert isinstance(one, str)
    assert spill.receive_solutions(one).equals(long)
    assert spill.receive_solutions(spill.send_solutions(0, 3, solutions(3))).equals(solutions(3))
    (tmp_path / "spill" / "another.txt").touch()
    spill.sweep(6)
    assert objects(tmp_path) == {one, other, later, "another.txt"}
    spill.sweep(7)
    assert objects(tmp_path) == {later, "another.txt"}
    spill.sweep()
    assert objects(tmp_path) == {"another.txt"}


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match=r"3-7-0\.arrow"):
        Spill(str(tmp_path)).receive_solutions("3-7-0.arrow")

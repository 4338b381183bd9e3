"""Long solutions on their way to the sink, laid before they are asked for."""

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from engine.entries import SOLUTIONS, Outcome, StateChange
from engine.packed import plain
from pipeline import spill as module
from pipeline.buckets import Host, host_for
from pipeline.errors import StoreFailed
from pipeline.hosting import Advance
from pipeline.spill import Spill
from tests.pipeline import spark_cases as cases

CHANGE = StateChange(0, "q", 3, "completed", "")


def solutions(number: int) -> pa.RecordBatch:
    at = cases.START
    return pa.RecordBatch.from_pylist(
        [{"query": "q", "registered": 0, "entry": k, "start": at, "end": at + k, "values": [str(k)]} for k in range(number)], schema=SOLUTIONS
    )


@pytest.fixture(params=["directory", "store"])
def spill(request: pytest.FixtureRequest, tmp_path: Path) -> Spill:
    (tmp_path / "spill").mkdir()
    return Spill(tmp_path / "spill", str(tmp_path / "store") if request.param == "store" else None)


def files(spill: Spill) -> set[str]:
    """Without what is being written."""
    directory = spill.directory if spill.store is None else Path(spill.store) / "spill"
    return {path.name for path in directory.glob("[!.]*.arrow")}


def test_short_ones_stay_in_their_piece(spill: Spill) -> None:
    piece = Advance(3, 7, Outcome(solutions(10), (CHANGE,)))
    assert spill.laid(piece) is piece
    assert files(spill) == set()


def test_long_ones_are_read_as_they_were(spill: Spill) -> None:
    long = solutions(40_000)
    laid = spill.laid(Advance(3, 7, Outcome(long, (CHANGE,))))
    assert (laid.lo, laid.hi, laid.outcome.changes, laid.outcome.solutions.num_rows) == (3, 7, (CHANGE,), 0)
    assert spill.laid(laid) is laid
    assert laid.file is not None
    assert spill.read(laid.file).equals(long)
    assert spill.laid(Advance(3, 7, Outcome(long, (CHANGE,)))).file == laid.file, "a task that is tried again"
    assert files(spill) == {laid.file}
    spill.remove(laid.file)
    assert files(spill) == set()


def test_what_is_not_there_is_told(spill: Spill) -> None:
    with pytest.raises(FileNotFoundError if spill.store is None else StoreFailed, match=r"3-7\.arrow"):
        spill.read("3-7.arrow")


def test_a_store_is_swept(tmp_path: Path) -> None:
    spill = Spill(tmp_path, str(tmp_path / "store"))
    spill.laid(Advance(3, 7, Outcome(solutions(40_000), ())))
    spill.sweep()
    assert files(spill) == set()


# ---------------------------------------------------------------- by engines that are ahead
@pytest.fixture
def data(tmp_path: Path) -> Path:
    cases.write("sequences", tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def short(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What engines find here is long."""
    if "data" in request.fixturenames:
        monkeypatch.setattr(module, "SPILL_BYTES", 0)


def brought(host: Host, lo: int, hi: int, then: int | None, spill: Spill) -> list[object]:
    """Solutions of a range, taken as the sink does."""
    found: list[object] = []
    with closing(host.run(lo, hi, 20, then, spill)) as pieces:
        for piece in map(spill.laid, pieces):
            if piece.file is not None:
                found += plain(spill.read(piece.file)).to_pylist()
                spill.remove(piece.file)
    return found


@pytest.mark.parametrize("buckets", [1, 2])
def test_they_are_those_of_one_engine_whatever_is_asked_for(buckets: int, data: Path, spill: Spill, tmp_path: Path) -> None:
    """The range that was told, the same again, or what another sink asks for, whose directory is another."""
    head = cases.head_of(data)
    middle, later = head // 3, 2 * head // 3
    (tmp_path / "other").mkdir()
    other = Spill(tmp_path / "other")
    with closing(host_for(data)) as host:
        parts = [plain(piece.outcome.solutions).to_pylist() for piece in host.run(0, head, 20)]
    whole = [solution for part in parts for solution in part]
    expected = [[each for each in whole if lo <= each["entry"] < hi] for lo, hi in ((0, middle), (middle, later), (later, head))]
    with closing(host_for(data, buckets)) as host:
        assert brought(host, 0, middle, later, spill) == expected[0]
        assert brought(host, middle, later, head, other) == expected[1]
        assert brought(host, later, head, None, other) == expected[2]
        assert brought(host, middle, later, head, spill) == expected[1]
        assert brought(host, later, head, head, spill) == expected[2]
    assert files(other) == set()
    assert all(expected)


def test_two_engines_lay_them_before_they_are_asked_for(data: Path, spill: Spill) -> None:
    head = cases.head_of(data)
    middle = head // 2
    with closing(host_for(data, 2)) as host:
        brought(host, 0, middle, head, spill)
        cases.eventually(lambda: bool(files(spill)), 60, lambda: "nothing is laid")
        assert all(int(name.partition("-")[0]) >= middle for name in files(spill))


def test_a_directory_that_goes_is_told_who_asks_and_no_one_else(data: Path, tmp_path: Path) -> None:
    head, there, other = cases.head_of(data), Spill(tmp_path / "there"), Spill(tmp_path)
    there.directory.mkdir()
    with closing(host_for(data, 2)) as host:
        brought(host, 0, head // 2, head, there)
        there.directory.rename(tmp_path / "moved")
        for _ in range(2):
            with pytest.raises(FileNotFoundError, match="there"):
                brought(host, head // 2, head, None, there)
        assert brought(host, head // 2, head, None, other)

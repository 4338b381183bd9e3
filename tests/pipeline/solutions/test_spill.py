"""Long solutions on their way to the sink, laid before they are asked for."""

from contextlib import closing
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from engine.dictionary.arrow_encoding import plain
from engine.messages import SOLUTIONS, Outcome, StateChange
from pipeline.errors import StoreFailed
from pipeline.runners import spill as module
from pipeline.runners.host_messages import Advance
from pipeline.runners.partitions import Host, host_for
from pipeline.runners.spill import Spill
from tests.support import spark_cases as cases

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
    assert spill.spill_solutions(piece) is piece
    assert files(spill) == set()


def test_long_ones_are_read_as_they_were(spill: Spill) -> None:
    long = solutions(40_000)
    laid = spill.spill_solutions(Advance(3, 7, Outcome(long, (CHANGE,))))
    assert (laid.lo, laid.hi, laid.outcome.changes, laid.outcome.solutions.num_rows) == (3, 7, (CHANGE,), 0)
    assert spill.spill_solutions(laid) is laid
    assert laid.file is not None
    assert spill.read(laid.file).equals(long)
    other = spill.spill_solutions(Advance(3, 7, Outcome(long, (CHANGE,)))).file
    assert other is not None
    assert files(spill) == {laid.file, other}, "of two workers"
    spill.sweep(6)
    assert spill.read(other).equals(long)
    spill.sweep(7)
    assert files(spill) == set()


def test_what_is_not_there_is_told(spill: Spill) -> None:
    with pytest.raises(FileNotFoundError if spill.store is None else StoreFailed, match=r"3-7-0\.arrow"):
        spill.read("3-7-0.arrow")


def test_only_what_was_laid_there_is_swept(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    laid = [spill.spill_solutions(Advance(lo, lo + 4, Outcome(solutions(40_000), ()))).file for lo in (3, 7, 11)]
    (tmp_path / f"{laid[0]}.tmp").touch()
    (tmp_path / "checkpoint").mkdir()
    spill.sweep(11)
    assert {path.name for path in tmp_path.iterdir()} == {laid[2], "checkpoint"}
    spill.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint"}


# ---------------------------------------------------------------- by engines that are ahead
@pytest.fixture
def data(tmp_path: Path) -> Path:
    cases.write("sequences", tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def short(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all solutions that engines find in `data` count as long, so they spill."""
    if "data" in request.fixturenames:
        monkeypatch.setattr(module, "SPILL_BYTES", 0)


def brought(host: Host, lo: int, hi: int, then: int | None, spill: Spill) -> list[object]:
    """Solutions of a range, taken as the sink does."""
    found: list[object] = []
    with closing(host.run(lo, hi, 20, then, spill)) as pieces:
        for piece in map(spill.spill_solutions, pieces):
            if piece.file is not None:
                found += plain(spill.read(piece.file)).to_pylist()
    spill.sweep(hi)
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
    assert (files(spill), files(other)) == (set(), set())
    assert all(expected)


def test_two_workers_may_lay_the_same_pieces(data: Path, spill: Spill) -> None:
    """One that is ahead, and another that is given the range."""
    head, step = cases.head_of(data), 30
    with closing(host_for(data)) as host:
        whole = [solution for piece in host.run(0, head, 20) for solution in plain(piece.outcome.solutions).to_pylist()]
    chance, found = Random(1), list[object]()
    with closing(host_for(data, 2)) as one, closing(host_for(data, 2)) as other:
        for lo in range(0, head, step):
            found += brought(chance.choice((one, other)), lo, min(lo + step, head), min(lo + 2 * step, head), spill)
    assert found == whole
    spill.sweep(head)
    assert files(spill) == set()


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

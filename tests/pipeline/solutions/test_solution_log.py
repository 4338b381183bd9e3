"""The solution log: ids, exactly once, following, reading after an id."""

import signal
import subprocess
import sys
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import StateChange
from pipeline.errors import Gone, Locked, OutOfOrder
from pipeline.log.segments import segment_path, segments
from pipeline.solutions.query_index import RecentFrames
from pipeline.solutions.solution_ids import KeyRange, assign, key_of
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter, StoredSolution, Tally, _select_rows, listed, solution_id
from tests.soak import examples, is_full
from tests.support.logs import solutions, until


def ids(found: list[StoredSolution]) -> list[str]:
    return [solution.id for solution in found]


def test_an_id_orders_as_its_end_and_ordinal() -> None:
    keys = [(-(2**60), 0), (-1, 5), (0, 0), (0, 1), (0, 16), (1, 0), (2**60, 3)]
    texts = [solution_id(*key) for key in keys]
    assert texts == sorted(texts)
    assert [key_of(text) for text in texts] == keys
    assert solution_id(1, 10) == "8000000000000001-0000000a"


@pytest.mark.parametrize("text", ["", "8000000000000001", "8000000000000001-0000000A", "8000000000000001-0000000a\n", "x" * 1000])
def test_what_is_no_id_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="is not a solution id"):
        SolutionReader(tmp_path).read(0, text, 1)


def test_solutions_come_back_as_they_were_with_their_ids(tmp_path: Path) -> None:
    writer, reader = SolutionWriter(tmp_path), SolutionReader(tmp_path)
    assert (reader.position, reader.tally(1), listed(reader.read(1, None, 5)), reader.changes) == (0, Tally(), [], ())
    writer.commit(0, 3, solutions((1, 0, 10, ["<x:a>", None]), (2, 0, 10, ["<x:b>"]), (1, 2, 10, ["<x:c>", '"d"'])))
    writer.commit(3, 4, solutions((1, 3, 10, ["<x:e>", None]), (1, 3, 11, ["<x:f>", None])))
    assert listed(reader.read(1, None, 5)) == [
        StoredSolution(solution_id(10, 0), "q1", 1, 0, 10, 10, ("<x:a>", None)),
        StoredSolution(solution_id(10, 1), "q1", 1, 2, 10, 10, ("<x:c>", '"d"')),
        StoredSolution(solution_id(10, 2), "q1", 1, 3, 10, 10, ("<x:e>", None)),
        StoredSolution(solution_id(11, 0), "q1", 1, 3, 11, 11, ("<x:f>", None)),
    ]
    assert ids(listed(reader.read(2, None, 5))) == [solution_id(10, 0)]
    assert reader.tally(1) == Tally(4, solution_id(11, 0))
    assert reader.position == 4
    assert [[s.values[0] for s in part] for part in map(listed, reader.emitted())] == [["<x:a>", "<x:b>", "<x:c>"], ["<x:e>", "<x:f>"]]
    assert [[s.values[0] for s in part] for part in map(listed, reader.emitted(1))] == [["<x:c>"], ["<x:e>", "<x:f>"]]
    writer.close()


def test_ranges_come_once_and_in_order(tmp_path: Path) -> None:
    writer = SolutionWriter(tmp_path)
    assert writer.commit(0, 5, solutions((1, 0, 10, ["<x:a>"])))
    assert not writer.commit(0, 5, solutions((1, 0, 10, ["<x:a>"])))
    assert not writer.commit(2, 4, solutions((1, 2, 10, ["<x:a>"])))
    for lo, hi in ((4, 6), (6, 7)):
        with pytest.raises(OutOfOrder, match="cannot follow position 5"):
            writer.commit(lo, hi, solutions())
    with pytest.raises(OutOfOrder, match="ends at 9"):
        writer.commit(5, 6, solutions((1, 5, 9, ["<x:b>"])))
    with pytest.raises(OutOfOrder, match="after one that ends at"):
        writer.commit(5, 6, solutions((1, 5, 11, ["<x:b>"]), (1, 5, 10, ["<x:b>"])))
    writer.commit(5, 6, solutions())
    assert SolutionReader(tmp_path).tally(1).count == 1
    assert writer.position == 6
    with pytest.raises(Locked):
        SolutionWriter(tmp_path)
    writer.close()


def test_state_changes_are_kept(tmp_path: Path) -> None:
    changes = [StateChange(1, "q", 2, "failed", "because: \u201cit\u201d"), StateChange(3, "r", 4, "completed", "")]
    writer, reader = SolutionWriter(tmp_path), SolutionReader(tmp_path)
    writer.commit(0, 3, solutions(), changes[:1])
    assert reader.changes == tuple(changes[:1])
    writer.commit(3, 5, solutions((1, 4, 0, [])), changes[1:])
    assert reader.changes == SolutionReader(tmp_path).changes == tuple(changes)
    assert listed(reader.read(1, None, 1))[0].values == ()
    writer.close()


STREAMS = st.lists(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=8), min_size=1, max_size=12)


def read_back(reader: SolutionReader, query: int, keys: KeyRange, limit: int) -> list[str]:
    """Read a range from its end, page by page, each before the last id of the one before."""
    found: list[str] = []
    while page := ids(listed(reader.read_range(query, keys, limit))):
        assert len(page) <= limit
        found += page
        keys = replace(keys, before=key_of(page[-1]))
    return found


@settings(max_examples=examples(40))
@given(
    ranges=STREAMS,
    segment_bytes=st.sampled_from([1, 4000, 1 << 20]),
    restart=st.sets(st.integers(0, 11)),
    limit=st.integers(1, 9),
    beside=st.sampled_from([0, 1, 64]),
)
def test_ids_are_the_same_however_ranges_are_cut_and_writers_restart_and_any_id_resumes(
    tmp_path_factory: pytest.TempPathFactory, ranges: list[list[tuple[int, int]]], segment_bytes: int, restart: set[int], limit: int, beside: int
) -> None:
    """Each range: (query, step of its end) in order of emission.

    The reader is handed the last `beside` frames, or reads all from the files.
    """
    directory = tmp_path_factory.mktemp("solutions")
    ends = {1: 0, 2: 0, 3: 0}
    counts: dict[tuple[int, int], int] = {}
    expected: dict[int, list[str]] = {1: [], 2: [], 3: []}
    follower = SolutionReader(directory)
    recent = RecentFrames(beside) if beside else None
    follower.recent = recent or follower.recent
    writer = SolutionWriter(directory, segment_bytes=segment_bytes, recent=recent)
    for n, found in enumerate(ranges):
        rows = []
        for query, step in found:
            ends[query] += step
            ordinal = counts.setdefault((query, ends[query]), 0)
            counts[query, ends[query]] += 1
            expected[query].append(solution_id(ends[query], ordinal))
            rows.append((query, n, ends[query], [f'"{n}"']))
        writer.commit(n, n + 1, solutions(*rows))
        if beside != 1 or n % 2:  # otherwise it reads on when one frame is no longer at hand
            assert ids(listed(follower.read(1 + n % 3, None, 10_000))) == expected[1 + n % 3]
        if n in restart:
            writer.close()
            writer = SolutionWriter(directory, segment_bytes=segment_bytes, recent=recent)
    for reader in (follower, SolutionReader(directory)):
        for query, each in expected.items():
            assert reader.tally(query) == Tally(len(each), each[-1] if each else None)
            for k, after in enumerate([None, *each]):
                assert ids(listed(reader.read(query, after, limit))) == each[k : k + limit]
                assert reader.rank(query, after) == k
            for first, last in [(0, 99), (2, 6), (5, 5), (7, 99), (0, 2)]:
                expected_ids = [id_ for id_ in each if first <= key_of(id_)[0] <= last]
                assert ids(listed(reader.read_range(query, KeyRange().within(first, last), limit))) == expected_ids[:limit]
                assert read_back(reader, query, KeyRange(newest=True).within(first, last), limit) == expected_ids[::-1]
    writer.close()
    follower.close()


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=40),
    st.dictionaries(st.integers(0, 4), st.tuples(st.just(0), st.integers(0, 9))),
)
def test_ordinals_by_columns_are_ordinals_by_counting(rows: list[tuple[int, int]], last: dict[int, tuple[int, int]]) -> None:
    reached: dict[int, int] = {}
    ends = []
    for query, step in rows:
        reached[query] = reached.get(query, 0) + step
        ends.append(reached[query])
    ordinals, runs = assign(np.array([query for query, _ in rows], np.int64), np.array(ends, np.int64), last)
    known = dict(last)
    for (query, _), end, ordinal in zip(rows, ends, ordinals.tolist(), strict=True):
        before = known.get(query)
        known[query] = (end, before[1] + 1 if before and before[0] == end else 0)
        assert ordinal == known[query][1]
    assert {run.registered: (run.end, run.ordinal) for run in runs} == {query: known[query] for query, _ in rows}
    assert sum(run.count for run in runs) == len(rows)


def test_an_end_between_those_of_a_registration_is_a_place_to_resume(tmp_path: Path) -> None:
    writer, reader = SolutionWriter(tmp_path), SolutionReader(tmp_path)
    for n in range(10):
        writer.commit(n, n + 1, solutions((1, n, 10 * n, [])))
    assert ids(listed(reader.read(1, solution_id(35, 7), 2))) == [solution_id(40, 0), solution_id(50, 0)]
    assert listed(reader.read(1, solution_id(90, 0), 2)) == []
    assert listed(reader.read(1, None, 0)) == []
    writer.close()


def test_the_newest_and_a_range_of_time_are_read_without_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, reader = SolutionWriter(tmp_path), SolutionReader(tmp_path)
    for n in range(200):
        writer.commit(n, n + 1, solutions((1, n, 10 * n, [f'"{n}"'])))
    frames: list[tuple[int, int]] = []
    read_frame = SolutionReader._batch

    def count_frame(self: SolutionReader, segment: int, byte: int) -> pa.RecordBatch:
        frames.append((segment, byte))
        return read_frame(self, segment, byte)

    monkeypatch.setattr(SolutionReader, "_batch", count_frame)
    assert ids(listed(reader.read_range(1, KeyRange(newest=True), 3))) == [solution_id(10 * n, 0) for n in (199, 198, 197)]
    assert len(frames) == 3
    assert ids(listed(reader.read_range(1, KeyRange().within(1000, 1019), 9))) == [solution_id(1000, 0), solution_id(1010, 0)]
    assert ids(listed(reader.read_range(1, KeyRange(newest=True).within(1000, 1019), 9))) == [solution_id(1010, 0), solution_id(1000, 0)]
    assert len(frames) <= 3 + 3 + 3  # the frame past the end may hold a solution of the range too
    writer.close()


def test_full_segments_are_noted_and_notes_may_go(tmp_path: Path) -> None:
    writer = SolutionWriter(tmp_path, segment_bytes=3000)
    for n in range(20):
        writer.commit(n, n + 1, solutions((1, n, n, [f'"{n}"'])), [StateChange(n, "q", n, "failed", "")])
    writer.close()
    SolutionReader(tmp_path).tally(1)
    directory = tmp_path / "solutions"
    assert len(list(directory.glob("*.index"))) == len(segments(directory)) - 1 > 3
    first = segment_path(directory, 0).with_suffix(".index")
    for spoil in (lambda: None, lambda: first.write_bytes(b"\x00"), first.unlink):
        spoil()
        reader = SolutionReader(tmp_path)
        assert (reader.tally(1).count, len(reader.changes), len(listed(reader.read(1, None, 100)))) == (20, 20, 20)
        again = SolutionWriter(tmp_path)
        assert again.position == 20
        again.close()


def test_a_torn_tail_at_any_byte_is_cut_off_and_written_anew(tmp_path: Path) -> None:
    writer = SolutionWriter(tmp_path)
    writer.commit(0, 1, solutions((1, 0, 5, ["<x:a>"])))
    path = segment_path(tmp_path / "solutions", 0)
    sound = path.stat().st_size
    writer.commit(1, 2, solutions((1, 1, 5, ["<x:b>"])))
    writer.close()
    data = path.read_bytes()
    for size in range(sound, len(data), 7):
        path.write_bytes(data[:size])
        writer = SolutionWriter(tmp_path)
        assert writer.position == 1
        writer.commit(1, 2, solutions((1, 1, 5, ["<x:b>"])))
        writer.close()
        assert path.read_bytes() == data
        assert ids(listed(SolutionReader(tmp_path).read(1, None, 9))) == [solution_id(5, 0), solution_id(5, 1)]


COMMITTER = """
import sys
from pipeline.solutions.solution_log import SolutionWriter
from tests.support.logs import solutions
writer = SolutionWriter(sys.argv[1], segment_bytes=30_000)
while True:
    n = writer.position
    writer.commit(n, n + 1, solutions((1, n, n // 3, [f'"{n}"'])))
"""


def test_a_writer_killed_again_and_again_gives_each_solution_once_to_a_reader_that_follows(tmp_path: Path) -> None:
    reader, seen = SolutionReader(tmp_path), 0
    after: str | None = None
    for _ in range(3 if is_full() else 1):
        with subprocess.Popen([sys.executable, "-c", COMMITTER, str(tmp_path)]) as process:
            goal = seen + 200
            while seen < goal:
                until(lambda before=seen: reader.position > before, "solutions")  # type: ignore[misc]
                found = listed(reader.read(1, after, 50))
                assert [s.values for s in found] == [(f'"{n}"',) for n in range(seen, seen + len(found))]
                seen, after = seen + len(found), found[-1].id if found else after
            process.send_signal(signal.SIGKILL)
    assert reader.wait(seen - 1, 0) >= seen
    fresh = SolutionReader(tmp_path)
    assert ids(listed(fresh.read(1, None, 10**6))) == [solution_id(n // 3, n % 3) for n in range(fresh.tally(1).count)]


def test_positions_and_counts_are_told_while_solutions_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, reader = SolutionWriter(tmp_path), SolutionReader(tmp_path)
    writer.commit(0, 3, solutions(*((1, 0, 10, [f'"{number}"']) for number in range(5))))
    told: list[tuple[int, int, int]] = []

    def ask() -> None:
        told.append((reader.position, reader.tally(1).count, len(reader.changes)))

    def chosen_slowly(*arguments: Any) -> pa.RecordBatch:
        thread = Thread(target=ask, daemon=True)
        thread.start()
        thread.join(60)
        return _select_rows(*arguments)

    monkeypatch.setattr("pipeline.solutions.solution_log._select_rows", chosen_slowly)
    assert len(listed(reader.read(1, None, 3))) == 3
    assert told == [(3, 5, 0)]
    writer.close()


def test_ranks_count_what_is_no_longer_kept(tmp_path: Path) -> None:
    """Six solutions in three segments, of which the first one goes: two solutions."""
    writer, reader = SolutionWriter(tmp_path, segment_bytes=1), SolutionReader(tmp_path)
    for position in range(3):
        writer.commit(position, position + 1, solutions(*((1, position, 2 * position + k, [f"<x:{2 * position + k}>"]) for k in (1, 2))))
    ranks = [ids(listed(reader.read_rank(1, rank, 2))) for rank in range(7)]
    assert ranks == [[solution_id(n, 0) for n in (rank + 1, rank + 2) if n <= 6] for rank in range(7)]
    before = [reader.before_last(1, count) for count in range(8)]
    assert before == [*((solution_id(n, 0), n) for n in range(6, 0, -1)), (None, 0), (None, 0)]
    reader.drop_segment(segments(tmp_path / "solutions")[1])
    assert (reader.tally(1).gone, reader.tally(1).count) == (2, 6)
    assert [ids(listed(reader.read_rank(1, rank, 2))) for rank in range(2, 7)] == ranks[2:]
    with pytest.raises(Gone, match="the first 2 solutions"):
        reader.read_rank(1, 1, 2)
    assert [reader.before_last(1, count) for count in range(8)] == [*before[:5], before[4], before[4], before[4]]
    writer.close()


def test_a_reader_keeps_few_bytes_of_large_frames(tmp_path: Path) -> None:
    long, frames = f'"{"x" * (2 << 20)}"', 24
    with closing(SolutionWriter(tmp_path)) as writer:
        for number in range(frames):
            writer.commit(number, number + 1, solutions((1, number, 10 + number, [long])))
    with closing(SolutionReader(tmp_path)) as reader:
        tracemalloc.start()
        for number in range(frames):
            assert reader.read(1, solution_id(10 + number - 1, 0), 1).num_rows == 1
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert kept < 12 << 20

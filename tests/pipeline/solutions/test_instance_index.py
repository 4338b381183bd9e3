"""The solutions of one instance are read by an index, which finds what reading all of them finds."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.log.segments import segment_path, segments
from pipeline.solutions.instance_index import instances_path
from pipeline.solutions.result_kinds import InstanceLife
from pipeline.solutions.solution_ids import KeyRange
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter, StoredSolution, listed
from tests.soak import examples
from tests.support.logs import solutions

NAMES = ["ann", "bob", "eve"]
QUERY = 1
frames = st.lists(st.lists(st.tuples(st.sampled_from([QUERY, QUERY, 2]), st.sampled_from(NAMES)), max_size=5), min_size=1, max_size=12)


def read_slowly(reader: SolutionReader, life: InstanceLife, keys: KeyRange, limit: int) -> list[StoredSolution]:
    """The solutions of a life of an instance, found among all."""
    found = listed(reader.read_range(QUERY, keys, 10**6))
    return [each for each in found if each.values[0] == f'"{life.instance}"' and each.entry > life.since][:limit]


@settings(max_examples=examples(300), deadline=None)
@given(
    frames,
    st.sampled_from([1, 2000, 1 << 20]),
    st.sets(st.integers(0, 12)),
    st.lists(st.tuples(st.integers(-1, 12), st.none() | st.integers(0, 24), st.none() | st.integers(0, 24), st.booleans(), st.integers(1, 9))),
)
def test_an_index_finds_what_a_scan_finds(
    tmp_path_factory: pytest.TempPathFactory,
    written: list[list[tuple[int, str]]],
    segment_bytes: int,
    asked_at: set[int],
    ranges: list[tuple[int, int | None, int | None, bool, int]],
) -> None:
    path = tmp_path_factory.mktemp("log")
    with closing(SolutionWriter(path, segment_bytes=segment_bytes)) as writer, closing(SolutionReader(path)) as early:
        for n, rows in enumerate(written):
            writer.commit(n, n + 1, solutions(*((registered, n, 2 * n, [f'"{name}"', f'"{n}"']) for registered, name in rows)))
            if n in asked_at:  # so that the index is read on now and then
                early.read_instance(QUERY, InstanceLife(NAMES[n % 3], 0), KeyRange(), 1)
        for reader in (early, late := SolutionReader(path)):
            for since, after, before, newest, limit in [(-1, None, None, False, 100), *ranges]:
                keys = KeyRange(None if after is None else (after, 0), None if before is None else (before, 0), newest)
                for name in NAMES:
                    life = InstanceLife(name, since)
                    found, last = reader.read_instance(QUERY, life, keys, limit)
                    assert listed(found) == read_slowly(reader, life, keys, limit)
                    assert last is None or last >= max(((2 * n, 0) for n, rows in enumerate(written) if (QUERY, name) in rows), default=last)
        late.close()


def test_full_segments_are_indexed_once_and_their_files_may_go(tmp_path: Path) -> None:
    with closing(SolutionWriter(tmp_path, segment_bytes=1)) as writer:
        for n in range(12):
            writer.commit(n, n + 1, solutions((QUERY, n, n, [f'"{NAMES[n % 3]}"'])))
    directory = tmp_path / "solutions"
    stored = [instances_path(directory, segment, QUERY) for segment in segments(directory)]
    for spoil in (lambda: None, lambda: stored[3].write_bytes(b"\x00"), lambda: stored[3].write_bytes(stored[0].read_bytes()), stored[3].unlink):
        spoil()
        with closing(SolutionReader(tmp_path)) as reader:
            assert [each.end for each in listed(reader.read_instance(QUERY, InstanceLife("ann", -1), KeyRange(), 100)[0])] == [0, 3, 6, 9]
        assert [path.exists() for path in stored] == [True] * (len(stored) - 1) + [False]
    with closing(SolutionReader(tmp_path)) as reader:
        reader.drop_segment(segments(directory)[5])
        for segment in segments(directory)[:5]:
            segment_path(directory, segment).unlink()
        assert [each.end for each in listed(reader.read_instance(QUERY, InstanceLife("ann", -1), KeyRange(), 100)[0])] == [6, 9]

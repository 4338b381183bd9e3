"""These tests check the content of a log's segment in a store: each byte is what the server of the latest epoch has written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import StoreFailed
from pipeline.replication.object_names import Bound, Extent, Part, cover, extent_of, standing

SEGMENT = 7
EXTENTS = st.builds(
    lambda begin, length, crc, epoch: Extent(SEGMENT, begin, begin + length, crc, epoch),
    st.integers(0, 12), st.integers(1, 12), st.integers(0, 1), st.integers(1, 4),
)  # fmt: skip
BOUND = st.tuples(st.sampled_from([SEGMENT - 1, SEGMENT, SEGMENT, SEGMENT, SEGMENT + 1]), st.integers(0, 20))
BOUNDS = st.dictionaries(st.integers(1, 5), BOUND, max_size=4).map(lambda found: sorted(found.items()))
ANY = st.builds(Extent, st.integers(0, 10**20 - 1), *[st.integers(0, 10**12 - 1)] * 2, st.integers(0, 2**32 - 1), st.integers(0, 10**10 - 1))


@given(st.lists(EXTENTS, max_size=8), BOUNDS)
def test_each_byte_is_that_of_the_latest_epoch_which_counts(extents: list[Extent], bounds: list[tuple[int, Bound]]) -> None:
    owners = naive(extents, bounds)
    length = next((at for at, owner in enumerate(owners) if owner is None), len(owners))
    if any(owners[length:]):
        with pytest.raises(StoreFailed, match=rf"bytes {length} to \d+ of the segment 7 are missing"):
            cover(extents, bounds)
        return
    parts = cover(extents, bounds)
    assert [part.extent.epoch for part in parts for _ in range(part.begin, part.end)] == owners[:length]
    assert [part.begin for part in parts] == [0, *(part.end for part in parts)][: len(parts)]
    assert all(part.extent in extents and part.extent.begin <= part.begin < part.end <= part.extent.end for part in parts)


def naive(extents: list[Extent], bounds: list[tuple[int, Bound]]) -> list[int | None]:
    """Return for each byte the latest epoch that has written it before a later one said that it writes from there on."""

    def counts(extent: Extent, at: int) -> bool:
        return extent.begin <= at < extent.end and all(epoch <= extent.epoch or (SEGMENT, at) < bound for epoch, bound in bounds)

    return [max((extent.epoch for extent in extents if counts(extent, at)), default=None) for at in range(30)]


@given(st.lists(EXTENTS, max_size=8), BOUNDS, BOUNDS, st.integers(SEGMENT - 1, SEGMENT))
def test_bounds_that_are_left_out_say_nothing(
    extents: list[Extent], log: list[tuple[int, Bound]], solutions: list[tuple[int, Bound]], begin: int
) -> None:
    told = [
        (epoch, {kind: found[epoch] for kind, found in (("log", dict(log)), ("solutions", dict(solutions))) if epoch in found})
        for epoch in range(1, 6)
    ]
    left = standing(told, {"log": begin})
    assert [epoch for epoch, _ in left] == sorted(epoch for epoch, _ in left)
    for kind, bounds in (("log", log), ("solutions", solutions)):
        assert naive(extents, [(epoch, each[kind]) for epoch, each in left if kind in each]) == naive(extents, bounds)
    assert standing(left, {"log": begin}) == left
    assert [bound for _, each in left for kind, bound in each.items() if kind == "log" and bound < (begin, 0)][1:] == []


@given(ANY)
def test_a_name_says_all(extent: Extent) -> None:
    folder, _, name = extent.name.partition("/")
    assert folder == f"{extent.segment:020d}"
    assert extent_of(extent.segment, name) == extent


@pytest.mark.parametrize(
    "name",
    [
        "", ".x.tmp", "000000000000-000000000100-0badcafe", "000000000000-000000000100-0badcafe-0000000001.tmp",
        "000000000000-000000000100-0BADCAFE-0000000001", "0-100-0badcafe-1", "000000000000-000000000100-0badcafe-0000000001\n",
    ],
)  # fmt: skip
def test_what_is_no_extent_is_ignored(name: str) -> None:
    assert extent_of(0, name) is None


def test_a_part_of_an_extent_ends_where_a_later_server_writes() -> None:
    earlier, later = Extent(SEGMENT, 0, 100, 1, 1), Extent(SEGMENT, 60, 80, 2, 2)
    assert cover([earlier, later], [(2, (SEGMENT, 60))]) == [Part(earlier, 0, 60), Part(later, 60, 80)]

"""A store that version 0.1.0 has written is gone on from, with a directory that is empty or its own.

`tests/fixtures/store-0.1.0.tar.xz` was written by version 0.1.0: a store of two servers, of which the earlier one
wrote on beside the later one, the directory of the later one, and what it had acknowledged.
"""

import json
import tarfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import NotOfThisStore, StoreFailed
from pipeline.log.segments import oldest
from pipeline.object_store.backends import DirectoryStore
from pipeline.replication.manifest import Extent
from pipeline.replication.store_0_1 import cover_segment, cut_extent, read_0_1
from tests.fault_tolerance.two_writers import entries, opened, solved, stream

FIXTURE = Path(__file__).parents[2] / "fixtures" / "store-0.1.0.tar.xz"
SEGMENT = 7
WRITTEN = st.tuples(
    st.integers(1, 4), st.builds(lambda begin, length: Extent(SEGMENT, begin, begin + length, "", 0), st.integers(0, 12), st.integers(1, 12))
)
BOUND = st.tuples(st.sampled_from([SEGMENT - 1, SEGMENT, SEGMENT, SEGMENT, SEGMENT + 1]), st.integers(0, 20))
BOUNDS = st.dictionaries(st.integers(1, 5), BOUND, max_size=4).map(lambda found: sorted(found.items()))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with tarfile.open(FIXTURE) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        archive.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("data", ["data", "empty"])
def test_it_is_gone_on_from(data: str, root: Path) -> None:
    expected = json.loads((root / "expected.json").read_text())
    keeper, log = opened(root / data, root / "store")
    number = log.append(stream("then"))
    keeper.round()
    keeper.mend()
    log.close()
    keeper.stop()
    assert not list((root / "store" / "state").rglob("*.json")), "what nobody counts on is removed"
    keeper, log = opened(root / "last", root / "store")
    assert log.catalogue.streams.keys() >= {name for _, name in expected["acknowledged"]} | {"then"}
    assert {kind: oldest(root / "last" / kind) for kind in ("log", "solutions")} == expected["oldest"]
    log.close()
    keeper.stop()
    acknowledged = {position: name for position, name in expected["acknowledged"] if position >= expected["oldest"]["log"]}
    assert entries(root / "last") == acknowledged | {number: "then"}
    assert solved(root / "last")[1] >= expected["solved"][1]
    assert [path.name for path in (root / "last" / "observers").iterdir()] == ["pager.json"]
    assert list((root / "last" / "snapshots").iterdir())


def test_a_server_of_then_acknowledges_nothing_more(root: Path) -> None:
    """It looks at the claims after each write, and there is a later one."""
    before = (root / "store" / "claims").iterdir()
    latest = max(path.name for path in before)
    keeper, log = opened(root / "empty", root / "store")
    log.close()
    keeper.stop()
    assert max(path.name for path in (root / "store" / "claims").iterdir())[:10] > latest[:10]


def test_another_directory_is_refused(root: Path) -> None:
    note = json.loads((root / "data" / "store.json").read_text())
    (root / "data" / "store.json").write_text(json.dumps({**note, "epoch": note["epoch"] - 1}))
    with pytest.raises(NotOfThisStore, match="is not what another server has kept since in"):
        opened(root / "data", root / "store")
    (root / "data" / "store.json").write_text(json.dumps(note))
    (root / "data" / "log" / "head").unlink()  # else the segments would be fetched from the store
    for path in sorted((root / "data" / "log").glob("*.frames"))[1:]:
        path.unlink()
    with pytest.raises(NotOfThisStore, match="lacks events that are in"):
        opened(root / "data", root / "store")
    assert not (root / "store" / "manifests").exists()


def test_there_is_none_in_an_empty_store(tmp_path: Path) -> None:
    assert read_0_1(DirectoryStore(tmp_path / "store", locked=False)) is None


@given(st.lists(WRITTEN, max_size=8), BOUNDS)
def test_each_byte_is_that_of_the_latest_epoch_which_counts(written: list[tuple[int, Extent]], bounds: list[tuple[int, tuple[int, int]]]) -> None:
    named = [(epoch, msgspec.structs.replace(extent, name=f"{epoch} {number}")) for number, (epoch, extent) in enumerate(written)]
    owners = naive(named, bounds)
    counting = [cut for each in named if (cut := cut_extent(*each, bounds)) is not None]
    length = next((at for at, owner in enumerate(owners) if owner is None), len(owners))
    if any(owners[length:]):
        with pytest.raises(StoreFailed, match=rf"bytes {length} to \d+ of the segment 7 are missing"):
            cover_segment(counting)
        return
    parts = cover_segment(counting)
    assert [int(part.name.partition(" ")[0]) for part in parts for _ in range(part.begin, part.end)] == owners[:length]
    assert [part.begin for part in parts] == [0, *(part.end for part in parts)][: len(parts)]
    begins = {extent.name: extent.begin for _, extent in named}
    assert all(part.offset == part.begin - begins[part.name] for part in parts)


def naive(written: list[tuple[int, Extent]], bounds: list[tuple[int, tuple[int, int]]]) -> list[int | None]:
    """Return for each byte the latest epoch that has written it before a later one said that it writes from there on."""

    def counts(epoch: int, extent: Extent, at: int) -> bool:
        return extent.begin <= at < extent.end and all(later <= epoch or (SEGMENT, at) < bound for later, bound in bounds)

    return [max((epoch for epoch, extent in written if counts(epoch, extent, at)), default=None) for at in range(30)]

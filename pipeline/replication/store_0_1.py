"""This module reads a store that version 0.1.0 has written, and takes it over: its objects become those of the first
manifest.

There a server claimed an epoch by an object under its own name, and told from where on in each log it wrote. It named
objects by segment, bytes, checksum and epoch; what an earlier server still wrote beyond a later one's beginning does
not count.
"""

import re
import zlib
from itertools import groupby

import msgspec

from pipeline.errors import StoreFailed
from pipeline.object_store.backends import ObjectStore
from pipeline.replication.manifest import LOGS, Extent, Manifest, StoredFile
from pipeline.replication.restore import list_tree

_CLAIM = re.compile(r"(\d{10})-([0-9a-f]{16})-([0-9a-f]{8})-(\d{10})")
_EXTENT = re.compile(r"(\d{20})/(\d{12})-(\d{12})-([0-9a-f]{8})-(\d{10})")


class _Told(msgspec.Struct, frozen=True):
    """Holds what the last server told: with which segment each log begins, and the segment and byte from which on
    each epoch's server wrote.
    """

    begins: dict[str, int]
    bounds: list[tuple[int, dict[str, tuple[int, int]]]]


def read_0_1(store: ObjectStore) -> Manifest | None:
    """Return what makes up a store of version 0.1.0, or None where there is none.

    Its server must have ended. Raises: StoreFailed.
    """
    claims = sorted(found.groups() for name in store.names("claims") if (found := _CLAIM.fullmatch(name)) is not None)
    written = [claim for claim in claims if int(claim[3])]
    if not written:
        return None
    epoch, server, start, version = written[-1]
    key = f"{epoch}-{server}-{start}"
    told = msgspec.json.decode(_present(store, f"claims/{key}-{version}"), type=_Told)
    logs = {kind: _read_log(store, kind, told) for kind in LOGS}
    names = {name: f"state/{key}/{name}" for name in list_tree(store, f"state/{key}")}
    files = {name: StoredFile(full, zlib.crc32(_present(store, full))) for name, full in names.items()}
    return Manifest(server, epoch=int(epoch), logs=logs, files=files)


def end_0_1(store: ObjectStore, manifest: Manifest, server: str, start: str) -> None:
    """Claim the next epoch, as a server of version 0.1.0 would: one that still runs then acknowledges nothing more.

    Raises: StoreFailed.
    """
    store.put(f"claims/{manifest.epoch + 1:010d}-{server}-{start}-{0:010d}", b"{}")


def _read_log(store: ObjectStore, kind: str, told: _Told) -> list[Extent]:
    bounds = [(epoch, each[kind]) for epoch, each in told.bounds if kind in each]
    found = [match for name in list_tree(store, kind) if (match := _EXTENT.fullmatch(name)) is not None]
    written = [(int(each[5]), Extent(int(each[1]), int(each[2]), int(each[3]), f"{kind}/{each[0]}", int(each[4], 16))) for each in found]
    counting = [cut for each in written if each[1].segment >= told.begins.get(kind, 0) and (cut := cut_extent(*each, bounds)) is not None]
    counting.sort(key=lambda each: each[1].segment)
    return [part for _, group in groupby(counting, lambda each: each[1].segment) for part in cover_segment(list(group))]


def cover_segment(extents: list[tuple[int, Extent]]) -> list[Extent]:
    """Return the extents that make up a segment, from its first byte: where two overlap, that of the later epoch
    counts.

    Raises: StoreFailed where bytes are missing.
    """
    parts: list[Extent] = []
    at = 0
    while here := [(epoch, each.end, each) for epoch, each in extents if each.begin <= at < each.end]:
        best_epoch, end, best = max(here, key=lambda each: each[:2])
        end = min([end, *(each.begin for epoch, each in extents if epoch > best_epoch and at < each.begin < end)])
        parts.append(msgspec.structs.replace(best, begin=at, end=end, offset=at - best.begin))
        at = end
    if beyond := [each for _, each in extents if each.begin > at]:
        raise StoreFailed(f"bytes {at} to {min(each.begin for each in beyond)} of the segment {beyond[0].segment} are missing")
    return parts


def cut_extent(epoch: int, extent: Extent, bounds: list[tuple[int, tuple[int, int]]]) -> tuple[int, Extent] | None:
    """Return an extent up to where later servers write; None where nothing of it counts."""
    end = extent.end
    for later, (segment, byte) in bounds:
        if later > epoch and segment <= extent.segment:
            end = min(end, byte if segment == extent.segment else 0)
    return (epoch, msgspec.structs.replace(extent, end=end)) if end > extent.begin else None


def _present(store: ObjectStore, name: str) -> bytes:
    data = store.read(name)
    if data is None:
        raise StoreFailed(f"the object {name} went while it was read; stop the server of version 0.1.0 that still writes to the store")
    return data

"""This module names stretches of a log's segments as objects of a store, which cannot append, and finds those that make up the log.

A server writes under an epoch of its own (`pipeline/replication/fencing.py`) and says from where on. What an earlier server, who has not noticed yet,
still writes beyond that does not count.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from pipeline.errors import StoreFailed

_NAME = re.compile(r"(\d{12})-(\d{12})-([0-9a-f]{8})-(\d{10})")
Bound = tuple[int, int]
"""Names a segment, and a byte in it."""


@dataclass(frozen=True, slots=True, order=True)
class Extent:
    """Represents bytes [begin, end) of a segment, with their checksum, as the server of an epoch wrote them."""

    segment: int
    begin: int
    end: int
    crc: int
    epoch: int

    @property
    def name(self) -> str:
        """Return the object's name in the folder of its log."""
        return f"{self.segment:020d}/{self.begin:012d}-{self.end:012d}-{self.crc:08x}-{self.epoch:010d}"


@dataclass(frozen=True, slots=True)
class Part:
    """Represents the bytes of an extent from `begin` of its segment on, up to `end`."""

    extent: Extent
    begin: int
    end: int


def extent_of(segment: int, name: str) -> Extent | None:
    """Return the extent of an object in a segment's folder; None where the name is no extent's."""
    found = _NAME.fullmatch(name)
    return None if found is None else Extent(segment, int(found[1]), int(found[2]), int(found[3], 16), int(found[4]))


def cover(extents: Iterable[Extent], bounds: Sequence[tuple[int, Bound]]) -> list[Part]:
    """Return the parts that make up a segment, in order, from its first byte.

    `bounds` says from where on the servers of epochs write, as far as that is told. Raises: StoreFailed where bytes are missing.
    """
    counting = [part for each in extents if (part := counted(each, bounds)) is not None]
    parts: list[Part] = []
    at = 0
    while here := [part for part in counting if part.begin <= at < part.end]:
        best = max(here, key=lambda part: (part.extent.epoch, part.end))
        newer = [part.begin for part in counting if part.extent.epoch > best.extent.epoch and at < part.begin < best.end]
        end = min([best.end, *newer])
        parts.append(Part(best.extent, at, end))
        at = end
    beyond = [part.extent for part in counting if part.begin > at]
    if beyond:
        raise StoreFailed(f"bytes {at} to {min(beyond).begin} of the segment {min(beyond).segment} are missing")
    return parts


def counted(extent: Extent, bounds: Sequence[tuple[int, Bound]]) -> Part | None:
    """Return the part of an extent before the bytes from which on later servers write; None where nothing of it counts."""
    end = extent.end
    for epoch, (segment, byte) in bounds:
        if epoch > extent.epoch and segment <= extent.segment:
            end = min(end, byte if segment == extent.segment else 0)
    return Part(extent, extent.begin, end) if end > extent.begin else None


def standing(bounds: Sequence[tuple[int, dict[str, Bound]]], begins: Mapping[str, int]) -> list[tuple[int, dict[str, Bound]]]:
    """Return the bounds that say something in logs which begin with those segments.

    A bound says something where later servers write from further on, and it does not exclude all of the log.
    """
    lowest: dict[str, Bound] = {}
    kept = []
    for epoch, each in sorted(bounds, key=itemgetter(0), reverse=True):
        says = {kind: bound for kind, bound in each.items() if kind not in lowest or bound < lowest[kind] > (begins.get(kind, 0), 0)}
        lowest.update(says)
        if says:
            kept.append((epoch, says))
    return kept[::-1]

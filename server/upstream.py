"""What readers of streams rest on: the streams themselves, and, where rules write them, what those rules read."""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from pipeline.catalogue import Stream
from server.compiled import Shape

Written: TypeAlias = Mapping[str, frozenset[str]]
"""By each stream that rules write, the streams that those rules read."""


def written_by(shapes: Iterable[Shape]) -> Written:
    """Of those that are rules."""
    found: dict[str, frozenset[str]] = {}
    for each in shapes:
        if each.into is not None:
            found[each.into] = found.get(each.into, frozenset()).union(each.streams)
    return found


def reached(streams: Collection[str], written: Written) -> frozenset[str]:
    """These streams, and those that the rules which write into them read."""
    found, ahead = set(streams), list(streams)
    while ahead:
        wider = written.get(ahead.pop(), frozenset()) - found
        found |= wider
        ahead += wider
    return frozenset(found)


def fed_among(streams: Mapping[str, Stream]) -> dict[str, Stream]:
    """Those that have a time, or need none any more."""
    return {name: stream for name, stream in streams.items() if stream.latest is not None or stream.finished}


def unfed(reads: Collection[str], written: Written, fed: Collection[str]) -> list[str]:
    """The streams for whose first event a reader of `reads` waits, since nobody has fed them and no rules carry them."""
    return sorted(name for name in reached(reads, written) if name not in fed and not _carried(name, written, fed))


def _carried(name: str, written: Written, fed: Collection[str]) -> bool:
    """Whether rules write a stream that nobody feeds, and have a clock of their own: another stream, fed or to be fed."""
    return name in written and any(other in fed or other not in written for other in reached((name,), written) - {name})

"""Finds what readers of streams rest on: the streams themselves, and, where rules write them, the streams that those
rules read.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from epsparql.errors import Warning_
from pipeline.log.catalog import Stream
from pipeline.registrations.query_cache import Shape

Written: TypeAlias = Mapping[str, frozenset[str]]
"""The map gives, for each stream that rules write, the streams that those rules read."""


def find_written(shapes: Iterable[Shape]) -> Written:
    """Return the streams that the rules among these shapes write, with what each rests on."""
    found: dict[str, frozenset[str]] = {}
    for each in shapes:
        if each.into is not None:
            found[each.into] = found.get(each.into, frozenset()).union(each.streams)
    return found


def find_sources(streams: Collection[str], written: Written) -> frozenset[str]:
    """Return these streams and, through any number of rules that write into them, the streams that those rules read."""
    found, ahead = set(streams), list(streams)
    while ahead:
        wider = written.get(ahead.pop(), frozenset()) - found
        found |= wider
        ahead += wider
    return frozenset(found)


def find_fed(streams: Mapping[str, Stream]) -> dict[str, Stream]:
    """Return the streams that have a time, or that need none any more."""
    return {name: stream for name, stream in streams.items() if stream.latest is not None or stream.finished}


def find_alive(written: Written, fed: Collection[str]) -> frozenset[str]:
    """Return the streams that are fed, and those that rules derive from others which are, or may be, fed.

    The time of a derived stream comes with that of its sources.
    """
    made_of: dict[str, list[str]] = {}
    for into, sources in written.items():
        for source in sources:
            made_of.setdefault(source, []).append(into)
    found, ahead = set(fed), [source for source in made_of if source in fed or source not in written]
    while ahead:
        wider = [into for into in made_of.get(ahead.pop(), ()) if into not in found]
        found.update(wider)
        ahead += wider
    return frozenset(found)


def find_unfed(reads: Collection[str], written: Written, alive: frozenset[str]) -> list[str]:
    """Return the streams for whose first event a reader of `reads` waits."""
    return sorted(find_sources(reads, written) - alive)


def warn_of_silence(shape: Shape, written: Written, streams: Mapping[str, Stream]) -> list[Warning_]:
    """Warn of a query that waits for time: name the streams on which time does not pass in silence, with the setting
    that mends it.
    """
    if shape.waits is None:
        return []
    sources = [name for name in find_sources(shape.streams, written) if name not in written or name in streams]
    return [
        Warning_(
            "silent-stream",
            f"if the events of {name!r} carry times, no time passes here without new events: set the stream's idle_timeout",
            shape.waits,
        )
        for name in sorted(sources)
        if (stream := streams.get(name)) is None or not (stream.by_clock or stream.finished or stream.idle_timeout is not None)
    ]

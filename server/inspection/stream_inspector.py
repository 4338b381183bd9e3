"""Looks into streams on request: their last events, and the profile of what they carry.

Nothing is counted while nobody looks.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from pipeline.inspection.backward_reader import BackwardReader, Look
from pipeline.inspection.stream_profile import StreamProfile, profile_of
from pipeline.inspection.tail_reader import TailPage, TailReader
from pipeline.log.catalog import Stream

PROFILED_ROWS = 100_000
FRESH_S, STALE_S = 2.0, 60.0
"""A profile of the first age is given again even where events have come since, and one of the second where none has:
its rates have fallen.
"""
_KEPT_PROFILES, _REST = 64, 10


@dataclass(frozen=True, slots=True)
class _KnownProfile:
    """Holds a profile with the stream as it was, when the counting began, and how long it took."""

    stream: Stream
    profile: StreamProfile
    begun: float
    took_s: float

    def is_fresh(self, now: Stream, oldest_s: float) -> bool:
        """Return whether the profile still describes the stream.

        Who asks again and again takes at most a tenth of a core.
        """
        if now.created != self.stream.created:
            return False
        longest_s = STALE_S if now.accepted == self.stream.accepted else max(oldest_s, _REST * self.took_s)
        return time.monotonic() - self.begun < longest_s


class StreamInspector:
    """Reads the log for those who look at it. Requests take turns, because a reader serves one thread at a time."""

    def __init__(self, data: Path, clock: Callable[[], Micros]) -> None:
        self._reader, self._clock, self._turn = BackwardReader(data), clock, asyncio.Lock()
        self._tail, self._tail_turn = TailReader(data), asyncio.Lock()
        self._profiles: dict[str, _KnownProfile] = {}
        self.diagnosing = asyncio.Lock()
        """Diagnoses take turns, since each keeps a core busy."""

    async def read_last(self, stream: Stream, count: int, before: int | None = None) -> Look:
        """Return the last rows of a stream, at most `count`, as `BackwardReader.read_last`."""
        async with self._turn:
            return await asyncio.to_thread(self._reader.read_last, stream.name, stream.created, count, before)

    async def read_after(self, stream: Stream, position: int) -> TailPage:
        """Return rows of a stream from a log position on, as `TailReader.read_after`. Raises: Gone."""
        async with self._tail_turn:
            return await asyncio.to_thread(self._tail.read_after, stream.name, max(position, stream.created))

    async def profile(self, stream: Stream, oldest_s: float = FRESH_S) -> StreamProfile:
        """Return what the last events of a stream carry, counted now or, at most, `oldest_s` ago."""
        async with self._turn:
            known = self._profiles.pop(stream.name, None)
            if known is None or not known.is_fresh(stream, oldest_s):
                known = await asyncio.to_thread(self._count, stream)
            self._profiles[stream.name] = known
            while len(self._profiles) > _KEPT_PROFILES:
                del self._profiles[next(iter(self._profiles))]
            return known.profile

    def close(self) -> None:
        self._reader.close()
        self._tail.close()

    def _count(self, stream: Stream) -> _KnownProfile:
        begun = time.monotonic()
        return _KnownProfile(stream, profile_of(self._reader, stream, PROFILED_ROWS, self._clock()), begun, time.monotonic() - begun)

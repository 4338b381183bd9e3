"""This module reads the full segments of both logs, which nobody may read for long, once after a start, beside the
work.

A start compares only the begins and sizes of segments (`segments.check_chain`), so that it takes no longer with a
larger log.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

from pipeline.errors import Corrupt
from pipeline.log.segments import SegmentFile, read_opening, read_sound_frames, segment_path, segments

_WORKS_S, _RESTS = 0.01, 19
"""It works so long at a time, and then rests so many times as long: it takes a twentieth of a core."""
_LOGS = "log", "solutions"
_log = logging.getLogger("epsparql.scrub")


class Scrubber:
    """Reads the logs in a thread of its own, which tells `found` of the first damage; `damage` describes it."""

    def __init__(
        self, data_dir: Path, found: Callable[[Corrupt], None], rests: float = _RESTS, repair: Callable[[Corrupt], bool] = lambda _: False
    ) -> None:
        """Create the scrubber. `repair` may repair a damaged segment, and returns whether it did."""
        self._data, self._found, self._rests, self._repair = Path(data_dir), found, rests, repair
        self._over = threading.Event()
        self._since_s = 0.0
        self._thread = threading.Thread(target=self._run, name="scrubber", daemon=True)
        self.damage = ""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def scrub(self) -> None:
        """Read all full segments. Raises: Corrupt, OSError."""
        self._since_s = time.monotonic()
        for kind in _LOGS:
            directory = self._data / kind
            for first, following in pairwise(segments(directory) if directory.exists() else []):
                with suppress(FileNotFoundError):  # the segment has been removed meanwhile
                    self._scrub_or_repair(directory, first, following)
                if self._over.is_set():
                    return

    def _scrub_or_repair(self, directory: Path, first: int, following: int) -> None:
        try:
            self._scrub_one(directory, first, following)
        except Corrupt as fault:
            if not self._repair(fault):
                raise
            self._scrub_one(directory, first, following)

    def _scrub_one(self, directory: Path, first: int, following: int) -> None:
        with closing(SegmentFile(directory, first)) as file:
            tail, size = read_sound_frames(file, self._rest), file.size()
        if self._over.is_set():
            return
        if tail.size != size:
            raise Corrupt(segment_path(directory, first), tail.size, "a frame that was written whole does not hold")
        link = read_opening(directory, following).link
        if link is not None and link != tail.link():
            raise Corrupt(segment_path(directory, first), 0, f"it is not the file which the segment {following} follows")
        if tail.position != following:
            raise Corrupt(segment_path(directory, first), size, f"it ends at position {tail.position}, and the next segment begins at {following}")

    def _rest(self) -> bool:
        """Rest after some work. Return True where the scrubber is to end."""
        worked = time.monotonic() - self._since_s
        if worked < _WORKS_S:
            return False
        over = self._over.wait(worked * self._rests)
        self._since_s = time.monotonic()
        return over

    def _run(self) -> None:
        try:
            self.scrub()
        except Corrupt as fault:
            self.damage = str(fault)
            _log.error("%s", fault)
            if fault.path.parent.name == "log":
                self._found(fault)
        except OSError as fault:
            _log.warning("the logs cannot be read through: %s", fault)

"""Reads a file of the operator's again when it has changed."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from server.settings import SettingsError

_Line = TypeVar("_Line")
_log = logging.getLogger("epsparql.tokens")


class ReloadedFile(Generic[_Line]):
    """Holds the lines of a file, such as tokens. While it cannot be read, the lines before it hold."""

    def __init__(self, path: Path, load: Callable[[Path], Sequence[_Line]], noun: str) -> None:
        """Read the file by `load`; the log calls its lines by the `noun`. Raises: SettingsError."""
        self._path, self._load, self._noun = path, load, noun
        self._signature = _signature_of(path)
        self._lines = load(path)

    def read_current(self) -> Sequence[_Line]:
        """Return the lines as the file has them now: the same object, as long as the file does not change."""
        signature = _signature_of(self._path)
        if signature != self._signature:
            self._signature = signature
            try:
                self._lines = self._load(self._path)
                _log.info("%s was read again: it holds %d %s", self._path, len(self._lines), self._noun)
            except SettingsError as fault:
                _log.error("the %s of before hold, because the new ones cannot be read: %s", self._noun, fault)
        return self._lines


def _signature_of(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino

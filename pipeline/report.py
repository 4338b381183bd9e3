"""What the engine of a bucket keeps, as its runner last told: a small file that any process may read, the server above all.

It is no part of what must not be lost: it says as of which log position it is true, and is written anew while the log is read.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.progress import Operator
from engine.run import Engine
from engine.usage import Own, Usage

_SHARE = 20
"""A report is written when so many times as long has passed as the last one took: 5 % of the time at most."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A running query's state: how much there is, and at which operators."""

    usage: Usage
    operators: tuple[Operator, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """As of a log position: the running queries by their registrations, and what serves all of them."""

    position: int
    own: Own
    queries: dict[int, Standing]


class Reporter:
    """Writes the reports of one bucket. `clock` gives seconds."""

    def __init__(self, data_dir: Path | str, bucket: str, clock: Callable[[], float]) -> None:
        self._path, self._clock = path_of(data_dir, bucket), clock
        self._after = -1.0
        self._position = -1

    def tell(self, engine: Engine) -> None:
        """Write what the engine keeps, if it has read on since the last report and that was not just now. A full disk is not its affair."""
        began = self._clock()
        if engine.position == self._position or began < self._after:
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
            temporary.write_bytes(msgspec.json.encode(report_of(engine)))
            temporary.replace(self._path)
        self._position, ended = engine.position, self._clock()
        self._after = ended + _SHARE * (ended - began)


def report_of(engine: Engine) -> Report:
    queries = {registered: Standing(engine.usage(registered), engine.progress(registered)) for registered in engine.registered}
    return Report(engine.position, engine.own, queries)


def read_report(data_dir: Path | str, bucket: str = "0") -> Report | None:
    """The last report of a bucket's runner; None before the first, and after one of another version."""
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(path_of(data_dir, bucket).read_bytes(), type=Report)
    return None


def path_of(data_dir: Path | str, bucket: str) -> Path:
    return Path(data_dir) / "reports" / f"{bucket}.json"

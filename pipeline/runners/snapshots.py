"""This module keeps the snapshots of a partition's engine in a directory."""

import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from engine.engine import Engine
from engine.errors import EngineError
from engine.partitioning import ONE, PartitionShare, Sets
from engine.query_lifecycle.moves import find_needed_position
from engine.snapshot.format import apart, is_digest
from pipeline.partition_count import NEEDED, SETS, name_of

SNAPSHOT_NAME = re.compile(r"([^-]+)-(\d{20})\.snapshot")


_MARK = b"EPSMARK\0"


_MARKED = struct.Struct("<8sI")


class Snapshots:
    """Keeps a partition's snapshots in a directory. Each is whole or ignored: it begins with its checksum.

    Large parts are pieces in files of their own, named by the digest of their content. A snapshot writes only the
    pieces that earlier ones have not.
    """

    def __init__(self, directory: Path, partition: str, share: PartitionShare = ONE) -> None:
        self.directory, self.partition, self._share = directory, partition, share
        self._lock = Lock()  # an engine that is ahead may write one while others are swept

    def positions(self) -> list[int]:
        names = os.listdir(self.directory) if self.directory.exists() else []
        return sorted(int(found[2]) for name in names if (found := SNAPSHOT_NAME.fullmatch(name)) is not None and found[1] == self.partition)

    def newest(self, at_most: int, is_ours: Callable[[int, int], bool] = lambda _position, _mark: True) -> Engine | None:
        """Return the engine of the newest snapshot that can be used.

        `is_ours` is told its position and its log's mark there.
        """
        for position in reversed([position for position in self.positions() if position <= at_most]):
            mark, data = self._read_snapshot(position)
            with suppress(EngineError):  # another version wrote it
                if data and is_ours(position, mark) and (engine := Engine.restore(data, self._piece, self._share)).position == position:
                    return engine
        return None

    def write(self, engine: Engine, mark: int = 0) -> None:
        """Write a snapshot after the pieces that it needs.

        `mark` is that of the log's frame with the entry before the position.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._lock:
            data = engine.snapshot(self._write_piece)
            marked = _MARKED.pack(_MARK, mark)
            if not self._share.whole:
                _replace(self._path(engine.position).with_suffix(NEEDED), [str(find_needed_position(engine)).encode()])
            _replace(self._path(engine.position), [zlib.crc32(data, zlib.crc32(marked)).to_bytes(4, "little"), marked, data])

    def write_sets(self, sets: Sets) -> None:
        """Write the sets of all queries, as another number of partitions began with them."""
        _replace(self._sets, [json.dumps(sets.to_json()).encode()])

    def read_sets(self) -> Sets | None:
        """Return the sets with which an engine begins that no snapshot is left of; None for those that the log itself
        gives.
        """
        with suppress(FileNotFoundError):
            return Sets.restored(self._share.partitions, json.loads(self._sets.read_bytes()))
        return None

    def sweep(self, committed: int) -> None:
        with self._lock:
            self._sweep(committed)

    def _sweep(self, committed: int) -> None:
        positions = self.positions()
        kept = max((position for position in positions if position <= committed), default=0)
        for position in positions:
            if position < kept:
                self._path(position).unlink(missing_ok=True)
                self._path(position).with_suffix(NEEDED).unlink(missing_ok=True)
        for left in (*self.directory.glob(f"{self.partition}-*.tmp"), *self._pieces.glob("*.tmp")):
            if not left.name.endswith(f".{os.getpid()}.tmp"):
                left.unlink(missing_ok=True)
        self._sweep_pieces()

    def _sweep_pieces(self) -> None:
        """Drop the pieces that no snapshot needs."""
        pieces = {path.name: path for path in self._pieces.iterdir() if path.suffix != ".tmp"} if self._pieces.exists() else {}
        if not pieces:
            return
        needed = set[str]()
        for position in self.positions():
            with suppress(EngineError):  # another version's snapshot is of no use
                _, data = self._read_snapshot(position)
                needed |= apart(data) if data else set()
        for name in pieces.keys() - needed:
            pieces[name].unlink(missing_ok=True)

    def _read_snapshot(self, position: int) -> tuple[int, bytes]:
        """Return a snapshot's mark and the engine's bytes, which are empty where the snapshot is not whole.

        Those of version 0.1.0 have no mark.
        """
        with suppress(OSError):
            data = self._path(position).read_bytes()
            if zlib.crc32(data[4:]).to_bytes(4, "little") == data[:4]:
                marked = data[4 : 4 + _MARKED.size]
                if marked.startswith(_MARK):
                    return _MARKED.unpack(marked)[1], data[4 + _MARKED.size :]
                return 0, data[4:]
        return 0, b""

    def _write_piece(self, digest: str, piece: memoryview) -> None:
        path = self._pieces / digest
        with suppress(FileNotFoundError):
            if path.stat().st_size == len(piece):
                return
        self._pieces.mkdir(exist_ok=True)
        _replace(path, [piece])

    def _piece(self, digest: str) -> bytes:
        """Return the piece stored under a digest; b"" where there is none. A piece with another digest is removed."""
        path = self._pieces / digest
        with suppress(FileNotFoundError):
            data = path.read_bytes()
            if is_digest(digest, data):
                return data
            path.unlink(missing_ok=True)
        return b""

    @property
    def _sets(self) -> Path:
        return self.directory / f"{name_of(0, self._share.partitions)}-{SETS}"

    @property
    def _pieces(self) -> Path:
        return self.directory / f"{self.partition}-pieces"

    def _path(self, position: int) -> Path:
        return self.directory / f"{self.partition}-{position:020d}.snapshot"


def _replace(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file that is there whole or not at all, as far as the process's own end goes."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.writelines(parts)
    temporary.replace(path)

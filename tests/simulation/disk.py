"""A disk whose machine may lose its power: what was not synced may be lost, torn or there, and a sync may fail.

Files are real ones; what is known to be on the disk is kept beside them. Calls of `os` by simulated tasks go through
`Disks`, all others as ever.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tests.simulation.scheduler import Process, Scheduler, TaskKilled, is_simulated

_close = os.close


@dataclass(frozen=True, slots=True)
class _Write:
    """A change of a file that is not on the disk yet: bytes at a place, or the size that it is cut to."""

    at: int
    data: bytes | None


@dataclass(slots=True)
class _File:
    """Holds what is on the disk of a file (None: no such file), and what would come next."""

    durable: bytes | None = None
    pending: list[_Write] = field(default_factory=list)
    lacks: bool = False
    """A sync failed, so the disk lacks bytes that are read here."""


@dataclass(slots=True)
class Faults:
    """Says what a disk refuses from now on: so many syncs, and all that needs room; each call takes up to `slow_s`
    seconds.
    """

    syncs: int = 0
    full: bool = False
    slow_s: float = 0.0


class Disk:
    """Knows what of the files below `root` outlives a loss of power. `process` is who works there now."""

    def __init__(self, root: Path, process: Process) -> None:
        self.root, self.process = root, process
        self.files: dict[Path, _File] = {}
        self.renames: dict[Path, bytes | None] = {}
        """What a path has once its folder is synced; None: nothing."""
        self.faults = Faults()
        self.open_files: dict[int, Path] = {}

    def release(self) -> None:
        """Close what a process that is gone had open, and so give back its locks."""
        for fd, path in self.open_files.items():
            with suppress(OSError):  # a file object has closed it, and its number may be another file's now
                if Path(os.readlink(f"/proc/self/fd/{fd}")) == path:
                    _close(fd)
        self.open_files.clear()

    def lose_power(self, scheduler: Scheduler) -> None:
        """Leave of each file what is on the disk, and of what is not as much as chance will have."""
        random = scheduler.random
        for path, content in self.renames.items():
            if random.random() < 0.5:
                self.files[path] = _File(content)
            else:
                self.files.setdefault(path, _File())  # a name that is new is lost with its rename
        there = {path for path in self.root.rglob("*") if path.is_file()}
        for path in sorted(there | self.files.keys()):
            file = self.files.get(path)
            if file is None:  # written without a sync: it may be there, or be torn
                whole = path.read_bytes()
                kept = random.choice([None, whole, whole[: random.randrange(len(whole) + 1)]])
            else:
                kept = file.durable
                for write in file.pending[: random.randrange(len(file.pending) + 1)]:
                    kept = _apply(kept or b"", write)
                rest = [write for write in file.pending if write.data is not None]
                if rest and random.random() < 0.5:  # the last one is torn
                    torn = random.choice(rest)
                    assert torn.data is not None
                    kept = _apply(kept or b"", _Write(torn.at, torn.data[: random.randrange(len(torn.data) + 1)]))
            if kept is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)  # that the folder was removed may be lost, too
                path.write_bytes(kept)
        self.take_as_it_is()
        scheduler.note(f"{self.root.name} lost its power")

    def take_as_it_is(self) -> None:
        """Take what is read now for what is on the disk."""
        self.renames.clear()
        self.files = {path: _File(path.read_bytes()) for path in self.root.rglob("*") if path.is_file()}

    def is_durable(self, path: Path, size: int) -> bool:
        """Return whether the first bytes of a file are on the disk as they are read."""
        file = self.files.get(path)
        return file is not None and file.durable is not None and file.durable[:size] == path.read_bytes()[:size]


def _apply(content: bytes, write: _Write) -> bytes:
    if write.data is None:
        return content[: write.at].ljust(write.at, b"\0")
    return content[: write.at].ljust(write.at, b"\0") + write.data + content[write.at + len(write.data) :]


class Disks:
    """Stands for the functions of `os` that change files, below the roots of its disks.

    `published` is called before a log's head is written.
    """

    def __init__(self, scheduler: Scheduler, published: Callable[[Disk, Path, bytes], None]) -> None:
        self._scheduler, self._published = scheduler, published
        self.disks: dict[Path, Disk] = {}
        self._real = {name: getattr(os, name) for name in _NAMES}

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Take the calls while the block runs."""
        with ExitStack() as stack:
            for name in _NAMES:
                stack.enter_context(mock.patch.object(os, name, self._routed(name)))
            yield

    def _routed(self, name: str) -> Callable[..., Any]:
        real, ours = self._real[name], getattr(self, f"_{name}")

        def call(*args: Any, **options: Any) -> Any:
            task = self._scheduler.task if is_simulated() else None
            disk = None if task is None or task.process.outside else self._find_disk(args[0])
            return real(*args, **options) if disk is None else ours(disk, *args, **options)

        return call

    def _find_disk(self, target: object) -> Disk | None:
        path = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else os.fspath(target)  # type: ignore[call-overload]
        return next((disk for root, disk in self.disks.items() if path.startswith(f"{root}/")), None)

    def _path(self, disk: Disk, target: Any) -> Path:
        return (
            disk.open_files[target]
            if target in disk.open_files
            else Path(os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else target)
        )

    def _touch(self, disk: Disk, *, writes: bool = False) -> None:
        """Hand over to others before a call. Raises: TaskKilled; OSError where the disk is full."""
        if not disk.process.alive:
            raise TaskKilled
        slow_s = disk.faults.slow_s
        self._scheduler.sleep(self._scheduler.random.random() * slow_s) if slow_s else self._scheduler.hand_over()
        if writes and disk.faults.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # ------------------------------------------------------------ the calls
    def _open(self, disk: Disk, path: Any, flags: int, mode: int = 0o777, **_: object) -> int:
        self._touch(disk, writes=bool(flags & os.O_CREAT) and not Path(path).exists())
        fd: int = self._real["open"](path, flags, mode)
        disk.open_files[fd] = Path(path)
        if flags & os.O_TRUNC:
            self._file(disk, Path(path)).pending.append(_Write(0, None))
        return fd

    def _close(self, disk: Disk, fd: int) -> None:
        if fd in disk.open_files:  # else it was given back when its process was killed
            del disk.open_files[fd]
            self._real["close"](fd)

    def _file(self, disk: Disk, path: Path) -> _File:
        return disk.files.setdefault(path, _File())

    def _pwrite(self, disk: Disk, fd: int, data: bytes, at: int) -> int:
        path = self._path(disk, fd)
        self._touch(disk, writes=at + len(data) > os.fstat(fd).st_size)
        if path.name == "head" and path.parent.name == "log":
            self._published(disk, path, data)
        written: int = self._real["pwrite"](fd, data, at)
        self._file(disk, path).pending.append(_Write(at, bytes(data)))
        return written

    def _pwritev(self, disk: Disk, fd: int, parts: Any, at: int) -> int:
        return self._pwrite(disk, fd, b"".join(parts), at)

    def _truncate(self, disk: Disk, target: Any, size: int) -> None:
        path = self._path(disk, target)
        self._touch(disk)
        self._real["truncate"](target, size)
        self._file(disk, path).pending.append(_Write(size, None))

    def _ftruncate(self, disk: Disk, fd: int, size: int) -> None:
        self._truncate(disk, fd, size)

    def _fdatasync(self, disk: Disk, fd: int) -> None:
        self._fsync(disk, fd)

    def _fsync(self, disk: Disk, fd: int) -> None:
        path = self._path(disk, fd)
        self._touch(disk)
        if path.is_dir():
            for each in [each for each in disk.renames if each.parent == path]:
                disk.files[each] = _File(disk.renames.pop(each))
            return
        file = self._file(disk, path)
        pending, file.pending = file.pending, []
        if disk.faults.syncs and pending:  # the system calls clean what it could not write: the next sync says nothing of it
            disk.faults.syncs -= 1
            file.lacks = True
            self._scheduler.note(f"the sync of {path.name} fails")
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if file.lacks:
            for write in pending:
                file.durable = _apply(file.durable or b"", write)
            file.lacks = file.durable != path.read_bytes()
        else:
            file.durable = path.read_bytes()
        self._scheduler.hand_over()

    def _replace(self, disk: Disk, source: Any, target: Any, **_: object) -> None:
        self._touch(disk)
        self._real["replace"](source, target)
        moved = disk.files.pop(Path(source), None)
        if moved is None:  # written without a sync: whole or empty
            disk.renames[Path(target)] = self._scheduler.random.choice([Path(target).read_bytes(), b""])
        else:
            disk.renames[Path(target)] = moved.durable

    def _rename(self, disk: Disk, source: Any, target: Any, **_: object) -> None:
        self._replace(disk, source, target)

    def _unlink(self, disk: Disk, path: Any, **_: object) -> None:
        self._touch(disk)
        self._real["unlink"](path)
        disk.files.pop(Path(path), None)
        disk.renames[Path(path)] = None


_NAMES = ("open", "close", "pwrite", "pwritev", "truncate", "ftruncate", "fdatasync", "fsync", "replace", "rename", "unlink")

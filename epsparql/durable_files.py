"""This module replaces files in one step, so that a reader finds the earlier content or the new one, whole."""

import os
from pathlib import Path

_FOR_ALL = 0o666


def replace_file(path: Path, data: bytes, *, mode: int = _FOR_ALL, durable: bool = True) -> None:
    """Write a file in one step, in a folder that may be new.

    The umask limits `mode`. If it is not `durable`, a crash of the machine may take it back. Raises: OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)
    if durable:
        sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Make a file, or the names in a directory, outlive a crash of the machine. Raises: OSError."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

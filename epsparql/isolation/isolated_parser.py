"""This module parses RDF in a process of its own, whose memory and time have bounds in proportion to the text.

A parser may make much of little: it resolves contexts, prefixes and entities against each other, and holds the
results of a whole document. No reading of the text in advance foretells that in all its spellings. So the process is
bounded, and not the text.

    caller                                  parser_process.py
      parameters, a line of JSON   ───▶
      the text, to its end         ───▶
                                   ◀───     N-Quads, statement by statement
                                   ◀───     a fault on stderr
"""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import BoundedSemaphore, Thread
from typing import TYPE_CHECKING

from epsparql.isolation.parser_process import FAULT
from epsparql.isolation.process_limits import limit_process

if TYPE_CHECKING:
    import pyoxigraph as ox
_GRANTED, _FACTOR, _MOST = 128 << 20, 64, 2 << 30
"""Bytes of memory of a process, and more for each byte of the text, up to a limit.

A usual document of JSON-LD takes 34 to 48 times its size.
"""
_GRANTED_S, _BYTES_A_SECOND = 5, 1 << 18
"""Seconds of a process, and one more for so many bytes.

A usual document of JSON-LD takes a quarter of a second for each megabyte.
"""
_BUFFERED = 1 << 16
_SCRIPT = Path(__file__).with_name("parser_process.py")
_turns = BoundedSemaphore(max(os.cpu_count() or 1, 2))


class BeyondLimits(Exception):
    """Signals that a text takes more memory or time than its size allows, or that it expands too far."""


def parse_isolated(text: bytes, media_type: str, base: str | None = None, *, most: int, rename_blank_nodes: bool = False) -> Iterator["ox.Quad"]:
    """Yield the statements of a text of RDF, which take at most `most` bytes as N-Quads.

    Raises: SyntaxError, like the parser; BeyondLimits.
    """
    import pyoxigraph as ox

    parameters = {"media_type": media_type, "base_iri": base, "rename_blank_nodes": rename_blank_nodes}
    with _turns, _start_process(len(text)) as process:
        assert process.stderr is not None
        writer = Thread(target=_send, args=(process, json.dumps(parameters).encode() + b"\n", text), name="isolated parser", daemon=True)
        writer.start()
        output = _Output(process, most)
        try:
            yield from ox.parse(io.BufferedReader(output, _BUFFERED), ox.RdfFormat.N_QUADS, lenient=True)
        except SyntaxError:
            pass  # the process ended within a line
        finally:
            if not output.is_at_end:
                process.kill()
            writer.join()
        told = process.stderr.read()
        code = process.wait()
    if output.is_beyond or code not in (0, FAULT):
        raise BeyondLimits
    if code == FAULT:
        message, line, column = json.loads(told)
        raise SyntaxError(message, (None, line, column, None))


def _start_process(size: int) -> "subprocess.Popen[bytes]":
    """Start a process that waits for its text, and bound it."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-P", str(_SCRIPT)], stdin=pipe, stdout=pipe, stderr=pipe)
    limit_process(process.pid, min(_GRANTED + _FACTOR * size, _MOST), _GRANTED_S + size // _BYTES_A_SECOND)
    return process


def _send(process: "subprocess.Popen[bytes]", *parts: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin:
        for part in parts:
            process.stdin.write(part)


class _Output(io.RawIOBase):
    """Reads what a process writes, up to a number of bytes."""

    def __init__(self, process: "subprocess.Popen[bytes]", most: int) -> None:
        assert process.stdout is not None
        self._file, self._left = process.stdout, most
        self.is_at_end = self.is_beyond = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # a buffered reader gives views of its memory
        size = 0 if self.is_beyond else self._file.readinto(buffer)  # type: ignore[attr-defined]  # it is a BufferedReader
        self._left -= size
        self.is_beyond = self._left < 0
        self.is_at_end = not size and not self.is_beyond
        return 0 if self.is_beyond else size

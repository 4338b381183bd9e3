"""Parses Server-Sent Events piece by piece.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
"""

from collections.abc import Iterator

from epsparql.deferred_methods import dataclass

MESSAGE = "message"
"""An event that names no type has this one."""
_BOM = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """Reports that an event has more bytes than it may have."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """Holds an event: its type, its data, and the last id that the stream gave.

    `has_own_id` says whether this event gave it.
    """

    kind: str
    data: bytes
    id: str
    has_own_id: bool


class EventStreamParser:
    """Holds what is read of an event that has not ended. `retry_s` is the pause before the next connection, in seconds."""

    def __init__(self, last_id: str, most: int) -> None:
        """Take the last id of the connection before, and the most bytes of an event."""
        self._id, self._most = last_id, most
        self._rest = b""
        self._is_first, self._skips_newline = True, False
        self.retry_s: float | None = None
        self._clear()

    def _clear(self) -> None:
        self._kind, self._data, self._size, self._has_own_id = "", list[bytes](), 0, False

    @property
    def last_id(self) -> str:
        """Return the id with which the next connection continues."""
        return self._id

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that end within a piece of the stream. Raises: EventTooLarge."""
        if self._skips_newline and piece:  # the piece before ended within a line break
            piece, self._skips_newline = piece.removeprefix(b"\n"), False
        text = self._rest + piece
        if self._is_first and len(text) >= len(_BOM):
            text, self._is_first = text.removeprefix(_BOM), False
        lines = text.splitlines(keepends=True)
        self._rest = lines.pop() if lines and not lines[-1].endswith((b"\n", b"\r")) else b""
        self._skips_newline = bool(lines) and not self._rest and lines[-1].endswith(b"\r")
        for line in lines:
            event = self._read_line(line.rstrip(b"\r\n"))
            if event is not None:
                yield event
        if self._size + len(self._rest) > self._most:
            raise EventTooLarge

    def _read_line(self, line: bytes) -> ServerSentEvent | None:
        """Take a line, and return the event that it ends."""
        if not line:
            event = ServerSentEvent(self._kind or MESSAGE, b"\n".join(self._data), self._id, self._has_own_id) if self._data else None
            self._clear()
            return event
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._size += len(line) + 1
                if self._size > self._most:
                    raise EventTooLarge
            case b"event":
                self._kind = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                self._id, self._has_own_id = value.decode(errors="replace"), True
            case b"retry" if value.isdigit():
                self.retry_s = int(value[:12]) / 1000
            case _:
                pass  # a comment, or a field that the standard does not know
        return None

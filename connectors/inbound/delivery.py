"""Moves messages from a source to a stream.

1. Ask the server for the position that the log holds, and open the source there.
2. Read messages, join them to bodies, and send each body with the position before it and the one after it.
3. Confirm to the source what the log holds.
After any fault this begins anew at 1, so it needs no memory: the log's position is the only one that counts.
"""

import time
from collections.abc import Callable, Sequence
from threading import Event
from typing import TypeVar

from connectors.configuration import Connector
from connectors.errors import RefusedMessage, SystemFault
from connectors.inbound.bodies import join_messages
from connectors.inbound.source import Message, Source
from connectors.retries import Backoff
from connectors.server_access import ServerAccess, ServerBusy, SourceAhead
from connectors.status import RETRYING, RUNNING, STOPPED, StatusBoard
from epsparql import client
from epsparql.events.on_error import DEAD_LETTER, REFUSE, SKIP

_WAIT_S = 0.5
_AHEAD_S = 5.0  # a part that is ahead of others is read again after this time
_PART = ":"
"""It stands between the source's id and the name of a part, whose position is stored under both."""
_Answer = TypeVar("_Answer")
_LONGEST = 1_000  # characters of the positions in the status


class InboundDelivery:
    """Runs one connector from a source to a stream, until `stopping` is set."""

    def __init__(self, connector: Connector, source: Source, server: ServerAccess, board: StatusBoard, stopping: Event) -> None:
        self._source, self._server, self._board, self._stopping = source, server, board, stopping
        options = connector.options
        self._stream, self._format, self._batch = options["stream"], options["format"], options["batch"]
        self._id = options["source"] or connector.name
        self._on_error = options["on_error"]
        self._backoff = Backoff(stopping, board)
        self._positions = dict[str, str]()

    def run(self) -> None:
        """Deliver until `stopping` is set. A refused message and a silent system are tried again after growing pauses."""
        while not self._stopping.is_set():
            try:
                self._deliver()
            except RefusedMessage as fault:
                self._source.close()
                self._backoff.wait_after(fault, RETRYING)
            except SystemFault as fault:
                self._source.close()
                self._backoff.wait_after(fault)
        self._source.close()
        self._board.update(state=STOPPED)

    def _deliver(self) -> None:
        """Deliver until a fault, or until parts that were ahead of others are to be read again."""
        self._positions = self._find_positions()
        self._source.seek_parts(self._positions)
        self._board.update(position=self._describe_positions(), lag=self._source.get_lag())
        missed, ahead, until = 0, set[str](), 0.0
        while not self._stopping.is_set():
            if ahead and time.monotonic() > until:
                self._source.close()
                return
            messages = self._source.read(self._batch, _WAIT_S)
            for group, body in join_messages(messages, self._format):
                part = group[0].part
                if part in ahead:
                    continue
                try:
                    self._deliver_group(group, body)
                except SourceAhead as fault:
                    self._board.record_fault(RUNNING, str(fault))
                    ahead.add(part)
                    until = time.monotonic() + _AHEAD_S
            if messages and not ahead:
                self._source.confirm(messages[-1].position)
                self._backoff.reset()
            gone = self._source.count_missed()
            self._board.count(missed=gone - missed)
            missed = gone
            self._board.update(state=RUNNING, lag=self._source.get_lag())

    def _find_positions(self) -> dict[str, str]:
        """Return the stored positions by part. Raises: SystemFault."""
        if not self._source.has_positions:
            return {}
        stored, prefix = self._server.read_positions(self._stream), f"{self._id}{_PART}"
        if self._source.has_parts:
            return {id_.removeprefix(prefix): position for id_, position in stored.items() if id_.startswith(prefix)}
        return {"": stored[self._id]} if self._id in stored else {}

    def _describe_positions(self) -> str | None:
        """Return the position for the status: of several parts, as many as fit."""
        parts = sorted(self._positions, key=lambda part: (len(part), part))
        return ", ".join(_name_position(part, self._positions[part]) for part in parts)[:_LONGEST] or None

    def _deliver_group(self, group: Sequence[Message], body: bytes) -> None:
        """Send a body. Where it is refused, find the message that is at fault. Raises: RefusedMessage, SystemFault."""
        try:
            self._send(body, group)
        except RefusedMessage as fault:
            if len(group) > 1:
                for part in (group[: len(group) // 2], group[len(group) // 2 :]):
                    for messages, half in join_messages(part, self._format):
                        self._deliver_group(messages, half)
            elif self._on_error == REFUSE:
                raise RefusedMessage(
                    f"the server refuses {_name_message(group[0])}: {fault}; mend the format or the stream's mapping, or go on without such "
                    f"messages with on_error = '{DEAD_LETTER}' or '{SKIP}'"
                ) from None
            else:
                self._leave_out(group[0], str(fault))

    def _send(self, body: bytes, group: Sequence[Message]) -> None:
        """Send a body, again while the server is busy.

        Rows that do not map are left out, unless `on_error` refuses them.
        """
        media_type, on_error = group[0].media_type or self._format, None if self._on_error == REFUSE else self._on_error
        accepted = self._repeat(lambda source: self._server.send_body(self._stream, body, media_type, source, on_error), group[-1])
        self._board.count(messages=len(group), late=accepted.late)
        if accepted.rejected and accepted.first_rejected is not None:
            first = accepted.first_rejected
            row, field = first["row"], f", field {first['field']}" if first.get("field") else ""
            message = group[min(row, len(group)) - 1]
            more = f" ({accepted.rejected - 1} more did not map)" if accepted.rejected > 1 else ""
            self._note_left_out(message, f"row {row}{field}: {first['reason']}{more}", accepted.rejected)

    def _leave_out(self, message: Message, reason: str) -> None:
        """Put a message that the server refuses into the stream's dead-letter feed, or only count it, as `on_error`
        says.
        """
        if self._on_error == DEAD_LETTER:
            text, why = message.payload.decode(errors="replace"), f"{_name_message(message)}: {reason}"
            self._repeat(lambda source: self._server.send_dead_letter(self._stream, text, why, source), message)
        self._note_left_out(message, reason, 1)

    def _note_left_out(self, message: Message, reason: str, count: int) -> None:
        feed = f"is in the dead-letter feed of the stream {self._stream!r}"
        outcome = {SKIP: "is left out", DEAD_LETTER: feed}.get(self._on_error, "is left out, as the stream's on_error says")
        self._board.record_fault(RUNNING, f"{_name_message(message)} {outcome}: {reason}")
        self._board.count(**{"skipped" if self._on_error == SKIP else "rejected": count})

    def _repeat(self, send: Callable[[client.Source | None], _Answer], last: Message) -> _Answer:
        """Send what ends with a message, and its position, again while the server is busy.

        Raises: SourceAhead where other parts of the source may be what it waits for.
        """
        part, position = last.part, last.position
        id_ = f"{self._id}{_PART}{part}" if part else self._id
        source = client.Source(id_, self._positions.get(part), position) if self._source.has_positions else None
        while True:
            try:
                answer = send(source)
                break
            except ServerBusy as fault:
                if self._stopping.is_set() or (self._source.has_parts and isinstance(fault, SourceAhead)):
                    raise
                self._backoff.wait_after(fault)
        if self._source.has_positions:
            self._positions[part] = position
            self._board.update(position=self._describe_positions())
        return answer


def _name_message(message: Message) -> str:
    """Return the words for a message: where it came from, and the position after it."""
    return f"{f'{message.origin}, ' if message.origin else ''}the message before position {_name_position(message.part, message.position)}"


def _name_position(part: str, position: str) -> str:
    """Return a position with its part, as messages name it."""
    return f"{part}@{position}" if part else position

"""Joins messages to bodies, as far as their format allows."""

from collections.abc import Iterator, Sequence

from connectors.inbound.source import Message

NDJSON, JSON = "application/x-ndjson", "application/json"
MOST_BYTES = 4 << 20
"""A body of several messages has at most this many bytes."""
_BY_LINE = (NDJSON, "application/n-triples", "application/n-quads")


def join_messages(messages: Sequence[Message], media_type: str) -> Iterator[tuple[Sequence[Message], bytes]]:
    """Yield bodies with their messages. Formats in which two messages need not make one document have a body for each message."""
    kind = media_type.partition(";")[0].strip().lower()
    gathered: list[Message] = []
    size = 0
    for message in messages:
        if gathered and not (size + len(message.payload) <= MOST_BYTES and _is_line(gathered[-1], kind) and _is_line(message, kind)):
            yield gathered, _body_of(gathered)
            gathered, size = [], 0
        gathered.append(message)
        size += len(message.payload) + 1
    if gathered:
        yield gathered, _body_of(gathered)


def _is_line(message: Message, kind: str) -> bool:
    """Return whether the message can stand among others, each in its line."""
    return kind in _BY_LINE or (kind == JSON and message.payload[:1] == b"{" and b"\n" not in message.payload)


def _body_of(messages: Sequence[Message]) -> bytes:
    return messages[0].payload if len(messages) == 1 else b"\n".join(message.payload for message in messages)

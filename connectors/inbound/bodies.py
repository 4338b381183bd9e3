"""Joins messages to bodies, as far as their format allows."""

import json
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence

from connectors.inbound.source import BY_LINE, Message, find_kind
from epsparql.events.media_types import CSV, JSON

MOST_BYTES = 4 << 20
"""A body of several messages has at most this many bytes."""


def join_messages(messages: Sequence[Message], media_type: str) -> Iterator[tuple[Sequence[Message], bytes]]:
    """Yield bodies with their messages. Formats in which two messages need not make one document have a body for each
    message.

    `media_type` is that of the messages which do not say another one.
    """
    gathered: list[Message] = []
    size = 0
    for message in messages:
        if gathered and not (size + len(message.payload) <= MOST_BYTES and _stand_together(gathered[-1], message, media_type)):
            yield gathered, _body_of(gathered)
            gathered, size = [], 0
        gathered.append(message)
        size += len(message.payload) + 1
    if gathered:
        yield gathered, _body_of(gathered)


def _stand_together(first: Message, second: Message, media_type: str) -> bool:
    if (first.media_type, first.head, first.part) != (second.media_type, second.head, second.part):
        return False
    kind = find_kind(first.media_type or media_type)
    return _is_line(first, kind) and _is_line(second, kind)


def _is_line(message: Message, kind: str) -> bool:
    """Return whether the message can stand among others, each in its line."""
    if kind == CSV:
        return bool(message.head)
    if b'"prefixes"' in message.payload:  # the first line of a body declares them for all lines
        return False
    return kind in BY_LINE or (kind == JSON and message.payload[:1] == b"{" and b"\n" not in message.payload)


def _body_of(messages: Sequence[Message]) -> bytes:
    head = [messages[0].head] if messages[0].head else []
    return b"\n".join([*head, *(message.payload.removeprefix(BOM_UTF8) for message in messages)])


def wrap_payload(members: Mapping[str, object], payload: bytes) -> bytes:
    """Return an object of JSON with these members and a payload.

    A payload that is JSON keeps its digits; any other one is a string.
    """
    try:
        json.loads(payload)
        text = b" ".join(payload.splitlines())
    except (ValueError, RecursionError):  # a payload that is nested too deep is passed on as text
        text = json.dumps(payload.decode(errors="replace")).encode()
    return b'%s,"payload":%s}' % (json.dumps(members, separators=(",", ":"))[:-1].encode(), text)

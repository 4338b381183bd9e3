"""This module reads RDF Messages: several messages in one body.

In Turtle, TriG, N-Triples and N-Quads, `MESSAGE` stands between them. In NDJSON-LD each line is one. Prefixes and
contexts go on from message to message, blank nodes do not. Source: W3C RDF Stream Processing community group, "RDF
Messages", living draft of 2026.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec
import pyoxigraph as ox

from epsparql.deferred_methods import dataclass
from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.batches.row_builder import RowBuilder
from pipeline.formats.rdf.rdf import ENDS_AT, STARTS_AT, TIMING, MessageTime, Said, place_of, read_message, time_of, written_part
from pipeline.formats.rdf.rdf_version import VERSIONS
from pipeline.formats.rdf.turtle_lexer import Token, place, tokens

MESSAGE_VERSIONS = tuple(f"{version}-messages" for version in VERSIONS)
_ANNOUNCED = re.compile(rb"(?:\s++|#[^\n]*+\n)*+@?version\s+[\"']1\.[12](?:-basic)?-messages[\"']", re.IGNORECASE)
_CONTEXT = "@context"
_CARRIED = 1 << 24  # bytes of prefixes that go on, counted for each message anew
_REPEATED = 64  # prefixes that some writers declare in each message anew


@dataclass(frozen=True, slots=True)
class RdfMessage:
    """Represents one message: `text` stands at `start` of the body, after the directives of earlier messages."""

    text: bytes
    start: int
    directives: tuple[bytes, ...]


def announces_messages(body: bytes) -> bool:
    """Tell whether a body of the Turtle family begins with a version of RDF Messages."""
    return _ANNOUNCED.match(body) is not None


def parse_messages(body: bytes, fmt: ox.RdfFormat, otherwise: Interval, rows: RowBuilder, timing: str | None = None) -> None:
    """Add the statements of all messages, each with a time: its graph's, its message's, or `otherwise`.

    A message's time is what its default graph says with `timing`, or without it with prov:generatedAtTime, or
    startsAtTime and endsAtTime. Raises: FormatError.
    """
    carried = 0
    for number, message in enumerate(split(body)):
        carried += sum(map(len, message.directives))
        if not message.text:
            continue
        if carried > _CARRIED:
            raise _too_much_goes_on(*place(body, message.start))
        text = b" ".join(message.directives) + b"\n" + message.text
        try:
            read_timed_message(text, fmt, otherwise, rows, timing, scope=b"%d %s" % (number, message.text))
        except FormatError as fault:
            raise _moved(fault, *place(body, message.start)) from None


def parse_ld_lines(body: bytes, otherwise: Interval, rows: RowBuilder, timing: str | None = None) -> None:
    """Add the statements of NDJSON-LD: each line is a message, an empty one (`{}`), or a context for the messages
    after it.

    Messages are timed as `parse_messages` has it. Raises: FormatError, also for a blank line but the last one.
    """
    context, carried = b"", 0
    lines = body.split(b"\n")
    for number, line in enumerate(lines[:-1] if not lines[-1].strip() else lines, 1):
        members = _members(line, number)
        if list(members) == [_CONTEXT]:
            context = bytes(members[_CONTEXT])
        elif members:
            carried += len(context)
            if carried > _CARRIED:
                raise _too_much_goes_on(number, 1)
            before = b'{"@context":%s,"@graph":' % context if context else b""
            text = before + line + b"}" if context else line
            try:
                read_timed_message(text, ox.RdfFormat.JSON_LD, otherwise, rows, timing, scope=b"%d %s" % (number, line))
            except FormatError as fault:
                column = None if fault.column is None else max(fault.column - len(before.decode("utf-8", "replace")), 1)
                raise FormatError(fault.code, fault.message, number, column, fault.expected) from None


def _members(line: bytes, number: int) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise FormatError("json", f"the line is no JSON object: {fault}", number, 1, "one JSON object per line; {} is an empty message") from None


def _too_much_goes_on(line: int, column: int) -> FormatError:
    what = "prefixes or contexts of too many bytes go on into too many messages; send the messages in several bodies"
    return FormatError("messages", what, line, column)


def read_timed_message(text: bytes, fmt: ox.RdfFormat, otherwise: Interval, rows: RowBuilder, timing: str | None, scope: bytes | None = None) -> None:
    """Add the statements of one message, whose default graph may say when it is. Raises: FormatError."""
    wanted = TIMING if timing is None else TIMING | {timing}
    read_message(text, fmt, MessageTime(otherwise, timing=wanted, find=lambda said: _time(said, text, timing, rounds=rows.rounds)), rows, scope=scope)


def _moved(fault: FormatError, line: int, column: int) -> FormatError:
    """Return a fault of a message as a fault of the body, where the message begins at this line and column.

    The message was parsed behind its directives, which are one line.
    """
    if fault.line is None or fault.column is None:
        return fault
    within = max(fault.line - 2, 0)
    return FormatError(fault.code, fault.message, line + within, fault.column + (column - 1 if within == 0 else 0), fault.expected)


def _time(found: Sequence[Said], text: bytes, timing: str | None, *, rounds: bool) -> tuple[Interval | None, frozenset[int]]:
    """Return a message's time, and which of its statements say nothing else. Raises: FormatError."""
    said = [each for each in found if timing is None or each.predicate == timing]
    values = {each.predicate: each.value for each in said}
    if not said:
        return None, frozenset()
    for each in said:
        if values[each.predicate] != each.value:
            raise FormatError("time", f"the message has two times by <{each.predicate}>", *place_of(text, written_part(each.value)))
    instants = {name: time_of(value, text, rounds=rounds) for name, value in values.items()}
    alone = frozenset(each.row for each in said) if timing is None else frozenset()
    if len(instants) == 1 and STARTS_AT not in instants and ENDS_AT not in instants:
        at = next(iter(instants.values()))
        return Interval(at, at), alone
    if instants.keys() != {STARTS_AT, ENDS_AT} or instants[STARTS_AT] > instants[ENDS_AT]:
        value = next(iter(values.values()))
        expected = "prov:generatedAtTime alone, or startsAtTime and endsAtTime in this order"
        raise FormatError("time", "the message's time is no instant and no interval", *place_of(text, written_part(value)), expected)
    return Interval(instants[STARTS_AT], instants[ENDS_AT]), alone


def split(body: bytes) -> Iterator[RdfMessage]:
    """Yield the messages in order, empty ones too; nothing follows the last delimiter if all after it is blank.

    Raises: FormatError.
    """
    cut, start, directives = _Cut(body), 0, tuple[bytes, ...]()
    for begin, end in cut.delimiters():
        yield RdfMessage(cut.taken(start, begin), start, directives)
        start, directives = end, tuple(cut.directives)
    if text := cut.taken(start, len(body)):
        yield RdfMessage(text, start, directives)


class _Cut:
    """Makes one pass over a body. `directives` are the prefixes and bases met so far, as they were written."""

    def __init__(self, body: bytes) -> None:
        self._body, self._tokens = body, tokens(body)
        self._versions: list[tuple[int, int]] = []
        self._based = False
        self.directives: list[bytes] = []

    def taken(self, start: int, end: int) -> bytes:
        """Return a stretch without its version directives, which the parser does not know; nothing else in it is moved.

        A blank stretch gives an empty text.
        """
        text = self._body[start:end]
        for first, last in self._versions:
            text = text[: first - start] + b" " * (last - first) + text[last - start :]
        self._versions.clear()
        return text if text.strip() else b""

    def delimiters(self) -> Iterator[tuple[int, int]]:
        """Yield where each delimiter begins and ends.

        Inside a graph there is none, and a parser refuses the word there.
        """
        depth = 0
        for token in self._tokens:
            depth += {b"{": 1, b"[": 1, b"(": 1, b"}": -1, b"]": -1, b")": -1}.get(token[0], 0)
            if token.lastgroup != "name" or depth:
                continue
            match token[0].lower():
                case b"message":
                    yield token.span()
                case b"@message":
                    yield token.start(), self._stop(token.end())
                case b"version":
                    self._version(token.start(), stop=False)
                case b"@version":
                    self._version(token.start(), stop=True)
                case b"prefix" | b"@prefix":
                    self._declare(b"PREFIX", next(self._tokens, None), next(self._tokens, None))
                case b"base" | b"@base":
                    self._based = True
                    self._declare(b"BASE", None, next(self._tokens, None))

    def _stop(self, end: int) -> int:
        """Return the end of the full stop that closes such a directive. Raises: FormatError."""
        token = next(self._tokens, None)
        if token is None or token[0] != b".":
            raise FormatError("rdf", "the directive does not end", *place(self._body, end), expected="a full stop")
        return token.end()

    def _version(self, start: int, *, stop: bool) -> None:
        said = next(self._tokens, None)
        if said is None or said[0].strip(b"\"'").decode("utf-8", "replace") not in (*MESSAGE_VERSIONS, *VERSIONS):
            raise FormatError("messages", "this is another version", *place(self._body, start), expected=f'VERSION "{MESSAGE_VERSIONS[-1]}"')
        self._versions.append((start, self._stop(said.end()) if stop else said.end()))

    def _declare(self, kind: bytes, name: Token | None, iri: Token | None) -> None:
        """Note a directive that goes on into the next messages. A fault in it is found in the message where it stands."""
        if iri is not None and iri.lastgroup == "iri":
            directive = b" ".join((kind, *([name[0]] if name else []), iri[0]))
            if self._based or directive not in self.directives[-_REPEATED:]:
                self.directives.append(directive)

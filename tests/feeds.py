"""Streams and queries of table tests, in shorthand.

`A@1-2` is `:s :A :o` on [1 s, 2 s], `B(7)@3` is `:s :B 7` at 3 s, and `C(x,"y")@4-5` is `:x :C "y"`; seconds count from 1970.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from epsparql.terms import XSD, Iri, Literal, Term
from tests.oracle import Occurrence, Triple

EXAMPLE = "http://example.org/"
SECOND = 1_000_000
PREFIXES = f"PREFIX : <{EXAMPLE}>\nPREFIX xsd: <{XSD}>\n"


@dataclass(frozen=True, slots=True)
class Body:
    """Occurrences of one stream that arrive as one log entry."""

    stream: str
    occurrences: tuple[Occurrence, ...]


_EVENT = re.compile(r"(?P<name>\w+)(?:\((?P<terms>[^)]*)\))?(?:@(?P<start>[\d.]+)(?:-(?P<end>[\d.]+))?)?")


def parse_feed(text: str) -> list[Occurrence]:
    """`A@1-2 B@3` as occurrences."""
    return [occurrence(event) for event in text.split()]


def parse_facts(text: str) -> list[Triple]:
    """`A B(7)`, without times, as background triples."""
    return [_triple(_match(event)) for event in text.split()]


def occurrence(event: str) -> Occurrence:
    match = _match(event)
    start = round(float(match["start"]) * SECOND)
    return Occurrence(_triple(match), start, round(float(match["end"]) * SECOND) if match["end"] else start)


def _match(event: str) -> re.Match[str]:
    match = _EVENT.fullmatch(event)
    assert match, f"no event: {event}"
    return match


def _triple(match: re.Match[str]) -> Triple:
    subject, object_ = "s", "o"
    if match["terms"]:
        *subjects, object_ = match["terms"].split(",")
        subject = subjects[0] if subjects else subject
    return term(subject), Iri(EXAMPLE + match["name"]), term(object_)


def term(text: str) -> Term:
    """`x` is `:x`, `7` and `2.5` are numbers, `"y"` is a string."""
    if text.startswith('"'):
        return Literal(text.strip('"'))
    if re.fullmatch(r"-?\d+", text):
        return Literal(text, XSD + "integer")
    if re.fullmatch(r"-?\d+\.\d+", text):
        return Literal(text, XSD + "decimal")
    return Iri(EXAMPLE + text)


def select(pattern: str, head: str = "SELECT *") -> str:
    """`A SEQ B` as a query: a single capital letter stands for the group `{ ?s :A ?a }`."""
    body = re.sub(r"(?<![:?\w])([A-Z])\b", lambda found: f"{{ ?s :{found[1]} ?{found[1].lower()} }}", pattern)
    return f"{PREFIXES}{head} WHERE {{ {body} }}"


def show(occurrences: Iterable[Occurrence]) -> str:
    """The shorthand of occurrences, for messages."""
    return " ".join(_show(occurrence) for occurrence in occurrences)


def _show(shown: Occurrence) -> str:
    subject, predicate, object_ = (_show_term(part) for part in shown.triple)
    times = f"{shown.start / SECOND:g}" + (f"-{shown.end / SECOND:g}" if shown.end != shown.start else "")
    return f"{predicate}({subject},{object_})@{times}"


def _show_term(shown: Term) -> str:
    match shown:
        case Iri(value):
            return value.removeprefix(EXAMPLE)
        case Literal(lexical, datatype) if datatype in (XSD + "integer", XSD + "decimal"):
            return lexical
        case _:
            return str(shown)


def intervals(found: Iterable[tuple[object, tuple[int, int]]]) -> list[tuple[float, float]]:
    """The intervals of solutions, sorted, in seconds."""
    return sorted((start / SECOND, end / SECOND) for _, (start, end) in found)


def by_end(occurrences: Sequence[Occurrence]) -> list[Occurrence]:
    return sorted(occurrences, key=lambda occurrence: (occurrence.end, occurrence.start))

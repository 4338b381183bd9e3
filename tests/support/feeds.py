"""Streams and queries of table tests, in shorthand.

`A@1-2` is `:s :A :o` on [1 s, 2 s], `B(7)@3` is `:s :B 7` at 3 s, `C(x,"y")@4-5` is `:x :C "y"`, and `g/A@1` is the
first in the graph `:g`; seconds count from 1970.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from epsparql.terms import XSD, Iri, Literal, Term
from tests.reference.evaluator import Bindings, Fact, Occurrence, Rows, Triple

EXAMPLE = "http://example.org/"
SECOND = 1_000_000
PREFIXES = f"PREFIX : <{EXAMPLE}>\nPREFIX xsd: <{XSD}>\n"


@dataclass(frozen=True, slots=True)
class Body:
    """Occurrences of one stream that arrive as one log entry."""

    stream: str
    occurrences: tuple[Occurrence, ...]


_EVENT = re.compile(r"(?:(?P<graph>\w+)/)?(?P<name>\w+)(?:\((?P<terms>[^)]*)\))?(?:@(?P<start>[\d.]+)(?:-(?P<end>[\d.]+))?)?")


def parse_feed(text: str) -> list[Occurrence]:
    """`A@1-2 B@3` as occurrences."""
    return [occurrence(event) for event in text.split()]


def parse_facts(text: str) -> list[Fact]:
    """`A g/B(7)`, without times, as background triples."""
    return [Fact(_triple(match), _graph(match)) for match in map(_match, text.split())]


def occurrence(event: str) -> Occurrence:
    match = _match(event)
    start = round(float(match["start"]) * SECOND)
    return Occurrence(_triple(match), start, round(float(match["end"]) * SECOND) if match["end"] else start, _graph(match))


def _match(event: str) -> re.Match[str]:
    match = _EVENT.fullmatch(event)
    assert match, f"no event: {event}"
    return match


def _graph(match: re.Match[str]) -> Iri | None:
    return Iri(EXAMPLE + match["graph"]) if match["graph"] else None


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


def show(stated: Iterable[Occurrence | Fact]) -> str:
    """The shorthand of occurrences or facts, for messages."""
    return " ".join(map(_show, stated))


def _show(shown: Occurrence | Fact) -> str:
    subject, predicate, object_ = (_show_term(part) for part in shown.triple)
    graph = "" if shown.graph is None else f"{_show_term(shown.graph)}/"
    return f"{graph}{predicate}({subject},{object_})" + (show_times(shown.start, shown.end) if isinstance(shown, Occurrence) else "")


def show_times(start: int, end: int) -> str:
    return f"@{start / SECOND:g}" + (f"-{end / SECOND:g}" if end != start else "")


def _show_term(shown: Term) -> str:
    match shown:
        case Iri(value):
            return value.removeprefix(EXAMPLE)
        case Literal(lexical, datatype) if datatype in (XSD + "integer", XSD + "decimal", XSD + "boolean"):
            return lexical
        case _:
            return str(shown)


def shown(rows: Rows) -> list[str]:
    """Solutions as `a=1,s=x@1-2` and constructed triples as `p(s,o)+q(s,o)@1`: in order if they have one, else sorted."""
    if isinstance(rows, set):
        texts = ["+".join(sorted(_show(Fact(triple)) for triple in triples)) + show_times(*interval) for triples, interval in rows]
    else:
        texts = [_show_bindings(bindings) + show_times(*interval) for bindings, interval in (rows.elements() if isinstance(rows, Counter) else rows)]
    return texts if isinstance(rows, list) else sorted(texts)


def _show_bindings(bindings: Bindings) -> str:
    return ",".join(sorted(f"{variable.name}={_show_term(value)}" for variable, value in bindings))


def intervals(found: Iterable[tuple[object, tuple[int, int]]]) -> list[tuple[float, float]]:
    """The intervals of solutions, sorted, in seconds."""
    return sorted((start / SECOND, end / SECOND) for _, (start, end) in found)


def by_end(occurrences: Sequence[Occurrence]) -> list[Occurrence]:
    return sorted(occurrences, key=lambda occurrence: (occurrence.end, occurrence.start))

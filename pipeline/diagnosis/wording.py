"""This module writes durations, counts, terms and the difference of two terms in words."""

from collections.abc import Iterable

from engine.expressions.evaluator import parse_term
from engine.messages import Micros
from epsparql.terms import XSD, XSD_STRING, Iri, Literal, Term
from pipeline.inspection.nearest_terms import fold_core

_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("µs", 1))
_SHOWN = 120
"""A term is shown up to this length."""


def write_duration(micros: Micros) -> str:
    """Return a duration in its two greatest units, such as `1 h 20 min`."""
    rest, parts = abs(micros), list[str]()
    for unit, size in _UNITS:
        if rest >= size:
            parts.append(f"{rest // size:,} {unit}")
            rest %= size
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts) or "0 s"


def write_times(count: int, more: bool = False) -> str:
    """Return how often something was so; `more` if counting ended early."""
    return "once" if count == 1 and not more else f"{'more than ' if more else ''}{count:,} times"


def shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def write_kind(term: Term) -> str:
    """Return what kind of term it is, as people call it."""
    match term:
        case Literal(_, _, str() as language):
            return f"a text in the language {language!r}"
        case Literal(_, datatype, None) if datatype == XSD_STRING:
            return "a text"
        case Literal(_, datatype, None):
            name = datatype.removeprefix(XSD)
            return "a number" if name in _NUMBERS else f"an xsd:{name}" if name != datatype else f"a literal of the datatype <{datatype}>"
        case Iri():
            return "an IRI"
    return "a blank node" if str(term).startswith("_:") else "a triple term"


_NUMBERS = (
    "integer",
    "decimal",
    "double",
    "float",
    "int",
    "long",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "unsignedInt",
    "unsignedLong",
)


def tell_difference(wanted: str, other: str) -> str:
    """Return in words how two similar terms (N-Triples) differ, "" where that is plain to see."""
    one, two = parse_term(wanted), parse_term(other)
    match one, two:
        case Iri(a), Iri(b):
            if a.casefold() == b.casefold():
                return "they differ in upper and lower case"
            if a.partition(":")[2] == b.partition(":")[2]:
                return f"they differ in their scheme, {a.partition(':')[0]} and {b.partition(':')[0]}"
            if a.rstrip("/#") == b.rstrip("/#"):
                return "they differ in the sign at their end"
            return "they differ in their namespace" if fold_core(wanted) == fold_core(other) else ""
        case Literal(a, _, tag), Literal(b, _, other_tag) if a == b and tag != other_tag:
            return "they differ in their language tag"
        case Literal(a), Literal(b) if a == b:
            return f"one is {write_kind(one)}, the other {write_kind(two)}"
        case Literal(a), Literal(b) if a.strip() == b.strip():
            return "they differ in spaces at an end"
        case Literal(a), Literal(b) if a.casefold() == b.casefold():
            return "they differ in upper and lower case"
        case (Literal(), Iri()) | (Iri(), Literal()):
            return f"one is {write_kind(one)}, the other {write_kind(two)}"
    return ""


def write_examples(texts: Iterable[str]) -> str:
    """Return two examples."""
    return " and ".join(shorten(text) for text in list(dict.fromkeys(texts))[:2])

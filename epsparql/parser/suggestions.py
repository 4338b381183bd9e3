"""This module recognises slips of the pen that other languages teach: what was written, and what EP-SPARQL has for it."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from epsparql.literals import DURATION_FORM, likely_duration, show_lexical

_OPERATORS = {"<>": "!=", "==": "=", "===": "=", "!==": "!=", "=>": ">=", "=<": "<=", "AND": "&&", "OR": "||"}
_SIGNS = re.compile("[=<>!]+")
_SEEN_BEFORE = 60
"""At most this many characters before a fault are looked at."""
_SCHEME = re.compile(r"(?<![\w.:?$-])[A-Za-z][A-Za-z0-9+.\-]*://\Z")
_BARE_IRI = re.compile(r"""[^\s<>"{}|^`\\]*[^\s<>"{}|^`\\.,;()\[\]]""")
_SECONDS = re.compile(r"(?<![\w:?$])(?:WITHIN|FOR)\s*([0-9]+(?:\.[0-9]+)?)\s*\Z", re.I)
_SEQUENCE, _WINDOW = "{ ... } SEQ { ... }", "FROM NAMED WINDOW <w> ON <stream> [RANGE ... STEP ...], or WINDOW [RANGE ...] after GROUP BY"
_FOREIGN: dict[str, dict[str, str]] = {
    "an operator such as SEQ": {
        **dict.fromkeys(("THEN", "FOLLOWED", "NEXT", "BEFORE", "AFTER", "-"), _SEQUENCE),
        **dict.fromkeys(("OR", "||", "|"), "{ ... } UNION { ... }"),
        **dict.fromkeys(("&&", "&"), "{ ... } AND { ... }"),
    },
    "an operator": {"LIKE": "REGEX(?x, ...), CONTAINS(?x, ...) or STRSTARTS(?x, ...)", "BETWEEN": "?x >= ... && ?x <= ...", "IS": "= or BOUND(?x)"},
    "a pattern in braces": {"[": _WINDOW, "WINDOW": _WINDOW},
    "the IRI of a graph": {"STREAM": "FROM STREAM <stream>, or " + _WINDOW},
    "RSTREAM, ISTREAM or DSTREAM": {"QUERY": "the query alone; PUT /queries/{name} gives it a name"},
    "variables, '*' or (expression AS ?variable)": dict.fromkeys(("ISTREAM", "RSTREAM", "DSTREAM"), "REGISTER ISTREAM <stream> AS SELECT ..."),
    "a group, FILTER, BIND, OPTIONAL, MINUS, GRAPH, VALUES": {"EVERY": "the pattern alone: without a policy every match is found"},
}
"""These words of other languages are written where the key is expected. Each has what EP-SPARQL says instead."""
_WITH_UNITS = re.compile(r"[0-9]+(?:\.[0-9]+)?\s*[A-Za-z]+(?:\s*[0-9]+(?:\.[0-9]+)?\s*[A-Za-z]+)*")


@dataclass(frozen=True, slots=True)
class Slip:
    """Says what is wrong with the stretch `start` to `end` of the text, and what to write instead."""

    message: str
    expected: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Says that a text stopped making sense at `at` with `lexeme`, where `expected` was."""

    text: str
    at: int
    lexeme: str
    expected: Collection[str]
    functions: Collection[str]
    """These are names of functions and aggregates, in capitals."""
    elements: Collection[str]
    """These keywords go on with a pattern; they are in capitals."""

    @property
    def end(self) -> int:
        return self.at + len(self.lexeme)

    @property
    def word(self) -> str:
        return self.lexeme.upper()


def likely_slip(stop: Stop) -> Slip | None:
    """Return the slip that explains the fault, if one does."""
    return next((slip for find in _SLIPS if (slip := find(stop)) is not None), None)


def _suggest_operator(stop: Stop) -> Slip | None:
    """Recognise an operator of another language; of two signs, the first may be an operator alone."""
    if "an operator" in stop.expected and stop.word in _OPERATORS:
        return Slip(f"{stop.lexeme} is no operator of an expression", _OPERATORS[stop.word], stop.at, stop.end)
    if "an expression" not in stop.expected or not stop.lexeme:
        return None
    start = stop.at
    while stop.at - start < 3 and stop.text[start - 1] in "=<>!":
        start -= 1
    signs = _SIGNS.match(stop.text, start)
    if start == stop.at or signs is None or signs[0] not in _OPERATORS:
        return None
    return Slip(f"{signs[0]} is no operator of an expression", _OPERATORS[signs[0]], *signs.span())


def _foreign_word(stop: Stop) -> Slip | None:
    """Recognise a word of SQL, C-SPARQL, Esper or Cypher where EP-SPARQL has another."""
    meant = next((words[stop.word] for place, words in _FOREIGN.items() if place in stop.expected and stop.word in words), None)
    return None if meant is None else Slip(f"unexpected {show_lexical(stop.lexeme)}", meant, stop.at, stop.end)


def _negation(stop: Stop) -> Slip | None:
    if list(stop.expected) != ["EXISTS"] or stop.lexeme == "":
        return None
    return Slip(f"unexpected {show_lexical(stop.lexeme)}", "EXISTS after NOT; '!' negates a condition, as in FILTER(!(...))", stop.at, stop.end)


def _lone_exists(stop: Stop) -> Slip | None:
    if stop.word not in ("NOT", "EXISTS") or "a group, FILTER, BIND, OPTIONAL, MINUS, GRAPH, VALUES" not in stop.expected:
        return None
    name = "NOT EXISTS" if stop.word == "NOT" else "EXISTS"
    return Slip(f"{name} is a condition, which stands in a FILTER", f"FILTER {name} {{ ... }}", stop.at, stop.end)


def _unit(stop: Stop) -> Slip | None:
    """Recognise a duration in words, such as 10 MINUTES."""
    number = _SECONDS.search(stop.text, max(0, stop.at - _SEEN_BEFORE), stop.at)
    written = None if number is None else _WITH_UNITS.match(stop.text, number.start(1), stop.at + _SEEN_BEFORE)
    if written is None or "an operator such as SEQ" not in stop.expected:
        return None
    meant = likely_duration(written[0])
    return None if meant == DURATION_FORM else Slip(f"{written[0]} is no duration", meant, *written.span())


def _unnamed(stop: Stop) -> Slip | None:
    """Recognise an expression in SELECT without brackets and AS."""
    if not {"another variable", "variables, '*' or (expression AS ?variable)"} & set(stop.expected):
        return None
    if stop.word == "AS":
        return Slip("an expression of SELECT stands in brackets, with its name", "(expression AS ?variable)", stop.at, stop.end)
    if stop.word not in stop.functions:
        return None
    return Slip("an expression of SELECT stands in brackets, with a name", f"({stop.lexeme}(...) AS ?variable)", stop.at, stop.end)


def _bare_iri(stop: Stop) -> Slip | None:
    """Recognise an IRI without brackets. `http:` is a prefixed name and `/` goes on with a path, so the fault is at one of the two slashes."""
    ends = (at for at in (stop.at + 1, stop.at + 2) if stop.lexeme == "/")
    scheme = next((found for end in ends if (found := _SCHEME.search(stop.text, max(0, stop.at - _SEEN_BEFORE), end))), None)
    iri = None if scheme is None else _BARE_IRI.match(stop.text, scheme.start())
    return None if iri is None else Slip(f"{show_lexical(iri[0])} is an IRI without '<' and '>'", f"<{show_lexical(iri[0])}>", *iri.span())


def _after_pattern(stop: Stop) -> Slip | None:
    """Recognise what the paper allows after WHERE alone."""
    ended = "a solution modifier such as GROUP BY or LIMIT" in stop.expected and not {"an operator such as SEQ", "FILTER"} & set(stop.expected)
    if not ended or stop.word not in stop.elements:
        return None
    return Slip(f"{stop.lexeme} stands after the pattern's last brace", "the whole pattern in braces, or WHERE before it", stop.at, stop.end)


_SLIPS: tuple[Callable[[Stop], Slip | None], ...] = (
    _suggest_operator,
    _foreign_word,
    _negation,
    _lone_exists,
    _unit,
    _unnamed,
    _bare_iri,
    _after_pattern,
)

"""This module recognises slips of the pen that other languages teach: what was written, and what EP-SPARQL has for it."""

import difflib
import re
from collections.abc import Collection

from epsparql.errors import Edit
from epsparql.literals import DURATION_FORM, likely_duration, show_lexical
from epsparql.parser.slips.stops import Slip, Stop, last_lexeme, list_lexemes, next_lexeme, quote_sign

_OPERATORS = {
    "<>": "!=",
    "==": "=",
    "===": "=",
    "!==": "!=",
    "=>": ">=",
    "=<": "<=",
    "AND": "&&",
    "OR": "||",
    **dict.fromkeys("\u2264\u2a7d\u2266", "<=") | dict.fromkeys("\u2265\u2a7e\u2267", ">=") | {"\u2260": "!=", "\u2039": "<", "\u203a": ">"},
    **dict.fromkeys("\u00d7\u00b7\u2217\u22c5", "*") | dict.fromkeys("\u00f7\u2215\u2044", "/") | {"\u2227": "&&", "\u2228": "||"},
    **dict.fromkeys("\u2212\u2013\u2014\u2010\u2011", "-"),
}
_SIGNS = re.compile("[=<>!]+")
_SEEN_BEFORE = 60
"""At most this many characters before a fault are looked at."""
_SCHEME = re.compile(r"(?<![\w.:?$-])[A-Za-z][A-Za-z0-9+.\-]*://\Z")
_BARE_IRI = re.compile(r"""[^\s<>"{}|^`\\]*[^\s<>"{}|^`\\.,;()\[\]]""")
_SECONDS = re.compile(r"(?<![\w:?$])(?:WITHIN|FOR)\s*([0-9]+(?:\.[0-9]+)?)\s*\Z", re.I)
_NUMBER_BEFORE = re.compile(r"(?<![\w:?$.])[0-9]+(?:\.[0-9]+)?\s*\Z")
_SEQUENCE, _WINDOW = "{ ... } SEQ { ... }", "FROM NAMED WINDOW <w> ON <stream> [RANGE ... STEP ...], or WINDOW [RANGE ...] after GROUP BY"
_UNION, _AND = "{ ... } UNION { ... }", "{ ... } AND { ... }"
_FOREIGN: dict[str, dict[str, str]] = {
    "an operator such as SEQ": {
        **dict.fromkeys(("THEN", "FOLLOWED", "FOLLOWEDBY", "SEQUENCE", "NEXT", "BEFORE", "AFTER", "-", "\u2192", "\u21d2", "\u2297"), _SEQUENCE),
        **dict.fromkeys(("OR", "||", "|", "\u2228", "\u222a"), _UNION),
        **dict.fromkeys(("&&", "&", "\u2227"), _AND),
    },
    "an operator": {"LIKE": "REGEX(?x, ...), CONTAINS(?x, ...) or STRSTARTS(?x, ...)", "BETWEEN": "?x >= ... && ?x <= ...", "IS": "= or BOUND(?x)"},
    "a pattern in braces": {"[": _WINDOW, "WINDOW": _WINDOW},
    "the IRI of a graph": {"STREAM": "FROM STREAM <stream>, or " + _WINDOW},
    "RSTREAM, ISTREAM or DSTREAM": {"QUERY": "the query alone; PUT /queries/{name} gives it a name"},
    "variables, '*' or (expression AS ?variable)": dict.fromkeys(("ISTREAM", "RSTREAM", "DSTREAM"), "REGISTER ISTREAM <stream> AS SELECT ..."),
    "a group, FILTER, BIND, OPTIONAL, MINUS, GRAPH, VALUES": {"EVERY": "the pattern alone: without a policy every match is found"},
}
"""These words of other languages are written where the key is expected. Each has what EP-SPARQL says instead."""
_REPLACEMENTS = {_SEQUENCE: "SEQ", _UNION: "UNION", _AND: "AND"}
_LONGER = re.compile(r"(?i)FOLLOWED\s+BY\b|->>?")
_SPLIT_OPERATORS = re.compile(r"(?i)(OPTIONAL[\s_-]+SEQ|EQUALS?[\s_-]+OPTIONAL|SEQ[\s_-]+OPTIONAL)(?![\w:-])")
_WITH_UNITS = re.compile(r"[0-9]+(?:\.[0-9]+)?\s*[A-Za-z]+(?:\s*[0-9]+(?:\.[0-9]+)?\s*[A-Za-z]+)*")
_WORD = re.compile("[A-Za-z_]+")
_BARE_DURATION = re.compile(r"P[0-9T][0-9A-Z.]*", re.I)


def suggest_operator(stop: Stop) -> Slip | None:
    """Recognise an operator of another language; of two signs, the first may be an operator alone."""
    if "an operator" in stop.expected and stop.lexeme in ("&", "|"):
        return stop.write_instead(2 * stop.lexeme)
    if "an operator" in stop.expected and stop.word in _OPERATORS:
        return _write_operator(stop.lexeme, stop.at, stop.end)
    if "an expression" not in stop.expected or not stop.lexeme:
        return None
    if stop.word in ("NOT", "\u00ac") and next_lexeme(stop.text, stop.end).upper() not in ("EXISTS", "IN"):
        return stop.write_instead("!", message=f"{stop.lexeme} is no operator of an expression")
    if stop.lexeme in "\u2212\u2013\u2014":
        return _write_operator(stop.lexeme, stop.at, stop.end)
    start = stop.at
    while stop.at - start < 3 and stop.text[start - 1] in "=<>!":
        start -= 1
    signs = _SIGNS.match(stop.text, start)
    if start == stop.at or signs is None or signs[0] not in _OPERATORS:
        return None
    return _write_operator(signs[0], *signs.span())


def _write_operator(written: str, start: int, end: int) -> Slip:
    meant = _OPERATORS[written.upper()]
    return Slip((Edit(start, end, meant),), meant, f"{written} is no operator of an expression", meant, start, end)


def recognise_foreign_word(stop: Stop) -> Slip | None:
    """Recognise a word of SQL, C-SPARQL, Esper or Cypher where EP-SPARQL has another."""
    if stop.word == "FOR" and "WITHIN" in stop.expected:
        return stop.write_instead("WITHIN")
    meant = next((words[stop.word] for place, words in _FOREIGN.items() if place in stop.expected and stop.word in words), None)
    if meant is None:
        return None
    longer = _LONGER.match(stop.text, stop.at)
    end = stop.end if longer is None else longer.end()
    wanted = "" if stop.word == "AFTER" or (stop.word == "-" and longer is None) else _REPLACEMENTS.get(meant, "")
    edits = (Edit(stop.at, end, wanted),) if wanted else ()
    return Slip(edits, "", f"unexpected {quote_sign(show_lexical(stop.lexeme))}", meant, stop.at, stop.end)


def join_operator(stop: Stop) -> Slip | None:
    """Recognise an operator over time that is written in two words, such as OPTIONAL SEQ."""
    for start in (stop.at, *(found.start() for found in [last_lexeme(stop.text, stop.at)] if found is not None)):
        written = _SPLIT_OPERATORS.match(stop.text, start)
        if written is not None and written.end() >= stop.at:
            name = re.sub(r"[\s_-]+", "", written[0]).upper()
            return stop.write_instead(name, written.start(), written.end())
    return None


def recognise_negation(stop: Stop) -> Slip | None:
    if list(stop.expected) != ["EXISTS"] or stop.lexeme == "":
        return None
    before = last_lexeme(stop.text, stop.at)
    edits = () if before is None else (Edit(before.start(), before.end(), "!"),)
    return Slip(edits, "", "", "EXISTS after NOT; '!' negates a condition, as in FILTER(!(...))")


def recognise_lone_exists(stop: Stop) -> Slip | None:
    if stop.word not in ("NOT", "EXISTS") or "a group, FILTER, BIND, OPTIONAL, MINUS, GRAPH, VALUES" not in stop.expected:
        return None
    name = "NOT EXISTS" if stop.word == "NOT" else "EXISTS"
    edits = (Edit(stop.at, stop.at, "FILTER "),)
    return Slip(edits, "", f"{name} is a condition, which stands in a FILTER", f"FILTER {name} {{ ... }}", stop.at, stop.end)


def recognise_unit(stop: Stop) -> Slip | None:
    """Recognise a duration in words, such as 10 MINUTES, after a keyword and in an expression."""
    before = stop.text[max(0, stop.at - _SEEN_BEFORE) : stop.at]
    number = _SECONDS.search(before) if "an operator such as SEQ" in stop.expected else None
    start = None if number is None else number.start(1)
    if start is None and "an operator" in stop.expected and stop.is_word and stop.word not in stop.keywords:
        number = _NUMBER_BEFORE.search(before)
        start = None if number is None else number.start()
    start = stop.at - len(before) + start if start is not None else None
    if start is None and any(each.startswith("a duration such as") for each in stop.expected):
        start = stop.at
    if start is None:
        return None
    written = _WITH_UNITS.match(stop.text, start, stop.at + _SEEN_BEFORE)
    meant = DURATION_FORM if written is None else likely_duration(written[0])
    if written is None or meant == DURATION_FORM:
        return None
    if "an operator" in stop.expected:
        meant = f'"{meant}"^^xsd:duration'
    return stop.write_instead(meant, *written.span(), message=f"{written[0]} is no duration")


def recognise_bare_duration(stop: Stop) -> Slip | None:
    """Recognise a duration of an expression without quotation marks, such as P10D."""
    written = _BARE_DURATION.match(stop.text, stop.at)
    if written is None or "an expression" not in stop.expected or written[0] != stop.lexeme:
        return None
    meant = likely_duration(written[0])
    end = stop.end
    if stop.text.startswith("^^", end):
        return stop.write_instead(f'"{meant}"')
    return None if meant == DURATION_FORM else stop.write_instead(f'"{meant}"^^xsd:duration', end=end)


def recognise_bare_iri(stop: Stop) -> Slip | None:
    """Recognise an IRI without brackets.

    `http:` is a prefixed name and `/` goes on with a path, so the fault is at one of the two slashes.
    """
    ends = [at for at in (stop.at + 1, stop.at + 2) if stop.lexeme == "/"]
    if "an IRI in '<' and '>'" in stop.expected:
        ends.append(stop.end + 2)  # after PREFIX the name is expected whole
    scheme = next((found for end in ends if (found := _SCHEME.search(stop.text, max(0, stop.at - _SEEN_BEFORE), end))), None)
    iri = None if scheme is None else _BARE_IRI.match(stop.text, scheme.start())
    if iri is None:
        return None
    return stop.write_instead(f"<{iri[0]}>", *iri.span(), message=f"{show_lexical(iri[0])} is an IRI without '<' and '>'")


def follow_pattern(stop: Stop) -> Slip | None:
    """Recognise what the paper allows after WHERE alone."""
    ended = "a solution modifier such as GROUP BY or LIMIT" in stop.expected and not {"an operator such as SEQ", "FILTER"} & set(stop.expected)
    if not ended or stop.word not in stop.elements:
        return None
    opened: list[int] = []
    group = None
    for found in list_lexemes(stop.text, 0, stop.at):
        if found[0] == "{":
            opened.append(found.start())
        elif found[0] == "}" and opened:
            group = opened.pop()
    edits = () if group is None else (Edit(group, group, "WHERE "),)
    expected = "the whole pattern in braces, or WHERE before it"
    return Slip(edits, "", f"{stop.lexeme} stands after the pattern's last brace", expected, stop.at, stop.end)


def find_near_keyword(word: str, keywords: Collection[str]) -> str | None:
    """Return the keyword that a word is nearest to, unless it is one itself."""
    if not _WORD.fullmatch(word) or word.upper() in keywords:
        return None
    near = difflib.get_close_matches(word.upper(), keywords, 1, 0.7) or difflib.get_close_matches(
        word.upper(), [keyword for keyword in keywords if len(keyword) == len(word)], 1, 0.66
    )  # two letters of three, as in SEK
    return near[0] if near else None

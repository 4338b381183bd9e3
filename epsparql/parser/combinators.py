"""This module holds what the grammar is made of: rules, which are functions, and the functions that make rules of rules.

A rule matches the text from a place, where no blank stands, and appends what it builds to a list. It returns the place of the next token, or FAILED,
and then the list is as it was. Nothing is raised to say that an alternative fails, because most of them do.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from epsparql.errors import QueryError, Span, SyntaxFault, Unsupported

MAX_DEPTH = 100
"""At most this many brackets of any kind are open at one place."""
FAILED = -1
SKIP = r"(?:[ \t\r\n]|#[^\r\n]*+)*+"
WORD_END = r"(?![\w:]|[.\-][\w.\-]*+:)"  # what goes on to a ':' is a prefixed name, for the longest token counts
DIGITS_OR_END = r"(?![^\W\d]|:|[\d.\-][\w.\-]*+:)"  # ends a keyword before a number, as in LIMIT10


# ---------------------------------------------------------------- the text and its furthest fault
class QueryText(str):
    """Holds a query's text, and the state of one parse of it.

    `furthest` is the last place at which some token failed, `expected` what the tokens that failed there would have been.
    """

    text: str
    furthest: int
    expected: list[str]
    depth: int

    @classmethod
    def from_text(cls, text: str) -> "QueryText":
        source = cls("\n" + text[1:] if text.startswith("\ufeff") else text)
        source.text = text
        source.furthest, source.expected, source.depth = FAILED, [], 0
        return source

    def note_failure(self, at: int, expected: str | None) -> None:
        if at < self.furthest:
            return
        if at > self.furthest:
            self.furthest, self.expected = at, []
        if expected is not None and expected not in self.expected:
            self.expected.append(expected)


Rule = Callable[[QueryText, int, list[Any]], int]
Build = Callable[[QueryText, str, Span], object]
_BLANKS = re.compile(SKIP)


def parse_text(rule: Rule, text: str, fault: Callable[[QueryText], QueryError]) -> Any:
    """Return the one node that `rule` builds of a text. Raises the `QueryError` that `fault` makes of a text that does not match."""
    source, found = QueryText.from_text(text), list[Any]()
    blanks = _BLANKS.match(source)
    if rule(source, blanks.end() if blanks else 0, found) == FAILED:
        raise fault(source)
    return found[0]


# ---------------------------------------------------------------- rules of rules
def all_of(*parts: Rule) -> Rule:
    def match(source: QueryText, at: int, found: list[Any]) -> int:
        before = len(found)
        for part in parts:
            at = part(source, at, found)
            if at == FAILED:
                del found[before:]
                return FAILED
        return at

    return match


def one_of(*alternatives: Rule) -> Rule:
    def match(source: QueryText, at: int, found: list[Any]) -> int:
        for alternative in alternatives:
            after = alternative(source, at, found)
            if after != FAILED:
                return after
        return FAILED

    return match


def optional(part: Rule) -> Rule:
    def match(source: QueryText, at: int, found: list[Any]) -> int:
        after = part(source, at, found)
        return at if after == FAILED else after

    return match


def repeated(part: Rule) -> Rule:
    """Match a part as often as it is there, which may be never."""

    def match(source: QueryText, at: int, found: list[Any]) -> int:
        while (after := part(source, at, found)) != FAILED:
            at = after
        return at

    return match


def separated(item: Rule, separator: Rule) -> Rule:
    return all_of(item, repeated(all_of(separator, item)))


class Forward:
    """Stands for a rule that is given later, by `<<=`, because it contains itself."""

    __slots__ = ("_rule",)
    _rule: Rule

    def __ilshift__(self, rule: Rule) -> "Forward":
        self._rule = rule
        return self

    def __call__(self, source: QueryText, at: int, found: list[Any]) -> int:
        return self._rule(source, at, found)


def production(rule: Rule, make: Callable[[QueryText, list[Any]], object]) -> Rule:
    """Match a production: `make` turns what `rule` found into one node."""

    def match(source: QueryText, at: int, found: list[Any]) -> int:
        parts: list[Any] = []
        after = rule(source, at, parts)
        if after != FAILED:
            found.append(make(source, parts))
        return after

    return match


def labelled(rule: Rule, label: str, first: str = "") -> Rule:
    """Name what is expected where `rule` fails at its very start; `first` are the signs it can start with, which spares hopeless attempts."""
    can_start = re.compile(first).match

    def match(source: QueryText, at: int, found: list[Any]) -> int:
        if can_start(source, at) is None:
            source.note_failure(at, label)
            return FAILED
        noted = len(source.expected) if source.furthest == at else 0
        after = rule(source, at, found)
        if after == FAILED and source.furthest == at:
            del source.expected[noted:]
            source.note_failure(at, label)
        return after

    return match


def ahead(first: str, rule: Rule) -> Rule:
    """Match `rule` where the text goes on with `first`; elsewhere it fails at once and is not mentioned."""
    can_start = re.compile(first).match

    def match(source: QueryText, at: int, found: list[Any]) -> int:
        return FAILED if can_start(source, at) is None else rule(source, at, found)

    return match


def nested(rule: Rule) -> Rule:
    """Match something in brackets, and count the depth, which a query may not drive past `MAX_DEPTH`."""

    def match(source: QueryText, at: int, found: list[Any]) -> int:
        source.depth += 1
        if source.depth > MAX_DEPTH:
            _refuse_depth(source, at)
        after = rule(source, at, found)
        source.depth -= 1
        return after

    return match


def _refuse_depth(source: QueryText, at: int) -> None:
    if source.startswith(("{", "(", "[", "<<"), at):
        raise SyntaxFault(f"brackets are nested more than {MAX_DEPTH} deep here", Span(at, at + 1), source.text, "a flatter query")


# ---------------------------------------------------------------- tokens
class Sign:
    """Marks a keyword (in capitals) or a sign, which only serves to build nodes."""

    __slots__ = ("span", "value")

    def __init__(self, value: str, span: Span) -> None:
        self.value = value
        self.span = span


def token(pattern: str, build: Build, expected: str | None) -> Rule:
    """Match a terminal and pass over the blanks and comments after it. A mismatch is noted in the source."""
    matches = re.compile(f"({pattern}){SKIP}").match

    def match(source: QueryText, at: int, found: list[Any]) -> int:
        matched = matches(source, at)
        if matched is None:
            if at >= source.furthest:
                source.note_failure(at, expected)
            return FAILED
        found.append(build(source, matched[1], Span(*matched.span(1))))
        return matched.end()

    return match


def make_sign(source: QueryText, value: str, span: Span) -> Sign:
    return Sign(value.upper(), span)


def word(name: str, *, expected: str | None = "") -> Rule:
    """Match a keyword; it is mentioned in faults unless `expected` is None."""
    return token(f"(?i:{name}){WORD_END}", make_sign, name if expected == "" else expected)


def counting(name: str, *, expected: str | None = "") -> Rule:
    """Match a keyword before a number, which may follow at once."""
    return token(f"(?i:{name}){DIGITS_OR_END}", make_sign, name if expected == "" else expected)


def words(names: Iterable[str], expected: str | None) -> Rule:
    return token(f"(?i:{'|'.join(sorted(names, key=len, reverse=True))}){WORD_END}", make_sign, expected)


def sign(text: str, *, expected: str | None = "") -> Rule:
    return token(re.escape(text), make_sign, f"'{text}'" if expected == "" else expected)


def refused(pattern: str, reason: Callable[[str], str]) -> Rule:
    """Match what this version does not support: found, it ends the parse; otherwise it is not mentioned."""

    def build(source: QueryText, value: str, span: Span) -> NoReturn:
        raise Unsupported(reason(value.upper()), span, source.text)

    return token(pattern, build, None)


def refused_words(reasons: dict[str, str]) -> Rule:
    names = "|".join(sorted(reasons, key=len, reverse=True))
    return refused(f"(?i:{names}){WORD_END}", lambda value: reasons[value])

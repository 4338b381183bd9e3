"""This module adds to pyparsing what the grammar needs: terminals with places, faults in words, and a limit on nesting.

Choices, options and repetitions are pyparsing's own (`|`, `Opt`, `[...]`), and so are sequences (`+`) and parse
actions.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from typing import Any, NoReturn, cast

from pyparsing import ParseBaseException, ParseElementEnhance, ParseException, ParserElement
from pyparsing import Token as PyparsingToken

from epsparql.errors import Edit, QueryError, Span, SyntaxFault, Unsupported

MAX_DEPTH = 100
"""At most this many brackets of any kind are open at one place."""
NOWHERE = -1
SKIP = r"(?:[ \t\r\n]|#[^\r\n]*+)*+"
WORD_END = r"(?![\w:]|[.\-][\w.\-]*+:)"  # what goes on to a ':' is a prefixed name, for the longest token counts
DIGITS_OR_END = r"(?![^\W\d]|:|[\d.\-][\w.\-]*+:)"  # ends a keyword before a number, as in LIMIT10


# ---------------------------------------------------------------- the text and its furthest fault
class QueryText(str):
    """Holds a query's text, and the state of one parse of it.

    Where `explains` is set, `furthest` is the last place at which some terminal failed, and `expected` names those
    that failed there.
    """

    text: str
    explains: bool
    furthest: int
    expected: list[str]
    depth: int

    @classmethod
    def from_text(cls, text: str, *, explains: bool) -> "QueryText":
        source = cls("\n" + text[1:] if text.startswith("\ufeff") else text)
        source.begin(text, explains=explains)
        return source

    def begin(self, text: str, *, explains: bool) -> None:
        """Set the state of a parse that begins."""
        self.text, self.explains = text, explains
        self.furthest, self.expected, self.depth = NOWHERE, [], 0

    def note_failure(self, at: int, expected: str | None) -> None:
        if at < self.furthest:
            return
        if at > self.furthest:
            self.furthest, self.expected = at, []
        if expected is not None and expected not in self.expected:
            self.expected.append(expected)


Build = Callable[[QueryText, str, Span], object]
BuildNode = Callable[[QueryText, list[Any]], object]
Find = Callable[[str, int], re.Match[str] | None]
Result = tuple[int, Any]
"""The next place, and what was found: a list or `ParseResults`."""


def parse_text(rule: ParserElement, text: str, fault: Callable[[QueryText], QueryError], kind: type[QueryText] = QueryText) -> Any:
    """Return the one node that `rule` builds of a text. Raises the `QueryError` that `fault` makes of a text that
    does not match.

    Only a text with a fault is parsed a second time, to find out what was expected: noting it costs more than parsing
    does.
    """
    with suppress(ParseBaseException):
        return rule.parse_string(kind.from_text(text, explains=False))[0]
    source = kind.from_text(text, explains=True)
    with suppress(ParseBaseException):
        rule.parse_string(source)
    raise fault(source)


# ---------------------------------------------------------------- elements
class Sign:
    """Marks a keyword (in capitals) or a sign, which only serves to build nodes."""

    __slots__ = ("span", "value")

    def __init__(self, value: str, span: Span) -> None:
        self.value = value
        self.span = span


class Terminal(PyparsingToken):
    """Matches a terminal by a regular expression, and passes over the blanks and comments after it.

    `first` matches wherever `pattern` does, and says sooner where it does not. A query tries few of the terminals.
    Compiling all patterns took most of the grammar's loading time, so each is compiled when it is first tried.
    """

    def __init__(self, pattern: str, build: Build, expected: str | None, first: str = "", skip: str = SKIP) -> None:
        super().__init__()
        self.pattern = pattern
        self.first = first or pattern
        self.build = build
        self.expected = expected
        self.errmsg = expected or ""
        self.skip = skip
        self.leave_whitespace()
        self.mayIndexError = False

    @cached_property
    def find(self) -> Find:
        return re.compile(f"({self.pattern}){self.skip}").match

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        source = cast(QueryText, instring)
        matched = self.find(source, loc)
        if matched is None:
            if source.explains:
                source.note_failure(loc, self.expected)
            raise ParseException(source, loc, self.errmsg, self)
        return matched.end(), [self.build(source, matched[1], Span(*matched.span(1)))]


class Labelled(ParseElementEnhance):
    """Names what is expected where an element fails at its very start."""

    def __init__(self, expr: ParserElement, label: str) -> None:
        super().__init__(expr)
        self.label = label

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        source = cast(QueryText, instring)
        noted = len(source.expected) if source.furthest == loc else 0
        try:
            return cast(Result, super().parseImpl(instring, loc, do_actions))  # type: ignore[no-untyped-call]  # pyparsing lacks the types
        except ParseException:
            if source.furthest == loc:
                del source.expected[noted:]
                source.note_failure(loc, self.label)
            raise


class Nested(ParseElementEnhance):
    """Matches something in brackets, and counts the depth, which a query may not drive past `MAX_DEPTH`."""

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        source = cast(QueryText, instring)
        source.depth += 1
        try:
            if source.depth > MAX_DEPTH:
                self.refuse_depth(source, loc)
            return cast(Result, super().parseImpl(instring, loc, do_actions))  # type: ignore[no-untyped-call]  # pyparsing lacks the types
        finally:
            source.depth -= 1

    def refuse_depth(self, source: QueryText, at: int) -> None:
        if source.startswith(("{", "(", "[", "<<"), at):
            raise SyntaxFault(f"brackets are nested more than {MAX_DEPTH} deep here", Span(at, at + 1), source.text, "a flatter query")


def node(rule: ParserElement, build: BuildNode) -> ParserElement:
    """Match a production: `build` turns what `rule` found into one node."""
    assert not rule.parseAction, f"{rule} builds a node already"
    return rule.set_parse_action(lambda source, at, found: build(source, list(found)))


# ---------------------------------------------------------------- keywords and signs
def make_sign(source: QueryText, value: str, span: Span) -> Sign:
    return Sign(value.upper(), span)


def word(name: str, *, expected: str | None = "") -> Terminal:
    """Match a keyword; it is mentioned in faults unless `expected` is None."""
    return Terminal(f"(?i:{name}){WORD_END}", make_sign, name if expected == "" else expected)


def counting(name: str, *, expected: str | None = "") -> Terminal:
    """Match a keyword before a number, which may follow at once."""
    return Terminal(f"(?i:{name}){DIGITS_OR_END}", make_sign, name if expected == "" else expected)


def words(names: Iterable[str], expected: str | None) -> Terminal:
    return Terminal(f"(?i:{'|'.join(sorted(names, key=len, reverse=True))}){WORD_END}", make_sign, expected)


def sign(text: str, *, expected: str | None = "") -> Terminal:
    return Terminal(re.escape(text), make_sign, f"'{text}'" if expected == "" else expected)


def refused(pattern: str, reason: Callable[[str], str], nearest: str = "") -> Terminal:
    """Match what this version does not support: found, it ends the parse; otherwise it is not mentioned.

    `nearest` may replace it.
    """

    def build(source: QueryText, value: str, span: Span) -> NoReturn:
        edits = (Edit(span.start, span.end, nearest),) if nearest else ()
        raise Unsupported(reason(value.upper()), span, source.text, edits=edits)

    return Terminal(pattern, build, None)


def refused_words(reasons: dict[str, str]) -> Terminal:
    names = "|".join(sorted(reasons, key=len, reverse=True))
    return refused(f"(?i:{names}){WORD_END}", lambda value: reasons[value])

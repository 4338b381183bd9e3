"""This module has the terminals of the ETALIS Language for Events, which are Prolog's tokens, as regular expressions."""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import NoReturn

from epsparql.errors import Span, Warning_
from epsparql.etalis.parser.keywords import GOALS, MOST_OPERATORS, UNITS
from epsparql.etalis.parser.lexemes import END, NAME, NUMBER, SKIP, content_of
from epsparql.etalis.parser.syntax import Name, Num, Str, Term, VariableTerm, refuse
from epsparql.parser.elements import Build, QueryText, Sign, Terminal

VARIABLE = r"[A-Z_]\w*+"
QUOTED = r"'(?:[^'\\]|''|\\(?s:.))*'"
STRING = r'"(?:[^"\\]|""|\\(?s:.))*"'
PREFIXED = rf"[a-z]\w*+:(?:[A-Za-z_]\w*+|{QUOTED})"
ATOM = f"(?>{PREFIXED}|{NAME}|{QUOTED})"
NO_PREFIXED = "(?![a-z]\\w*+:[A-Za-z_'])"
SIGNS = ("=..", "=:=", "=\\=", "\\==", "<-", ":-", "->", "==", "\\=", "=<", ">=", "\\+", "**", "//", "/\\", "\\/", *"←-+*/^=<>,;|()[]{}!:#")
"""Longer ones come first."""
ITEM = rf"(?>{ATOM}|{VARIABLE}|-?{NUMBER}(?:[A-Za-z_]\w*+)?|{STRING})"
LEXEME = (
    rf"(?P<number>{NUMBER})(?P<unit>[A-Za-z_]\w*)?|(?P<prefixed>{PREFIXED})|(?P<name>{NAME})|(?P<variable>{VARIABLE})"
    rf"|(?P<quoted>{QUOTED})|(?P<string>{STRING})|(?P<end>{END})|(?P<dot>\.)|(?P<sign>(?!/\*)(?:{'|'.join(map(re.escape, SIGNS))}))"
)
TOKEN = re.sub(r"\?P<[a-z]+>", "?:", LEXEME)
"""A token without names of its kinds."""
_LEXEME = re.compile(LEXEME)
_BLANKS = re.compile(SKIP)
_ITEM = re.compile(rf"({ITEM}){SKIP},?{SKIP}")
_WHOLE_NUMBER = re.compile(f"({NUMBER})(.*)")


# ---------------------------------------------------------------- the text of a program
class ProgramText(QueryText):
    """Holds a program's text and the state of one parse: operators that stand above a place, anonymous variables and
    warnings by their places.
    """

    operators: int
    anonymous: dict[int, str]
    warnings: dict[int, Warning_]

    @classmethod
    def from_text(cls, text: str, *, explains: bool) -> "ProgramText":
        source = cls(text)
        source.begin(text, explains=explains)
        source.operators, source.anonymous, source.warnings = 0, {}, {}
        return source

    def count_operator(self, at: int) -> None:
        """Count an operator before a place, whose operands stand in one another.

        Raises EleRefused beyond `MOST_OPERATORS`.
        """
        self.operators += 1
        if self.operators > MOST_OPERATORS:
            refuse_operators(self, span_after(self, at))

    def warn(self, code: str, message: str, span: Span) -> None:
        self.warnings[span.start] = Warning_(code, message, span)


def span_after(source: str, at: int) -> Span:
    """Return where the next token stands."""
    blanks = _BLANKS.match(source, at)
    assert blanks is not None
    found = _LEXEME.match(source, blanks.end())
    return Span(*found.span()) if found else Span(len(source), len(source))


def refuse_operators(source: QueryText, span: Span, remedy: str = "static rules for parts of the condition") -> NoReturn:
    refuse(f"more than {MOST_OPERATORS} operators in a row", span, source.text, remedy)


# ---------------------------------------------------------------- patterns
def word_pattern(names: Iterable[str]) -> str:
    """Return the pattern of operators that are words, in any case and maybe quoted."""
    alternatives = "|".join(sorted(names, key=len, reverse=True))
    return rf"{NO_PREFIXED}(?=[A-Za-z])(?i:{alternatives})(?!\w)|'(?i:{alternatives})'(?!')"


def sign_pattern(text: str) -> str:
    """Return the pattern of a sign where no longer one stands."""
    longer = [re.escape(each[len(text) :]) for each in SIGNS if each.startswith(text) and each != text] + [r"\*"] * (text == "/")
    return re.escape(text) + (f"(?!{'|'.join(longer)})" if longer else "")


def operator_pattern(names: Iterable[str]) -> str:
    """Return the pattern of operators between goals, which are signs, or names in small letters."""
    return "|".join(rf"{name}(?!\w|:[A-Za-z_'])" if name.isalpha() else sign_pattern(name) for name in sorted(names))


# ---------------------------------------------------------------- terminals
def terminal(pattern: str, build: Build, expected: str | None = None) -> Terminal:
    return Terminal(pattern, build, expected, skip=SKIP)


def _make_sign(source: QueryText, value: str, span: Span) -> Sign:
    return Sign(value, span)


def make_sign_named(name: str) -> Build:
    return lambda source, value, span: Sign(name, span)


def _make_word(source: QueryText, value: str, span: Span) -> Sign:
    return Sign(value.strip("'").casefold(), span)


def sign(*texts: str, expected: str | None = None) -> Terminal:
    return terminal("|".join(map(sign_pattern, texts)), _make_sign, expected)


def event_word(*names: str) -> Terminal:
    """Match operators between events: words, and signs."""
    signs = [name for name in names if not name[0].isalpha()]
    return terminal("|".join([word_pattern(set(names) - set(signs)), *map(sign_pattern, signs)]), _make_word)


def _build_number(source: QueryText, value: str, span: Span) -> Num:
    found = _WHOLE_NUMBER.fullmatch(value)
    assert found is not None
    if found[2] not in UNITS:
        refuse(f"'{found[2]}' is no unit of time", span, source.text, "ms, s, sec, min, h, hour or day")
    return Num(Decimal(found[1]), found[2], span)


def _build_string(source: QueryText, value: str, span: Span) -> Str:
    return Str(content_of(value), span)


def _build_variable(source: QueryText, value: str, span: Span) -> VariableTerm:
    assert isinstance(source, ProgramText)
    if value == "_":
        value = source.anonymous.setdefault(span.start, f"_{len(source.anonymous) + 1}")
    return VariableTerm(value, span)


def _build_name(source: QueryText, value: str, span: Span) -> Name:
    if value[0] == "'" or ":" not in value:
        return Name(content_of(value), span, False)
    prefix, _, local = value.partition(":")
    return Name(f"{prefix}:{content_of(local)}", span, True)


def _build_functor(source: QueryText, value: str, span: Span) -> Name:
    return _build_name(source, value[:-1], Span(span.start, span.end - 1))


def _build_plain_arguments(source: QueryText, value: str, span: Span) -> tuple[Term, ...]:
    found: list[Term] = []
    for item in _ITEM.finditer(value):
        text, at = item[1], span.start + item.start()
        first, place = text[0], Span(at, at + len(text))
        if first == "-":
            number = _build_number(source, text[1:], place)
            found.append(Num(-number.value, number.unit, place))
        elif first.isdigit():
            found.append(_build_number(source, text, place))
        elif first == '"':
            found.append(_build_string(source, text, place))
        else:
            found.append((_build_variable if first == "_" or first.isupper() else _build_name)(source, text, place))
    return tuple(found)


def _build_operator(source: QueryText, value: str, span: Span) -> Sign:
    """Count the operators that bind to the right, whose operands stand in one another."""
    assert isinstance(source, ProgramText)
    precedence, _, right = GOALS[value]
    if precedence == right:
        source.count_operator(span.end)
    return Sign(value, span)


def number_with_unit(expected: str | None = None) -> Terminal:
    return terminal(rf"{NUMBER}(?:[A-Za-z_]\w*+)?", _build_number, expected)


def variable(expected: str) -> Terminal:
    return terminal(VARIABLE, _build_variable, expected)


def operator(*names: str) -> Terminal:
    return terminal(operator_pattern(names), _build_operator)


string = terminal(STRING, _build_string)
constant = terminal(rf"{ATOM}(?!\()", _build_name)
functor = terminal(rf"{ATOM}\(", _build_functor)
goal_functor = terminal(r"(?:prolog|not|'prolog'|'not')\(", _build_functor)
plain_arguments = terminal(  # those that are one token each, the common case, without the way through the operators
    rf"(?:{ITEM}{SKIP},{SKIP})*+{ITEM}(?={SKIP}[)\]])", _build_plain_arguments
)

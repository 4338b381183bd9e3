"""This module parses text to syntax: the SPARQL 1.2 grammar with EP-SPARQL's Chain (semantics.md section 11). The numbers are those of SPARQL 1.1's rules.

The grammar is LL(1) but for a keyword here and there, so a failed alternative is never long. Faults are placed where the text stopped making sense.
Each token that does not match notes what it expected, and the furthest place noted is the fault's (`QueryText.note`). What is refused whatever follows
it is recognised at its keyword (`refused`).
"""

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, cast

from pyparsing import And, Forward, MatchFirst, Opt, ParseElementEnhance, ParseException, ParseFatalException, ParserElement, ZeroOrMore
from pyparsing import Token as PyparsingToken

from epsparql.errors import QueryError, Span, SyntaxFault, Unsupported
from epsparql.parser import ast, ast_queries
from epsparql.parser.suggestions import Stop, likely_slip

MAX_DEPTH = 100
"""At most this many brackets of any kind are open at one place."""

# ---------------------------------------------------------------- terminals [139]-[173]
_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff"
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)  # [164] PN_CHARS_BASE
_CHARS_U = _BASE + "_"  # [165]
_CHARS = _CHARS_U + "0-9\u00b7\u0300-\u036f\u203f-\u2040\\-"  # [167]
_VARNAME = f"[{_CHARS_U}0-9][{_CHARS_U}0-9\u00b7\u0300-\u036f\u203f-\u2040]*+"  # [166]
_PREFIX = f"[{_BASE}](?:\\.*+[{_CHARS}])*+"  # [168] PN_PREFIX
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"  # [170]
_LOCAL = f"(?:[{_CHARS_U}:0-9]|{_PLX})(?:\\.*+(?:[{_CHARS}:]|{_PLX}))*+"  # [169] PN_LOCAL
_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"  # a codepoint escape, which stands in IRIs and strings alone
_IRIREF = rf'<(?:[^<>"{{}}|^`\\\x00-\x20]|{_UCHAR})*+>'  # [139]
_PNAME = f"(?:{_PREFIX})?:(?:{_LOCAL})?"  # [140], [141]
_ECHAR = rf"\\[tbnrf\\\"']|{_UCHAR}"  # [160]
_SHORT_STRINGS = (rf'"(?!"")(?:[^"\\\n\r]|{_ECHAR})*+"', rf"'(?!'')(?:[^'\\\n\r]|{_ECHAR})*+'")  # [157], [156]
_STRING = "|".join(
    (
        rf'"""(?:"{{0,2}}(?:[^"\\]|{_ECHAR}))*"""',  # [159]
        rf"'''(?:'{{0,2}}(?:[^'\\]|{_ECHAR}))*'''",  # [158]
        *_SHORT_STRINGS,
    )
)
_NUMBER = r"[+-]?(?:[0-9]+\.[0-9]*[eE][+-]?[0-9]+|\.?[0-9]+[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+)"  # [146]-[154]
_WORD_END = r"(?![\w:]|[.\-][\w.\-]*+:)"  # what goes on to a ':' is a prefixed name, for the longest token counts
_DIGITS_OR_END = r"(?![^\W\d]|:|[\d.\-][\w.\-]*+:)"  # ends a keyword before a number, as in LIMIT10
_SKIP = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*+)*+")
_LEXEME = "|".join(  # only what a fault shows, so \\w is near enough
    (_STRING, _IRIREF, r"[?$]\w+", r"(?:\w[\w.\-]*)?:[\w:]*", r"_:[\w.\-]+", r"@[\w\-]+", _NUMBER, r"\w[\w\-]*", r"&&|\|\||[<>!]=|\^\^|.")
)
_WORD = re.compile("[A-Za-z_]+")
_WORD_BEFORE = re.compile(r"(?<![A-Za-z_])([A-Za-z_]++)[ \t\r\n]*+\Z")  # begins at a word only, or a long one would be tried from each of its letters
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_LOCAL_ESCAPED = re.compile(r"\\(.)")
_NOT_IN_IRIS = re.compile(r'[<>"{}|^`\\\x00-\x20]')

_UNESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}

_KEYWORDS = (
    "BASE", "PREFIX", "VERSION", "SELECT", "DISTINCT", "REDUCED", "AS", "CONSTRUCT", "FROM", "STREAM", "INTO", "BACKGROUND", "WHERE", "FILTER", "BIND", "OPTIONAL", "MINUS",
    "UNION", "AND", "SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL", "MEETS", "DURING", "STARTS", "FINISHES", "OVERLAPS", "PAR", "WITHIN",
    "WITHOUT", "FOR", "EXISTS", "NOT", "IN", "ASK", "DESCRIBE", "NAMED", "GRAPH", "SERVICE", "SILENT", "VALUES", "UNDEF", "WINDOW", "RANGE", "STEP",
    "ROWS", "SESSION", "RUN", "WHILE", "GAP", "UNTIL", "EACH", "CLOSED", "REGISTER", "RSTREAM", "ISTREAM", "DSTREAM", "ON", "GROUP", "BY", "HAVING", "ORDER", "ASC", "DESC", "LIMIT", "OFFSET", "SEPARATOR",
)  # fmt: skip
_BUILT_INS = (
    "STR", "LANG", "LANGMATCHES", "DATATYPE", "BOUND", "IRI", "URI", "BNODE", "RAND", "ABS", "CEIL", "FLOOR", "ROUND", "CONCAT", "STRLEN", "UCASE",
    "LCASE", "ENCODE_FOR_URI", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS",
    "TIMEZONE", "TZ", "NOW", "UUID", "STRUUID", "MD5", "SHA1", "SHA256", "SHA384", "SHA512", "COALESCE", "IF", "STRLANG", "STRDT", "SAMETERM",
    "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "TRIPLE", "SUBJECT", "PREDICATE", "OBJECT",
    "ISTRIPLE", "HASLANG", "HASLANGDIR", "LANGDIR", "STRLANGDIR", "REGEX", "SUBSTR", "REPLACE", "GETDURATION", "GETSTARTTIME", "GETENDTIME",
)  # fmt: skip
_MODIFIERS = ("GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET")
_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT", "FIRST", "LAST")
_PREVIOUS = "PREV"


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
        source.furthest, source.expected, source.depth = -1, [], 0
        return source

    def note(self, at: int, expected: str | None) -> None:
        if at < self.furthest:
            return
        if at > self.furthest:
            self.furthest, self.expected = at, []
        if expected is not None and expected not in self.expected:
            self.expected.append(expected)

    def skip(self, at: int) -> int:
        """Return the place of the next token: blanks and comments are passed over."""
        found = _SKIP.match(self, at)
        return found.end() if found else at


class Halt(ParseFatalException):
    """Ends the parse with a fault that no other alternative can mend."""

    def __init__(self, source: QueryText, fault: QueryError) -> None:
        super().__init__(source, 0, "halt")
        self.fault = fault


# ---------------------------------------------------------------- kinds of parser elements
class Sign:
    """Marks a keyword (in capitals) or a sign, which only serves to build nodes."""

    __slots__ = ("span", "value")

    def __init__(self, value: str, span: Span) -> None:
        self.value = value
        self.span = span


Build = Callable[[QueryText, str, Span], object]
Result = tuple[int, Any]


class Token(PyparsingToken):
    """Matches a terminal: blanks and comments before it are passed over, and a mismatch is noted in the source."""

    def __init__(self, pattern: str, build: Build, expected: str | None) -> None:
        super().__init__()
        self.match = re.compile(f"{_SKIP.pattern}({pattern})").match
        self.build = build
        self.expected = expected
        self.errmsg = expected or ""
        self._may_return_empty = False
        self.mayIndexError = False
        self.callPreparse = False
        self.leave_whitespace()

    def _generateDefaultName(self) -> str:
        return self.expected or "token"

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        source = cast(QueryText, instring)
        found = self.match(source, loc)
        if found is None:
            at = source.skip(loc)
            source.note(at, self.expected)
            raise ParseException(source, at, self.errmsg, self)
        start, end = found.span(1)
        return end, [self.build(source, found[1], Span(start, end))]


class Production(ParseElementEnhance):
    """Matches a production: `make` turns what `expr` found into one node."""

    def __init__(self, expr: ParserElement, make: Callable[[QueryText, list[Any]], object]) -> None:
        super().__init__(expr)
        self.make = make

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        assert self.expr is not None
        loc, found = self.expr._parse(instring, loc, do_actions, callPreParse=False)
        return loc, [self.make(cast(QueryText, instring), list(found))]


class Labelled(ParseElementEnhance):
    """Names what is expected where `expr` fails at its very start; `first` are the signs it can start with, which spares hopeless attempts."""

    def __init__(self, expr: ParserElement, label: str, first: str = "") -> None:
        super().__init__(expr)
        self.label = label
        self.can_start = re.compile(first).match

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        assert self.expr is not None
        source = cast(QueryText, instring)
        start = source.skip(loc)
        if self.can_start(source, start) is None:
            source.note(start, self.label)
            raise ParseException(source, start, self.label, self)
        noted = len(source.expected) if source.furthest == start else 0
        try:
            return self.expr._parse(instring, start, do_actions, callPreParse=False)
        except ParseException:
            if source.furthest == start:
                del source.expected[noted:]
                source.note(start, self.label)
            raise


class Ahead(ParseElementEnhance):
    """Matches `expr` where the text goes on with `first`; elsewhere it fails at once and is not mentioned."""

    def __init__(self, first: str, expr: ParserElement) -> None:
        super().__init__(expr)
        self.can_start = re.compile(_SKIP.pattern + first).match

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        assert self.expr is not None
        if self.can_start(instring, loc) is None:
            raise ParseException(instring, loc, self.errmsg, self)
        return self.expr._parse(instring, loc, do_actions, callPreParse=False)


class Nested(ParseElementEnhance):
    """Matches something in brackets, and counts the depth, which a query may not drive past `MAX_DEPTH`."""

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        assert self.expr is not None
        source = cast(QueryText, instring)
        source.depth += 1
        try:
            if source.depth > MAX_DEPTH:
                _refuse_depth(source, source.skip(loc))
            return self.expr._parse(instring, loc, do_actions, callPreParse=False)
        finally:
            source.depth -= 1


def _refuse_depth(source: QueryText, at: int) -> None:
    if source.startswith(("{", "(", "[", "<<"), at):
        span = Span(at, at + 1)
        raise Halt(source, SyntaxFault(f"brackets are nested more than {MAX_DEPTH} deep here", span, source.text, "a flatter query"))


def _mark(source: QueryText, value: str, span: Span) -> Sign:
    return Sign(value.upper(), span)


def word(name: str, *, expected: str | None = "") -> Token:
    """Match a keyword; it is mentioned in faults unless `expected` is None."""
    return Token(f"(?i:{name}){_WORD_END}", _mark, name if expected == "" else expected)


def counting(name: str, *, expected: str | None = "") -> Token:
    """Match a keyword before a number, which may follow at once."""
    return Token(f"(?i:{name}){_DIGITS_OR_END}", _mark, name if expected == "" else expected)


def words(names: Iterable[str], expected: str | None) -> Token:
    return Token(f"(?i:{'|'.join(sorted(names, key=len, reverse=True))}){_WORD_END}", _mark, expected)


def sign(text: str, *, expected: str | None = "") -> Token:
    return Token(re.escape(text), _mark, f"'{text}'" if expected == "" else expected)


def refused(pattern: str, reason: Callable[[str], str]) -> Token:
    """Match what this version does not support: found, it ends the parse; otherwise it is not mentioned."""

    def build(source: QueryText, value: str, span: Span) -> NoReturn:
        raise Halt(source, Unsupported(reason(value.upper()), span, source.text))

    return Token(pattern, build, None)


def refused_words(reasons: dict[str, str]) -> Token:
    names = "|".join(sorted(reasons, key=len, reverse=True))
    return refused(f"(?i:{names}){_WORD_END}", lambda value: reasons[value])


def all_of(*parts: ParserElement) -> ParserElement:
    return And(parts)


def one_of(*parts: ParserElement) -> ParserElement:
    return MatchFirst(parts)


def separated(item: ParserElement, separator: ParserElement) -> ParserElement:
    return And((item, ZeroOrMore(And((separator, item)))))


def keep_nodes(found: Iterable[Any]) -> list[Any]:
    """Return what was found without the keywords and signs."""
    return [part for part in found if type(part) is not Sign]


def extent(found: Sequence[Any]) -> Span:
    """Return the stretch from the first node or mark to the last one."""
    return Span(found[0].span.start, found[-1].span.end)


# ---------------------------------------------------------------- terms
def _unescape(source: QueryText, text: str, span: Span) -> str:
    """Return the text of an IRI or a string with its escapes replaced (SPARQL 1.2, 19.2)."""

    def written(found: re.Match[str]) -> str:
        if found[3] is not None:
            return _UNESCAPED[found[3]]
        code = int(found[1] or found[2], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            at = source.index(found[0], span.start)
            place = Span(at, at + len(found[0]))
            raise Halt(source, SyntaxFault(f"{found[0]} is no Unicode character", place, source.text, "a code point that is a character"))
        return chr(code)

    return _ESCAPED.sub(written, text) if "\\" in text else text


def _iri_ref(source: QueryText, value: str, span: Span) -> ast.IriRef:
    text = _unescape(source, value[1:-1], span)
    if "\\" in value and (found := _NOT_IN_IRIS.search(text)):
        raise Halt(source, SyntaxFault(f"an escape stands for {found[0]!r}, which no IRI has", span, source.text, "a character that IRIs have"))
    return ast.IriRef(text, span)


def _prefixed_name(source: QueryText, value: str, span: Span) -> ast.PrefixedName:
    prefix, _, local = value.partition(":")
    return ast.PrefixedName(prefix, _LOCAL_ESCAPED.sub(r"\1", local) if "\\" in local else local, span)


def _iri_name(source: QueryText, value: str, span: Span) -> ast.IriName:
    return _iri_ref(source, value, span) if value[0] == "<" else _prefixed_name(source, value, span)


def _string(source: QueryText, value: str, span: Span) -> ast.StringLiteral:
    quotes = 3 if value[:3] in ('"""', "'''") else 1
    return ast.StringLiteral(_unescape(source, value[quotes:-quotes], span), None, None, span)


def _literal(source: QueryText, found: list[Any]) -> ast.StringLiteral:
    """Build a literal: [129] RDFLiteral."""
    string: ast.StringLiteral = found[0]
    if len(found) == 1:
        return string
    if isinstance(found[1], Sign):
        if len(found) == 3:
            return ast.StringLiteral(string.lexical, None, found[2], extent(found))
        return ast.StringLiteral(string.lexical, found[1].value.lower()[1:], None, extent(found))
    raise AssertionError(found)


iri_ref = Token(_IRIREF, _iri_ref, "an IRI in '<' and '>'")
iri = Token(f"{_IRIREF}|{_PNAME}", _iri_name, "an IRI")  # [136]
variable = Token(f"[?$]{_VARNAME}", lambda source, value, span: ast.VariableName(value[1:], span), "a variable")  # [108]
string = Token(_STRING, _string, "a string")  # [135]
number = Token(_NUMBER, lambda source, value, span: ast.NumericLiteral(value, span), "a number")  # [130]
boolean = Token(f"(?i:true|false){_WORD_END}", lambda source, value, span: ast.BooleanLiteral(value.lower(), span), "true or false")  # [134]
language = Token("@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*+(?:--(?:ltr|rtl)(?![a-zA-Z0-9-]))?(?!--)", _mark, None)  # [145]
literal = Production(all_of(string, Opt(one_of(language, all_of(sign("^^", expected=None), iri)))), _literal)  # [129]
blank_label = Token(  # [142], [138]
    f"_:[{_CHARS_U}0-9](?:\\.*+[{_CHARS}])*+", lambda source, value, span: ast.BlankLabel(value[2:], span), "a blank node"
)
anonymous = Token(r"\[[ \t\r\n]*\]", lambda source, value, span: ast.Anonymous(span), None)  # [163]
integer = Token("[0-9]+", lambda source, value, span: ast.NumericLiteral(value, span), "an integer without a sign")  # [146]
nil = Token(r"\([ \t\r\n]*\)", lambda source, value, span: ast.Collection((), span), None)  # [161]
type_verb = Token(f"a{_WORD_END}", lambda source, value, span: ast.TypeVerb(span), None)
open_term, close_term = sign("<<(", expected=None), sign(")>>")

# ---------------------------------------------------------------- expressions
group = Forward()
expression = Forward()

_OPERATORS = {operator.symbol: operator for operator in ast.BinaryOperator}
_COMPARING = ast.BinaryOperator.EQUAL.strength


def _build_operator(source: QueryText, value: str, span: Span) -> Sign:
    return Sign("NOT IN" if len(value) > 3 else value.upper(), span)


def _fold(source: QueryText, found: list[Any]) -> ast.Expression:
    """Fold operands and operators, which come in turn, by strength: [111]-[117], where all but comparisons associate to the left."""
    operands: list[ast.Expression] = [found[0]]
    operators: list[Sign] = []
    for mark, operand in zip(found[1::2], found[2::2], strict=True):
        strength = _OPERATORS[mark.value].strength
        while operators and _OPERATORS[operators[-1].value].strength >= strength:
            _refuse_comparison_chain(source, operators[-1], mark)
            _reduce(operands, operators)
        operators.append(mark)
        operands.append(operand)
    while operators:
        _reduce(operands, operators)
    return operands[0]


def _reduce(operands: list[ast.Expression], operators: list[Sign]) -> None:
    right, left = operands.pop(), operands.pop()
    operands.append(ast.Binary(_OPERATORS[operators.pop().value], left, right, extent((left, right))))


def _refuse_comparison_chain(source: QueryText, left: Sign, right: Sign) -> None:
    if _OPERATORS[left.value].strength == _OPERATORS[right.value].strength == _COMPARING:
        message = f"{left.value!r} and {right.value!r} cannot follow each other: a comparison gives true or false"
        raise Halt(source, SyntaxFault(message, right.span, source.text, "'&&', '||', or brackets around one comparison"))


def _signed(source: QueryText, found: list[Any]) -> ast.Expression:
    """Build an expression with any number of '!' and at most one sign after them: [118] UnaryExpression."""
    for sign_, after in itertools.pairwise(found[:-1]):
        if sign_.value != "!":
            message = f"{after.value!r} follows {sign_.value!r}: an expression has one sign"
            raise Halt(source, SyntaxFault(message, after.span, source.text, "brackets around the expression with its own sign"))
    built: ast.Expression = found[-1]
    for mark in reversed(found[:-1]):
        built = ast.Unary(ast.UnaryOperator(mark.value), built, extent((mark, built)))
    return built


def _exists(source: QueryText, found: list[Any]) -> ast.ExistsCall:
    """Build an EXISTS or NOT EXISTS: [125] ExistsFunc, [126] NotExistsFunc."""
    return ast.ExistsCall(found[0].value == "NOT", found[-1], extent(found))


def _built_in(source: QueryText, found: list[Any]) -> ast.BuiltInCall:
    """Build a call of a built-in function: [121] BuiltInCall."""
    return ast.BuiltInCall(found[0].value, found[1].members, extent(found))


def _bound(source: QueryText, found: list[Any]) -> ast.BuiltInCall:
    """Build a call of BOUND, which takes a variable, not an expression: [121]."""
    return ast.BuiltInCall("BOUND", (found[2],), extent(found))


def _iri_or_function(source: QueryText, found: list[Any]) -> ast.Expression:
    """Build an IRI or a call of the function with this IRI: [128] iriOrFunction, [70] FunctionCall."""
    return found[0] if len(found) == 1 else ast.FunctionCall(found[0], found[1].members, extent(found))


def _aggregate(source: QueryText, found: list[Any]) -> ast.AggregateCall:
    """Build a call of a set function: [127] Aggregate."""
    distinct = isinstance(found[2], Sign) and found[2].value == "DISTINCT"
    argument = found[3] if distinct else found[2]
    separator = found[-2].lexical if isinstance(found[-3], Sign) and found[-3].value == "=" else None
    return ast.AggregateCall(found[0].value, distinct, None if isinstance(argument, Sign) else argument, separator, extent(found))


def _triple_value(source: QueryText, found: list[Any]) -> ast.BuiltInCall:
    """Build the triple term of an expression, which is a call of TRIPLE: ExprTripleTerm."""
    return ast.BuiltInCall("TRIPLE", tuple(keep_nodes(found)), extent(found))


def _previous(source: QueryText, found: list[Any]) -> ast.PreviousCall:
    return ast.PreviousCall(found[2], extent(found))


def _unknown_function(source: QueryText, value: str, span: Span) -> NoReturn:
    near = difflib.get_close_matches(value.upper(), [*_BUILT_INS, *_AGGREGATES, _PREVIOUS], 1)
    hint = f"{_as_written(near[0])}(...)" if near else "a function of SPARQL, or one named by its IRI"
    raise Halt(source, SyntaxFault(f"there is no function {value}", span, source.text, hint))


def _as_written(name: str) -> str:
    times = {"GETDURATION": "getDURATION", "GETSTARTTIME": "getSTARTTIME", "GETENDTIME": "getENDTIME"}
    return times.get(name, name)


def _members(source: QueryText, found: list[Any]) -> ast.ExpressionList:
    return ast.ExpressionList(tuple(keep_nodes(found)), extent(found))


open_paren, close_paren, comma = sign("("), sign(")"), sign(",")
expression_list = Production(  # [71] ArgList, [77] ExpressionList
    Nested(
        all_of(
            open_paren,
            Opt(
                refused(
                    f"(?i:DISTINCT){_WORD_END}", lambda value: "DISTINCT stands in SPARQL's own aggregates only: no extension aggregates are known"
                )
            ),
            Opt(separated(expression, comma)),
            close_paren,
        )
    ),
    _members,
)
bracketed = Production(Nested(all_of(open_paren, expression, close_paren)), lambda source, found: found[1])  # [120]
exists = Production(  # [125], [126]
    all_of(one_of(all_of(word("NOT", expected=None), word("EXISTS")), word("EXISTS", expected=None)), Labelled(group, "a group in braces")), _exists
)
opt_distinct = Opt(word("DISTINCT", expected=None))
no_distinct = Opt(refused(f"(?i:DISTINCT){_WORD_END}", lambda value: "DISTINCT has no meaning in FIRST and LAST, which are the value of one element"))
aggregate = Ahead(  # [127]
    f"(?i:{'|'.join(_AGGREGATES)}){_WORD_END}",
    Production(
        one_of(
            all_of(word("COUNT", expected=None), Nested(all_of(open_paren, opt_distinct, one_of(sign("*"), expression), close_paren))),
            all_of(
                word("GROUP_CONCAT", expected=None),
                Nested(all_of(open_paren, opt_distinct, expression, Opt(all_of(sign(";"), word("SEPARATOR"), sign("="), string)), close_paren)),
            ),
            all_of(words(("FIRST", "LAST"), None), Nested(all_of(open_paren, no_distinct, expression, close_paren))),
            all_of(
                words(set(_AGGREGATES) - {"COUNT", "GROUP_CONCAT", "FIRST", "LAST"}, None),
                Nested(all_of(open_paren, opt_distinct, expression, close_paren)),
            ),
        ),
        _aggregate,
    ),
)
built_in = one_of(  # [121]
    Production(all_of(words(set(_BUILT_INS) - {"BOUND"}, "a function call"), expression_list), _built_in),
    Production(all_of(word("BOUND", expected=None), Nested(all_of(open_paren, variable, close_paren))), _bound),
    exists,
    aggregate,
    Production(all_of(word(_PREVIOUS, expected=None), Nested(all_of(open_paren, expression, close_paren))), _previous),
    Token(
        f"(?!(?i:{'|'.join((*_KEYWORDS, *_BUILT_INS, *_AGGREGATES, _PREVIOUS))}){_WORD_END})[A-Za-z][A-Za-z0-9_]*{_WORD_END}(?={_SKIP.pattern}\\()",
        _unknown_function,
        None,
    ),
)
iri_or_function = Production(all_of(iri, Opt(expression_list)), _iri_or_function)  # [128]
expression_verb = Labelled(one_of(variable, iri, type_verb), "a predicate")
triple_value = Forward()
triple_value <<= Production(  # ExprTripleTerm
    Nested(
        all_of(
            open_term,
            Labelled(one_of(variable, iri), "a variable or an IRI"),
            expression_verb,
            Labelled(one_of(variable, iri, literal, number, boolean, triple_value), "an object"),
            close_term,
        )
    ),
    _triple_value,
)
primary = one_of(triple_value, variable, number, bracketed, literal, boolean, built_in, iri_or_function)  # [119]
unary_sign = Token(f"!|[+-](?!{_NUMBER[5:]})", _mark, None)
unary = Labelled(Production(all_of(ZeroOrMore(unary_sign), primary), _signed), "an expression")  # [118]
binary_operator = Token(rf"(?!{_IRIREF})(?:\|\||&&|!=|[<>]=|[=<>+\-*/])", _build_operator, "an operator")
in_operator = Token(f"(?i:NOT{_SKIP.pattern}IN|IN){_WORD_END}", _build_operator, None)  # [114]
expression <<= Production(  # [110]-[117]
    all_of(unary, ZeroOrMore(one_of(all_of(binary_operator, unary), all_of(in_operator, expression_list)))), _fold
)
constraint = one_of(bracketed, built_in, Production(all_of(iri, expression_list), _iri_or_function))  # [69]


# ---------------------------------------------------------------- triples
def _property(source: QueryText, found: list[Any]) -> ast.Property:
    objects = keep_nodes(found[1:])
    if not isinstance(found[0], ast.VariableName | ast.IriName | ast.TypeVerb):
        for one in objects:
            if isinstance(one, ast.Annotated):
                message = "an annotation stands after a property path, which is no predicate of a triple"
                raise Halt(source, SyntaxFault(message, one.span, source.text, "an IRI or a variable as the predicate"))
    return ast.Property(found[0], tuple(objects))


def _reifier(source: QueryText, found: list[Any]) -> ast.Reifier:
    return ast.Reifier(found[1] if len(found) > 1 else ast.Anonymous(found[0].span), extent(found))


def _annotation_block(source: QueryText, found: list[Any]) -> ast.AnnotationBlock:
    return ast.AnnotationBlock(tuple(keep_nodes(found)), extent(found))


def _annotated(source: QueryText, found: list[Any]) -> ast.Node | ast.Annotated:
    return found[0] if len(found) == 1 else ast.Annotated(found[0], tuple(found[1:]), extent(found))


def _triple_node(source: QueryText, found: list[Any]) -> ast.TripleNode:
    """Build a triple term: TripleTerm, TripleTermData."""
    subject, verb, object_ = keep_nodes(found)
    return ast.TripleNode(subject, verb, object_, extent(found))


def _reified(source: QueryText, found: list[Any]) -> ast.ReifiedTriple:
    subject, verb, object_, *reifier = keep_nodes(found)
    return ast.ReifiedTriple(subject, verb, object_, reifier[0] if reifier else None, extent(found))


def _build_triples(source: QueryText, found: list[Any]) -> ast.TriplesSameSubject:
    span = Span(found[0].span.start, _last_end(found))
    return ast.TriplesSameSubject(found[0], tuple(keep_nodes(found[1:])), span)


def _last_end(found: list[Any]) -> int:
    last = found[-1]
    end: int = last.objects[-1].span.end if isinstance(last, ast.Property) else last.span.end
    return end


def _blank_properties(source: QueryText, found: list[Any]) -> ast.BlankProperties:
    return ast.BlankProperties(tuple(keep_nodes(found)), extent(found))


def _collection(source: QueryText, found: list[Any]) -> ast.Collection:
    return ast.Collection(tuple(keep_nodes(found)), extent(found))


def _alternative(source: QueryText, found: list[Any]) -> ast.Path:
    """Build an alternative of paths: [89] PathAlternative."""
    return found[0] if len(found) == 1 else ast.AlternativePath(tuple(keep_nodes(found)), extent(found))


def _sequence(source: QueryText, found: list[Any]) -> ast.Path:
    """Build a sequence of paths: [90] PathSequence."""
    return found[0] if len(found) == 1 else ast.SequencePath(tuple(keep_nodes(found)), extent(found))


def _inverse(source: QueryText, found: list[Any]) -> ast.Path:
    """Build an inverse path: [92] PathEltOrInverse, [96] PathOneInPropertySet."""
    return found[0] if len(found) == 1 else ast.InversePath(found[1], extent(found))


def _repeated(source: QueryText, found: list[Any]) -> ast.Path:
    """Build a path with its modifier: [91] PathElt."""
    return found[0] if len(found) == 1 else ast.RepeatedPath(found[0], found[1].value, extent(found))


def _negated(source: QueryText, found: list[Any]) -> ast.NegatedPath:
    """Build a negated property set: [95] PathNegatedPropertySet."""
    return ast.NegatedPath(tuple(keep_nodes(found)), extent(found))


semicolon = Token(f";(?:{_SKIP.pattern};)*+", _mark, "';'")
dot = sign(".")
node = Forward()
path = Forward()
bar, hat = sign("|", expected=None), sign("^", expected=None)
in_property_set = Production(all_of(Opt(hat), one_of(iri, type_verb)), _inverse)  # [96]
negated = Production(  # [95]
    all_of(
        sign("!", expected=None),
        one_of(in_property_set, Nested(all_of(open_paren, Opt(separated(in_property_set, bar)), close_paren))),
    ),
    _negated,
)
path_in_brackets = Production(Nested(all_of(open_paren, path, close_paren)), lambda source, found: found[1])
path_primary = Labelled(one_of(iri, type_verb, negated, path_in_brackets), "the next part of the path, which is no variable")  # [94]
path_modifier = Token(f"\\*|\\?(?!\\w)|\\+(?!{_NUMBER[5:]})", _mark, None)  # [93]
path_element = Production(all_of(path_primary, Opt(path_modifier)), _repeated)  # [91]
path_part = Production(all_of(Opt(hat), path_element), _inverse)  # [92]
path_sequence = Production(separated(path_part, sign("/", expected=None)), _sequence)  # [90]
path <<= Production(separated(path_sequence, bar), _alternative)  # [88], [89]
_NO_PATH = f"(?!{_SKIP.pattern}(?:[/|*]|\\?(?!\\w)|\\+(?!{_NUMBER[5:]})))"
lone_iri = Token(f"(?>{_IRIREF}|{_PNAME}){_NO_PATH}", _iri_name, None)  # a path of one link, the common case, without the way through [88] to [94]
lone_type = Token(f"a{_WORD_END}{_NO_PATH}", lambda source, value, span: ast.TypeVerb(span), None)
verb = Labelled(one_of(variable, lone_iri, lone_type, path), "a predicate")  # [78], [84], [85]
reifier = Production(all_of(sign("~", expected=None), Opt(one_of(variable, iri, blank_label, anonymous))), _reifier)
annotation_block = Forward()
object_ = Production(all_of(Labelled(node, "an object"), ZeroOrMore(one_of(reifier, annotation_block))), _annotated)  # [80], [87]
objects = separated(object_, comma)  # [79], [86]
property_ = Production(all_of(verb, objects), _property)
properties = all_of(property_, ZeroOrMore(all_of(semicolon, Opt(property_))))  # [77], [83]
annotation_block <<= Production(Nested(all_of(sign("{|", expected=None), properties, sign("|}"))), _annotation_block)
blank_properties = Production(Nested(all_of(sign("[", expected=None), properties, sign("]"))), _blank_properties)  # [99], [101]
collection = Production(Nested(all_of(sign("(", expected=None), node, ZeroOrMore(node), sign(")"))), _collection)  # [102], [103]
atom = one_of(variable, iri, literal, number, boolean, blank_label, anonymous)
plain_verb = Labelled(one_of(variable, iri, type_verb), "a predicate")
triple_term, reified_triple = Forward(), Forward()
triple_part = one_of(triple_term, atom)
triple_term <<= Production(
    Nested(all_of(open_term, Labelled(triple_part, "a subject"), plain_verb, Labelled(triple_part, "an object"), close_term)), _triple_node
)
reified_part = one_of(triple_term, reified_triple, atom)
reified_triple <<= Production(
    Nested(
        all_of(
            sign("<<", expected=None), Labelled(reified_part, "a subject"), plain_verb, Labelled(reified_part, "an object"), Opt(reifier), sign(">>")
        )
    ),
    _reified,
)
term = one_of(variable, iri, literal, number, triple_term, boolean, blank_label, anonymous, nil)  # [106], [109]
triples_node = one_of(blank_properties, collection, reified_triple)  # [98], [100]
node <<= one_of(term, triples_node)  # [104], [105]
triples = Labelled(  # [75], [81]
    Production(one_of(all_of(term, properties), all_of(triples_node, Opt(properties))), _build_triples),
    "a triple pattern",
    r"(?!\.(?![0-9]))[^{};,)\]]",
)
triples_block = all_of(triples, ZeroOrMore(all_of(dot, triples)), Opt(dot))  # [52], [55]


# ---------------------------------------------------------------- patterns
def _duration(source: QueryText, found: list[Any]) -> ast.DurationText:
    first = found[0]
    match first:
        case ast.NumericLiteral(text, span):
            return ast.DurationText(text, True, None, span)
        case ast.StringLiteral(lexical, None, None, _):
            return ast.DurationText(lexical, False, found[2] if len(found) > 1 else None, extent(found))
        case Sign():
            return ast.DurationText(first.value, False, None, first.span)
    raise AssertionError(found)


def _filter(source: QueryText, found: list[Any]) -> ast.FilterElement:
    return ast.FilterElement(found[1], extent(found))


def _bind(source: QueryText, found: list[Any]) -> ast.BindElement:
    return ast.BindElement(found[2], found[4], extent(found))


def _optional(source: QueryText, found: list[Any]) -> ast.OptionalElement:
    return ast.OptionalElement(found[1], extent(found))


def _minus(source: QueryText, found: list[Any]) -> ast.MinusElement:
    return ast.MinusElement(found[1], extent(found))


def _combine(source: QueryText, found: list[Any]) -> ast.Combine:
    name = found[0].value
    return ast.Combine(ast.ChainOperator("EQUALSOPTIONAL" if name == "EQUALOPTIONAL" else name), found[1], found[0].span)


def _within(source: QueryText, found: list[Any]) -> ast.WithinStep:
    return ast.WithinStep(found[1], extent(found))


def _build_without(source: QueryText, found: list[Any]) -> ast.WithoutStep:
    return ast.WithoutStep(found[1], found[3] if len(found) > 2 else None, found[0].span)


def _chain(source: QueryText, found: list[Any]) -> ast.Chain:
    return ast.Chain(found[0], tuple(found[1:]), extent(found))


def _build_group(source: QueryText, found: list[Any]) -> ast.GroupGraphPattern:
    return ast.GroupGraphPattern(tuple(keep_nodes(found)), extent(found))


def _where(source: QueryText, found: list[Any]) -> ast.GroupGraphPattern:
    """Build the group after WHERE.

    The paper leaves out the braces around a chain there, with what follows it; its query (5) does so in a sub-SELECT too.
    """
    elements = keep_nodes(found)
    if len(elements) == 1 and not elements[0].steps:
        only: ast.GroupGraphPattern = elements[0].first
        return only
    return ast.GroupGraphPattern(tuple(elements), extent(elements))


def _build_graph(source: QueryText, found: list[Any]) -> ast.GraphElement:
    return ast.GraphElement(found[1], found[2], extent(found))


def _window_element(source: QueryText, found: list[Any]) -> ast.WindowElement:
    return ast.WindowElement(found[1], found[2], extent(found))


def _service(source: QueryText, found: list[Any]) -> ast.ServiceElement:
    return ast.ServiceElement(isinstance(found[1], Sign), found[-2], found[-1], extent(found))


def _values_row(source: QueryText, found: list[Any]) -> ast.ValuesRow:
    return ast.ValuesRow(_data(found), extent(found))


def _data(found: list[Any]) -> tuple[ast.DataTerm | None, ...]:
    return tuple(None if type(part) is Sign else part for part in found[1:-1])


def _values_of_one(source: QueryText, found: list[Any]) -> ast.ValuesElement:
    """Build a VALUES of one variable: [63] InlineDataOneVar."""
    rows = (ast.ValuesRow((None if type(part) is Sign else part,), part.span) for part in found[2:-1])
    return ast.ValuesElement((found[0],), tuple(rows), extent(found))


def _values_of_many(source: QueryText, found: list[Any]) -> ast.ValuesElement:
    """Build a VALUES of several variables: [64] InlineDataFull."""
    variables = tuple(part for part in found if isinstance(part, ast.VariableName))
    return ast.ValuesElement(variables, tuple(part for part in found if isinstance(part, ast.ValuesRow)), extent(found))


def _build_values(source: QueryText, found: list[Any]) -> ast.ValuesElement:
    return ast.ValuesElement(found[1].variables, found[1].rows, extent(found))


def _sub_select(source: QueryText, found: list[Any]) -> ast.SubSelectElement:
    """Build a sub-SELECT: [8] SubSelect."""
    return ast.SubSelectElement(_selected(found), found[0].span)


_SEQOPTIONAL = (
    "SEQOPTIONAL is refused: a later right operand would make an emitted solution invalid; use OPTIONALSEQ, or WITHOUT ... FOR with a duration"
)
_OPERATOR_NAMES = [*(operator.value for operator in ast.ChainOperator), "EQUALOPTIONAL"]

braces = Labelled(group, "a group in braces")
bare_duration = Token(r"[+-]?[Pp][0-9A-Za-z]*(?:\.[0-9A-Za-z]+)*", lambda source, value, span: Sign(value, span), None)
duration = Labelled(  # Dur
    Production(one_of(all_of(string, Opt(all_of(sign("^^", expected=None), iri))), number, bare_duration), _duration),
    'a duration such as "PT10S"^^xsd:duration, or a number of seconds',
)
step = one_of(
    Production(all_of(words(_OPERATOR_NAMES, "an operator such as SEQ"), braces), _combine),
    Production(all_of(counting("WITHIN"), duration), _within),
    Production(all_of(word("WITHOUT"), braces, Opt(all_of(word("FOR"), duration))), _build_without),
    refused(f"(?i:SEQOPTIONAL){_WORD_END}", lambda value: _SEQOPTIONAL),
)
chain = Production(all_of(group, ZeroOrMore(step)), _chain)  # [67], Chain
filter_ = Production(all_of(word("FILTER"), Labelled(constraint, "a condition in brackets or a function call")), _filter)  # [68]
bind = Production(all_of(word("BIND"), Nested(open_paren), expression, word("AS"), variable, close_paren), _bind)  # [60]
optional = Production(all_of(word("OPTIONAL"), braces), _optional)  # [57]
minus = Production(all_of(word("MINUS"), braces), _minus)  # [66]
applied = one_of(filter_, optional, bind, minus)
name = Labelled(one_of(variable, iri), "a variable or an IRI")  # [107]
graph = Production(all_of(word("GRAPH"), name, braces), _build_graph)  # [58]
service = Production(all_of(word("SERVICE", expected=None), Opt(word("SILENT", expected=None)), name, braces), _service)  # [59]
window_element = Production(all_of(word("WINDOW", expected=None), name, braces), _window_element)
open_brace, close_brace = sign("{"), sign("}")
triple_data = Forward()
triple_data <<= Production(  # TripleTermData
    Nested(
        all_of(
            open_term,
            Labelled(iri, "the IRI of a subject"),
            Labelled(one_of(iri, type_verb), "a predicate"),
            Labelled(one_of(iri, literal, number, boolean, triple_data), "an object without variables"),
            close_term,
        )
    ),
    _triple_node,
)
data_term = Labelled(one_of(number, triple_data, iri, literal, boolean, word("UNDEF")), "an IRI, a literal or UNDEF", "[^(){}]")  # [65]
row = Production(Nested(all_of(open_paren, ZeroOrMore(data_term), close_paren)), _values_row)
data = one_of(  # [62]
    Production(all_of(variable, open_brace, ZeroOrMore(data_term), close_brace), _values_of_one),  # [63]
    Production(all_of(open_paren, ZeroOrMore(variable), close_paren, open_brace, ZeroOrMore(row), close_brace), _values_of_many),  # [64]
)
values = Production(all_of(word("VALUES"), data), _build_values)  # [28], [61]
not_triples = Labelled(  # [56]
    one_of(chain, applied, graph, values, window_element, service), "a group, FILTER, BIND, OPTIONAL, MINUS, GRAPH, VALUES", "[{A-Za-z]"
)
group_body = all_of(Opt(triples_block), ZeroOrMore(all_of(not_triples, Opt(dot), Opt(triples_block))))  # [54]
sub_select = Forward()
group <<= Production(Nested(all_of(sign("{"), one_of(Ahead(f"(?i:SELECT){_WORD_END}", sub_select), group_body), sign("}"))), _build_group)  # [53]


# ---------------------------------------------------------------- queries
def _base(source: QueryText, found: list[Any]) -> ast_queries.BaseDeclaration:
    return ast_queries.BaseDeclaration(found[1], extent(found))


def _prefix(source: QueryText, found: list[Any]) -> ast_queries.PrefixDeclaration:
    return ast_queries.PrefixDeclaration(found[1].prefix, found[2], extent(found))


def _stream(source: QueryText, found: list[Any]) -> ast_queries.StreamName:
    (name,) = found
    return ast_queries.StreamName(None if isinstance(name, Sign) else name, name.span)


def _into_background(source: QueryText, found: list[Any]) -> ast_queries.GraphName:
    return ast_queries.GraphName(found[-1], extent(found))


class Clause:
    """Holds a clause by its keyword, with its parts; it only serves to build nodes."""

    __slots__ = ("name", "parts", "span")

    def __init__(self, name: str, parts: tuple[Any, ...], span: Span) -> None:
        self.name = name
        self.parts = parts
        self.span = span


def _clause(source: QueryText, found: list[Any]) -> Clause:
    return Clause(found[0].value, tuple(keep_nodes(found)), extent(found))


def _from_stream(source: QueryText, found: list[Any]) -> ast_queries.FromStream:
    return ast_queries.FromStream(found[1], extent(found))


def _from_graph(source: QueryText, found: list[Any]) -> ast_queries.FromGraph:
    return ast_queries.FromGraph(found[-1], len(found) == 3, extent(found))


def _from_window(source: QueryText, found: list[Any]) -> ast_queries.FromWindow:
    name, stream, length, width = keep_nodes(found)
    return ast_queries.FromWindow(name, stream, length, width, extent(found))


def _registration(source: QueryText, found: list[Any]) -> ast_queries.RegisterClause:
    return ast_queries.RegisterClause(found[1].value, found[2], extent(found))


def _item(source: QueryText, found: list[Any]) -> ast.SelectItem:
    if len(found) == 1:
        return ast.SelectItem(None, found[0], found[0].span)
    return ast.SelectItem(found[1], found[3], extent(found))


def _group_key(source: QueryText, found: list[Any]) -> ast.GroupKey:
    """Build a key of GROUP BY: [20] GroupCondition."""
    expression, *variable = keep_nodes(found)
    return ast.GroupKey(expression, variable[0] if variable else None, extent(found))


def _window_clause(source: QueryText, found: list[Any]) -> ast.WindowClause | ast.RunClause:
    if found[2].value in ("SESSION", "RUN"):
        return _run_clause(source, found)
    if found[2].value == "ROWS":
        return ast.WindowClause(None, None, found[3], extent(found))
    length, *width = keep_nodes(found)
    return ast.WindowClause(length, width[0] if width else None, None, extent(found))


def _run_clause(source: QueryText, found: list[Any]) -> ast.RunClause:
    parts: dict[str, Any] = {}
    for part in found[3:]:
        if isinstance(part, Clause):
            if part.name in parts:
                message = f"{part.name} stands twice in one RUN"
                raise Halt(source, SyntaxFault(message, part.span, source.text, "each of WHILE, GAP, UNTIL and WITHIN at most once"))
            parts[part.name] = part.parts[0]
        elif isinstance(part, ast.DurationText):
            parts["GAP"] = part
    closed = isinstance(found[-2], Sign) and found[-2].value == "CLOSED"
    return ast.RunClause(parts.get("WHILE"), parts.get("GAP"), parts.get("UNTIL"), parts.get("WITHIN"), closed, extent(found))


def _order_condition(source: QueryText, found: list[Any]) -> ast.OrderCondition:
    """Build a comparator of ORDER BY: [24] OrderCondition."""
    return ast.OrderCondition(found[-1], isinstance(found[0], Sign) and found[0].value == "DESC", extent(found))


def _modifier(source: QueryText, found: list[Any]) -> ast.SolutionModifier:
    """Build the solution modifiers: [18] SolutionModifier."""
    parts = {clause.name: clause.parts for clause in found}
    one = {name: parts[name][0] if name in parts else None for name in ("WINDOW", "LIMIT", "OFFSET")}
    span = extent(found) if found else None
    return ast.SolutionModifier(
        parts.get("GROUP", ()), parts.get("HAVING", ()), one["WINDOW"], parts.get("ORDER", ()), one["LIMIT"], one["OFFSET"], span
    )


def _body(source: QueryText, found: list[Any]) -> ast.Body:
    where, modifier, *trailing = keep_nodes(found)
    return ast.Body(where, modifier, trailing[0] if trailing else None)


def _sources(found: list[Any]) -> tuple[ast_queries.Source, ...]:
    return tuple(part for part in found if isinstance(part, ast_queries.Source))


def _selected(found: list[Any]) -> ast.SelectForm:
    distinct = any(isinstance(part, Sign) and part.value == "DISTINCT" for part in found)
    return ast.SelectForm(distinct, tuple(part for part in found if isinstance(part, ast.SelectItem)), found[-1], found[0].span)


def _build_select(source: QueryText, found: list[Any]) -> ast_queries.SelectQuery:
    return ast_queries.SelectQuery(_selected(found), _sources(found))


def _template(source: QueryText, found: list[Any]) -> ast.GroupGraphPattern:
    return ast.GroupGraphPattern(tuple(keep_nodes(found)), extent(found))


def _construct(source: QueryText, found: list[Any]) -> ast_queries.ConstructQuery:
    body: ast.Body = found[-1]
    template = next((part for part in found if isinstance(part, ast.GroupGraphPattern)), body.where)
    triples = tuple(part for part in template.elements if isinstance(part, ast.TriplesSameSubject))
    into = next((part for part in found if isinstance(part, ast_queries.StreamName | ast_queries.GraphName)), None)
    return ast_queries.ConstructQuery(triples, into, _sources(found), body, found[0].span)


def _ask(source: QueryText, found: list[Any]) -> ast_queries.AskQuery:
    return ast_queries.AskQuery(_sources(found), found[-1])


def _describe(source: QueryText, found: list[Any]) -> ast_queries.DescribeQuery:
    targets = tuple(part for part in found if isinstance(part, ast.IriName | ast.VariableName))
    return ast_queries.DescribeQuery(targets, _sources(found), found[-1])


def _build_document(source: QueryText, found: list[Any]) -> ast_queries.Document:
    declarations = tuple(part for part in found if isinstance(part, ast_queries.Declaration))
    registration = next((part for part in found if isinstance(part, ast_queries.RegisterClause)), None)
    return ast_queries.Document(declarations, registration, found[-2])


_UPDATE = {
    name: f"{name} is SPARQL Update: a continuous query changes no data; load background through the server's interface"
    for name in ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
}

prefix_name = Token(f"(?:{_PREFIX})?:", _prefixed_name, "a prefix such as ex:")  # [140]
base = Production(all_of(word("BASE"), iri_ref), _base)  # [5]
prefix = Production(all_of(word("PREFIX"), prefix_name, iri_ref), _prefix)  # [6]
short_string = Token("|".join(_SHORT_STRINGS), _mark, "a string in single quotes or double quotes")
version = all_of(word("VERSION"), short_string)  # which says what the text is written for, and nothing follows from it
declarations = ZeroOrMore(one_of(base, prefix, version))  # [4]
stream_name = Production(Labelled(one_of(iri, word("default")), "the IRI of a stream"), _stream)
in_stream = Production(all_of(word("STREAM"), stream_name), lambda source, found: found[1])
window_length = Labelled(  # Dur
    Production(one_of(all_of(string, Opt(all_of(sign("^^", expected=None), iri))), bare_duration), _duration),
    'a duration such as "PT10S"^^xsd:duration',
)
open_bracket, close_bracket = sign("["), sign("]")
sliding = all_of(open_bracket, word("RANGE"), window_length, word("STEP"), window_length, close_bracket)
from_ = one_of(  # [13]
    Production(all_of(word("FROM"), in_stream), _from_stream),
    Production(all_of(word("FROM", expected=None), word("NAMED"), word("WINDOW"), iri, word("ON"), stream_name, sliding), _from_window),
    Production(all_of(word("FROM", expected=None), Opt(word("NAMED")), Labelled(iri, "the IRI of a graph")), _from_graph),  # [14]-[16]
)
into = one_of(
    Production(all_of(word("INTO"), in_stream), lambda source, found: found[1]),
    Production(all_of(word("INTO", expected=None), word("BACKGROUND"), Labelled(iri, "the IRI of a graph")), _into_background),
)
item = Production(one_of(variable, Nested(all_of(open_paren, expression, word("AS"), variable, close_paren))), _item)
items = Labelled(one_of(sign("*"), all_of(item, ZeroOrMore(Labelled(item, "another variable")))), "variables, '*' or (expression AS ?variable)")
where = one_of(  # [17]
    all_of(word("WHERE"), Production(all_of(Labelled(chain, "a pattern in braces"), ZeroOrMore(Labelled(applied, "FILTER"))), _where)),
    Labelled(group, "a pattern in braces"),
)
call = one_of(built_in, Production(all_of(iri, expression_list), _iri_or_function))
group_key = Production(  # [20]
    one_of(variable, Nested(all_of(open_paren, expression, Opt(all_of(word("AS"), variable)), close_paren)), call), _group_key
)
group_clause = Production(  # [19]
    all_of(
        word("GROUP", expected="a solution modifier such as GROUP BY or LIMIT"),
        word("BY"),
        Labelled(group_key, "a variable, a function call or (expression AS ?variable)"),
        ZeroOrMore(group_key),
    ),
    _clause,
)
having_clause = Production(  # [21], [22]
    all_of(word("HAVING", expected=None), Labelled(constraint, "a condition in brackets or a function call"), ZeroOrMore(constraint)), _clause
)
run_part = one_of(  # RunPart
    Production(all_of(word("WHILE"), Labelled(bracketed, "a condition in brackets")), _clause),
    Production(all_of(word("GAP"), window_length), _clause),
    Production(all_of(word("UNTIL"), braces), _clause),
    Production(all_of(counting("WITHIN"), duration), _clause),
)
run_report = Opt(words(("EACH", "CLOSED"), "EACH or CLOSED"))  # Report
window_body = one_of(  # WindowBody
    all_of(word("RANGE"), window_length, Opt(all_of(word("STEP"), window_length))),
    all_of(counting("ROWS"), integer),
    all_of(word("SESSION"), window_length, run_report),
    all_of(word("RUN"), run_part, ZeroOrMore(run_part), run_report),
)
window_clause = Production(  # WindowClause
    Production(
        all_of(word("WINDOW", expected=None), open_bracket, window_body, close_bracket),
        _window_clause,
    ),
    lambda source, found: Clause("WINDOW", (found[0],), found[0].span),
)
order_condition = Production(  # [24]
    one_of(variable, all_of(words(("ASC", "DESC"), None), Labelled(bracketed, "an expression in brackets")), constraint), _order_condition
)
order_clause = Production(  # [23]
    all_of(
        word("ORDER", expected=None),
        word("BY"),
        Labelled(order_condition, "a variable, a function call, ASC(...) or DESC(...)"),
        ZeroOrMore(order_condition),
    ),
    _clause,
)
limit_clause = Production(all_of(counting("LIMIT", expected=None), integer), _clause)  # [26]
offset_clause = Production(all_of(counting("OFFSET", expected=None), integer), _clause)  # [27]
limits = one_of(all_of(limit_clause, Opt(offset_clause)), all_of(offset_clause, Opt(limit_clause)))  # [25]
modifier = Production(  # [18]
    all_of(Opt(group_clause), Opt(having_clause), Opt(window_clause), Opt(order_clause), Opt(limits)), _modifier
)
trailing = all_of(modifier, Opt(values))  # [18], [28]
body = Production(all_of(where, trailing), _body)
no_pattern = Token("", lambda source, value, span: ast.GroupGraphPattern((), span), None)
select_clause = all_of(word("SELECT"), Opt(words(("DISTINCT", "REDUCED"), None)), items)  # [9]
sub_select <<= Production(all_of(select_clause, body), _sub_select)  # [8]
select = Production(all_of(select_clause, ZeroOrMore(from_), body), _build_select)  # [7]
template = Labelled(Production(all_of(sign("{"), Opt(triples_block), sign("}")), _template), "a template in braces")  # [73], [74]
construct = Production(  # [10]
    all_of(
        word("CONSTRUCT"),
        one_of(
            all_of(template, Opt(into), ZeroOrMore(from_), body),
            all_of(Opt(into), ZeroOrMore(from_), Production(all_of(word("WHERE"), template, trailing), _body)),
        ),
    ),
    _construct,
)
ask = Production(all_of(word("ASK"), ZeroOrMore(from_), body), _ask)  # [12]
targets = Labelled(one_of(sign("*"), all_of(name, ZeroOrMore(name))), "variables, IRIs or '*'")
describe = Production(
    all_of(word("DESCRIBE"), targets, ZeroOrMore(from_), Production(all_of(one_of(where, no_pattern), trailing), _body)), _describe
)  # [11]
register = Production(
    all_of(word("REGISTER", expected=None), words(("RSTREAM", "ISTREAM", "DSTREAM"), "RSTREAM, ISTREAM or DSTREAM"), stream_name, word("AS")),
    _registration,
)
end = Token("\\Z", _mark, "the end of the query")
document = Production(  # [1]-[4]
    all_of(declarations, Opt(all_of(register, declarations)), one_of(select, construct, ask, describe, refused_words(_UPDATE)), end), _build_document
)
document.parse_with_tabs()
document.streamline()


# ---------------------------------------------------------------- faults
def parse_document(text: str) -> ast_queries.Document:
    """Parse a query's text. Raises `QueryError`."""
    source = QueryText.from_text(text)
    try:
        parsed: ast_queries.Document = document.parse_string(source)[0]
    except Halt as halt:
        raise halt.fault from None
    except ParseException:
        raise _fault(source) from None
    return parsed


_AFTER_GROUPS = dict.fromkeys(_OPERATOR_NAMES, "{ ... }") | {"WITHIN": "10", "WITHOUT": '{ ... } FOR "PT1H"^^xsd:duration'}
"""These keywords stand after a group in braces; the value is what follows the keyword in turn."""
_APPLIED = ("FILTER", "BIND", "OPTIONAL", "MINUS")
_MISPLACED = {
    "SELECT": ("a triple pattern", "a SELECT inside a group stands alone in braces of its own: { SELECT ... }"),
    "FROM": ("the end of the query", "FROM comes too late: what a query reads is said before WHERE"),
    "INTO": ("the end of the query", "INTO STREAM and INTO BACKGROUND are allowed only in a CONSTRUCT, after its template"),
}
"""These keywords are known by what was expected in their place."""


def _fault(source: QueryText) -> QueryError:
    """Return the fault at the furthest place: the lexeme found there, and what was expected instead."""
    at = source.furthest
    found = re.compile(_LEXEME, re.S).match(source, at)
    lexeme = found[0] if found else ""
    if lexeme.upper() == "SEQOPTIONAL":  # also without the braces that an operator needs, as the paper prints it
        return Unsupported(_SEQOPTIONAL, Span(at, at + len(lexeme)), source.text)
    slip = likely_slip(Stop(source, at, lexeme, source.expected, (*_BUILT_INS, *_AGGREGATES), (*_AFTER_GROUPS, *_APPLIED)))
    if slip is not None:
        return SyntaxFault(slip.message, Span(slip.start, slip.end), source.text, slip.expected)
    span = Span(at, at + len(lexeme))
    return SyntaxFault(_message(source, at, lexeme), span, source.text, _expectation(source, at, lexeme))


def _message(source: QueryText, at: int, lexeme: str) -> str:
    if not lexeme:
        return "the query ends too early"
    if lexeme in ('"', "'"):
        return "a string that does not end, or with a bad escape, starts here"
    if lexeme == "<" and "an operator" not in source.expected:
        return "an IRI that does not end, or with a character that no IRI has, starts here"
    if lexeme[0] == "<" and "an operator" in source.expected:
        return f"{lexeme} reads as an IRI here, since the longest token counts; a comparison needs a blank after '<'"
    misplaced = _misplaced(source, lexeme.upper())
    if misplaced is not None:
        return misplaced
    if lexeme.upper() in _AFTER_GROUPS:
        return f"{lexeme} has no group in braces directly on its left"
    near = _near_keyword(lexeme)
    if near is not None:
        return f"unexpected {lexeme}; was {near} meant?"
    if not lexeme.isprintable():
        return f"unexpected character U+{ord(lexeme[0]):04X}"
    return f"unexpected {lexeme if len(lexeme) <= 40 else lexeme[:40] + '...'}"


def _misplaced(source: QueryText, word: str) -> str | None:
    """Return what is said of a keyword that has its place elsewhere."""
    if word in _MODIFIERS and "VALUES" in source.expected:
        return f"{word} comes too late or twice: the order is GROUP BY, HAVING, WINDOW, ORDER BY, LIMIT and OFFSET"
    expected, message = _MISPLACED.get(word, ("", None))
    return message if expected in source.expected else None


def _near_keyword(lexeme: str) -> str | None:
    if not _WORD.fullmatch(lexeme) or lexeme.upper() in _KEYWORDS:
        return None
    near = difflib.get_close_matches(lexeme.upper(), _KEYWORDS, 1, 0.7) or difflib.get_close_matches(
        lexeme.upper(), [keyword for keyword in _KEYWORDS if len(keyword) == len(lexeme)], 1, 0.66
    )  # two letters of three, as in SEK
    return near[0] if near else None


def _expectation(source: QueryText, at: int, lexeme: str) -> str:
    """Return what was expected, in human words. After a keyword the keyword is named, since that is what the writer sees."""
    expected = list(source.expected)
    if len(expected) > 1 and lexeme.upper() in _AFTER_GROUPS:
        return f"{{ ... }} {lexeme.upper()} {_AFTER_GROUPS[lexeme.upper()]}"
    if _misplaced(source, lexeme.upper()) is not None:
        return ""
    before = _WORD_BEFORE.search(source, 0, at)
    if len(expected) == 1 and before is not None and before[1].upper() in (*_KEYWORDS, *_BUILT_INS):
        return f"{expected[0]} after {before[1]}"
    if len(expected) < 2:
        return "".join(expected)
    return f"{', '.join(expected[:-1])} or {expected[-1]}"

"""Text to syntax: the SPARQL 1.1 grammar with EP-SPARQL's Chain (semantics.md section 11). The numbers are SPARQL's rule numbers.

The grammar is LL(1) but for a keyword here and there, so a failed alternative is never long. Faults are placed where the text stopped making
sense: each token that does not match notes what it expected, and the furthest place noted is the fault's (`Source.note`). What SPARQL has and
this version has not is recognised at its keyword by a `Refused` token.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, cast

from pyparsing import And, Forward, MatchFirst, Opt, ParseElementEnhance, ParseException, ParseFatalException, ParserElement, ZeroOrMore
from pyparsing import Token as PyparsingToken

from epsparql import syntax
from epsparql.errors import QueryError, Span, SyntaxFault, Unsupported

MAX_DEPTH = 100
"""Brackets of any kind open at one place."""

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
_IRIREF = r'<[^<>"{}|^`\\\x00-\x20]*+>'  # [139]
_PNAME = f"(?:{_PREFIX})?:(?:{_LOCAL})?"  # [140], [141]
_ECHAR = r"\\[tbnrf\\\"']"  # [160]
_STRING = "|".join(
    (
        rf'"""(?:"{{0,2}}(?:[^"\\]|{_ECHAR}))*"""',  # [159]
        rf"'''(?:'{{0,2}}(?:[^'\\]|{_ECHAR}))*'''",  # [158]
        rf'"(?!"")(?:[^"\\\n\r]|{_ECHAR})*+"',  # [157]
        rf"'(?!'')(?:[^'\\\n\r]|{_ECHAR})*+'",  # [156]
    )
)
_NUMBER = r"[+-]?(?:[0-9]+\.[0-9]*[eE][+-]?[0-9]+|\.?[0-9]+[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+)"  # [146]-[154]
_WORD_END = r"(?![\w\-:])"
_SKIP = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*+)*+")
_LEXEME = "|".join(  # only what a fault shows, so \\w is near enough
    (_STRING, _IRIREF, r"[?$]\w+", r"(?:\w[\w.\-]*)?:[\w:]*", r"_:[\w.\-]+", r"@[\w\-]+", _NUMBER, r"\w[\w\-]*", r"&&|\|\||[<>!]=|\^\^|.")
)
_WORD = re.compile("[A-Za-z_]+")
_WORD_BEFORE = re.compile("([A-Za-z_]+)[ \t\r\n]*\\Z")
_ESCAPED = re.compile(r"\\(.)")
_CODEPOINT = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")

_UNESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}

_KEYWORDS = (
    "BASE", "PREFIX", "SELECT", "DISTINCT", "REDUCED", "AS", "CONSTRUCT", "FROM", "STREAM", "INTO", "WHERE", "FILTER", "BIND", "OPTIONAL", "MINUS",
    "UNION", "AND", "SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL", "MEETS", "DURING", "STARTS", "FINISHES", "OVERLAPS", "PAR", "WITHIN",
    "WITHOUT", "FOR", "EXISTS", "NOT", "IN",
)  # fmt: skip
_BUILT_INS = (
    "STR", "LANG", "LANGMATCHES", "DATATYPE", "BOUND", "IRI", "URI", "BNODE", "RAND", "ABS", "CEIL", "FLOOR", "ROUND", "CONCAT", "STRLEN", "UCASE",
    "LCASE", "ENCODE_FOR_URI", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER", "YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS",
    "TIMEZONE", "TZ", "NOW", "UUID", "STRUUID", "MD5", "SHA1", "SHA256", "SHA384", "SHA512", "COALESCE", "IF", "STRLANG", "STRDT", "SAMETERM",
    "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "REGEX", "SUBSTR", "REPLACE", "GETDURATION", "GETSTARTTIME", "GETENDTIME",
)  # fmt: skip
_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")


# ---------------------------------------------------------------- the text and its furthest fault
class Source(str):
    """A query's text with its codepoint escapes (SPARQL 19.2) decoded, and the state of one parse of it.

    `furthest` is the last place at which some token failed, `expected` what the tokens that failed there would have been.
    """

    text: str
    offsets: list[int] | None
    furthest: int
    expected: list[str]
    depth: int

    @classmethod
    def of(cls, text: str) -> "Source":
        decoded, offsets = _decode(text)
        source = cls(decoded)
        source.text, source.offsets = text, offsets
        source.furthest, source.expected, source.depth = -1, [], 0
        return source

    def span(self, start: int, end: int) -> Span:
        """The stretch of the text as written."""
        if self.offsets is None:
            return Span(start, end)
        return Span(self.offsets[start], self.offsets[end])

    def note(self, at: int, expected: str | None) -> None:
        if at < self.furthest:
            return
        if at > self.furthest:
            self.furthest, self.expected = at, []
        if expected is not None and expected not in self.expected:
            self.expected.append(expected)

    def skip(self, at: int) -> int:
        """The place of the next token: blanks and comments are passed over."""
        found = _SKIP.match(self, at)
        return found.end() if found else at


def _decode(text: str) -> tuple[str, list[int] | None]:
    """Replaces `\\uXXXX` and `\\UXXXXXXXX`; the offsets lead from the result's code points to the text's."""
    decoded = "\n" + text[1:] if text.startswith("\ufeff") else text
    if "\\u" not in text and "\\U" not in text:
        return decoded, None
    parts: list[str] = []
    offsets: list[int] = []
    at = 0
    for found in _CODEPOINT.finditer(decoded):
        code = found[1] or found[2]
        if code is None:
            continue
        if int(code, 16) > 0x10FFFF or 0xD800 <= int(code, 16) <= 0xDFFF:
            raise SyntaxFault(f"{found[0]} is no Unicode character", Span(*found.span()), text, "a code point that is a character")
        parts += decoded[at : found.start()], chr(int(code, 16))
        offsets += range(at, found.start() + 1)
        at = found.end()
    return "".join([*parts, decoded[at:]]), [*offsets, *range(at, len(text) + 1)]


class Halt(ParseFatalException):
    """Ends the parse with a fault that no other alternative can mend."""

    def __init__(self, source: Source, fault: QueryError) -> None:
        super().__init__(source, 0, "halt")
        self.fault = fault


# ---------------------------------------------------------------- kinds of parser elements
class Mark:
    """A keyword (in capitals) or a sign, which only serves to build nodes."""

    __slots__ = ("span", "value")

    def __init__(self, value: str, span: Span) -> None:
        self.value = value
        self.span = span


Build = Callable[[Source, str, Span], object]
Result = tuple[int, Any]


class Token(PyparsingToken):
    """A terminal: blanks and comments before it are passed over, and a mismatch is noted in the source."""

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
        source = cast(Source, instring)
        found = self.match(source, loc)
        if found is None:
            at = source.skip(loc)
            source.note(at, self.expected)
            raise ParseException(source, at, self.errmsg, self)
        start, end = found.span(1)
        return end, [self.build(source, found[1], source.span(start, end))]


class Rule(ParseElementEnhance):
    """A production: `make` turns what `expr` found into one node."""

    def __init__(self, expr: ParserElement, make: Callable[[Source, list[Any]], object]) -> None:
        super().__init__(expr)
        self.make = make

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        assert self.expr is not None
        loc, found = self.expr._parse(instring, loc, do_actions, callPreParse=False)
        return loc, [self.make(cast(Source, instring), list(found))]


class Labelled(ParseElementEnhance):
    """Names what is expected where `expr` fails at its very start; `first` are the signs it can start with, which spares hopeless attempts."""

    def __init__(self, expr: ParserElement, label: str, first: str = "") -> None:
        super().__init__(expr)
        self.label = label
        self.can_start = re.compile(first).match

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        assert self.expr is not None
        source = cast(Source, instring)
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


class Nested(ParseElementEnhance):
    """Something in brackets: counts the depth, which a query may not drive past `MAX_DEPTH`."""

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        assert self.expr is not None
        source = cast(Source, instring)
        source.depth += 1
        try:
            if source.depth > MAX_DEPTH:
                _refuse_depth(source, source.skip(loc))
            return self.expr._parse(instring, loc, do_actions, callPreParse=False)
        finally:
            source.depth -= 1


def _refuse_depth(source: Source, at: int) -> None:
    if source[at : at + 1] in ("{", "(", "["):
        span = source.span(at, at + 1)
        raise Halt(source, SyntaxFault(f"brackets are nested more than {MAX_DEPTH} deep here", span, source.text, "a flatter query"))


def _mark(source: Source, value: str, span: Span) -> Mark:
    return Mark(value.upper(), span)


def word(name: str, *, expected: str | None = "") -> Token:
    """A keyword; it is mentioned in faults unless `expected` is None."""
    return Token(f"(?i:{name}){_WORD_END}", _mark, name if expected == "" else expected)


def words(names: Iterable[str], expected: str | None) -> Token:
    return Token(f"(?i:{'|'.join(sorted(names, key=len, reverse=True))}){_WORD_END}", _mark, expected)


def sign(text: str, *, expected: str | None = "") -> Token:
    return Token(re.escape(text), _mark, f"'{text}'" if expected == "" else expected)


def refused(pattern: str, reason: Callable[[str], str]) -> Token:
    """What this version does not support: found, it ends the parse; otherwise it is not mentioned."""

    def build(source: Source, value: str, span: Span) -> NoReturn:
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


def nodes(found: Iterable[Any]) -> list[Any]:
    """What was found without the keywords and signs."""
    return [part for part in found if type(part) is not Mark]


def extent(found: Sequence[Any]) -> Span:
    """From the first node or mark to the last one."""
    return Span(found[0].span.start, found[-1].span.end)


# ---------------------------------------------------------------- terms
def _iri_ref(source: Source, value: str, span: Span) -> syntax.IriRef:
    return syntax.IriRef(value[1:-1], span)


def _prefixed_name(source: Source, value: str, span: Span) -> syntax.PrefixedName:
    prefix, _, local = value.partition(":")
    return syntax.PrefixedName(prefix, _ESCAPED.sub(r"\1", local) if "\\" in local else local, span)


def _iri_name(source: Source, value: str, span: Span) -> syntax.IriName:
    return _iri_ref(source, value, span) if value[0] == "<" else _prefixed_name(source, value, span)


def _string(source: Source, value: str, span: Span) -> syntax.StringLiteral:
    quotes = 3 if value[:3] in ('"""', "'''") else 1
    lexical = value[quotes:-quotes]
    if "\\" in lexical:
        lexical = _ESCAPED.sub(lambda found: _UNESCAPED[found[1]], lexical)
    return syntax.StringLiteral(lexical, None, None, span)


def _literal(source: Source, found: list[Any]) -> syntax.StringLiteral:
    """[129] RDFLiteral"""
    string: syntax.StringLiteral = found[0]
    if len(found) == 1:
        return string
    if isinstance(found[1], Mark):
        if len(found) == 3:
            return syntax.StringLiteral(string.lexical, None, found[2], extent(found))
        return syntax.StringLiteral(string.lexical, found[1].value.lower()[1:], None, extent(found))
    raise AssertionError(found)


iri_ref = Token(_IRIREF, _iri_ref, "an IRI in '<' and '>'")
iri = Token(f"{_IRIREF}|{_PNAME}", _iri_name, "an IRI")  # [136]
variable = Token(f"[?$]{_VARNAME}", lambda source, value, span: syntax.VariableName(value[1:], span), "a variable")  # [108]
string = Token(_STRING, _string, "a string")  # [135]
number = Token(_NUMBER, lambda source, value, span: syntax.NumericLiteral(value, span), "a number")  # [130]
boolean = Token(f"(?i:true|false){_WORD_END}", lambda source, value, span: syntax.BooleanLiteral(value.lower(), span), "true or false")  # [134]
language = Token("@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*", _mark, None)  # [145]
literal = Rule(all_of(string, Opt(one_of(language, all_of(sign("^^", expected=None), iri)))), _literal)  # [129]
blank_label = Token(  # [142], [138]
    f"_:[{_CHARS_U}0-9](?:\\.*+[{_CHARS}])*+", lambda source, value, span: syntax.BlankLabel(value[2:], span), "a blank node"
)
anonymous = Token(r"\[[ \t\r\n]*\]", lambda source, value, span: syntax.Anonymous(span), None)  # [163]
nil = Token(r"\([ \t\r\n]*\)", lambda source, value, span: syntax.Collection((), span), None)  # [161]
quoted_triple = refused("<<", lambda value: "quoted triples (RDF-star) are not supported")

# ---------------------------------------------------------------- expressions
group = Forward()
expression = Forward()

_OPERATORS = {operator.symbol: operator for operator in syntax.BinaryOperator}
_TIGHTEST = max(operator.strength for operator in syntax.BinaryOperator)
_COMPARING = syntax.BinaryOperator.EQUAL.strength


def _operator(source: Source, value: str, span: Span) -> Mark:
    return Mark("NOT IN" if len(value) > 3 else value.upper(), span)


def _fold(source: Source, found: list[Any]) -> syntax.Expression:
    """Operands and operators in turn, folded by strength: [111]-[117], where all but comparisons associate to the left."""
    operands: list[syntax.Expression] = [found[0]]
    operators: list[Mark] = []
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


def _reduce(operands: list[syntax.Expression], operators: list[Mark]) -> None:
    right, left = operands.pop(), operands.pop()
    operands.append(syntax.Binary(_OPERATORS[operators.pop().value], left, right, extent((left, right))))


def _refuse_comparison_chain(source: Source, left: Mark, right: Mark) -> None:
    if _OPERATORS[left.value].strength == _OPERATORS[right.value].strength == _COMPARING:
        message = f"{left.value!r} and {right.value!r} cannot follow each other: a comparison gives true or false"
        raise Halt(source, SyntaxFault(message, right.span, source.text, "'&&', '||', or brackets around one comparison"))


def _signed(source: Source, found: list[Any]) -> syntax.Expression:
    """[118] UnaryExpression, any number of signs"""
    result: syntax.Expression = found[-1]
    for mark in reversed(found[:-1]):
        result = syntax.Unary(syntax.UnaryOperator(mark.value), result, extent((mark, result)))
    return result


def _exists(source: Source, found: list[Any]) -> syntax.ExistsCall:
    """[125] ExistsFunc, [126] NotExistsFunc"""
    return syntax.ExistsCall(found[0].value == "NOT", found[-1], extent(found))


def _built_in(source: Source, found: list[Any]) -> syntax.BuiltInCall:
    """[121] BuiltInCall"""
    return syntax.BuiltInCall(found[0].value, found[1].members, extent(found))


def _iri_or_function(source: Source, found: list[Any]) -> syntax.Expression:
    """[128] iriOrFunction, [70] FunctionCall"""
    return found[0] if len(found) == 1 else syntax.FunctionCall(found[0], found[1].members, extent(found))


def _unknown_function(source: Source, value: str, span: Span) -> NoReturn:
    near = difflib.get_close_matches(value.upper(), [*_BUILT_INS, *_AGGREGATES], 1)
    hint = f"{_as_written(near[0])}(...)" if near else "a function of SPARQL, or one named by its IRI"
    raise Halt(source, SyntaxFault(f"there is no function {value}", span, source.text, hint))


def _as_written(name: str) -> str:
    times = {"GETDURATION": "getDURATION", "GETSTARTTIME": "getSTARTTIME", "GETENDTIME": "getENDTIME"}
    return times.get(name, name)


def _members(source: Source, found: list[Any]) -> syntax.ExpressionList:
    return syntax.ExpressionList(tuple(nodes(found)), extent(found))


open_paren, close_paren, comma = sign("("), sign(")"), sign(",")
expression_list = Rule(  # [71] ArgList, [77] ExpressionList
    Nested(
        all_of(
            open_paren,
            Opt(refused(f"(?i:DISTINCT){_WORD_END}", lambda value: "DISTINCT arguments (aggregates) are not supported yet")),
            Opt(separated(expression, comma)),
            close_paren,
        )
    ),
    _members,
)
bracketed = Rule(Nested(all_of(open_paren, expression, close_paren)), lambda source, found: found[1])  # [120]
exists = Rule(  # [125], [126]
    all_of(one_of(all_of(word("NOT", expected=None), word("EXISTS")), word("EXISTS", expected=None)), Labelled(group, "a group in braces")), _exists
)
aggregate = refused(f"(?i:{'|'.join(_AGGREGATES)}){_WORD_END}", lambda value: f"aggregates ({value}) are not supported yet")  # [127]
built_in = one_of(  # [121]
    Rule(all_of(words(_BUILT_INS, "a function call"), expression_list), _built_in),
    exists,
    aggregate,
    Token(
        f"(?!(?i:NOT|EXISTS|IN|AS|{'|'.join(_BUILT_INS)}){_WORD_END})[A-Za-z][A-Za-z0-9_]*{_WORD_END}(?={_SKIP.pattern}\\()", _unknown_function, None
    ),
)
iri_or_function = Rule(all_of(iri, Opt(expression_list)), _iri_or_function)  # [128]
primary = one_of(variable, number, bracketed, literal, boolean, built_in, iri_or_function)  # [119]
unary_sign = Token(f"!|[+-](?!{_NUMBER[5:]})", _mark, None)
unary = Labelled(Rule(all_of(ZeroOrMore(unary_sign), primary), _signed), "an expression")  # [118]
binary_operator = Token(rf"(?!{_IRIREF})(?:\|\||&&|!=|[<>]=|[=<>+\-*/])", _operator, "an operator")
in_operator = Token(f"(?i:NOT{_SKIP.pattern}IN|IN){_WORD_END}", _operator, None)  # [114]
expression <<= Rule(  # [110]-[117]
    all_of(unary, ZeroOrMore(one_of(all_of(binary_operator, unary), all_of(in_operator, expression_list)))), _fold
)
constraint = one_of(bracketed, built_in, Rule(all_of(iri, expression_list), _iri_or_function))  # [69]


# ---------------------------------------------------------------- triples
def _property(source: Source, found: list[Any]) -> syntax.Property:
    return syntax.Property(found[0], tuple(nodes(found[1:])))


def _triples(source: Source, found: list[Any]) -> syntax.Triples:
    span = Span(found[0].span.start, _last_end(found))
    return syntax.Triples(found[0], tuple(nodes(found[1:])), span)


def _last_end(found: list[Any]) -> int:
    last = found[-1]
    end: int = last.objects[-1].span.end if isinstance(last, syntax.Property) else last.span.end
    return end


def _blank_properties(source: Source, found: list[Any]) -> syntax.BlankProperties:
    return syntax.BlankProperties(tuple(nodes(found)), extent(found))


def _collection(source: Source, found: list[Any]) -> syntax.Collection:
    return syntax.Collection(tuple(nodes(found)), extent(found))


_PATHS = "property paths are not supported yet"
semicolon = Token(f";(?:{_SKIP.pattern};)*+", _mark, "';'")
dot = sign(".")
node = Forward()
path_start = refused(r"[\^!(]", lambda value: _PATHS)  # [94]-[96]
path_rest = refused(f"[/|*]|\\+(?!{_NUMBER[5:]})|\\?(?!\\w)", lambda value: _PATHS)  # [89]-[93]
type_verb = Token(f"a{_WORD_END}", lambda source, value, span: syntax.TypeVerb(span), None)
verb = Labelled(one_of(variable, iri, type_verb, path_start), "a predicate")  # [78]
objects = one_of(separated(Labelled(node, "an object"), comma), path_rest)  # [79], [86]
property_ = Rule(all_of(verb, objects), _property)
properties = all_of(property_, ZeroOrMore(all_of(semicolon, Opt(property_))))  # [77], [83]
blank_properties = Rule(Nested(all_of(sign("[", expected=None), properties, sign("]"))), _blank_properties)  # [99]
collection = Rule(Nested(all_of(sign("(", expected=None), node, ZeroOrMore(node), sign(")"))), _collection)  # [102]
term = one_of(variable, iri, literal, number, quoted_triple, boolean, blank_label, anonymous, nil)  # [106]
triples_node = one_of(blank_properties, collection)  # [98]
node <<= one_of(term, triples_node)  # [104]
triples = Labelled(  # [75], [81]
    Rule(one_of(all_of(term, properties), all_of(triples_node, Opt(properties))), _triples), "a triple pattern", r"[^{}.;,)\]]"
)
triples_block = all_of(triples, ZeroOrMore(all_of(dot, triples)), Opt(dot))  # [52], [55]


# ---------------------------------------------------------------- patterns
def _duration(source: Source, found: list[Any]) -> syntax.DurationText:
    first = found[0]
    match first:
        case syntax.NumericLiteral(text, span):
            return syntax.DurationText(text, True, None, span)
        case syntax.StringLiteral(lexical, None, None, _):
            return syntax.DurationText(lexical, False, found[2] if len(found) > 1 else None, extent(found))
        case Mark():
            return syntax.DurationText(first.value, False, None, first.span)
    raise AssertionError(found)


def _filter(source: Source, found: list[Any]) -> syntax.FilterElement:
    return syntax.FilterElement(found[1], extent(found))


def _bind(source: Source, found: list[Any]) -> syntax.BindElement:
    return syntax.BindElement(found[2], found[4], extent(found))


def _optional(source: Source, found: list[Any]) -> syntax.OptionalElement:
    return syntax.OptionalElement(found[1], extent(found))


def _minus(source: Source, found: list[Any]) -> syntax.MinusElement:
    return syntax.MinusElement(found[1], extent(found))


def _combine(source: Source, found: list[Any]) -> syntax.Combine:
    name = found[0].value
    return syntax.Combine(syntax.ChainOperator("EQUALSOPTIONAL" if name == "EQUALOPTIONAL" else name), found[1], found[0].span)


def _within(source: Source, found: list[Any]) -> syntax.WithinStep:
    return syntax.WithinStep(found[1], extent(found))


def _without(source: Source, found: list[Any]) -> syntax.WithoutStep:
    return syntax.WithoutStep(found[1], found[3] if len(found) > 2 else None, found[0].span)


def _chain(source: Source, found: list[Any]) -> syntax.Chain:
    return syntax.Chain(found[0], tuple(found[1:]), extent(found))


def _group(source: Source, found: list[Any]) -> syntax.Group:
    return syntax.Group(tuple(nodes(found)), extent(found))


def _where(source: Source, found: list[Any]) -> syntax.Group:
    """The paper leaves out the braces around a chain after WHERE, with what follows it."""
    elements = nodes(found)
    if len(elements) == 1 and not elements[0].steps:
        only: syntax.Group = elements[0].first
        return only
    return syntax.Group(tuple(elements), extent(elements))


_UNSUPPORTED_PATTERNS = {
    "GRAPH": "GRAPH is not supported yet",
    "SERVICE": "SERVICE is not supported: a query reads its streams and the background knowledge only",
    "VALUES": "VALUES is not supported yet",
    "SELECT": "a SELECT inside a pattern (sub-SELECT) is not supported yet",
    "WINDOW": "WINDOW is not supported yet",
}
_SEQOPTIONAL = (
    "SEQOPTIONAL is refused on purpose: a solution given for want of a right operand would be invalid as soon as one came; "
    "use OPTIONALSEQ, or WITHOUT ... FOR with a duration"
)
_OPERATOR_NAMES = [*(operator.value for operator in syntax.ChainOperator), "EQUALOPTIONAL"]

braces = Labelled(group, "a group in braces")
bare_duration = Token(r"[+-]?[Pp][0-9A-Za-z]*(?:\.[0-9A-Za-z]+)*", lambda source, value, span: Mark(value, span), None)
duration = Labelled(  # Dur
    Rule(one_of(all_of(string, Opt(all_of(sign("^^", expected=None), iri))), number, bare_duration), _duration),
    'a duration such as "PT10S"^^xsd:duration, or a number of seconds',
)
step = one_of(
    Rule(all_of(words(_OPERATOR_NAMES, "an operator such as SEQ"), braces), _combine),
    Rule(all_of(word("WITHIN"), duration), _within),
    Rule(all_of(word("WITHOUT"), braces, Opt(all_of(word("FOR"), duration))), _without),
    refused(f"(?i:SEQOPTIONAL){_WORD_END}", lambda value: _SEQOPTIONAL),
)
chain = Rule(all_of(group, ZeroOrMore(step)), _chain)  # [67], Chain
filter_ = Rule(all_of(word("FILTER"), Labelled(constraint, "a condition in brackets or a function call")), _filter)  # [68]
bind = Rule(all_of(word("BIND"), Nested(open_paren), expression, word("AS"), variable, close_paren), _bind)  # [60]
optional = Rule(all_of(word("OPTIONAL"), braces), _optional)  # [57]
minus = Rule(all_of(word("MINUS"), braces), _minus)  # [66]
applied = one_of(filter_, optional, bind, minus)
not_triples = Labelled(one_of(chain, applied, refused_words(_UNSUPPORTED_PATTERNS)), "a group, FILTER, BIND, OPTIONAL, MINUS", "[{A-Za-z]")  # [56]
group_body = all_of(Opt(triples_block), ZeroOrMore(all_of(not_triples, Opt(dot), Opt(triples_block))))  # [54]
group <<= Rule(Nested(all_of(sign("{"), group_body, sign("}"))), _group)  # [53]


# ---------------------------------------------------------------- queries
def _base(source: Source, found: list[Any]) -> syntax.BaseDeclaration:
    return syntax.BaseDeclaration(found[1], extent(found))


def _prefix(source: Source, found: list[Any]) -> syntax.PrefixDeclaration:
    return syntax.PrefixDeclaration(found[1].prefix, found[2], extent(found))


def _stream(source: Source, found: list[Any]) -> syntax.StreamName:
    name = found[-1]
    return syntax.StreamName(None if isinstance(name, Mark) else name, extent(found))


def _from(source: Source, found: list[Any]) -> tuple[str, syntax.StreamName]:
    return "from", found[1]


def _into(source: Source, found: list[Any]) -> tuple[str, syntax.StreamName]:
    return "into", found[1]


def _item(source: Source, found: list[Any]) -> syntax.SelectItem:
    if len(found) == 1:
        return syntax.SelectItem(None, found[0], found[0].span)
    return syntax.SelectItem(found[1], found[3], extent(found))


def _select(source: Source, found: list[Any]) -> syntax.SelectQuery:
    distinct = any(isinstance(part, Mark) and part.value == "DISTINCT" for part in found)
    items = tuple(part for part in found if isinstance(part, syntax.SelectItem))
    return syntax.SelectQuery(distinct, items, _streams(found), found[-1])


def _streams(found: list[Any]) -> tuple[syntax.StreamName, ...]:
    return tuple(part[1] for part in found if isinstance(part, tuple) and part[0] == "from")


def _template(source: Source, found: list[Any]) -> syntax.Group:
    return syntax.Group(tuple(nodes(found)), extent(found))


def _construct(source: Source, found: list[Any]) -> syntax.ConstructQuery:
    groups = [part for part in found if isinstance(part, syntax.Group)]
    template = tuple(part for part in groups[0].elements if isinstance(part, syntax.Triples))
    into = [part[1] for part in found if isinstance(part, tuple) and part[0] == "into"]
    return syntax.ConstructQuery(template, len(groups) == 1, into[0] if into else None, _streams(found), groups[-1])


def _document(source: Source, found: list[Any]) -> syntax.Document:
    return syntax.Document(tuple(found[:-1]), found[-1])


def _later(value: str) -> str:
    return f"{value} is not supported yet"


_UNSUPPORTED_FORMS = {
    **{name: _later(f"the query form {name}") for name in ("ASK", "DESCRIBE")},
    "REGISTER": "REGISTER (RSP-QL) is not supported yet",
    **{
        name: f"{name} is SPARQL Update: a continuous query changes no data; background knowledge is loaded by the server's interface"
        for name in ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
    },
}
_UNSUPPORTED_MODIFIERS = {
    "GROUP": _later("GROUP BY"),
    "HAVING": _later("HAVING"),
    "WINDOW": _later("WINDOW"),
    "ORDER": _later("ORDER BY"),
    "LIMIT": _later("LIMIT"),
    "OFFSET": _later("OFFSET"),
    "VALUES": _later("VALUES"),
}
_DATASET = "FROM and FROM NAMED, which choose background graphs, are not supported yet; a stream is read with FROM STREAM"

prefix_name = Token(f"(?:{_PREFIX})?:", _prefixed_name, "a prefix such as ex:")  # [140]
base = Rule(all_of(word("BASE"), iri_ref), _base)  # [5]
prefix = Rule(all_of(word("PREFIX"), prefix_name, iri_ref), _prefix)  # [6]
stream_name = Rule(all_of(word("STREAM"), Labelled(one_of(iri, word("default")), "the IRI of a stream")), _stream)
from_stream = Rule(  # [13]
    all_of(word("FROM"), one_of(stream_name, refused(f"(?i:NAMED){_WORD_END}|[<:]|\\w[\\w.\\-]*:", lambda value: _DATASET))), _from
)
into_stream = Rule(all_of(word("INTO"), stream_name), _into)
item = Rule(one_of(variable, Nested(all_of(open_paren, expression, word("AS"), variable, close_paren))), _item)
items = Labelled(one_of(sign("*"), all_of(item, ZeroOrMore(Labelled(item, "another variable")))), "variables, '*' or (expression AS ?variable)")
where = all_of(  # [17]
    Opt(word("WHERE")), Rule(all_of(Labelled(chain, "a pattern in braces"), ZeroOrMore(Labelled(applied, "FILTER"))), _where)
)
modifiers = Opt(refused_words(_UNSUPPORTED_MODIFIERS))  # [18], [28]
select = Rule(  # [7], [9]
    all_of(
        word("SELECT"), Opt(words(("DISTINCT", "REDUCED"), None)), items, ZeroOrMore(from_stream), where
    ),
    _select,
)  # fmt: skip
template = Labelled(Rule(all_of(sign("{"), Opt(triples_block), sign("}")), _template), "a template in braces")  # [73]
construct = Rule(  # [10]
    all_of(
        word("CONSTRUCT"),
        one_of(
            all_of(template, Opt(into_stream), ZeroOrMore(from_stream), where),
            all_of(Opt(into_stream), ZeroOrMore(from_stream), word("WHERE"), template),
        ),
    ),
    _construct,
)
end = Token("\\Z", _mark, "the end of the query")
document = Rule(  # [1]-[4]
    all_of(ZeroOrMore(one_of(base, prefix)), one_of(select, construct, refused_words(_UNSUPPORTED_FORMS)), modifiers, end),
    lambda source, found: _document(source, found[:-1]),
)
document.parse_with_tabs()
document.streamline()


# ---------------------------------------------------------------- faults
def parse_document(text: str) -> syntax.Document:
    """Raises `QueryError`."""
    source = Source.of(text)
    try:
        parsed: syntax.Document = document.parse_string(source)[0]
    except Halt as halt:
        raise halt.fault from None
    except ParseException:
        raise _fault(source) from None
    return parsed


def _fault(source: Source) -> SyntaxFault:
    """The fault at the furthest place: the lexeme found there, and what was expected instead."""
    at = source.furthest
    found = re.compile(_LEXEME, re.S).match(source, at)
    lexeme = found[0] if found else ""
    span = source.span(at, at + len(lexeme))
    return SyntaxFault(_message(source, at, lexeme), span, source.text, _expectation(source, at))


def _message(source: Source, at: int, lexeme: str) -> str:
    if not lexeme:
        return "the query ends too early"
    if lexeme in ('"', "'"):
        return "a string that does not end, or with a bad escape, starts here"
    if lexeme == "<" and "an operator" not in source.expected:
        return "an IRI that does not end, or with a character that no IRI has, starts here"
    if lexeme[0] == "<" and "an operator" in source.expected:
        return f"{lexeme} reads as an IRI here, since the longest token counts; a comparison needs a blank after '<'"
    if lexeme.upper() in (*_OPERATOR_NAMES, "WITHIN", "WITHOUT"):
        return f"{lexeme} has no group in braces directly on its left"
    near = _near_keyword(lexeme)
    if near is not None:
        return f"unexpected {lexeme}; was {near} meant?"
    if not lexeme.isprintable():
        return f"unexpected character U+{ord(lexeme[0]):04X}"
    return f"unexpected {lexeme if len(lexeme) <= 40 else lexeme[:40] + '...'}"


def _near_keyword(lexeme: str) -> str | None:
    if not _WORD.fullmatch(lexeme) or lexeme.upper() in _KEYWORDS:
        return None
    near = difflib.get_close_matches(lexeme.upper(), _KEYWORDS, 1, 0.7)
    return near[0] if near else None


def _expectation(source: Source, at: int) -> str:
    """Human words; after a keyword it is named, since that is what the writer sees."""
    expected = list(source.expected)
    before = _WORD_BEFORE.search(source, 0, at)
    if len(expected) == 1 and before is not None and before[1].upper() in (*_KEYWORDS, *_BUILT_INS):
        return f"{expected[0]} after {before[1]}"
    if len(expected) < 2:
        return "".join(expected)
    return f"{', '.join(expected[:-1])} or {expected[-1]}"

"""This module parses text to syntax: the SPARQL 1.2 grammar with EP-SPARQL's Chain (semantics.md section 11). The numbers are those of SPARQL 1.1's rules.

The grammar is LL(1) but for a keyword here and there, so a failed alternative is never long. Faults are placed where the text stopped making sense.
Each token that does not match notes what it expected, and the furthest place noted is the fault's (`QueryText.note`). What is refused whatever follows
it is recognised at its keyword (`refused`).
"""

import difflib
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from epsparql.errors import QueryError, Span, SyntaxFault, Unsupported
from epsparql.parser import ast, ast_queries
from epsparql.parser.combinators import (
    SKIP,
    WORD_END,
    Forward,
    QueryText,
    Sign,
    ahead,
    all_of,
    counting,
    labelled,
    make_sign,
    nested,
    one_of,
    optional,
    parse_text,
    production,
    refused,
    refused_words,
    repeated,
    separated,
    sign,
    token,
    word,
    words,
)  # fmt: skip
from epsparql.parser.suggestions import Stop, likely_slip

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
            raise SyntaxFault(f"{found[0]} is no Unicode character", place, source.text, "a code point that is a character")
        return chr(code)

    return _ESCAPED.sub(written, text) if "\\" in text else text


def _iri_ref(source: QueryText, value: str, span: Span) -> ast.IriRef:
    text = _unescape(source, value[1:-1], span)
    if "\\" in value and (found := _NOT_IN_IRIS.search(text)):
        raise SyntaxFault(f"an escape stands for {found[0]!r}, which no IRI has", span, source.text, "a character that IRIs have")
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


iri_ref = token(_IRIREF, _iri_ref, "an IRI in '<' and '>'")
iri = token(f"{_IRIREF}|{_PNAME}", _iri_name, "an IRI")  # [136]
variable = token(f"[?$]{_VARNAME}", lambda source, value, span: ast.VariableName(value[1:], span), "a variable")  # [108]
string = token(_STRING, _string, "a string")  # [135]
number = token(_NUMBER, lambda source, value, span: ast.NumericLiteral(value, span), "a number")  # [130]
boolean = token(f"(?i:true|false){WORD_END}", lambda source, value, span: ast.BooleanLiteral(value.lower(), span), "true or false")  # [134]
language = token("@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*+(?:--(?:ltr|rtl)(?![a-zA-Z0-9-]))?(?!--)", make_sign, None)  # [145]
literal = production(all_of(string, optional(one_of(language, all_of(sign("^^", expected=None), iri)))), _literal)  # [129]
blank_label = token(  # [142], [138]
    f"_:[{_CHARS_U}0-9](?:\\.*+[{_CHARS}])*+", lambda source, value, span: ast.BlankLabel(value[2:], span), "a blank node"
)
anonymous = token(r"\[[ \t\r\n]*\]", lambda source, value, span: ast.Anonymous(span), None)  # [163]
integer = token("[0-9]+", lambda source, value, span: ast.NumericLiteral(value, span), "an integer without a sign")  # [146]
nil = token(r"\([ \t\r\n]*\)", lambda source, value, span: ast.Collection((), span), None)  # [161]
type_verb = token(f"a{WORD_END}", lambda source, value, span: ast.TypeVerb(span), None)
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
        raise SyntaxFault(message, right.span, source.text, "'&&', '||', or brackets around one comparison")


def _signed(source: QueryText, found: list[Any]) -> ast.Expression:
    """Build an expression with any number of '!' and at most one sign after them: [118] UnaryExpression."""
    for sign_, after in itertools.pairwise(found[:-1]):
        if sign_.value != "!":
            message = f"{after.value!r} follows {sign_.value!r}: an expression has one sign"
            raise SyntaxFault(message, after.span, source.text, "brackets around the expression with its own sign")
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
    raise SyntaxFault(f"there is no function {value}", span, source.text, hint)


def _as_written(name: str) -> str:
    times = {"GETDURATION": "getDURATION", "GETSTARTTIME": "getSTARTTIME", "GETENDTIME": "getENDTIME"}
    return times.get(name, name)


def _members(source: QueryText, found: list[Any]) -> ast.ExpressionList:
    return ast.ExpressionList(tuple(keep_nodes(found)), extent(found))


open_paren, close_paren, comma = sign("("), sign(")"), sign(",")
expression_list = production(  # [71] ArgList, [77] ExpressionList
    nested(
        all_of(
            open_paren,
            optional(
                refused(
                    f"(?i:DISTINCT){WORD_END}", lambda value: "DISTINCT stands in SPARQL's own aggregates only: no extension aggregates are known"
                )
            ),
            optional(separated(expression, comma)),
            close_paren,
        )
    ),
    _members,
)
bracketed = production(nested(all_of(open_paren, expression, close_paren)), lambda source, found: found[1])  # [120]
exists = production(  # [125], [126]
    all_of(one_of(all_of(word("NOT", expected=None), word("EXISTS")), word("EXISTS", expected=None)), labelled(group, "a group in braces")), _exists
)
opt_distinct = optional(word("DISTINCT", expected=None))
no_distinct = optional(
    refused(f"(?i:DISTINCT){WORD_END}", lambda value: "DISTINCT has no meaning in FIRST and LAST, which are the value of one element")
)
aggregate = ahead(  # [127]
    f"(?i:{'|'.join(_AGGREGATES)}){WORD_END}",
    production(
        one_of(
            all_of(word("COUNT", expected=None), nested(all_of(open_paren, opt_distinct, one_of(sign("*"), expression), close_paren))),
            all_of(
                word("GROUP_CONCAT", expected=None),
                nested(all_of(open_paren, opt_distinct, expression, optional(all_of(sign(";"), word("SEPARATOR"), sign("="), string)), close_paren)),
            ),
            all_of(words(("FIRST", "LAST"), None), nested(all_of(open_paren, no_distinct, expression, close_paren))),
            all_of(
                words(set(_AGGREGATES) - {"COUNT", "GROUP_CONCAT", "FIRST", "LAST"}, None),
                nested(all_of(open_paren, opt_distinct, expression, close_paren)),
            ),
        ),
        _aggregate,
    ),
)
built_in = one_of(  # [121]
    production(all_of(words(set(_BUILT_INS) - {"BOUND"}, "a function call"), expression_list), _built_in),
    production(all_of(word("BOUND", expected=None), nested(all_of(open_paren, variable, close_paren))), _bound),
    exists,
    aggregate,
    production(all_of(word(_PREVIOUS, expected=None), nested(all_of(open_paren, expression, close_paren))), _previous),
    token(
        f"(?!(?i:{'|'.join((*_KEYWORDS, *_BUILT_INS, *_AGGREGATES, _PREVIOUS))}){WORD_END})[A-Za-z][A-Za-z0-9_]*{WORD_END}(?={SKIP}\\()",
        _unknown_function,
        None,
    ),
)
iri_or_function = production(all_of(iri, optional(expression_list)), _iri_or_function)  # [128]
expression_verb = labelled(one_of(variable, iri, type_verb), "a predicate")
triple_value = Forward()
triple_value <<= production(  # ExprTripleTerm
    nested(
        all_of(
            open_term,
            labelled(one_of(variable, iri), "a variable or an IRI"),
            expression_verb,
            labelled(one_of(variable, iri, literal, number, boolean, triple_value), "an object"),
            close_term,
        )
    ),
    _triple_value,
)
primary = one_of(triple_value, variable, number, bracketed, literal, boolean, built_in, iri_or_function)  # [119]
unary_sign = token(f"!|[+-](?!{_NUMBER[5:]})", make_sign, None)
unary = labelled(production(all_of(repeated(unary_sign), primary), _signed), "an expression")  # [118]
binary_operator = token(rf"(?!{_IRIREF})(?:\|\||&&|!=|[<>]=|[=<>+\-*/])", _build_operator, "an operator")
in_operator = token(f"(?i:NOT{SKIP}IN|IN){WORD_END}", _build_operator, None)  # [114]
expression <<= production(  # [110]-[117]
    all_of(unary, repeated(one_of(all_of(binary_operator, unary), all_of(in_operator, expression_list)))), _fold
)
constraint = one_of(bracketed, built_in, production(all_of(iri, expression_list), _iri_or_function))  # [69]


# ---------------------------------------------------------------- triples
def _property(source: QueryText, found: list[Any]) -> ast.Property:
    objects = keep_nodes(found[1:])
    if not isinstance(found[0], ast.VariableName | ast.IriName | ast.TypeVerb):
        for one in objects:
            if isinstance(one, ast.Annotated):
                message = "an annotation stands after a property path, which is no predicate of a triple"
                raise SyntaxFault(message, one.span, source.text, "an IRI or a variable as the predicate")
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


semicolon = token(f";(?:{SKIP};)*+", make_sign, "';'")
dot = sign(".")
node = Forward()
path = Forward()
bar, hat = sign("|", expected=None), sign("^", expected=None)
in_property_set = production(all_of(optional(hat), one_of(iri, type_verb)), _inverse)  # [96]
negated = production(  # [95]
    all_of(
        sign("!", expected=None),
        one_of(in_property_set, nested(all_of(open_paren, optional(separated(in_property_set, bar)), close_paren))),
    ),
    _negated,
)
path_in_brackets = production(nested(all_of(open_paren, path, close_paren)), lambda source, found: found[1])
path_primary = labelled(one_of(iri, type_verb, negated, path_in_brackets), "the next part of the path, which is no variable")  # [94]
path_modifier = token(f"\\*|\\?(?!\\w)|\\+(?!{_NUMBER[5:]})", make_sign, None)  # [93]
path_element = production(all_of(path_primary, optional(path_modifier)), _repeated)  # [91]
path_part = production(all_of(optional(hat), path_element), _inverse)  # [92]
path_sequence = production(separated(path_part, sign("/", expected=None)), _sequence)  # [90]
path <<= production(separated(path_sequence, bar), _alternative)  # [88], [89]
_NO_PATH = f"(?!{SKIP}(?:[/|*]|\\?(?!\\w)|\\+(?!{_NUMBER[5:]})))"
lone_iri = token(f"(?>{_IRIREF}|{_PNAME}){_NO_PATH}", _iri_name, None)  # a path of one link, the common case, without the way through [88] to [94]
lone_type = token(f"a{WORD_END}{_NO_PATH}", lambda source, value, span: ast.TypeVerb(span), None)
verb = labelled(one_of(variable, lone_iri, lone_type, path), "a predicate")  # [78], [84], [85]
reifier = production(all_of(sign("~", expected=None), optional(one_of(variable, iri, blank_label, anonymous))), _reifier)
annotation_block = Forward()
object_ = production(all_of(labelled(node, "an object"), repeated(one_of(reifier, annotation_block))), _annotated)  # [80], [87]
objects = separated(object_, comma)  # [79], [86]
property_ = production(all_of(verb, objects), _property)
properties = all_of(property_, repeated(all_of(semicolon, optional(property_))))  # [77], [83]
annotation_block <<= production(nested(all_of(sign("{|", expected=None), properties, sign("|}"))), _annotation_block)
blank_properties = production(nested(all_of(sign("[", expected=None), properties, sign("]"))), _blank_properties)  # [99], [101]
collection = production(nested(all_of(sign("(", expected=None), node, repeated(node), sign(")"))), _collection)  # [102], [103]
atom = one_of(variable, iri, literal, number, boolean, blank_label, anonymous)
plain_verb = labelled(one_of(variable, iri, type_verb), "a predicate")
triple_term, reified_triple = Forward(), Forward()
triple_part = one_of(triple_term, atom)
triple_term <<= production(
    nested(all_of(open_term, labelled(triple_part, "a subject"), plain_verb, labelled(triple_part, "an object"), close_term)), _triple_node
)
reified_part = one_of(triple_term, reified_triple, atom)
reified_triple <<= production(
    nested(
        all_of(
            sign("<<", expected=None),
            labelled(reified_part, "a subject"),
            plain_verb,
            labelled(reified_part, "an object"),
            optional(reifier),
            sign(">>"),
        )
    ),
    _reified,
)
term = one_of(variable, iri, literal, number, triple_term, boolean, blank_label, anonymous, nil)  # [106], [109]
triples_node = one_of(blank_properties, collection, reified_triple)  # [98], [100]
node <<= one_of(term, triples_node)  # [104], [105]
triples = labelled(  # [75], [81]
    production(one_of(all_of(term, properties), all_of(triples_node, optional(properties))), _build_triples),
    "a triple pattern",
    r"(?!\.(?![0-9]))[^{};,)\]]",
)
triples_block = all_of(triples, repeated(all_of(dot, triples)), optional(dot))  # [52], [55]


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


def _build_combine(source: QueryText, found: list[Any]) -> ast.Combine:
    name = found[0].value
    return ast.Combine(ast.ChainOperator("EQUALSOPTIONAL" if name == "EQUALOPTIONAL" else name), found[1], found[0].span)


def _within(source: QueryText, found: list[Any]) -> ast.WithinStep:
    return ast.WithinStep(found[1], extent(found))


def _build_without(source: QueryText, found: list[Any]) -> ast.WithoutStep:
    return ast.WithoutStep(found[1], found[3] if len(found) > 2 else None, found[0].span)


def _build_chain(source: QueryText, found: list[Any]) -> ast.Chain:
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

braces = labelled(group, "a group in braces")
bare_duration = token(r"[+-]?[Pp][0-9A-Za-z]*(?:\.[0-9A-Za-z]+)*", lambda source, value, span: Sign(value, span), None)
duration = labelled(  # Dur
    production(one_of(all_of(string, optional(all_of(sign("^^", expected=None), iri))), number, bare_duration), _duration),
    'a duration such as "PT10S"^^xsd:duration, or a number of seconds',
)
step = one_of(
    production(all_of(words(_OPERATOR_NAMES, "an operator such as SEQ"), braces), _build_combine),
    production(all_of(counting("WITHIN"), duration), _within),
    production(all_of(word("WITHOUT"), braces, optional(all_of(word("FOR"), duration))), _build_without),
    refused(f"(?i:SEQOPTIONAL){WORD_END}", lambda value: _SEQOPTIONAL),
)
chain = production(all_of(group, repeated(step)), _build_chain)  # [67], Chain
filter_ = production(all_of(word("FILTER"), labelled(constraint, "a condition in brackets or a function call")), _filter)  # [68]
bind = production(all_of(word("BIND"), nested(open_paren), expression, word("AS"), variable, close_paren), _bind)  # [60]
optional_ = production(all_of(word("OPTIONAL"), braces), _optional)  # [57]
minus = production(all_of(word("MINUS"), braces), _minus)  # [66]
applied = one_of(filter_, optional_, bind, minus)
name = labelled(one_of(variable, iri), "a variable or an IRI")  # [107]
graph = production(all_of(word("GRAPH"), name, braces), _build_graph)  # [58]
service = production(all_of(word("SERVICE", expected=None), optional(word("SILENT", expected=None)), name, braces), _service)  # [59]
window_element = production(all_of(word("WINDOW", expected=None), name, braces), _window_element)
open_brace, close_brace = sign("{"), sign("}")
triple_data = Forward()
triple_data <<= production(  # TripleTermData
    nested(
        all_of(
            open_term,
            labelled(iri, "the IRI of a subject"),
            labelled(one_of(iri, type_verb), "a predicate"),
            labelled(one_of(iri, literal, number, boolean, triple_data), "an object without variables"),
            close_term,
        )
    ),
    _triple_node,
)
data_term = labelled(one_of(number, triple_data, iri, literal, boolean, word("UNDEF")), "an IRI, a literal or UNDEF", "[^(){}]")  # [65]
row = production(nested(all_of(open_paren, repeated(data_term), close_paren)), _values_row)
data = one_of(  # [62]
    production(all_of(variable, open_brace, repeated(data_term), close_brace), _values_of_one),  # [63]
    production(all_of(open_paren, repeated(variable), close_paren, open_brace, repeated(row), close_brace), _values_of_many),  # [64]
)
values = production(all_of(word("VALUES"), data), _build_values)  # [28], [61]
not_triples = labelled(  # [56]
    one_of(chain, applied, graph, values, window_element, service), "a group, FILTER, BIND, OPTIONAL, MINUS, GRAPH, VALUES", "[{A-Za-z]"
)
group_body = all_of(optional(triples_block), repeated(all_of(not_triples, optional(dot), optional(triples_block))))  # [54]
sub_select = Forward()
group <<= production(nested(all_of(sign("{"), one_of(ahead(f"(?i:SELECT){WORD_END}", sub_select), group_body), sign("}"))), _build_group)  # [53]


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
                raise SyntaxFault(message, part.span, source.text, "each of WHILE, GAP, UNTIL and WITHIN at most once")
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

prefix_name = token(f"(?:{_PREFIX})?:", _prefixed_name, "a prefix such as ex:")  # [140]
base = production(all_of(word("BASE"), iri_ref), _base)  # [5]
prefix = production(all_of(word("PREFIX"), prefix_name, iri_ref), _prefix)  # [6]
short_string = token("|".join(_SHORT_STRINGS), make_sign, "a string in single quotes or double quotes")
version = all_of(word("VERSION"), short_string)  # which says what the text is written for, and nothing follows from it
declarations = repeated(one_of(base, prefix, version))  # [4]
stream_name = production(labelled(one_of(iri, word("default")), "the IRI of a stream"), _stream)
in_stream = production(all_of(word("STREAM"), stream_name), lambda source, found: found[1])
window_length = labelled(  # Dur
    production(one_of(all_of(string, optional(all_of(sign("^^", expected=None), iri))), bare_duration), _duration),
    'a duration such as "PT10S"^^xsd:duration',
)
open_bracket, close_bracket = sign("["), sign("]")
sliding = all_of(open_bracket, word("RANGE"), window_length, word("STEP"), window_length, close_bracket)
from_ = one_of(  # [13]
    production(all_of(word("FROM"), in_stream), _from_stream),
    production(all_of(word("FROM", expected=None), word("NAMED"), word("WINDOW"), iri, word("ON"), stream_name, sliding), _from_window),
    production(all_of(word("FROM", expected=None), optional(word("NAMED")), labelled(iri, "the IRI of a graph")), _from_graph),  # [14]-[16]
)
into = one_of(
    production(all_of(word("INTO"), in_stream), lambda source, found: found[1]),
    production(all_of(word("INTO", expected=None), word("BACKGROUND"), labelled(iri, "the IRI of a graph")), _into_background),
)
item = production(one_of(variable, nested(all_of(open_paren, expression, word("AS"), variable, close_paren))), _item)
items = labelled(one_of(sign("*"), all_of(item, repeated(labelled(item, "another variable")))), "variables, '*' or (expression AS ?variable)")
where = one_of(  # [17]
    all_of(word("WHERE"), production(all_of(labelled(chain, "a pattern in braces"), repeated(labelled(applied, "FILTER"))), _where)),
    labelled(group, "a pattern in braces"),
)
call = one_of(built_in, production(all_of(iri, expression_list), _iri_or_function))
group_key = production(  # [20]
    one_of(variable, nested(all_of(open_paren, expression, optional(all_of(word("AS"), variable)), close_paren)), call), _group_key
)
group_clause = production(  # [19]
    all_of(
        word("GROUP", expected="a solution modifier such as GROUP BY or LIMIT"),
        word("BY"),
        labelled(group_key, "a variable, a function call or (expression AS ?variable)"),
        repeated(group_key),
    ),
    _clause,
)
having_clause = production(  # [21], [22]
    all_of(word("HAVING", expected=None), labelled(constraint, "a condition in brackets or a function call"), repeated(constraint)), _clause
)
run_part = one_of(  # RunPart
    production(all_of(word("WHILE"), labelled(bracketed, "a condition in brackets")), _clause),
    production(all_of(word("GAP"), window_length), _clause),
    production(all_of(word("UNTIL"), braces), _clause),
    production(all_of(counting("WITHIN"), duration), _clause),
)
run_report = optional(words(("EACH", "CLOSED"), "EACH or CLOSED"))  # Report
window_body = one_of(  # WindowBody
    all_of(word("RANGE"), window_length, optional(all_of(word("STEP"), window_length))),
    all_of(counting("ROWS"), integer),
    all_of(word("SESSION"), window_length, run_report),
    all_of(word("RUN"), run_part, repeated(run_part), run_report),
)
window_clause = production(  # WindowClause
    production(
        all_of(word("WINDOW", expected=None), open_bracket, window_body, close_bracket),
        _window_clause,
    ),
    lambda source, found: Clause("WINDOW", (found[0],), found[0].span),
)
order_condition = production(  # [24]
    one_of(variable, all_of(words(("ASC", "DESC"), None), labelled(bracketed, "an expression in brackets")), constraint), _order_condition
)
order_clause = production(  # [23]
    all_of(
        word("ORDER", expected=None),
        word("BY"),
        labelled(order_condition, "a variable, a function call, ASC(...) or DESC(...)"),
        repeated(order_condition),
    ),
    _clause,
)
limit_clause = production(all_of(counting("LIMIT", expected=None), integer), _clause)  # [26]
offset_clause = production(all_of(counting("OFFSET", expected=None), integer), _clause)  # [27]
limits = one_of(all_of(limit_clause, optional(offset_clause)), all_of(offset_clause, optional(limit_clause)))  # [25]
modifier = production(  # [18]
    all_of(optional(group_clause), optional(having_clause), optional(window_clause), optional(order_clause), optional(limits)), _modifier
)
trailing = all_of(modifier, optional(values))  # [18], [28]
body = production(all_of(where, trailing), _body)
no_pattern = token("", lambda source, value, span: ast.GroupGraphPattern((), span), None)
select_clause = all_of(word("SELECT"), optional(words(("DISTINCT", "REDUCED"), None)), items)  # [9]
sub_select <<= production(all_of(select_clause, body), _sub_select)  # [8]
select = production(all_of(select_clause, repeated(from_), body), _build_select)  # [7]
template = labelled(production(all_of(sign("{"), optional(triples_block), sign("}")), _template), "a template in braces")  # [73], [74]
construct = production(  # [10]
    all_of(
        word("CONSTRUCT"),
        one_of(
            all_of(template, optional(into), repeated(from_), body),
            all_of(optional(into), repeated(from_), production(all_of(word("WHERE"), template, trailing), _body)),
        ),
    ),
    _construct,
)
ask = production(all_of(word("ASK"), repeated(from_), body), _ask)  # [12]
targets = labelled(one_of(sign("*"), all_of(name, repeated(name))), "variables, IRIs or '*'")
describe = production(
    all_of(word("DESCRIBE"), targets, repeated(from_), production(all_of(one_of(where, no_pattern), trailing), _body)), _describe
)  # [11]
register = production(
    all_of(word("REGISTER", expected=None), words(("RSTREAM", "ISTREAM", "DSTREAM"), "RSTREAM, ISTREAM or DSTREAM"), stream_name, word("AS")),
    _registration,
)
end = token("\\Z", make_sign, "the end of the query")
document = production(  # [1]-[4]
    all_of(declarations, optional(all_of(register, declarations)), one_of(select, construct, ask, describe, refused_words(_UPDATE)), end),
    _build_document,
)


# ---------------------------------------------------------------- faults
def parse_document(text: str) -> ast_queries.Document:
    """Parse a query's text. Raises `QueryError`."""
    parsed: ast_queries.Document = parse_text(document, text, _fault)
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

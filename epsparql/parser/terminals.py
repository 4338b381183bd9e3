"""This module declares the terminals of the language, [139]-[173], and the terms that are one terminal each."""

import re

from epsparql.errors import Span, SyntaxFault
from epsparql.parser import ast
from epsparql.parser.elements import WORD_END, QueryText, Terminal, make_sign


def _class(characters: str) -> str:
    """Return the class of characters such as `-0-9A-Z`, written as a class of all others.

    A class is compiled in time proportional to the characters that it lists, and names have most of the BMP.
    """
    outside, after = "", 0
    for first, last in sorted((pair[0] or pair[2], pair[1] or pair[2]) for pair in re.findall("(.)-(.)|(.)", characters)):
        if after < ord(first):
            outside += rf"\U{after:08x}-\U{ord(first) - 1:08x}"
        after = ord(last) + 1
    return rf"[^{outside}\U{after:08x}-\U0010ffff]"


_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff"
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)  # [164] PN_CHARS_BASE
_CHARS_U = _BASE + "_"  # [165]
_IN_VARNAME = _CHARS_U + "0-9\u00b7\u0300-\u036f\u203f-\u2040"
_CHARS = "-" + _IN_VARNAME  # [167]
VARNAME = f"{_class(_CHARS_U + '0-9')}{_class(_IN_VARNAME)}*+"  # [166]
_PREFIX = f"{_class(_BASE)}(?:\\.*+{_class(_CHARS)})*+"  # [168] PN_PREFIX
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"  # [170]
_LOCAL = f"(?:{_class(_CHARS_U + ':0-9')}|{_PLX})(?:\\.*+(?:{_class(_CHARS + ':')}|{_PLX}))*+"  # [169] PN_LOCAL
_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"  # a codepoint escape, which stands in IRIs and strings alone
IRIREF = rf'<(?:[^<>"{{}}|^`\\\x00-\x20]|{_UCHAR})*+>'  # [139]
PNAME = f"(?:{_PREFIX})?:(?:{_LOCAL})?"  # [140], [141]
_ECHAR = rf"\\[tbnrf\\\"']|{_UCHAR}"  # [160]
SHORT_STRINGS = (rf'"(?!"")(?:[^"\\\n\r]|{_ECHAR})*+"', rf"'(?!'')(?:[^'\\\n\r]|{_ECHAR})*+'")  # [157], [156]
STRING = "|".join(
    (
        rf'"""(?:"{{0,2}}(?:[^"\\]|{_ECHAR}))*"""',  # [159]
        rf"'''(?:'{{0,2}}(?:[^'\\]|{_ECHAR}))*'''",  # [158]
        *SHORT_STRINGS,
    )
)
NUMBER = r"[+-]?(?:[0-9]+\.[0-9]*[eE][+-]?[0-9]+|\.?[0-9]+[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+)"  # [146]-[154]
_ANY_CHARS = r"[^\x00-,/:-@\[-^`{-\x7f]"  # all of [167] and more, but no ASCII character that is not in it
FIRST_OF_PNAME = f"{_ANY_CHARS}*+:"
FIRST_OF_IRI = rf"<(?![<\x00-\x20])|{FIRST_OF_PNAME}"
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_LOCAL_ESCAPED = re.compile(r"\\(.)")
_NOT_IN_IRIS = re.compile(r'[<>"{}|^`\\\x00-\x20]')

_UNESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}


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


def _build_iri_ref(source: QueryText, value: str, span: Span) -> ast.IriRef:
    text = _unescape(source, value[1:-1], span)
    if "\\" in value and (found := _NOT_IN_IRIS.search(text)):
        raise SyntaxFault(f"an escape stands for {found[0]!r}, which no IRI has", span, source.text, "a character that IRIs have")
    return ast.IriRef(text, span)


def build_prefixed_name(source: QueryText, value: str, span: Span) -> ast.PrefixedName:
    prefix, _, local = value.partition(":")
    return ast.PrefixedName(prefix, _LOCAL_ESCAPED.sub(r"\1", local) if "\\" in local else local, span)


def build_iri_name(source: QueryText, value: str, span: Span) -> ast.IriName:
    return _build_iri_ref(source, value, span) if value[0] == "<" else build_prefixed_name(source, value, span)


def _build_string(source: QueryText, value: str, span: Span) -> ast.StringLiteral:
    quotes = 3 if value[:3] in ('"""', "'''") else 1
    return ast.StringLiteral(_unescape(source, value[quotes:-quotes], span), None, None, span)


iri_ref = Terminal(IRIREF, _build_iri_ref, "an IRI in '<' and '>'")  # [139] IRIREF
pname_ns = Terminal(f"(?:{_PREFIX})?:", build_prefixed_name, "a prefix such as ex:", FIRST_OF_PNAME)  # [140] PNAME_NS
iri = Terminal(f"{IRIREF}|{PNAME}", build_iri_name, "an IRI", FIRST_OF_IRI)  # [136] iri, [137] PrefixedName
var = Terminal(f"[?$]{VARNAME}", lambda source, value, span: ast.VariableName(value[1:], span), "a variable", f"[?$]{_ANY_CHARS}")  # [108] Var
string = Terminal(STRING, _build_string, "a string", "[\"']")  # [135] String
short_string = Terminal("|".join(SHORT_STRINGS), make_sign, "a string in single quotes or double quotes")
lang_tag = Terminal("@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*+(?:--(?:ltr|rtl)(?![a-zA-Z0-9-]))?(?!--)", make_sign, None)  # [145] LANGTAG
numeric_literal = Terminal(  # [130] NumericLiteral, [131] NumericLiteralUnsigned, [132] NumericLiteralPositive, [133] NumericLiteralNegative
    NUMBER, lambda source, value, span: ast.NumericLiteral(value, span), "a number", r"[+-]?\.?[0-9]"
)
integer = Terminal("[0-9]+", lambda source, value, span: ast.NumericLiteral(value, span), "an integer without a sign")  # [97] Integer, [146] INTEGER
boolean_literal = Terminal(  # [134] BooleanLiteral
    f"(?i:true|false){WORD_END}", lambda source, value, span: ast.BooleanLiteral(value.lower(), span), "true or false"
)
blank_node_label = Terminal(  # [142] BLANK_NODE_LABEL
    f"_:{_class(_CHARS_U + '0-9')}(?:\\.*+{_class(_CHARS)})*+", lambda source, value, span: ast.BlankLabel(value[2:], span), "a blank node", "_:"
)
anon = Terminal(r"\[[ \t\r\n]*\]", lambda source, value, span: ast.Anonymous(span), None)  # [163] ANON
nil = Terminal(r"\([ \t\r\n]*\)", lambda source, value, span: ast.Collection((), span), None)  # [161] NIL
a_ = Terminal(f"a{WORD_END}", lambda source, value, span: ast.TypeVerb(span), None)

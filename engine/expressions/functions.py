"""SPARQL's function library maps names to functions of terms.

Functions of a solution's time or identity are not here. An error is an ExpressionError. Source: SPARQL 1.1, 17.4.
"""

import hashlib
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from functools import partial
from math import ceil, copysign, floor
from urllib.parse import quote

from engine.expressions import casts, etalis, numeric, temporal
from engine.expressions.extensions import Extension, extensions
from engine.expressions.literals import FALSE, TRUE, term_of, value_of
from engine.expressions.values import MAX_TEXT, DateTime, Duration, ExactMicros, ExpressionError, Number, NumericType, Text
from engine.regex.matching import find_match, replace_matches
from epsparql.deferred_methods import dataclass
from epsparql.iris import resolve
from epsparql.ntriples import is_absolute_iri, is_language_tag
from epsparql.regex.syntax import PatternFault
from epsparql.terms import DIRECTIONS, MAX_TRIPLE_DEPTH, RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, Term, TripleTerm


@dataclass(frozen=True, slots=True)
class Function:
    """Represents a function: `apply` takes `least` to `most` terms and raises ExpressionError where it has no value
    for them.
    """

    apply: Callable[..., Term]
    least: int
    most: int


def supported(function: str) -> bool:
    """Return whether `call` knows the function, a built-in's name in capitals or an IRI in `<>`."""
    return _found(function) is not None


def arguments_of(function: str) -> tuple[int, int]:
    """Return the least and the greatest number of arguments of a function that is `supported`."""
    found = _found(function)
    assert found is not None
    return found.least, found.most


def _found(function: str) -> Function | Extension | None:
    return FUNCTIONS.get(function) or (extensions().get(function) if function.startswith("<") else None)


def call(function: str, arguments: Sequence[Term]) -> Term:
    """Call a function with arguments.

    Raises: ExpressionError, also for a function that is not `supported` or a wrong number of arguments.
    """
    found = _found(function)
    if found is None or not found.least <= len(arguments) <= found.most:
        raise ExpressionError
    result = found.apply(*arguments)
    if isinstance(result, Literal) and len(result.lexical) > MAX_TEXT:
        raise ExpressionError
    return result


# ---------------------------------------------------------------- arguments
def _flag(value: bool) -> Literal:
    return TRUE if value else FALSE


def _text(term: Term) -> Text:
    """Return a string literal's text with its language.

    Raises: ExpressionError.
    """
    value = value_of(term)
    if isinstance(value, Text):
        return value
    raise ExpressionError


def _simple(term: Term) -> str:
    """Return a string without language.

    Raises: ExpressionError.
    """
    text = _text(term)
    if text.language is not None:
        raise ExpressionError
    return text.value


def _literal(term: Term) -> Literal:
    if isinstance(term, Literal):
        return term
    raise ExpressionError


def _number(term: Term) -> Number:
    value = value_of(term)
    if isinstance(value, Number):
        return value
    raise ExpressionError


def _instant(term: Term) -> DateTime:
    value = value_of(term)
    if isinstance(value, DateTime):
        return value
    raise ExpressionError


def _pair(left: Term, right: Term) -> tuple[Text, str]:
    """Return arguments that are compatible by SPARQL 1.1, 17.4.3.1.2.

    Raises: ExpressionError.
    """
    text, other = _text(left), _text(right)
    if other.language is not None and (text.language or "").lower() != other.language.lower():
        raise ExpressionError
    return text, other.value


# ---------------------------------------------------------------- terms
def string(term: Term) -> Term:
    match term:
        case Iri(value) | Literal(value):
            return Literal(value)
        case BlankNode() | TripleTerm():
            raise ExpressionError


def lang(term: Term) -> Term:
    return Literal(_literal(term).language or "")


def datatype(term: Term) -> Term:
    return Iri(_literal(term).datatype)


def iri(term: Term, base: Term | None = None) -> Term:
    """Return the IRI of a string; `base`, if given, is the query's BASE, which translation adds.

    Raises: ExpressionError where that is no absolute IRI: a term that no format can write would make answers
    unreadable.
    """
    text = term.value if isinstance(term, Iri) else _simple(term)
    return _absolute(resolve(text, base.value if isinstance(base, Iri) else None))


def _absolute(text: str) -> Iri:
    if not is_absolute_iri(text):
        raise ExpressionError
    return Iri(text)


def strdt(lexical: Term, of: Term) -> Term:
    if not isinstance(of, Iri) or of.value in (RDF_LANG_STRING, RDF_DIR_LANG_STRING):
        raise ExpressionError
    return Literal(_simple(lexical), _absolute(of.value).value)


def strlang(lexical: Term, tag: Term) -> Literal:
    language = _simple(tag)
    if not is_language_tag(language):
        raise ExpressionError
    return Literal.from_tag(_simple(lexical), language.lower())


def strlangdir(lexical: Term, tag: Term, direction: Term) -> Term:
    found, base = strlang(lexical, tag), _simple(direction)
    if base not in DIRECTIONS:
        raise ExpressionError
    return Literal.from_tag(found.lexical, f"{found.language}--{base}")


def langdir(term: Term) -> Term:
    return Literal(_literal(term).direction or "")


def has_lang(term: Term) -> Term:
    return _flag(isinstance(term, Literal) and term.language is not None)


def has_langdir(term: Term) -> Term:
    return _flag(isinstance(term, Literal) and term.direction is not None)


def triple(subject: Term, predicate: Term, object_: Term) -> Term:
    """Return a triple term.

    Raises: ExpressionError where the terms make no triple, or one that nests deeper than MAX_TRIPLE_DEPTH.
    """
    if not isinstance(subject, Iri | BlankNode) or not isinstance(predicate, Iri):
        raise ExpressionError
    made = TripleTerm(subject, predicate, object_)
    if made.depth > MAX_TRIPLE_DEPTH:
        raise ExpressionError
    return made


def _triple(term: Term) -> TripleTerm:
    if isinstance(term, TripleTerm):
        return term
    raise ExpressionError


def is_numeric(term: Term) -> Term:
    return _flag(isinstance(value_of(term), Number))


def lang_matches(tag: Term, wanted: Term) -> Term:
    """Match a language tag by the basic filtering of RFC 4647."""
    language, pattern = _simple(tag).lower(), _simple(wanted).lower()
    return _flag(bool(language) if pattern == "*" else language == pattern or language.startswith(pattern + "-"))


# ---------------------------------------------------------------- strings
def strlen(term: Term) -> Term:
    return term_of(Number(NumericType.INTEGER, len(_text(term).value)))


def substr(term: Term, start: Term, length: Term | None = None) -> Term:
    """Return a part of a string, as XPath's fn:substring: positions count from 1; doubles are rounded."""
    text = _text(term)
    first = _rounded(_number(start))
    last = float("inf") if length is None else first + _rounded(_number(length))
    kept = "".join(character for place, character in enumerate(text.value, 1) if first <= place < last)
    return term_of(Text(kept, text.language))


def _rounded(number: Number) -> float:
    value = numeric.to_float(number.value)
    return float(_round_float(value)) if value - value == 0 else value


def _changed(change: Callable[[str], str], term: Term) -> Term:
    text = _text(term)
    return term_of(Text(change(text.value), text.language))


def starts(term: Term, start: Term) -> Term:
    text, wanted = _pair(term, start)
    return _flag(text.value.startswith(wanted))


def ends(term: Term, end: Term) -> Term:
    text, wanted = _pair(term, end)
    return _flag(text.value.endswith(wanted))


def contains(term: Term, part: Term) -> Term:
    text, wanted = _pair(term, part)
    return _flag(wanted in text.value)


def before(term: Term, part: Term) -> Term:
    text, wanted = _pair(term, part)
    head, found, _ = text.value.partition(wanted) if wanted else ("", True, "")
    return term_of(Text(head, text.language)) if found or not wanted else Literal("")


def after(term: Term, part: Term) -> Term:
    text, wanted = _pair(term, part)
    _, found, tail = text.value.partition(wanted) if wanted else ("", True, text.value)
    return term_of(Text(tail, text.language)) if found or not wanted else Literal("")


def concat(*terms: Term) -> Term:
    """Join strings; the result has the common language of all, if they have one."""
    texts = [_text(term) for term in terms]
    if sum(len(text.value) for text in texts) > MAX_TEXT:
        raise ExpressionError
    languages = {text.language for text in texts}
    return term_of(Text("".join(text.value for text in texts), languages.pop() if len(languages) == 1 else None))


def encode_for_uri(term: Term) -> Term:
    return Literal(quote(_text(term).value, safe="-_.~"))


def matches(term: Term, pattern: Term, flags: Term | None = None) -> Term:
    try:
        return _flag(find_match(_text(term).value, _simple(pattern), "" if flags is None else _simple(flags)))
    except PatternFault as error:
        raise ExpressionError from error


def replace(term: Term, pattern: Term, replacement: Term, flags: Term | None = None) -> Term:
    text = _text(term)
    try:
        result = replace_matches(text.value, _simple(pattern), _simple(replacement), "" if flags is None else _simple(flags), MAX_TEXT)
    except PatternFault as error:
        raise ExpressionError from error
    return term_of(Text(result, text.language))


def digest(algorithm: str, term: Term) -> Term:
    return Literal(hashlib.new(algorithm, _simple(term).encode(), usedforsecurity=False).hexdigest())


# ---------------------------------------------------------------- numbers
def _rounding(decimal: Callable[[Decimal], Decimal], floating: Callable[[float], float], term: Term) -> Term:
    number = _number(term)
    match number.value:
        case Decimal() as value:
            return term_of(Number(number.kind, decimal(value)))
        case float() as value if value - value == 0:
            return term_of(Number(number.kind, copysign(floating(value), value)))
        case _:
            return term_of(number)


def absolute(term: Term) -> Term:
    number = _number(term)
    return term_of(Number(number.kind, abs(number.value) if not isinstance(number.value, Decimal) else number.value.copy_abs()))


def _round_decimal(value: Decimal) -> Decimal:
    """Round as XPath's fn:round: a half goes up."""
    return value.to_integral_value(ROUND_HALF_UP if value > 0 else ROUND_HALF_DOWN)


def _round_float(value: float) -> int:
    whole = floor(value)
    return whole + (value - whole >= 0.5)  # the difference is exact, a sum might not be


# ---------------------------------------------------------------- dates and times
def _field(read: Callable[[ExactMicros], int], term: Term) -> Term:
    """Return a field of the dateTime as it was written, in its own zone."""
    instant = _instant(term)
    return term_of(Number(NumericType.INTEGER, read(instant.micros + (instant.zone or 0) * temporal.MINUTE)))


def seconds(term: Term) -> Term:
    return term_of(Number(NumericType.DECIMAL, Decimal(temporal.format_seconds(_instant(term).micros % temporal.MINUTE))))


def timezone(term: Term) -> Term:
    zone = _instant(term).zone
    if zone is None:
        raise ExpressionError
    return Literal(temporal.format_duration(Duration(0, zone * temporal.MINUTE)), XSD + "dayTimeDuration")


def tz(term: Term) -> Term:
    zone = _instant(term).zone
    return Literal("" if zone is None else temporal.format_zone(zone))


# ---------------------------------------------------------------- the table
FUNCTIONS: dict[str, Function] = {
    "STR": Function(string, 1, 1),
    "LANG": Function(lang, 1, 1),
    "DATATYPE": Function(datatype, 1, 1),
    "IRI": Function(iri, 1, 2),
    "URI": Function(iri, 1, 2),
    "STRDT": Function(strdt, 2, 2),
    "STRLANG": Function(strlang, 2, 2),
    "SAMETERM": Function(lambda left, right: _flag(str(left) == str(right)), 2, 2),
    "ISIRI": Function(lambda term: _flag(isinstance(term, Iri)), 1, 1),
    "ISURI": Function(lambda term: _flag(isinstance(term, Iri)), 1, 1),
    "ISBLANK": Function(lambda term: _flag(isinstance(term, BlankNode)), 1, 1),
    "ISLITERAL": Function(lambda term: _flag(isinstance(term, Literal)), 1, 1),
    "ISNUMERIC": Function(is_numeric, 1, 1),
    "ISTRIPLE": Function(lambda term: _flag(isinstance(term, TripleTerm)), 1, 1),
    "TRIPLE": Function(triple, 3, 3),
    "SUBJECT": Function(lambda term: _triple(term).subject, 1, 1),
    "PREDICATE": Function(lambda term: _triple(term).predicate, 1, 1),
    "OBJECT": Function(lambda term: _triple(term).object, 1, 1),
    "HASLANG": Function(has_lang, 1, 1),
    "HASLANGDIR": Function(has_langdir, 1, 1),
    "LANGDIR": Function(langdir, 1, 1),
    "STRLANGDIR": Function(strlangdir, 3, 3),
    "LANGMATCHES": Function(lang_matches, 2, 2),
    "STRLEN": Function(strlen, 1, 1),
    "SUBSTR": Function(substr, 2, 3),
    "UCASE": Function(partial(_changed, str.upper), 1, 1),
    "LCASE": Function(partial(_changed, str.lower), 1, 1),
    "STRSTARTS": Function(starts, 2, 2),
    "STRENDS": Function(ends, 2, 2),
    "CONTAINS": Function(contains, 2, 2),
    "STRBEFORE": Function(before, 2, 2),
    "STRAFTER": Function(after, 2, 2),
    "CONCAT": Function(concat, 0, 1 << 16),
    "ENCODE_FOR_URI": Function(encode_for_uri, 1, 1),
    "REGEX": Function(matches, 2, 3),
    "REPLACE": Function(replace, 3, 4),
    "MD5": Function(partial(digest, "md5"), 1, 1),
    "SHA1": Function(partial(digest, "sha1"), 1, 1),
    "SHA256": Function(partial(digest, "sha256"), 1, 1),
    "SHA384": Function(partial(digest, "sha384"), 1, 1),
    "SHA512": Function(partial(digest, "sha512"), 1, 1),
    "ABS": Function(absolute, 1, 1),
    "CEIL": Function(partial(_rounding, partial(Decimal.to_integral_value, rounding=ROUND_CEILING), ceil), 1, 1),
    "FLOOR": Function(partial(_rounding, partial(Decimal.to_integral_value, rounding=ROUND_FLOOR), floor), 1, 1),
    "ROUND": Function(partial(_rounding, _round_decimal, _round_float), 1, 1),
    "YEAR": Function(partial(_field, lambda local: temporal.civil_from_days(local // temporal.DAY)[0]), 1, 1),
    "MONTH": Function(partial(_field, lambda local: temporal.civil_from_days(local // temporal.DAY)[1]), 1, 1),
    "DAY": Function(partial(_field, lambda local: temporal.civil_from_days(local // temporal.DAY)[2]), 1, 1),
    "HOURS": Function(partial(_field, lambda local: local % temporal.DAY // temporal.HOUR), 1, 1),
    "MINUTES": Function(partial(_field, lambda local: local % temporal.HOUR // temporal.MINUTE), 1, 1),
    "SECONDS": Function(seconds, 1, 1),
    "TIMEZONE": Function(timezone, 1, 1),
    "TZ": Function(tz, 1, 1),
    **{iri_text: Function(*found) for iri_text, found in etalis.APPLIED.items()},
    **{f"<{datatype_iri}>": Function(partial(casts.cast, datatype_iri, into=term_of), 1, 1) for datatype_iri in casts.CASTS},
}

"""This module reads the constants of a query as the engine compares them."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from epsparql.iris import Names
from epsparql.lint.type_inference import INTEGERS, Kind
from epsparql.lint.value_regions import Cell, ConstantValue, nearest_single
from epsparql.literals import MAX_MICROS, duration_micros, literal_fault
from epsparql.parser import ast as s
from epsparql.terms import RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD, XSD_STRING, Literal

_LONGEST = 40
"""A number has at most so many characters here: an exponent may make a huge one of few."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMERIC = {
    **dict.fromkeys((XSD + name for name in ("integer", "decimal")), Cell.EXACT),
    XSD + "double": Cell.DOUBLE,
    XSD + "float": Cell.FLOAT,
}
CELLS_OF_DATATYPES: dict[str, tuple[Cell, ...]] = {
    **dict.fromkeys((XSD + name for name in (*INTEGERS, "decimal")), (Cell.EXACT,)),
    XSD + "double": (Cell.DOUBLE, Cell.NAN),
    XSD + "float": (Cell.FLOAT, Cell.NAN),
    XSD + "boolean": (Cell.TRUE, Cell.FALSE),
    XSD_STRING: (Cell.TEXT,),
    RDF_LANG_STRING: (Cell.TAGGED,),
    RDF_DIR_LANG_STRING: (Cell.TAGGED,),
    **dict.fromkeys((XSD + name for name in ("dateTime", "dateTimeStamp")), (Cell.INSTANT,)),
    XSD + "date": (Cell.DAY,),
    **dict.fromkeys((XSD + name for name in ("duration", "dayTimeDuration", "yearMonthDuration")), (Cell.DAY_TIME, Cell.CALENDAR)),
}
"""These are the cells of a datatype's values.

A literal whose form its datatype does not have is OTHER, as is one of a datatype without a line.
"""


def read_constant(names: Names, node: s.Expression) -> ConstantValue | None:
    """Return a constant whose order or equality is known; None for every other expression."""
    match node:
        case s.IriRef() | s.PrefixedName():
            return ConstantValue(Kind.IRI, names.iri(node))
        case s.NumericLiteral(text, _):
            return _read_number(text)
        case s.Unary(s.UnaryOperator.MINUS, s.NumericLiteral(text, _), _):
            return _read_number(f"-{text}")
        case s.BooleanLiteral(text, _):
            return ConstantValue(Kind.TRUE if text == "true" else Kind.FALSE, "")
        case s.StringLiteral(lexical, None, None, _):
            return ConstantValue(Kind.TEXT, lexical)
        case s.StringLiteral(lexical, None, datatype, _) if datatype is not None:
            return _read_typed(lexical, names.iri(datatype))
        case s.StringLiteral(lexical, str() as language, _, _):
            return ConstantValue(Kind.TAGGED, f"{language.lower()} {lexical}")
        case s.FunctionCall(function, (s.StringLiteral(lexical, None, None, _),), _):
            return _read_typed(lexical, names.iri(function))
    return None


def _read_typed(lexical: str, datatype: str) -> ConstantValue | None:
    if literal_fault(Literal(lexical, datatype)) is not None or lexical != lexical.strip():
        return None
    if datatype == XSD_STRING:
        return ConstantValue(Kind.TEXT, lexical)
    if datatype in _NUMERIC:
        return _read_number(lexical, _NUMERIC[datatype])
    if datatype == XSD + "boolean":
        return ConstantValue(Kind.TRUE if lexical in ("true", "1") else Kind.FALSE, "")
    if datatype == XSD + "duration":
        micros = duration_micros(lexical)
        return None if micros is None or abs(micros) > MAX_MICROS else ConstantValue(Kind.DURATION, Fraction(micros))
    try:
        if datatype == XSD + "dateTime":
            instant = datetime.fromisoformat(lexical)
            zoned = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
            return ConstantValue(Kind.INSTANT, Fraction((zoned - _EPOCH) // timedelta(microseconds=1)))
        if datatype == XSD + "date":
            return ConstantValue(Kind.DAY, Fraction((date.fromisoformat(lexical) - _EPOCH.date()) // timedelta(microseconds=1)))
    except ValueError:  # a year beyond 9999, the hour 24, a date with a zone
        return None
    return None


def _read_number(text: str, cell: Cell | None = None) -> ConstantValue | None:
    """Return a number of the type that it is written in, or of the given one; None for one that is not finite, and
    for one with very many digits.
    """
    cell = cell or (Cell.DOUBLE if "e" in text.lower() else Cell.EXACT)
    if len(text) > _LONGEST:
        return None
    try:
        if cell is Cell.EXACT:
            return ConstantValue(Kind.NUMBER, Fraction(text), cell)
        place = Fraction(float(text)) if cell is Cell.DOUBLE else nearest_single(Fraction(text))
    except (ValueError, OverflowError):  # NaN and INF
        return None
    return None if place is None else ConstantValue(Kind.NUMBER, place, cell)

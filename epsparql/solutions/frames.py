"""This module puts solutions into frames of pandas or polars, with the library's own type for each column of one kind
of value.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact
from enum import Enum, auto
from typing import Any

from epsparql.extras import load_extra
from epsparql.ntriples import parse_statements
from epsparql.python_values import python_value
from epsparql.solutions.solution import Solution, term_of
from epsparql.terms import XSD, BlankNode, Iri, Literal, Term

LIBRARIES = ("pandas", "polars")
_FIXED = ("id", "start", "end")
_MOST_DIGITS = 38  # polars' decimals have no more
_EXACT = Context(prec=_MOST_DIGITS, traps=[Inexact])
_LONGEST = timedelta(days=100_000_000)  # 64 bits of microseconds hold as much


class ColumnKind(Enum):
    """Says what the values of a column have in common."""

    BOOLEAN = auto()
    INTEGER = auto()
    FLOAT = auto()
    DECIMAL = auto()
    TEXT = auto()
    INSTANT = auto()
    LOCAL_TIME = auto()
    DATE = auto()
    DURATION = auto()
    MIXED = auto()


def frame_of(solutions: Sequence[Solution], library: str, exact: bool) -> Any:
    """Return a frame as `Solutions.to_frame` describes it. Raises: MissingExtra; ValueError for another library."""
    if library not in LIBRARIES:
        raise ValueError(f"{library!r} is no library of frames here; expected {' or '.join(LIBRARIES)}")
    loaded = load_extra(library, "a frame")
    columns = columns_of(solutions)
    build = _pandas_column if library == "pandas" else _polars_column
    typed = {name: (ColumnKind.INSTANT, values) if name in ("start", "end") else _typed(values, exact) for name, values in columns.items()}
    return loaded.DataFrame({name: build(loaded, kind, values) for name, (kind, values) in typed.items()})


def columns_of(solutions: Sequence[Solution]) -> dict[str, list[Any]]:
    """Return the columns by name, each with a value for every row; None stands for a variable that is not bound."""
    rows = [(solution, row) for solution in solutions for row in _rows_of(solution)]
    columns: dict[str, list[Any]] = {
        "id": [solution.id for solution, _ in rows],
        "start": [_instant_of(solution.start) for solution, _ in rows],
        "end": [_instant_of(solution.end) for solution, _ in rows],
    }
    names = dict.fromkeys(name for _, row in rows for name in row)
    return columns | {f"?{name}" if name in _FIXED else name: [row.get(name) for _, row in rows] for name in names}


def _rows_of(solution: Solution) -> list[dict[str, Any]]:
    if solution.triples is not None:
        triples = parse_statements(solution.triples)
        return [{"subject": _value_of(each.subject), "predicate": each.predicate.value, "object": _value_of(each.object)} for each in triples]
    if solution.boolean is not None:
        return [{"boolean": solution.boolean}]
    return [{name: _value_of(term_of(term)) for name, term in (solution.binding or {}).items()}]


def _value_of(term: Term) -> Any:
    """Return what a cell holds: a Python value that equals the term exactly, and where there is none, the term as
    clients give it.
    """
    match term:
        case Iri(text):
            return text
        case BlankNode():
            return str(term)
        case Literal(lexical, datatype, language):
            value = lexical if language else python_value(lexical, datatype.removeprefix(XSD)) if datatype.startswith(XSD) else None
            if value is not None:
                return value
    from epsparql.rdf_exchange.conversion import to_client_term

    return to_client_term(term)


def _instant_of(text: str) -> datetime:
    found = python_value(text, "dateTime")
    if not isinstance(found, datetime):
        raise ValueError(f"{text} is beyond the years of a datetime, which are 1 to 9999; read such solutions with client.solutions")
    return found


def _typed(values: list[Any], exact: bool) -> tuple[ColumnKind, list[Any]]:
    """Return what the values are, and the values in one form: aware datetimes in UTC, numbers as floats unless they
    are to be exact.
    """
    present = [value for value in values if value is not None]
    types = {type(value) for value in present}
    if not exact and types and types <= {int, float, Decimal}:
        return ColumnKind.FLOAT, [None if value is None else float(value) for value in values]
    if types == {datetime} and all(value.tzinfo is not None for value in present):
        return ColumnKind.INSTANT, [None if value is None else value.astimezone(UTC) for value in values]
    return (_kind_of(types.pop(), present) if len(types) == 1 else ColumnKind.MIXED), values


def _kind_of(of: type, present: Sequence[Any]) -> ColumnKind:
    plain = {bool: ColumnKind.BOOLEAN, float: ColumnKind.FLOAT, str: ColumnKind.TEXT, date: ColumnKind.DATE}
    if of is int and all(-(1 << 63) <= value < 1 << 63 for value in present):
        return ColumnKind.INTEGER
    if of is Decimal and _places_of(present) is not None:
        return ColumnKind.DECIMAL
    if of is datetime and all(value.tzinfo is None for value in present):
        return ColumnKind.LOCAL_TIME
    if of is timedelta and all(abs(value) < _LONGEST for value in present):
        return ColumnKind.DURATION
    return plain.get(of, ColumnKind.MIXED)


def _places_of(decimals: Iterable[Decimal]) -> int | None:
    """Return the digits after the point that all the decimals need, or None where 38 digits do not hold them."""
    tuples = [value.as_tuple() for value in decimals]
    places = max(0, *(-int(each.exponent) for each in tuples))
    whole = max(len(each.digits) + int(each.exponent) for each in tuples)
    return places if places + max(whole, 0) <= _MOST_DIGITS else None


def _pandas_column(pandas: Any, kind: ColumnKind, values: list[Any]) -> Any:
    missing = any(value is None for value in values)
    types: dict[ColumnKind, str | None] = {
        ColumnKind.TEXT: None,  # the library chooses: object in pandas 2, str in pandas 3
        ColumnKind.BOOLEAN: "boolean" if missing else "bool",
        ColumnKind.INTEGER: "Int64" if missing else "int64",
        ColumnKind.FLOAT: "float64",
        ColumnKind.INSTANT: "datetime64[us, UTC]",
        ColumnKind.LOCAL_TIME: "datetime64[us]",
        ColumnKind.DURATION: "timedelta64[us]",
    }
    return pandas.Series(values, dtype=types.get(kind, "object"))


def _polars_column(polars: Any, kind: ColumnKind, values: list[Any]) -> Any:
    types: dict[ColumnKind, Any] = {
        ColumnKind.BOOLEAN: polars.Boolean,
        ColumnKind.INTEGER: polars.Int64,
        ColumnKind.FLOAT: polars.Float64,
        ColumnKind.TEXT: polars.String,
        ColumnKind.INSTANT: polars.Datetime("us", "UTC"),
        ColumnKind.LOCAL_TIME: polars.Datetime("us"),
        ColumnKind.DATE: polars.Date,
        ColumnKind.DURATION: polars.Duration("us"),
    }
    if kind is ColumnKind.DECIMAL:
        places = _places_of(value for value in values if value is not None) or 0
        alike = [None if value is None else value.quantize(Decimal(1).scaleb(-places), context=_EXACT) for value in values]
        return polars.Series(alike, dtype=polars.Decimal(_MOST_DIGITS, places))
    return polars.Series(values, dtype=types.get(kind, polars.Object))

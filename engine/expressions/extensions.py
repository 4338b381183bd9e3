"""Functions beyond SPARQL's library have IRIs: some come with the engine, others are of modules that the operator
names.

A module named in EPSPARQL_FUNCTIONS (several: with commas) has a table `FUNCTIONS`: IRI -> Python function. Its
arguments are Python values: int, Decimal or float for numbers, bool, str for strings without language, and the term
itself (epsparql.terms) for all else. The function returns such values too. An ExpressionError, ValueError or
ArithmeticError that it raises is SPARQL's error. It must be a function of its arguments alone, because answers are
remembered and a log is read again after a restart. Every process that runs an engine must be able to import the
module.
"""

import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from math import asin, cos, isfinite, radians, sin, sqrt

from engine.expressions import geosparql, numeric, temporal
from engine.expressions.literals import term_of, value_of
from engine.expressions.values import Duration, ExpressionError, Number, NumericType, Text
from epsparql.deferred_methods import dataclass
from epsparql.ntriples import is_writable
from epsparql.terms import BlankNode, Iri, Literal, Term, TripleTerm

NAMESPACE = "urn:epsparql:function:"
"""The functions that come with the engine have this namespace; `PREFIX ep: <urn:epsparql:function:>`."""
EARTH_RADIUS_M = 6_378_137
VARIABLE = "EPSPARQL_FUNCTIONS"
Plain = int | Decimal | float | bool | str | Term
MANY = 1 << 16
"""A function with `*arguments` may be given so many arguments."""


class ExtensionFault(Exception):
    """Says that a module of functions cannot be used; the message names it and the remedy."""


@dataclass(frozen=True, slots=True)
class Extension:
    """Represents a function of `least` to `most` terms; it raises ExpressionError where it has no value for them."""

    function: Callable[..., Plain]
    least: int
    most: int

    def apply(self, *arguments: Term) -> Term:
        try:
            return _to_term(self.function(*map(_to_plain, arguments)))
        except (ValueError, ArithmeticError, TypeError) as fault:
            raise ExpressionError from fault


def distance(lat1: Plain, lon1: Plain, lat2: Plain, lon2: Plain) -> float:
    """Return the metres along the great circle between two places, given in degrees, on a sphere of 6,378,137 m.

    Source: the haversine formula; the radius is that of the appendix of Anicic, Rudolph, Fodor, Stojanovic, *Stream
    reasoning and complex event processing in ETALIS*, and of WGS 84's equator.
    """
    north, east, other_north, other_east = (_degrees(value, limit) for value, limit in ((lat1, 90), (lon1, 360), (lat2, 90), (lon2, 360)))
    over = sin((other_north - north) / 2) ** 2 + cos(north) * cos(other_north) * sin((other_east - east) / 2) ** 2
    return 2 * EARTH_RADIUS_M * asin(min(1.0, sqrt(over)))


def _degrees(value: Plain, limit: int) -> float:
    """Return a value in degrees, of at most `limit` to either side, in radians.

    Raises: ExpressionError.
    """
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
        raise ExpressionError
    found = float(value)
    if not isfinite(found) or abs(found) > limit:
        raise ExpressionError
    return radians(found)


def seconds(duration: Plain) -> Decimal:
    """Return the seconds of a day-time duration. Raises: ExpressionError for anything else."""
    value = value_of(duration) if isinstance(duration, Literal) else None
    if not isinstance(value, Duration):
        raise ExpressionError
    return Decimal(temporal.total_seconds(value).value)


def _look_up(*_arguments: Plain) -> Plain:
    """Signal an error, because a function that looks into the background is called with it (background_functions.py).

    Raises: ExpressionError.
    """
    raise ExpressionError


OWN: Mapping[str, Extension] = {
    f"{NAMESPACE}distance": Extension(distance, 4, 4),
    f"{NAMESPACE}seconds": Extension(seconds, 1, 1),
    f"{NAMESPACE}route": Extension(_look_up, 3, 4),
    f"{NAMESPACE}routeLength": Extension(_look_up, 3, 4),
}


@cache
def known(modules: str) -> dict[str, Extension]:
    """Return, by IRI in `<>`, the engine's own functions and those of modules (names with commas).

    Raises: ExtensionFault.
    """
    found = {f"<{iri}>": extension for iri, extension in OWN.items()}
    found |= {f"<{iri}>": Extension(function, count, count) for iri, (function, count) in geosparql.FUNCTIONS.items()}
    for name in filter(None, (part.strip() for part in modules.split(","))):
        found |= _loaded(name)
    return found


def extensions() -> dict[str, Extension]:
    """Return the functions of this process.

    Raises: ExtensionFault.
    """
    return known(os.environ.get(VARIABLE, ""))


def _loaded(name: str) -> dict[str, Extension]:
    try:
        table = importlib.import_module(name).FUNCTIONS
    except (ImportError, AttributeError) as fault:
        raise ExtensionFault(f"{VARIABLE}: {name}: {fault}; name modules on Python's path that have a table FUNCTIONS, IRI -> function") from fault
    found = {}
    for iri, function in table.items():
        if not isinstance(iri, str) or ":" not in iri or iri.startswith(NAMESPACE) or any(c in '<>"{}|^`\\' or c <= " " for c in iri):
            raise ExtensionFault(f"{VARIABLE}: {name}: {iri!r} is no absolute IRI of your own for a function")
        found[f"<{iri}>"] = Extension(function, *_arguments(name, iri, function))
    return found


def _arguments(name: str, iri: str, function: Callable[..., Plain]) -> tuple[int, int]:
    """Return the least and greatest number of arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as fault:
        raise ExtensionFault(f"{VARIABLE}: {name}: what stands for {iri} is no function whose parameters are known") from fault
    taken = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise ExtensionFault(f"{VARIABLE}: {name}: the function for {iri} has a parameter that cannot be given by position")
    most = MANY if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(taken)
    return sum(p.default is p.empty for p in taken), most


def _to_plain(term: Term) -> Plain:
    match value_of(term):
        case Number(_, value):
            return value
        case bool() as flag:
            return flag
        case Text(text, None):
            return text
    return term


def _to_term(value: object) -> Term:
    match value:
        case bool():
            return term_of(value)
        case int() | Decimal():
            kind = NumericType.INTEGER if isinstance(value, int) else NumericType.DECIMAL
            return term_of(numeric.add(Number(NumericType.INTEGER, 0), Number(kind, value)))  # within the bounds of computed numbers
        case float():
            return term_of(Number(NumericType.DOUBLE, value))
        case str():
            return term_of(Text(value))
        case Iri() | Literal() | BlankNode() | TripleTerm() if is_writable(value):
            return value
    raise ExpressionError

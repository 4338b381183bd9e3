"""Functions of GeoSPARQL 1.1 on `geo:wktLiteral`, with shapely and pyproj (the extra `geo`).

Relations, such as `geof:sfWithin`, are those of the Simple Features on the plane of the coordinates, in the reference
system of the first geometry. Distances and buffers in metres are on the ellipsoid of WGS 84.

Source: https://docs.ogc.org/is/22-047r1/22-047r1.html, sections 8.7 and 8.8.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from importlib.util import find_spec
from math import degrees, isfinite
from typing import TYPE_CHECKING, Any

from engine.expressions.values import ExpressionError
from epsparql.deferred_methods import dataclass
from epsparql.terms import Iri, Literal, Term

if TYPE_CHECKING:
    from shapely import Geometry

NAMESPACE = "http://www.opengis.net/def/function/geosparql/"
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
"""Geometries that name no reference system have this one: longitude before latitude, in degrees."""
LIBRARIES = ("shapely", "pyproj")
MOST_TEXT, MOST_POINTS, MOST_DEPTH = 1 << 20, 50_000, 16
"""A geometry has at most so many characters, points, and levels of brackets."""
MOST_PAIRS, MOST_BUFFERED = 1_000_000, 200
"""Two geometries have at most so many pairs of points, since all of their edges may cross; a buffer is made of so many
points.
"""
_OGC, _QUDT = "http://www.opengis.net/def/uom/OGC/1.0/", "http://qudt.org/vocab/unit/"
METRES = {f"{_OGC}metre": 1.0, f"{_QUDT}M": 1.0, f"{_QUDT}KiloM": 1000.0}
DEGREES = {f"{_OGC}degree": 1.0, f"{_QUDT}DEG": 1.0, f"{_OGC}radian": degrees(1.0), f"{_QUDT}RAD": degrees(1.0)}
_LITERAL = re.compile(r"\s*(?:<([^<>\s]+)>\s*)?(.*)", re.DOTALL)
_CRS = re.compile(r"https?://www\.opengis\.net/def/crs/([A-Za-z]+)/[^/]*/([A-Za-z0-9]+)")
_SMALL_TEXT, _SMALL_KEPT, _LARGE_KEPT = 8_192, 8_192, 64
_CIRCLE = 16
"""A buffer has this many points for a quarter of a circle."""


@dataclass(frozen=True, slots=True)
class LocatedGeometry:
    """Holds a geometry with its coordinates as x before y, and the IRI of its reference system."""

    geometry: "Geometry"
    system: str


def is_installed() -> bool:
    """Return whether the libraries are there."""
    return all(find_spec(library) is not None for library in LIBRARIES)


# ---------------------------------------------------------------- geometries
def read_geometry(term: Term) -> LocatedGeometry:
    """Return the geometry of a literal. Raises: ExpressionError."""
    if not isinstance(term, Literal) or term.datatype != WKT or len(term.lexical) > MOST_TEXT:
        raise ExpressionError
    return _parse_small(term.lexical) if len(term.lexical) <= _SMALL_TEXT else _parse_large(term.lexical)


def _read_pair(left: Term, right: Term) -> tuple[LocatedGeometry, LocatedGeometry]:
    """Return the geometries of two literals. Raises: ExpressionError, also if they have too many pairs of points."""
    import shapely

    first, second = read_geometry(left), read_geometry(right)
    if shapely.get_num_coordinates(first.geometry) * shapely.get_num_coordinates(second.geometry) > MOST_PAIRS:
        raise ExpressionError
    return first, second


def _parse_wkt(text: str) -> LocatedGeometry:
    import shapely

    found = _LITERAL.fullmatch(text)
    assert found is not None
    system, body = found[1] or CRS84, found[2].strip()
    if _measure_depth(body) > MOST_DEPTH:  # the parser recurs
        raise ExpressionError
    try:
        geometry = shapely.from_wkt(body if body else "GEOMETRYCOLLECTION EMPTY")
    except shapely.errors.ShapelyError as fault:
        raise ExpressionError from fault
    coordinates = shapely.get_coordinates(geometry)
    if len(coordinates) > MOST_POINTS or not all(map(isfinite, coordinates.ravel())):
        raise ExpressionError
    if _has_swapped_axes(system):
        geometry = shapely.transform(geometry, lambda points: points[:, ::-1])
    shapely.prepare(geometry)
    return LocatedGeometry(geometry, system)


_parse_small, _parse_large = lru_cache(_SMALL_KEPT)(_parse_wkt), lru_cache(_LARGE_KEPT)(_parse_wkt)


def _measure_depth(text: str) -> int:
    depth = most = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        most = max(most, depth)
    return most


@lru_cache(64)
def _find_system(iri: str) -> Any:
    """Return pyproj's reference system of an IRI. Raises: ExpressionError for one that it does not know."""
    import pyproj

    found = _CRS.fullmatch(iri)
    if found is None:
        raise ExpressionError
    try:
        system = pyproj.CRS.from_authority(found[1].upper(), found[2])
    except pyproj.exceptions.ProjError as fault:
        raise ExpressionError from fault
    if not (system.is_geographic or system.is_projected):  # heights, dates and the like are no places
        raise ExpressionError
    return system


@lru_cache(64)
def _has_swapped_axes(iri: str) -> bool:
    """Return whether a reference system names the north before the east, as EPSG:4326 does."""
    axes = list(_find_system(iri).axis_info)
    return bool(axes) and axes[0].direction in ("north", "south")


def _move(place: LocatedGeometry, system: str) -> "Geometry":
    """Return the geometry of a place in another reference system. Raises: ExpressionError where it has no place there."""
    if place.system == system:
        return place.geometry
    import shapely

    moved = shapely.transform(place.geometry, _find_change(place.system, system), interleaved=False)
    if not all(map(isfinite, shapely.get_coordinates(moved).ravel())):
        raise ExpressionError
    return moved


@lru_cache(64)
def _find_change(before: str, after: str) -> Callable[..., Any]:
    import pyproj

    try:
        change: Callable[..., Any] = pyproj.Transformer.from_crs(_find_system(before), _find_system(after), always_xy=True).transform
    except pyproj.exceptions.ProjError as fault:
        raise ExpressionError from fault
    return change


def _write_wkt(geometry: "Geometry", system: str) -> Literal:
    import shapely

    if _has_swapped_axes(system):
        geometry = shapely.transform(geometry, lambda points: points[:, ::-1])
    text = shapely.to_wkt(geometry, rounding_precision=12)
    return Literal(text if system == CRS84 else f"<{system}> {text}", WKT)


# ---------------------------------------------------------------- functions
def _relation(name: str) -> Callable[[Term, Term], bool]:
    """Return a relation of the Simple Features, by shapely's name."""

    def relate(left: Term, right: Term) -> bool:
        import shapely

        first, second = _read_pair(left, right)
        try:
            if name == "within":  # the prepared geometry of `contains` is its first one
                return bool(shapely.contains(_move(second, first.system), first.geometry))
            return bool(getattr(shapely, name)(first.geometry, _move(second, first.system)))
        except shapely.errors.ShapelyError as fault:
            raise ExpressionError from fault

    return relate


def _unit(term: Term, units: Mapping[str, float]) -> float | None:
    return units.get(term.value) if isinstance(term, Iri) else None


def distance(left: Term, right: Term, unit: Term) -> float:
    """Return the shortest distance between two geometries.

    In metres it is that of the ellipsoid between their nearest points. These are found on the plane of longitude and
    latitude, so it is exact for two points. In degrees it is that of the plane. Raises: ExpressionError.
    """
    import shapely

    first, second = _read_pair(left, right)
    try:
        if (angle := _unit(unit, DEGREES)) is not None:
            return float(shapely.distance(first.geometry, _move(second, first.system))) / angle
        metres = _unit(unit, METRES)
        line = shapely.shortest_line(_move(first, CRS84), _move(second, CRS84))
    except shapely.errors.ShapelyError as fault:
        raise ExpressionError from fault
    if metres is None or line is None:
        raise ExpressionError
    (west, south), (east, north) = shapely.get_coordinates(line).tolist()
    if max(abs(south), abs(north)) > 90:
        raise ExpressionError
    _, _, found = _ellipsoid().inv(west, south, east, north)
    return float(found) / metres


@lru_cache(1)
def _ellipsoid() -> Any:
    import pyproj

    return pyproj.Geod(ellps="WGS84")


def buffer(term: Term, radius: object, unit: Term) -> Literal:
    """Return the points within a radius of a geometry, as polygons.

    In metres, they are found on an azimuthal projection about its centre. It is exact for points, and good to a
    thousandth for geometries of up to some hundred kilometres. Raises: ExpressionError.
    """
    import shapely

    place, value = read_geometry(term), _number(radius)
    if shapely.get_num_coordinates(place.geometry) > MOST_BUFFERED:
        raise ExpressionError
    try:
        if (angle := _unit(unit, DEGREES)) is not None:
            return _write_wkt(shapely.buffer(place.geometry, value * angle, quad_segs=_CIRCLE), place.system)
        metres, geometry = _unit(unit, METRES), _move(place, CRS84)
        if metres is None or geometry.is_empty:
            raise ExpressionError
        there, back = _project_about(round(geometry.centroid.x, 6), round(geometry.centroid.y, 6))
        around = shapely.buffer(shapely.transform(geometry, there, interleaved=False), value * metres, quad_segs=_CIRCLE)
        return _write_wkt(shapely.transform(around, back, interleaved=False), CRS84)
    except shapely.errors.ShapelyError as fault:
        raise ExpressionError from fault


@lru_cache(256)
def _project_about(east: float, north: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions to a projection about a place, and back."""
    import pyproj

    if abs(north) > 90 or abs(east) > 360:
        raise ExpressionError
    plane = pyproj.CRS.from_proj4(f"+proj=aeqd +lat_0={north} +lon_0={east} +datum=WGS84 +units=m")
    sphere = _find_system(CRS84)
    there, back = (pyproj.Transformer.from_crs(before, after, always_xy=True).transform for before, after in ((sphere, plane), (plane, sphere)))
    return there, back


def _number(value: object) -> float:
    """Return a finite number. Raises: ExpressionError."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float) or not isfinite(found := float(value)):
        raise ExpressionError
    return found


def _shape(name: str) -> Callable[[Term], Literal]:
    """Return a function from a geometry to another one, by shapely's name."""

    def make(term: Term) -> Literal:
        import shapely

        place = read_geometry(term)
        return _write_wkt(getattr(shapely, name)(place.geometry), place.system)

    return make


RELATIONS = {
    "sfContains": "contains", "sfCrosses": "crosses", "sfDisjoint": "disjoint", "sfEquals": "equals",
    "sfIntersects": "intersects", "sfOverlaps": "overlaps", "sfTouches": "touches", "sfWithin": "within",
}  # fmt: skip
FUNCTIONS: Mapping[str, tuple[Callable[..., Any], int]] = {
    **{f"{NAMESPACE}{name}": (_relation(shapely_name), 2) for name, shapely_name in RELATIONS.items()},
    f"{NAMESPACE}distance": (distance, 3),
    f"{NAMESPACE}buffer": (buffer, 3),
    f"{NAMESPACE}envelope": (_shape("envelope"), 1),
    f"{NAMESPACE}convexHull": (_shape("convex_hull"), 1),
}
"""The functions by their IRIs, each with its number of arguments."""

"""Functions of GeoSPARQL: relations beside shapely's own, distances known from the ellipsoid, axes, and what has no
value.
"""

import sys
from math import cos, radians, sin

import pyproj
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from engine.expressions.functions import call
from engine.expressions.geosparql import MOST_DEPTH, MOST_POINTS, NAMESPACE, RELATIONS, WKT
from engine.expressions.values import ExpressionError
from engine.validation.validate import refuse_functions
from epsparql import parse
from epsparql.errors import Unsupported
from epsparql.terms import Iri, Literal, Term

METRE, KILOMETRE, DEGREE = (
    Iri(each)
    for each in (
        "http://www.opengis.net/def/uom/OGC/1.0/metre",
        "http://qudt.org/vocab/unit/KiloM",
        "http://www.opengis.net/def/uom/OGC/1.0/degree",
    )
)
EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
BOX = "POLYGON((13 52, 14 52, 14 53, 13 53, 13 52))"


def wkt(text: str) -> Literal:
    return Literal(text, WKT)


def number(text: str) -> Literal:
    return Literal(text, "http://www.w3.org/2001/XMLSchema#decimal")


def many_points(count: int) -> str:
    return f"LINESTRING({', '.join(f'{k} {k % 2}' for k in range(count))})"


def geof(name: str, *arguments: Term) -> str:
    found = call(f"<{NAMESPACE}{name}>", arguments)
    assert isinstance(found, Literal)
    return found.lexical


# ---------------------------------------------------------------- relations
coordinates = st.integers(0, 4)
points = st.tuples(coordinates, coordinates).map(shapely.Point)
lines = st.lists(st.tuples(coordinates, coordinates), min_size=2, max_size=4, unique=True).map(shapely.LineString)
boxes = st.tuples(coordinates, coordinates, st.integers(1, 3), st.integers(1, 3)).map(
    lambda box: shapely.box(box[0], box[1], box[0] + box[2], box[1] + box[3])
)
geometries = st.one_of(points, lines, boxes, st.lists(boxes, max_size=2).map(shapely.MultiPolygon).filter(lambda each: each.is_valid))


@given(st.sampled_from(sorted(RELATIONS)), geometries, geometries)
def test_relations_are_those_of_shapely(name: str, left: shapely.Geometry, right: shapely.Geometry) -> None:
    expected = getattr(left, RELATIONS[name])(right)
    swapped = shapely.transform(right, lambda given: given[:, ::-1])
    for other in (wkt(right.wkt), wkt(f"<{EPSG}4326> {swapped.wkt}")):  # the second one has the north first
        assert geof(name, wkt(left.wkt), other) == str(expected).lower()


SYSTEMS = [
    pytest.param(f"<{EPSG}4326> POINT(52.5 13.4)", "true", id="latitude first"),
    pytest.param(f"<{EPSG}4326> POINT(13.4 52.5)", "false", id="longitude first"),
    pytest.param("<http://www.opengis.net/def/crs/OGC/1.3/CRS84> POINT(13.4 52.5)", "true", id="CRS84"),
    pytest.param(f"<{EPSG}25833> POINT(391400 5817900)", "true", id="metres of UTM"),
    pytest.param(f"<{EPSG}25832> POINT(391400 5817900)", "false", id="metres of another zone"),
    pytest.param("  POINT(13.4 52.5)  ", "true", id="blanks"),
    pytest.param("", "false", id="no text is an empty geometry"),
]


@pytest.mark.parametrize(("point", "expected"), SYSTEMS)
def test_reference_systems_and_their_axes(point: str, expected: str) -> None:
    assert geof("sfWithin", wkt(point), wkt(BOX)) == expected
    assert geof("sfContains", wkt(BOX), wkt(point)) == expected


# ---------------------------------------------------------------- measures
DISTANCES = [
    pytest.param("POINT(0 0)", "POINT(1 0)", METRE, 111_319.49079327358, id="a degree of the equator"),  # 6,378,137 m * pi / 180
    pytest.param("POINT(0 0)", "POINT(0 90)", METRE, 10_001_965.729312, id="equator to pole"),  # half of the meridian
    pytest.param("POINT(0 0)", "POINT(0 90)", KILOMETRE, 10_001.965729312, id="kilometres"),
    pytest.param("POINT(179 0)", "POINT(-179 0)", METRE, 2 * 111_319.49079327358, id="across the date line"),
    pytest.param("POINT(0 0)", "POINT(3 4)", DEGREE, 5.0, id="degrees of the plane"),
    pytest.param("POINT(12 52.5)", BOX, DEGREE, 1.0, id="to an area"),
    pytest.param("POINT(13.5 52.5)", BOX, METRE, 0.0, id="within an area"),
    pytest.param(f"<{EPSG}4326> POINT(90 0)", "POINT(0 0)", METRE, 10_001_965.729312, id="another system"),
]


@pytest.mark.parametrize(("left", "right", "unit", "expected"), DISTANCES)
def test_distances(left: str, right: str, unit: Iri, expected: float) -> None:
    for pair in ((left, right), (right, left)):
        assert float(geof("distance", *map(wkt, pair), unit)) == pytest.approx(expected, rel=1e-12, abs=1e-6)


@given(st.floats(-179, 179), st.floats(-85, 85), st.integers(1, 100_000))
def test_a_buffer_of_a_point_is_a_circle_on_the_ellipsoid(east: float, north: float, radius: int) -> None:
    circle = shapely.from_wkt(geof("buffer", wkt(f"POINT({east} {north})"), number(str(radius)), METRE))
    for x, y in shapely.get_coordinates(circle).tolist():
        *_, metres = pyproj.Geod(ellps="WGS84").inv(east, north, x, y)
        assert metres == pytest.approx(radius, rel=1e-3, abs=0.2)  # the centre is rounded to a tenth of a metre


def test_shapes() -> None:
    corners = shapely.get_coordinates(shapely.from_wkt(geof("buffer", wkt("POINT(1 2)"), number("0.5"), DEGREE))).tolist()
    for (x, y), angle in zip(corners[::16], (0, 90, 180, 270, 360), strict=True):
        assert (x, y) == pytest.approx((1 + 0.5 * cos(radians(angle)), 2 - 0.5 * sin(radians(angle))))
    found = geof("envelope", wkt(f"<{EPSG}4326> LINESTRING(1 2, 3 5)"))
    system, _, text = found.partition(" ")
    assert system == f"<{EPSG}4326>"
    assert shapely.from_wkt(text).equals(shapely.box(1, 2, 3, 5))
    assert shapely.from_wkt(geof("convexHull", wkt("MULTIPOINT(0 0, 2 0, 1 1, 1 0.5)"))).equals(shapely.Polygon([(0, 0), (2, 0), (1, 1)]))


# ---------------------------------------------------------------- what has no value
NONE = [
    pytest.param("sfWithin", (wkt("POINT(1"), wkt(BOX)), id="no WKT"),
    pytest.param("sfWithin", (Literal("POINT(1 2)"), wkt(BOX)), id="a string"),
    pytest.param("sfWithin", (Iri("http://e/x"), wkt(BOX)), id="an IRI"),
    pytest.param("sfWithin", (wkt("POINT(NaN 2)"), wkt(BOX)), id="no number"),
    pytest.param("sfWithin", (wkt("<http://e/crs> POINT(1 2)"), wkt(BOX)), id="an unknown system"),
    pytest.param("sfWithin", (wkt(f"<{EPSG}999999> POINT(1 2)"), wkt(BOX)), id="a number without a system"),
    pytest.param("sfWithin", (wkt("GEOMETRYCOLLECTION(" * MOST_DEPTH + "POINT(1 2)" + ")" * MOST_DEPTH), wkt(BOX)), id="too deep"),
    pytest.param("sfWithin", (wkt("(" * 500_000), wkt(BOX)), id="much too deep"),
    pytest.param("sfWithin", (wkt(many_points(MOST_POINTS + 1)), wkt(BOX)), id="too many points"),
    *(
        pytest.param("sfWithin", pair, id=f"{system}, {place}")
        for system in ("OGC/0/AnsiDate", "EPSG/0/5701", "EPSG/0/5800", "EPSG/0/4978")
        for point in [wkt(f"<http://www.opengis.net/def/crs/{system}> POINT(1 2)")]
        for place, pair in (("first", (point, wkt(BOX))), ("second", (wkt(BOX), point)))
    ),
    pytest.param("sfOverlaps", (wkt(many_points(1_001)), wkt(many_points(1_000))), id="too many pairs of points"),
    pytest.param("distance", (wkt(many_points(1_001)), wkt(many_points(1_000)), METRE), id="too many pairs for a distance"),
    pytest.param("buffer", (wkt(many_points(201)), number("1"), DEGREE), id="too many points for a buffer"),
    pytest.param("distance", (wkt("POINT(0 91)"), wkt("POINT(0 0)"), METRE), id="no latitude"),
    pytest.param("distance", (wkt("POINT EMPTY"), wkt("POINT(0 0)"), METRE), id="an empty geometry"),
    pytest.param("distance", (wkt("POINT(0 1)"), wkt("POINT(0 0)"), Iri("http://e/mile")), id="an unknown unit"),
    pytest.param("buffer", (wkt("POINT(0 1)"), Literal("1"), METRE), id="a radius that is a string"),
    pytest.param("buffer", (wkt("POINT(0 100)"), number("1"), METRE), id="a circle about no place"),
    pytest.param("envelope", (wkt(BOX), wkt(BOX)), id="too many arguments"),
]


@pytest.mark.parametrize(("name", "arguments"), NONE)
def test_what_has_no_value(name: str, arguments: tuple[Term, ...]) -> None:
    with pytest.raises(ExpressionError):
        geof(name, *arguments)


def test_a_query_is_refused_where_the_libraries_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = parse(f"SELECT ?a {{ ?a ?b ?c FILTER(<{NAMESPACE}sfWithin>(?c, ?c)) }}")
    refuse_functions(parsed)
    monkeypatch.setitem(sys.modules, "shapely", None)
    with pytest.raises(Unsupported, match="sfWithin> needs shapely and pyproj, which are not installed") as refused:
        refuse_functions(parsed)
    assert refused.value.expected == "an installation with pip install 'epsparql[geo]'"


def test_a_slip_in_a_name_names_the_functions_of_its_namespace() -> None:
    parsed = parse(f"SELECT ?a {{ ?a ?b ?c FILTER(<{NAMESPACE}sfInside>(?c, ?c)) }}")
    with pytest.raises(Unsupported, match="sfInside> is not known") as refused:
        refuse_functions(parsed)
    assert f"<{NAMESPACE}sfWithin>" in refused.value.expected
    assert "urn:epsparql:function:" not in refused.value.expected

"""Filters on many pairs of shapes are decided by their boxes as the host decides them for each pair."""

import sys
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.geosparql import DEGREES, METRES, NAMESPACE, RELATIONS, WKT
from engine.expressions.nondeterministic import NAMELESS
from engine.kernel.state import layout as c
from engine.messages import ADD, REPLACE, Entry, Events, Facts, Finish, Register
from engine.network import host_calls
from engine.network.host_calls import KernelHost, answer_question
from engine.network.window_subquery import make_solver
from engine.physical_plan.bounding_boxes import BoundingBoxes
from engine.physical_plan.plan import Inquiry
from epsparql import algebra as a
from epsparql.algebra import DEFAULT_STREAM
from epsparql.terms import Iri, Literal, Variable
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support.feeds import SECOND
from tests.support.run_both import Emitted, blocks, run

EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
X, Y = Variable("x"), Variable("y")
ODD = [
    "POLYGON EMPTY", "", "POINT(1", "GEOMETRYCOLLECTION(POINT(9 9), POLYGON((0 0, 1 0, 1 1, 0 1, 0 0)))", "POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))",
    f"<{EPSG}4326> POINT(52.5 13.4)", f"<{EPSG}4326> POLYGON((52 13, 53 13, 53 14, 52 14, 52 13))", f"<{EPSG}25833> POINT(391400 5817900)",
    f"<{EPSG}25833> POINT(391500 5817900)", "<x:none> POINT(0 0)", "POINT(0 91)", "POINT(200 0)", "POINT(179.9 10)", "POINT(-179.9 10)", "POINT Z(1 1 5)",
    f"LINESTRING({', '.join(f'{k} 8' for k in range(1100))})", f"LINESTRING({', '.join(f'{k} -8' for k in range(1100))})",
]  # fmt: skip
"""Empty and malformed texts, collections, crossing edges, other systems, no place on the globe, and too many pairs of points."""

tenths = st.integers(-30, 30).map(lambda tenth: tenth / 10)
points = st.builds(shapely.Point, tenths, tenths)
boxes = st.builds(lambda x, y, w, h: shapely.box(x, y, x + w / 10, y + h / 10), tenths, tenths, st.integers(1, 20), st.integers(1, 20))
lines = st.lists(st.tuples(tenths, tenths), min_size=2, max_size=3, unique=True).map(shapely.LineString)
texts = st.one_of(st.one_of(points, boxes, lines).map(lambda shape: shape.wkt), st.sampled_from(ODD))


def call(name: str, *more: a.Expression) -> a.Call:
    return a.Call(f"<{NAMESPACE}{name}>", (a.Var(X), a.Var(Y), *more))


def compare(op: a.Comparison, unit: str, limit: str) -> a.Compare:
    return a.Compare(op, call("distance", a.Constant(Iri(unit))), a.Constant(Literal(limit, "http://www.w3.org/2001/XMLSchema#decimal")))


DISTANCES = [compare(op, unit, limit) for op in a.Comparison for unit in [*METRES, *DEGREES] for limit in ("0.5", "0", "120000", "-1")]
MIRRORED = [a.Compare(each.op, each.right, each.left) for each in DISTANCES]
RELATED: list[a.Expression] = [call(name) for name in RELATIONS]
LEFT: list[a.Expression] = [RELATED[1], a.Not(RELATED[5]), a.Bound(X)]
RIGHT: list[a.Expression] = [RELATED[0], a.Bound(Y)]
COMPOSED: list[a.Expression] = [
    *(a.Not(each) for each in RELATED),
    *(a.And(one, other) for one, other in product(LEFT, RIGHT)),
    *(a.Or(one, other) for one, other in product(LEFT, RIGHT)),
    a.Call(f"<{NAMESPACE}sfWithin>", (a.Var(X), a.Constant(Literal(shapely.box(0, 0, 1, 1).wkt, WKT)))),
    a.Call(f"<{NAMESPACE}sfWithin>", (a.Var(X), call("envelope"))),
]


def check_pairs(conditions: Sequence[a.Expression], shapes: Sequence[str]) -> int:
    """Compare the verdicts for all pairs with those of the host, and return how many the boxes give."""
    terms, decided = TermTable(), 0
    numbers = [c.UNBOUND, terms.intern('"a"'), *(terms.intern(str(Literal(text, WKT))) for text in shapes)]
    pairs = np.array(list(product(numbers, numbers)))
    stored = BoundingBoxes(terms)
    for condition in conditions:
        verdicts = stored.decide(condition, {X: pairs[:, 0], Y: pairs[:, 1]})
        for pair, verdict in zip(pairs.tolist(), [] if verdicts is None else verdicts.tolist(), strict=verdicts is not None):
            if verdict != c.OPEN_QUESTION:
                decided += 1
                expected = answer_question(Inquiry((X, Y), False, condition), pair, terms, NAMELESS, 0)
                assert verdict == expected, (condition, *map(terms.text, pair))
    return decided


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from([*RELATED, *DISTANCES, *MIRRORED, *COMPOSED]), st.lists(texts, min_size=2, max_size=5))
def test_pairs_are_decided_as_by_comparison(condition: a.Expression, shapes: list[str]) -> None:
    check_pairs([condition], shapes)


@pytest.mark.parametrize("conditions", [RELATED, DISTANCES, MIRRORED, COMPOSED])
def test_odd_shapes_and_most_shapes_apart(conditions: list[a.Expression]) -> None:
    squares = [shapely.box(x, y, x + 1, y + 1).wkt for x, y in [(0, 0), (1, 0), (5, 5), (60, 80), (-179.5, 10), (0, -90)]]
    assert check_pairs(conditions, [*ODD, *squares]) > 40 * len(conditions) / 2


@given(st.lists(st.builds(lambda x, y: f"POINT({x} {y})", st.floats(-180, 180), st.floats(-90, 90)), min_size=2, max_size=4), st.integers(0, 20_100))
def test_distances_on_the_globe(shapes: list[str], kilometres: int) -> None:
    unit = "http://qudt.org/vocab/unit/KiloM"
    check_pairs([compare(op, unit, str(kilometres)) for op in (a.Comparison.LESS, a.Comparison.GREATER)], shapes)


# ---------------------------------------------------------------- queries
QUERY = f"""PREFIX geo: <http://www.opengis.net/ont/geosparql#> PREFIX geof: <{NAMESPACE}> SELECT ?zone ?p
WHERE {{ ?car <x:at> ?p . ?zone geo:asWKT ?area FILTER(geof:sfWithin(?p, ?area)) }}"""
squares = st.builds(lambda x, y: shapely.box(x, y, x + 0.5, y + 0.5).wkt, tenths, tenths)


def find_zones(changes: Sequence[tuple[str, Sequence[str]]], positions: Sequence[str]) -> list[Emitted]:
    """Return the solutions where the background changes before each position."""
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [(Register(0, "q", QUERY), ())]
    for second, ((change, areas), position) in enumerate(zip(changes, positions, strict=True), 1):
        text = "".join(f"<x:{change}{k}> <http://www.opengis.net/ont/geosparql#asWKT> {Literal(area, WKT)} .\n" for k, area in enumerate(areas))
        log.append((Facts(len(log), "urn:areas", text, change), ()))
        occurrence = Occurrence((Iri("x:car"), Iri("x:at"), Literal(position, WKT)), second * SECOND, second * SECOND)
        log.append((Events(len(log), DEFAULT_STREAM, 1, second * SECOND), (occurrence,)))
    log.append((Finish(len(log), DEFAULT_STREAM), ()))
    return sorted(run(blocks(log, range(len(log)))).emitted)


@settings(max_examples=examples(60, 20), deadline=None)
@given(st.data())
def test_zones_of_a_background_that_changes(data: st.DataObject) -> None:
    """Positions lie on edges of areas, too."""
    kinds = st.sampled_from([ADD, REPLACE])
    changes = [
        (kind, data.draw(st.lists(st.one_of(squares, st.sampled_from(ODD)), min_size=70, max_size=90)))
        for kind in data.draw(st.lists(kinds, min_size=2, max_size=3))
    ]
    positions = [data.draw(st.one_of(points.map(lambda point: point.wkt), st.sampled_from(ODD))) for _ in changes]
    found = find_zones(changes, positions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_calls, "MANY_QUESTIONS", sys.maxsize)
        assert find_zones(changes, positions) == found


@pytest.mark.parametrize("copied", [100, 1100])
def test_few_of_many_pairs_are_compared(monkeypatch: pytest.MonkeyPatch, copied: int) -> None:
    """Areas are copied to the query, or looked up in the background."""
    compared = 0

    def count(*arguments: Any) -> int:
        nonlocal compared
        compared += 1
        return answer_question(*arguments)

    monkeypatch.setattr(host_calls, "answer_question", count)
    found = find_zones([(ADD, [shapely.box(k, 0, k + 1, 1).wkt for k in range(copied)])], ["POINT(50 0.5)"])
    assert (len(found), compared) == (0, 2), "the point is on an edge of two areas"
    found = find_zones([(ADD, [shapely.box(k, 0, k + 1, 1).wkt for k in range(copied)])], ["POINT(50.5 0.5)"])
    assert (len(found), compared) == (1, 3)


def test_numbers_of_terms_that_are_given_anew() -> None:
    terms = TermTable()
    terms.spare = 0
    host = KernelHost(terms, FactIndex(terms), make_solver)

    def decide(position: str) -> tuple[int, int]:
        number = terms.intern(str(Literal(position, WKT)))
        condition = a.Call(f"<{NAMESPACE}sfWithin>", (a.Var(X), a.Constant(Literal(shapely.box(0, 0, 1, 1).wkt, WKT))))
        verdicts = host._boxes.decide(condition, {X: np.array([number])})
        assert verdicts is not None
        return number, int(verdicts[0])

    number, verdict = decide("POINT(5 5)")
    terms.collect()
    assert (verdict, decide("POINT(0.5 0.5)")) == (c.FALSE, (number, c.OPEN_QUESTION))

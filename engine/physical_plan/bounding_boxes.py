"""This module decides filters by relations of shapes, and by their distance, for many pairs of shapes at once.

Shapes whose bounding boxes are apart are apart themselves, and at least as far from each other as their boxes. So
most pairs need no comparison of shapes. The definition is the host's (`engine/expressions/geosparql.py`), which answers
for all other pairs, and where a box says nothing: no geometry, an empty one, a collection, or another reference system.
"""

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.float_bounds import approximation
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.geosparql import CRS84, DEGREES, METRES, MOST_PAIRS, NAMESPACE, RELATIONS, read_geometry
from engine.expressions.values import ExpressionError
from engine.kernel.state import layout as c
from engine.triples.relation import sort_values
from epsparql import algebra as a
from epsparql.terms import Iri, Term, Variable

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_APART = {f"<{NAMESPACE}{name}>": c.TRUE if name == "sfDisjoint" else c.FALSE for name in RELATIONS}
"""The verdict of each relation for two shapes whose boxes are apart."""
_DISTANCE = f"<{NAMESPACE}distance>"
_LESS, _GREATER = (a.Comparison.LESS, a.Comparison.LESS_OR_EQUAL), (a.Comparison.GREATER, a.Comparison.GREATER_OR_EQUAL)
_WEST, _SOUTH, _EAST, _NORTH, _POINTS, _SYSTEM = range(6)
_NO_SYSTEM = -1
_UNREAD = -1
_MARGIN = 1e-6
"""Rounding moves a distance by less, in its unit and in parts of the limit."""
_MERIDIAN_M, _EQUATOR_M = 110_574.0, 6_378_137.0
"""No degree of a meridian of WGS 84 is shorter, in metres; the radius of its equator."""


class _Pairs(NamedTuple):
    """Holds the boxes of pairs of shapes, and whether both boxes of a pair can be compared."""

    left: Floats
    right: Floats
    comparable: NDArray[np.bool_]


class BoundingBoxes:
    """Stores the bounding boxes of terms by their numbers, as long as the numbers hold (`forget`)."""

    def __init__(self, terms: TermTable) -> None:
        self._terms = terms
        self.forget()

    def forget(self) -> None:
        """Forget all boxes, since numbers of terms are given anew."""
        self._places: Ints = np.zeros(0, np.int64)  # of the boxes, by the terms' numbers
        self._boxes: Floats = np.zeros((0, 6))
        self._systems: dict[str, int] = {CRS84: 0}

    def decide(self, condition: a.Expression | None, columns: Mapping[Variable, Ints]) -> Ints | None:
        """Return verdicts for the rows of terms' numbers: TRUE, FALSE or OPEN_QUESTION; None if the boxes say nothing."""
        match condition:
            case a.And(left, right):
                return _conjoin(self.decide(left, columns), self.decide(right, columns), c.FALSE, c.TRUE)
            case a.Or(left, right):
                return _conjoin(self.decide(left, columns), self.decide(right, columns), c.TRUE, c.FALSE)
            case a.Not(operand):
                return _negate(self.decide(operand, columns))
            case a.Call(function, (left, right)) if function in _APART:
                pairs = self._find_pairs(left, right, columns)
                return None if pairs is None else _decide_apart(pairs, _find_gaps(pairs).max(axis=1) > 0, _APART[function])
            case a.Compare(op, a.Call(function, (left, right, unit)), a.Constant(limit)) if function == _DISTANCE:
                return self._decide_distance(op in _LESS, op in _GREATER, (left, right, unit), limit, columns)
            case a.Compare(op, a.Constant(limit), a.Call(function, (left, right, unit))) if function == _DISTANCE:
                return self._decide_distance(op in _GREATER, op in _LESS, (left, right, unit), limit, columns)
            case _:
                return None

    def _decide_distance(
        self, is_less: bool, is_greater: bool, arguments: tuple[a.Expression, ...], limit: Term, columns: Mapping[Variable, Ints]
    ) -> Ints | None:
        """Return verdicts for a distance that is to be less or greater than a constant, from a lower bound of it."""
        left, right, unit = arguments
        pairs = self._find_pairs(left, right, columns)
        value, slack = approximation(str(limit))
        if pairs is None or not (is_less or is_greater) or not isfinite(slack) or not isinstance(unit, a.Constant) or not isinstance(unit.term, Iri):
            return None
        if (degrees := DEGREES.get(unit.term.value)) is not None:
            least = np.hypot(*_find_gaps(pairs).T) / degrees
        elif (metres := METRES.get(unit.term.value)) is not None:
            pairs = pairs._replace(comparable=pairs.comparable & _are_on_globe(pairs.left) & _are_on_globe(pairs.right))
            least = _bound_metres(pairs) / metres
        else:
            return None
        return _decide_apart(pairs, least > value + slack + abs(value) * _MARGIN + _MARGIN, c.FALSE if is_less else c.TRUE)

    # ------------------------------------------------------------ boxes
    def _find_pairs(self, left: a.Expression, right: a.Expression, columns: Mapping[Variable, Ints]) -> _Pairs | None:
        """Return the boxes of two arguments, None if one of them is neither a column nor a constant."""
        first, second = self._find_boxes(left, columns), self._find_boxes(right, columns)
        if first is None or second is None:
            return None
        first, second = np.broadcast_arrays(first, second)
        same = (first[:, _SYSTEM] == second[:, _SYSTEM]) & (first[:, _SYSTEM] != _NO_SYSTEM)
        return _Pairs(first, second, same & (first[:, _POINTS] * second[:, _POINTS] <= MOST_PAIRS))

    def _find_boxes(self, argument: a.Expression, columns: Mapping[Variable, Ints]) -> Floats | None:
        match argument:
            case a.Var(variable) if variable in columns:
                numbers = columns[variable]
            case a.Constant(term):
                return np.array([self._measure(term)])
            case _:
                return None
        most = int(numbers.max(initial=0))
        if most >= len(self._places):
            self._places = np.append(self._places, np.full(most + 1 + most // 2 - len(self._places), _UNREAD))
        unread = numbers[self._places[numbers] == _UNREAD]
        if len(unread):
            fresh = sort_values(unread)
            self._places[fresh] = np.arange(len(self._boxes), len(self._boxes) + len(fresh))
            self._boxes = np.concatenate([self._boxes, [self._measure(self._terms.term(number)) for number in fresh.tolist()]])
        return self._boxes[self._places[numbers]]

    def _measure(self, term: Term | None) -> tuple[float, ...]:
        """Return a term's box, its number of points and the number of its reference system."""
        import shapely

        nothing = (0.0, 0.0, 0.0, 0.0, 0.0, float(_NO_SYSTEM))
        if term is None:
            return nothing
        try:
            place = read_geometry(term)
        except ExpressionError:
            return nothing
        if place.geometry.is_empty or place.geometry.geom_type == "GeometryCollection":
            return nothing
        system = self._systems.setdefault(place.system, len(self._systems))
        return *place.geometry.bounds, float(shapely.get_num_coordinates(place.geometry)), float(system)


# ---------------------------------------------------------------- verdicts
def _decide_apart(pairs: _Pairs, apart: NDArray[np.bool_], verdict: int) -> Ints:
    return np.where(apart & pairs.comparable, verdict, c.OPEN_QUESTION)


def _conjoin(left: Ints | None, right: Ints | None, ruling: int, other: int) -> Ints | None:
    """Return the verdicts of AND, for which FALSE is `ruling`, or of OR, for which TRUE is."""
    if left is None or right is None:
        known = left if right is None else right
        return None if known is None else np.where(known == ruling, ruling, c.OPEN_QUESTION)
    both = np.where((left == other) & (right == other), other, c.OPEN_QUESTION)
    return np.where((left == ruling) | (right == ruling), ruling, both)


def _negate(verdicts: Ints | None) -> Ints | None:
    if verdicts is None:
        return None
    return np.select([verdicts == c.TRUE, verdicts == c.FALSE], [c.FALSE, c.TRUE], c.OPEN_QUESTION)


# ---------------------------------------------------------------- distances
def _find_gaps(pairs: _Pairs) -> Floats:
    """Return how far apart the boxes are from west to east, and from south to north."""
    left, right = pairs.left, pairs.right
    gaps: Floats = np.maximum(right[:, [_WEST, _SOUTH]] - left[:, [_EAST, _NORTH]], left[:, [_WEST, _SOUTH]] - right[:, [_EAST, _NORTH]])
    return np.maximum(gaps, 0)


def _are_on_globe(boxes: Floats) -> NDArray[np.bool_]:
    """Return which boxes are in CRS84, and have longitudes and latitudes of the globe."""
    on_globe: NDArray[np.bool_] = np.logical_and(
        np.abs(boxes[:, [_WEST, _EAST]]).max(axis=1) <= 180, np.abs(boxes[:, [_SOUTH, _NORTH]]).max(axis=1) <= 90
    )
    in_crs84: NDArray[np.bool_] = boxes[:, _SYSTEM] == 0
    return on_globe & in_crs84


def _bound_metres(pairs: _Pairs) -> Floats:
    """Return a lower bound of the distance of points of two boxes on the ellipsoid.

    1. Between two parallels, no way is shorter than a meridian.
    2. No way is shorter than the straight line, nor that than its shadow on the equator's plane. There, both ends are
       at least as far from the axis as on the parallel next to a pole.
    """
    left, right, (across, along) = pairs.left, pairs.right, _find_gaps(pairs).T
    around = 360 - (np.maximum(left[:, _EAST], right[:, _EAST]) - np.minimum(left[:, _WEST], right[:, _WEST]))
    angle = np.radians(np.clip(np.minimum(across, around), 0, 90))
    highest = np.abs(np.concatenate([left[:, [_SOUTH, _NORTH]], right[:, [_SOUTH, _NORTH]]], axis=1)).max(axis=1)
    least: Floats = np.maximum(along * _MERIDIAN_M, _EQUATOR_M * np.cos(np.radians(highest)) * np.sin(angle))
    return least

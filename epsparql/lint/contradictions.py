"""This module finds conditions that contradict each other, such as `?a > 5 && ?a < 3`: no value passes all of them.

1. A condition is read as a state: for each side that it compares (a variable or another expression), the region of values for which it may be true.
2. States of a conjunction are intersected and those of a disjunction united, per side. What is not understood lets everything pass.
3. A side whose region becomes empty is a contradiction.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce

from epsparql.deferred_methods import dataclass
from epsparql.iris import Names
from epsparql.lint.constants import CELLS_OF_DATATYPES, read_constant
from epsparql.lint.diagnostics import Reason
from epsparql.lint.scopes import parts, strip_spans
from epsparql.lint.type_inference import FLAG, STRING, TESTS, Kind, Kinds
from epsparql.lint.value_regions import (
    BOUND,
    NUMBERS,
    WHOLE,
    Cell,
    ConstantValue,
    Region,
    compared,
    equal_to_any,
    intersect,
    region_of,
    unite,
)
from epsparql.parser import ast as s

MOST_CONDITIONS = 300
"""So many comparisons of one group are read; the others are taken to let everything pass."""
_LONGEST_PART = 60
"""A message shows at most so many characters of a condition."""
_UNSTEADY = frozenset(("RAND", "NOW", "UUID", "STRUUID", "BNODE", "GETDURATION"))
"""These differ between two calls; durations are compared by the search for impossible patterns."""
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}
_LESS, _EQUAL, _GREATER, _EVEN, _UNORDERED = range(5)
"""Two values have one of these orders. Durations such as P400Y and P146097D are even, and not equal."""
_ORDERS = {
    "<": (_LESS,),
    "<=": (_LESS, _EQUAL, _EVEN),
    ">": (_GREATER,),
    ">=": (_GREATER, _EQUAL, _EVEN),
    "=": (_EQUAL,),
    "!=": (_LESS, _GREATER, _EVEN, _UNORDERED),
}

State = Mapping[object, Region]
"""The regions of sides, each by its text's meaning. A side that a state lacks may have any value."""
_TRUTHS: dict[bool, Region] = {
    True: {**region_of(Kind.NUMBER | STRING), **compared("=", ConstantValue(Kind.TRUE, ""))},
    False: {**region_of(Kind.NUMBER | STRING | Kind.OTHER), **compared("=", ConstantValue(Kind.FALSE, ""))},
}
"""These are the values that count as true, and as false."""


def find_contradiction(names: Names, conditions: Iterable[s.Expression], text: str) -> Reason | None:
    """Return why these conditions of a query's text are never all true; None where they may be, as far as their
    constants tell.
    """
    reader = _Reader(names)
    before: list[tuple[s.Expression, State]] = []
    together: State = {}
    for part in _flatten(conditions, s.BinaryOperator.AND):
        state = reader.read_state(part, True)
        if state is None:
            return Reason(f"{_quote(part, text)} contradicts itself", part.span)
        limited = _intersect_states(together, state)
        if limited is None:
            opposed = next((earlier for earlier, known in before if _intersect_states(known, state) is None), None)
            if opposed is None:
                return Reason(f"{_quote(part, text)} contradicts the conditions before it", part.span)
            return Reason(f"{_quote(opposed, text)} and {_quote(part, text)} contradict each other", part.span)
        together = limited
        before.append((part, state))
    return None


def _quote(part: s.Expression, text: str) -> str:
    shown = " ".join(text[part.span.start : part.span.end].split())
    shown += ")" * (shown.startswith("!") and shown.count("(") - shown.count(")"))  # the span of a negation ends inside the brackets
    return shown if len(shown) <= _LONGEST_PART else f"{shown[:_LONGEST_PART]}..."


def _flatten(conditions: Iterable[s.Expression], operator: s.BinaryOperator) -> list[s.Expression]:
    """Return the operands of chains of one operator, in the order of the text."""
    found: list[s.Expression] = []
    pending = list(conditions)[::-1]
    while pending:
        match pending.pop():
            case s.Binary(joined, left, right, _) if joined is operator:
                pending += (right, left)
            case part:
                found.append(part)
    return found


# ---------------------------------------------------------------- states
def _intersect_states(left: State, right: State) -> State | None:
    """Return what both let pass; None where no value of some side passes both."""
    found = {**left, **right}
    for side in left.keys() & right.keys():
        found[side] = intersect(left[side], right[side])
        if not found[side]:
            return None
    return found


def _unite_states(states: Sequence[State | None]) -> State | None:
    """Return what one of several states lets pass, where None is a state that lets nothing pass."""
    possible = [state for state in states if state is not None]
    if not possible:
        return None
    shared = reduce(frozenset.intersection, (frozenset(state) for state in possible))
    return {side: reduce(unite, (state[side] for state in possible)) for side in shared}


@dataclass(slots=True)
class _Reader:
    names: Names
    _read: int = 0

    def read_state(self, node: s.Expression, wanted: bool) -> State | None:
        """Return the state of the solutions for which a condition may be true, or may be false; None if there is none."""
        match node:
            case s.Unary(s.UnaryOperator.NOT, operand, _):
                return self.read_state(operand, not wanted)
            case s.Binary(s.BinaryOperator.AND | s.BinaryOperator.OR as operator, _, _, _):
                states = [self.read_state(part, wanted) for part in _flatten((node,), operator)]
                return _intersect_all(states) if (operator is s.BinaryOperator.AND) is wanted else _unite_states(states)
        self._read += 1
        if self._read > MOST_CONDITIONS:
            return {}
        return self._read_leaf(node, wanted)

    def _read_leaf(self, node: s.Expression, wanted: bool) -> State | None:
        match node:
            case s.Binary(s.BinaryOperator.IN | s.BinaryOperator.NOT_IN as operator, side, s.ExpressionList(members), _):
                return self._read_membership(side, members, (operator is s.BinaryOperator.IN) is wanted)
            case s.Binary(operator, left, right, _) if operator.symbol in _TURNED:
                return self._read_comparison(left, operator.symbol, right, wanted)
            case s.BuiltInCall("SAMETERM", (left, right), _):
                return self._read_same_term(left, right, wanted)
            case s.BuiltInCall("BOUND", (side,), _):
                return {strip_spans(side): BOUND if wanted else {Cell.UNBOUND: WHOLE}}
            case s.BuiltInCall(name, (side,), _) if name in TESTS and _is_steady(side):
                return {strip_spans(side): _region_of_test(name, wanted)}
        if not _is_steady(node):
            return {}
        return {strip_spans(node): intersect(_TRUTHS[wanted], region_of(Kinds(self.names, {}).infer_kind(node)))}

    def _read_comparison(self, left: s.Expression, symbol: str, right: s.Expression, wanted: bool) -> State:
        for side, other, turned in ((left, right, symbol), (right, left, _TURNED[symbol])):
            constant = read_constant(self.names, other)
            if constant is not None:
                return self._restrict(side, _region_of_comparison(turned, constant, wanted), turned, constant, wanted)
        if not _is_steady(left) or not _is_steady(right):
            return {}
        sides = [strip_spans(left), strip_spans(right)]
        if repr(sides[0]) > repr(sides[1]):
            sides, symbol = sides[::-1], _TURNED[symbol]
        passed = [order for order in range(5) if (order in _ORDERS[symbol]) is wanted]
        return {("order", *sides): equal_to_any(ConstantValue(Kind.DAY, Fraction(order)) for order in passed)}

    def _restrict(self, side: s.Expression, region: Region, symbol: str, constant: ConstantValue, wanted: bool) -> State:
        """Return the state of a side in a region; a datatype restricts the value that has it, too."""
        if not _is_steady(side):
            return {}
        found: dict[object, Region] = {strip_spans(side): region}
        match side:
            case s.BuiltInCall("DATATYPE", (value,), _) if (symbol == "=") is wanted and symbol in ("=", "!="):
                cells = CELLS_OF_DATATYPES.get(str(constant.place), ())
                found[strip_spans(value)] = dict.fromkeys((*cells, Cell.OTHER), WHOLE)
        return found

    def _read_membership(self, side: s.Expression, members: tuple[s.Expression, ...], is_in: bool) -> State | None:
        if not members:
            return None if is_in else {}
        constants = [constant for constant in (read_constant(self.names, member) for member in members) if constant is not None]
        if not _is_steady(side) or (is_in and len(constants) < len(members)):
            return {}
        if is_in:
            return {strip_spans(side): equal_to_any(constants)}
        self._read += len(constants)
        return {strip_spans(side): reduce(intersect, (compared("!=", constant) for constant in constants[:MOST_CONDITIONS]), BOUND)}

    def _read_same_term(self, left: s.Expression, right: s.Expression, wanted: bool) -> State:
        """Return the state of sameTerm: equal terms have equal values; only IRIs and strings with equal values are
        equal terms.
        """
        for side, other in ((left, right), (right, left)):
            constant = read_constant(self.names, other)
            if constant is not None and _is_steady(side):
                if wanted or constant.kind in (Kind.IRI, Kind.TEXT):
                    return {strip_spans(side): compared("=" if wanted else "!=", constant)}
                return {}
        return {}


def _intersect_all(states: Iterable[State | None]) -> State | None:
    found: State | None = {}
    for state in states:
        found = None if found is None or state is None else _intersect_states(found, state)
    return found


def _region_of_comparison(symbol: str, constant: ConstantValue, wanted: bool) -> Region:
    """Return the values for which a comparison with a constant may be true, or may be false.

    NaN is neither less nor equal nor greater.
    """
    if constant.kind & FLAG and symbol not in ("=", "!="):
        return region_of(FLAG)
    if wanted:
        return compared(symbol, constant)
    found = compared(_OPPOSITE[symbol], constant)
    return {**found, Cell.NAN: WHOLE} if constant.kind is Kind.NUMBER and symbol != "!=" else found


def _region_of_test(name: str, wanted: bool) -> Region:
    passed = region_of(TESTS[name])
    if wanted:
        return passed
    sure = (*NUMBERS, Cell.NAN) if name == "ISNUMERIC" else passed
    return {cell: row for cell, row in BOUND.items() if cell not in sure}


def _is_steady(side: s.Expression) -> bool:
    """Return whether an expression depends on the solution, and has one value in it."""
    found = list(parts((side,)))
    if any(isinstance(part, s.ExistsCall) or (isinstance(part, s.BuiltInCall) and part.name in _UNSTEADY) for part in found):
        return False
    timed = ("GETSTARTTIME", "GETENDTIME")
    return any(isinstance(part, s.VariableName | s.AggregateCall) or (isinstance(part, s.BuiltInCall) and part.name in timed) for part in found)

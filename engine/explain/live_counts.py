"""This module puts what a running query counts beside the steps of its plan."""

from collections.abc import Iterator, Sequence

from engine.explain.plan_reader import OperatorStep
from engine.kernel.state import layout as c
from engine.runtime.introspection import SIDES, OperatorState, Side
from epsparql.deferred_methods import dataclass


@dataclass(frozen=True, slots=True)
class StepRows:
    """Tells what came into a step by its sides, and what went out; `given` is None for the last step, whose rows are
    the query's solutions.

    `refused` rows did not pass the step's filters, which had no value for `failed` of them: datatypes do not fit, or
    a variable is unbound.
    """

    sides: tuple[Side, ...] = ()
    given: int | None = None
    refused: int = 0
    state_bytes: int = 0
    failed: int = 0


def match_counts(steps: Sequence[OperatorStep], operators: Sequence[OperatorState]) -> tuple[StepRows | None, ...]:
    """Return the rows of each step, None where they are not known.

    Each operator belongs to the next step of its kind with its keys. A scan gave what came in at the side that it
    alone feeds.
    """
    found: list[StepRows | None] = [None] * len(steps)
    for each in operators:
        fits = (k for k, step in enumerate(steps) if found[k] is None and step.kind == each.kind and _is_same(step, each))
        if (place := next(fits, None)) is not None:
            found[place] = StepRows(each.sides, None if each.kind == c.OUT else each.given, each.refused, each.state_bytes, each.failed)
    feeds = [place for step in steps for place in step.inputs]
    for step, rows in zip(steps, tuple(found), strict=True):
        for place, given in _list_scanned(step, rows):
            if found[place] is None and steps[place].kind == c.NONE and feeds.count(place) == 1:
                found[place] = StepRows(given=given)
    return tuple(found)


def _is_same(step: OperatorStep, state: OperatorState) -> bool:
    same = step.kind != c.JOIN or step.operator == state.operator
    return same and {name.lstrip("?") for name in step.on} == {name.lstrip("?") for name in state.on}


def _list_scanned(step: OperatorStep, rows: StepRows | None) -> Iterator[tuple[int, int]]:
    """Yield the places of a step's inputs that have a side of their own, with the rows that came in there."""
    if rows is None:
        return
    taken = {side.side: side.taken for side in rows.sides}
    for place, side in zip(step.inputs, step.sides, strict=True):
        if side in SIDES and step.sides.count(side) == 1:
            yield place, taken.get(SIDES[side], 0)

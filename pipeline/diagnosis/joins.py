"""This module explains why the solutions of two steps never join: no common key, the wrong order, intervals that do
not fit, or too far apart.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

from engine.messages import Micros
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.literals import duration_text
from epsparql.terms import Term, Variable
from epsparql.trees import walk_nodes
from pipeline.diagnosis.clocks import tell_clocks, tell_shift
from pipeline.diagnosis.evaluation.probing import Row
from pipeline.diagnosis.evaluation.steps import Node
from pipeline.diagnosis.examination import Examination
from pipeline.diagnosis.model import Reason
from pipeline.diagnosis.wording import shorten, tell_difference, write_duration, write_examples
from pipeline.formats.batches.timestamps import iso
from pipeline.inspection.nearest_terms import find_nearest

_NARROWINGS = 6
Key = tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Holds a left and a right solution with common values; `gap` (µs) is the time from the left one's end to the
    right one's start.
    """

    left: Row
    right: Row

    @property
    def gap(self) -> Micros:
        return self.right.start - self.left.end


def explain_join(case: Examination, node: Node) -> Reason:
    """Explain a step with two inputs that both let something through."""
    left, right = (case.list_rows(each) for each in node.inputs)
    shared = _find_shared(left, right)
    if shared and not _has_common_key(left, right, shared):
        return _explain_keys(case, node, (left, right), shared)
    if isinstance(node.pattern, a.Join):
        return case.make_reason(node, "key-never-met", f"no two solutions agree in {_list_variables(shared)}", "look at the steps before")
    pairs = _list_pairs(left, right, shared)
    if isinstance(node.pattern, a.SeqJoin):
        return _explain_order(case, node, pairs)
    return _explain_intervals(case, node, pairs)


def _find_shared(left: Sequence[Row], right: Sequence[Row]) -> tuple[Variable, ...]:
    """Return the variables that all solutions of both sides bind."""
    sides = [frozenset.intersection(*(frozenset(row.binding) for row in rows)) if rows else frozenset[Variable]() for rows in (left, right)]
    return tuple(sorted(sides[0] & sides[1], key=lambda variable: variable.name))


def _key(row: Row, shared: Sequence[Variable]) -> Key:
    return tuple(row.binding[variable] for variable in shared)


def _has_common_key(left: Sequence[Row], right: Sequence[Row], shared: Sequence[Variable]) -> bool:
    return not {_key(row, shared) for row in left}.isdisjoint(_key(row, shared) for row in right)


def _list_variables(variables: Sequence[Variable]) -> str:
    return " and ".join(map(str, variables))


# ---------------------------------------------------------------- keys
def _explain_keys(case: Examination, node: Node, sides: tuple[Sequence[Row], Sequence[Row]], shared: Sequence[Variable]) -> Reason:
    left, right = sides
    apart = next((variable for variable in shared if not _has_common_key(left, right, [variable])), None)
    if apart is None:
        message = f"no two solutions agree in {_list_variables(shared)} together, though they do in each of them by itself"
        return case.make_reason(node, "key-never-met", message, "give one of the variables another name, if they may differ")
    texts = [dict.fromkeys(str(row.binding[apart]) for row in rows) for rows in (left, right)]
    one, other = (case.words.write_group(each.pattern) for each in node.inputs)
    message = f"{apart} never has one value on both sides: {write_examples(texts[0])} in {one}, {write_examples(texts[1])} in {other}"
    near = next(((text, found) for text in list(texts[0])[:50] if (found := find_nearest(text, dict.fromkeys(texts[1], 1))) is not None), None)
    if near is None:
        return case.make_reason(node, "key-never-met", message, "join by a variable whose values the two sides have in common")
    difference = tell_difference(*near)
    told = f"; the nearest are {shorten(near[0])} and {shorten(near[1])}" + (f": {difference}" if difference else "")
    return case.make_reason(node, "key-never-met", message + told, "send both in one form, or compare STR() of them in a FILTER", near[1])


# ---------------------------------------------------------------- time
def _list_pairs(left: Sequence[Row], right: Sequence[Row], shared: Sequence[Variable]) -> list[Pair]:
    """Return, for each left solution, the right ones with its values that start nearest to its end, before and after."""
    by_key: Mapping[Key, list[Row]] = defaultdict(list)
    for row in sorted(right, key=lambda each: each.start):
        by_key[_key(row, shared)].append(row)
    pairs = []
    for row in left:
        near = by_key.get(_key(row, shared), [])
        after = bisect_right(near, row.end, key=lambda each: each.start)
        at = bisect_left(near, row.end, key=lambda each: each.start)
        pairs += [Pair(row, near[k]) for k in sorted({max(at - 1, 0), min(at, len(near) - 1), min(after, len(near) - 1)}) if near]
    return pairs


def write_pair(pair: Pair) -> str:
    return f"{write_interval(pair.left)} and {write_interval(pair.right)}"


def write_interval(row: Row) -> str:
    return iso(row.start) if row.start == row.end else f"{iso(row.start)} to {iso(row.end)}"


def _explain_order(case: Examination, node: Node, pairs: Sequence[Pair]) -> Reason:
    one, other = (case.words.write_group(each.pattern) for each in node.inputs)
    nearest = max(pairs, key=lambda pair: pair.gap)
    clocks = tell_clocks(case) or tell_shift([pair.gap for pair in pairs], _find_window(case))
    hint = f"; {clocks}" if clocks else ""
    if nearest.gap == 0:
        message = (
            f"{other} is never after {one}: the nearest are at the same instant, {iso(nearest.left.end)}, and SEQ wants the one before the other"
        )
        remedy = "send each event with its own time, or use EQUALS or AND; events of one body without times share one"
        return case.make_reason(node, "same-instant", message + hint, remedy)
    if nearest.right.end >= nearest.left.start:
        message = f"{one} and {other} overlap: the nearest are {write_pair(nearest)}, and SEQ wants the end of the one before the start of the other"
        return case.make_reason(node, "overlaps", message + hint, "use OVERLAPS, DURING or AND")
    message = (
        f"{other} is always before {one}: the nearest are {write_duration(nearest.gap)} apart, at {iso(nearest.right.end)} and "
        f"{iso(nearest.left.start)}"
    )
    return case.make_reason(node, "wrong-order", message + hint, "swap the operands of SEQ, or use AND if the order does not matter")


def _explain_intervals(case: Examination, node: Node, pairs: Sequence[Pair]) -> Reason:
    def measure_difference(pair: Pair) -> Micros:
        return abs(pair.left.start - pair.right.start) + abs(pair.left.end - pair.right.end)

    nearest, word = min(pairs, key=measure_difference), case.words.name_operator(node)
    difference = max(abs(nearest.left.start - nearest.right.start), abs(nearest.left.end - nearest.right.end))
    clocks = tell_clocks(case) or tell_shift([pair.right.start - pair.left.start for pair in pairs], _find_window(case))
    message = f"{word} never holds: the nearest intervals are {write_pair(nearest)}, which differ by {write_duration(difference)}"
    remedy = "use AND with WITHIN for events that are merely near" if word == "EQUALS" else "use the relation that these intervals have"
    return case.make_reason(node, "never-equal" if word == "EQUALS" else "never-related", message + (f"; {clocks}" if clocks else ""), remedy)


# ---------------------------------------------------------------- windows
def explain_within(case: Examination, node: Node) -> Reason:
    """Explain a WITHIN that lets no solution of its input pass, by the shortest one."""
    assert isinstance(node.pattern, a.Within)
    (below,) = node.inputs
    limit, shortest = node.pattern.limit, _find_shortest(case, below)
    lasts = shortest.end - shortest.start
    written = f"WITHIN is {write_duration(limit)}, and the closest solution lasts {write_duration(lasts)}: {write_interval(shortest)}"
    clocks = tell_clocks(case) or _tell_joined_shift(case, below)
    times = lasts / max(limit, 1)
    hint = "; is it, or the time of the events, in another unit?" if not clocks and any(0.1 <= times / unit <= 1 for unit in (60, 1000)) else ""
    remedy = f"write WITHIN {duration_text(lasts)} or more, if that is meant{hint}"
    return case.make_reason(node, "too-far-apart", written + (f"; {clocks}" if clocks else ""), remedy, duration_text(lasts))


def _find_shortest(case: Examination, below: Node) -> Row:
    """Return the shortest solution of a step; the engine looks for ever shorter ones while there is time."""
    best = min(case.list_rows(below), key=lambda row: row.end - row.start)
    for _ in range(_NARROWINGS if case.found[below].more else 0):
        found = case.probe(below.wrap(a.Within(below.pattern, best.end - best.start - 1)))[0]
        if not found.count:
            break
        best = min(found.list_rows(), key=lambda row: row.end - row.start)
    return best


def _tell_joined_shift(case: Examination, below: Node) -> str:
    joined = below
    while len(joined.inputs) == 1:
        joined = joined.inputs[0]
    if len(joined.inputs) != 2:
        return ""
    left, right = (case.list_rows(each) for each in joined.inputs)
    return tell_shift([pair.gap for pair in _list_pairs(left, right, _find_shared(left, right))], _find_window(case))


def _find_window(case: Examination) -> Micros | None:
    """Return the longest WITHIN of the query."""
    return max((each.limit for each in walk_nodes(case.parsed.query.pattern) if isinstance(each, a.Within)), default=None)


__all__ = ["Pair", "explain_join", "explain_within", "write_interval", "write_pair"]

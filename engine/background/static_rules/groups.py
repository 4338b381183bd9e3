"""A rule with an aggregate folds the tuples of a relation, group by group.

After a change, it folds the groups anew of which a tuple came or went.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.set_functions import accumulator
from engine.aggregation.term_values import TermValues, Value
from engine.background.static_rules.joins import Joins, combine_columns
from engine.background.static_rules.program import UNBOUND, DatalogRule, Fold
from engine.background.static_rules.sorted_rows import NO_INTS, is_among, unite
from engine.expressions.evaluator import evaluate
from engine.expressions.values import ExpressionError
from engine.rewrite.rename_hidden import is_seen
from epsparql import algebra as a
from epsparql.terms import Variable

Ints = NDArray[np.int64]
_UNORDERED = (a.AggregateFunction.COUNT, a.AggregateFunction.SUM, a.AggregateFunction.AVG)
"""The order of a group's solutions says nothing to these functions. To the others they come in order of their terms."""


def find_groups(joins: Joins, rule: DatalogRule, packed: Ints) -> Ints:
    """Return the groups of tuples that a rule folds, each once."""
    assert rule.fold is not None
    return unite([_group_of(joins, rule.fold, joins.tuples.unpack(packed, rule.source_atom.relation.arity))])


def list_results(joins: Joins, rule: DatalogRule, groups: Ints) -> Ints:
    """Return what the rule has derived of these groups, packed and sorted."""
    assert rule.fold is not None
    packed = rule.head.relation.rows.packed()
    return np.sort(packed[is_among(_group_of(joins, rule.fold, joins.tuples.unpack(packed, rule.head.relation.arity)), groups)])


def list_members(joins: Joins, rule: DatalogRule, packed: int) -> list[int]:
    """Return the tuples of the group that the rule has folded to a result."""
    assert rule.fold is not None
    relation = rule.source_atom.relation
    group = _group_of(joins, rule.fold, joins.tuples.unpack(np.array([packed]), rule.head.relation.arity))
    members = relation.rows.packed()
    found: list[int] = members[is_among(_group_of(joins, rule.fold, joins.tuples.unpack(members, relation.arity)), group)].tolist()
    return found


def fold_groups(joins: Joins, rule: DatalogRule, groups: Ints | None) -> Ints:
    """Return what a rule derives of these groups (None: of all), packed and sorted.

    A group whose aggregate is an error has nothing.
    """
    fold, relation = rule.fold, rule.source_atom.relation
    assert fold is not None
    columns = joins.tuples.unpack(relation.rows.packed(), relation.arity)
    group = _group_of(joins, fold, columns)
    chosen = np.arange(len(group)) if groups is None else np.flatnonzero(is_among(group, groups))
    joins.count_work(len(chosen))
    chosen = chosen[_order(joins, fold, [column[chosen] for column in columns], group[chosen])]
    group, columns = group[chosen], [column[chosen] for column in columns]
    values = _read_arguments(joins, fold, columns, len(chosen))
    begin = np.flatnonzero(np.diff(group, prepend=-1)) if fold.keys else np.zeros(1, np.int64)  # without keys there is a group of nothing too
    if not len(begin):
        return NO_INTS
    ends = [*begin[1:].tolist(), len(group)]
    found = np.array([_fold_values(joins, fold, values[first:end]) for first, end in zip(begin.tolist(), ends, strict=True)], np.int64)
    known = found != 0
    return unite([joins.tuples.pack([*(column[begin][known] for column in columns[: fold.keys]), found[known]])])


def _group_of(joins: Joins, fold: Fold, columns: Sequence[Ints]) -> Ints:
    if not fold.keys:
        return np.zeros(len(columns[0]), np.int64)
    return columns[0] if fold.keys == 1 else joins.tuples.pack(columns[: fold.keys])


def _order(joins: Joins, fold: Fold, columns: Sequence[Ints], group: Ints) -> Ints:
    """Return the order of rows: group by group, and in a group by the terms, in the order of the variables' names."""
    if fold.aggregate.function in _UNORDERED:
        return np.argsort(group, kind="stable")
    ranks = []
    for _, column in sorted(zip(fold.names, columns, strict=False), key=lambda each: each[0].name):
        numbers, place = np.unique(column, return_inverse=True)
        texts = ["" if number == UNBOUND else joins.terms.text(number) for number in numbers.tolist()]
        rank = np.empty(len(texts), np.int64)
        rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        ranks.append(rank[place])
    return np.lexsort([*reversed(ranks), group])


def _read_arguments(joins: Joins, fold: Fold, columns: Sequence[Ints], n: int) -> list[Value]:
    """Return the value of the aggregate's argument in each row, 0 for an error."""
    named = dict(zip(fold.names, columns, strict=False))
    if fold.aggregate.argument is None:
        if not fold.aggregate.distinct:
            return [1] * n
        seen = [column for variable, column in named.items() if is_seen(variable)]
        return [*map(tuple, np.column_stack(seen).tolist())] if seen else [(1,)] * n
    looked_at = [variable for variable in sorted(fold.scope, key=str) if variable in named]
    place, combinations = combine_columns([named[variable] for variable in looked_at], n)
    found = np.zeros(len(combinations), np.int64)
    for k, numbers in enumerate(combinations.tolist()):
        known = {v: number for v, number in zip(looked_at, numbers, strict=True) if number != UNBOUND}
        found[k] = _evaluate(joins, fold.aggregate.argument, known)
    values: list[Value] = found[place].tolist()
    return values


def _evaluate(joins: Joins, argument: a.Expression, known: dict[Variable, int]) -> int:
    if isinstance(argument, a.Var):
        return known.get(argument.variable, 0)
    try:
        value = evaluate(argument, lambda variable: joins.terms.term(known[variable]) if variable in known else None, None, None)
    except (ExpressionError, ValueError, ArithmeticError, RecursionError):  # what a library makes of an odd term is SPARQL's error as well
        return 0
    return joins.number_value(str(value))


def _fold_values(joins: Joins, fold: Fold, values: Sequence[Value]) -> int:
    """Return the number of the aggregate's term, 0 for an error."""
    worth, held = TermValues(), accumulator(fold.aggregate, sliding=False)
    worth.over(joins.terms)
    for value in values:
        held.add(value, worth)
    found = held.result(fold.aggregate.function, values, worth)
    return joins.number_value(joins.terms.text(found)) if found and fold.aggregate.function is a.AggregateFunction.GROUP_CONCAT else found

"""A relation that keeps the best value of each group: which candidates are better, and which values have a reason still.

A tuple has the group's keys and then the value. Values go by the order of ORDER BY; equal ones by the type of number,
and then by text. So sums keep the order, and each history that leads to a background gives the same.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.background.static_rules.joins import Joins, rows_now
from engine.background.static_rules.program import Atom, DatalogRule, Relation, RelationKey
from engine.background.static_rules.sorted_rows import LOW, NO_INTS, SHIFT, is_among, unite
from engine.dictionary.sort_keys import SortKey, sort_key
from engine.expressions.literals import parse_number
from epsparql import algebra as a
from epsparql.terms import Literal

Ints = NDArray[np.int64]
_KEYS = RelationKey("keys")
_LEAST_NOW = 32
"""So many candidates come together at least."""


class Choice(NamedTuple):
    """Holds sorted tuples that come to a relation, those that go because they are worse, and those to look at later."""

    come: Ints
    worse: Ints
    later: Ints


def choose_best(joins: Joins, relation: Relation, function: a.AggregateFunction, candidates: Ints) -> Choice:
    """Choose among sorted candidates the best of each group that is better than what is there.

    Of many, a quarter comes now, the best of all: what follows from them may be better than the rest (as in
    Dijkstra's algorithm, which takes one at a time).
    """
    there = _rows_of_groups(relation, np.unique(_groups_of(relation, candidates)))
    every = unite([candidates, there])
    group, ranks = _groups_of(relation, every), _rank_values(joins, function, every & LOW if relation.arity > 1 else every)
    order = np.lexsort([ranks, group])
    best = order[np.flatnonzero(np.diff(group[order], prepend=-1))]
    best = best[~is_among(every[best], there)]
    best = best[np.argsort(ranks[best], kind="stable")]
    now = max(_LEAST_NOW, len(best) // 4)
    come = np.sort(every[best[:now]])
    worse = there[np.isin(_groups_of(relation, there), _groups_of(relation, come))]
    return Choice(come, worse, np.sort(every[best[now:]]))


def _groups_of(relation: Relation, packed: Ints) -> Ints:
    return packed >> SHIFT if relation.arity > 1 else np.zeros(len(packed), np.int64)


def find_supported(joins: Joins, rules: Iterable[DatalogRule], packed: Ints) -> Ints:
    """Return those tuples that a rule derives from a better value, or from none of their loop.

    Values that rest on equal ones may rest on themselves, so these are none.
    """
    found = [NO_INTS]
    for rule in rules:
        assert rule.best is not None
        for columns, n in joins.solve(rule, rows_now, rule.head, packed):
            arguments = [joins.column_of(columns, argument, n) for argument in rule.head.arguments]
            if rule.best.inner:
                ranks = _rank_values(joins, rule.best.function, np.concatenate([columns[rule.best.inner], arguments[-1]]))
                better = ranks[:n] < ranks[n:]
                arguments = [column[better] for column in arguments]
            found.append(joins.tuples.pack(arguments))
    return unite(found)


def find_candidates(joins: Joins, rule: DatalogRule, packed: Ints) -> Ints:
    """Return what a rule derives for the groups of tuples, whatever the value."""
    keys = joins.tuples.unpack(packed, rule.head.relation.arity)[:-1]
    if not keys:
        return joins.heads(rule, rows_now)
    start = Atom(Relation(_KEYS, len(keys)), rule.head.arguments[:-1])
    return joins.heads(rule, rows_now, start, unite([joins.tuples.pack(keys)]))


def _rows_of_groups(relation: Relation, groups: Ints) -> Ints:
    if relation.arity == 1:
        return np.sort(relation.rows.packed())
    found = [NO_INTS]
    for order, begin, end in relation.rows.ranges(groups, second=False):
        there = begin < end  # a group has one tuple
        found.append(order[begin[there]])
    return unite(found)


def _rank_values(joins: Joins, function: a.AggregateFunction, values: Ints) -> Ints:
    """Return a number for each value, the least for the best."""
    numbers, place = np.unique(values, return_inverse=True)
    keys = [_order_of(joins, number) for number in numbers.tolist()]
    ranks = np.empty(len(keys), np.int64)
    ranks[sorted(range(len(keys)), key=keys.__getitem__, reverse=function is a.AggregateFunction.MAX)] = np.arange(len(keys))
    found: Ints = ranks[place]
    return found


def _order_of(joins: Joins, number: int) -> tuple[SortKey, int, str]:
    term = joins.terms.term(number)
    known = parse_number(term) if isinstance(term, Literal) else None
    return sort_key(term), 0 if known is None else known.kind, joins.terms.text(number)

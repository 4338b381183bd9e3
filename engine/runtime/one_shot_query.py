"""This module answers a query once, over the background alone, by the kernel that evaluates registered queries.

A query reads no stream, so its pattern has all its solutions at the one instant at which it is asked.
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.background.fact_store import FactIndex
from engine.background.semi_joins import cut_background, narrow_background
from engine.dictionary.term_dictionary import TermTable
from engine.errors import SolverStopped
from engine.kernel.state import layout as c
from engine.network.host_calls import KernelHost
from engine.network.placed_query import RegisteredQuery
from engine.network.window_subquery import make_instant_feed, make_solver
from engine.planner.queries import RANK
from engine.rewrite import rewrite_query
from engine.runtime.result_assembly import find_cell
from engine.triples.relation import distinct, without
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import BlankNode, TermOrVariable, Variable
from epsparql.trees import replace_fields

Ints = NDArray[np.int64]
ROWS_AT_ONCE = 1 << 13
"""At most this many solutions are turned into text at once."""
_WITHOUT_LIMIT = 1 << 60
"""The caller limits time and memory; the number of steps at one instant protects the other queries of a network, of
which there are none.
"""
_NAME = "sparql"
_NODE_NAMES = 2  # the form of a registered query's today (`Naming`)


def solve_select(query: a.Select, known: FactIndex, now: int) -> Iterator[pa.ListArray]:
    """Yield the solutions, several at a time: their terms in the order of the projection. `now` (µs) is the query's
    instant.

    Raises: Refusal for a pattern that is not evaluated, SolverStopped.
    """
    for rows in _solve_rows(query, known, now):
        yield from _list_parts(rows, known.terms)


def solve_ask(query: a.Ask, known: FactIndex, now: int) -> bool:
    """Return whether there is a solution. Raises: as `solve_select`."""
    first = a.Select(query.pattern, (), False, query.streams, a.Modifiers(limit=1), query.sources)
    return any(len(rows) for rows in _solve_rows(first, known, now))


def solve_construct(query: a.Construct, known: FactIndex, now: int) -> Iterator[pa.ListArray]:
    """Yield the triples as lists of subject, predicate and object, each once, several at a time.

    Raises: as `solve_select`.
    """
    whole, slice_ = _cut_slice(query)
    rule = rewrite_query(whole)
    assert isinstance(rule, a.Construct)
    shown = tuple(dict.fromkeys(part for triple in rule.template for part in _parts_of(triple) if isinstance(part, Variable)))
    select = a.Select(rule.pattern, shown, False, rule.streams, sources=rule.sources)
    template = _Template(rule.template, shown, known.terms)
    made = [template.fill(rows) for rows in _run_plan(select, known, now, slice_)]
    yield from _list_parts(distinct(np.concatenate([np.zeros((0, 3), np.int64), *made])), known.terms)


def solve_describe(query: a.Describe, known: FactIndex, now: int) -> Iterator[pa.ListArray]:
    """Yield the triples that describe the targets, as `solve_construct` yields triples. Raises: as `solve_select`."""
    describe, slice_ = _cut_slice(query)
    rewritten = rewrite_query(describe)
    assert isinstance(rewritten, a.Describe)
    shown = tuple(dict.fromkeys(target for target in rewritten.targets if isinstance(target, Variable)))
    constant = [known.terms.intern(str(target)) for target in rewritten.targets if not isinstance(target, Variable)]
    select = a.Select(rewritten.pattern, shown, False, rewritten.streams, sources=rewritten.sources)
    numbers, found = set[int](), False
    for rows in _run_plan(select, known, now, slice_):
        found |= len(rows) > 0
        numbers.update(np.unique(rows).tolist())
    targets = numbers.union(constant if found else ()) - {c.UNBOUND}
    yield from _list_parts(known.descriptions.describe_numbers(targets), known.terms)


# ---------------------------------------------------------------- rows
_Form = TypeVar("_Form", a.Select, a.Construct, a.Describe)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Holds OFFSET and LIMIT of a query whose solutions are in no order, so that any of them will do."""

    offset: int = 0
    limit: int | None = None


def _solve_rows(query: a.Select, known: FactIndex, now: int) -> Iterator[Ints]:
    """Yield the solutions' terms in the order of the projection, in parts."""
    select, slice_ = _cut_slice(query)
    rewritten = rewrite_query(select)
    assert isinstance(rewritten, a.Select)
    yield from _run_plan(rewritten, known, now, slice_)


def _cut_slice(query: _Form) -> tuple[_Form, _Slice]:
    """Return a query without OFFSET and LIMIT, and these, if it has no ORDER BY: its evaluation can then end with the
    last row that is wanted.
    """
    holder = query if isinstance(query, a.Select) else query.pattern
    if not isinstance(holder, a.Select | a.SubSelect) or holder.modifiers.order:
        return query, _Slice()
    slice_, whole = _Slice(holder.modifiers.offset, holder.modifiers.limit), replace_fields(holder, modifiers=a.PLAIN)
    cut: _Form = whole if isinstance(query, a.Select) else replace_fields(query, pattern=whole)  # type: ignore[assignment]  # as `query` is
    return cut, slice_


def _run_plan(query: a.Select, known: FactIndex, now: int, slice_: _Slice) -> Iterator[Ints]:
    """Yield the terms of a rewritten query's solutions in the order of the projection, in parts; with ORDER BY, all
    of them in their order.
    """
    if slice_.limit is None:
        parts = _evaluate(query, narrow_background(known, query.pattern), now)
    else:
        parts = (rows for narrowed in cut_background(known, query.pattern) for rows in _evaluate(query, narrowed, now))
        parts = _drop_repeated(parts) if query.distinct else parts
    before, wanted = slice_.offset, slice_.limit
    for rows in parts:
        kept = rows[before : None if wanted is None else before + wanted]
        before = max(before - len(rows), 0)
        if wanted is not None:
            wanted -= len(kept)
        if len(kept):
            yield kept
        if wanted == 0:
            return


def _drop_repeated(parts: Iterable[Ints]) -> Iterator[Ints]:
    """Yield the rows without those of an earlier part."""
    seen: Ints | None = None
    for rows in parts:
        new = rows if seen is None else without(rows, seen)
        seen = rows if seen is None else np.concatenate([seen, new])
        yield new


def _evaluate(query: a.Select, known: FactIndex, now: int) -> Iterator[Ints]:
    """Yield the terms of all solutions over a background that has been narrowed for the query, in parts."""
    host = KernelHost(known.terms, known, make_solver)
    host.arrays.net.at[c.MOST_MADE] = _WITHOUT_LIMIT
    host.add_query(RegisteredQuery(0, _NAME, query, 0, node_names=_NODE_NAMES), known)
    planned = host.slots.planned[0]
    cells, rank = [find_cell(planned, v) for v in query.projection], find_cell(planned, RANK)
    parts = host.feed_in_parts(make_instant_feed(planned, now))
    if query.modifiers.order:
        whole = np.concatenate(list(parts))
        parts = iter([whole[np.argsort(whole[:, rank], kind="stable")]])
    for rows in parts:
        yield np.column_stack([np.zeros((len(rows), 0), np.int64), *(rows[:, k] if k != c.NONE else np.zeros(len(rows), np.int64) for k in cells)])
    if host.failures:
        raise SolverStopped(host.failures[0].reason)


# ---------------------------------------------------------------- triples
class _Template:
    """Makes the triples of a CONSTRUCT from solutions. A blank node of the template is another one in each solution."""

    def __init__(self, template: Sequence[a.TriplePattern], shown: tuple[Variable, ...], terms: TermTable) -> None:
        self._template, self._shown, self._terms = template, shown, terms
        self._fresh, self._made = secrets.token_hex(8), 0  # the data may have any label, so none of theirs is like it

    def fill(self, rows: Ints) -> Ints:
        """Return the valid triples, each once."""
        numbers: dict[TermOrVariable, Ints] = {v: rows[:, k] for k, v in enumerate(self._shown)}
        constants = dict.fromkeys(part for triple in self._template for part in _parts_of(triple) if not isinstance(part, Variable))
        for k, part in enumerate(constants):
            numbers[part] = self._name_nodes(k, len(rows)) if isinstance(part, BlankNode) else np.full(len(rows), self._terms.intern(str(part)))
        self._made += len(rows)
        found = [np.column_stack([numbers[part] for part in _parts_of(triple)]) for triple in self._template]
        every = np.concatenate([np.zeros((0, 3), np.int64), *found])
        kinds = abs(self._terms.kinds[every])
        fits = np.isin(kinds[:, 0], (c.IRI_KIND, c.BLANK_KIND)) & (kinds[:, 1] == c.IRI_KIND) & (every[:, 2] != c.UNBOUND)
        return distinct(every[fits])

    def _name_nodes(self, node: int, n: int) -> Ints:
        return self._terms.intern_all([f"_:c{self._fresh}x{node}x{k}" for k in range(self._made, self._made + n)])


def _parts_of(triple: a.TriplePattern) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
    return triple.subject, triple.predicate, triple.object


# ---------------------------------------------------------------- texts
def _list_parts(rows: Ints, terms: TermTable) -> Iterator[pa.ListArray]:
    """Yield rows as lists of texts, several rows at a time."""
    for first in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[first : first + ROWS_AT_ONCE]
        offsets = np.arange(len(part) + 1, dtype=np.int32) * part.shape[1]
        yield pa.ListArray.from_arrays(pa.array(offsets), terms.text_array(part.reshape(-1)))

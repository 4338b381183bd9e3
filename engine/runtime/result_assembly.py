"""This module turns found rows into solutions: projected, in order of emission, as N-Triples text."""

import re
from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.aggregation import VERDICT
from engine.background.fact_store import FactIndex
from engine.dictionary.arrow_encoding import one_after_another
from engine.dictionary.batch_layout import (
    ALIKE,
    BEGIN,
    END,
    ENTRY,
    FIRST,
    FIRST_CONSTANT,
    NAME,
    NAME_SIZE,
    NODE,
    QUERY_WIDTH,
    REGISTERED,
    SHOWN,
    TRIPLES,
)
from engine.dictionary.term_dictionary import FormTables, TermTable
from engine.kernel.state import layout as c
from engine.messages import INSTANT, SOLUTIONS, TIED, int64s
from engine.network.placed_query import Planned
from engine.pattern_scope import sort_by_name
from engine.planner.queries import RANK
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import BlankNode, TermOrVariable, Variable

Ints = NDArray[np.int64]
NOTHING = pa.RecordBatch.from_pylist([], schema=SOLUTIONS)
NOTHING_TIED = pa.RecordBatch.from_pylist([], schema=TIED)
assert (c.OUT_START, c.OUT_END, c.OUT_NODE, c.OUT_ENTRY) == (BEGIN, END, NODE, ENTRY), "emission reads what the kernel writes"


@dataclass(frozen=True, slots=True, eq=False)
class Outlets:
    """Says where the solutions of a network come out: those of all forms but DESCRIBE, those of DESCRIBEs by their
    nodes, and those of its rules.
    """

    forms: FormTables
    described: Mapping[int, Planned]
    rules: Mapping[int, tuple[Planned, a.Construct]]  # those that write streams, by their nodes
    silent: Ints  # nodes whose solutions are not told: those of queries' own rules, or all
    orders: Mapping[int, tuple[int, ...]]
    """The numbers of a SELECT's values in the order in which they sort its solutions, by registration, if that is not
    their own order.
    """


def make_outlets(queries: Iterable[Planned], *, silent: bool = False) -> Outlets:
    planned = sorted(queries, key=lambda one: (one.source.name, one.registered))
    described = {one.out: one for one in planned if isinstance(one.source.query, a.Describe)}
    rules = {node: (one, rule) for one in planned for node, rule in one.written.items()}
    empty = {node for node, (_, rule) in rules.items() if not rule.template}
    hushed = [node for one in planned for node in ((*one.rules, one.out) if silent or one.out in empty else one.rules)]
    orders = {one.registered: order for one in planned if (order := one.name_order)}
    return Outlets(_make_forms([one for one in planned if one.out not in described]), described, rules, np.array(hushed, np.int64), orders)


def add_outlet(outlets: Outlets, planned: Planned, *, silent: bool = False) -> Outlets:
    """Return what `make_outlets` gives with one more query. Rows of the others move, and none is made anew."""
    one = make_outlets([planned], silent=silent)
    forms = outlets.forms if one.described else _add_form(outlets.forms, planned)
    rules, orders = {**outlets.rules, **one.rules}, {**outlets.orders, **one.orders}
    return Outlets(forms, {**outlets.described, **one.described}, rules, np.append(outlets.silent, one.silent), orders)


def _add_form(forms: FormTables, planned: Planned) -> FormTables:
    places, queries, wanted, names, *_ = forms.arrays
    name, constants = planned.source.name.encode(), list(forms.constants)
    row, cells = _describe_form(planned, constants)

    def name_at(k: int) -> tuple[bytes, int]:
        first = queries[k, NAME]
        return names[first : first + queries[k, NAME_SIZE]].tobytes(), int(queries[k, REGISTERED])

    k = bisect(range(len(queries)), (name, planned.registered), key=name_at)
    row[FIRST], row[NAME] = queries[k, [FIRST, NAME]] if k < len(queries) else (len(wanted), len(names) - 1)
    queries = np.insert(queries, k, row, axis=0)
    queries[k + 1 :, FIRST] += len(cells)
    queries[k + 1 :, NAME] += len(name)
    places = np.append(places, np.full(max(planned.out + 1 - len(places), 0), c.NONE))
    places[places >= k] += 1
    places[planned.out] = k
    wanted, names = np.insert(wanted, row[FIRST], cells), np.insert(names, row[NAME], np.frombuffer(name, np.uint8))
    return FormTables.from_queries(places, queries, wanted, names, constants)


def _make_forms(planned: Sequence[Planned]) -> FormTables:
    """Return the tables by which compiled code shows the solutions of queries that are no DESCRIBE."""
    names, wanted, constants = [one.source.name.encode() for one in planned], list[int](), list[str]()
    places = np.full(max((one.out for one in planned), default=-1) + 1, c.NONE, np.int64)
    places[[one.out for one in planned]] = np.arange(len(planned))
    queries = np.zeros((len(planned), QUERY_WIDTH), np.int64)
    for k, one in enumerate(planned):
        queries[k], cells = _describe_form(one, constants)
        queries[k, FIRST] = len(wanted)
        wanted += cells
    queries[:, NAME] = np.cumsum(queries[:, NAME_SIZE]) - queries[:, NAME_SIZE]
    return FormTables.from_queries(places, queries, np.array(wanted, np.int64), np.frombuffer(b"".join(names) + b"\0", np.uint8), constants)


def _describe_form(one: Planned, constants: list[str]) -> tuple[Ints, list[int]]:
    """Return the row of a query, without places in what the rows share, and the cells that it shows.

    Constants of its triples join the others.
    """
    row = np.zeros(QUERY_WIDTH, np.int64)
    row[REGISTERED], row[SHOWN], row[ALIKE], row[NAME_SIZE] = one.registered, one.shown, True, len(one.source.name.encode())
    match one.source.query:
        case a.Select():
            cells: list[int] = one.emitted.tolist()
        case a.Construct(template=template) as rule:
            by_name = list_shown(rule)
            row[SHOWN], row[ALIKE], row[TRIPLES] = len(by_name), False, len(template)
            parts = [part for triple in template for part in list_parts(triple)]
            cells = [find_cell(one, v) for v in (RANK, *by_name)] + [_find_part(one, part, constants) for part in parts]
        case other:
            row[SHOWN] = len(list_shown(other))
            cells = [find_cell(one, v) for v in (RANK, *list_shown(other), *list_shown(other))]
    return row, cells


def find_cell(planned: Planned, variable: Variable) -> int:
    """Return the column of `out` that holds a variable, NONE for one that the pattern never binds."""
    column = planned.columns.get(variable, c.NONE)
    return column if column == c.NONE else column + c.OUT_VAR - c.VAR


def _find_part(planned: Planned, part: TermOrVariable, constants: list[str]) -> int:
    """Return the column of a part of a template's triple; a constant joins the others, and its place among them is
    told.
    """
    if isinstance(part, Variable | BlankNode):
        return find_cell(planned, _as_variable(part))
    constants.append(str(part))
    return FIRST_CONSTANT - len(constants) + 1


def _as_variable(part: Variable | BlankNode) -> Variable:
    return Variable(f"_:template {part.label}") if isinstance(part, BlankNode) else part


def assemble_solutions(outlets: Outlets, rows: Ints, terms: TermTable, known: FactIndex, *, tied: bool = False) -> list[pa.RecordBatch]:
    """Return solutions in order of emission, in several parts if some are of DESCRIBEs.

    `known` is the background. If the solutions are `tied`, they have the texts that order them (`by`).
    """
    if len(outlets.silent):
        rows = rows[~np.isin(rows[:, c.OUT_NODE], outlets.silent)]
    if not outlets.described:
        return [_emit(outlets, rows, terms, tied=tied)]
    nodes, found = rows[:, c.OUT_NODE], list[pa.RecordBatch]()
    for node in np.unique(nodes).tolist():
        if node in outlets.described:
            found.append(_describe_query(outlets.described[node], rows[nodes == node], terms, known, tied=tied))
    formed = rows[~np.isin(nodes, list(outlets.described))]
    if len(formed):
        found.append(_emit(outlets, formed, terms, tied=tied))
    return found


def _emit(outlets: Outlets, rows: Ints, terms: TermTable, *, tied: bool) -> pa.RecordBatch:
    """Return the solutions of rows. Those that are `tied` have the orders of their queries in the schema's metadata."""
    batch = terms.emitted(rows, outlets.forms, TIED if tied else SOLUTIONS, tied=tied)
    if not tied or not outlets.orders or not batch.num_rows:
        return batch
    queries = np.unique(int64s(batch.column("registered"))).tolist()
    first, last = int64s(batch.column("entry"))[[0, -1]].tolist()
    orders = {
        b"order of %d from %d to %d" % (k, first, last): np.array(outlets.orders[k], np.int32).tobytes() for k in queries if k in outlets.orders
    }
    return batch.replace_schema_metadata(orders)


_ORDER = re.compile(rb"order of (\d+) from (\d+) to (\d+)")
Orders = Mapping[int, Sequence[tuple[int, int, list[int]]]]
"""By registration, it has the orders that the metadata tell, each with its first and last entry: a promotion changes
the text of a query.
"""


def read_orders(tied: pa.RecordBatch) -> Orders:
    """Return the orders that the metadata of TIED solutions tell."""
    found: dict[int, list[tuple[int, int, list[int]]]] = {}
    for key, order in (tied.schema.metadata or {}).items():
        if (told := _ORDER.fullmatch(key)) is not None:
            registered, first, last = map(int, told.groups())
            found.setdefault(registered, []).append((first, last, np.frombuffer(order, np.int32).tolist()))
    return found


def read_sort_key(tied: pa.RecordBatch, row: int, orders: Orders) -> list[str | None]:
    """Return the texts that order a solution among those of its query, entry and interval.

    `orders` are those of the batch.
    """
    by: list[str | None] | None = tied.column("by")[row].as_py()
    if by is not None:
        return by
    values: list[str | None] = tied.column("values")[row].as_py()
    registered, entry = (tied.column(name)[row].as_py() for name in ("registered", "entry"))
    order = next((each for first, last, each in orders.get(registered, ()) if first <= entry <= last), None)
    return values if order is None else [values[k] for k in order]


def _make_list(texts: pa.StringArray, n: int) -> pa.ListArray:
    """Return the texts as `n` lists of equal length."""
    offsets = np.arange(n + 1, dtype=np.int32) * (len(texts) // max(n, 1))
    return pa.ListArray.from_arrays(pa.array(offsets), texts)


def read_cells(columns: Sequence[int], rows: Ints) -> Ints:
    """Return the terms in some row columns of each row of `out`; what has no column is unbound."""
    found = np.zeros((len(rows), len(columns)), np.int64)
    for k, column in enumerate(columns):
        if column != c.NONE:
            found[:, k] = rows[:, column + c.OUT_VAR - c.VAR]
    return found


def _describe_query(planned: Planned, rows: Ints, terms: TermTable, known: FactIndex, *, tied: bool) -> pa.RecordBatch:
    """Return the solutions of a DESCRIBE."""
    assert isinstance(planned.source.query, a.Describe)
    numbers = read_cells([planned.columns.get(v, c.NONE) for v in list_shown(planned.source.query)], rows)
    order = rank_rows(rows, read_column(planned, rows, RANK), numbers, terms)
    rows, numbers = rows[order], numbers[order]
    values, kept = describe_rows(planned, planned.source.query, rows, terms, known)
    by = [_make_list(terms.text_array(numbers[kept].reshape(-1)), len(kept))] if tied else []
    return _make_batch(planned, rows[kept], values, by)


def _make_batch(planned: Planned, rows: Ints, values: pa.ListArray, by: Sequence[pa.ListArray]) -> pa.RecordBatch:
    n = len(rows)
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([planned.source.name], pa.utf8()))
    numbers = [pa.array(column) for column in (np.full(n, planned.registered), rows[:, c.OUT_ENTRY])]
    times = [pa.array(rows[:, column]).cast(INSTANT) for column in (c.OUT_START, c.OUT_END)]
    return pa.RecordBatch.from_arrays([names, *numbers, *times, values, *by], schema=TIED if by else SOLUTIONS)


def list_shown(query: a.Construct | a.Describe | a.Ask) -> tuple[Variable, ...]:
    """Return the variables that tell the solutions of a query which is no SELECT apart."""
    match query:
        case a.Construct(template=template):
            return sort_by_name(t for triple in template for t in list_parts(triple) if isinstance(t, Variable))
        case a.Describe(targets=targets):
            return sort_by_name(t for t in targets if isinstance(t, Variable))
        case a.Ask():
            return (VERDICT,)
        case _:
            assert_never(query)


def list_parts(triple: a.TriplePattern) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
    return triple.subject, triple.predicate, triple.object


def read_column(planned: Planned, rows: Ints, variable: Variable) -> Ints:
    """Return the term numbers of a variable; one that the pattern never binds is unbound."""
    column = planned.columns.get(variable)
    return np.zeros(len(rows), np.int64) if column is None else rows[:, c.OUT_VAR + column - c.VAR]


def rank_rows(rows: Ints, rank: Ints, numbers: Ints, terms: TermTable) -> Ints:
    """Return the order of emission of one query's rows, which the kernel gives by entry and end.

    There ranks decide where a query orders its solutions, which count from 1; else starts, then terms.
    """
    by = np.where(rank != 0, rank, rows[:, c.OUT_START])
    return terms.places_in_order(rows, c.OUT_ENTRY, c.OUT_END, by, numbers)


def describe_rows(planned: Planned, query: a.Describe, rows: Ints, terms: TermTable, known: FactIndex) -> tuple[pa.ListArray, Ints]:
    """Return what the background says of a DESCRIBE's targets for each row, and the rows of which it says anything."""
    targets = [read_part(planned, rows, target, terms) for target in query.targets]
    found: list[list[str]] = []
    kept: list[int] = []
    for k in range(len(rows)):
        described = [term for numbers in targets if (term := terms.term(int(numbers[k]))) is not None]
        lines = known.descriptions.describe_terms(described)
        if lines:
            found.append(lines)
            kept.append(k)
    return pa.array(found, pa.list_(pa.utf8())), np.array(kept, np.int64)


def read_part(planned: Planned, rows: Ints, part: TermOrVariable, terms: TermTable) -> Ints:
    """Return the term numbers of one place of a template triple."""
    if isinstance(part, Variable | BlankNode):
        return read_column(planned, rows, _as_variable(part))
    return np.full(len(rows), terms.intern(str(part)), np.int64)


def sort_by_emission(found: Sequence[pa.RecordBatch], *, tied: bool = False) -> pa.RecordBatch:
    """Return all that was found by entry, end, start; at one place by query name.

    Each part of `found` is in order already.
    """
    parts = [part for part in found if part.num_rows] if found else found
    if len(parts) < 2:
        return parts[0] if parts else NOTHING_TIED if tied else NOTHING
    whole = one_after_another(parts)
    ends = [(int64s(part.column("entry"))[[0, -1]]).tolist() for part in parts]
    if all(before[1] < after[0] for before, after in pairwise(ends)):
        return whole
    starts = rank_starts(whole, np.repeat(np.arange(len(parts)), [part.num_rows for part in parts]))
    return whole.take(pa.array(find_order(whole, starts)))


def find_order(whole: pa.RecordBatch, starts: Ints) -> Ints:
    """Return the order of emission of several parts' solutions, each of which is in order; equal ones stay as they
    stand.

    `starts` are as `starts_in_order` gives them.
    """
    registered, entry, end = (int64s(whole.column(name)) for name in ("registered", "entry", "end"))
    return np.lexsort((registered, rank_names(whole.column("query")), starts, end, entry))


def rank_starts(whole: pa.RecordBatch, part: Ints) -> Ints:
    """Return starts, raised where a query has an order of its own for an instant, so that its solutions keep it among
    those of others.

    A query's part tells that order.
    """
    registered, entry, end, start = (int64s(whole.column(name)) for name in ("registered", "entry", "end", "start"))
    falls = (np.diff(start) < 0) & (np.diff(part) == 0) & (np.diff(entry) == 0) & (np.diff(end) == 0)
    if not falls.any():
        return start
    place = np.lexsort((np.arange(len(start)), end, entry, registered, part))
    same = np.zeros(len(start), np.bool_)
    for column in (registered, entry, end, part):
        same[1:] |= np.diff(column[place]) != 0
    group = np.cumsum(same)
    ranks = np.unique(start, return_inverse=True)[1][place]
    highest = np.maximum.accumulate(group * len(start) + ranks) - group * len(start)
    raised = np.empty(len(start), np.int64)
    raised[place] = np.unique(start)[highest]
    return raised


def rank_names(names: pa.DictionaryArray) -> Ints:
    dictionary = names.dictionary.to_pylist()
    ranks = {name: k for k, name in enumerate(sorted(set(dictionary)))}
    found: Ints = np.array([ranks[name] for name in dictionary], np.int64)[names.indices.to_numpy()]
    return found

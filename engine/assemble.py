"""Found rows to solutions: projected, in order of emission, as N-Triples text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.collect import VERDICT
from engine.entries import INSTANT, SOLUTIONS, TIED
from engine.facts import FactIndex
from engine.kernel import columns as c
from engine.packed import joined, schema_of, unpacked
from engine.planned import Planned
from engine.planning.queries import RANK
from engine.terms import TermTable
from engine.text.emission import BEGIN, END, ENTRY, WHICH
from epsparql import algebra as a
from epsparql.terms import BlankNode, TermOrVariable, Variable

Ints = NDArray[np.int64]
HEADER = np.array([c.OUT_ENTRY, c.OUT_START, c.OUT_END])
PLACED = (pa.int64(), pa.int64(), INSTANT, INSTANT)
FEW = 64
NOTHING = pa.RecordBatch.from_pylist([], schema=SOLUTIONS)
NOTHING_TIED = pa.RecordBatch.from_pylist([], schema=TIED)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Solutions of some queries, those of each in order: whose each is, with its entry, start and end, and a list of texts each.

    `by`: the texts by which solutions of one query and interval stand in order, where these are others.
    """

    planned: Sequence[Planned]
    placed: Ints  # PLACED_HEIGHT x n
    values: pa.ListArray
    by: pa.ListArray | None = None


def found_of(planned: Sequence[Planned], which: Ints, rows: Ints, terms: TermTable, known: FactIndex, *, tied: bool = False) -> list[Found]:
    """Solutions from rows of `out`, each query's sorted by entry, end, start, then terms by variable name.

    Rows stand query by query, `which` says of which, and each query has some. `known` is the background. If they are `tied`, they say `by` what.
    """
    plain: dict[int, list[int]] = {}
    found: list[Found] = []
    for k, one in enumerate(planned):
        if isinstance(one.query, a.Select):
            plain.setdefault(one.shown, []).append(k)
        else:
            found.append(_of_one(one, rows[which == k], terms, known, tied=tied))
    for alike in plain.values():
        if len(alike) == len(planned):
            found.append(_selected(planned, which, rows, terms, tied=tied))
        else:
            number = np.full(len(planned), c.NONE, np.int64)
            number[alike] = np.arange(len(alike))
            own = number[which] != c.NONE
            found.append(_selected([planned[k] for k in alike], number[which[own]], rows[own], terms, tied=tied))
    return found


def _selected(planned: Sequence[Planned], which: Ints, rows: Ints, terms: TermTable, *, tied: bool) -> Found:
    """Solutions of SELECTs that show equally many variables."""
    wanted = planned[0].emitted.reshape(1, -1) if len(planned) == 1 else np.stack([one.emitted for one in planned])
    placed, texts = terms.arranged(which, rows, HEADER, wanted, planned[0].shown)
    return Found(planned, placed, _listed(texts, len(rows)), _by_name(planned, placed[WHICH], texts) if tied else None)


def _by_name(planned: Sequence[Planned], which: Ints, texts: pa.StringArray) -> pa.ListArray | None:
    """The values of solutions in order of their variables' names; None if they stand so."""
    shown = planned[0].shown
    places = np.array([sorted(range(shown), key=lambda k: _projection(one)[k].name) for one in planned], np.int64).reshape(len(planned), shown)
    if bool((places == np.arange(shown)).all()):
        return None
    taken = places[which] + shown * np.arange(len(which))[:, None]
    return _listed(texts.take(pa.array(taken.reshape(-1))), len(which))


def _projection(planned: Planned) -> tuple[Variable, ...]:
    assert isinstance(planned.query, a.Select)
    return planned.query.projection


def _listed(texts: pa.StringArray, n: int) -> pa.ListArray:
    """The texts as `n` lists of equal length."""
    offsets = np.arange(n + 1, dtype=np.int32) * (len(texts) // max(n, 1))
    return pa.ListArray.from_arrays(pa.array(offsets), texts)


def placed_from(which: Ints, rows: Ints) -> Ints:
    return np.stack([which, *rows[:, HEADER].T])


def cells(columns: Sequence[int], rows: Ints) -> Ints:
    """The terms in some row columns of each row of `out`; what has no column is unbound."""
    found = np.zeros((len(rows), len(columns)), np.int64)
    for k, column in enumerate(columns):
        if column != c.NONE:
            found[:, k] = rows[:, column + c.OUT_VAR - c.VAR]
    return found


def _of_one(planned: Planned, rows: Ints, terms: TermTable, known: FactIndex, *, tied: bool) -> Found:
    """Solutions of a query of another form."""
    assert not isinstance(planned.query, a.Select)
    which, shown = np.zeros(len(rows), np.int64), in_name_order(shown_by(planned.query))
    numbers = cells([planned.columns.get(v, c.NONE) for v in shown], rows)
    order = in_order(which, rows, column_of(planned, rows, RANK), numbers, terms)
    rows = rows[order]
    if isinstance(planned.query, a.Ask):
        return Found((planned,), placed_from(which, rows), _listed(terms.text_array(numbers[order].reshape(-1)), len(rows)))
    if isinstance(planned.query, a.Construct):
        values, kept = statements(planned, planned.query, rows, terms)
    else:
        values, kept = described_by(planned, planned.query, rows, terms, known)
    rows = rows[kept]
    by = _listed(terms.text_array(numbers[order][kept].reshape(-1)), len(rows)) if tied else None
    return Found((planned,), placed_from(which[: len(rows)], rows), values, by)


def shown_by(query: a.Construct | a.Describe | a.Ask) -> tuple[Variable, ...]:
    """The variables that tell the solutions of a query which is no SELECT apart."""
    match query:
        case a.Construct(template=template):
            return in_name_order(t for triple in template for t in parts_of(triple) if isinstance(t, Variable))
        case a.Describe(targets=targets):
            return in_name_order(t for t in targets if isinstance(t, Variable))
        case a.Ask():
            return (VERDICT,)
        case _:
            assert_never(query)


def in_name_order(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    return tuple(sorted(set(variables), key=lambda v: v.name))


def parts_of(triple: a.TriplePattern) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
    return triple.subject, triple.predicate, triple.object


def column_of(planned: Planned, rows: Ints, variable: Variable) -> Ints:
    """Term numbers of a variable; one that the pattern never binds is unbound."""
    column = planned.columns.get(variable)
    return np.zeros(len(rows), np.int64) if column is None else rows[:, c.OUT_VAR + column - c.VAR]


def in_order(which: Ints, rows: Ints, rank: Ints, numbers: Ints, terms: TermTable) -> Ints:
    """The order of emission, query by query; the kernel gives a query's rows by entry and end.

    There ranks decide where a query orders its solutions, which count from 1; else starts, then terms.
    """
    by = np.where(rank != 0, rank, rows[:, c.OUT_START])
    return terms.places_in_order(which, rows, c.OUT_ENTRY, c.OUT_END, by, numbers)


def statements(planned: Planned, rule: a.Construct, rows: Ints, terms: TermTable) -> tuple[pa.ListArray, Ints]:
    """A rule's triples for each row, and the rows that have any; one with an unbound or ill-placed term is left out alone."""
    triples = [[row_part(planned, rows, part, terms) for part in parts_of(triple)] for triple in rule.template]
    lines, counts = terms.statements(np.ascontiguousarray(np.moveaxis(np.array(triples, np.int64).reshape(len(rule.template), 3, len(rows)), 2, 0)))
    kept = np.flatnonzero(counts)
    offsets = np.concatenate([[0], np.cumsum(counts[kept])])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), lines), kept


def described_by(planned: Planned, query: a.Describe, rows: Ints, terms: TermTable, known: FactIndex) -> tuple[pa.ListArray, Ints]:
    """What the background says of a DESCRIBE's targets for each row, and the rows of which it says anything."""
    targets = [row_part(planned, rows, target, terms) for target in query.targets]
    found: list[list[str]] = []
    kept: list[int] = []
    for k in range(len(rows)):
        described = [term for numbers in targets if (term := terms.term(int(numbers[k]))) is not None]
        lines = [f"{s} {p} {o} ." for s, p, o in known.descriptions.of(described)]
        if lines:
            found.append(lines)
            kept.append(k)
    return pa.array(found, pa.list_(pa.utf8())), np.array(kept, np.int64)


def row_part(planned: Planned, rows: Ints, part: TermOrVariable, terms: TermTable) -> Ints:
    """Term numbers of one place of a template triple."""
    if isinstance(part, BlankNode):
        return column_of(planned, rows, Variable(f"_:template {part.label}"))
    if isinstance(part, Variable):
        return column_of(planned, rows, part)
    return np.full(len(rows), terms.intern(str(part)), np.int64)


def in_emission_order(found: Sequence[Found], *, tied: bool = False) -> pa.RecordBatch:
    """All queries' solutions: by entry, end, start; at one place by query name. TIED if they are to be merged with those of other buckets."""
    parts = [f for f in found if f.placed.shape[1]]
    if not parts:
        return NOTHING_TIED if tied else NOTHING
    planned = [one for f in parts for one in f.planned]
    if len(planned) == 1:  # whose solutions are in order
        alone = batch(names_of(planned[0].name, parts[0].placed.shape[1]), planned[0].registered, parts[0].placed, parts[0].values)
        return _tied(alone, parts, None) if tied else alone
    by_name = sorted(range(len(planned)), key=lambda k: planned[k].name)
    rank = np.empty(len(planned), np.int64)
    rank[by_name] = np.arange(len(planned))
    offsets = np.cumsum([0, *(len(f.planned) for f in parts)])
    placed = np.concatenate([f.placed for f in parts], axis=1)
    placed[WHICH] = np.concatenate([rank[f.placed[WHICH] + first] for f, first in zip(parts, offsets.tolist(), strict=False)])
    values = joined([f.values for f in parts])
    order = np.lexsort((placed[WHICH], starts_in_order(placed), placed[END], placed[ENTRY]))
    placed, values = placed.take(order, axis=1), values.take(pa.array(order))
    registered = np.array([planned[k].registered for k in by_name], np.int64)
    names = pa.DictionaryArray.from_arrays(pa.array(placed[WHICH].astype(np.int32)), pa.array([planned[k].name for k in by_name], pa.utf8()))
    whole = batch(names, registered[placed[WHICH]], placed, values)
    return _tied(whole, parts, order) if tied else whole


def _tied(solutions: pa.RecordBatch, parts: Sequence[Found], order: Ints | None) -> pa.RecordBatch:
    """With the column `by`; `order` is that in which the parts' solutions were put."""
    by = pa.concat_arrays([pa.nulls(len(f.values), TIED.field("by").type) if f.by is None else unpacked(f.by) for f in parts])
    return pa.RecordBatch.from_arrays(
        [*solutions.columns, by if order is None else by.take(pa.array(order))], schema=schema_of(solutions.column("values"), TIED)
    )


def starts_in_order(placed: Ints) -> Ints:
    """Ranks of the starts, raised where a query has an order of its own for an instant, so that its solutions keep it among those of others."""
    n = placed.shape[1]
    _, rank = np.unique(placed[BEGIN], return_inverse=True)
    first = np.ones(n, np.int64)
    first[1:] = (np.diff(placed[[WHICH, ENTRY, END]], axis=1) != 0).any(axis=0)
    base = np.cumsum(first) * n
    raised: Ints = np.maximum.accumulate(base + rank) - base
    return raised


def names_of(name: str, n: int) -> pa.DictionaryArray:
    """One query's name, `n` times."""
    return few_names(name).slice(0, n) if n <= FEW else named(name, n)


def named(name: str, n: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([name], pa.utf8()))


@lru_cache(maxsize=1 << 10)
def few_names(name: str) -> pa.DictionaryArray:
    """For the few solutions that one event brings."""
    return named(name, FEW)


def batch(names: pa.DictionaryArray, registered: Ints | int, placed: Ints, values: pa.ListArray) -> pa.RecordBatch:
    """SOLUTIONS over `placed`, which holds them from now on."""
    placed[WHICH] = registered
    n = placed.shape[1]
    whole = pa.py_buffer(placed)
    columns = [pa.Array.from_buffers(kind, n, [None, whole.slice(8 * n * k, 8 * n)], 0) for k, kind in enumerate(PLACED)]
    return pa.RecordBatch.from_arrays([names, *columns, values], schema=schema_of(values))

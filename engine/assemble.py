"""Found rows to solutions: projected, in order of emission, as N-Triples text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.collect import VERDICT
from engine.entries import INSTANT, SOLUTIONS
from engine.facts import FactIndex
from engine.kernel import columns as c
from engine.planned import Planned
from engine.planning.queries import RANK
from engine.terms import IRI, LITERAL, TermTable
from engine.text.order import pick
from epsparql import algebra as a
from epsparql.terms import BlankNode, TermOrVariable, Variable

Ints = NDArray[np.int64]
NOTHING = pa.RecordBatch.from_pylist([], schema=SOLUTIONS)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Solutions of some queries, those of each in order: which query's, entry, start, end, and a list of texts each."""

    planned: Sequence[Planned]
    which: Ints
    entry: Ints
    start: Ints
    end: Ints
    values: pa.ListArray


def found_of(planned: Sequence[Planned], which: Ints, rows: Ints, terms: TermTable, known: FactIndex) -> list[Found]:
    """Solutions from rows of `out`, each query's sorted by entry, end, start, then terms by variable name.

    Rows stand query by query, `which` says of which, and each query has some. `known` is the background.
    """
    plain: dict[int, list[int]] = {}
    found: list[Found] = []
    for k, one in enumerate(planned):
        if isinstance(one.query, a.Select):
            plain.setdefault(len(one.shown), []).append(k)
        else:
            found.append(_of_one(one, rows[which == k], terms, known))
    for alike in plain.values():
        if len(alike) == len(planned):
            found.append(_selected(planned, which, rows, terms))
        else:
            number = np.full(len(planned), c.NONE, np.int64)
            number[alike] = np.arange(len(alike))
            own = number[which] != c.NONE
            found.append(_selected([planned[k] for k in alike], number[which[own]], rows[own], terms))
    return found


def _selected(planned: Sequence[Planned], which: Ints, rows: Ints, terms: TermTable) -> Found:
    """Solutions of SELECTs that show equally many variables."""
    by_name, ranks = [one.shown_by_name for one in planned], [[one.columns.get(RANK, c.NONE)] for one in planned]
    order = in_order(which, rows, cells(ranks, which, rows)[:, 0], cells(by_name, which, rows), terms)
    numbers = cells([one.shown for one in planned], which, rows, order)
    return _in_texts(planned, which[order], rows[order], numbers, terms)


def _in_texts(planned: Sequence[Planned], which: Ints, rows: Ints, numbers: Ints, terms: TermTable) -> Found:
    """Found rows that show the terms with these numbers (rows x terms)."""
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * numbers.shape[1]
    values = pa.ListArray.from_arrays(pa.array(offsets), terms.text_array(numbers.reshape(-1)))
    return Found(planned, which, rows[:, c.OUT_ENTRY], rows[:, c.OUT_START], rows[:, c.OUT_END], values)


def cells(columns: Sequence[Sequence[int]], which: Ints, rows: Ints, order: Ints | None = None) -> Ints:
    """Of each row of `out` the terms in its query's row columns; what has no column is unbound."""
    wanted = np.array(columns, np.int64).reshape(len(columns), -1)
    wanted[wanted != c.NONE] += c.OUT_VAR - c.VAR
    found = np.empty((len(rows), wanted.shape[1]), np.int64)
    pick(rows, which, wanted, np.arange(len(rows)) if order is None else order, found)
    return found


def _of_one(planned: Planned, rows: Ints, terms: TermTable, known: FactIndex) -> Found:
    """Solutions of a query of another form."""
    assert not isinstance(planned.query, a.Select)
    which, shown = np.zeros(len(rows), np.int64), in_name_order(shown_by(planned.query))
    numbers = cells([[planned.columns.get(v, c.NONE) for v in shown]], which, rows)
    order = in_order(which, rows, column_of(planned, rows, RANK), numbers, terms)
    rows = rows[order]
    if isinstance(planned.query, a.Ask):
        return _in_texts((planned,), which, rows, numbers[order], terms)
    if isinstance(planned.query, a.Construct):
        values, kept = statements(planned, planned.query, rows, terms)
    else:
        values, kept = described_by(planned, planned.query, rows, terms, known)
    rows = rows[kept]
    return Found((planned,), which[: len(rows)], rows[:, c.OUT_ENTRY], rows[:, c.OUT_START], rows[:, c.OUT_END], values)


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
    found: list[list[str]] = []
    kept: list[int] = []
    templates = [[row_part(planned, rows, part, terms) for part in parts_of(triple)] for triple in rule.template]
    for k in range(len(rows)):
        lines = []
        for s, p, o in templates:
            triple = int(s[k]), int(p[k]), int(o[k])
            if all(triple) and terms.kinds[triple[0]] < LITERAL and terms.kinds[triple[1]] == IRI:
                lines.append(" ".join([*map(terms.text, triple), "."]))
        if lines:
            found.append(sorted(set(lines)))
            kept.append(k)
    return pa.array(found, pa.list_(pa.utf8())), np.array(kept, np.int64)


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


def in_emission_order(found: Sequence[Found]) -> pa.RecordBatch:
    """All queries' solutions: by entry, end, start; at one place by query name."""
    parts = [f for f in found if len(f.entry)]
    if not parts:
        return NOTHING
    planned = [one for f in parts for one in f.planned]
    if len(planned) == 1:
        return one_querys(parts[0])
    by_name = sorted(range(len(planned)), key=lambda k: planned[k].name)
    rank = np.empty(len(planned), np.int32)
    rank[by_name] = np.arange(len(planned), dtype=np.int32)
    offsets = np.cumsum([0, *(len(f.planned) for f in parts)])
    which = np.concatenate([rank[f.which + first] for f, first in zip(parts, offsets.tolist(), strict=False)])
    entry, start, end = (np.concatenate([getattr(f, name) for f in parts]) for name in ("entry", "start", "end"))
    values = pa.concat_arrays([f.values for f in parts]) if len(parts) > 1 else parts[0].values
    order = np.lexsort((which, start, end, entry))
    which, entry, start, end, values = which[order], entry[order], start[order], end[order], values.take(pa.array(order))
    registered = np.array([planned[k].registered for k in by_name], np.int64)
    names = pa.DictionaryArray.from_arrays(pa.array(which), pa.array([planned[k].name for k in by_name], pa.utf8()))
    return batch(names, registered[which], entry, start, end, values)


def one_querys(found: Found) -> pa.RecordBatch:
    """The solutions of one query, which are in order."""
    (planned,) = found.planned
    names = pa.DictionaryArray.from_arrays(pa.array(found.which.astype(np.int32)), pa.array([planned.name], pa.utf8()))
    return batch(names, np.full(len(found.entry), planned.registered, np.int64), found.entry, found.start, found.end, found.values)


def batch(names: pa.DictionaryArray, registered: Ints, entry: Ints, start: Ints, end: Ints, values: pa.ListArray) -> pa.RecordBatch:
    times = [pa.array(column).view(INSTANT) for column in (start, end)]
    return pa.RecordBatch.from_arrays([names, pa.array(registered), pa.array(entry), *times, values], schema=SOLUTIONS)

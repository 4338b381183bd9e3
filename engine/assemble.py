"""Found rows to solutions: projected, in order of emission, as N-Triples text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.entries import INSTANT, SOLUTIONS
from engine.kernel import columns as c
from engine.network import Planned
from engine.terms import IRI, LITERAL, TermTable
from epsparql import algebra as a
from epsparql.terms import BlankNode, TermOrVariable, Variable

Ints = NDArray[np.int64]
NOTHING = pa.RecordBatch.from_pylist([], schema=SOLUTIONS)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Solutions of one query, in order: entry, start, end, and a list of texts each."""

    planned: Planned
    entry: Ints
    start: Ints
    end: Ints
    values: pa.ListArray


def found_of(planned: Planned, rows: Ints, terms: TermTable) -> Found:
    """A query's solutions from its rows of `out`, sorted by entry, end, start, then terms by variable name."""
    if isinstance(planned.query, a.Construct):
        shown = tuple(sorted({t for triple in planned.query.template for t in parts_of(triple) if isinstance(t, Variable)}, key=lambda v: v.name))
    else:
        shown = planned.query.projection
    numbers = np.column_stack([column_of(planned, rows, v) for v in shown]) if shown else np.zeros((len(rows), 0), np.int64)
    order = in_order(rows, numbers[:, np.argsort([v.name for v in shown], kind="stable")], terms)
    rows, numbers = rows[order], numbers[order]
    if isinstance(planned.query, a.Construct):
        values, kept = statements(planned, planned.query, rows, terms)
        rows = rows[kept]
    else:
        offsets = np.arange(len(rows) + 1, dtype=np.int32) * numbers.shape[1]
        values = pa.ListArray.from_arrays(pa.array(offsets), terms.text_array(numbers.reshape(-1)))
    return Found(planned, rows[:, c.OUT_ENTRY], rows[:, c.OUT_START], rows[:, c.OUT_END], values)


def parts_of(triple: a.TriplePattern) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
    return triple.subject, triple.predicate, triple.object


def column_of(planned: Planned, rows: Ints, variable: Variable) -> Ints:
    """Term numbers of a variable; one that the pattern never binds is unbound."""
    column = planned.columns.get(variable)
    return np.zeros(len(rows), np.int64) if column is None else rows[:, c.OUT_VAR + column - c.VAR]


def in_order(rows: Ints, numbers: Ints, terms: TermTable) -> Ints:
    """The order of emission; terms are only looked at where entry, end and start are equal."""
    entry, start, end = rows[:, c.OUT_ENTRY], rows[:, c.OUT_START], rows[:, c.OUT_END]
    order: Ints = np.lexsort((start, end, entry))
    same = (np.diff(entry[order]) == 0) & (np.diff(end[order]) == 0) & (np.diff(start[order]) == 0)
    tied = np.append(same, False) | np.insert(same, 0, False)
    if tied.any() and numbers.shape[1]:
        ranks = np.zeros_like(numbers)
        ranks[order[tied]] = terms.in_order(numbers[order[tied]])
        order = np.lexsort((*ranks.T[::-1], start, end, entry))
    return order


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
                lines.append(f"{terms.texts[triple[0]]} {terms.texts[triple[1]]} {terms.texts[triple[2]]} .")
        if lines:
            found.append(sorted(set(lines)))
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
    parts = sorted((f for f in found if len(f.entry)), key=lambda f: f.planned.name)
    if not parts:
        return NOTHING
    entry, start, end = (np.concatenate([getattr(f, name) for f in parts]) for name in ("entry", "start", "end"))
    which = np.repeat(np.arange(len(parts), dtype=np.int32), [len(f.entry) for f in parts])
    registered = np.array([f.planned.registered for f in parts], np.int64)
    order = np.lexsort((which, start, end, entry))
    values = parts[0].values if len(parts) == 1 else pa.concat_arrays([f.values for f in parts])
    if (order[1:] < order[:-1]).any():
        values = values.take(pa.array(order))
    names = pa.DictionaryArray.from_arrays(pa.array(which[order]), pa.array([f.planned.name for f in parts], pa.utf8()))
    columns = [
        names,
        pa.array(registered[which[order]]),
        pa.array(entry[order]),
        pa.array(start[order]).cast(INSTANT),
        pa.array(end[order]).cast(INSTANT),
        values,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SOLUTIONS)

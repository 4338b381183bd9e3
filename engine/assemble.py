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


def found_of(planned: Planned, rows: Ints, terms: TermTable, known: FactIndex) -> Found:
    """A query's solutions from its rows of `out`, sorted by entry, end, start, then terms by variable name. `known` is the background."""
    shown = shown_by(planned.query)
    numbers = np.column_stack([column_of(planned, rows, v) for v in shown]) if shown else np.zeros((len(rows), 0), np.int64)
    order = in_order(rows, column_of(planned, rows, RANK), numbers[:, np.argsort([v.name for v in shown], kind="stable")], terms)
    rows, numbers = rows[order], numbers[order]
    if isinstance(planned.query, a.Construct):
        values, kept = statements(planned, planned.query, rows, terms)
        rows = rows[kept]
    elif isinstance(planned.query, a.Describe):
        values, kept = described_by(planned, planned.query, rows, terms, known)
        rows = rows[kept]
    else:
        offsets = np.arange(len(rows) + 1, dtype=np.int32) * numbers.shape[1]
        values = pa.ListArray.from_arrays(pa.array(offsets), terms.text_array(numbers.reshape(-1)))
    return Found(planned, rows[:, c.OUT_ENTRY], rows[:, c.OUT_START], rows[:, c.OUT_END], values)


def shown_by(query: a.Query) -> tuple[Variable, ...]:
    """The variables that tell a query's solutions apart, in the order of their values where these are terms."""
    match query:
        case a.Select(projection=projection):
            return projection
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


def in_order(rows: Ints, rank: Ints, numbers: Ints, terms: TermTable) -> Ints:
    """The order of emission; the kernel gives rows by entry and end, and terms are only looked at where the start is equal too.

    Ranks, where a query orders its solutions, come before starts.
    """
    entry, start, end = rows[:, c.OUT_ENTRY], rows[:, c.OUT_START], rows[:, c.OUT_END]
    place = np.zeros(len(rows), np.int64)
    np.cumsum((np.diff(entry) != 0) | (np.diff(end) != 0), out=place[1:])
    if len(rows) == place[-1] + 1:
        return np.arange(len(rows))
    if rank.any():
        return np.lexsort((rank, place))
    order = by_start(place, start)
    same = (np.diff(place[order]) == 0) & (np.diff(start[order]) == 0)
    if same.any() and numbers.shape[1]:
        tied = np.append(same, False) | np.insert(same, 0, False)
        ranks = np.zeros_like(numbers)
        ranks[order[tied]] = terms.in_order(numbers[order[tied]])
        order = np.lexsort((*ranks.T[::-1], start, place))
    return order


def by_start(place: Ints, start: Ints) -> Ints:
    """Order by place, then start: over one number where both fit into it, because rows of a place come nearly sorted."""
    since = start - start.min()
    width = int(since.max()) + 1
    if (int(place[-1]) + 1) * width < 1 << 62:
        return np.argsort(place * width + since, kind="stable")
    return np.lexsort((start, place))


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
    parts = sorted((f for f in found if len(f.entry)), key=lambda f: f.planned.name)
    if not parts:
        return NOTHING
    if len(parts) == 1:
        return solutions_of(parts[0])
    entry, start, end = (np.concatenate([getattr(f, name) for f in parts]) for name in ("entry", "start", "end"))
    which = np.repeat(np.arange(len(parts), dtype=np.int32), [len(f.entry) for f in parts])
    registered = np.array([f.planned.registered for f in parts], np.int64)
    order = np.lexsort((which, start, end, entry))
    values = pa.concat_arrays([f.values for f in parts]).take(pa.array(order))
    names = pa.DictionaryArray.from_arrays(pa.array(which[order]), pa.array([f.planned.name for f in parts], pa.utf8()))
    return batch(names, registered[which[order]], entry[order], start[order], end[order], values)


def solutions_of(found: Found) -> pa.RecordBatch:
    """One query's solutions, which are in order."""
    n = len(found.entry)
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([found.planned.name], pa.utf8()))
    return batch(names, np.full(n, found.planned.registered, np.int64), found.entry, found.start, found.end, found.values)


def batch(names: pa.DictionaryArray, registered: Ints, entry: Ints, start: Ints, end: Ints, values: pa.ListArray) -> pa.RecordBatch:
    times = [pa.array(column).view(INSTANT) for column in (start, end)]
    return pa.RecordBatch.from_arrays([names, pa.array(registered), pa.array(entry), *times, values], schema=SOLUTIONS)

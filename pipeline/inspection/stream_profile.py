"""This module counts what the last events of a stream carry: predicates, classes and datatypes. It counts on Arrow's dictionaries, not row by row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import OCCURRENCES, Micros
from epsparql.terms import RDF, RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD_STRING
from pipeline.inspection.backward_reader import Look

RATE_SPAN: Micros = 300_000_000
"""Rates are those of the last five minutes, by the clock at arrival."""
TYPE = f"<{RDF}type>"
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SeenName:
    """Says how often a predicate, class or datatype was seen, when first and last in stream time, in which event, and how often a second lately."""

    name: str
    count: int
    first: Micros
    last: Micros
    rate: float
    example: str


@dataclass(frozen=True, slots=True)
class StreamProfile:
    """Describes the events of a stream that were read: `events` of them, of which `late` were late, back to the log position `since`.

    `is_complete` says whether these are all events of the stream. Names are in the order of their counts. `rate` is events a second.
    """

    events: int
    late: int
    since: int
    is_complete: bool
    rate: float
    predicates: tuple[SeenName, ...] = ()
    classes: tuple[SeenName, ...] = ()
    datatypes: tuple[SeenName, ...] = ()


def profile_of(look: Look, accepted: int, now: Micros) -> StreamProfile:
    """Count what a look has found of a stream that has accepted so many events."""
    if not look.pieces:
        return StreamProfile(0, 0, look.read_from, not accepted, 0.0)
    table = pa.Table.from_batches([piece.rows for piece in look.pieces], OCCURRENCES).unify_dictionaries().combine_chunks()
    arrived = np.repeat([piece.arrived for piece in look.pieces], [piece.rows.num_rows for piece in look.pieces])
    is_complete = table.num_rows >= accepted
    span = RATE_SPAN if is_complete else min(RATE_SPAN, max(now - int(arrived.min()), 1))
    tally = _Tally(table, arrived >= now - span, span / 1_000_000)
    predicates, objects = _texts(table, "p"), _texts(table, "o")
    is_class = np.fromiter((text[0] == "<" and text[1] != "<" for text in objects), bool, len(objects))
    is_type = np.fromiter((text == TYPE for text in predicates), bool, len(predicates))
    kinds = [_kind_of(text) for text in objects]
    known = sorted({kind for kind in kinds if kind})
    number = {kind: at for at, kind in enumerate(known)}
    datatype_of = np.fromiter((number.get(kind, -1) for kind in kinds), np.int64, len(kinds))
    of_object = _codes(table, "o")
    typed = np.flatnonzero(is_type[_codes(table, "p")] & is_class[of_object])
    literal = np.flatnonzero(datatype_of[of_object] >= 0)
    return StreamProfile(
        events=table.num_rows,
        late=int(np.count_nonzero(table.column("late").to_numpy())),
        since=look.read_from,
        is_complete=is_complete,
        rate=float(np.count_nonzero(tally.recent)) / tally.span_s,
        predicates=tally.list_seen(np.arange(table.num_rows), _codes(table, "p"), predicates),
        classes=tally.list_seen(typed, of_object[typed], objects),
        datatypes=tally.list_seen(literal, datatype_of[of_object[literal]], known),
    )


class _Tally:
    """Counts the rows of a table by a name that each has."""

    def __init__(self, table: pa.Table, recent: NDArray[np.bool_], span_s: float) -> None:
        self._table, self.recent, self.span_s = table, recent, span_s
        self._start, self._end = (_instants(table, name) for name in ("start", "end"))

    def list_seen(self, rows: Ints, codes: Ints, names: Sequence[str]) -> tuple[SeenName, ...]:
        """Count these rows, whose names are `names` at `codes`; the most frequent name comes first."""
        size = len(names)
        counts, recent = np.bincount(codes, minlength=size), np.bincount(codes, weights=self.recent[rows], minlength=size)
        first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, np.iinfo(np.int64).min)
        np.minimum.at(first, codes, self._start[rows])
        np.maximum.at(last, codes, self._end[rows])
        example = np.zeros(size, np.int64)
        example[codes[::-1]] = rows[::-1]  # the newest body stands first, and the last assignment holds
        seen = sorted(np.flatnonzero(counts).tolist(), key=lambda code: (-int(counts[code]), names[code]))
        return tuple(
            SeenName(
                names[code], int(counts[code]), int(first[code]), int(last[code]), float(recent[code]) / self.span_s, self._triple(int(example[code]))
            )
            for code in seen
        )

    def _triple(self, row: int) -> str:
        s, p, o = (self._table.column(name)[row].as_py() for name in "spo")
        return f"{s} {p} {o} ."


def _column(table: pa.Table, name: str) -> pa.DictionaryArray:
    return table.column(name).chunk(0)


def _texts(table: pa.Table, name: str) -> list[str]:
    found: list[str] = _column(table, name).dictionary.to_pylist()
    return found


def _codes(table: pa.Table, name: str) -> Ints:
    found: Ints = _column(table, name).indices.to_numpy().astype(np.int64)
    return found


def _instants(table: pa.Table, name: str) -> Ints:
    found: Ints = table.column(name).chunk(0).cast(pa.int64()).to_numpy()
    return found


def _kind_of(term: str) -> str:
    """Return the datatype of a literal in canonical N-Triples, in angle brackets; empty for other terms."""
    if term[0] != '"':
        return ""
    if term[-1] == '"':
        return f"<{XSD_STRING}>"
    if term[-1] == ">":
        return term[term.rindex("^^") + 2 :]
    tag = term.rpartition('"')[2]
    return f"<{RDF_DIR_LANG_STRING if '--' in tag else RDF_LANG_STRING}>"

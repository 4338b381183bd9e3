"""This module counts what the last events of a stream carry: predicates, classes and datatypes.

It counts on Arrow's dictionaries, not row by row.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.messages import END_OF_TIME, OCCURRENCES, Micros
from epsparql.deferred_methods import dataclass
from epsparql.terms import RDF, RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD_STRING
from pipeline.inspection.backward_reader import BackwardReader
from pipeline.inspection.recent_rows import RecentRows
from pipeline.log.catalog import Stream

RATE_SPAN: Micros = 300_000_000
"""Rates are those of the last five minutes, by the clock at arrival."""
TYPE = f"<{RDF}type>"
IRI, NODE = "IRI", "node"
"""Objects that are no literals are IRIs, or else blank nodes and triple terms."""
Ints = NDArray[np.int64]
_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class SeenName:
    """Says how often a predicate, class or datatype was seen, and when first and last in stream time.

    Also in which event, and its recent rate per second.
    """

    name: str
    count: int
    first: Micros
    last: Micros
    rate: float
    example: str


@dataclass(frozen=True, slots=True)
class StreamProfile:
    """Describes the events of a stream that were read: `events` of them, of which `late` were late, back to the log
    position `since`.

    `lasting` of them start before they end. `is_complete` says whether these are all events of the stream. Names are
    in the order of their counts. `rate` is events a second.

    `objects` counts the objects of each predicate by their datatype, or as IRI or NODE; such a name is that of the
    predicate, a space and the kind.
    """

    events: int
    late: int
    since: int
    is_complete: bool
    rate: float
    predicates: tuple[SeenName, ...] = ()
    classes: tuple[SeenName, ...] = ()
    datatypes: tuple[SeenName, ...] = ()
    objects: tuple[SeenName, ...] = ()
    lasting: int = 0


def profile_of(reader: BackwardReader, stream: Stream, most: int, now: Micros) -> StreamProfile:
    """Count what the last events of a stream carry, `most` at the most."""
    counter = _Counter(now - RATE_SPAN)
    read_from, _ = reader.visit_last(stream.name, stream.created, most, counter.add)
    counter.finish()
    if not counter.events:
        return StreamProfile(0, 0, read_from, not stream.accepted, 0.0)
    is_complete = counter.events >= stream.accepted
    span_s = (RATE_SPAN if is_complete else min(RATE_SPAN, max(now - counter.oldest, 1))) / 1_000_000
    return StreamProfile(
        events=counter.events,
        late=counter.late,
        since=read_from,
        is_complete=is_complete,
        rate=counter.recent / span_s,
        predicates=_list_seen(counter.predicates, span_s),
        classes=_list_seen(counter.classes, span_s),
        datatypes=_list_seen(counter.datatypes, span_s),
        objects=_list_seen(counter.objects, span_s),
        lasting=counter.lasting,
    )


@dataclass(slots=True)
class _Tally:
    """Counts the rows of one name. `recent` of them have come lately."""

    count: int
    first: Micros
    last: Micros
    recent: int
    example: str

    def merge(self, earlier: "_Tally") -> None:
        self.count += earlier.count
        self.recent += earlier.recent
        self.first, self.last = min(self.first, earlier.first), max(self.last, earlier.last)


class _Counter:
    """Counts rows by the names that they have, some thousands at once: all rows of a look would take tens of MB.

    The newest rows come first, and those that came before `recent_since` are not recent.
    """

    def __init__(self, recent_since: Micros) -> None:
        self._recent_since = recent_since
        self.events = self.late = self.recent = self.lasting = 0
        self.oldest = END_OF_TIME
        """The earliest arrival of a row."""
        self.predicates, self.classes, self.datatypes, self.objects = (dict[str, _Tally]() for _ in range(4))
        self._pieces, self._waiting = list[RecentRows](), 0

    def add(self, piece: RecentRows) -> None:
        self._pieces.append(piece)
        self._waiting += piece.rows.num_rows
        if self._waiting >= _AT_ONCE:
            self.finish()

    def finish(self) -> None:
        """Count the rows that wait."""
        pieces, self._pieces, self._waiting = self._pieces, [], 0
        if not pieces:
            return
        table = pa.Table.from_batches([piece.rows for piece in pieces], OCCURRENCES).unify_dictionaries().combine_chunks()
        arrived = np.repeat([piece.arrived for piece in pieces], [piece.rows.num_rows for piece in pieces])
        rows = _Rows(table, arrived >= self._recent_since)
        self.events += table.num_rows
        self.oldest = min(self.oldest, *(piece.arrived for piece in pieces))
        self.late += int(np.count_nonzero(table.column("late").to_numpy()))
        self.recent += int(np.count_nonzero(rows.recent))
        self.lasting += rows.count_lasting()
        predicates, objects = _column(table, "p").dictionary, _column(table, "o").dictionary
        of_predicate, of_object = _codes(table, "p"), _codes(table, "o")
        is_class, datatype_of, datatypes = _kinds_of(objects)
        is_type = pc.equal(predicates, TYPE).to_numpy(zero_copy_only=False)
        typed = np.flatnonzero(is_type[of_predicate] & is_class[of_object])
        literal = np.flatnonzero(datatype_of[of_object] >= 0)
        rows.count_into(self.predicates, np.arange(table.num_rows), of_predicate, predicates)
        rows.count_into(self.classes, typed, of_object[typed], objects)
        rows.count_into(self.datatypes, literal, datatype_of[of_object[literal]], pa.array(datatypes, pa.utf8()))
        kinds = [*datatypes, IRI, NODE]
        kind_of = np.where(datatype_of >= 0, datatype_of, len(datatypes) + ~is_class)
        pairs, of_pair = np.unique(of_predicate * len(kinds) + kind_of[of_object], return_inverse=True)
        names = predicates.take(pa.array(pairs // len(kinds))).to_pylist()
        paired = [f"{name} {kinds[kind]}" for name, kind in zip(names, (pairs % len(kinds)).tolist(), strict=True)]
        rows.count_into(self.objects, np.arange(table.num_rows), of_pair, pa.array(paired, pa.utf8()))


class _Rows:
    """Holds the rows that are counted at once."""

    def __init__(self, table: pa.Table, recent: NDArray[np.bool_]) -> None:
        self._table, self.recent = table, recent
        self._start, self._end = (_instants(table, name) for name in ("start", "end"))

    def count_lasting(self) -> int:
        """Return how many rows start before they end."""
        return int(np.count_nonzero(self._start < self._end))

    def count_into(self, tallies: dict[str, _Tally], rows: Ints, codes: Ints, names: pa.StringArray) -> None:
        """Count these rows, whose names are `names` at `codes`."""
        size = len(names)
        counts, recent = np.bincount(codes, minlength=size), np.bincount(codes, weights=self.recent[rows], minlength=size)
        first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, np.iinfo(np.int64).min)
        np.minimum.at(first, codes, self._start[rows])
        np.maximum.at(last, codes, self._end[rows])
        example = np.zeros(size, np.int64)
        example[codes[::-1]] = rows[::-1]  # the newest body stands first, and the last assignment holds
        seen = np.flatnonzero(counts)
        for code, name in zip(seen.tolist(), names.take(pa.array(seen)).to_pylist(), strict=True):
            known = tallies.get(name)
            tally = _Tally(int(counts[code]), int(first[code]), int(last[code]), int(recent[code]), "")
            if known is not None:
                known.merge(tally)
            else:
                tally.example = self._triple(int(example[code]))
                tallies[name] = tally

    def _triple(self, row: int) -> str:
        s, p, o = (self._table.column(name)[row].as_py() for name in "spo")
        return f"{s} {p} {o} ."


def _list_seen(tallies: Mapping[str, _Tally], span_s: float) -> tuple[SeenName, ...]:
    """List names; the most frequent comes first."""
    found = sorted(tallies.items(), key=lambda each: (-each[1].count, each[0]))
    return tuple(SeenName(name, each.count, each.first, each.last, each.recent / span_s, each.example) for name, each in found)


def _column(table: pa.Table, name: str) -> pa.DictionaryArray:
    return table.column(name).chunk(0)


def _kinds_of(terms: pa.StringArray) -> tuple[NDArray[np.bool_], Ints, list[str]]:
    """Return which terms are IRIs, and for each the number of its datatype, -1 for other terms; then the datatypes."""
    is_iri, datatype_of, numbers = np.zeros(len(terms), bool), np.full(len(terms), -1), dict[str, int]()
    for at, term in enumerate(terms.to_pylist()):
        if kind := _kind_of(term):
            datatype_of[at] = numbers.setdefault(kind, len(numbers))
        else:
            is_iri[at] = term[0] == "<" and term[1] != "<"
    return is_iri, datatype_of, list(numbers)


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

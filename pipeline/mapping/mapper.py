"""This module maps bodies of CSV, JSON or lines to OCCURRENCES, column by column (docs/decisions/0012).

1. A reader gives each field as distinct texts, and for each row the number of its text.
2. Each distinct text, or combination of texts in a template, becomes a term once. What is no term is a fault of its rows.
3. The numbers of subjects, predicates and objects are laid out row by row. Rows with a fault are left out, and told apart.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from epsparql.deferred_methods import dataclass
from epsparql.events.media_types import CSV, LINES
from epsparql.terms import RDF, XSD_STRING
from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval, Labels, digest_name
from pipeline.formats.batches.expansion_budget import ROW_BYTES, ExpansionBudget
from pipeline.formats.batches.fast_path import batch_of_columns, odd_terms
from pipeline.formats.batches.ntriples import OBJECTS, PREDICATES, SUBJECTS, CanonicalTerms
from pipeline.mapping.columns import ABSENT, Column, Indices, RowFault, Table, TermColumn, combine, join_texts
from pipeline.mapping.csv_dialect import to_utf8
from pipeline.mapping.csv_reader import read_csv
from pipeline.mapping.json_reader import read_json
from pipeline.mapping.line_reader import read_lines
from pipeline.mapping.literals import find_unusable, literal_terms
from pipeline.mapping.mapping import Mapping, Property
from pipeline.mapping.templates import SAFE_VALUE, Placeholder, Template, encode_value
from pipeline.mapping.time_formats import read_times
from pipeline.rejected_rows import ALL_MAPPED, Rejected, Unmapped, describe_rejected

MOST_REJECTED, LONGEST_TEXT = 1_000, 1_000
"""So many rejected rows of a body are kept, and the others are counted; of each row, this many characters are shown."""
_CSV_NULL = ("",)
_SHOWN = 64


@dataclass(frozen=True, slots=True, eq=False)
class MappedBody:
    """Holds the occurrences of a body, and the first of its rows that did not map; `beyond` counts the others. `rows`
    counts those that did.

    `skips` says that the log only counts the rows that did not map.
    """

    batch: pa.RecordBatch
    rejected: tuple[Rejected, ...]
    rows: int
    skips: bool = False
    beyond: int = 0

    @property
    def unmapped(self) -> Unmapped:
        """Return what the log is told of the rows that did not map."""
        if not self.rejected:
            return ALL_MAPPED
        return Unmapped(skipped=len(self.rejected) + self.beyond) if self.skips else Unmapped(self.rejected, self.beyond)


def map_body(body: bytes, media_type: str, mapping: Mapping, default: Interval, most: int = MOST_REJECTED) -> MappedBody:
    """Map a body of `CSV`, `JSON` or `LINES`; `default` is the time where the mapping names none. At most `most` rows
    that do not map are kept.

    Raises: FormatError where it has no rows to tell apart.
    """
    budget = ExpansionBudget(len(body))
    table = read_table(body, media_type, mapping, budget)
    null = _CSV_NULL if table.has_header else ()
    return map_table(table, mapping, budget, Labels(body, None if mapping.time else default), (default, null), most)


def read_table(body: bytes, media_type: str, mapping: Mapping, budget: ExpansionBudget) -> Table:
    """Return the rows of a body with the fields of a mapping. Raises: FormatError where it has no rows to tell apart."""
    text = to_utf8(body, mapping.dialect.encoding)
    read = read_csv if media_type == CSV else read_lines if media_type == LINES else read_json
    return read(text, mapping, budget)


def map_table(
    table: Table,
    mapping: Mapping,
    budget: ExpansionBudget,
    labels: Labels,
    defaults: tuple[Interval | NDArray[np.int64], tuple[str, ...]],
    most: int = MOST_REJECTED,
) -> MappedBody:
    """Map rows that were read.

    `defaults` are the time of rows, or of each document, and the texts that are absent values.
    """
    time, null = defaults
    run = _Run(table, mapping, budget, null)
    start, end = run.times(time)
    subjects = run.subjects(labels, start)
    triples = list(run.triples())
    for field in mapping.key:
        run.require(field, "the key")
    run.check_triples(triples)
    batch = run.lay_out(subjects, triples, (start, end))
    faults = sorted([*table.faults, *run.faults.values()])
    return MappedBody(batch, _reject_rows(table, faults[:most]), table.count - len(run.faults), beyond=max(len(faults) - most, 0))


def refuse_rejected(mapped: MappedBody) -> MappedBody:
    """Return a body all of whose rows map. Raises: FormatError naming the first row that does not."""
    if mapped.rejected:
        remedy = "rows that fit the mapping, or on_error dead_letter or skip, which take the others"
        raise FormatError("mapping", describe_rejected(mapped.rejected, mapped.beyond), expected=remedy)
    return mapped


def _reject_rows(table: Table, faults: Sequence[RowFault]) -> tuple[Rejected, ...]:
    texts = table.text_of([fault.row for fault in faults]) if faults else []
    return tuple(Rejected(fault.row + 1, fault.field, fault.reason, text[:LONGEST_TEXT]) for fault, text in zip(faults, texts, strict=True))


Triple = tuple[Property | None, TermColumn, TermColumn]
"""Holds the predicates and objects that a property, or (None) a class of `types`, gives."""


class _Run:
    """Maps the rows of one table. `faults` has the first fault of each row, by its number in the table."""

    def __init__(self, table: Table, mapping: Mapping, budget: ExpansionBudget, null: tuple[str, ...]) -> None:
        self.table, self.mapping, self.budget = table, mapping, budget
        self.null = mapping.null if mapping.null is not None else null
        self.faults: dict[int, RowFault] = {}

    # ------------------------------------------------------------ fields and faults
    def field_column(self, field: str, null: tuple[str, ...] | None = None) -> Column:
        return self.table.columns[field].without(self.null if null is None else null)

    def _fail(self, rows: NDArray[np.int64], field: str, reason: str) -> None:
        for row in rows.tolist():
            if row not in self.faults:
                self.faults[row] = RowFault(int(self.table.numbers[row]), field, reason)

    def _fail_terms(self, terms: TermColumn, field: str) -> None:
        found = terms.find_faults()
        if found is not None:
            for row in np.flatnonzero(found).tolist():
                self._fail(np.array([row]), field, terms.faults[int(terms.indices[row])])

    def require(self, field: str, what: str) -> None:
        """Reject the rows without a field."""
        self._fail(np.flatnonzero(self.field_column(field).indices == ABSENT), field, f"the row has no value of {what}")

    # ------------------------------------------------------------ times
    def times(self, default: Interval | NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the start and end of each row."""
        count, documents = self.table.count, self.table.documents
        if isinstance(default, np.ndarray):
            found = default if documents is None else default[documents]
            return found, found
        if not self.mapping.time:
            return np.full(count, default.start, np.int64), np.full(count, default.end, np.int64)
        column = join_texts([self.field_column(field) for field in self.mapping.time])
        instants, faults = read_times(column, self.mapping.time_format)
        for field in self.mapping.time:
            self.require(field, "its time")
        self._fail_terms(TermColumn(column.indices, column.texts, faults), ", ".join(self.mapping.time))
        at = np.append(instants, 0)[column.indices]
        return at, at

    # ------------------------------------------------------------ terms
    def subjects(self, labels: Labels, at: NDArray[np.int64]) -> TermColumn:
        """Return the subject of each row: by its template, or else a blank node, which equal keys and times have in
        common.
        """
        template = self.mapping.subject
        if template is not None:
            for field in template.fields:
                self.require(field, "its subject")
            found = self.iris(template, SUBJECTS)
            self._fail_terms(found, ", ".join(template.fields))
            return found
        count = self.table.count
        self.budget.spend(32 * count)
        if not self.mapping.key:
            names = pc.binary_join_element_wise(labels.written("-"), pa.array(self.table.numbers).cast(pa.utf8()), "")
            return TermColumn(np.arange(count, dtype=np.int32), names)
        columns = [self.field_column(field).indices for field in self.mapping.key]
        texts = [[*self.field_column(field).texts.to_pylist(), ""] for field in self.mapping.key]
        keys = (repr([words[int(indices[row])] for words, indices in zip(texts, columns, strict=True)]) for row in range(count))
        named = [f"_:k{digest_name(f'{key} {time}'.encode())}" for key, time in zip(keys, at.tolist(), strict=True)]
        encoded = pa.array(named, pa.utf8()).dictionary_encode()
        return TermColumn(encoded.indices.to_numpy(), encoded.dictionary)

    def triples(self) -> Iterator[Triple]:
        """Yield predicates and objects, class by class and property by property."""
        for template in self.mapping.types:
            yield None, self._constant(f"<{RDF}type>"), self._constant(f"<{template.parts[0]}>")
        for each in self.mapping.properties:
            predicates = self.iris(each.iri, PREDICATES)
            objects = self._literals(each) if each.value is None else self.iris(each.value, OBJECTS, each.null)
            for terms in (predicates, objects):
                self._fail_terms(terms, each.field)
            yield each, predicates, objects

    def _constant(self, term: str) -> TermColumn:
        return TermColumn(np.zeros(self.table.count, np.int32), pa.array([term], pa.utf8()))

    def _literals(self, each: Property) -> TermColumn:
        column = self.field_column(each.field, each.null)
        if each.lang is None and each.datatype != XSD_STRING:
            column = self.mapping.numbers.rewrite(column)
        self.budget.spend(int(column.texts.nbytes) + len(column.texts) * (2 + len(each.datatype or "") + 48))
        terms, faults = literal_terms(column, each.datatype, each.lang, by_json_ld=self.mapping.by_json_ld)
        return _checked(column.indices, terms, faults, OBJECTS)

    def iris(self, template: Template, kinds: CanonicalTerms, null: tuple[str, ...] | None = None) -> TermColumn:
        """Return the IRIs of a template, once for each combination of its fields' texts."""
        if not template.fields:
            return self._constant(f"<{template.parts[0]}>")
        columns = {field: self.field_column(field, null) for field in template.fields}
        if template.reference is not None:
            return self._references(columns[template.reference], kinds)
        indices, by_field = (columns[template.fields[0]].indices, []) if len(columns) == 1 else combine(list(columns.values()))
        count = len(next(iter(columns.values())).texts) if len(columns) == 1 else len(by_field[0])
        numbers = dict(zip(columns, by_field, strict=False))
        faults: dict[int, str] = {}
        pieces: list[str | pa.Array] = ["<"]
        for part in template.parts:
            if isinstance(part, str):
                self.budget.spend(len(part.encode()) * count)
                pieces.append(part)
            else:
                pieces.append(self._values(columns[part.field], part, numbers.get(part.field), faults))
        return _checked(indices, pc.binary_join_element_wise(*pieces, ">", ""), faults, kinds)

    def _values(self, column: Column, part: Placeholder, numbers: Indices | None, faults: dict[int, str]) -> pa.Array:
        """Return a field's texts as they may stand in an IRI, by combination; add the faults of combinations."""
        texts = column.texts
        wrong = find_unusable(column)
        if not pc.all(pc.match_substring_regex(texts, SAFE_VALUE)).as_py():
            wrong |= {k: "the value is empty, and stands in an IRI" for k, text in enumerate(texts.to_pylist()) if not text}
            texts = pa.array([encode_value(text, reserved=part.reserved) for text in texts.to_pylist()], pa.utf8())
        if numbers is None:
            faults |= wrong
        else:
            self.budget.spend(int(pc.sum(pc.binary_length(texts).take(pa.array(numbers))).as_py() or 0))
            texts = texts.take(pa.array(numbers))
            if wrong:
                faults |= {k: wrong[number] for k, number in enumerate(numbers.tolist()) if number in wrong}
        self.budget.spend(int(texts.nbytes))
        return texts

    def _references(self, column: Column, kinds: CanonicalTerms) -> TermColumn:
        """Return the IRIs that a field's texts name as they are: prefixed, relative to the base, or whole."""
        faults, terms = find_unusable(column), []
        for k, text in enumerate(column.texts.to_pylist()):
            try:
                name = self.mapping.names.expand(encode_value(text, reserved=True)) if k not in faults else ""
            except ValueError as fault:
                faults[k], name = str(fault), ""
            self.budget.spend(len(name))
            terms.append(f"<{name}>")
        return _checked(column.indices, pa.array(terms, pa.utf8()), faults, kinds)

    # ------------------------------------------------------------ rows
    def check_triples(self, triples: Sequence[Triple]) -> None:
        """Reject the rows that give no triple because they name none of the fields.

        An empty cell, a null and a word for "no value" name one.
        """
        if self.table.has_header or any(each is None for each, _, _ in triples):
            return
        empty = np.ones(self.table.count, np.bool_)
        for _, predicates, objects in triples:
            empty &= (predicates.indices == ABSENT) | (objects.indices == ABSENT)
        if not empty.any():
            return
        named = [each.field for each, _, _ in triples if each is not None]
        for field in dict.fromkeys(field for each, _, _ in triples if each is not None for field in each.fields):
            empty &= self.table.columns[field].indices == ABSENT
        shown = ", ".join(named[:8]) + (", …" if len(named) > 8 else "")
        self._fail(np.flatnonzero(empty), "", f"the row gives no triple: it has a value of none of {shown}"[: 4 * _SHOWN])

    def lay_out(self, subjects: TermColumn, triples: Sequence[Triple], times: tuple[NDArray[np.int64], NDArray[np.int64]]) -> pa.RecordBatch:
        """Return the occurrences row by row, without those of rejected rows."""
        count = self.table.count
        kept = np.ones((count, len(triples)), np.bool_)
        for k, (_, predicates, objects) in enumerate(triples):
            kept[:, k] = (predicates.indices != ABSENT) & (objects.indices != ABSENT)
        if self.faults:
            kept[list(self.faults)] = False
        rows, places = np.nonzero(kept) if not kept.all() else (np.repeat(np.arange(count), len(triples)), None)
        self.budget.spend(ROW_BYTES * len(rows))
        terms = [
            pa.DictionaryArray.from_arrays(pa.array(subjects.indices[rows]), subjects.terms, safe=False),
            *(_join_terms([triple[place] for triple in triples], kept if places is not None else None) for place in (1, 2)),  # type: ignore[misc]
            pa.DictionaryArray.from_arrays(pa.nulls(len(rows), pa.int32()), pa.array([], pa.utf8())),
        ]
        return batch_of_columns(terms, *(np.ascontiguousarray(time[rows]) for time in times))


def _join_terms(columns: Sequence[TermColumn], kept: NDArray[np.bool_] | None) -> pa.DictionaryArray:
    """Return one column of terms, row by row, of what is kept of several.

    Equal terms of two of them stay two in the dictionary.
    """
    offsets = np.cumsum([0, *(len(column.terms) for column in columns)])
    indices = np.stack([column.indices + np.int32(offset) for column, offset in zip(columns, offsets.tolist(), strict=False)], axis=1)
    flat = indices.ravel() if kept is None else indices[kept]
    return pa.DictionaryArray.from_arrays(pa.array(flat), pa.concat_arrays([column.terms for column in columns]), safe=False)


def _checked(indices: Indices, terms: pa.Array, faults: dict[int, str], kinds: CanonicalTerms) -> TermColumn:
    """Return the terms in canonical form; those that are none become faults."""
    odd = odd_terms(terms, kinds.kinds)
    if len(odd):
        texts = terms.to_pylist()
        for k in odd.tolist():
            if k not in faults:
                try:
                    texts[k] = kinds[texts[k]]
                except FormatError as fault:
                    faults[k] = fault.message
        terms = pa.array(texts, pa.utf8())
    return TermColumn(indices, terms, dict(islice(faults.items(), len(terms))))

"""This module collects the triples of telemetry records, in columns.

Each record is one event: its triples share a subject, a start and an end. Terms have numbers, and a record is a list of
pairs of numbers, a predicate and an object each. What the records of a resource share is written once, and its pairs
are copied for each record. Pairs of texts that come often are found by these texts alone, which halves the time of a
record.
"""

from array import array
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from engine.messages import Micros
from pipeline.formats.batches.batch_builder import Interval, Labels
from pipeline.formats.batches.expansion_budget import ROW_BYTES, ExpansionBudget
from pipeline.formats.batches.fast_path import batch_of_numbers, odd_terms
from pipeline.formats.batches.ntriples import MAX_TERM, OBJECTS
from pipeline.otlp.literals import RecordFault, write_number, write_text, write_values
from pipeline.otlp.vocabulary import ATTRIBUTE, RESOURCE, TYPE, name_attribute, name_term

Pairs: TypeAlias = list[int]
"""Numbers of predicates and objects, in turn."""
MOST_ATTRIBUTES = 1_000
"""A record, or a resource, has at most this many attributes. SDKs send 128 of a record by default."""
_LONGEST_NAME = MAX_TERM // 16  # a character becomes up to twelve in an IRI
_NUMBERS = ("int_value", "bool_value", "double_value")
_KINDS = '<"'


class RecordBuilder:
    """Collects the events of a body that arrived at a time."""

    def __init__(self, body: bytes, arrived: Micros) -> None:
        self.arrived, self.untimed = arrived, 0
        """`untimed` counts the times that were not given, and so are the time of arrival."""
        self._budget = ExpansionBudget(len(body))
        self._room = self._budget.most // ROW_BYTES  # rows
        self._timed, self._arriving = (Labels(body, when).written("-") for when in (None, Interval(arrived, arrived)))
        self._numbers: dict[str, int] = {}
        self._names: dict[str, int] = {}  # by what follows the namespace of the vocabulary
        self._words: dict[tuple[str, str | int], Pairs] = {}
        self._attributes: dict[str, dict[tuple[str, Any], Pairs]] = {ATTRIBUTE: {}, RESOURCE: {}}
        self._subjects = list[str]()
        self._pairs, self._counts, self._times = array("i"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._subjects)

    # ------------------------------------------------------------ pairs
    def _number(self, term: str) -> int:
        numbers = self._numbers
        return numbers.setdefault(term, len(numbers))

    def _number_name(self, name: str) -> int:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = self._number(name_term(name))
        return found

    def add_type(self, pairs: Pairs, name: str) -> None:
        """Add a class of the vocabulary."""
        pairs += self._number(TYPE), self._number_name(name)

    def add_word(self, pairs: Pairs, name: str, value: str | int | None) -> None:
        """Add a text or a number that many records have, unless it is empty or zero. Raises: RecordFault."""
        if value:
            known = self._words.get((name, value))
            if known is None:
                term = write_text(value, name) if isinstance(value, str) else write_number(value)
                known = self._words[name, value] = [self._number_name(name), self._number(term)]
            pairs += known

    def add_id(self, pairs: Pairs, name: str, number: bytes, none: bytes) -> str:
        """Add an id in hexadecimal, and return it. One of zeros, like `none`, is no id. Raises: RecordFault."""
        if not number or number == none:
            return ""
        if len(number) != len(none):
            raise RecordFault(name, f"the id has {len(number)} bytes; {len(none)} are expected")
        text = number.hex()
        pairs += self._number_name(name), self._number(f'"{text}"')
        return text

    def add_number(self, pairs: Pairs, name: str, value: float) -> None:
        """Add an integer, a double or a boolean."""
        pairs += self._number_name(name), self._number(write_number(value))

    def add_value(self, pairs: Pairs, name: str, value: Any) -> None:
        """Add an AnyValue. Raises: RecordFault."""
        if text := value.string_value:
            pairs += self._number_name(name), self._number(write_text(text, name))
            return
        for term in write_values(value, name):
            pairs += self._number_name(name), self._number(term)

    def add_attributes(self, pairs: Pairs, namespace: str, attributes: Any) -> None:
        """Add attributes. Raises: RecordFault."""
        if len(attributes) > MOST_ATTRIBUTES:
            raise RecordFault("attributes", f"there are {len(attributes)} attributes; at most {MOST_ATTRIBUTES} are taken")
        known = self._attributes[namespace]
        for each in attributes:
            key, value = each.key, each.value
            scalar: Any = value.string_value
            if not scalar:  # the value is of another type, or empty
                kind = value.WhichOneof("value")
                scalar = (kind, getattr(value, kind)) if kind in _NUMBERS else None
            found = known.get((key, scalar)) if scalar is not None else None
            if found is None:
                found = [part for term in write_values(value, key) for part in (self._number_attribute(namespace, key), self._number(term))]
                if scalar is not None:
                    known[key, scalar] = found
            pairs += found

    def _number_attribute(self, namespace: str, key: str) -> int:
        known = self._names.get(namespace + key)
        if known is not None:
            return known
        if not key or len(key) > _LONGEST_NAME:
            raise RecordFault("attributes", f"the name of an attribute has {len(key)} characters, and not 1 to {_LONGEST_NAME}")
        self._names[namespace + key] = known = self._number(name_attribute(namespace, key))
        return known

    # ------------------------------------------------------------ events
    def find_time(self, *instants_ns: int) -> Micros:
        """Return the first of some times that is given, rounded to microseconds; else the time of arrival."""
        for at_ns in instants_ns:
            if at_ns:
                return (at_ns + 500) // 1_000
        self.untimed += 1
        return self.arrived

    def add_event(self, shared: "array[int]", pairs: Pairs, start: Micros, end: Micros, subject: str | None = None) -> None:
        """Add an event of the pairs that it shares with others and its own.

        Without a `subject` it has a blank node, whose name follows from the body. Raises: FormatError, code
        `expansion`.
        """
        rows = (len(shared) + len(pairs)) // 2
        self._room -= rows
        if self._room < 0:
            raise self._budget.fault()
        if subject is None:
            subject = f"{self._arriving if start == self.arrived else self._timed}{len(self._subjects)}"
        self._subjects.append(subject)
        self._pairs.extend(shared)
        self._pairs.extend(pairs)
        self._counts.append(rows)
        self._times.extend((start, end))

    def build_batch(self) -> pa.RecordBatch:
        """Return OCCURRENCES. Raises: FormatError, code `expansion`."""
        terms = pa.array(self._numbers, pa.utf8())
        self._budget.spend(terms.nbytes + ROW_BYTES * (len(self._pairs) // 2))
        odd = odd_terms(terms, _KINDS)
        if len(odd):
            texts = terms.to_pylist()
            for k in odd.tolist():
                texts[k] = OBJECTS[texts[k]]
            terms = pa.array(texts, pa.utf8())
        counts, times = np.array(self._counts, np.int64), np.array(self._times, np.int64).reshape(-1, 2)
        cells = np.full((4, len(self._pairs) // 2), -1, np.int32)
        cells[0] = np.repeat(np.arange(len(terms), len(terms) + len(self), dtype=np.int32), counts)
        cells[1:3] = np.array(self._pairs, np.int32).reshape(-1, 2).T
        start, end = (np.repeat(column, counts) for column in times.T)
        return batch_of_numbers(pa.concat_arrays([terms, pa.array(self._subjects, pa.utf8())]), cells, start, end)

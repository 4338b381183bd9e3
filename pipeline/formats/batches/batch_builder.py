"""This module builds OCCURRENCES from lists, and holds what every format needs for that."""

import re
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from engine.messages import INSTANT, OCCURRENCES, TERM, Micros
from epsparql.deferred_methods import dataclass

DIGEST_BYTES = 16
_LABEL = re.compile(rb"_:([0-9A-Za-z_.\x80-\xff-]+)")  # and maybe the dot of a statement's end


@dataclass(frozen=True, slots=True)
class Interval:
    start: Micros
    end: Micros


def batch_of(
    s: Sequence[str], p: Sequence[str], o: Sequence[str], g: Sequence[str | None] | None, start: Sequence[int], end: Sequence[int]
) -> pa.RecordBatch:
    """Return rows of canonical terms, none late. With `g` None no row has a graph."""
    n = len(s)
    terms = [pa.array(column, TERM) for column in (s, p, o, [None] * n if g is None else g)]
    times = [pa.array(np.array(column, np.int64)).view(INSTANT) for column in (start, end)]
    return pa.RecordBatch.from_arrays([*terms, *times, pa.array(np.zeros(n, np.bool_))], schema=OCCURRENCES)


def digest_name(text: bytes) -> str:
    """Return 128 bits of a digest, with which nobody finds two texts of one name, as digits."""
    return blake2b(text, digest_size=DIGEST_BYTES).hexdigest()


class Labels:
    """Names the blank nodes of one message; the same message, sent again, gets the same names.

    `text` is the message; `when` its time where the text does not state it. A label written in the text stays
    legible; nodes without one (`[]`, collections) are numbered, after `-`, with which no written label begins.
    """

    def __init__(self, text: bytes, when: Interval | None) -> None:
        stated = b"" if when is None else f"\n{when.start} {when.end}".encode()
        self._prefix = f"_:m{digest_name(text + stated)}"
        self._text = text
        self._written: frozenset[bytes] | None = None
        self._known: dict[str, str] = {}
        self._nameless = 0

    def written(self, label: str) -> str:
        """Return the term for a label that the text is known to contain."""
        return self._prefix + label

    def blank_node(self, label: str) -> str:
        """Return the term for a label, given without its `_:`."""
        known = self._known.get(label)
        if known is None:
            if self._written is None:
                self._written = frozenset(found.rstrip(b".") for found in _LABEL.findall(self._text))
            if label.encode() in self._written:
                known = self._prefix + label
            else:
                known = f"{self._prefix}-{self._nameless}"
                self._nameless += 1
            self._known[label] = known
        return known

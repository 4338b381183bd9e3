"""This module defines the immutable messages that an engine is fed: entries of the input log, in order.

Nothing here knows files or sockets.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsparql.deferred_methods import dataclass
from epsparql.solutions.policies import UNRESTRICTED

Micros = int
END_OF_TIME: Micros = 1 << 61
"""A finished stream has this watermark."""

EMITS = CERTAIN, REVISED = ("certain", "revised")
"""A query gives solutions once they are certain, or a changelog of those that stand now (semantics.md section 14)."""
NODE_NAMES = 2
"""A new registration names the nodes of its solutions in this form (engine/expressions/nondeterministic.py)."""

TERM = pa.dictionary(pa.int32(), pa.utf8())
INSTANT = pa.timestamp("us", tz="UTC")
OCCURRENCES = pa.schema(
    [
        pa.field("s", TERM, nullable=False),
        pa.field("p", TERM, nullable=False),
        pa.field("o", TERM, nullable=False),
        pa.field("g", TERM),  # the event graph, null for none
        pa.field("start", INSTANT, nullable=False),
        pa.field("end", INSTANT, nullable=False),
        pa.field("late", pa.bool_(), nullable=False),  # below the stream's watermark when its entry was accepted: never applied
    ]
)
"""Each row is a triple occurrence, with terms in canonical N-Triples text."""
NO_ROWS = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in OCCURRENCES], schema=OCCURRENCES)


@dataclass(frozen=True, slots=True)
class Events:
    """Brings one accepted body or frame: its `rows` next rows of the block."""

    offset: int
    stream: str
    rows: int
    watermark: Micros | None  # the stream's watermark after this entry; None while it has none
    key: str | None = None  # idempotency key of the request
    source: tuple[str, str | None] | None = None  # the source that the body came from, and its position after it (None: forgotten)
    revises: bool = False  # some of its occurrences end before the latest one of the stream, or it has retractions
    retracts: tuple[tuple[int, int], ...] = ()  # ranges of its rows that take back occurrences; these rows are marked as late


@dataclass(frozen=True, slots=True)
class Tick:
    """Says that time passes on `stream` with no occurrence (idle_timeout), or is merely a sign of life (stream None)."""

    offset: int
    stream: str | None
    watermark: Micros | None


@dataclass(frozen=True, slots=True)
class Finish:
    """`stream` has ended: its watermark is END_OF_TIME."""

    offset: int
    stream: str


@dataclass(frozen=True, slots=True)
class SetStream:
    """Creates a stream or changes its settings; the engine ignores it, because watermarks already carry the settings."""

    offset: int
    stream: str
    max_delay: Micros = 0
    idle_timeout: Micros | None = None
    max_ahead: Micros | None = None
    description: str = ""
    sources: tuple[str, ...] = ()  # declared: the watermark is the least over them
    base: str = ""
    mapping: str = ""  # JSON text; "" for none
    on_error: str = "refuse"
    key: str = ""  # the message key's predicate, an IRI; "" for none
    parts: tuple[str, ...] = ()  # predicates that link the nodes of a message
    revisable: Micros | None = None  # late occurrences and retractions are taken within this horizon behind the latest end
    round: str = ""  # "microsecond": finer times are rounded
    prefixes: str = ""  # of terms in ndjson: JSON text; "" for none
    instants: bool = False  # events that last are refused
    local: bool = False  # a body that describes a subject of another body is refused

    @property
    def message_key(self) -> "MessageKey | None":
        return MessageKey(self.key, self.parts) if self.key else None


MOST_PARTS = 16
"""A stream may declare this many predicates that link the nodes of a message."""


@dataclass(frozen=True, slots=True)
class MessageKey:
    """Names, by IRIs, the predicate whose object is the key of a message, and those that link its nodes."""

    predicate: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DropStream:
    offset: int
    stream: str


@dataclass(frozen=True, slots=True)
class Register:
    """Registers a query, which reads entries after this one, or from an earlier one on.

    Its registration is known by this entry's offset.
    """

    offset: int
    name: str
    text: str
    policy: str = UNRESTRICTED
    default_graph: str = "all"
    max_derivations: int = 100_000  # triples that it may derive at one instant before it is stopped as endless
    max_goals: int = 0  # goals that it may keep before it is stopped, and (below) bytes of its state; 0 for no limit
    max_state_bytes: int = 0
    reads_from: int | None = None  # the first entry that it reads: it is behind until `CatchUp` has brought it to the others
    holds: tuple[int, ...] = ()  # registrations of those that rest on what it writes, which wait for it meanwhile
    waits_for: int | None = None  # the registration of a rule that is behind and that it rests on: it is behind with it
    emit: str = CERTAIN
    by_time: bool = False  # whether partitions may share it by slices of time; entries of earlier versions leave it in one
    node_names: int = 1  # the form in which nodes of its solutions are named; entries of earlier versions have the first
    instants: bool = False  # whether all events that it reads, and all that rules write there, are instants
    local: tuple[str, ...] = ()  # its streams of which no two bodies that it reads describe one subject

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> "Register":
        """Return the entry that was stored as JSON, whose arrays are tuples again. Earlier versions lack the last members."""
        read: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        return cls(**read)


@dataclass(frozen=True, slots=True)
class Pause:
    """A query reads nothing from here on until it is resumed, and neither do those that rest on what it writes
    (`holds`).
    """

    offset: int
    registered: int
    name: str
    holds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Resume:
    """A paused query reads on, by what `CatchUp` lets it read."""

    offset: int
    registered: int
    name: str


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Lets the query `registered`, and those that wait for it, read the log up to the position `upto`.

    Where `upto` is this entry's offset, they are behind no more. The log itself says, piece by piece, which part of
    the past is read. So a piece is as good a place to stop and go on from as any other entry.
    """

    offset: int
    registered: int
    upto: int


@dataclass(frozen=True, slots=True)
class Drop:
    """The query registered at offset `registered` goes, with its state."""

    offset: int
    registered: int
    name: str


@dataclass(frozen=True, slots=True)
class ChangeInstances:
    """Adds, changes or removes instances of the query `registered`, which has PARAMETERS.

    `changes` is a JSON object. By id, it has a list of terms, one for each parameter; or null for one that goes.
    """

    offset: int
    registered: int
    name: str
    changes: str


@dataclass(frozen=True, slots=True)
class Fail:
    """Stops the query `registered` in all partitions, because together they keep more than its quota, or because it
    has failed in one of them.
    """

    offset: int
    registered: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Promote:
    """Puts a text in the place of the query `registered`; the promotion is known by this entry's offset.

    The text reads the log from `reads_from` on, as a query that is behind. It takes over at the `CatchUp` that joins
    it to the others. Without `reads_from` it takes over here. It `keeps` the query's state if both texts are one
    plan, and begins without any otherwise. Of the past, entries before `begins` need not be read: `marks` has each
    stream's watermark and latest end there, and whether it was fed.
    """

    offset: int
    registered: int
    name: str
    text: str
    policy: str = UNRESTRICTED
    default_graph: str = "all"
    max_derivations: int = 100_000  # the limits are those of `Register`
    max_goals: int = 0
    max_state_bytes: int = 0
    reads_from: int | None = None
    keeps: bool = False
    by: str = ""  # who asked for it, as the server's logs name them
    begins: int | None = None
    marks: tuple[tuple[str, Micros, Micros, bool], ...] = ()
    instants: bool = False  # as in `Register`
    local: tuple[str, ...] = ()  # as in `Register`


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Ends the promotion at offset `promotion`, which has not taken over; the query goes on as it was."""

    offset: int
    promotion: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Revise:
    """Has revised queries tell what the changes of the past before this entry make of their solutions."""

    offset: int


CHANGES = ADD, REPLACE, DROP = ("add", "replace", "drop")
"""The change says what becomes of a graph's triples."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Brings background triples of one graph ("" for none), as N-Triples text.

    They come to the graph's own or take their place; `drop` leaves it with none.

    The change takes effect from the next instant.
    """

    offset: int
    graph: str
    triples: str
    change: str = ADD


ENTAILMENTS = RDFS, OWL_RL = ("rdfs", "owl-rl")
"""The regime says what the background's schema entails."""


@dataclass(frozen=True, slots=True)
class Entail:
    """Sets the regime that decides what the background and streams entail from the next instant on; before the first
    such entry it is `rdfs`.
    """

    offset: int
    regime: str


Entry = (
    Events
    | Tick
    | Finish
    | SetStream
    | DropStream
    | Register
    | Pause
    | Resume
    | CatchUp
    | Promote
    | Withdraw
    | Drop
    | ChangeInstances
    | Fail
    | Revise
    | Facts
    | Entail
)


NO_END: Micros = -(1 << 62)
"""A late occurrence, which is never applied, has this end among those of others."""


class RowSource(Protocol):
    """Gives the OCCURRENCES of a block, or those of one partition alone. Raises: whatever reading the log raises."""

    @property
    def num_rows(self) -> int: ...
    def read_all(self) -> pa.RecordBatch: ...
    def read_own(
        self, partition: int, partitions: int, events: Sequence[Events], keys: Mapping[str, MessageKey]
    ) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        """Return the rows whose key belongs to a partition, in order, and the place of each among all rows.

        That is the key of their message where the stream is among `keys`, else their subject. `events` are the
        entries that bring the rows.
        """

    def read_some(self, wanted: NDArray[np.bool_]) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
        """Return the rows that are wanted, in order, and the place of each among all rows."""

    def read_ends(self) -> NDArray[np.int64]:
        """Return the end of each row, NO_END for a late one."""

    def find_latest_ends(self, events: Sequence[Events]) -> dict[int, Micros]:
        """Return, by offset, the latest end of what each entry brings in time; other entries may be among them."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Holds entries with consecutive offsets; `source` has the OCCURRENCES of its Events, in order."""

    entries: tuple[Entry, ...]
    source: pa.RecordBatch | RowSource

    @property
    def rows(self) -> pa.RecordBatch:
        """Return all rows; a source reads them anew each time."""
        return self.source if isinstance(self.source, pa.RecordBatch) else self.source.read_all()

    @property
    def num_rows(self) -> int:
        found: int = self.source.num_rows
        return found

    @property
    def first(self) -> int:
        return self.entries[0].offset

    @property
    def after(self) -> int:
        """Return the log position after the block."""
        return self.entries[-1].offset + 1


SOLUTIONS = pa.schema(
    [
        pa.field("query", pa.dictionary(pa.int32(), pa.utf8()), nullable=False),  # name
        pa.field("registered", pa.int64(), nullable=False),  # offset of its registration
        pa.field("entry", pa.int64(), nullable=False),  # offset of the entry that brought the solution
        pa.field("start", INSTANT, nullable=False),
        pa.field("end", INSTANT, nullable=False),
        pa.field(
            "values", pa.list_(pa.utf8()), nullable=False
        ),  # SELECT: a term per projected variable, null if unbound; CONSTRUCT: N-Triples statements
    ]
)
"""Solutions are in order of emission: by entry, end, start, then terms (semantics.md section 5).

Many have `values` over a dictionary (`engine.dictionary.arrow_encoding`).
"""
TIED = SOLUTIONS.append(pa.field("by", pa.list_(pa.utf8())))
"""These are solutions of one of several partitions.

`by` has the texts that order those of one query, entry and interval; null means the values themselves. If the
variables of a SELECT are not in order of their names, the metadata of the schema give the order of its values.
"""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A query completed or failed while an entry was applied, or a promotion, of which `registered` is the offset,
    took over or failed.
    """

    registered: int
    name: str
    entry: int
    state: str  # "completed" | "failed" | "promoted"
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Holds the solutions and the changes of state that one block brought."""

    solutions: pa.RecordBatch  # SOLUTIONS
    changes: tuple[StateChange, ...]


def int64s(column: pa.Array) -> NDArray[np.int64]:
    """Return the numbers of an int64 or INSTANT column without nulls, as they stand in its buffer."""
    found: NDArray[np.int64] = np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)
    return found

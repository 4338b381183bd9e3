"""This module holds rows of one stream as they stand in the log, by the body that brought them."""

from collections.abc import Iterator

import pyarrow as pa

from engine.messages import Events, Micros
from epsparql.deferred_methods import dataclass
from pipeline.log.codec import decode_records, rows_of
from pipeline.log.segments import Frame


@dataclass(frozen=True, slots=True, eq=False)
class RecentRows:
    """Holds rows (OCCURRENCES) of one body that was sent to the stream, in their order in the log.

    `arrived` is the clock at the body's frame, and `first` the number of the body's rows before these.
    """

    offset: int
    arrived: Micros
    rows: pa.RecordBatch
    first: int = 0

    def cut(self, begin: int, end: int | None = None) -> "RecentRows":
        """Return the rows from number `begin` to number `end`, as they are counted here."""
        last = self.rows.num_rows if end is None else end
        return RecentRows(self.offset, self.arrived, self.rows.slice(begin, last - begin), self.first + begin)


def read_pieces(frame: Frame, payload: memoryview, stream: str, since: int, before: int | None = None) -> Iterator[RecentRows]:
    """Yield the stream's rows in entries from `since` on and below `before`, by entry, the last entry first."""
    arrived, records, read_rows = decode_records(frame.first, payload)
    end, wanted = 0, []
    for entry in (record.entry for record in records):
        begin, end = end, end + rows_of(entry)
        if (
            isinstance(entry, Events)
            and entry.stream == stream
            and entry.rows
            and since <= entry.offset
            and (before is None or entry.offset < before)
        ):
            wanted.append((entry, begin))
    if wanted:
        rows = read_rows()
        for entry, begin in reversed(wanted):
            yield RecentRows(entry.offset, arrived, rows.slice(begin, entry.rows))

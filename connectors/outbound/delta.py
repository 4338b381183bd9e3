"""Appends solutions to a Delta table: the rows and how far they go are one commit of the table.

The commit has transaction identifiers, which are numbers by name: the registration, the two parts of the last
solution's id, and the count. Of two writers of one name, the second one's commit fails, since it was not begun from
the first one's.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from connectors.configuration import Connector
from connectors.errors import SystemFault
from connectors.outbound.columns import DEFAULT_COLUMNS, check_columns, find_value
from connectors.outbound.sink import Cursor, Sink, SolutionMessage

_PARTS = ("registered", "end", "ordinal", "written")
_OFFSET = 1 << 63  # ids write the time of the end so, that their order is that of texts


class DeltaSink(Sink):
    """Appends to one table, which is created if there is none."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        self._name, self._path = connector.name, options["path"]
        self._columns: Mapping[str, str] = options["columns"] or DEFAULT_COLUMNS
        check_columns(self._columns)
        self._table: Any = None

    def fetch_cursor(self) -> Cursor | None:
        from deltalake import DeltaTable

        with _faults(self._path):
            self._table = DeltaTable(self._path) if DeltaTable.is_deltatable(self._path) else None
            if self._table is None:
                return None
            registered, end, ordinal, written = (self._table.transaction_version(self._identify(part)) for part in _PARTS)
        return None if registered is None else Cursor(registered, f"{end + _OFFSET:016x}-{ordinal:08x}", written)

    def write(self, solutions: Sequence[SolutionMessage]) -> None:
        import pyarrow as pa
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

        last = solutions[-1].cursor
        end, ordinal = (int(part, 16) for part in last.id.split("-"))
        reached = dict(zip(_PARTS, (last.registered, end - _OFFSET, ordinal, last.written), strict=True))
        commit = CommitProperties(app_transactions=[Transaction(self._identify(part), version) for part, version in reached.items()])
        rows = pa.table({column: _column_of(source, solutions) for column, source in self._columns.items()})
        with _faults(self._path):
            # a table that somebody else created meanwhile is an error: its cursor is not known
            write_deltalake(self._table or self._path, rows, mode="append" if self._table else "error", commit_properties=commit)
            if self._table is None:
                self._table = DeltaTable(self._path)

    def _identify(self, part: str) -> str:
        return f"epsparql/{self._name}/{part}"

    def close(self) -> None:
        self._table = None


def _column_of(source: str, solutions: Sequence[SolutionMessage]) -> Any:
    import pyarrow as pa

    values = [find_value(source, each) for each in solutions]
    if source not in ("start", "end"):
        return pa.array(values, pa.utf8())
    try:
        return pa.array([datetime.fromisoformat(str(value)) for value in values], pa.timestamp("us", "UTC"))
    except ValueError as fault:
        raise SystemFault(f"a column holds {source!r}, and a Delta table has no such time: {fault}; leave the column out") from None


@contextmanager
def _faults(path: str) -> Iterator[None]:
    """Turn faults of the library into SystemFault."""
    from deltalake.exceptions import CommitFailedError, DeltaError

    try:
        yield
    except CommitFailedError as fault:
        raise SystemFault(f"the Delta table {path} was written to at the same time: {fault}; stop another connector of this name") from None
    except (DeltaError, OSError, ValueError) as fault:
        raise SystemFault(f"the Delta table {path}: {fault}") from None

"""Reads the changes of PostgreSQL's tables from a logical replication slot, and first the rows that are there already.

- Changes are peeked at (`pg_logical_slot_peek_binary_changes`), which moves nothing. The slot is advanced when the log holds them.
- A position is the LSN of a transaction's commit, or `LSN:N` after N changes of a transaction that needs several bodies.
- The slot is made together with a snapshot. The rows of the snapshot are one message, so the log holds all of them or none; in the second case
  slot and snapshot are made anew.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from connectors.configuration import Connector
from connectors.connections.postgresql import PostgresqlConnection, faults
from connectors.errors import SystemFault
from connectors.inbound.postgresql.pgoutput import Begin, Change, Commit, Decoder, Row, json_of
from connectors.inbound.source import Message, Source

MOST_INITIAL_BYTES = 64 << 20
"""The rows that are there already have at most this many bytes; the server's max_body may be less."""
_PLUGIN = "pgoutput"
_LOOK_S = 0.1
_ADVANCE_S = 10.0  # a slot without changes for the connector is advanced this often, so that the database may remove its log
_TABLES = """
SELECT CASE WHEN p.schemaname = 'public' THEN p.tablename::text ELSE p.schemaname || '.' || p.tablename END,
       format('%%I.%%I', p.schemaname, p.tablename), array_agg(a.attname::text ORDER BY a.attnum),
       array_agg(a.atttypid::int ORDER BY a.attnum), p.rowfilter
FROM pg_publication_tables p JOIN pg_attribute a ON a.attrelid = format('%%I.%%I', p.schemaname,
p.tablename)::regclass AND a.attname = ANY (p.attnames)
WHERE p.pubname = %s GROUP BY p.schemaname, p.tablename, p.rowfilter
"""
"""The tables of a publication, with their columns and conditions, as PostgreSQL 15 and later have them."""


def parse_lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def format_lsn(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


class PostgresqlChangeSource(Source):
    """Reads the changes of one publication."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        self._publication, self._metadata, self._initial = options["publication"], options["metadata"], options["initial"]
        self._slot = options["slot"] or f"epsparql_{re.sub('[^a-z0-9_]', '_', connector.name.lower())}"[:63]
        self._connection = PostgresqlConnection(options, credentials)
        self._snapshot = PostgresqlConnection(options, credentials, replication=True)
        self._waiting: list[Message] = []  # the initial rows, until they are read
        self._ends: dict[str, int] = {}  # the LSN after each transaction that was read and not yet confirmed
        self._commit, self._done = 0, 0  # the last position that was read
        self._advanced_s, self._idle = 0.0, False

    def seek(self, position: str | None) -> None:
        lsn, _, done = (position or "0/0").partition(":")
        self._commit, self._done = parse_lsn(lsn), int(done) if done else -1
        self._waiting, self._ends = [], {}
        self._connection.connect()
        self._advanced_s = time.monotonic()
        with faults():
            exists = self._ask("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", self._slot) is not None
            if position is None and self._initial:
                self._take_initial_rows(exists)
            elif position is None and not exists:
                self._ask("SELECT pg_create_logical_replication_slot(%s, %s)", self._slot, _PLUGIN)
            elif not exists:
                raise SystemFault(
                    f"PostgreSQL has no replication slot {self._slot!r}, so changes after {position} may be lost; "
                    "give the connector another source, and it begins with the present rows"
                )

    def _ask(self, statement: str, *parameters: object) -> Any:
        return self._connection.session.execute(statement.encode(), parameters).fetchone()

    # ------------------------------------------------------------ the rows that are there
    def _take_initial_rows(self, exists: bool) -> None:
        """Make the slot with a snapshot, and read the snapshot's rows.

        A slot that is there was made for rows that the log does not hold.
        """
        if exists:
            self._ask("SELECT pg_drop_replication_slot(%s)", self._slot)
        self._snapshot.connect()
        try:
            lsn, snapshot = self._snapshot.create_slot(self._slot, _PLUGIN)
            rows = self._read_snapshot(snapshot, lsn)
        finally:
            self._snapshot.close()
        before = format_lsn(parse_lsn(lsn) - 1)  # the next transaction may commit at the LSN of the slot itself
        if rows:
            self._waiting = [Message(b"\n".join(rows), before)]
        self._commit, self._done = parse_lsn(before), -1

    def _read_snapshot(self, snapshot: str, lsn: str) -> list[bytes]:
        rows, size = list[bytes](), 0
        with self._connection.transaction() as session:
            session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            session.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'".encode())  # the database named it; it takes no parameter here
            for table in session.execute(_TABLES, (self._publication,)).fetchall():
                for row in self._read_table(table):
                    rows.append(self._encode(Change("insert", table[0], row), lsn, None))
                    size += len(rows[-1]) + 1
                    if size > MOST_INITIAL_BYTES:
                        raise SystemFault(
                            f"the rows of the publication have more than {MOST_INITIAL_BYTES} bytes, too many for one body; "
                            "set initial = false, and load them in another way"
                        )
        return rows

    def _read_table(self, table: tuple[str, str, list[str], list[int], str | None]) -> Iterator[Row]:
        """Yield the rows of a table as the publication shows them, with the texts that changes have too."""
        _, quoted, names, kinds, condition = table
        texts = ", ".join('"' + name.replace('"', '""') + '"::text' for name in names)
        with self._connection.session.cursor(name="rows") as cursor:
            cursor.execute(f"SELECT ARRAY[{texts}]::text[] FROM {quoted} WHERE {condition or 'true'}".encode())
            for (values,) in cursor:
                yield {name: "null" if value is None else json_of(value, kind) for name, value, kind in zip(names, values, kinds, strict=True)}

    # ------------------------------------------------------------ changes
    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        if self._waiting:
            found, self._waiting = self._waiting, []
            return found
        deadline = time.monotonic() + wait_s
        while True:
            with faults():
                flushed = str(self._ask("SELECT pg_current_wal_flush_lsn()")[0])
                found = self._peek(most)
            if not found:
                self._advance_idle_slot(flushed)
            if found or time.monotonic() >= deadline:
                return found
            time.sleep(_LOOK_S)

    def _peek(self, most: int) -> list[Message]:
        """Return messages of the next transactions, up to `most`.

        A transaction is read in pieces, with a cursor of the database.
        """
        found: list[Message] = []
        decoder, begin, number, passed = Decoder(), Begin(0, ""), 0, 0
        with self._connection.transaction() as session, session.cursor(name="changes") as cursor:
            cursor.itersize = most
            cursor.execute(
                b"SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s, 'proto_version', '1', 'publication_names', %s)",
                (self._slot, most, '"' + self._publication.replace('"', '""') + '"'),
            )
            for (data,) in cursor:
                for event in decoder.decode(bytes(data)):
                    match event:
                        case Begin():
                            begin, number = event, 0
                        case Change():
                            number += 1
                            if self._is_beyond(begin.lsn, number):
                                lsn = format_lsn(begin.lsn)
                                found.append(Message(self._encode(event, lsn, begin.time), f"{lsn}:{number}", origin=f"table {event.table!r}"))
                        case Commit(end):
                            passed = end if not found else passed
                            self._close_transaction(found, begin, end)
                if len(found) > most:  # one more than asked for, so that the last one's position is known
                    del found[most:]
                    break
        if found:
            lsn, _, done = found[-1].position.partition(":")
            self._commit, self._done = parse_lsn(lsn), int(done) if done else -1
        elif passed:  # the log holds these transactions, but the slot was not advanced before the connector ended
            self._advance(format_lsn(passed))
        self._idle = not found and not passed
        return found

    def _is_beyond(self, lsn: int, number: int) -> bool:
        """Return whether a change comes after the last position that was read."""
        return lsn > self._commit or (lsn == self._commit and 0 <= self._done < number)

    def _close_transaction(self, found: list[Message], begin: Begin, end: int) -> None:
        """Note where a transaction ends, and give its last change the position of the whole."""
        position = format_lsn(begin.lsn)
        if found and found[-1].position.startswith(f"{position}:"):
            found[-1] = replace(found[-1], position=position)
            self._ends[position] = end

    def _encode(self, change: Change, lsn: str, committed: str | None) -> bytes:
        """Return a change as an object of JSON.

        Raises: SystemFault where a column has the name of what describes the change.
        """
        described = {"op": change.operation, "table": change.table, "lsn": lsn, "commit_time": committed} if self._metadata else {}
        clash = next((name for name in described if name in change.row), None)
        if clash is not None:
            raise SystemFault(f"a column is named {clash!r}, as what describes a change; leave it out of the publication, or set metadata = false")
        members = {name: json.dumps(value) for name, value in described.items() if value is not None} | change.row
        return ("{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in members.items()) + "}").encode()

    # ------------------------------------------------------------ the slot
    def confirm(self, position: str) -> None:
        """Advance the slot behind the last whole transaction up to a position."""
        held = parse_lsn(position.partition(":")[0])
        ends = {lsn: end for lsn, end in self._ends.items() if parse_lsn(lsn) < held or lsn == position}
        if last := max(ends.values(), default=0):
            self._advance(format_lsn(last))
        self._ends = {lsn: end for lsn, end in self._ends.items() if lsn not in ends}

    def _advance_idle_slot(self, flushed: str) -> None:
        """Advance the slot over what was written up to `flushed`, now and then: no change of the publication is in it."""
        if self._idle and time.monotonic() - self._advanced_s > _ADVANCE_S and not self._ends and self._done < 0:
            self._advance(flushed)

    def _advance(self, lsn: str) -> None:
        with faults():
            self._ask(
                "SELECT pg_replication_slot_advance(slot_name, %s) FROM pg_replication_slots WHERE slot_name = %s AND "
                    "confirmed_flush_lsn < %s::pg_lsn",
                lsn, self._slot, lsn,
            )  # fmt: skip
        self._advanced_s = time.monotonic()

    def close(self) -> None:
        self._snapshot.close()
        self._connection.close()

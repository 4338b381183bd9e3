"""Reads the rows of a query of PostgreSQL in order of a cursor column, for databases without logical replication.

Rows may share a value of the cursor. A value is closed once a greater one is there: no more rows come with it. So a position says
1. the value of the last row, and which rows of that value were read while it was open, each by a digest;
2. how many others of that value were read, in order of their text, once it was closed.
"""

import json
import time
from base64 import b85encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from connectors.configuration import Connector
from connectors.connections.postgresql import PostgresqlConnection, faults, quote
from connectors.errors import SystemFault
from connectors.inbound.source import Message, Source
from epsparql.deferred_methods import dataclass

MOST_OPEN = 100
"""So many rows of an open value are read; others with it wait until a greater value is there.

Their digests fit into a position.
"""
_PAGE = 2_000
_DIGEST = 10  # characters
_LONGEST = 500  # characters of a value of the cursor
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """Says up to where rows were read: the last value, the digests of its rows that were read while it was open, and
    the number of others.
    """

    value: str
    digests: str = ""
    others: int = 0

    def __str__(self) -> str:
        return json.dumps([self.value, self.digests, self.others])

    def knows(self, digest: str) -> bool:
        return digest in (self.digests[at : at + _DIGEST] for at in range(0, len(self.digests), _DIGEST))


def parse_cursor_position(text: str) -> CursorPosition:
    """Return the position that `str` wrote. Raises: SystemFault for another text."""
    try:
        value, digests, others = json.loads(text)
        return CursorPosition(str(value), str(digests), int(others))
    except (ValueError, TypeError):
        raise SystemFault(f"the stored position {text!r} is no value of a cursor column; give the connector another source") from None


class PostgresqlPollingSource(Source):
    """Reads the rows of one query."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        column = quote(options["cursor"]).replace("%", "%%")
        rows = f"FROM ({options['select'].strip().rstrip(';').replace('%', '%%')}\n) q"  # a comment may end the query
        self._greatest = f"SELECT max(q.{column})::text {rows}".encode()
        order = f'ORDER BY q.{column}, row_to_json(q)::text COLLATE "C" LIMIT %s'
        self._first, self._next = (
            f"SELECT q.{column}::text, row_to_json(q)::text {rows} WHERE q.{column} {condition} {order}".encode()
            for condition in ("IS NOT NULL", ">= %s")
        )
        self._poll_s = options["poll_s"]
        self._connection = PostgresqlConnection(options, credentials)
        self._at: CursorPosition | None = None
        self._waiting, self._looked_s = list[Message](), 0.0

    def seek(self, position: str | None) -> None:
        self._at = None if position is None else parse_cursor_position(position)
        self._waiting, self._looked_s = [], 0.0
        self._connection.connect()

    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        deadline = time.monotonic() + wait_s
        while not self._waiting:
            if time.monotonic() - self._looked_s >= self._poll_s:
                self._waiting = self._read_page()
                self._looked_s = 0.0 if self._waiting else time.monotonic()
            elif time.monotonic() >= deadline:
                break
            else:
                time.sleep(_LOOK_S)
        found, self._waiting = self._waiting[:most], self._waiting[most:]
        return found

    def _read_page(self) -> list[Message]:
        """Return the next rows of one snapshot, with the positions after them."""
        at = self._at
        known = 0 if at is None else at.others + len(at.digests) // _DIGEST
        with faults(), self._connection.transaction() as session:
            session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            found = session.execute(self._greatest, ()).fetchone()
            rows = session.execute(self._first if at is None else self._next, ([] if at is None else [at.value]) + [known + _PAGE]).fetchall()
        return self._place_rows(rows, None if found is None else found[0])

    def _place_rows(self, rows: Sequence[tuple[str, str]], greatest: str | None) -> list[Message]:
        """Return the rows that were not read before. Raises: SystemFault for a value that is too long for a position."""
        found, others = list[Message](), 0 if self._at is None else self._at.others
        for value, text in rows:
            if self._at is None or value != self._at.value:
                if len(value) > _LONGEST:
                    raise SystemFault(f"the cursor column has a value of more than {_LONGEST} characters; choose a number or a time")
                self._at, others = CursorPosition(value), 0
            digest = b85encode(sha256(text.encode()).digest()[:8]).decode()
            if self._at.knows(digest):
                continue
            if value == greatest and not self._at.others:
                if len(self._at.digests) >= MOST_OPEN * _DIGEST:
                    break
                self._at = replace(self._at, digests=self._at.digests + digest)
            elif others:
                others -= 1
                continue
            else:
                self._at = replace(self._at, others=self._at.others + 1)
            found.append(Message(text.encode(), str(self._at)))
        return found

    def close(self) -> None:
        self._connection.close()

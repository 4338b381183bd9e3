"""Writes solutions to a table of PostgreSQL: rows and cursor in one transaction.

The cursor is a row of the table `epsparql_cursors`, which the transaction locks, so that of two connectors of one
name only one goes on.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from connectors.configuration import Connector
from connectors.connections.postgresql import PostgresqlConnection, faults, quote
from connectors.errors import SystemFault
from connectors.outbound.columns import DEFAULT_COLUMNS, check_columns, find_value
from connectors.outbound.sink import Cursor, Sink, SolutionMessage, parse_cursor

_CURSORS = "epsparql_cursors"
_TYPES = {"query": "text", "id": "text", "start": "timestamptz", "end": "timestamptz", "solution": "jsonb"}


class PostgresqlSink(Sink):
    """Writes to one table, which is created if there is none.

    Solutions of a revised query that stand no more are deleted.
    """

    takes_changes = True

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        self._name, self._table = connector.name, options["table"]
        self._columns: Mapping[str, str] = options["columns"] or DEFAULT_COLUMNS
        check_columns(self._columns)
        self._connection = PostgresqlConnection(options, credentials)
        self._cursor: Cursor | None = None

    def fetch_cursor(self) -> Cursor | None:
        self._connection.connect()
        with faults():
            self._create_tables()
            self._cursor = self._read_cursor("")
        return self._cursor

    def write(self, solutions: Sequence[SolutionMessage]) -> None:
        last = solutions[-1].cursor
        with faults(), self._connection.transaction() as session:
            if self._read_cursor("FOR UPDATE") != self._cursor:
                raise SystemFault(f"another connector named {self._name!r} writes to the table {self._table}; stop one, or name it otherwise")
            with session.cursor() as cursor:
                for withdrawn, each in groupby(solutions, lambda solution: solution.withdrawn):  # in their order, for one may go and come again
                    sources = self._key_columns if withdrawn else self._columns
                    rows = [[find_value(source, solution) for source in sources.values()] for solution in each]
                    cursor.executemany((self._delete() if withdrawn else self._insert()).encode(), rows)
            session.execute(
                f"INSERT INTO {_CURSORS} (connector, cursor) VALUES (%s, %s) "
                "ON CONFLICT (connector) DO UPDATE SET cursor = excluded.cursor, written = now()",
                (self._name, str(last)),
            )
        self._cursor = last

    def _read_cursor(self, lock: str) -> Cursor | None:
        query = f"SELECT cursor FROM {_CURSORS} WHERE connector = %s {lock}"
        found = self._connection.session.execute(query.encode(), (self._name,)).fetchone()
        return None if found is None else parse_cursor(found[0])

    @property
    def _key_columns(self) -> Mapping[str, str]:
        return {column: source for column, source in self._columns.items() if source in ("query", "id")}

    def _delete(self) -> str:
        table, *key = (name.replace("%", "%%") for name in (quote_table(self._table), *map(quote, self._key_columns)))
        return f"DELETE FROM {table} WHERE {' AND '.join(f'{column} = %s' for column in key)}"

    def _insert(self) -> str:
        columns = [quote(column) for column in self._columns]
        key = [quote(column) for column in self._key_columns]
        rest = [column for column in columns if column not in key]
        change = f"DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in rest)}" if rest else "DO NOTHING"
        holes = ", ".join(["%s"] * len(columns))
        statement = f"INSERT INTO {quote_table(self._table)} ({', '.join(columns)}) VALUES (@) ON CONFLICT ({', '.join(key)}) {change}"
        return statement.replace("%", "%%").replace("(@)", f"({holes})", 1)

    def _create_tables(self) -> None:
        """Create the tables that are missing. Another connector may be doing the same, so one at a time may."""
        kinds = [f"{quote(column)} {_TYPES.get(source, 'text')}" for column, source in self._columns.items()]
        key = ", ".join(map(quote, self._key_columns))
        with self._connection.transaction() as session:
            session.execute("SELECT pg_advisory_xact_lock(hashtext('epsparql'))")
            for name, text in (
                (_CURSORS, f"CREATE TABLE {_CURSORS} (connector text PRIMARY KEY, cursor text NOT NULL, written timestamptz NOT NULL DEFAULT now())"),
                (quote_table(self._table), f"CREATE TABLE {quote_table(self._table)} ({', '.join(kinds)}, PRIMARY KEY ({key}))"),
            ):
                found = session.execute("SELECT to_regclass(%s)", (name,)).fetchone()
                if found is not None and found[0] is None:  # CREATE TABLE IF NOT EXISTS would need a right that an existing table does not
                    session.execute(text.encode())

    def close(self) -> None:
        self._connection.close()


def quote_table(name: str) -> str:
    """Return the name of a table, perhaps after that of its schema and a dot."""
    return ".".join(map(quote, name.split(".", 1)))

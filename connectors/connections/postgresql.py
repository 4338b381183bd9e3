"""Connects to PostgreSQL with psycopg, and turns its faults into those of connectors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from connectors.errors import SystemFault

if TYPE_CHECKING:
    import psycopg

_KEEP_ALIVE: dict[str, Any] = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_NO_FILE = "/dev/null/none"  # passwords come from the connector's options alone


class PostgresqlConnection:
    """Holds one session with the database that the options name.

    Statements outside of `transaction` commit by themselves.
    """

    def __init__(self, options: Mapping[str, Any], credentials: Mapping[str, str], *, replication: bool = False) -> None:
        self._url, self._replication = options["url"], replication
        self._login = {"passfile": _NO_FILE, "application_name": "epsparql", "connect_timeout": 10, **_KEEP_ALIVE, **credentials}
        self._session: psycopg.Connection[Any] | None = None

    def connect(self) -> None:
        """Open a session. Raises: SystemFault."""
        import psycopg

        self.close()
        with faults():
            more: dict[str, Any] = {"replication": "database"} if self._replication else {}
            self._session = psycopg.connect(self._url, autocommit=True, **self._login, **more)
            if not self._replication:
                self._session.execute("SET datestyle = 'ISO'")
                self._session.execute("SET timezone = 'UTC'")

    @property
    def session(self) -> "psycopg.Connection[Any]":
        assert self._session is not None
        return self._session

    @contextmanager
    def transaction(self) -> "Iterator[psycopg.Connection[Any]]":
        """Commit what is done in the block, or nothing of it."""
        with self.session.transaction():
            yield self.session

    def create_slot(self, name: str, plugin: str) -> tuple[str, str]:
        """Create a replication slot.

        Return its LSN, and the name of a snapshot that stands while this session does. Raises: SystemFault.
        """
        command = f'CREATE_REPLICATION_SLOT "{name}" LOGICAL {plugin} EXPORT_SNAPSHOT'  # the only way to have both; it takes no parameters
        found = self.session.pgconn.exec_(command.encode())
        lsn, snapshot = (found.get_value(0, column) if found.ntuples else None for column in (1, 2))
        if lsn is None or snapshot is None:
            raise SystemFault(f"PostgreSQL: the replication slot {name!r} was not made: {found.error_message.decode(errors='replace').strip()}")
        return lsn.decode(), snapshot.decode()

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):
                session.close()


@contextmanager
def faults() -> Iterator[None]:
    """Turn faults of the client and of the database into SystemFault."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise SystemFault(f"PostgreSQL: {str(error).strip() or type(error).__name__}") from None


def quote(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'

"""PostgreSQL in and out, against a real database: changes by op, the rows of the start, transactions in pieces, and
kills of everything.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from connectors.configuration import parse_connector
from connectors.errors import SystemFault, WrongOption
from connectors.inbound.postgresql.changes import PostgresqlChangeSource
from connectors.inbound.postgresql.pgoutput import json_of
from connectors.inbound.postgresql.polling import MOST_OPEN, PostgresqlPollingSource
from connectors.inbound.source import Message
from connectors.outbound.postgresql import PostgresqlSink
from connectors.outbound.sink import Cursor, SolutionMessage
from epsparql.client import ApiError, Client
from tests.connectors.systems.brokers import Postgresql, nats_server, postgresql
from tests.connectors.systems.chaos import QUERY, connecting, event, kill_at_random, restarted_server, wait_for
from tests.connectors.systems.jetstream import Publisher, create_stream

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared() -> Iterator[Postgresql]:
    with postgresql() as found:
        with psycopg.connect(found.url, autocommit=True) as session:
            session.execute("CREATE TABLE readings (id int PRIMARY KEY, t numeric, ok bool, at timestamptz, note text, more jsonb)")
            session.execute("CREATE PUBLICATION readings FOR TABLE readings")
        yield found


@pytest.fixture
def session(shared: Postgresql) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(shared.url, autocommit=True) as found:
        yield found
        found.execute("TRUNCATE readings")
        found.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")


def source_of(database: Postgresql, **more: object) -> PostgresqlChangeSource:
    given = {"type": "postgresql", "stream": "s", "url": database.url, "publication": "readings", **more}
    connector = parse_connector("changes", given)
    return PostgresqlChangeSource(connector, {})


def rows(source: PostgresqlChangeSource, most: int = 100) -> list[dict[str, Any]]:
    return [json.loads(line) for message in source.read(most, 5) for line in message.payload.splitlines()]


def test_rows_and_changes_are_told_by_op(shared: Postgresql, session: psycopg.Connection[Any]) -> None:
    session.execute(
        """INSERT INTO readings VALUES (1, 8.50, true, '2026-01-01T10:00:00Z', E'a "b"\nc', '{"x": [1]}'), (2, 'NaN', false, NULL, NULL, NULL)"""
    )
    source = source_of(shared)
    source.seek(None)
    (initial,) = source.read(100, 5)
    first, second = map(json.loads, initial.payload.splitlines())
    assert {"op": "insert", "table": "readings", "id": 1, "t": 8.5, "ok": True, "at": "2026-01-01T10:00:00Z"}.items() <= first.items()
    assert (first["note"], first["more"]) == ('a "b"\nc', {"x": [1]})
    assert b"8.50" in initial.payload
    assert (second["t"], second["ok"], second["note"]) == ("NaN", False, None)
    source.confirm(initial.position)
    with session.transaction():
        session.execute("INSERT INTO readings VALUES (3, 1.10, true)")
        session.execute("UPDATE readings SET t = 9 WHERE id = 1")
        session.execute("UPDATE readings SET id = 5 WHERE id = 3")
        session.execute("DELETE FROM readings WHERE id = 2")
    session.execute("TRUNCATE readings")
    found = rows(source)
    assert [(each["op"], each.get("id")) for each in found] == [("insert", 3), ("update", 1), ("update", 5), ("delete", 2), ("truncate", None)]
    assert found[1]["note"] == 'a "b"\nc'
    assert "t" not in found[3]
    assert found[0]["commit_time"].endswith("Z")
    source.close()


def test_a_transaction_is_read_in_pieces_and_resumed_at_each(shared: Postgresql, session: psycopg.Connection[Any]) -> None:
    source = source_of(shared, initial=False)
    source.seek(None)
    session.execute("INSERT INTO readings SELECT n FROM generate_series(1, 5) n")
    session.execute("INSERT INTO readings VALUES (6)")
    positions: list[str | None] = [None]
    for expected in ([1, 2], [3, 4], [5]):  # a call ends with a transaction
        found = source.read(2, 5)
        assert [json.loads(message.payload)["id"] for message in found] == expected
        positions.append(found[-1].position)
    for position, left in zip(positions, ([1, 2, 3, 4, 5, 6], [3, 4, 5, 6], [5, 6], [6]), strict=True):
        source.seek(position)
        assert [row["id"] for row in rows(source)] == left
    source.seek(positions[2])
    source.confirm(str(positions[2]))  # the slot stays before a transaction that the log holds in part
    assert [row["id"] for row in rows(source)] == [5, 6]
    source.seek(positions[3])
    (last,) = source.read(10, 5)
    assert json.loads(last.payload)["id"] == 6
    source.confirm(last.position)  # now the slot moves behind both
    source.seek(None)
    assert source.read(10, 0.1) == []
    source.close()


def test_a_crash_before_the_log_holds_the_first_rows_begins_anew(shared: Postgresql, session: psycopg.Connection[Any]) -> None:
    session.execute("INSERT INTO readings VALUES (1)")
    source = source_of(shared)
    source.seek(None)
    session.execute("INSERT INTO readings VALUES (2)")
    source.seek(None)
    (initial,) = source.read(10, 5)
    assert [json.loads(line)["id"] for line in initial.payload.splitlines()] == [1, 2]
    session.execute("INSERT INTO readings VALUES (3)")
    source.seek(initial.position)
    assert [row["id"] for row in rows(source)] == [3]
    session.execute("SELECT pg_drop_replication_slot('epsparql_changes')")
    with pytest.raises(SystemFault, match="no replication slot 'epsparql_changes'"):
        source.seek(initial.position)
    source.close()


def test_a_column_named_like_metadata_is_told(shared: Postgresql, session: psycopg.Connection[Any]) -> None:
    session.execute("CREATE TABLE clash (op text)")
    session.execute("CREATE PUBLICATION clash FOR TABLE clash")
    session.execute("INSERT INTO clash VALUES ('x')")
    source = source_of(shared, publication="clash")
    with pytest.raises(SystemFault, match="a column is named 'op'"):
        source.seek(None)
    source.close()
    source = source_of(shared, publication="clash", metadata=False)
    source.seek(None)
    assert rows(source) == [{"op": "x"}]
    source.close()


VALUES = [("t", 16, "true"), ("8.50", 1700, "8.50"), ("Infinity", 701, '"Infinity"'), ("2026-01-01 10:00:00.5+00", 1184, '"2026-01-01T10:00:00.5Z"')]


@pytest.mark.parametrize(("text", "kind", "expected"), [*VALUES, ("infinity", 1184, '"infinity"'), ("a\nb", 25, '"a\\nb"')])
def test_values_keep_their_digits(text: str, kind: int, expected: str) -> None:
    assert json_of(text, kind) == expected


# ---------------------------------------------------------------- polling
def polling(database: Postgresql, **more: object) -> PostgresqlPollingSource:
    given = {
        "type": "postgresql-polling",
        "stream": "s",
        "url": database.url,
        "select": "SELECT * FROM polled -- all",
        "cursor": "n",
        "poll_s": 0.01,
        **more,
    }
    return PostgresqlPollingSource(parse_connector("rows", given), {})


@pytest.fixture
def polled(session: psycopg.Connection[Any]) -> Iterator[psycopg.Connection[Any]]:
    session.execute("CREATE TABLE polled (n int, v text)")
    yield session
    session.execute("DROP TABLE polled")


def values_of_rows(messages: Sequence[Message]) -> list[str]:
    return [json.loads(message.payload)["v"] for message in messages]


def test_rows_that_share_a_value_of_the_cursor_come_once(shared: Postgresql, polled: psycopg.Connection[Any]) -> None:
    """Rows that come later with the greatest value are read too, whatever their order, and wherever the connector
    resumed.
    """
    source = polling(shared)
    source.seek(None)
    assert source.read(10, 0.05) == []
    positions, seen = list[str | None]([None]), list[str]()
    for number, value in [(1, "b"), (1, "a"), (2, "d"), (2, "c"), (2, "e"), (None, "none"), (3, "f")]:
        polled.execute("INSERT INTO polled VALUES (%s, %s)", (number, value))
        for message in source.read(10, 0.1):
            seen += values_of_rows([message])
            positions.append(message.position)
        source.seek(positions[-1])
    assert seen == ["b", "a", "d", "c", "e", "f"]
    for at, resumed in enumerate(positions):
        source.seek(resumed)
        assert sorted(values_of_rows(source.read(10, 0.1))) == sorted(seen[at:])
    source.close()


def test_many_rows_of_one_value_wait_until_it_is_closed(shared: Postgresql, polled: psycopg.Connection[Any]) -> None:
    total = MOST_OPEN + 3_000
    polled.execute("INSERT INTO polled SELECT 1, lpad(v::text, 5, '0') FROM generate_series(1, %s) v", (total,))
    source = polling(shared)
    source.seek(None)
    found = list(source.read(total, 0.1))
    assert len(found) == MOST_OPEN
    assert len(found[-1].position) < 2_048
    polled.execute("INSERT INTO polled VALUES (1, '-'), (2, 'x')")
    resumed = list[Message]()
    while len(resumed) < total + 2 - MOST_OPEN:
        source.seek((resumed or found)[-1].position)
        resumed += source.read(1_500, 5)
    assert source.read(10, 0.05) == []
    assert sorted(values_of_rows(found + resumed)) == sorted([*(f"{n:05d}" for n in range(1, total + 1)), "-", "x"])
    source.close()


def test_a_query_that_cannot_be_read_is_told(shared: Postgresql, polled: psycopg.Connection[Any]) -> None:
    polled.execute("INSERT INTO polled VALUES (1, '100%')")
    for select, message in (("SELECT 1 AS v", "column q.n does not exist"), ("SELECT 1; DROP TABLE polled", "syntax error")):
        source = polling(shared, select=select)
        source.seek(None)
        with pytest.raises(SystemFault, match=message):
            source.read(1, 1)
        source.close()
    with pytest.raises(SystemFault, match="is no value of a cursor column"):
        polling(shared).seek("0/1")
    source = polling(shared, select="SELECT * FROM polled WHERE v LIKE '100%';")
    source.seek(None)
    (found,) = source.read(1, 1)
    assert found.payload == b'{"n":1,"v":"100%"}'
    source.close()


# ---------------------------------------------------------------- out
def sink_of(database: Postgresql, table: str, **more: object) -> PostgresqlSink:
    connector = parse_connector("alerts", {"type": "postgresql", "query": "q", "url": database.url, "table": table, **more})
    return PostgresqlSink(connector, {})


def solution(number: int, value: str) -> SolutionMessage:
    document = {
        "query": "q",
        "id": f"i{number}",
        "start": "2026-01-01T10:00:00Z",
        "end": "2026-01-01T11:00:00Z",
        "binding": {"v": {"type": "literal", "value": value}},
    }
    return SolutionMessage(document, json.dumps(document).encode(), Cursor(1, f"i{number}", number))


def test_rows_and_cursor_are_written_together(shared: Postgresql, session: psycopg.Connection[Any]) -> None:
    sink = sink_of(shared, "found.a", columns={"id": "id", 'v "1" %s': "?v", "none": "?none", "end": "end"})
    session.execute("CREATE SCHEMA found")
    assert sink.fetch_cursor() is None
    sink.write([solution(1, "8.5"), solution(2, "9")])
    again = sink_of(shared, "found.a")
    assert again.fetch_cursor() == Cursor(1, "i2", 2)
    sink.write([solution(3, "10")])
    assert [row[:3] for row in session.execute("SELECT * FROM found.a ORDER BY id").fetchall()] == [
        ("i1", "8.5", None),
        ("i2", "9", None),
        ("i3", "10", None),
    ]
    with pytest.raises(SystemFault, match="another connector named 'alerts'"):
        again.write([solution(3, "10")])
    session.execute("CREATE TABLE typed (id text PRIMARY KEY, v int)")
    session.execute("DELETE FROM epsparql_cursors")
    typed = sink_of(shared, "typed", columns={"id": "id", "v": "?v"})
    assert typed.fetch_cursor() is None
    with pytest.raises(SystemFault, match="invalid input syntax"):
        typed.write([solution(1, "1"), solution(2, "warm")])
    assert session.execute("SELECT count(*) FROM typed").fetchone() == (0,)
    assert typed.fetch_cursor() is None
    for each in (sink, again, typed):
        each.close()


def test_rows_of_withdrawn_solutions_are_deleted_in_order(shared: Postgresql, session: psycopg.Connection[Any]) -> None:
    sink = sink_of(shared, "revised", columns={"id": "id", "v": "?v"})
    sink.fetch_cursor()
    sink.write([solution(1, "8"), solution(2, "9"), replace(solution(1, "8"), withdrawn=True)])
    assert session.execute("SELECT id FROM revised").fetchall() == [("i2",)]
    sink.write([replace(solution(2, "9"), withdrawn=True), solution(2, "10")])
    assert session.execute("SELECT id, v FROM revised").fetchall() == [("i2", "10")]
    session.execute("DELETE FROM epsparql_cursors")
    sink.close()


@pytest.mark.parametrize(("columns", "message"), [({"a": "value"}, "must hold one of"), ({"a": "?a"}, "one column must hold 'id'")])
def test_wrong_columns_are_told(columns: dict[str, str], message: str, shared: Postgresql) -> None:
    with pytest.raises(WrongOption, match=message):
        sink_of(shared, "t", columns=columns)


# ---------------------------------------------------------------- kills
def count_rows(database: Postgresql) -> int:
    with suppress(psycopg.Error), psycopg.connect(database.url, connect_timeout=2) as session:
        found = session.execute("SELECT count(*) FROM found").fetchone()
        return 0 if found is None else int(found[0])
    return 0


def check_rows(database: Postgresql, total: int) -> None:
    with psycopg.connect(database.url) as session:
        found = session.execute("SELECT v::int, id FROM found ORDER BY v::int").fetchall()
    assert [value for value, _ in found] == list(range(total))
    assert len({key for _, key in found}) == total


OUT: dict[str, object] = {"type": "postgresql", "query": "values", "table": "found", "columns": {"id": "id", "v": "?v"}}


def test_from_jetstream_to_postgresql_each_message_is_one_row_whoever_is_killed(tmp_path: Path) -> None:
    chance = Random(8)
    with nats_server(tmp_path / "jetstream") as broker, postgresql() as database, restarted_server(tmp_path) as server:
        url = f"nats://127.0.0.1:{broker.port}"
        create_stream(url, "READINGS", "readings.>")
        server.client.register("values", QUERY)
        connectors: dict[str, dict[str, object]] = {
            "readings": {"type": "nats", "stream": "default", "url": url, "jetstream": "READINGS"},
            "found": OUT | {"url": database.url},
        }
        with connecting(tmp_path, server.url, connectors) as connect:
            publisher = Publisher(url, "readings.a", event)
            try:
                victims = (lambda: connect.kill_worker(chance), server.restart, broker.restart, database.restart)
                kill_at_random(victims, chance, lambda: count_rows(database))
            finally:
                total = publisher.stop()
            wait_for(lambda: count_rows(database) >= total, "the last row")
        stream = server.client.stream("default")
        assert (stream["accepted"], stream["late"]) == (total, 0)
        solutions = server.client.solutions("values", limit=100_000)
        assert [int(each.binding["v"]["value"]) for each in solutions if each.binding] == list(range(total))
        check_rows(database, total)


class Inserter:
    """Inserts numbered events until it is stopped, each once across restarts of the database."""

    def __init__(self, url: str) -> None:
        self._url, self._stopping = url, threading.Event()
        self.inserted = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(psycopg.Error), psycopg.connect(self._url, autocommit=True, connect_timeout=2) as session:
                found = session.execute("SELECT count(*) FROM events").fetchone()
                self.inserted = int(found[0]) if found else 0  # a row may have been committed without an answer
                while not self._stopping.wait(0.01):
                    made = json.loads(event(self.inserted))
                    session.execute("INSERT INTO events VALUES (%(s)s, %(p)s, %(o)s, %(at)s)", made)
                    self.inserted += 1

    def stop(self) -> int:
        self._stopping.set()
        self._thread.join()
        return self.inserted


def _count_accepted(client: Client, stream: str) -> int:
    """Return how many events a stream has taken; none where it has not begun yet."""
    try:
        return int(client.stream(stream)["accepted"])
    except ApiError as error:
        if error.status != 404:
            raise
        return 0


def test_from_postgresql_to_postgresql_each_change_is_one_row_whoever_is_killed(tmp_path: Path) -> None:
    chance = Random(9)
    with postgresql() as database, restarted_server(tmp_path) as server:
        with psycopg.connect(database.url, autocommit=True) as session:
            session.execute("CREATE TABLE events (s text, p text, o text, at text)")
            session.execute("CREATE PUBLICATION events FOR TABLE events")
        server.client.register("values", QUERY)
        inserter = Inserter(database.url)
        source: dict[str, object] = {
            "type": "postgresql",
            "stream": "default",
            "publication": "events",
            "metadata": False,
            "format": "application/x-ndjson",
        }
        polled: dict[str, object] = {
            "type": "postgresql-polling",
            "stream": "polled",
            "select": "SELECT * FROM events",
            "cursor": "at",
            "format": "application/x-ndjson",
        }
        connectors: dict[str, dict[str, object]] = {
            "events": source | {"url": database.url},
            "polled": polled | {"url": database.url},
            "found": OUT | {"url": database.url},
        }
        with connecting(tmp_path, server.url, connectors) as connect:
            try:
                victims = (lambda: connect.kill_worker(chance), server.restart, database.restart)
                kill_at_random(victims, chance, lambda: count_rows(database))
            finally:
                inserter.stop()
            with psycopg.connect(database.url) as session:
                found = session.execute("SELECT count(*) FROM events").fetchone()
            assert found is not None
            (total,) = found
            wait_for(lambda: count_rows(database) >= total, "the last row")
            wait_for(lambda: _count_accepted(server.client, "polled") >= total, "the last row by polling")
        for name in ("default", "polled"):
            stream = server.client.stream(name)
            assert (stream["accepted"], stream["late"]) == (total, 0)
        check_rows(database, total)

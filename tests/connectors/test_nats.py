"""JetStream in and out, against a real nats-server: from a sequence, across kills of everything, and with faults that
name the remedy.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from connectors.configuration import parse_connector
from connectors.errors import SystemFault
from connectors.inbound.nats import JetStreamSource
from tests.connectors.systems.brokers import Daemon, nats_server
from tests.connectors.systems.chaos import QUERY, connecting, event, kill_at_random, restarted_server, values_of, wait_for
from tests.connectors.systems.jetstream import Publisher, count_messages, create_stream, read_messages, with_jetstream

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Daemon]:
    with nats_server(tmp_path / "jetstream") as found:
        yield found


def url_of(broker: Daemon) -> str:
    return f"nats://127.0.0.1:{broker.port}"


def connector_in(broker: Daemon, **more: object) -> dict[str, object]:
    return {"type": "nats", "stream": "default", "url": url_of(broker), "jetstream": "READINGS", **more}


def connector_out(broker: Daemon) -> dict[str, object]:
    return {"type": "nats", "query": "values", "url": url_of(broker), "subject": "found.values"}


def read_until_it_fails(source: JetStreamSource) -> None:
    for _ in range(20):
        source.read(10, 0.1)


def publish(broker: Daemon, *payloads: str, subject: str = "readings.a") -> None:
    async def send(streams: Any) -> None:
        for payload in payloads:
            await streams.publish(subject, payload.encode())

    with_jetstream(url_of(broker), send)


@pytest.mark.soak  # in CI, the chain from JetStream to PostgreSQL is killed
def test_every_message_is_evaluated_once_and_in_order_whoever_is_killed(tmp_path: Path, broker: Daemon) -> None:
    create_stream(url_of(broker), "READINGS", "readings.>")
    create_stream(url_of(broker), "FOUND", "found.>")
    chance = Random(7)
    with restarted_server(tmp_path) as server:
        server.client.register("values", QUERY)
        connectors = {"readings": connector_in(broker), "found": connector_out(broker)}
        with connecting(tmp_path, server.url, connectors) as connect:
            publisher = Publisher(url_of(broker), "readings.a", event)
            try:
                victims = (lambda: connect.kill_worker(chance), server.restart, broker.restart)
                kill_at_random(victims, chance, lambda: count_messages(url_of(broker), "FOUND"))
            finally:
                total = publisher.stop()
            wait_for(lambda: count_messages(url_of(broker), "FOUND") >= total, "the last message")
        stream = server.client.stream("default")
        assert (stream["accepted"], stream["late"]) == (total, 0)
        solutions = server.client.solutions("values", limit=100_000)
        assert [int(solution.binding["v"]["value"]) for solution in solutions if solution.binding] == list(range(total))
        found = read_messages(url_of(broker), "FOUND")
        assert values_of([message.data for message in found]) == list(range(total))
        assert server.client.sources("default") == {"readings": str(total)}


def test_a_connector_waits_for_broker_and_server_and_tells_why(tmp_path: Path, broker: Daemon) -> None:
    source = JetStreamSource(parse_connector("a", connector_in(broker)), {})
    with pytest.raises(SystemFault, match="stream not found"):
        source.seek(None)
    create_stream(url_of(broker), "READINGS", "readings.>")
    source.seek(None)
    assert source.read(10, 0.05) == []
    publish(broker, "1", "2", "3")
    assert [(message.payload, message.position) for message in source.read(10, 1)] == [(b"1", "1"), (b"2", "2"), (b"3", "3")]
    source.seek("1")
    assert source.get_lag() == 2
    assert [message.position for message in source.read(1, 1)] == ["2"]
    assert source.get_lag() == 1
    broker.kill()
    with pytest.raises(SystemFault, match="NATS"):
        read_until_it_fails(source)
    source.close()
    source.close()


def test_a_stream_that_was_made_anew_and_messages_that_are_gone_are_told(broker: Daemon) -> None:
    create_stream(url_of(broker), "READINGS", "readings.>")
    publish(broker, *map(str, range(5)))
    source = JetStreamSource(parse_connector("a", connector_in(broker)), {})
    with pytest.raises(SystemFault, match="it was made anew; give the connector another source"):
        source.seek("6")
    with_jetstream(url_of(broker), lambda streams: streams.purge_stream("READINGS", seq=4))
    source.seek("1")
    assert source.count_missed() == 2
    assert [message.position for message in source.read(10, 1)] == ["4", "5"]
    source.close()

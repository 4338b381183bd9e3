"""MQTT in and out, against a real mosquitto: at least once across kills of everything, and no solution twice."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from connectors.configuration import parse_connector
from connectors.errors import SystemFault
from connectors.inbound.mqtt import MqttSource
from connectors.outbound.mqtt import MqttSink
from connectors.outbound.sink import Cursor, SolutionMessage
from epsparql.terms import XSD, Iri, Literal
from tests.connectors.systems.brokers import Daemon, mosquitto
from tests.connectors.systems.chaos import EX, QUERY, connecting, event, kill_at_random, restarted_server, wait_for
from tests.connectors.systems.mqtt_devices import DEADLINE_S, Device, display, publish

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Daemon]:
    with mosquitto(tmp_path / "mosquitto") as found:
        yield found


def options(broker: Daemon, **more: object) -> dict[str, Any]:
    return {"type": "mqtt", "url": f"mqtt://127.0.0.1:{broker.port}", **more}


def source_of(broker: Daemon, **more: object) -> MqttSource:
    return MqttSource("a", parse_connector("a", options(broker, stream="default", topic="sensors/+/t", **more)).options, {})


def sink_of(broker: Daemon, **more: object) -> MqttSink:
    return MqttSink("b", parse_connector("b", options(broker, query="q", topic="alerts", **more)).options, {})


def read_all(source: MqttSource, most: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < most:
        found += [message.payload for message in source.read(most - len(found), DEADLINE_S)]
    return found


def solution(number: int) -> SolutionMessage:
    text = json.dumps({"query": "q", "id": str(number)})
    return SolutionMessage(json.loads(text), text.encode(), Cursor(3, str(number), number))


def test_every_message_is_evaluated_and_no_solution_comes_twice_whoever_is_killed(tmp_path: Path, broker: Daemon) -> None:
    """Messages that come again behind newer ones are not late, since the stream waits for them; equal ones are one event."""
    chance = Random(7)
    with restarted_server(tmp_path) as server:
        server.client.create_stream("default", max_delay="P30D")
        server.client.register("values", QUERY)
        connectors = {"readings": options(broker, stream="default", topic="sensors/+/t")}
        publish(broker.port, "sensors/a/t", event(0), retain=True)  # it tells when the connector has subscribed
        with connecting(tmp_path, server.url, connectors) as connect:
            wait_for(lambda: server.client.stream("default")["accepted"] > 0, "the first message")
            device = Device(broker.port, "sensors/a/t", event)
            try:
                victims = (lambda: connect.kill_worker(chance), server.restart, broker.restart)
                kill_at_random(victims, chance, lambda: server.client.stream("default")["accepted"])
            finally:
                total = device.stop()
            last = json.loads(event(total - 1))["at"]
            wait_for(lambda: server.client.stream("default")["latest"] == last, "the last message")
        stream = server.client.finish("default") or server.client.stream("default")
        assert stream["late"] == 0
        with server.client.follow("values") as subscription:
            found = [int(str(each["v"].to_python())) for each in subscription]
        assert sorted({*range(total)} - {*found}) == []
        assert found == list(range(total))


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_messages_come_again_until_they_are_confirmed(broker: Daemon, version: str) -> None:
    source = source_of(broker, version=version)
    source.seek(None)
    publish(broker.port, "sensors/a/t", "1", "2", "3")
    publish(broker.port, "sensors/a/other", "no")
    assert read_all(source, 3) == [b"1", b"2", b"3"]
    source.confirm("2")
    source.close()
    publish(broker.port, "sensors/b/t", "4")
    source.seek(None)
    assert read_all(source, 2) == [b"3", b"4"]
    source.close()
    source.close()


def test_topics_are_told_in_an_envelope_with_the_payload_as_written(broker: Daemon) -> None:
    source = source_of(broker, envelope=True)
    source.seek(None)
    publish(broker.port, "sensors/a/t", "21.50", '{"t": 1}', "warm")
    assert read_all(source, 3) == [
        b'{"topic":"sensors/a/t","payload":21.50}',
        b'{"topic":"sensors/a/t","payload":{"t": 1}}',
        b'{"topic":"sensors/a/t","payload":"warm"}',
    ]
    source.close()


def test_a_broker_that_is_away_is_told(broker: Daemon) -> None:
    source = source_of(broker)
    source.seek(None)
    broker.kill()
    with pytest.raises(SystemFault, match="MQTT: the connection has ended"):
        read_all(source, 1)
    with pytest.raises(SystemFault, match=r"MQTT: .*refused"):
        source.seek(None)
    source.close()


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_solutions_are_published_with_a_cursor_and_the_last_one_is_stored(broker: Daemon, version: str) -> None:
    sink = sink_of(broker, version=version, retain=True)
    with display(broker.port, "alerts") as shown:
        assert sink.fetch_cursor() is None
        sink.write([solution(1), solution(2)])
        sink.close()
        assert sink.fetch_cursor() == Cursor(3, "2", 2)
        sink.write([solution(3)])
        sink.close()
        assert [json.loads(shown.get(timeout=DEADLINE_S))["id"] for _ in range(3)] == ["1", "2", "3"]
    with display(broker.port, "alerts") as shown:
        assert json.loads(shown.get(timeout=DEADLINE_S))["id"] == "3"


def test_a_stored_message_that_is_no_cursor_is_told(broker: Daemon) -> None:
    publish(broker.port, "taken", "hello", retain=True)
    sink = sink_of(broker, cursor_topic="taken")
    with pytest.raises(SystemFault, match="'taken' is no cursor; give the connector another cursor_topic"):
        sink.fetch_cursor()
    sink.close()


def test_mappings_read_envelopes(tmp_path: Path, broker: Daemon) -> None:
    """Readings that are bare numbers become triples of the sensor that the topic names."""
    publish(broker.port, "sensors/cellar", "21.50", retain=True)
    mapping = {"base": EX, "subject": "{+topic}", "properties": {"payload": ":value"}}
    with restarted_server(tmp_path) as server:
        server.client.create_stream("default", mapping=mapping)
        server.client.register("values", QUERY)
        given = options(broker, stream="default", topic="sensors/#", envelope=True, format="application/json")
        with connecting(tmp_path, server.url, {"readings": given}):
            (found,) = server.client.solutions("values", wait_s=60)
        assert (found["s"], found["v"]) == (Iri(f"{EX}sensors/cellar"), Literal("21.50", XSD + "decimal"))

"""Kafka in and out, against librdkafka's mock broker: by partition and offset, across kills, and with faults that
name the remedy.

The mock proves the protocol. That a broker hides what was not committed, and refuses an earlier producer of the same
transactional id, is Kafka's own promise: the mock keeps neither.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from connectors.configuration import parse_connector
from connectors.errors import SystemFault, WrongOption
from connectors.inbound.delivery import InboundDelivery
from connectors.inbound.kafka import KafkaSource
from connectors.outbound.kafka import KafkaSink
from connectors.outbound.sink import Cursor, SolutionMessage
from connectors.server_access import ServerAccess
from connectors.status import StatusBoard
from epsparql.client import Client
from tests.connectors.systems.chaos import QUERY, connecting, event, kill_at_random, restarted_server, values_of, wait_for
from tests.connectors.systems.kafka import MockKafka, PartitionPublisher, committed, mock_kafka
from tests.server.conftest import serving

pytestmark = pytest.mark.slow
PARTITIONS = 4
SECRET = "s3cret-of-kafka"


@pytest.fixture(scope="module")
def broker() -> Iterator[MockKafka]:
    with mock_kafka() as found:
        found.create_topics("found", "epsparql-cursors")
        yield found


def source_of(broker: MockKafka, topic: str, **more: object) -> KafkaSource:
    given = {"type": "kafka", "stream": "s", "url": broker.url, "topic": topic, **more}
    return KafkaSource(parse_connector("readings", given), {})


def sink_of(broker: MockKafka, name: str, topic: str, **more: object) -> KafkaSink:
    given = {"type": "kafka", "query": "q", "url": broker.url, "topic": topic, **more}
    return KafkaSink(parse_connector(name, given), {})


def solution(number: int, value: str) -> SolutionMessage:
    document = {"query": "q", "id": f"i{number}", "binding": {"v": {"type": "literal", "value": value}}}
    return SolutionMessage(document, json.dumps(document).encode(), Cursor(1, f"i{number}", number))


def read(source: KafkaSource, number: int) -> list[tuple[str, str, bytes]]:
    """The next messages, each with its part, its position and its payload."""
    found = list[tuple[str, str, bytes]]()

    def reads_enough() -> bool:
        found.extend((each.part, each.position, each.payload) for each in source.read(10, 0.2))
        return len(found) >= number

    wait_for(reads_enough, "messages")
    return found


# ---------------------------------------------------------------- in
def test_partitions_are_read_each_from_its_position(broker: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Further partitions are looked for at each read.

    The mock cannot add any, so that none is disturbed by it is all that is shown.
    """
    monkeypatch.setattr("connectors.inbound.kafka._LOOK_S", 0.0)
    broker.publish("parts", "a", None, "b", "c", partition=0)
    broker.publish("parts", "x", "y", partition=2)
    source = source_of(broker, "parts")
    source.seek_parts({})
    assert source.get_lag() == 6
    found = read(source, 5)
    assert [each for each in found if each[0] == "0"] == [("0", "1", b"a"), ("0", "3", b"b"), ("0", "4", b"c")]
    assert [each for each in found if each[0] == "2"] == [("2", "1", b"x"), ("2", "2", b"y")]
    wait_for(lambda: not source.read(10, 0.1) and source.get_lag() == 0, "the ends of all partitions")
    source.seek_parts({"0": "3", "2": "2", "x": "of another connector"})
    assert source.get_lag() == 1
    assert read(source, 1) == [("0", "4", b"c")]
    broker.publish("parts", "z", partition=2)
    assert read(source, 1) == [("2", "3", b"z")]
    assert source.count_missed() == 0
    source.close()
    source.close()


def test_an_envelope_has_key_time_and_payload(broker: MockKafka) -> None:
    broker.publish("enveloped", "31.50", key="cellar")
    broker.publish("enveloped", "warm")
    source = source_of(broker, "enveloped", envelope=True)
    source.seek_parts({})
    (_, _, first), (_, _, second) = read(source, 2)
    assert first.startswith(b'{"key":"cellar","timestamp":')
    assert first.endswith(b',"payload":31.50}')
    assert json.loads(first)["timestamp"] > 1_700_000_000_000
    assert (json.loads(second)["key"], json.loads(second)["payload"]) == (None, "warm")
    source.close()


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ({"0": "9"}, "partition 0 of the topic 'short' ends at 2, before the stored position 9: it was made anew; give the connector another source"),
        ({"7": "1"}, "has 4 partitions, fewer than the stored positions: it was made anew"),
        ({"0": "0/15"}, "'0/15' is no offset of Kafka; give the connector another source"),
    ],
)
def test_a_topic_that_was_made_anew_is_told(positions: dict[str, str], message: str, broker: MockKafka) -> None:
    broker.create_topics("short")
    if not broker.count("short"):
        broker.publish("short", "1", "2")
    source = source_of(broker, "short")
    with pytest.raises(SystemFault, match=message):
        source.seek_parts(positions)
    source.close()


def test_a_topic_that_is_not_there_and_a_broker_that_goes_are_told() -> None:
    with mock_kafka() as broker:
        source = source_of(broker, "readings")
        with pytest.raises(SystemFault, match="Kafka has no topic 'readings'; create it"):
            source.seek_parts({})
        broker.publish("readings", "1")
        source.seek_parts({})
        assert read(source, 1) == [("0", "1", b"1")]
        broker.kill()
        with pytest.raises(SystemFault, match=r"no broker is left; .*Connection (refused|reset)"):
            wait_for(lambda: bool(source.read(10, 0.1)), "the fault")
        with pytest.raises(SystemFault, match=r"Kafka: .*Connection refused"):
            source.seek_parts({})
        source.close()
        sink = sink_of(broker, "out", "found")
        with pytest.raises(SystemFault, match=r"Kafka: .*Connection refused"):
            sink.fetch_cursor()
        sink.close()


# ---------------------------------------------------------------- out
def test_solutions_and_cursor_are_one_transaction(broker: MockKafka) -> None:
    broker.create_topics("written")
    sink = sink_of(broker, "alerts", "written", key="?v")
    assert sink.fetch_cursor() is None
    sink.write([solution(1, "8.5"), solution(2, "8.5")])
    sink.write([solution(3, "8.5")])
    sink.close()
    other = sink_of(broker, "others", "written")
    assert other.fetch_cursor() is None  # a cursor is its own connector's
    other.write([solution(7, "9")])
    again = sink_of(broker, "alerts", "written")
    assert again.fetch_cursor() == Cursor(1, "i3", 3)
    found = [message for partition in range(PARTITIONS) for message in broker.read("written", partition)]
    keyed = [message for message in found if message.key() == b"8.5"]  # of one key, so in one partition and in order
    assert [json.loads(message.value())["id"] for message in keyed] == ["i1", "i2", "i3"]
    assert [message.offset() for message in keyed] == [0, 1, 3]  # the end of the first transaction is between them
    assert dict(keyed[0].headers()) == {"epsparql-id": b"q/1-i1"}
    assert [message.key() for message in found if message not in keyed] == [b"q/1-i7"]
    for each in (other, again):
        each.close()


def test_an_old_cursor_is_found_behind_many_of_others(broker: MockKafka) -> None:
    broker.create_topics("many")
    sink = sink_of(broker, "old", "many", cursor_topic="many", transactional_id="old-id")
    broker.publish("many", str(Cursor(1, "a", 1)), key="old-id")
    broker.publish("many", *["x"] * 10_500, key="other")
    assert sink.fetch_cursor() == Cursor(1, "a", 1)
    broker.publish("many", "no cursor", key="old-id")
    with pytest.raises(SystemFault, match="holds no cursor of a connector; give another cursor_topic"):
        sink.fetch_cursor()
    sink.close()


def test_missing_topics_and_wrong_keys_are_told(broker: MockKafka) -> None:
    with pytest.raises(SystemFault, match="Kafka has no topic 'nowhere'; create it"):
        sink_of(broker, "a", "nowhere").fetch_cursor()
    with pytest.raises(SystemFault, match="Kafka has no topic 'none'; create it with cleanup"):
        sink_of(broker, "a", "found", cursor_topic="none").fetch_cursor()
    with pytest.raises(WrongOption, match="key must be a variable such as"):
        sink_of(broker, "a", "found", key="station")
    with pytest.raises(SystemFault, match=r"ca_file: there is no file /none\.pem"):
        sink_of(broker, "a", "found", url=broker.url.replace("kafka", "kafkas"), ca_file="/none.pem").fetch_cursor()


# ---------------------------------------------------------------- processes
def connector_in(broker: MockKafka) -> dict[str, object]:
    return {"type": "kafka", "stream": "default", "url": broker.url, "topic": "readings"}


def test_a_partition_that_waits_for_others_does_not_hold_them_up(tmp_path: Path, broker: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition has far more than may wait for the other one, which is read by the same connector."""
    monkeypatch.setattr("connectors.inbound.delivery._AHEAD_S", 0.2)
    broker.publish("ahead", *(event(2 * number) for number in range(60)), partition=0)
    broker.publish("ahead", *(event(2 * number + 1) for number in range(60)), partition=1)
    connector = parse_connector("ahead", {"type": "kafka", "stream": "s", "url": broker.url, "topic": "ahead", "batch": 5})
    with serving(tmp_path, max_waiting=8) as url:
        client, stopping = Client(url), Event()
        client.create_stream("s", sources=["ahead:0", "ahead:1"])
        delivery = InboundDelivery(connector, KafkaSource(connector, {}), ServerAccess(url, None), StatusBoard(), stopping)
        thread = Thread(target=delivery.run)
        thread.start()
        try:
            wait_for(lambda: client.stream("s")["accepted"] == 120, "all messages")
        finally:
            stopping.set()
            thread.join()
        assert client.stream("s")["late"] == 0


@pytest.mark.soak
def test_every_message_is_evaluated_once_and_in_order_whoever_is_killed(tmp_path: Path) -> None:
    """The mock keeps messages in memory, so all are killed but the broker.

    Four partitions are the stream's declared sources.
    """
    chance = Random(10)
    with mock_kafka() as broker, restarted_server(tmp_path) as server:
        broker.create_topics("readings", "found", "epsparql-cursors")
        sources = [f"readings:{partition}" for partition in range(PARTITIONS)]
        server.client.create_stream("default", sources=sources)
        server.client.register("values", QUERY)
        out: dict[str, object] = {"type": "kafka", "query": "values", "url": broker.url, "topic": "found", "key": "?s"}
        with connecting(tmp_path, server.url, {"readings": connector_in(broker), "found": out}) as connect:
            publisher = PartitionPublisher(broker, "readings", PARTITIONS, event)
            try:
                victims = (lambda: connect.kill_worker(chance), server.restart, connect.restart)
                kill_at_random(victims, chance, lambda: sum(broker.count("found", partition) for partition in range(PARTITIONS)))
            finally:
                total = publisher.stop()
            wait_for(lambda: bool(server.client.stream("default")["accepted"] >= total), "the last message")
            server.client.finish("default")
            (partition,) = [each for each in range(PARTITIONS) if broker.count("found", each)]  # all solutions have one ?s
            wait_for(lambda: len(committed(broker.read("found", partition))) >= total, "the last solution")
        stream = server.client.stream("default")
        assert (stream["accepted"], stream["late"]) == (total, 0)
        solutions = server.client.solutions("values", limit=100_000)
        assert [int(each.binding["v"]["value"]) for each in solutions if each.binding] == list(range(total))
        found = committed(broker.read("found", partition))
        assert values_of(found) == list(range(total))
        assert len({json.loads(each)["id"] for each in found}) == total
        counts = [len(range(partition, total, PARTITIONS)) for partition in range(PARTITIONS)]
        assert server.client.sources("default") == dict(zip(sources, map(str, counts), strict=True))


def test_status_and_metrics_have_position_lag_and_faults_and_no_credential(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPSPARQL_CONNECTOR_KAFKA", SECRET)
    with mock_kafka() as broker, serving(tmp_path / "data") as url, closing(httpx.Client(base_url=url, timeout=30)) as http:

        def shown(name: str) -> dict[str, Any]:
            found: dict[str, Any] = http.get(f"/connectors/{name}").json()
            return found

        broker.publish("readings", event(0), event(1), partition=1)
        broker.publish("readings", "no event", event(2), partition=3)
        assert http.put("/connectors/readings", json=connector_in(broker) | {"on_error": "skip"}).status_code == 201
        wait_for(lambda: (shown("readings")["messages"], shown("readings")["skipped"]) == (3, 1), "the messages")
        wait_for(lambda: shown("readings")["lag"] == 0, "the lag")
        found = shown("readings")
        assert (found["state"], found["position"], found["faults"]) == ("running", "1@2, 3@2", 1)
        assert "the message before position 3@1 is left out" in found["fault"]
        metrics = http.get("/metrics").text
        assert 'epsparql_connector_lag{connector="readings"} 0.0' in metrics
        assert 'epsparql_connector_running{connector="readings"} 1.0' in metrics
        secured = connector_in(broker) | {"user": "me", "mechanism": "PLAIN", "password_env": "EPSPARQL_CONNECTOR_KAFKA"}
        assert http.put("/connectors/secured", json=secured).status_code == 201
        wait_for(lambda: shown("secured")["faults"] > 0, "the refusal of a broker that knows no user")
        answer = http.get("/connectors")
        assert "Kafka: " in shown("secured")["fault"]
        assert SECRET not in answer.text + http.get("/metrics").text
        broker.kill()
        wait_for(lambda: shown("readings")["state"] == "waiting", "the fault")
        assert "Connection refused" in shown("readings")["fault"]


REFUSED = [
    pytest.param({"url": f"kafka://me:{SECRET}@127.0.0.1:9092"}, "url holds a credential", id="password in the URL"),
    pytest.param({"url": "127.0.0.1:9092"}, "url must begin with kafka:// or kafkas:// and name a host", id="no scheme"),
    pytest.param({"url": "kafka://127.0.0.1?acks=0"}, "url has the parameter 'acks'; it may have none", id="parameter"),
    pytest.param({"password": SECRET}, "name its place with password_env or password_file", id="password"),
    pytest.param({"mechanism": "GSSAPI"}, "mechanism must be one of SCRAM-SHA-512, SCRAM-SHA-256, PLAIN", id="mechanism"),
    pytest.param({"cursor_topic": "c"}, "there is no option 'cursor_topic'", id="option of the other direction"),
    pytest.param({"topic": None}, "topic is missing", id="no topic"),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED)
def test_wrong_options_are_refused(changed: dict[str, object], message: str) -> None:
    given = {"type": "kafka", "stream": "s", "url": "kafka://one:9092,two:9092", "topic": "readings"}
    parse_connector("readings", given)
    with pytest.raises(WrongOption) as refused:
        parse_connector("readings", {name: value for name, value in (given | changed).items() if value is not None})
    assert message in str(refused.value)
    assert SECRET not in str(refused.value)

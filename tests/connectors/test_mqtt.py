"""MQTT in and out, against a real mosquitto: at least once and in order, across kills of everything, and with faults
that name the remedy.
"""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from rdflib import XSD, Literal, URIRef

from connectors.configuration import parse_connector
from connectors.errors import SystemFault, WrongOption
from connectors.inbound.mqtt import MqttSource
from connectors.outbound.mqtt import MqttSink
from connectors.outbound.sink import Cursor, SolutionMessage
from epsparql.client import Client as ServerClient
from tests.connectors.systems.brokers import Daemon, mosquitto
from tests.connectors.systems.chaos import EX, QUERY, connecting, event, kill_at_random, restarted_server, values_of, wait_for
from tests.server.conftest import serving

pytestmark = pytest.mark.slow
VERSIONS = ("5", "3.1.1")
AGAIN = 500
"""A publisher repeats its last messages when the broker was away: mosquitto answers shortly before it stores."""


def begin_client(port: int, client: Client) -> None:
    client.connect("127.0.0.1", port)
    client.loop_start()


def publish(port: int, topic: str, *payloads: str, retain: bool = False) -> None:
    client = Client(CallbackAPIVersion.VERSION2)
    begin_client(port, client)
    for payload in payloads:
        client.publish(topic, payload, 1, retain).wait_for_publish(5)
    client.disconnect()
    client.loop_stop()


class TopicPublisher:
    """Publishes numbered messages until it is stopped, in a thread."""

    def __init__(self, port: int, topic: str, payload: Callable[[int], str], every_s: float = 0.01) -> None:
        self._port, self._topic, self._payload, self._every_s = port, topic, payload, every_s
        self.published = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.05):
            client = Client(CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
            with suppress(OSError, RuntimeError):
                begin_client(self._port, client)
                number = max(self.published - AGAIN, 0)
                while not self._stopping.is_set() or number < self.published:
                    sent = client.publish(self._topic, self._payload(number), 1)
                    sent.wait_for_publish(2)
                    if not sent.is_published():
                        break
                    number += 1
                    self.published = max(self.published, number)
                    time.sleep(self._every_s)  # the pace; nothing is waited for
            client.disconnect()
            client.loop_stop()

    def stop(self) -> int:
        """Stop; return the number of messages that the broker has acknowledged."""
        self._stopping.set()
        self._thread.join()
        return self.published


class TopicSubscriber:
    """Collects the messages of a topic. Its session lasts, so it misses none; some may come again."""

    def __init__(self, port: int, topic: str) -> None:
        self.found: list[Any] = []
        self._topic = topic
        self._client = Client(CallbackAPIVersion.VERSION2, "subscriber", clean_session=False)
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = self._subscribe
        self._client.on_message = lambda _client, _data, message: self.found.append(message)
        begin_client(port, self._client)

    def _subscribe(self, *_: object) -> None:
        self._client.subscribe(self._topic, 1)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Daemon]:
    with mosquitto(tmp_path / "mosquitto") as found:
        yield found


def connector_in(broker: Daemon, **more: object) -> dict[str, object]:
    return {"type": "mqtt", "stream": "default", "url": f"mqtt://127.0.0.1:{broker.port}", "topic": "readings/#", **more}


def connector_out(broker: Daemon, **more: object) -> dict[str, object]:
    return {"type": "mqtt", "query": "values", "url": f"mqtt://127.0.0.1:{broker.port}", "topic": "found", **more}


def source_of(broker: Daemon, **more: object) -> MqttSource:
    return MqttSource(parse_connector("a", connector_in(broker, **more)), {})


def sink_of(broker: Daemon, **more: object) -> MqttSink:
    return MqttSink(parse_connector("a", connector_out(broker, **more)), {})


def read_all(source: MqttSource, number: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < number:  # pytest's own limit ends it
        found += [each.payload for each in source.read(10, 0.1)]
    return found


def test_every_message_is_evaluated_and_no_solution_comes_twice_whoever_is_killed(tmp_path: Path, broker: Daemon) -> None:
    """Messages that come again behind newer ones are not late, since the stream waits for them; equal ones are one
    event.
    """
    chance = Random(10)
    with restarted_server(tmp_path) as server:
        server.client.create_stream("default", max_delay="P30D")
        server.client.register("values", QUERY)
        publish(broker.port, "readings/a", event(0), retain=True)  # it tells when the connector has subscribed
        with connecting(tmp_path, server.url, {"readings": connector_in(broker)}) as connect:
            wait_for(lambda: server.client.stream("default")["accepted"] > 0, "the first message")
            publisher = TopicPublisher(broker.port, "readings/a", event)
            try:
                victims = (lambda: connect.kill_worker(chance), server.restart, broker.restart)
                kill_at_random(victims, chance, lambda: int(server.client.stream("default")["accepted"]))
            finally:
                total = publisher.stop()
            publish(broker.port, "readings/a", *map(event, range(max(total - AGAIN, 0), total + 1)))
            last = json.loads(event(total))["at"]
            wait_for(lambda: server.client.stream("default")["latest"] == last, "the last message")
        assert server.client.finish("default")["late"] == 0
        with server.client.follow("values") as subscription:
            assert [int(str(each["v"])) for each in subscription] == list(range(total + 1))


@pytest.mark.soak  # in CI, those who send messages in are killed
def test_every_solution_arrives_in_order_whoever_of_server_and_connector_is_killed(tmp_path: Path, broker: Daemon) -> None:
    """The broker stays: it acknowledges before it stores, so with it the last solutions may go."""
    chance, total = Random(11), 600
    with restarted_server(tmp_path) as server, closing(TopicSubscriber(broker.port, "found")) as found:
        server.client.register("values", QUERY)
        with connecting(tmp_path, server.url, {"found": connector_out(broker, batch=20)}) as connect:
            for first in range(0, total, 200):
                server.client.send("default", "\n".join(map(event, range(first, first + 200))))
                connect.kill_worker(chance)
                server.restart()
            wait_for(lambda: len({message.payload for message in found.found}) >= total, "the last solution")
        values = values_of([message.payload for message in found.found])
        assert list(dict.fromkeys(values)) == list(range(total))  # in order, but for repeats


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_that_was_not_confirmed_comes_again_and_first(version: str, broker: Daemon) -> None:
    source = source_of(broker, version=version, batch=5)
    source.seek(None)
    publish(broker.port, "readings/a", "0", "1", "", *map(str, range(2, 9)))
    texts = [str(number).encode() for number in range(9)]
    first = source.read(1, 5)
    assert [each.payload for each in first] == texts[:1]
    source.confirm(first[-1].position)
    source.close()
    source.seek(None)
    assert read_all(source, 3)[:3] == texts[1:4]
    source.close()
    source.close()


def test_topics_are_told_in_an_envelope_with_the_payload_as_written(broker: Daemon) -> None:
    source = source_of(broker, envelope=True)
    source.seek(None)
    publish(broker.port, "readings/a", "21.50", '{"t":\n 1}', "warm")
    assert read_all(source, 3) == [
        b'{"topic":"readings/a","payload":21.50}',
        b'{"topic":"readings/a","payload":{"t":  1}}',
        b'{"topic":"readings/a","payload":"warm"}',
    ]
    source.close()


def test_bare_numbers_become_triples_of_what_the_topic_names(tmp_path: Path, broker: Daemon) -> None:
    publish(broker.port, "readings/cellar", "21.50", retain=True)
    mapping = {"base": EX, "subject": "{+topic}", "properties": {"payload": ":value"}}
    with serving(tmp_path / "data") as url:
        client = ServerClient(url)
        client.create_stream("default", mapping=mapping)
        client.register("values", QUERY)
        with connecting(tmp_path, url, {"readings": connector_in(broker, envelope=True, format="application/json")}):
            (found,) = client.solutions("values", wait_s=60)
        assert (found["s"], found["v"]) == (URIRef(f"{EX}readings/cellar"), Literal("21.50", datatype=XSD.decimal, normalize=False))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_cursor_is_kept_beside_the_solutions(version: str, broker: Daemon) -> None:
    sink = sink_of(broker, version=version, retain=True)
    assert sink.fetch_cursor() is None
    documents = [{"query": "values", "id": f"i{number}"} for number in range(3)]
    written = [SolutionMessage(each, json.dumps(each).encode(), Cursor(1, each["id"], number)) for number, each in enumerate(documents, 1)]
    sink.write(written)
    sink.close()
    assert sink.fetch_cursor() == Cursor(1, "i2", 3)
    with closing(TopicSubscriber(broker.port, "found")) as later:
        wait_for(lambda: bool(later.found), "the last solution")
        assert [json.loads(message.payload) for message in later.found] == documents[2:]
    publish(broker.port, "found/cursor", "x", retain=True)
    with pytest.raises(SystemFault, match="give another cursor_topic"):
        sink.fetch_cursor()
    sink.close()


def test_faults_are_told(tmp_path: Path, broker: Daemon) -> None:
    with pytest.raises(WrongOption, match="no wildcard"):
        sink_of(broker, topic="found/+")
    source = source_of(broker)
    source.seek(None)
    broker.kill()
    with pytest.raises(SystemFault, match="has closed the connection"):
        read_all(source, 1)
    source.close()
    with pytest.raises(SystemFault, match="Connection refused"):
        source.seek(None)
    source.close()
    source.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves the socket of a refused certificate to the collector
def test_a_broker_with_tls_and_passwords(tmp_path: Path) -> None:
    key, certificate, passwords = (tmp_path / name for name in ("key.pem", "cert.pem", "passwords"))
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    subprocess.run([*made, "-keyout", key, "-out", certificate, *names], check=True, capture_output=True)
    subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, "me", "s3cret"], check=True, capture_output=True)
    secured = [f"certfile {certificate}", f"keyfile {key}", f"password_file {passwords}", "allow_anonymous false"]
    with mosquitto(tmp_path / "mosquitto", *secured) as broker:
        given = connector_in(broker, url=f"mqtts://127.0.0.1:{broker.port}", user="me", ca_file=str(certificate))
        source = MqttSource(parse_connector("a", given), {"password": "s3cret"})
        source.seek(None)
        source.close()
        with pytest.raises(SystemFault, match=r"(?i)not authori[sz]ed") as refused:
            MqttSource(parse_connector("a", given), {"password": "wr0ng"}).seek(None)
        assert "wr0ng" not in str(refused.value)
        with pytest.raises(SystemFault, match="CERTIFICATE_VERIFY_FAILED"):
            MqttSource(parse_connector("a", {name: value for name, value in given.items() if name != "ca_file"}), {}).seek(None)

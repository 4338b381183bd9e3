"""The pages of the cookbook about other systems: their files are written and their commands run as they stand, on
ports of the test's own.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from epsparql.client import Client
from tests.connectors.systems.brokers import free_port, mosquitto, nats_server, postgresql
from tests.connectors.systems.chaos import wait_for
from tests.connectors.systems.event_publisher import EventPublisher
from tests.connectors.systems.jetstream import count_messages, create_stream, with_jetstream
from tests.connectors.systems.mqtt_devices import DEADLINE_S, display

pytestmark = pytest.mark.slow
COOKBOOK = Path(__file__).parents[2] / "docs/cookbook"
FILE = re.compile(r"`([\w.]+)`[^`]*?:\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_COMMANDS = 5


class Page:
    """A page whose ports are replaced, in a directory with its files."""

    def __init__(self, name: str, directory: Path, ports: Mapping[int, int]) -> None:
        self.text, self._directory = (COOKBOOK / name).read_text(encoding="utf-8"), directory
        for port, free in ports.items():
            self.text = self.text.replace(f":{port}", f":{free}").replace(f"-p {port}", f"-p {free}")
        for file, content in FILE.findall(self.text):
            (directory / file).write_text(content)

    def blocks(self, language: str) -> list[str]:
        return re.findall(rf"^```{language}\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)

    @property
    def commands(self) -> list[str]:
        return [line for block in COMMANDS.findall(self.text) for line in block.splitlines()]

    @contextmanager
    def running(self, command: str, port: int) -> Iterator[None]:
        """Run the page's server, on a port of the test's own, until the block is left.

        The words are the page's; the process is a fork, which costs less.
        """
        assert command.endswith(" &")
        program, *words = shlex.split(command.removesuffix(" &"))
        assert program == "epsparql"
        started = [sys.executable, "-m", "server.cli", *words, "--port", str(port), "--runner", "inprocess"]
        with (self._directory / "server.log").open("wb") as log:
            process = subprocess.Popen(started, cwd=self._directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def run(self, command: str) -> str:
        return subprocess.run(
            ["bash", "-c", command], cwd=self._directory, env=environment(), check=True, capture_output=True, text=True, timeout=90
        ).stdout


def environment() -> dict[str, str]:
    return os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    "name", ["files.md", "home-assistant.md", "kafka.md", "ldes.md", "mqtt.md", "nats.md", "postgresql.md", "sse.md", "wikidata.md"]
)
def test_a_page_has_few_commands(name: str, tmp_path: Path) -> None:
    assert 0 < len(Page(name, tmp_path, {}).commands) <= MOST_COMMANDS


def test_nats(tmp_path: Path) -> None:
    with nats_server(tmp_path / "jetstream") as broker:
        port = free_port()
        page = Page("nats.md", tmp_path, {4222: broker.port, 8080: port})
        url = f"nats://127.0.0.1:{broker.port}"
        create_stream(url, "READINGS", "readings.>")
        create_stream(url, "ALERTS", "alerts.>")
        serve, register, solutions, connectors = page.commands
        with page.running(serve, port):
            page.run(register)
            (message,) = page.blocks("json")

            async def publish(streams: Any) -> None:
                await streams.publish("readings.a", message.strip().encode())

            with_jetstream(url, publish)
            assert '"station":{"type":"uri","value":"http://example.org/ewr"}' in page.run(solutions)
            wait_for(lambda: count_messages(url, "ALERTS") == 1, "the alert")
            wait_for(lambda: page.run(connectors).count('"state":"running"') == 2, "two connectors that run")


def test_mqtt(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "mosquitto") as broker:
        port = free_port()
        page = Page("mqtt.md", tmp_path, {1883: broker.port, 8080: port})
        serve, create, register, publish, solutions = page.commands
        with page.running(serve, port):
            for command in (create, register, publish):
                page.run(command)
            found = page.run(solutions)
            assert "http://example.org/sensors/cellar" in found
            assert "31.50" in found
            with display(broker.port, "alerts/hot") as shown:
                assert b"31.50" in shown.get(timeout=DEADLINE_S)


def test_home_assistant(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "mosquitto") as broker:
        port = free_port()
        page = Page("home-assistant.md", tmp_path, {1883: broker.port, 8080: port})
        serve, create, register, publish, solutions = page.commands
        with page.running(serve, port), display(broker.port, "epsparql/warm") as shown:
            for command in (create, register, publish):
                page.run(command)
            assert "http://example.org/zigbee2mqtt/freezer" in page.run(solutions)
            for cold, warm in (("-9.5", "-9.5"), ("-16.5", "-8.5")):
                page.run(publish.replace("-9.5", cold))
                page.run(publish.replace("-9.5", warm))
                assert json.loads(shown.get(timeout=DEADLINE_S))["binding"]["t"]["value"] == warm


def test_kafka(tmp_path: Path) -> None:
    Page("kafka.md", tmp_path, {})
    with subprocess.Popen([sys.executable, "broker.py"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdin is not None  # its end ends the broker
        assert broker.stdout is not None
        address = re.search(r"127\.0\.0\.1:(\d+)", broker.stdout.readline())
        assert address is not None
        port = free_port()
        page = Page("kafka.md", tmp_path, {9092: int(address[1]), 8080: port})
        serve, create, register, send, read = page.commands
        with page.running(serve, port):
            for command in (create, register, send):
                page.run(command)
            found = page.run(read)
        assert "http://example.org/cellar" in found
        assert "31.50" in found


def test_postgresql(tmp_path: Path) -> None:
    with postgresql() as database:
        port = free_port()
        page = Page("postgresql.md", tmp_path, {5432: database.port, 8080: port})
        create, serve, register, solutions, read = page.commands
        page.run(create)
        with page.running(serve, port):
            page.run(register)
            assert "http://example.org/ewr" in page.run(solutions)
            wait_for(lambda: "31.5" in page.run(f"{read} 2>&1 || true"), "the alert")


def test_files(tmp_path: Path) -> None:
    port = free_port()
    page = Page("files.md", tmp_path, {8080: port})
    serve, mapping, register, append, solutions = page.commands
    with page.running(serve, port):
        page.run(mapping)
        page.run(register)
        wait_for(lambda: "kitchen" in page.run(solutions), "the first solution")
        page.run(append)
        wait_for(lambda: page.run(solutions).count("sensor/cellar") == 1, "the solution of the appended row")


def test_event_streams(tmp_path: Path) -> None:
    first, second = free_port(), free_port()
    page = Page("ldes.md", tmp_path, {8080: first, 8081: second})
    serve, register, send, follow, look = page.commands
    with page.running(serve, first):
        page.run(register)
        page.run(send)
        with page.running(follow, second):
            assert "http://example.org/fire" in page.run(look)


EDITS = [("A", "edit", "Ann"), ("B", "edit", "Ann"), ("A", "log", "Bob"), ("A", "edit", "Ann"), ("A", "edit", "Cem"), ("C", "edit", "Ann")]
"""Edits in the form that Wikimedia gives them, as far as the page reads it: page, type, user. One lasts 10 s."""


def test_server_sent_events(tmp_path: Path) -> None:
    port, address = free_port(), "https://stream.wikimedia.org/v2/stream/recentchange"
    page = Page("sse.md", tmp_path, {8080: port})
    serve, create, register, connect, solutions = page.commands
    with closing(EventPublisher()) as publisher, page.running(serve, port):
        for number, (title, kind, user) in enumerate(EDITS):
            edit = {"title_url": f"https://de.wikipedia.org/wiki/{title}", "type": kind, "user": user, "meta": {"dt": f"2026-01-01T00:00:{number}0Z"}}
            publisher.events.append(f"event: message\nid: {{id}}\ndata: {json.dumps(edit)}\n\n")
        connector = tmp_path / "connector.json"
        assert address in connector.read_text()
        connector.write_text(connector.read_text().replace(address, publisher.url))
        for command in (create, register, connect):
            page.run(command)
        found = [json.loads(line)["binding"] for line in page.run(solutions).splitlines()]
    assert [{name: term["value"] for name, term in each.items()} for each in found] == [
        {"page": "https://de.wikipedia.org/wiki/A", "first": "Ann", "second": "Cem"}
    ] * len(found)
    assert found


WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"


def generate_changes() -> Iterator[dict[str, Any]]:
    """Yield changes in the form of Wikidata's mutation stream.

    Q1 has a class for ten minutes and another one to the end; Q2 has one for two hours; Q3 is deleted; Q4 comes in
    two messages.
    """
    steps: list[tuple[str, str, int, dict[str, str]]] = [
        ("00:00", "Q1", 0, {"added": "wd:Q1 wdt:P31 wd:Q5 ."}), ("00:00", "Q2", 0, {"added": "wd:Q2 wdt:P31 wd:Q5 ."}),
        ("00:10", "Q1", 0, {"deleted": "wd:Q1 wdt:P31 wd:Q5 .", "added": "wd:Q1 wdt:P31 wd:Q6 ."}), ("00:20", "Q3", 0, {}),
        ("01:00", "Q4", 0, {"added": "wd:Q4 wdt:P31 wd:Q5 ."}), ("01:00", "Q4", 1, {"added": "wd:Q4 wdt:P31 wd:Q6 ."}),
        ("02:00", "Q2", 0, {"deleted": "wd:Q2 wdt:P31 wd:Q5 ."}), ("04:00", "Q9", 0, {"added": "wd:Q9 wdt:P31 wd:Q5 ."}),
    ]  # fmt: skip
    prefixes = f"@prefix wd: <{WD}> . @prefix wdt: <{WDT}> . "
    for revision, (time, entity, sequence, chunks) in enumerate(steps):
        yield {
            "meta": {"domain": "www.wikidata.org"}, "dt": f"2026-01-01T{time}:00Z", "entity_id": entity, "rev_id": revision,
            "operation": "diff" if chunks else "delete", "sequence": sequence, "sequence_length": 2 if entity == "Q4" else 1,
        } | {f"rdf_{name}_data": {"mime_type": "text/turtle", "data": prefixes + text} for name, text in chunks.items()}  # fmt: skip


def test_changes_of_wikidata(tmp_path: Path) -> None:
    """The page's queries on generated changes, of which one cannot be read."""
    port, address = free_port(), "https://stream.wikimedia.org/v2/stream/rdf-streaming-updater.mutation-main.v2"
    page = Page("wikidata.md", tmp_path, {8080: port})
    serve, create, register, connect, solutions = page.commands
    client = Client(f"http://127.0.0.1:{port}")
    (lasting,) = re.findall(r"`(\{ GRAPH change:added .*?)`", page.text)
    prefixes, (chunk,) = (tmp_path / "reverted.rq").read_text().partition("SELECT")[0], {"?item wdt:P31 ?class"}
    with closing(EventPublisher()) as publisher, page.running(serve, port):
        changes: list[dict[str, Any]] = [{"no": "change"}, *generate_changes()]
        publisher.events = [f"event: message\nid: {{id}}\ndata: {json.dumps(each)}\n\n" for each in changes]
        connector = tmp_path / "connector.json"
        assert address in connector.read_text()
        connector.write_text(connector.read_text().replace(address, publisher.url))
        page.run(create)
        page.run(register)
        client.register("lasting", f"{prefixes} SELECT ?item ?class FROM STREAM <wikidata> WHERE {{ {lasting.replace('…', chunk)} }}")
        client.register("gone", f'{prefixes} SELECT ?item FROM STREAM <wikidata> WHERE {{ ?item change:operation "delete" }}')
        page.run(connect)
        assert read_terms(json.loads(line)["binding"] for line in page.run(solutions).splitlines()) == [("Q1", "Q5")]
        wait_for(lambda: len(client.solutions("lasting")) == 4, "statements that last for an hour")
        assert read_terms(each.binding for each in client.solutions("lasting")) == [("Q1", "Q6"), ("Q2", "Q5"), ("Q4", "Q5"), ("Q4", "Q6")]
        assert read_terms(each.binding for each in client.solutions("gone")) == [("Q3",)]
        assert client.stream("wikidata")["rejected"] == 1


def read_terms(bindings: Iterable[Mapping[str, Any] | None]) -> list[tuple[str, ...]]:
    """Return the names that each solution binds, in the order of the alphabet."""
    return sorted(tuple(term["value"].removeprefix(WD) for term in (each or {}).values()) for each in bindings)

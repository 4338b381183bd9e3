"""A server is killed with -9 while the SDK of OpenTelemetry sends to it: its retries bring each record once."""

import threading
import time
from pathlib import Path
from random import Random

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource

from tests.connectors.systems.chaos import DEADLINE_S, RestartedServer
from tests.server.conftest import until
from tests.soak import is_full

pytestmark = pytest.mark.slow
KILLS = 20 if is_full() else 2
QUERY = """PREFIX otel: <urn:epsparql:otel:> PREFIX attribute: <urn:epsparql:otel:attribute:>
SELECT ?number WHERE { ?log a otel:Log ; attribute:number ?number ; otel:body "tick" }"""


class TickSender(threading.Thread):
    """Exports records one after the other, until it is stopped. The SDK itself tries each again."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.sent, self.over = 0, threading.Event()
        exporter = OTLPLogExporter(f"{url}/streams/default/otlp/v1/logs", timeout=DEADLINE_S)
        self._provider = LoggerProvider(resource=Resource({}), shutdown_on_exit=False)
        self._provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))

    def run(self) -> None:
        logger = self._provider.get_logger("clock")
        while not self.over.is_set():
            logger.emit(body="tick", attributes={"number": self.sent})
            self.sent += 1


def test_each_record_is_evaluated_once(tmp_path: Path) -> None:
    chance, server = Random(51), RestartedServer(tmp_path)
    sender = TickSender(server.url)
    try:
        server.client.register("ticks", QUERY)
        sender.start()
        for _ in range(KILLS):
            wait_for_records(sender, chance.randrange(3, 20))
            time.sleep(chance.uniform(0, 0.02))  # the kill comes anywhere in an exchange
            server.restart()
        wait_for_records(sender, 1)
        sender.over.set()
        sender.join()
        server.client.finish("default")
        until(lambda: len(server.client.solutions("ticks", limit=10_000)) >= sender.sent, "all solutions", DEADLINE_S)
        found = [int((each.binding or {})["number"]["value"]) for each in server.client.solutions("ticks", limit=10_000)]
        assert found == list(range(sender.sent))
        assert server.client.stream("default")["late"] == 0
    finally:
        sender.over.set()
        server.close()


def wait_for_records(sender: TickSender, count: int) -> None:
    enough = sender.sent + count
    until(lambda: sender.sent >= enough, "records are taken", DEADLINE_S)

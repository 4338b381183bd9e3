"""librdkafka's mock broker in a process of its own, and plain clients of Kafka for tests.

The mock speaks the protocol and keeps messages in memory, so a kill loses them. It takes transactions, but it shows
what was not committed, and fences no earlier producer.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

_MOCK = """
from confluent_kafka import Producer
broker = Producer({"test.mock.num.brokers": 1, "log_level": 0})
(found,) = broker.list_topics(timeout=60).brokers.values()
print(f"{found.host}:{found.port}", flush=True)
input()
"""
PATIENCE_S = 60.0


class MockKafka:
    """A mock broker. Its topics have four partitions each."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", _MOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address

    @property
    def url(self) -> str:
        return f"kafka://{self.address}"

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def create_topics(self, *topics: str) -> None:
        """Create topics, which the mock does when a client asks for one that it lets be created."""
        producer = self.producer()
        for topic in topics:
            producer.list_topics(topic, PATIENCE_S)

    def producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.address, "enable.idempotence": True, "log_level": 0})

    def publish(self, topic: str, *payloads: str | bytes | None, partition: int = 0, key: str | None = None) -> None:
        producer = self.producer()
        for payload in payloads:
            producer.produce(topic, payload, key, partition)
        assert producer.flush(PATIENCE_S) == 0

    def read(self, topic: str, partition: int = 0) -> list[Any]:
        """All messages of a partition."""
        found = list[Any]()
        settings = {"bootstrap.servers": self.address, "group.id": "tests", "enable.partition.eof": True, "log_level": 0}
        with closing(Consumer(settings)) as consumer:
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                message = consumer.poll(PATIENCE_S)
                assert message is not None
                error = message.error()
                if error is None:
                    found.append(message)
                    continue
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found

    def count(self, topic: str, partition: int = 0) -> int:
        """The number of offsets of a partition, of which each transaction has one too."""
        with closing(Consumer({"bootstrap.servers": self.address, "group.id": "tests", "log_level": 0})) as consumer:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_S)
        return int(end)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def mock_kafka() -> Iterator[MockKafka]:
    broker = MockKafka()
    try:
        yield broker
    finally:
        broker.kill()


class PartitionPublisher:
    """Publishes numbered messages to the partitions of a topic in turn until it is stopped, in a thread."""

    def __init__(self, broker: MockKafka, topic: str, partitions: int, payload: Callable[[int], str], every_s: float = 0.01) -> None:
        self._producer, self._topic, self._partitions, self._payload, self._every_s = broker.producer(), topic, partitions, payload, every_s
        self._published = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(self._every_s):
            self._producer.produce(self._topic, self._payload(self._published), partition=self._published % self._partitions)
            self._published += 1

    def stop(self) -> int:
        """Stop; return the number of messages that the broker has."""
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0
        return self._published


def committed(messages: Sequence[Any]) -> list[bytes]:
    """The payloads that a real broker would show, of messages of one producer at a time.

    The end of a transaction takes an offset, so it is a gap between two messages. What a killed producer left open is
    before the repeat by the next one, in the same stretch between two gaps. The mock shows both, a broker the repeat
    alone; a repeat across a gap stays one here.
    """
    found, stretch, following = list[bytes](), list[bytes](), 0
    for message in messages:
        if message.offset() != following:
            found += stretch
            stretch = []
        if message.value() in stretch:
            del stretch[stretch.index(message.value()) :]
        stretch.append(message.value())
        following = message.offset() + 1
    return found + stretch

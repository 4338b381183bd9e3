"""Holds what reading and writing Kafka share: the clients of confluent-kafka with their settings, and their faults as
those of connectors.

The clients connect again by themselves, so what they say about brokers meanwhile is kept: it is told once no broker
is left, or a call fails.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from connectors.configuration import Connector
from connectors.errors import SystemFault

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

PATIENCE_S = 10.0
_SECURE = "kafkas"
_FILES = {"ca_file": "ssl.ca.location", "cert_file": "ssl.certificate.location", "key_file": "ssl.key.location"}
_ATTEMPT_S, _HEAR_S = 1.0, 0.1
_MOST = 10_000
"""One call takes at most so many messages."""


class KafkaConnection:
    """Opens clients for the brokers that the options name."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options, parts = connector.options, urlsplit(connector.options["url"])
        protocol = "SSL" if parts.scheme == _SECURE else "PLAINTEXT"
        settings = {
            "bootstrap.servers": parts.netloc,
            "client.id": f"epsparql-{connector.name}",
            "security.protocol": f"SASL_{protocol}" if options["user"] else protocol,
            "sasl.mechanism": options["mechanism"] if options["user"] else None,
            "sasl.username": options["user"],
            "sasl.password": credentials.get("password"),
            **{setting: options[option] for option, setting in _FILES.items()},
            "allow.auto.create.topics": False,
            "log_level": 0,
            "error_cb": self._keep_fault,
        }
        self._settings = {name: value for name, value in settings.items() if value is not None}
        self._group = f"epsparql-{connector.name}"
        self._said, self._down = "", False

    def open_consumer(self) -> "Consumer":
        """Return a consumer of committed messages, which stores nothing at the brokers. Raises: SystemFault."""
        from confluent_kafka import Consumer

        self._begin()
        reading = {"group.id": self._group, "enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": True}
        with self.faults():
            return Consumer({**self._settings, **reading, "isolation.level": "read_committed"})

    def open_producer(self, transactional_id: str) -> "Producer":
        """Return a producer of transactions. Raises: SystemFault."""
        from confluent_kafka import Producer

        self._begin()
        writing = {"transactional.id": transactional_id, "partitioner": "murmur2_random", "queue.buffering.max.messages": 0}
        with self.faults():
            return Producer({**self._settings, **writing})

    def _begin(self) -> None:
        """Forget what earlier clients said, and check that the files are there, which the client would not name.

        Raises: SystemFault.
        """
        self._said, self._down = "", False
        for option in _FILES:
            path = self._settings.get(_FILES[option])
            if path is not None and not Path(path).is_file():
                raise SystemFault(f"{option}: there is no file {path}")

    def count_partitions(self, client: "Consumer | Producer", topic: str, remedy: str = "create it") -> int:
        """Return how many partitions a topic has. Raises: SystemFault."""
        from confluent_kafka import KafkaError

        found = self._fetch_topic(client, topic)
        if found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise SystemFault(f"Kafka has no topic {topic!r}; {remedy}")
        if found.error is not None:
            raise SystemFault(f"Kafka: the topic {topic!r}: {found.error.str()}")
        return len(found.partitions)

    def _fetch_topic(self, client: "Consumer | Producer", topic: str) -> Any:
        """Return what the brokers say of a topic. Where none is left, that is told at once."""
        from confluent_kafka import Consumer

        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self.faults(client):
                    return client.list_topics(topic, _ATTEMPT_S).topics[topic]
            except SystemFault:
                reads = isinstance(client, Consumer) and client.assignment()  # a message may have been taken meanwhile, so it begins anew
                if self._down or reads or time.monotonic() > deadline:
                    raise

    def take_messages(self, consumer: "Consumer", most: int, wait_s: float) -> "Sequence[Message]":
        """Return up to `most` messages; wait for a first one.

        The end of a partition comes as a message too. Raises: SystemFault.
        """
        from confluent_kafka import KafkaError

        with self.faults():
            found = consumer.consume(1, wait_s)
            if found and most > 1:
                found += consumer.consume(min(most, _MOST) - 1, 0)
        if self._down:
            raise SystemFault(f"Kafka: no broker is left{self._hear(consumer)}")
        for each in found:
            error = each.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise SystemFault(f"Kafka: {error.str()}")
        return found

    def _keep_fault(self, fault: "KafkaError") -> None:
        from confluent_kafka import KafkaError

        if fault.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down = True
        else:
            self._said = fault.str()

    @contextmanager
    def faults(self, client: "Consumer | Producer | None" = None) -> Iterator[None]:
        """Turn faults of the client into SystemFault, with what it said before about its brokers."""
        from confluent_kafka import KafkaException

        try:
            yield
        except (KafkaException, BufferError, ValueError) as error:
            cause: Any = error.args[0] if error.args else error
            text = cause.str() if isinstance(error, KafkaException) else str(cause)
            raise SystemFault(f"Kafka: {text}{self._hear(client)}") from None

    def _hear(self, client: "Consumer | Producer | None") -> str:
        """Return what a client says that failed, which is to be used no more."""
        if client is not None:
            client.poll(0 if self._said else _HEAR_S)
        return f"; {self._said}" if self._said else ""

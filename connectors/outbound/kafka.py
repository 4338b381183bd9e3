"""Writes solutions to a topic of Kafka: the solutions and the cursor in one transaction.

The cursor is the last message of a compacted topic with the connector's key, which is its transactional id. A
producer that begins ends whatever an earlier one with this id left, so no transaction can come behind the cursor that
is read then.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from connectors.configuration import Connector
from connectors.connections.kafka import PATIENCE_S, KafkaConnection
from connectors.errors import SystemFault, WrongOption
from connectors.outbound.columns import VARIABLE, find_value
from connectors.outbound.sink import Cursor, Sink, SolutionMessage, parse_cursor

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

_ID = "epsparql-id"
_CURSORS = 0
"""Cursors are in this partition of their topic."""
_NEWEST = 10_000
"""A cursor is looked for among so many of the last messages first."""
_WAIT_S = 0.5


class KafkaSink(Sink):
    """Writes to one topic."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        self._topic, self._cursor_topic, self._key = options["topic"], options["cursor_topic"], options["key"]
        if self._key is not None and not self._key.startswith(VARIABLE):
            raise WrongOption(f"key must be a variable such as ?station, not {self._key!r}")
        self._id = options["transactional_id"] or f"epsparql-{connector.name}"
        self._connection = KafkaConnection(connector, credentials)
        self._producer: Producer | None = None

    def fetch_cursor(self) -> Cursor | None:
        self.close()
        self._producer = producer = self._connection.open_producer(self._id)
        self._connection.count_partitions(producer, self._topic)
        self._connection.count_partitions(producer, self._cursor_topic, "create it with cleanup.policy=compact")
        with self._connection.faults(producer):
            producer.init_transactions(PATIENCE_S)
        with closing(self._connection.open_consumer()) as consumer:
            return self._read_cursor(consumer)

    def _read_cursor(self, consumer: "Consumer") -> Cursor | None:
        """Return the cursor; the newest messages are read first, since the topic may be long. Raises: SystemFault."""
        from confluent_kafka import TopicPartition

        with self._connection.faults(consumer):
            first, end = consumer.get_watermark_offsets(TopicPartition(self._cursor_topic, _CURSORS), PATIENCE_S)
        for start in sorted({max(first, end - _NEWEST), first}, reverse=True):
            text = self._find_last(consumer, start, end)
            if text is None:
                continue
            try:
                return parse_cursor(text.decode(errors="replace"))
            except ValueError:
                raise SystemFault(f"the topic {self._cursor_topic!r} holds no cursor of a connector; give another cursor_topic") from None
        return None

    def _find_last(self, consumer: "Consumer", start: int, end: int) -> bytes | None:
        """Return the last value with the connector's key between two offsets; None if there is none.

        Raises: SystemFault.
        """
        from confluent_kafka import TopicPartition

        with self._connection.faults(consumer):
            consumer.assign([TopicPartition(self._cursor_topic, _CURSORS, start)])
        found, at, deadline = None, start, time.monotonic() + PATIENCE_S
        while at < end:
            if time.monotonic() > deadline:
                raise SystemFault(f"Kafka: {self._cursor_topic!r} cannot be read to its end; another producer's transaction may be open")
            for each in self._connection.take_messages(consumer, end - at, _WAIT_S):
                offset = each.offset()
                assert offset is not None
                if each.error() is not None:
                    at = offset
                    continue
                at, deadline = offset + 1, time.monotonic() + PATIENCE_S
                if each.key() == self._id.encode():
                    found = each.value()
        return found

    def write(self, solutions: Sequence[SolutionMessage]) -> None:
        producer = self._producer
        assert producer is not None
        with self._connection.faults(producer):
            producer.begin_transaction()
            for each in solutions:
                key = find_value(self._key, each) if self._key else each.key
                producer.produce(self._topic, each.text, key, headers={_ID: each.key.encode()})
            if producer.flush(PATIENCE_S):
                raise SystemFault(f"Kafka does not take the solutions for {self._topic!r} in time")
            # the cursor goes last, so that not even whoever reads uncommitted messages sees it before its solutions
            producer.produce(self._cursor_topic, str(solutions[-1].cursor), self._id, _CURSORS)
            producer.commit_transaction(PATIENCE_S)

    def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()  # else it would wait for brokers that are away; what it left open is ended by the next one

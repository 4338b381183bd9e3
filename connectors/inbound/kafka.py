"""Reads the partitions of a topic of Kafka, each from an offset on.

The consumer is assigned to all partitions, and joins no group: Kafka stores nothing about the connector. Each
partition is a part of its own, whose position is the offset of the next message.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from connectors.configuration import Connector
from connectors.connections.kafka import PATIENCE_S, KafkaConnection
from connectors.errors import SystemFault
from connectors.inbound.bodies import wrap_payload
from connectors.inbound.source import Message, Source

if TYPE_CHECKING:
    import confluent_kafka

_LOOK_S = 60.0  # further partitions of the topic are looked for this often
_ANEW = "it was made anew; give the connector another source"


class KafkaSource(Source):
    """Reads all partitions of one topic."""

    has_parts = True

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        self._topic, self._envelope = connector.options["topic"], connector.options["envelope"]
        self._connection = KafkaConnection(connector, credentials)
        self._consumer: confluent_kafka.Consumer | None = None
        self._next, self._ends = dict[int, int](), dict[int, int]()
        self._missed, self._looked_s = 0, 0.0

    def seek_parts(self, positions: Mapping[str, str]) -> None:
        self.close()
        self._next, self._ends, self._missed = {}, {}, 0
        self._consumer = self._connection.open_consumer()
        self._add_partitions({int(part): position for part, position in positions.items() if part.isdecimal()})

    @property
    def consumer(self) -> "confluent_kafka.Consumer":
        assert self._consumer is not None
        return self._consumer

    def _add_partitions(self, positions: Mapping[int, str]) -> None:
        """Assign the partitions that are not yet read, each at its position or its first message. Raises: SystemFault."""
        from confluent_kafka import TopicPartition

        total = self._connection.count_partitions(self.consumer, self._topic)
        if any(partition >= total for partition in positions):
            raise SystemFault(f"the topic {self._topic!r} has {total} partitions, fewer than the stored positions: {_ANEW}")
        added = []
        with self._connection.faults(self.consumer):
            for partition in range(len(self._next), total):
                first, end = self.consumer.get_watermark_offsets(TopicPartition(self._topic, partition), PATIENCE_S)
                self._next[partition] = self._find_offset(partition, positions.get(partition), first, end)
                self._ends[partition] = end
                added.append(TopicPartition(self._topic, partition, self._next[partition]))
            if added:
                self.consumer.incremental_assign(added)
        self._looked_s = time.monotonic()

    def _find_offset(self, partition: int, position: str | None, first: int, end: int) -> int:
        """Return the offset to read from, and count what is gone before it. Raises: SystemFault."""
        if position is None:
            return first
        if not position.isdecimal():
            raise SystemFault(f"the stored position {position!r} is no offset of Kafka; give the connector another source")
        if int(position) > end:
            raise SystemFault(f"partition {partition} of the topic {self._topic!r} ends at {end}, before the stored position {position}: {_ANEW}")
        self._missed += max(first - int(position), 0)
        return max(first, int(position))

    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        if time.monotonic() - self._looked_s > _LOOK_S:
            self._add_partitions({})
        found = defaultdict[int, list[Message]](list)
        for each in self._connection.take_messages(self.consumer, most, wait_s):
            partition, offset, payload = each.partition(), each.offset(), each.value()
            assert partition is not None
            assert offset is not None
            if each.error() is not None:  # the end, which may lie behind what only Kafka reads
                self._next[partition] = offset
                continue
            self._next[partition] = offset + 1
            if payload:
                text = _wrap(each, payload) if self._envelope else payload
                found[partition].append(Message(text, str(offset + 1), part=str(partition), origin=f"topic {self._topic!r}"))
        return [message for partition in sorted(found) for message in found[partition]]

    def get_lag(self) -> int | None:
        from confluent_kafka import TopicPartition

        with self._connection.faults():
            for partition in self._next:
                _, end = self.consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
                self._ends[partition] = max(self._ends[partition], end)
        return sum(max(self._ends[partition] - offset, 0) for partition, offset in self._next.items())

    def count_missed(self) -> int:
        return self._missed

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


def _wrap(message: "confluent_kafka.Message", payload: bytes) -> bytes:
    """Return an object of JSON with a message's key as a string, the time that Kafka has for it in milliseconds, and
    its payload.
    """
    key, (_, timestamp) = message.key(), message.timestamp()
    members = {"key": key.decode(errors="replace") if isinstance(key, bytes) else key, "timestamp": timestamp}
    return wrap_payload(members, payload)

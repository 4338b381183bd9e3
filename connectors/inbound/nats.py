"""Reads a JetStream stream of NATS from a sequence on.

An ephemeral pull consumer without acknowledgements is created at the sequence: the broker stores nothing about the
connector. Positions are the stream's sequence numbers. A message that is lost on the way shows as a gap in the
consumer's own sequence, and the source is opened again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from connectors.configuration import Connector
from connectors.connections.nats import NatsConnection, faults
from connectors.errors import SystemFault
from connectors.inbound.source import Message, Source

_IDLE_S = 60.0  # the broker removes the consumer of a connector that is gone after this time


class JetStreamSource(Source):
    """Reads one JetStream stream."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        self._stream, self._subject = options["jetstream"], options["subject"]
        self._connection = NatsConnection(options, credentials)
        self._subscription: Any = None
        self._taken, self._delivered, self._lag, self._missed = 0, 0, 0, 0

    def seek(self, position: str | None) -> None:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        self._connection.connect()
        after = int(position or 0)
        with faults():
            state = self._connection.run(self._connection.jetstream.stream_info(self._stream)).state
            if after > state.last_seq:
                raise SystemFault(
                    f"the JetStream stream {self._stream!r} ends at {state.last_seq}, before the stored position {after}: it was made anew; "
                    "give the connector another source"
                )
            self._missed = max(state.first_seq - after - 1, 0) if after else 0
            wanted = ConsumerConfig(
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=after + 1,
                ack_policy=AckPolicy.NONE,
                inactive_threshold=_IDLE_S,
                mem_storage=True,
            )
            subscribe = self._connection.jetstream.pull_subscribe(self._subject or "", stream=self._stream, config=wanted)
            self._subscription = self._connection.run(subscribe)
            self._taken, self._delivered = 0, 0
            self._lag = self._connection.run(self._subscription.consumer_info()).num_pending or 0

    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        with faults():
            found = self._connection.run(self._fetch(most, wait_s))
        for each in found:
            self._taken += 1
            if each.metadata.sequence.consumer != self._taken:
                raise SystemFault("NATS skipped a message on the way; the stream is read again from the last position")
        if found:
            self._lag = found[-1].metadata.num_pending
        return [Message(each.data, str(each.metadata.sequence.stream), origin=f"subject {each.subject!r}") for each in found]

    async def _fetch(self, most: int, wait_s: float) -> Sequence[Any]:
        from nats.errors import TimeoutError as NothingCame

        try:
            found: Sequence[Any] = await self._subscription.fetch(most, timeout=wait_s)
        except NothingCame:
            await self._check_consumer()
            return ()
        return found

    async def _check_consumer(self) -> None:
        """Check that the consumer still exists, and that nothing it delivered since the last check is missing.

        Raises: SystemFault.
        """
        self._connection.check()
        info = await self._subscription.consumer_info()
        before, self._delivered, self._lag = self._delivered, info.delivered.consumer_seq, info.num_pending or 0
        if self._taken < self._delivered == before:
            raise SystemFault("NATS lost a message on the way; the stream is read again from the last position")

    def get_lag(self) -> int | None:
        return self._lag

    def count_missed(self) -> int:
        return self._missed

    def close(self) -> None:
        self._subscription = None
        self._connection.close()

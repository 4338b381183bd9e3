"""Reads topics of an MQTT broker, in a session that outlasts the connection.

MQTT has no positions. The broker remembers what was not confirmed, and a message is confirmed once the server's log
holds it. So each message comes at least once, and in the order of the broker. After a crash some come again.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from queue import Empty, Full, Queue
from typing import Any

from connectors.configuration import Connector
from connectors.connections.mqtt import MqttConnection, faults
from connectors.inbound.bodies import wrap_payload
from connectors.inbound.source import Message, Source

_LOOK_S = 0.2
_MOST = 1 << 16  # no session has more unconfirmed messages, so these never keep an answer of the broker back


class MqttSource(Source):
    """Reads the messages of one subscription."""

    has_positions = False

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        self._topic, self._envelope, self._batch = connector.options["topic"], connector.options["envelope"], connector.options["batch"]
        self._connection = MqttConnection(connector, credentials)
        self._come: Queue[Any] = Queue(_MOST)
        self._unconfirmed = deque[Any]()
        self._read = 0

    def seek(self, position: str | None) -> None:
        come: Queue[Any] = Queue(_MOST)
        self._come, self._read = come, 0
        self._unconfirmed.clear()
        self._connection.connect(lambda message: self._keep_message(come, message), self._batch)
        self._connection.subscribe(self._topic)

    def _keep_message(self, come: Queue[Any], message: Any) -> None:
        """Keep a message for `read`. Where too many wait, the network waits too: messages of QoS 0 have no other bound."""
        while not self._connection.lost:
            try:
                come.put(message, timeout=_LOOK_S)
                break
            except Full:
                continue

    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        self._connection.check()
        found: list[Message] = []
        while len(found) < most:
            try:
                message = self._come.get_nowait() if found else self._come.get(timeout=wait_s)
            except Empty:
                break
            self._read += 1
            self._unconfirmed.append((self._read, message))
            if message.payload:  # an empty one only takes a retained message away
                payload = wrap_payload({"topic": message.topic}, message.payload) if self._envelope else message.payload
                found.append(Message(payload, str(self._read), origin=f"topic {message.topic!r}"))
        if self._unconfirmed and not found:
            self.confirm(str(self._read))
        return found

    def confirm(self, position: str) -> None:
        with faults():
            while self._unconfirmed and self._unconfirmed[0][0] <= int(position):
                _, message = self._unconfirmed.popleft()
                self._connection.client.ack(message.mid, message.qos)

    def close(self) -> None:
        self._connection.close()

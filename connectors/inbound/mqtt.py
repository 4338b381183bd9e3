"""Reads the topics of an MQTT broker.

MQTT has no positions. The broker keeps a session for the connector, and stores each message of QoS 1 in it until the message is acknowledged.
A message is acknowledged once the server's log holds it, so each one arrives at least once, in the order of its topic.
"""

import json
import queue
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from connectors.inbound.source import Message, Source
from connectors.mqtt_connection import MqttConnection, Session


class MqttSource(Source):
    """Reads the topics that match one filter."""

    has_positions = False

    def __init__(self, name: str, options: Mapping[str, Any], credentials: Mapping[str, str]) -> None:
        self._topic, self._envelope = options["topic"], options["envelope"]
        self._session = Session(options["session_s"], options["batch"])
        self._connection = MqttConnection(options["client_id"] or f"epsparql-{name}", options, credentials)
        self._unconfirmed: deque[Any] = deque()
        self._taken = self._confirmed = 0

    def seek(self, position: str | None) -> None:
        """Open the session. Messages that were not acknowledged come again."""
        self._unconfirmed.clear()
        self._taken = self._confirmed = 0
        self._connection.connect(self._session)
        self._connection.subscribe(self._topic, stored=False)

    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        found: list[Message] = []
        deadline = time.monotonic() + wait_s
        while len(found) < most:
            try:
                message = self._connection.messages.get(timeout=0 if found else max(deadline - time.monotonic(), 0))
            except queue.Empty:
                break
            self._taken += 1
            self._unconfirmed.append(message)
            payload = _wrap(message.topic, message.payload) if self._envelope else message.payload
            found.append(Message(payload, str(self._taken)))
        if not found:
            self._connection.check()
        return found

    def confirm(self, position: str) -> None:
        while self._confirmed < int(position):
            self._connection.acknowledge(self._unconfirmed.popleft())
            self._confirmed += 1

    def close(self) -> None:
        self._connection.close()


def _wrap(topic: str, payload: bytes) -> bytes:
    """Return an object of JSON with a message's topic and payload. A payload that is JSON keeps its digits; any other one is a string."""
    try:
        text = payload.decode()
        json.loads(text)
    except ValueError:
        text = json.dumps(payload.decode(errors="replace"))
    return b'{"topic":%s,"payload":%s}' % (json.dumps(topic).encode(), " ".join(text.split("\n")).encode())

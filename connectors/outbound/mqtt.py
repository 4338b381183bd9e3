"""Publishes solutions to a topic of an MQTT broker.

The cursor is a stored message of a topic of its own. It is published after the solutions are acknowledged, so each solution arrives at least once.
"""

import queue
from collections.abc import Mapping, Sequence
from typing import Any

from connectors.errors import SystemFault
from connectors.mqtt_connection import PATIENCE_S, MqttConnection
from connectors.outbound.sink import Cursor, SolutionMessage, parse_cursor

_MARKER = b"-"


class MqttSink:
    """Publishes to one topic."""

    def __init__(self, name: str, options: Mapping[str, Any], credentials: Mapping[str, str]) -> None:
        self._topic, self._retain = options["topic"], options["retain"]
        self._cursor_topic = options["cursor_topic"] or f"epsparql/cursors/{name}"
        self._connection = MqttConnection(options["client_id"] or f"epsparql-{name}", options, credentials)

    def fetch_cursor(self) -> Cursor | None:
        """Connect, and read the stored cursor.

        A marker is published after the subscription. The broker delivers the stored message before it, if there is one.
        """
        self._connection.connect()
        self._connection.subscribe(self._cursor_topic, stored=True)
        self._connection.wait_published(self._connection.publish(self._cursor_topic, _MARKER))
        found = None
        while (payload := self._next_payload()) != _MARKER:
            found = payload
        self._connection.unsubscribe(self._cursor_topic)
        if found is None:
            return None
        try:
            return parse_cursor(found.decode())
        except ValueError:
            raise SystemFault(
                f"the stored message of the topic {self._cursor_topic!r} is no cursor; give the connector another cursor_topic"
            ) from None

    def _next_payload(self) -> bytes:
        try:
            message = self._connection.messages.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise SystemFault(
                f"MQTT: the broker does not deliver what is published to {self._cursor_topic!r}; allow the connector to read it"
            ) from None
        self._connection.acknowledge(message)
        payload: bytes = message.payload
        return payload

    def write(self, solutions: Sequence[SolutionMessage]) -> None:
        for sent in [self._connection.publish(self._topic, each.text, retain=self._retain) for each in solutions]:
            self._connection.wait_published(sent)
        self._connection.wait_published(self._connection.publish(self._cursor_topic, str(solutions[-1].cursor).encode(), retain=True))

    def close(self) -> None:
        self._connection.close()

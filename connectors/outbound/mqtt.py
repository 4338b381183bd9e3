"""Publishes solutions to a topic of an MQTT broker with QoS 1.

The cursor is a retained message of a topic beside it, published once the broker has the solutions. So each solution
comes at least once, and in order: after a crash, those since the last cursor come again, with the same ids.
"""

from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from connectors.configuration import Connector
from connectors.connections.mqtt import MqttConnection, create_properties
from connectors.errors import SystemFault, WrongOption
from connectors.outbound.sink import Cursor, Sink, SolutionMessage, parse_cursor

_MARKER = b"-"
_PATIENCE_S = 10.0


class MqttSink(Sink):
    """Publishes to one topic."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        self._topic, self._retain, self._newest = options["topic"], options["retain"], options["version"] == "5"
        if any(sign in self._topic for sign in "+#"):
            raise WrongOption("topic: solutions are published to one topic, so it has no wildcard")
        self._cursors = options["cursor_topic"] or f"{self._topic}/cursor"
        self._connection = MqttConnection(connector, credentials)

    def fetch_cursor(self) -> Cursor | None:
        """Connect, and read the retained cursor.

        The broker delivers it before a marker that is published after the subscription.
        """
        come = SimpleQueue[Any]()
        self._connection.connect(come.put)
        self._connection.subscribe(self._cursors)
        self._connection.publish(iter([(self._cursors, _MARKER, False, None)]))
        found = None
        while (payload := self._next_payload(come)) != _MARKER:
            found = payload
        self._connection.client.unsubscribe(self._cursors)
        if found is None:
            return None
        try:
            return parse_cursor(found.decode())
        except ValueError:
            raise SystemFault(f"the topic {self._cursors!r} holds no cursor of a connector; give another cursor_topic") from None

    def _next_payload(self, come: "SimpleQueue[Any]") -> bytes:
        try:
            payload: bytes = come.get(timeout=_PATIENCE_S).payload
        except Empty:
            raise SystemFault(f"MQTT: the broker does not deliver what is published to {self._cursors!r}; allow the connector to read it") from None
        return payload

    def write(self, solutions: Sequence[SolutionMessage]) -> None:
        self._connection.publish(self._messages(solutions))
        self._connection.publish(iter([(self._cursors, str(solutions[-1].cursor).encode(), True, None)]))

    def _messages(self, solutions: Sequence[SolutionMessage]) -> Iterator[tuple[str, bytes, bool, Any]]:
        for each in solutions:
            properties = create_properties("PUBLISH") if self._newest else None
            if properties is not None:
                properties.UserProperty = ("epsparql-id", each.key)
            yield self._topic, each.text, self._retain, properties

    def close(self) -> None:
        self._connection.close()

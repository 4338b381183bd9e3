"""Connects to an MQTT broker with paho-mqtt, whose network loop has a thread of its own, and turns its faults into
those of connectors.
"""

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from connectors.configuration import Connector
from connectors.errors import SystemFault

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_PATIENCE_S = 10.0
_KEEP_ALIVE_S = 30
_PORTS = {"mqtt": 1883, "mqtts": 8883}


class MqttConnection:
    """Connects to the broker that the options name. It does not reconnect by itself: its user opens it again."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        self._options, self._password = connector.options, credentials.get("password")
        self._name = connector.options["client_id"] or f"epsparql-{connector.name}"
        self._newest = connector.options["version"] == "5"
        self._client: Client | None = None
        self._lost, self._answered = Event(), Event()
        self._refusal: str | None = None

    def connect(self, take: "Callable[[Any], None]", most: int | None = None) -> None:
        """Connect; `take` is given each message, in the network's thread. `most` asks for a session that lasts, with
        so many unconfirmed messages.

        Raises: SystemFault.
        """
        from paho.mqtt.client import Client, MQTTv5, MQTTv311
        from paho.mqtt.enums import CallbackAPIVersion

        self.close()
        self._lost, self._answered, self._refusal = Event(), Event(), None
        clean: dict[str, Any] = {} if self._newest else {"clean_session": most is None}
        client = Client(
            CallbackAPIVersion.VERSION2,
            self._name,
            protocol=MQTTv5 if self._newest else MQTTv311,
            manual_ack=True,
            reconnect_on_failure=False,
            **clean,
        )
        client.on_connect, client.on_disconnect = self._take_answer, self._take_loss
        client.on_message = lambda _client, _data, message: take(message)
        client.on_subscribe = self._take_answers
        client.username_pw_set(self._options["user"], self._password)
        parts = urlsplit(self._options["url"])
        self._client = client
        with faults():
            if parts.scheme == "mqtts":
                client.tls_set_context(self._trust())
            client.connect(str(parts.hostname), parts.port or _PORTS[parts.scheme], _KEEP_ALIVE_S, **self._session(most))
            client.loop_start()
        self._await_answer("a connection")

    def _trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._options["ca_file"])
        if self._options["cert_file"]:
            context.load_cert_chain(self._options["cert_file"], self._options["key_file"])
        return context

    def _session(self, most: int | None) -> dict[str, Any]:
        """Return what MQTT 5 alone says when it connects."""
        if not self._newest:
            return {}
        properties = create_properties("CONNECT")
        if most is not None:
            properties.SessionExpiryInterval, properties.ReceiveMaximum = self._options["session_s"], min(most, 65_535)
        return {"clean_start": most is None, "properties": properties}

    def subscribe(self, topic: str) -> None:
        """Subscribe with QoS 1. Raises: SystemFault."""
        from paho.mqtt.subscribeoptions import SubscribeOptions

        self._answered.clear()
        # retained messages are sent once for each session, not with each connection
        how = {"options": SubscribeOptions(qos=1, retainHandling=1)} if self._newest and topic == self._options.get("topic") else {"qos": 1}
        with faults():
            self.client.subscribe(topic, **how)
        self._await_answer(f"the subscription to {topic!r}")

    def publish(self, messages: "Iterator[tuple[str, bytes, bool, Any]]") -> None:
        """Publish messages with QoS 1, each a topic, a payload, whether it is retained, and properties. Wait until
        the broker has them all.

        Raises: SystemFault.
        """
        with faults():
            sent = [self.client.publish(topic, payload, 1, retain, properties) for topic, payload, retain, properties in messages]
            for each in sent:
                while not each.is_published():
                    self.check()
                    each.wait_for_publish(0.5)

    def check(self) -> None:
        """Check that the connection stands. Raises: SystemFault."""
        if self._lost.is_set():
            raise SystemFault("MQTT: the broker has closed the connection")

    @property
    def client(self) -> "Client":
        assert self._client is not None
        return self._client

    @property
    def lost(self) -> bool:
        return self._lost.is_set()

    def _await_answer(self, what: str) -> None:
        answered = self._answered.wait(_PATIENCE_S)
        if self._refusal is not None:
            raise SystemFault(f"MQTT: the broker refuses {what}: {self._refusal}")
        self.check()
        if not answered:
            raise SystemFault(f"MQTT: the broker does not answer to {what}")

    def _take_answer(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._take_answers(None, None, None, [reason], None)

    def _take_answers(self, _client: Any, _data: Any, _number: Any, reasons: Any, _properties: Any) -> None:
        self._refusal = next((str(reason) for reason in reasons if reason.is_failure), None)
        self._answered.set()

    def _take_loss(self, *_: object) -> None:
        self._lost.set()
        self._answered.set()

    def close(self) -> None:
        client, self._client = self._client, None
        self._lost.set()
        if client is not None:
            client.disconnect()
            client.loop_stop()


def create_properties(packet: str) -> Any:
    """Return properties of MQTT 5 for a kind of packet, such as PUBLISH."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    return Properties(getattr(PacketTypes, packet))  # type: ignore[no-untyped-call]  # paho does not say


@contextmanager
def faults() -> Iterator[None]:
    """Turn faults of the client into SystemFault."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        raise SystemFault(f"MQTT: {str(error) or type(error).__name__}") from None

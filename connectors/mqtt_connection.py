"""Keeps a connection to an MQTT broker of version 3.1.1 or 5, and hands over its messages in order."""

import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from connectors.errors import SystemFault

PATIENCE_S = 10.0
_KEEP_ALIVE_S = 30
_PORTS = {"mqtt": 1883, "mqtts": 8883}


class Session(NamedTuple):
    """Says what the broker keeps for a client that is away: its messages for `seconds`, of which `most` may be unacknowledged at a time."""

    seconds: int
    most: int


class MqttConnection:
    """Connects to the broker that the options name. It does not reconnect by itself: its user opens it again."""

    def __init__(self, client_id: str, options: Mapping[str, Any], credentials: Mapping[str, str]) -> None:
        self._client_id, self._url, self._options, self._credentials = client_id, urlsplit(options["url"]), options, credentials
        self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._client: Any = None
        self._fault = ""
        self._answered = threading.Event()
        self._subscribed = threading.Event()

    @property
    def _is_version_5(self) -> bool:
        return bool(self._options["version"] == "5")

    def connect(self, session: Session | None = None) -> None:
        """Connect, with a session that the broker keeps, or without one. Raises: SystemFault."""
        from paho.mqtt import client as paho
        from paho.mqtt.enums import CallbackAPIVersion

        self.close()
        self.messages, self._fault = queue.SimpleQueue(), ""
        self._answered.clear()
        if self._is_version_5:
            client = paho.Client(CallbackAPIVersion.VERSION2, self._client_id, protocol=paho.MQTTv5, reconnect_on_failure=False, manual_ack=True)
            chosen: dict[str, Any] = {"clean_start": session is None, "properties": _properties(session)}
        else:
            client = paho.Client(
                CallbackAPIVersion.VERSION2,
                self._client_id,
                session is None,
                protocol=paho.MQTTv311,
                reconnect_on_failure=False,
                manual_ack=True,
            )
            chosen = {}
        client.on_connect, client.on_disconnect = self._record_answer, self._record_end
        client.on_message, client.on_subscribe = self._take_message, self._record_subscription
        if self._url.scheme == "mqtts":
            client.tls_set(self._options["ca_file"])
        if self._options["user"] is not None:
            client.username_pw_set(self._options["user"], self._credentials.get("password"))
        self._client = client
        with faults():
            client.connect(str(self._url.hostname), self._url.port or _PORTS[self._url.scheme], _KEEP_ALIVE_S, **chosen)
        client.loop_start()
        self._wait(self._answered, "the broker does not answer")

    def subscribe(self, topic: str, *, stored: bool) -> None:
        """Subscribe with QoS 1; a stored message comes again with each subscription if it is `stored`. Raises: SystemFault."""
        from paho.mqtt.subscribeoptions import SubscribeOptions

        self._subscribed.clear()
        with faults():
            if self._is_version_5:
                again = SubscribeOptions.RETAIN_SEND_ON_SUBSCRIBE if stored else SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
                self._client.subscribe(topic, options=SubscribeOptions(qos=1, retainHandling=again))
            else:
                self._client.subscribe(topic, 1)
        self._wait(self._subscribed, f"the broker does not take the subscription to {topic!r}")

    def unsubscribe(self, topic: str) -> None:
        """Receive no more messages of a topic."""
        with faults():
            self._client.unsubscribe(topic)

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> Any:
        """Send a message with QoS 1, and return what `wait_published` waits for. Raises: SystemFault."""
        with faults():
            return self._client.publish(topic, payload, qos=1, retain=retain)

    def wait_published(self, sent: Any) -> None:
        """Wait until the broker has acknowledged a message. Raises: SystemFault."""
        with faults():
            sent.wait_for_publish(PATIENCE_S)
        if not sent.is_published():
            raise SystemFault(self._fault or "MQTT: the broker does not acknowledge a message")

    def acknowledge(self, message: Any) -> None:
        """Acknowledge a message of QoS 1 or 2."""
        self._client.ack(message.mid, message.qos)

    def check(self) -> None:
        """Check that the connection stands. Raises: SystemFault."""
        if self._fault:
            raise SystemFault(self._fault)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.disconnect()
            client.loop_stop()

    # ------------------------------------------------------------ called by the client's thread
    def _record_answer(self, _client: Any, _userdata: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            self._fault = f"MQTT: the broker refuses the connection: {reason}"
        self._answered.set()

    def _record_end(self, _client: Any, _userdata: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._fault = self._fault or f"MQTT: the connection has ended: {reason}"
        self._answered.set()
        self._subscribed.set()

    def _record_subscription(self, _client: Any, _userdata: Any, _mid: Any, reasons: Any, _properties: Any) -> None:
        refused = [str(reason) for reason in reasons if reason.is_failure]
        if refused:
            self._fault = f"MQTT: the broker refuses the subscription: {', '.join(refused)}"
        self._subscribed.set()

    def _take_message(self, _client: Any, _userdata: Any, message: Any) -> None:
        self.messages.put(message)

    def _wait(self, answered: threading.Event, otherwise: str) -> None:
        if not answered.wait(PATIENCE_S):
            raise SystemFault(f"MQTT: {otherwise}")
        self.check()


def _properties(session: Session | None) -> Any:
    """Return the properties with which a client of version 5 connects."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    found = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # the client has no types here
    if session is not None:
        found.SessionExpiryInterval = session.seconds
        found.ReceiveMaximum = min(session.most, 65_535)
    return found


@contextmanager
def faults() -> Iterator[None]:
    """Turn faults of the client into SystemFault."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        raise SystemFault(f"MQTT: {str(error) or type(error).__name__}") from None

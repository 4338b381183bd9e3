"""Plain MQTT clients for tests: a device that sends again what the broker may have lost, and a display that collects
what it is sent.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion

DEADLINE_S = 30.0
_AGAIN = 500
"""A killed broker may have lost so many of the last messages that it acknowledged."""


def connect(port: int, name: str) -> paho.Client:
    client = paho.Client(CallbackAPIVersion.VERSION2, name, reconnect_on_failure=False)
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client


def disconnect(client: paho.Client) -> None:
    client.disconnect()
    client.loop_stop()


def publish(port: int, topic: str, *payloads: str, retain: bool = False) -> None:
    client = connect(port, "publisher")
    for payload in payloads:
        client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(DEADLINE_S)
    disconnect(client)


class Device:
    """Publishes numbered messages in a thread. After each loss of the connection it sends its last messages again."""

    def __init__(self, port: int, topic: str, payload: Callable[[int], str]) -> None:
        self._port, self._topic, self._payload = port, topic, payload
        self.sent = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                client = connect(self._port, "device")
            except OSError:
                self._stopping.wait(0.05)
                continue
            try:
                number = max(self.sent - _AGAIN, 0)
                while not self._stopping.is_set():
                    message = client.publish(self._topic, self._payload(number), qos=1)
                    message.wait_for_publish(2)
                    if not message.is_published():
                        break
                    number += 1
                    self.sent = max(self.sent, number)
                    self._stopping.wait(0.005)
            except (OSError, RuntimeError, ValueError):
                continue
            finally:
                disconnect(client)

    def stop(self) -> int:
        """Stop, and send the last messages again, with one more at the end. Return how many different ones there were."""
        self._stopping.set()
        self._thread.join()
        publish(self._port, self._topic, *map(self._payload, range(max(self.sent - _AGAIN, 0), self.sent + 1)))
        return self.sent + 1


@contextmanager
def display(port: int, topic: str) -> Iterator["queue.SimpleQueue[bytes]"]:
    """Collect the messages of a topic."""
    found: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    ready = threading.Event()
    client = paho.Client(CallbackAPIVersion.VERSION2, f"display {topic}")
    client.on_message = lambda *given: found.put(given[2].payload)
    client.on_subscribe = lambda *given: ready.set()
    client.connect("127.0.0.1", port)
    client.subscribe(topic, 1)
    client.loop_start()
    assert ready.wait(DEADLINE_S)
    try:
        yield found
    finally:
        disconnect(client)

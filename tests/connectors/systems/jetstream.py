"""A plain client of JetStream for tests: it creates streams, publishes each message once across restarts of the
broker, and reads streams back.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import nats
from nats.js.api import StreamConfig

Found = TypeVar("Found")
_PAUSE_S = 0.05


def with_jetstream(url: str, work: Callable[[Any], Coroutine[Any, Any, Found]]) -> Found:
    """Run `work` with a JetStream context of a connection of its own."""

    async def run() -> Found:
        connection = await nats.connect(url, allow_reconnect=False, connect_timeout=5)
        try:
            return await work(connection.jetstream(timeout=5))
        finally:
            await connection.close()

    return asyncio.run(run())


def create_stream(url: str, name: str, *subjects: str) -> None:
    with_jetstream(url, lambda streams: streams.add_stream(StreamConfig(name=name, subjects=list(subjects))))


def count_messages(url: str, name: str) -> int:
    """The number of messages of a stream; 0 while the broker is away."""
    try:
        return int(with_jetstream(url, lambda streams: streams.stream_info(name)).state.messages)
    except (nats.errors.Error, OSError, TimeoutError):
        return 0


def read_messages(url: str, name: str) -> list[Any]:
    async def read(streams: Any) -> list[Any]:
        state = (await streams.stream_info(name)).state
        return [await streams.get_msg(name, number) for number in range(state.first_seq, state.last_seq + 1)]

    return with_jetstream(url, read)


class Publisher:
    """Publishes numbered messages until it is stopped, in a thread. The broker drops repeats by their ids."""

    def __init__(self, url: str, subject: str, payload: Callable[[int], str], every_s: float = 0.01) -> None:
        self._url, self._subject, self._payload, self._every_s = url, subject, payload, every_s
        self.published = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                connection = await nats.connect(self._url, allow_reconnect=False, connect_timeout=2)
                try:
                    streams = connection.jetstream(timeout=2)
                    while not self._stopping.is_set():
                        headers = {"Nats-Msg-Id": str(self.published)}
                        await streams.publish(self._subject, self._payload(self.published).encode(), headers=headers)
                        self.published += 1
                        await asyncio.sleep(self._every_s)
                finally:
                    await connection.close()
            except (nats.errors.Error, OSError, TimeoutError):
                await asyncio.sleep(_PAUSE_S)

    def stop(self) -> int:
        """Stop; return the number of messages that the broker has acknowledged."""
        self._stopping.set()
        self._thread.join()
        return self.published

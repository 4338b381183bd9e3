"""Keeps a connection to NATS, whose client is asynchronous, on an event loop in a thread of its own, so that pings
are answered meanwhile.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from connectors.errors import SystemFault

_PATIENCE_S = 10.0
_ONCE = {"allow_reconnect": False, "connect_timeout": 5, "max_reconnect_attempts": 1, "reconnect_time_wait": 0.1}
"""A broker that is away is told at once: whoever connects tries again by itself."""
Found = TypeVar("Found")


class NatsConnection:
    """Connects to the server that the options name.

    It does not reconnect by itself: its user opens it again at a known position.
    """

    def __init__(self, options: Mapping[str, Any], credentials: Mapping[str, str]) -> None:
        self._url = options["url"]
        login = {"user": options["user"], **credentials}
        self._login = {name: value for name, value in login.items() if value is not None}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None

    def connect(self) -> None:
        """Connect. Raises: SystemFault."""
        import nats

        self.close()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run_loop, args=(self._loop,), name="nats", daemon=True)
        self._thread.start()
        with faults():
            connecting = nats.connect(self._url, **_ONCE, error_cb=_ignore, **self._login)
            self._client = self.run(connecting)

    @property
    def jetstream(self) -> Any:
        """Return the client's JetStream context."""
        return self._client.jetstream(timeout=_PATIENCE_S)

    def check(self) -> None:
        """Check that the connection stands. Raises: SystemFault."""
        if not self._client.is_connected:
            raise SystemFault("NATS has closed the connection")

    def run(self, coroutine: Coroutine[Any, Any, Found]) -> Found:
        """Return what a coroutine returns on the connection's loop."""
        assert self._loop is not None
        running = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return running.result(_PATIENCE_S * 2)
        except TimeoutError:
            running.cancel()
            raise

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None:
            return
        if self._client is not None:
            with suppress(Exception):
                asyncio.run_coroutine_threadsafe(self._client.close(), loop).result(_PATIENCE_S)
            self._client = None
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_PATIENCE_S)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and then end what still runs on it."""
    loop.run_forever()
    loop.run_until_complete(_cancel_tasks())
    loop.close()


async def _cancel_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def _ignore(_fault: Exception) -> None:
    """Leave out what the client would print: each call raises its own fault."""


@contextmanager
def faults() -> Iterator[None]:
    """Turn faults of the client into SystemFault."""
    from nats.errors import Error

    try:
        yield
    except (Error, OSError, TimeoutError) as error:
        raise SystemFault(f"NATS: {str(error) or type(error).__name__}") from None

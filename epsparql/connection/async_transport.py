"""This module carries requests and frames for asyncio: requests run in threads, WebSockets on the loop."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from websockets.asyncio.client import ClientConnection as AsyncConnection
from websockets.asyncio.client import connect

from epsparql.connection.tls import TrustedFile
from epsparql.connection.transport import Answer, OpenAnswer, Transport

__all__ = ["AsyncConnection", "AsyncTransport", "OpenAnswer"]


class AsyncTransport:
    """Does what Transport does, without blocking the loop."""

    def __init__(self, url: str, token: str | None, timeout_s: float, trust: TrustedFile | None = None) -> None:
        self._blocking = Transport(url, token, timeout_s, trust)

    @property
    def url(self) -> str:
        return self._blocking.url

    def turn(self) -> bool:
        return self._blocking.turn()

    async def request(self, method: str, path: str, body: bytes | str | None, headers: Mapping[str, str]) -> Answer:
        return await asyncio.to_thread(self._blocking.request, method, path, body, headers)

    async def open_events(self, path: str, last: str | None) -> OpenAnswer:
        return await asyncio.to_thread(self._blocking.open_events, path, last)

    async def read_line(self, answer: OpenAnswer) -> str:
        return await asyncio.to_thread(answer.read_line)

    def dial(self, path: str) -> AbstractAsyncContextManager[AsyncConnection]:
        return connect(self._blocking.socket_url(path), **self._blocking.socket_options())

    async def receive(self, connection: AsyncConnection, timeout_s: float | None) -> str | bytes:
        async with asyncio.timeout(timeout_s):
            found: str | bytes = await connection.recv()
        return found

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

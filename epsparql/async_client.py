"""This module is the client for asyncio: requests run in threads, sockets on the loop."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from epsparql.client import (
    Accepted,
    ApiError,
    Client,
    Closed,
    Progress,
    Solution,
    Source,
    SubscriptionCursor,
    Unreachable,
    Word,
    from_source,
    raise_if_final,
    segment,
)


class AsyncClient:
    """Does what Client does, for asyncio; `sync` is the client that it asks."""

    def __init__(self, url: str, token: str | None = None, patience_s: float = 60.0) -> None:
        self.sync = Client(url, token, patience_s)

    async def wait_ready(self, within_s: float | None = None) -> None:
        await asyncio.to_thread(self.sync.wait_ready, within_s)

    async def create_stream(self, name: str, **settings: str | float | Sequence[str] | Mapping[str, Any] | None) -> dict[str, Any]:
        return await asyncio.to_thread(self.sync.create_stream, name, **settings)

    async def stream(self, name: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.sync.stream, name)

    async def finish(self, name: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.sync.finish, name)

    async def sources(self, name: str) -> dict[str, str | None]:
        return await asyncio.to_thread(self.sync.sources, name)

    async def send(
        self,
        name: str,
        body: bytes | str,
        media_type: str = "application/x-ndjson",
        *,
        key: str | None = None,
        source: Source | None = None,
        **query: str,
    ) -> Accepted:
        return await asyncio.to_thread(self.sync.send, name, body, media_type, key=key, source=source, **query)

    async def register(self, name: str, query: str, *, replace: bool = False, start: str | int = "now", **options: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.sync.register, name, query, replace=replace, start=start, **options)

    async def query(self, name: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.sync.query, name)

    async def queries(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self.sync.queries)

    async def pause(self, name: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.sync.pause, name)

    async def resume(self, name: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.sync.resume, name)

    async def drop(self, name: str) -> None:
        await asyncio.to_thread(self.sync.drop, name)

    async def solutions(self, name: str, *, after: str | None = None, limit: int = 1000, wait_s: float = 0.0) -> list[Solution]:
        return await asyncio.to_thread(self.sync.solutions, name, after=after, limit=limit, wait_s=wait_s)

    def follow(self, query: str, *, after: str | None = None, policy: str = "disconnect") -> "AsyncSubscription":
        return AsyncSubscription(self.sync, query, after, policy)

    def feed(self, stream: str, *, window: int = 256) -> "AsyncFeed":
        return AsyncFeed(self.sync, f"/streams/{segment(stream)}/feed", window)


class _AsyncSocket:
    """Keeps a WebSocket that can be opened again, like _Socket."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._connection: ClientConnection | None = None
        self._open = AsyncExitStack()

    async def _dial(self, path: str) -> ClientConnection:
        await self.close()
        self._connection = await self._open.enter_async_context(connect(self._client.socket_url(path), **self._client.socket_options()))
        return self._connection

    async def _retry(self, attempt: Callable[[], Awaitable[object]]) -> None:
        """Await `attempt` until it succeeds. Raises: Unreachable once patience is over; Closed."""
        deadline, pause_s = time.monotonic() + self._client.patience_s, 0.05
        while True:
            try:
                await attempt()
                return
            except (OSError, InvalidHandshake, ConnectionClosed) as error:
                if time.monotonic() + pause_s > deadline:
                    raise Unreachable(f"the server does not answer: {error}") from error
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 1.0)

    async def close(self) -> None:
        self._connection = None
        await self._open.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


class AsyncSubscription(_AsyncSocket, SubscriptionCursor):
    """Follows a query like Subscription; iterate with `async for`."""

    def __init__(self, client: Client, query: str, after: str | None, policy: str) -> None:
        _AsyncSocket.__init__(self, client)
        SubscriptionCursor.__init__(self, query, after, policy)

    async def next(self) -> Word:
        """Return the next message. Raises: Closed when the server ends it; Unreachable."""
        while True:
            try:
                if self._connection is None:
                    await self._retry(lambda: self._dial(self.path))
                assert self._connection is not None
                word = self.told(json.loads(await self._connection.recv()))
            except ConnectionClosed as error:
                raise_if_final(error)
                await self.close()
                continue
            if word is not None:
                return word

    async def __aiter__(self) -> AsyncIterator[Solution]:
        """Iterate over solutions until the stream's end, like Subscription."""
        while True:
            try:
                word = await self.next()
            except Closed as closed:
                if closed.code == 1000:
                    return
                raise
            if isinstance(word, Solution):
                yield word
            elif isinstance(word, Progress) and word.finished:
                return


class AsyncFeed(_AsyncSocket):
    """Sends frames like Feed, for one task at a time; `acked` and `answered` are as there."""

    def __init__(self, client: Client, path: str, window: int) -> None:
        super().__init__(client)
        self._path, self._window = path, window
        self._pending: deque[str] = deque()
        self.acked, self.answered = 0, 0

    async def send(self, frame: str, *, source: Source | None = None) -> None:
        """Send one frame; wait while `window` frames are unanswered. Raises: as Feed's."""
        frame = from_source(frame, source)
        self._pending.append(frame)
        try:
            if self._connection is None:
                await self._retry(self._connect)
            else:
                await self._connection.send(frame)
        except ConnectionClosed as error:
            raise_if_final(error)
            await self._retry(self._connect)
        await self._take_answers(down_to=self._window)

    async def flush(self) -> int:
        """Wait until every frame is answered; return `acked`."""
        await self._take_answers(down_to=0)
        return self.acked

    async def _connect(self) -> None:
        connection = await self._dial(self._path)
        try:
            for frame in self._pending:
                await connection.send(frame)
        except ConnectionClosed as error:
            raise_if_final(error)
            raise

    async def _take_answers(self, down_to: int) -> None:
        """Take the answers that are there, and those needed to leave at most `down_to` frames unanswered."""
        while self._pending:
            try:
                if self._connection is None:
                    await self._retry(self._connect)
                assert self._connection is not None
                async with asyncio.timeout(None if len(self._pending) > down_to else 0):
                    answer = await self._connection.recv()
            except TimeoutError:
                return
            except ConnectionClosed as error:
                raise_if_final(error)
                await self._retry(self._connect)
                continue
            self._take_answer(json.loads(answer))

    def _take_answer(self, answer: Mapping[str, Any]) -> None:
        self._pending.popleft()
        self.answered += 1
        if "error" in answer:
            raise ApiError(answer["error"])
        self.acked = int(answer["ack"])

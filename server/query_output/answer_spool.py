"""Sends large answers from files, so that clients that do not read theirs take no memory."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from tempfile import TemporaryFile

from fastapi import Response
from starlette.types import Receive, Scope, Send

from server.http.problem_details import Fault, Problem

_PIECE = 128 << 10
"""Answers of at most so many bytes are sent from memory, and larger ones in pieces of this size."""
_MOST = 1 << 30
_MAKING = 2  # pages: each takes some times its size until it is written


class AnswerSpool:
    """Counts the bytes of large answers that are being sent; all share one limit. Runs on the event loop only.

    `making` is held while a page of solutions is read and written.
    """

    def __init__(self) -> None:
        self.making = asyncio.Semaphore(_MAKING)
        self._held = 0

    def create_response(self, body: bytes, media_type: str, headers: Mapping[str, str] | None = None) -> Response:
        if len(body) <= _PIECE:
            return Response(body, media_type=media_type, headers=headers)
        return _SpooledResponse(self, body, media_type, headers)

    @contextmanager
    def reserve(self, size: int) -> Iterator[None]:
        """Count so many bytes while the block runs. Raises: Fault 429."""
        if self._held + size > _MOST:
            detail = f"answers that other clients have not read yet fill {_MOST} bytes; try again later, or ask for less"
            raise Fault(Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-answers", detail, headers={"Retry-After": "5"}))
        self._held += size
        try:
            yield
        finally:
            self._held -= size


class _SpooledResponse(Response):
    """Writes its body to a file, and sends it from there as the client takes it."""

    def __init__(self, spool: AnswerSpool, body: bytes, media_type: str, headers: Mapping[str, str] | None) -> None:
        super().__init__(body, media_type=media_type, headers=headers)
        self._spool = spool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = len(self.body)
        with self._spool.reserve(left), TemporaryFile(buffering=0) as file:
            await asyncio.to_thread(file.write, self.body)
            self.body = b""
            file.seek(0)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while left:
                piece = await asyncio.to_thread(file.read, min(_PIECE, left))
                left -= len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": left > 0})

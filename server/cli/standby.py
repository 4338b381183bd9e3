"""Lets a server stand by: it loads its code at once, beside the wait for the lease, and answers every request with
how far it is.
"""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from server.cli.certificate import Certificate
from server.connections import create_protocol
from server.http.problem_details import Problem
from server.process import load_grammars, load_runner
from server.settings import Settings

_MOST_CONNECTIONS = 200
_STOP_S = 3.0
_TICKS_A_SECOND = 10  # of uvicorn


class Loading:
    """Loads the code that a server needs later than its start, in a thread."""

    def __init__(self, settings: Settings) -> None:
        self._runner, self._fault = settings.runner, list[Exception]()
        self._thread, self._over = threading.Thread(target=self._run, name="loading", daemon=True), threading.Event()

    def begin_loading(self) -> None:
        """Start the thread, unless it has been."""
        if self._thread.ident is None:
            self._thread.start()

    def is_over(self) -> bool:
        return self._over.is_set()

    def wait(self) -> None:
        """Return when all is loaded. Raises: what the loading raised."""
        self._thread.join()
        if self._fault:
            raise self._fault[0]

    def _run(self) -> None:
        try:
            load_runner(self._runner)
            load_grammars()
        except Exception as fault:  # noqa: BLE001 - `wait` raises it
            self._fault.append(fault)
        self._over.set()


class _Health(uvicorn.Server):
    """Answers for a server that stands by."""

    def __init__(self, settings: Settings, loading: Loading) -> None:
        self._loading = loading
        self._certificate = None if settings.tls_cert is None else Certificate(settings.tls_cert, settings.tls_key)
        config = uvicorn.Config(
            self._refuse_request,
            http=create_protocol(settings.header_s),
            ws="none",  # a WebSocket's request is answered as any other
            interface="asgi3",
            lifespan="off",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=1,
            ssl_certfile=None if self._certificate is None else self._certificate.path,
            ssl_keyfile=None if self._certificate is None else self._certificate.key,
        )
        super().__init__(config)

    async def on_tick(self, counter: int) -> bool:
        if self._certificate is not None and counter % _TICKS_A_SECOND == 0:
            assert self.config.ssl is not None
            await asyncio.to_thread(self._certificate.renew, self.config.ssl)
        return await super().on_tick(counter)

    async def _refuse_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/livez":
            await JSONResponse({"status": "ok"})(scope, receive, send)
        else:
            await self._describe().response()(scope, receive, send)

    def _describe(self) -> Problem:
        """Return the problem with which every request is answered.

        Clients know its code, and ask the next server at once.
        """
        state, words = ("loaded", "has loaded its code") if self._loading.is_over() else ("loading", "is loading its code")
        detail = f"this server {words}, and stands by for the one that serves: send requests there"
        return Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"standby-{state}", detail, headers={"Retry-After": "1"})


@contextmanager
def answering(settings: Settings, listener: socket.socket, loading: Loading) -> Iterator[None]:
    """Answer requests meanwhile, in a thread, and close the listener in the end.

    Raises: SettingsError for a certificate that cannot be used.
    """
    server = _Health(settings, loading)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="standby", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(_STOP_S)
        listener.close()

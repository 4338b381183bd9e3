"""Runs the app under uvicorn until a signal."""

import asyncio
import logging
import os
import resource
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from errno import EINVAL, ENOSPC
from functools import partial

import uvicorn
from fastapi import FastAPI
from pydantic.warnings import UnsupportedFieldAttributeWarning

from connectors.configuration import ConnectorFile, check_library, read_connector_file
from connectors.errors import ConnectorError
from engine.messages import REVISED
from epsparql.extras import MissingExtra
from epsparql.translate.parsed_texts import ParsedTexts
from pipeline.errors import StoreDamaged, StoreFailed, StoreTaken
from pipeline.log import LogWriter
from pipeline.object_store.backends import ObjectStore, connect_store
from pipeline.object_store.store_uri import redact_uri
from pipeline.parquet_export import CHANGELOG, Exporter, export_place
from pipeline.partition_count import recorded
from pipeline.registrations.query_cache import recall_texts
from pipeline.replication.lease import LeaseHolder, wait_for_lease
from pipeline.replication.replicator import Replicator, is_unfinished
from pipeline.solutions.solution_log import check_solutions
from server.app import create_app
from server.background.startup import load_background, read_background
from server.cli.certificate import Certificate
from server.cli.standby import Loading, answering
from server.connections import create_protocol, prepare
from server.http.auth import Gate
from server.observability.logging import log_to_stderr
from server.process import clock, set_aside
from server.query_output.websocket_protocol import WebSocketWriter
from server.routes.streams.short_posts import ShortPosts
from server.service import Service, running
from server.settings import Settings, SettingsError
from server.tokens.issuer_keys import IssuerKeys
from server.tokens.jwt_verification import JwtVerifier
from server.tokens.reloaded_file import ReloadedFile
from server.tokens.sign_in import SignIn
from server.tokens.token_file import load_grants

_log = logging.getLogger("epsparql.server")
_CLOSE_S, _GRACE_S, _CANCEL_S = 1.0, 1.5, 2.0
"""At a stop, clients have so long to answer the end of their TLS connection.

Requests have so long before they are cancelled.
"""
_STALL_MORE_S = 20
_SEE = "check that the store can be reached, that the place exists, and that the credentials allow reading and writing"
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""A server that listens on all addresses is reached on this one from its own machine."""
_TURN_S = 0.001  # a Python thread yields to another after this time: the runner's to that of the sockets, and back
_TICKS_A_SECOND = 10  # of uvicorn
_LARGER = 4  # frames up to this many times the limit get a problem for an answer; beyond, the connection is closed with 1009


class Server(uvicorn.Server):
    """Ends subscriptions before it waits for requests to end, and prints its address once it listens."""

    def __init__(
        self,
        settings: Settings,
        log: LogWriter,
        listener: socket.socket,
        gate: Gate,
        export: Exporter | None = None,
        keeper: Replicator | None = None,
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the server; `begun` is called once the runner has started.

        Raises: SettingsError for connectors or a certificate that cannot be used.
        """
        host, port = listener.getsockname()[:2]
        self._keeper, self._steps_down, self.superseded = keeper, settings.takeover_s is not None, False
        self._certificate = None if settings.tls_cert is None else Certificate(settings.tls_cert, settings.tls_key)
        scheme = "http" if self._certificate is None else "https"
        self.url = _url_of(scheme, host, port)
        self._app = create_app(
            lambda: running(settings, clock, gate, log, export=export, keeper=keeper, begun=begun),
            settings.origins,
            _url_of(scheme, _EVERYWHERE.get(host, host), port),
            read_connectors(settings),
        )
        super().__init__(_config(self._app, settings, self._certificate))

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve like uvicorn, but do not raise an obeyed signal again afterwards, so that an orderly stop exits with 0."""
        if threading.current_thread() is threading.main_thread():  # elsewhere signals do not come
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, self.handle_exit, number, None)
        await self._serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        if self._certificate is not None:  # uvicorn passes no such limit, and asyncio's own is 30 s
            loop.create_server = partial(loop.create_server, ssl_shutdown_timeout=_CLOSE_S)  # type: ignore[method-assign]  # for this loop alone
        await super().startup(sockets)
        if self.started:
            print(f"epsparql listens on {self.url}", flush=True)

    async def on_tick(self, counter: int) -> bool:
        """Look once a second whether the certificate has changed, and end where another server that stood by has
        taken the store.

        Connections that are open keep their certificate.
        """
        self.superseded = self._steps_down and self._keeper is not None and self._keeper.taken
        self.should_exit = self.should_exit or self.superseded
        if self._certificate is not None and counter % _TICKS_A_SECOND == 0:
            assert self.config.ssl is not None
            await asyncio.to_thread(self._certificate.renew, self.config.ssl)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        service: Service = self._app.state.service
        service.stop_followers()
        ending = asyncio.get_running_loop().call_later(_GRACE_S, self._abort_connections)
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    def _abort_connections(self) -> None:
        """End what is still open.

        A connection that is closing, but whose client does not read, would end much later by itself.
        """
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def serve(settings: Settings) -> int:
    """Serve until a signal, and return the exit code, 0 after an orderly stop.

    Whatever this server can refuse alone is refused before it takes the store from a server that runs.

    Raises: SettingsError for an address, a token file, a store, a place to export to or a background that cannot be
    used; SourceFault for a background that cannot be read; Locked, Corrupt, NotOfOneLog, NotOfThisLog, NotOfThisStore
    and StoreTaken.
    """
    log_to_stderr(settings.log_format)
    sys.setswitchinterval(_TURN_S)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each subscriber is an open file
    warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)  # as FastAPI does for a moment, which another thread may undo
    if settings.takeover_s is not None:
        return _serve_in_turn(settings, settings.takeover_s)
    return _serve_now(settings)


def _serve_in_turn(settings: Settings, term_s: float) -> int:
    """Stand by until nobody holds the store, and serve then; begin anew where another server has taken it.

    Raises: as `serve`.
    """
    listener = listen(settings)  # faults of the address are told now
    settings = replace(settings, port=listener.getsockname()[1])
    loading = Loading(settings)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, partial(_stop_standing_by, loading))
    assert settings.store is not None
    while True:
        with answering(settings, listener, loading), _telling_store(settings), closing(connect_store(settings.store)) as store:
            loading.begin_loading()  # once nothing is left to refuse
            wait_for_lease(store, settings.data, term_s, loading.is_over)
            loading.wait()
        try:
            return _serve_now(settings)
        except StoreTaken as fault:
            _log.warning("another server was faster: %s", fault)
        listener = listen(settings)


def _stop_standing_by(loading: Loading, *_: object) -> None:
    if not loading.is_over():
        os._exit(0)  # nothing is open, and Python ends only after a thread's imports
    raise SystemExit(0)


def _serve_now(settings: Settings) -> int:
    with listen(settings) as listener:
        gate, graphs = gate_of(settings), read_background(settings)
        read_connectors(settings)  # faults are told before the store is taken
        if settings.tls_cert is not None:
            Certificate(settings.tls_cert, settings.tls_key)
        with (
            _export_place(settings) as place,
            _kept(settings) as keeper,
            _opened(settings, keeper) as log,
            _exported(settings, log, place) as export,
        ):
            with closing(ParsedTexts(settings.data)) as texts:
                recall_texts(log.catalogue.texts, texts)
            load_background(settings, graphs, log)
            server = Server(settings, log, listener, gate, export, keeper, set_aside)
            server.run(sockets=[listener])
    if settings.takeover_s is not None and server.superseded:
        _log.warning("another server has taken the store; this one stands by for it")
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # what was in memory is of no use any more
    return 0 if server.started else 1


def gate_of(settings: Settings) -> Gate:
    """Return the gate that the settings describe. Raises: SettingsError."""
    tokens = None if settings.token_file is None else ReloadedFile(settings.token_file, load_grants, "tokens")
    if settings.oidc_issuer is None:
        return Gate(tokens, settings.origins)
    keys = IssuerKeys(settings.oidc_issuer)
    try:
        jwts = JwtVerifier(settings, keys)
    except MissingExtra as missing:
        raise SettingsError(str(missing)) from None
    return Gate(tokens, settings.origins, jwts, None if settings.oidc_client_id is None else SignIn(settings, keys))


def read_connectors(settings: Settings) -> ConnectorFile | None:
    """Read the file of connectors that the settings name. Raises: SettingsError."""
    if settings.connectors is None:
        return None
    try:
        file = read_connector_file(settings.connectors)
        for connector in file.connectors:
            check_library(connector.system)
    except ConnectorError as fault:
        raise SettingsError(f"--connectors {fault}") from None
    return file


def _url_of(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


@contextmanager
def _kept(settings: Settings) -> Iterator[Replicator | None]:
    """Replicate the data directory to a store meanwhile, if the settings name one; an empty directory is first copied
    from there.

    Raises: SettingsError.
    """
    store = settings.store
    if store is None:
        if is_unfinished(settings.data):
            raise SettingsError(f"{settings.data} is an unfinished copy of a store; give that with --store, or another directory with --data")
        yield None
        return
    with _telling_store(settings):
        keeper = Replicator(settings.data, connect_store(store), away=settings.away, stands_by=settings.takeover_s is not None)
        lease = settings.takeover_s and LeaseHolder(connect_store(store), keeper, settings.takeover_s)
    keeper.start()
    try:
        yield keeper
    finally:
        if lease:
            lease.stop()
        keeper.stop()


@contextmanager
def _telling_store(settings: Settings) -> Iterator[None]:
    """Turn faults of the store into faults of the setting."""
    shown = f"--store {redact_uri(settings.store or '')}"
    try:
        yield
    except OSError as error:
        raise SettingsError(
            f"{shown} or --data {settings.data} cannot be used: {_explain(error)}; make them directories that can be written to"
        ) from None
    except StoreDamaged as error:
        raise SettingsError(f"--store {error}") from None
    except StoreFailed as error:
        raise SettingsError(f"{shown} cannot be used: {error}; {_SEE}") from None


def _explain(error: OSError) -> str:
    """Return in words what went wrong, and where below the named directory."""
    return ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)


def _opened(settings: Settings, keeper: Replicator | None) -> LogWriter:
    try:
        log = LogWriter(
            settings.data,
            clock,
            keep=None if keeper is None else keeper.write_log,
            max_waiting=settings.max_waiting,
            partitions=settings.partitions or recorded(settings.data) or 1,
            repair=lambda fault: keeper is not None and keeper.repair(fault),
        )
        try:
            check_solutions(settings.data)
        except BaseException:
            log.close()
            raise
        return log
    except OSError as error:
        remedy = "make room there" if error.errno == ENOSPC else "make it a directory that can be written to"
        raise SettingsError(f"--data {settings.data} cannot be used: {_explain(error)}; {remedy}, or choose another") from None
    except StoreFailed as error:
        raise SettingsError(f"--store cannot be used: {error}; {_SEE}") from None


@contextmanager
def _export_place(settings: Settings) -> Iterator[ObjectStore | None]:
    """Yield the place to export to once it has answered, or None if the settings ask for no export."""
    given = settings.export
    if given is None:
        yield None
        return
    with _telling(given):
        place = export_place(given)
    with closing(place):
        yield place


@contextmanager
def _telling(given: str) -> Iterator[None]:
    """Turn faults of the place to export to into faults of the setting."""
    try:
        yield
    except OSError as error:
        raise SettingsError(f"--export {redact_uri(given)} cannot be used: {_explain(error)}; make it a directory that can be written to") from None
    except StoreFailed as error:
        raise SettingsError(f"--export {redact_uri(given)} cannot be used: {error}; {_SEE}") from None


@contextmanager
def _exported(settings: Settings, log: LogWriter, place: ObjectStore | None) -> Iterator[Exporter | None]:
    """Write solutions to Parquet files meanwhile, if the settings ask for it.

    The last of them are written after the runner has stopped.
    """
    if place is None or settings.export is None:
        yield None
        return

    def standing() -> dict[int, str]:
        queries = list(log.catalogue.queries.values())
        return {
            version.offset: CHANGELOG if query.emit == REVISED else version.text
            for query in queries
            for version in query.versions or (query.first_version,)
        }

    with _telling(settings.export):
        exporter = Exporter(settings.data, place, standing, settings.export_every_s)
    exporter.start()
    try:
        yield exporter
    finally:
        exporter.stop()


def _config(app: FastAPI, settings: Settings, certificate: Certificate | None) -> uvicorn.Config:
    return uvicorn.Config(
        ShortPosts(app, settings.max_body),
        http=create_protocol(settings.header_s),
        ws=WebSocketWriter,
        ws_max_size=settings.max_frame * _LARGER,
        ws_ping_timeout=None,  # a socket that is not read for back-pressure does not answer pings either
        ws_per_message_deflate=False,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        timeout_graceful_shutdown=_CANCEL_S,  # type: ignore[arg-type]  # uvicorn hands it to asyncio, which takes fractions
        ssl_certfile=None if certificate is None else certificate.path,
        ssl_keyfile=None if certificate is None else certificate.key,
    )


def listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        if not 0 <= settings.port <= 0xFFFF:
            raise OSError(EINVAL, "ports end at 65535")
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        told = f"cannot listen on {settings.host} port {settings.port}: {error.strerror}"
        raise SettingsError(f"{told}; choose another with --port, 0 for any free one") from None
    prepare(listener, settings.stall_s + _STALL_MORE_S)
    return listener

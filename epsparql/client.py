# Made of async_client.py by connection/sync_source.py: change that one.
"""This module is the client for programs without asyncio.

It registers queries, feeds streams, follows solutions, and takes up where a broken connection left off.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidHandshake

from epsparql.connection.messages import (
    Accepted,
    ApiError,
    Change,
    Closed,
    Gap,
    Progress,
    Promoted,
    Source,
    StandingSolutions,
    SubscriptionCursor,
    Unreachable,
    Word,
    accepted_of,
    change_of,
    from_source,
    query_path,
    segment,
)
from epsparql.connection.tls import TrustedFile
from epsparql.connection.transport import SUBPROTOCOL, Connection, OpenAnswer, Transport, raise_if_final
from epsparql.events.event_text import write_events
from epsparql.events.frame_rows import documents_of, triples_of
from epsparql.events.instance_values import write_values
from epsparql.events.media_types import JSON, N_QUADS, NDJSON, TURTLE
from epsparql.events.rdflib_events import is_rdflib_graph, n_quads_of
from epsparql.solutions.solution import Solution, solution_of
from epsparql.solutions.solution_list import Solutions

if TYPE_CHECKING:
    import rdflib

__all__ = [
    "SUBPROTOCOL",
    "Accepted",
    "ApiError",
    "Change",
    "Client",
    "Closed",
    "Feed",
    "Gap",
    "Progress",
    "Promoted",
    "Solution",
    "Solutions",
    "Source",
    "StandingSolutions",
    "Subscription",
    "SubscriptionCursor",
    "Tail",
    "Unreachable",
    "Word",
    "segment",
    "solution_of",
]  # fmt: skip
_STREAM_SETTINGS = (
    "description",
    "max_delay",
    "revisable",
    "idle_timeout",
    "max_ahead",
    "base",
    "on_error",
    "sources",
    "key",
    "parts",
    "round",
    "prefixes",
    "instants",
    "local",
)
_PAGE = 10_000
_AGAIN_S = 0.1
_ENDS = (": the stream is finished", ": the stream was deleted")
_MOST = 1_000_000
_UNAVAILABLE = 503
_SPARQL_QUERY, _SPARQL_JSON = "application/sparql-query", "application/sparql-results+json"


class Client:
    """Sends requests to a server.

    `patience_s` is how long it goes on trying to reach a server that does not answer, restarts included.
    """

    def __init__(
        self, url: str, token: str | None = None, patience_s: float = 60.0, *, ca_file: str | Path | None = None, any_name: bool = False
    ) -> None:
        """Take a server's URL, or those of servers that stand by for each other, with commas between them. With
        https, the certificates of the PEM file `ca_file` are trusted, in place of those that the system trusts.

        With `any_name`, they may be for any name: give that only with a file that holds the server's own certificate.
        Raises: OSError, ssl.SSLError for a file that has no certificates.
        """
        trust = None if ca_file is None else TrustedFile(ca_file, any_name)
        self._transport = Transport(url, token, patience_s + 30, trust)
        self.patience_s = patience_s

    # ------------------------------------------------------------ requests
    def request(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers (names in lower case) and body of a request.

        Raises: ApiError from status 400 on; OSError where nothing answers.
        """
        return self._transport.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def _json(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        body = None if document is None else json.dumps(document)
        _, _, content = self.request(method, path, body, **({"Content_Type": "application/json"} if document is not None else {}))
        found: dict[str, Any] = json.loads(content) if content else {}
        return found

    def wait_ready(self, within_s: float | None = None) -> None:
        """Return when the server and its runner are up. Raises: Unreachable."""
        deadline = time.monotonic() + (self.patience_s if within_s is None else within_s)
        last: Exception | None = None
        while time.monotonic() < deadline:
            try:
                self.request("GET", "/readyz")
                return
            except (OSError, ApiError) as error:
                last = error
                if isinstance(error, ApiError) and "failed" in str(error):
                    break
            self._transport.sleep(0.1)
        raise Unreachable(f"{self._transport.url} is not ready: {last}")

    # ------------------------------------------------------------ streams and queries
    def create_stream(self, name: str, **settings: str | float | Sequence[str] | Mapping[str, Any] | None) -> dict[str, Any]:
        """Set a stream's settings, such as `max_delay="PT1S"`; return the stream."""
        return self._json("PUT", f"/streams/{segment(name)}", settings)

    def stream(self, name: str) -> dict[str, Any]:
        """Return a stream: its settings, watermark and counts. Raises: ApiError 404."""
        return self._json("GET", f"/streams/{segment(name)}")

    def streams(self) -> list[dict[str, Any]]:
        """Return all streams that the token may read."""
        found: list[dict[str, Any]] = (self._json("GET", "/streams"))["streams"]
        return found

    def drop_stream(self, name: str) -> None:
        """Delete a stream. Raises: ApiError 404; 409 while a query reads or writes it."""
        self._json("DELETE", f"/streams/{segment(name)}")

    def finish(self, name: str) -> dict[str, Any]:
        """End a stream: no further event is taken, and what waits for time is decided."""
        return self._json("POST", f"/streams/{segment(name)}/finish")

    def sources(self, name: str) -> dict[str, str | None]:
        """Return the position of each source of a stream, from which to read on; None for a declared one without a
        position.
        """
        return {each["id"]: each["position"] for each in (self._json("GET", f"/streams/{segment(name)}/sources"))["sources"]}

    def events(self, stream: str, last: int = 20) -> list[dict[str, Any]]:
        """Return the last events of a stream, at most 1,000, the newest first: `id`, terms, `start`, `end`,
        `arrived`, `late` and `offset`.
        """
        _, _, content = self.request("GET", f"/streams/{segment(stream)}/events?last={last}", Accept=NDJSON)
        return [json.loads(line) for line in content.splitlines()]

    def tail(self, stream: str, last: int = 20, *, after: str | None = None) -> "Tail":
        """Follow the events of a stream as they arrive: first the last ones, or those after an event's id.

        Each is as from `events`.
        """
        return Tail(self, f"/streams/{segment(stream)}/events?last={last}", after)

    def profile(self, stream: str) -> dict[str, Any]:
        """Return the predicates, classes and datatypes that the last events of a stream carry, with counts, times,
        rates and examples.
        """
        return self._json("GET", f"/streams/{segment(stream)}/profile")

    @overload
    def send(
        self, name: str, body: "bytes | str | rdflib.Graph", media_type: str = NDJSON, *, key: str | None = None, source: Source | None = None,
        at: str | datetime | None = None, **query: str,
    ) -> Accepted: ...  # fmt: skip
    @overload
    def send(
        self, name: "rdflib.Graph", *, key: str | None = None, source: Source | None = None, at: str | datetime | None = None, **query: str
    ) -> Accepted: ...
    def send(
        self, name: Any, body: Any = None, media_type: str = NDJSON, *, key: str | None = None, source: Source | None = None,
        at: str | datetime | None = None, **query: str,
    ) -> Accepted:  # fmt: skip
        """Send one body of events by POST; return when it is durable.

        The body is a text of `media_type`, or a Graph or Dataset of rdflib; `send(graph, at=…)` sends that to the
        stream `default`. `at` is the time of events that carry none: an xsd:dateTime or a datetime, UTC where it has
        no zone.

        Raises: ApiError for a refused body; with the code `source-conflict`, `problem["source"]["position"]` is where
        the source stands. NotInRdflib for a graph with what RDF does not have; OSError where nothing answers.
        """
        stream, content = (name, body) if isinstance(name, str) else ("default", name)
        if is_rdflib_graph(content):
            content, media_type = n_quads_of(content), N_QUADS
        elif not isinstance(content, str | bytes):
            raise TypeError(f"events are a text, bytes or an rdflib Graph, not {type(content).__name__}")
        if at is not None:
            query["at"] = at.isoformat() if isinstance(at, datetime) else at
        path = f"/streams/{segment(stream)}/events" + (f"?{urlencode(query)}" if query else "")
        headers = ({"Idempotency_Key": key} if key else {}) | ({"Epsparql_Source": source.to_json()} if source else {})
        _, _, answer = self.request("POST", path, content, Content_Type=media_type, **headers)
        return accepted_of(json.loads(answer))

    def send_frame(self, name: str, frame: Any, mapping: Mapping[str, Any] | None = None, *, rows: int = 10_000) -> Accepted:
        """Send the rows of a frame of pandas or polars to a stream, so many `rows` in a body; return when all are
        durable.

        With a `mapping`, any columns are taken: the document says what they become. It is set as the stream's
        mapping, which needs a token of an admin unless the stream has it already. Missing values and NaN give no
        triple.

        Without a mapping, the columns are `s`, `p`, `o`, and `at`, or `start` and `end`. Terms are N-Triples texts or
        terms of rdflib; objects may be Python values too. Times are timestamps or xsd:dateTime texts, UTC where they
        have no zone.

        Raises: ValueError for other columns, TypeError for other values, both before anything is sent; ApiError for a
        refused mapping or body, when the rows before the body have been accepted. Rows that are sent again are no new
        events if they have times.
        """
        lines = write_events(triples_of(frame)).splitlines(keepends=True) if mapping is None else list(documents_of(frame))
        if mapping is not None:
            self.set_mapping(name, mapping)
        parts = []
        for first in range(0, len(lines) or 1, rows):
            chosen = lines[first : first + rows]
            body, media_type = ("".join(chosen), NDJSON) if mapping is None else (f"[{','.join(chosen)}]", JSON)
            parts.append(self.send(name, body, media_type))
        return Accepted(
            parts[-1].offset,
            sum(part.accepted for part in parts),
            sum(part.late for part in parts),
            parts[0].warning,
            rejected=sum(part.rejected for part in parts),
        )

    def set_mapping(self, name: str, mapping: Mapping[str, Any]) -> None:
        """Set a stream's mapping, and keep its other settings. Nothing is sent if the stream has this mapping.

        Raises: ApiError for a refused mapping, or a token without the scope `admin`.
        """
        try:
            known = self.stream(name)
        except ApiError as error:
            if error.status != 404:
                raise
            known = {}
        if known.get("mapping") != mapping:
            kept = {setting: known[setting] for setting in _STREAM_SETTINGS if setting in known}
            self._json("PUT", f"/streams/{segment(name)}", kept | {"mapping": mapping})

    def register(self, name: str, query: str, *, replace: bool = False, start: str | int = "now", **options: str | int) -> dict[str, Any]:
        """Register a query; `start` is now, beginning, or the log's offset from which the query reads.

        With `emit="revised"` it gives changes.
        """
        path = f"/queries/{segment(name)}" + ("?replace=true" if replace else "")
        return self._json("PUT", path, {"query": query, "from": start, **options})

    def replace(self, name: str, query: str, *, start: str | int = "now", **options: str | int) -> dict[str, Any]:
        """Register a query in place of the one of this name, which is dropped with its solutions.

        `promote` keeps these. Raises: as `register`.
        """
        return self.register(name, query, replace=True, start=start, **options)

    def promote(
        self, name: str, query: str, *, change_columns: bool = False, start: str | int | None = None, **options: str
    ) -> dict[str, Any]:  # fmt: skip
        """Let a text take a query's place at one position of the log; followers stay connected, and ids go on.

        The text reads the log from where the query began, or from `start`. Return the query; `["promotion"]["state"]`
        is waiting while the text has not caught up. Raises: ApiError 409 for other columns, unless they may change.
        """
        path = f"/queries/{segment(name)}?replace=promote" + ("&columns=change" if change_columns else "")
        return self._json("PUT", path, {"query": query, **({} if start is None else {"from": start}), **options})

    def promotion(self, name: str) -> dict[str, Any]:
        """Return the last promotion of a query: its state, its text, and how far that is. Raises: ApiError 404."""
        return self._json("GET", f"/queries/{segment(name)}/promotion")

    def withdraw_promotion(self, name: str) -> None:
        """End a promotion that has not taken over. Raises: ApiError 409 where it has."""
        self._json("DELETE", f"/queries/{segment(name)}/promotion")

    def versions(self, name: str) -> list[dict[str, Any]]:
        """Return the texts that a query has had, the present one last."""
        found: list[dict[str, Any]] = (self._json("GET", f"/queries/{segment(name)}/versions"))["versions"]
        return found

    def promote_version(self, name: str, version: int, *, change_columns: bool = False) -> dict[str, Any]:
        """Let an earlier text of a query take its place again, as `promote` does."""
        path = f"/queries/{segment(name)}/versions/{version}/promote" + ("?columns=change" if change_columns else "")
        return self._json("POST", path)

    def query(self, name: str) -> dict[str, Any]:
        """Return a query: its text, state and counts. Raises: ApiError 404."""
        return self._json("GET", f"/queries/{segment(name)}")

    def queries(self) -> list[dict[str, Any]]:
        """Return all queries that the token may read."""
        found: list[dict[str, Any]] = (self._json("GET", "/queries"))["queries"]
        return found

    def pause(self, name: str) -> dict[str, Any]:
        """Pause a query; `resume` has it read what came meanwhile."""
        return self._json("POST", f"/queries/{segment(name)}/pause")

    def resume(self, name: str) -> dict[str, Any]:
        """Resume a paused query."""
        return self._json("POST", f"/queries/{segment(name)}/resume")

    def drop(self, name: str) -> None:
        """Drop a query, and its solutions."""
        self._json("DELETE", f"/queries/{segment(name)}")

    def why(self, name: str, solution: str) -> dict[str, Any]:
        """Return what the solution with this id rests on: occurrences, background, rules and inferences.

        Raises: ApiError 404; 410 where the log has gone.
        """
        return self._json("GET", f"/queries/{segment(name)}/solutions/{segment(solution)}/why")

    def diagnose(self, name: str) -> dict[str, Any]:
        """Return why a query finds nothing: its `steps` with their counts, and the `reason`. Raises: ApiError 404."""
        return self._json("GET", f"/queries/{segment(name)}/diagnosis")

    # ------------------------------------------------------------ instances
    def set_instance(self, query: str, instance: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Add an instance of a query with PARAMETERS, or change its values by parameter; return it.

        A value is a term of rdflib, a Python value, or a text in N-Triples syntax. Raises: ApiError 400 with the fault.
        """
        return self._json("PUT", f"/queries/{segment(query)}/instances/{segment(instance)}", write_values(values))

    def set_instances(self, query: str, instances: Mapping[str, Mapping[str, Any] | None]) -> dict[str, Any]:
        """Add, change or remove (None) many instances by id, all of them or none.

        Return how many were `set` and `removed`, and the log's `offset` from which on they have solutions.
        """
        lines = ({"id": name, "values": None if values is None else write_values(values)} for name, values in instances.items())
        body = "".join(f"{json.dumps(line)}\n" for line in lines)
        _, _, content = self.request("POST", f"/queries/{segment(query)}/instances", body, Content_Type=NDJSON)
        found: dict[str, Any] = json.loads(content)
        return found

    def instances(self, query: str, *, after: str = "", prefix: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        """Return a page of instances, in order of their ids: the `id` of each, and its `values` in N-Triples syntax."""
        asked = urlencode({"after": after, "prefix": prefix, "limit": str(limit)})
        found: list[dict[str, Any]] = (self._json("GET", f"/queries/{segment(query)}/instances?{asked}"))["instances"]
        return found

    def remove_instance(self, query: str, instance: str) -> None:
        """Remove an instance, which has no solutions from then on. Raises: ApiError 404."""
        self._json("DELETE", f"/queries/{segment(query)}/instances/{segment(instance)}")

    # ------------------------------------------------------------ background
    def background(self) -> list[dict[str, Any]]:
        """Return the graphs of the background: `name`, `triples`, `size` in bytes, and `offset` of the last change in
        the log.
        """
        found: list[dict[str, Any]] = (self._json("GET", "/ontologies"))["ontologies"]
        return found

    def load_background(
        self, name: str, body: "bytes | str | rdflib.Graph", media_type: str = TURTLE, *, add: bool = False
    ) -> dict[str, Any]:  # fmt: skip
        """Replace a graph of the background, or `add` triples to it; the name `default` stands for triples in no
        graph. Return the graph.

        The body is a text of `media_type`, or a graph of rdflib. Raises: ApiError; NotInRdflib for a graph with what
        RDF does not have.
        """
        content, kind = (body, media_type) if isinstance(body, str | bytes) else (n_quads_of(body), N_QUADS)
        path = f"/ontologies/{segment(name)}"
        _, _, answer = self.request("POST" if add else "PUT", path, content, Content_Type=kind)
        found: dict[str, Any] = json.loads(answer)
        return found

    def read_background(self, name: str, media_type: str = TURTLE, *, derived: bool = False) -> str:
        """Return a graph of the background as a text, with `derived` also what static rules derive in it.

        Raises: ApiError 404.
        """
        path = f"/ontologies/{segment(name)}" + ("?derived=true" if derived else "")
        _, _, content = self.request("GET", path, Accept=media_type)
        return content.decode()

    def drop_background(self, name: str) -> None:
        """Drop a graph of the background; solutions found with it stay. Raises: ApiError 404."""
        self._json("DELETE", f"/ontologies/{segment(name)}")

    def query_background(self, query: str, media_type: str = _SPARQL_JSON) -> str:
        """Return the answer of a SPARQL query over the background alone, as a text of `media_type`. Raises: ApiError."""
        _, _, content = self.request("POST", "/sparql", query, Content_Type=_SPARQL_QUERY, Accept=media_type)
        return content.decode()

    # ------------------------------------------------------------ trials
    def start_trial(
        self, query: str, *, compare_with: str | None = None, start: str | int = "beginning", until: str | int = "now", **options: str
    ) -> dict[str, Any]:  # fmt: skip
        """Start a trial: what would a query have found in the log's past, and how does that differ from a registered
        one?

        `start` and `until` are offsets of the log, or xsd:dateTimes or dates. Return the trial; `trial` tells how it
        goes on by its `["id"]`.
        """
        wish = {"query": query, "from": start, "to": until, **({} if compare_with is None else {"compare_with": compare_with}), **options}
        return self._json("POST", "/trials", wish)

    def trial(self, trial: str) -> dict[str, Any]:
        """Return a trial: its state, its progress, its counts and its timeline. Raises: ApiError 404."""
        return self._json("GET", f"/trials/{segment(trial)}")

    def trials(self) -> list[dict[str, Any]]:
        """Return the trials that the token may read, the newest first."""
        found: list[dict[str, Any]] = (self._json("GET", "/trials"))["trials"]
        return found

    def trial_solutions(self, trial: str, of: str = "new", *, after: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Return a page of the solutions that a trial kept, after the first `after` ones.

        They are of the `new` side alone, of the `old` side alone, or of `both`.
        """
        path = f"/trials/{segment(trial)}/solutions?{urlencode({'of': of, 'after': after, 'limit': limit})}"
        found: list[dict[str, Any]] = (self._json("GET", path))["solutions"]
        return found

    def drop_trial(self, trial: str) -> None:
        """Cancel a trial, if it is at work, and delete what it found."""
        self._json("DELETE", f"/trials/{segment(trial)}")

    # ------------------------------------------------------------ solutions
    def solutions(self, name: str, *, after: str | None = None, limit: int = 1000, wait_s: float = 0.0, instance: str | None = None) -> Solutions:
        """Return a page of solutions after an id, or of those of one instance; wait up to `wait_s` seconds for a first one."""
        query = {"limit": str(limit), "wait": str(wait_s)} | ({"after": after} if after else {})
        _, _, content = self.request("GET", f"{query_path(name, instance)}/solutions?{urlencode(query)}", Accept=NDJSON)
        return Solutions(solution_of(json.loads(line)) for line in content.splitlines())

    def changes(self, name: str, *, after: str | None = None, limit: int = 1000, wait_s: float = 0.0) -> list[Change]:
        """Return a page of a revised query's changes after a `seq`; wait up to `wait_s` seconds for a first one."""
        query = {"limit": str(limit), "wait": str(wait_s)} | ({"after": after} if after else {})
        _, _, content = self.request("GET", f"/queries/{segment(name)}/solutions?{urlencode(query)}", Accept=NDJSON)
        return [change_of(json.loads(line)) for line in content.splitlines()]

    def _all(self, name: str, after: str | None, limit: int) -> Solutions:
        """Return the solutions that are there. Raises: ValueError for more than `limit`."""
        found = Solutions()
        while page := self.solutions(name, after=found[-1].id if found else after, limit=_PAGE):
            found += page
            if len(found) > limit:
                raise ValueError(f"{name!r} has more than {limit:,} solutions to read; begin later with after=, or give a higher limit=")
        return found

    def frame(self, name: str, *, after: str | None = None, library: str = "pandas", exact: bool = True, limit: int = _MOST) -> Any:
        """Return the solutions after an id, all that are there, as a frame of `pandas` or `polars`: see
        Solutions.to_frame.

        Raises: MissingExtra; ApiError; ValueError for more than `limit` solutions.
        """
        return (self._all(name, after, limit)).to_frame(library, exact=exact)

    def graph(self, name: str, *, after: str | None = None, limit: int = _MOST) -> "rdflib.Graph":
        """Return the triples of a CONSTRUCT or DESCRIBE query's solutions after an id, all that are there, as one
        graph of rdflib.

        Raises: NotInRdflib for triple terms, and for a query of another form; ApiError; ValueError for more than
        `limit` solutions.
        """
        return (self._all(name, after, limit)).to_rdflib()

    # ------------------------------------------------------------ WebSockets
    def feed(self, stream: str, *, window: int = 256) -> "Feed":
        """Return a connection for events; up to `window` frames may their acks."""
        return Feed(self, f"/streams/{segment(stream)}/feed", window)

    def follow(self, query: str, *, after: str | None = None, policy: str = "disconnect", instance: str | None = None) -> "Subscription":
        """Follow a query's solutions, or those of one instance, after an id (from the first one without), and as they
        come. `policy` may be `drop-oldest` where all are followed.

        Of a revised query, `changes()` of what is returned gives the changes.
        """
        return Subscription(self, query, after, policy, instance)

    def retry(self, attempt: Callable[[], object]) -> None:
        """Call `attempt` until it succeeds. Raises: Unreachable once patience is over; Closed."""
        deadline, pause_s = time.monotonic() + self.patience_s, 0.05
        while True:
            try:
                attempt()
                return
            except (OSError, InvalidHandshake, ConnectionClosed) as error:
                if time.monotonic() + pause_s > deadline:
                    raise Unreachable(f"{self._transport.url} does not answer: {error}") from error
                self._transport.turn()
            self._transport.sleep(pause_s)
            pause_s = min(pause_s * 2, 1.0)


class _Socket:
    """Keeps a WebSocket that can be opened again."""

    def __init__(self, client: Client) -> None:
        self._client, self._transport = client, client._transport
        self._connection: Connection | None = None
        self._open = ExitStack()

    def _dial(self, path: str) -> Connection:
        """Attempt once to open a new connection in place of the old one."""
        self.close()
        self._connection = self._open.enter_context(self._transport.dial(path))
        return self._connection

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        self._connection = None
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Feed(_Socket):
    """Sends frames of ndjson, which are answered in order. Frames without an answer are sent again after a reconnect:
    a repeat is no second event.

    `acked` is the newest acknowledged log position, `answered` the number of frames that were answered. A feed is for
    one task or thread at a time.
    """

    def __init__(self, client: Client, path: str, window: int) -> None:
        super().__init__(client)
        self._path, self._window = path, window
        self._pending: deque[str] = deque()
        self.acked, self.answered = 0, 0
        self._refused_since = 0.0  # when the first of the servers refused to write; 0 where none does

    def send(self, frame: str, *, source: Source | None = None) -> None:
        """Send one frame; wait while `window` frames are unanswered.

        Raises: ApiError for a refused frame (the later ones go on); Unreachable; Closed.
        """
        frame = from_source(frame, source)
        self._pending.append(frame)
        try:
            if self._connection is None:
                self._reopen()
            else:
                self._connection.send(frame)
        except ConnectionClosed as error:
            raise_if_final(error)
            self._reopen()
        self._take_answers(down_to=self._window)

    def flush(self) -> int:
        """Wait until every frame is answered; return `acked`. Raises: as `send`."""
        self._take_answers(down_to=0)
        return self.acked

    def _reopen(self) -> None:
        self._client.retry(self._connect)

    def _connect(self) -> None:
        connection = self._dial(self._path)
        try:
            for frame in self._pending:
                connection.send(frame)
        except ConnectionClosed as error:
            raise_if_final(error)
            raise

    def _take_answers(self, down_to: int) -> None:
        """Take the answers that are there, and those needed to leave at most `down_to` frames unanswered."""
        while self._pending:
            try:
                if self._connection is None:
                    self._reopen()
                assert self._connection is not None
                answer = self._transport.receive(self._connection, None if len(self._pending) > down_to else 0)
            except TimeoutError:
                return
            except ConnectionClosed as error:
                raise_if_final(error)
                self._reopen()
                continue
            document = json.loads(answer)
            if document.get("error", {}).get("status") == _UNAVAILABLE and self._may_turn():
                self.close()  # the server has lost its store; the frame is sent again to the one that has it
            else:
                self._take_answer(document)

    def _may_turn(self) -> bool:
        """Turn to the next server, if there are several and patience lasts."""
        if not self._transport.turn():
            return False
        now = time.monotonic()
        self._refused_since = self._refused_since or now
        return now - self._refused_since < self._client.patience_s

    def _take_answer(self, answer: Mapping[str, Any]) -> None:
        self._refused_since = 0.0
        self._pending.popleft()
        self.answered += 1
        if "error" in answer:
            raise ApiError(answer["error"])
        self.acked = int(answer["ack"])


class Subscription(_Socket, SubscriptionCursor):
    """Gives solutions in order, each once, across reconnects."""

    def __init__(self, client: Client, query: str, after: str | None, policy: str, instance: str | None = None) -> None:
        _Socket.__init__(self, client)
        SubscriptionCursor.__init__(self, query, after, policy, instance)
        self._lines: deque[str] = deque()  # messages of the newest frame that were not taken yet

    def next(self, timeout_s: float | None = None) -> Word | None:
        """Return the next message; None after `timeout_s`. Raises: Closed when the server ends it; Unreachable."""
        while True:
            try:
                self.open()
                assert self._connection is not None
                if not self._lines:
                    self._lines.extend(str(self._transport.receive(self._connection, timeout_s)).rstrip("\n").split("\n"))
                message = json.loads(self._lines.popleft())
            except TimeoutError:
                return None
            except ConnectionClosed as error:
                raise_if_final(error)
                self.close()
                continue
            word = self.told(message)
            if word is not None:
                return word

    def open(self) -> None:
        """Connect now rather than at the first `next`."""
        if self._connection is None:
            self._client.retry(self._connect)

    def _connect(self) -> None:
        self._lines.clear()  # they come again, since the address says which solution was the last
        self._dial(self.path)

    def __iter__(self) -> Iterator[Solution]:
        """Iterate over solutions until the stream's end: progress `finished`, or a normal close."""
        for word in self._words():
            if isinstance(word, Solution):
                yield word

    def changes(self) -> Iterator[Change]:
        """Iterate over the changes of a revised query, as over solutions."""
        for word in self._words():
            if isinstance(word, Change):
                yield word

    def _words(self) -> Iterator[Word]:
        while True:
            try:
                word = self.next()
            except Closed as closed:
                if closed.code == 1000:
                    return
                raise
            if isinstance(word, Progress) and word.finished:
                return
            if word is not None:
                yield word


class Tail:
    """Gives a stream's events in the order of arrival, each once, across reconnects.

    `last` is the id after which it continues.
    """

    def __init__(self, client: Client, path: str, last: str | None) -> None:
        self._client, self._transport, self._path, self.last = client, client._transport, path, last
        self._answer: OpenAnswer | None = None

    def open(self) -> None:
        """Connect now rather than at the first event. Raises: ApiError; Unreachable."""
        if self._answer is None:
            self._client.retry(self._connect)

    def close(self) -> None:
        """Close the connection; iterating opens another one."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def _connect(self) -> None:
        self._answer = self._transport.open_events(self._path, self.last)

    def _next_line(self) -> str:
        """Return the next whole line; empty where the connection has ended. Raises: as `open`."""
        self.open()
        assert self._answer is not None
        try:
            line = self._transport.read_line(self._answer)
        except OSError:
            return ""
        return line if line.endswith("\n") else ""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over events until the stream is finished or deleted. Raises: as `open`."""
        told = None
        while True:
            line = self._next_line()
            if not line:
                told = None
                self.close()
                self._transport.sleep(_AGAIN_S)
            elif line.startswith("id: "):
                told = line[4:].strip()
            elif line.startswith("data: "):
                self.last = told
                yield json.loads(line[6:])
            elif line == "\n":
                self.last = told or self.last
            elif line.strip() in _ENDS:
                self.close()
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

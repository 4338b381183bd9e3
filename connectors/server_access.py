"""Reaches the server: its positions of sources, its streams and its queries.

Faults of the connection become faults to try again.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from connectors.errors import RefusedMessage, SystemFault
from epsparql.client import Accepted, ApiError, Client, Source, segment
from epsparql.deferred_methods import dataclass

_CONTENT = (400, 413, 422)
"""With these the server refuses what a body says. All other refusals concern the server or its settings."""
BUSY = 429
_LONGEST_LETTER = 1_000
"""The feed keeps so many characters of a message."""


class ServerBusy(SystemFault):
    """Reports that the server asks for the same request again later."""


class SourceAhead(ServerBusy):
    """Reports that the server takes no more of a source until slower ones have come further."""


@dataclass(frozen=True, slots=True)
class SolutionPage:
    """Holds solutions of one registration of a query, as the server wrote them, and the state of the query before
    they were read.
    """

    registered: int
    state: str
    total: int
    documents: tuple[dict[str, Any], ...]
    texts: tuple[bytes, ...]
    query: str
    revised: bool = False


class ServerAccess:
    """Makes the requests of one connector."""

    def __init__(self, url: str, token: str | None, ca_file: str | None = None, any_name: bool = False) -> None:
        self._client = Client(url, token, patience_s=0, ca_file=ca_file, any_name=any_name)

    def read_positions(self, stream: str) -> dict[str, str]:
        """Return the stored positions of a stream's sources, by their ids. Raises: SystemFault."""
        try:
            with _faults():
                found = self._client.sources(stream)
        except _NotFound:  # the first event creates the stream
            return {}
        return {id_: position for id_, position in found.items() if position is not None}

    def send_body(self, stream: str, body: bytes, media_type: str, source: Source | None, on_error: str | None = None) -> Accepted:
        """Send a body, with a position if there is one; `on_error` is in place of the stream's.

        Raises: RefusedMessage, ServerBusy, SystemFault.
        """
        with _faults():
            return self._client.send(stream, body, media_type, source=source, **({"on_error": on_error} if on_error else {}))

    def send_dead_letter(self, stream: str, text: str, reason: str, source: Source | None) -> None:
        """Put a message into the stream's dead-letter feed, with a position if there is one.

        Raises: RefusedMessage, ServerBusy, SystemFault.
        """
        content = json.dumps({"reason": reason, "text": text[:_LONGEST_LETTER]}).encode()
        headers = {"Epsparql_Source": source.to_json()} if source else {}
        with _faults():
            self._client.request("POST", f"/streams/{segment(stream)}/rejected", content, Content_Type="application/json", **headers)

    def read_solutions(self, query: str, cursor: tuple[int, str] | None, limit: int, wait_s: float) -> SolutionPage | None:
        """Return the solutions after a cursor, which is a registration and an id; None where the query was replaced
        meanwhile.

        A cursor of an earlier registration leads to the first solution of the present one. Raises: SystemFault.
        """
        with _faults():
            before = self._client.query(query)
            after = cursor[1] if cursor is not None and cursor[0] == before["registered"] else None
            parameters = {"limit": str(limit), "wait": f"{wait_s:g}"} | ({"after": after} if after else {})
            path = f"/queries/{segment(query)}/solutions?{urlencode(parameters)}"
            _, _, content = self._client.request("GET", path, Accept="application/x-ndjson")
            if self._client.query(query)["registered"] != before["registered"]:
                return None
        texts = tuple(content.splitlines())
        documents, revised = tuple(map(json.loads, texts)), before.get("emit") == "revised"
        return SolutionPage(before["registered"], before["state"], before["solutions"], documents, texts, before["query"], revised)

    def read_variables(self, query: str) -> tuple[str, ...]:
        """Return the variables of a SELECT; none for another query. Raises: SystemFault."""
        with _faults():
            path = f"/queries/{segment(query)}/solutions?limit=1&order=newest"
            _, _, content = self._client.request("GET", path, Accept="application/sparql-results+json")
        return tuple(json.loads(content)["head"].get("vars", ()))


class _NotFound(SystemFault):
    """Reports that the server knows no such stream or query."""


@contextmanager
def _faults() -> Iterator[None]:
    """Turn faults of the client into those of connectors."""
    try:
        yield
    except ApiError as error:
        if error.status in _CONTENT:
            raise RefusedMessage(_explain(error)) from None
        if error.status == BUSY:
            raise (SourceAhead if error.code == "source-silent" else ServerBusy)(f"the server is busy: {_explain(error)}") from None
        raise (_NotFound if error.status == 404 else SystemFault)(f"the server refuses this: {_explain(error)}") from None
    except OSError as error:
        raise SystemFault(f"the server does not answer: {error}") from None


def _explain(error: ApiError) -> str:
    """Return the server's reason in its words: the place in the message, what is wrong, and what would be accepted."""
    problem = error.problem
    place = f"line {problem['line']}, column {problem.get('column')}: " if "line" in problem else ""
    expected = f"; expected {problem['expected']}" if problem.get("expected") else ""
    return f"{place}{problem.get('detail') or error}{expected}"

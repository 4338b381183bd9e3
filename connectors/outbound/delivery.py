"""Moves a query's solutions to a sink.

1. Open the sink, which tells its cursor: how far it is.
2. Read a page of solutions after the cursor, leave out those that `once_per` asks for, and write the others with the new cursor.
After any fault this begins anew at 1. A sink that writes rows and cursor in one transaction has every solution exactly once.
"""

import json
from collections.abc import Iterator
from threading import Event
from typing import Any

from connectors.configuration import Connector
from connectors.errors import RefusedMessage, SystemFault
from connectors.outbound.repeats import RepeatFilter
from connectors.outbound.sink import Cursor, Sink, SolutionMessage
from connectors.retries import Backoff
from connectors.server_access import ServerAccess, SolutionPage
from connectors.status import COMPLETED, RUNNING, STOPPED, StatusBoard

_WAIT_S = 2.0
_ENDED = ("completed", "failed")


class OutboundDelivery:
    """Runs one connector from a query to a sink, until `stopping` is set. `repeats` leaves repeated alerts out."""

    def __init__(
        self, connector: Connector, sink: Sink, server: ServerAccess, board: StatusBoard, stopping: Event, repeats: RepeatFilter | None = None
    ) -> None:
        self._sink, self._server, self._board, self._stopping, self._repeats = sink, server, board, stopping, repeats
        self._query, self._batch = connector.options["query"], connector.options["batch"]
        self._every_s: float = connector.options.get("every_s", 0.0)
        self._backoff = Backoff(stopping, board)

    def run(self) -> None:
        """Deliver until `stopping` is set."""
        while not self._stopping.is_set():
            try:
                self._deliver()
            except (SystemFault, RefusedMessage) as fault:
                self._sink.close()
                self._backoff.wait_after(fault)
        self._sink.close()
        self._board.update(state=STOPPED)

    def _deliver(self) -> None:
        cursor = self._sink.fetch_cursor()
        if self._repeats is not None:
            self._repeats.resume(cursor, self._read_from)
        while not self._stopping.is_set():
            before = None if cursor is None else (cursor.registered, cursor.id)
            page = self._server.read_solutions(self._query, before, self._batch, _WAIT_S)
            if page is None:
                continue
            if page.revised and not self._sink.takes_changes:
                raise SystemFault(
                    f"the query {self._query!r} is emitted as revised, and this system keeps what it was given: let it read a query with emit certain"
                )
            solutions = _number_changes(page, cursor) if page.revised else _number_solutions(page, cursor)
            if solutions:
                self._write_page(page, solutions)
                cursor = solutions[-1].cursor
            self._backoff.reset()
            written = _count_written(page, cursor)
            ended = page.state in _ENDED and not solutions
            self._board.update(
                state=COMPLETED if ended else RUNNING,
                position=None if cursor is None else str(cursor),
                lag=max(page.total - written, 0),
            )
            if ended:
                self._stopping.wait(_WAIT_S)  # the query may be replaced
            elif 0 < len(solutions) < self._batch:
                self._stopping.wait(self._every_s)  # a backlog is written at once

    def _write_page(self, page: SolutionPage, solutions: list[SolutionMessage]) -> None:
        """Write solutions, or those of them that do not repeat a written one."""
        if self._repeats is None:
            self._sink.write(solutions)
            self._board.count(messages=len(solutions))
            return
        if page.revised:
            raise SystemFault(f"the query {self._query!r} is emitted as revised, and a change may withdraw an alert; leave once_per out")
        if "binding" not in solutions[0].document:
            raise SystemFault(f"the query {self._query!r} is no SELECT, and once_per tells solutions apart by variables; leave once_per out")
        self._repeats.follow_registration(page.registered, page.query, lambda: self._server.read_variables(self._query))
        if chosen := self._repeats.choose(solutions):
            self._sink.write(chosen)
            self._repeats.record_written(chosen[-1].cursor)
        self._board.count(messages=len(chosen), suppressed=len(solutions) - len(chosen))
        self._board.update(forgotten=self._repeats.forgotten)

    def _read_from(self, registered: int, id_: str) -> Iterator[dict[str, Any]]:
        """Yield the solutions of a registration after an id, as far as there are any."""
        while not self._stopping.is_set():
            page = self._server.read_solutions(self._query, (registered, id_), self._batch, 0)
            if page is None or page.registered != registered or not page.documents:
                return
            yield from page.documents
            id_ = page.documents[-1]["id"]


def _number_solutions(page: SolutionPage, cursor: Cursor | None) -> list[SolutionMessage]:
    """Return the solutions of a page with their cursors. The count begins anew with a new registration."""
    written = _count_written(page, cursor)
    return [
        SolutionMessage(document, text, Cursor(page.registered, document["id"], written + number))
        for number, (document, text) in enumerate(zip(page.documents, page.texts, strict=True), 1)
    ]


def _number_changes(page: SolutionPage, cursor: Cursor | None) -> list[SolutionMessage]:
    """Return the changes of a page, each of one solution, with their cursors.

    Those of one entry of the log stay together if the page has them all.
    """
    whole = next((count for count in range(len(page.documents), 0, -1) if not page.documents[count - 1].get("more")), len(page.documents))
    written = _count_written(page, cursor)
    found = list[SolutionMessage]()
    for number, change in enumerate(page.documents[:whole], written + 1):
        (solution,) = change["added"] or change["withdrawn"]
        document = {"query": change["query"], **solution}
        text = json.dumps(document, ensure_ascii=False).encode()
        found.append(SolutionMessage(document, text, Cursor(page.registered, change["seq"], number), withdrawn=not change["added"]))
    return found


def _count_written(page: SolutionPage, cursor: Cursor | None) -> int:
    return cursor.written if cursor is not None and cursor.registered == page.registered else 0

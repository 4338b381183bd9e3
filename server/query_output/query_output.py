"""Reads what all followers of a query share: pages of its solutions, and its progress."""

import pyarrow as pa

from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import drop_shape
from pipeline.solutions.formats import ndjson
from pipeline.solutions.solution_log import SolutionReader, solution_id
from server.query_output.notices import Notices, split_by_form
from server.query_output.notifier import Notifier
from server.query_output.page_cache import Page, PageCache, SolutionLine
from server.query_output.watermark_progress import QueryProgress
from server.query_output.websocket_protocol import encode_text_frame
from server.registrations.catalog_view import CatalogView


class QueryOutput:
    """Caches pages and progress by registration, so that each is computed once for all followers."""

    def __init__(self, catalog: CatalogView, notifier: Notifier, solutions: SolutionReader) -> None:
        self._catalog, self._notifier, self._solutions = catalog, notifier, solutions
        self._pages: dict[int, PageCache] = {}
        self._progress: dict[int, QueryProgress | None] = {}
        self._generation = 0
        """The generation of the notifier in which `_progress` was computed."""

    def get_pages(self, registration: Registration) -> PageCache:
        """Return the cache of the query's pages."""
        number = registration.registered
        if number not in self._pages:
            notices = Notices(self._solutions, number)

            def read_page(after: str | None, limit: int) -> Page:
                found = self._solutions.read(number, after, limit)
                now = self._catalog.refresh(registration) or registration  # after reading, for a notice comes with the solutions beyond it
                return _encode_page(now, found, notices, after or "", full=found.num_rows == limit)

            def read_page_at_hand(after: str, limit: int) -> Page | None:
                found = self._solutions.read_at_hand(number, after, limit)
                now = self._catalog.refresh(registration) or registration
                if found is None or not notices.is_ready(now):
                    return None
                return _encode_page(now, found, notices, after, full=found.num_rows == limit)

            self._pages[number] = PageCache(read_page, read_page_at_hand)
        return self._pages[number]

    def get_progress(self, registration: Registration) -> QueryProgress | None:
        """Return the query's progress."""
        if self._generation != self._notifier.generation:
            self._generation, self._progress = self._notifier.generation, {}
        known, number = self._progress, registration.registered
        if number not in known:
            now = self._catalog.refresh(registration) or registration
            known[number] = self._notifier.watermarks.compute_progress(self._solutions.position, now, self._catalog.list_queries())
        return known[number]

    def drop_query(self, registration: Registration) -> None:
        """Drop what is cached of a query that was dropped."""
        for version in registration.promoted:
            drop_shape(version.text)
        self._pages.pop(registration.registered, None)


def _encode_page(registration: Registration, found: pa.RecordBatch, notices: Notices, after: str, *, full: bool) -> Page:
    lines = list[SolutionLine]()
    for part, form in split_by_form(registration, found):
        ids = map(solution_id, part.column("end").cast(pa.int64()).to_pylist(), part.column("ordinal").to_pylist())
        texts = ndjson(part, {registration.name: form}).each()
        lines += [SolutionLine(id_, text, encode_text_frame(f'{{"solution":{text}}}')) for id_, text in zip(ids, texts, strict=True)]
    due = [line for line in notices.list_lines(registration) if line.id > after and not (full and line.id > lines[-1].id)]
    return tuple(sorted((*lines, *due), key=lambda line: line.id) if due else lines)

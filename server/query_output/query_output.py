"""Reads what all followers of a query share: pages of its solutions, and its progress."""

import pyarrow as pa

from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import drop_shape, get_shape
from pipeline.solutions.json_encoder import Envelope, ndjson
from pipeline.solutions.result_kinds import Form
from pipeline.solutions.solution_log import SolutionReader
from server.query_output.notifier import Notifier
from server.query_output.page_cache import Page, PageCache
from server.query_output.watermark_progress import QueryProgress
from server.registrations.catalog_view import CatalogView


class QueryOutput:
    """Caches pages and progress by registration, so that each is computed once for all followers."""

    def __init__(self, catalog: CatalogView, notifier: Notifier, solutions: SolutionReader) -> None:
        self._catalog, self._notifier, self._solutions = catalog, notifier, solutions
        self._pages: dict[tuple[int, Envelope], PageCache] = {}
        self._progress: dict[int, QueryProgress | None] = {}
        self._generation = 0
        """The generation of the notifier in which `_progress` was computed."""

    def get_pages(self, registration: Registration, envelope: Envelope) -> PageCache:
        """Return the cache of the query's pages, as they are written for followers of one kind."""
        number = registration.registered
        if (number, envelope) not in self._pages:
            form, read, read_at_hand = get_shape(registration.text).form, self._solutions.read, self._solutions.read_at_hand

            def write_page(found: pa.RecordBatch) -> Page:
                return _write_page(found, {registration.name: form}, envelope)

            def read_page(after: str | None, limit: int) -> Page:
                return write_page(read(number, after, limit))

            def read_page_at_hand(after: str, limit: int) -> Page | None:
                found = read_at_hand(number, after, limit)
                return None if found is None else write_page(found)

            self._pages[number, envelope] = PageCache(read_page, read_page_at_hand)
        return self._pages[number, envelope]

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
        drop_shape(registration.text)
        for envelope in Envelope:
            self._pages.pop((registration.registered, envelope), None)


def _write_page(found: pa.RecordBatch, forms: dict[str, Form], envelope: Envelope) -> Page:
    return Page(found.column("end").view(pa.int64()).to_numpy(), found.column("ordinal").to_numpy(), ndjson(found, forms, envelope))

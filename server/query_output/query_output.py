"""Reads what all followers of a query share: pages of its solutions, and its progress."""

from collections.abc import Callable
from typing import TypeVar
from weakref import WeakValueDictionary

import pyarrow as pa

from engine.messages import int64s
from epsparql.trees import replace_fields
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import drop_shape
from pipeline.solutions.json_encoder import Envelope, ndjson
from pipeline.solutions.result_kinds import Bindings, Form, InstanceLife
from pipeline.solutions.solution_ids import KeyRange, key_of, solution_id
from pipeline.solutions.solution_log import SolutionReader, list_instances
from server.query_output.notifier import Notifier
from server.query_output.page_cache import Notice, Page, PageCache
from server.query_output.promotion_notices import PromotionNotices, split_by_form
from server.query_output.watermark_progress import QueryProgress
from server.registrations.catalog_view import CatalogView

_Found = TypeVar("_Found")
_OWN_PAGE = 250
"""A follower of one instance gets so many old solutions at once, which may be one message."""


class QueryOutput:
    """Caches pages and progress by registration, so that each is computed once for all followers."""

    def __init__(self, catalog: CatalogView, notifier: Notifier, solutions: SolutionReader) -> None:
        self._catalog, self._notifier, self._solutions = catalog, notifier, solutions
        self._pages = WeakValueDictionary[tuple[int, Envelope], PageCache]()  # who follows a query keeps its cache: else thousands would stay
        self._progress: dict[int, QueryProgress | None] = {}
        self._generation = 0
        """The generation of the notifier in which `_progress` was computed."""

    def get_pages(self, registration: Registration, envelope: Envelope) -> PageCache:
        """Return the cache of the query's pages, as they are written for followers of one kind.

        It lasts while one of them holds it.
        """
        number = registration.registered
        pages = self._pages.get((number, envelope))
        if pages is None:
            notices = PromotionNotices(self._solutions, number)

            def read_page(after: str | None, limit: int) -> Page | Notice:
                now, found = self._read_settled(registration, lambda: self._solutions.read(number, after, limit))
                return _write_page(now, found, notices.find_next(now, after or ""), envelope, limit)

            def read_page_at_hand(after: str, limit: int) -> Page | Notice | None:
                now, found = self._read_settled(registration, lambda: self._solutions.read_at_hand(number, after, limit))
                if found is None or not notices.is_ready(now):
                    return None
                return _write_page(now, found, notices.find_next(now, after), envelope, limit)

            pages = self._pages[number, envelope] = PageCache(read_page, read_page_at_hand)
        return pages

    def _read_settled(self, registration: Registration, read: Callable[[], _Found]) -> tuple[Registration, _Found]:
        """Return what is read, and the registration with just the promotions before the end of what is read.

        A promotion that comes while something is read has it read again: solutions before the promotion may be
        missing, or those beyond it be there.
        """
        now = self._catalog.refresh(registration) or registration
        while True:
            before, found = now, read()
            now = self._catalog.refresh(registration) or registration
            if now is before or now.promoted == before.promoted:
                return now, found

    def read_own_page(self, registration: Registration, life: InstanceLife, after: str | None, envelope: Envelope) -> Page:
        """Return solutions of one instance after an id, as a page of its own.

        It is the newest if it passes all other instances' solutions of that moment. Raises: ValueError, Gone.
        """
        keys = KeyRange(None if after is None else key_of(after))
        found, last = self._solutions.read_instance(registration.registered, life, keys, _OWN_PAGE)
        page = _write_page(registration, found, None, envelope, _OWN_PAGE)
        assert isinstance(page, Page)
        if not page.newest:
            return page
        return replace_fields(page, passed=max("" if last is None else solution_id(*last), after or ""))

    def get_progress(self, registration: Registration) -> QueryProgress | None:
        """Return the query's progress."""
        if self._generation != self._notifier.generation:
            self._generation, self._progress = self._notifier.generation, {}
        known, number = self._progress, registration.registered
        if number not in known:
            now = self._catalog.refresh(registration) or registration
            known[number] = self._notifier.watermarks.compute_progress(self._solutions.position, now, self._catalog.list_rules())
        return known[number]

    def drop_query(self, registration: Registration) -> None:
        """Drop what is cached of a query that was dropped."""
        for text in {registration.text, *(version.text for version in registration.versions)}:
            drop_shape(text)
        for envelope in Envelope:
            self._pages.pop((registration.registered, envelope), None)


def _write_page(registration: Registration, found: pa.RecordBatch, notice: Notice | None, envelope: Envelope, limit: int) -> Page | Notice:
    """Write the solutions up to the next notice, which are all of one text; or return the notice, where it stands
    before all of them.

    Nothing follows them if there are fewer than were asked for, and no notice.
    """
    newest = notice is None and found.num_rows < limit
    times, ordinals = (int64s(found.column(name)).copy() for name in ("end", "ordinal"))  # else a page keeps the frames of all queries in memory
    if notice is not None:
        end, ordinal = key_of(notice.id)
        old = int(((times < end) | ((times == end) & (ordinals <= ordinal))).sum())
        if not old:
            return notice
        found, times, ordinals = found.slice(0, old), times[:old], ordinals[:old]
    ((part, form),) = split_by_form(registration, found)
    written, routes = ndjson(part, {registration.name: form}, envelope), _find_routes(part, form)
    return Page(times, ordinals, written, newest, routes, int64s(part.column("entry")).copy() if routes else None)


def _find_routes(part: pa.RecordBatch, form: Form) -> dict[str, list[int]]:
    """Return the places of the solutions of each instance; nothing for a query without PARAMETERS."""
    found: dict[str, list[int]] = {}
    if isinstance(form, Bindings) and form.instances:
        for place, literal in enumerate(list_instances(part).to_pylist()):
            found.setdefault(literal[1:-1], []).append(place)
    return found

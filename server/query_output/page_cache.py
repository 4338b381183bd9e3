"""Caches pages of solutions, which are read and encoded once for all subscribers of a query."""

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from numpy import int64
from numpy.typing import NDArray

from epsparql.deferred_methods import dataclass
from pipeline.solutions.json_encoder import Lines
from pipeline.solutions.result_kinds import InstanceLife
from pipeline.solutions.solution_ids import solution_id

PAGE = 2_000
_KEPT = 4


@dataclass(frozen=True, slots=True)
class SolutionLine:
    """Holds a solution as one ndjson line."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Holds consecutive solutions of a registration: the parts of their ids (`times` in µs, and `ordinals`), and
    their text.

    `newest` says that nothing followed them when they were read.
    """

    times: NDArray[int64]
    ordinals: NDArray[int64]
    written: Lines
    newest: bool
    routes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The places of each instance's solutions, by its id; `entries` are then the log entries that brought them."""
    entries: NDArray[int64] | None = None
    passed: str | None = None
    """Of a page of one instance's solutions: this is the id up to which there are no others, or "" before all ids."""

    def __len__(self) -> int:
        return len(self.times)

    def id_at(self, place: int) -> str:
        return solution_id(int(self.times[place]), int(self.ordinals[place]))

    @property
    def first(self) -> str:
        """Return the first solution's id."""
        return self.id_at(0)

    @property
    def last(self) -> str:
        """Return the last solution's id, or the one that was `passed`."""
        return self.id_at(-1) if self.passed is None else self.passed

    def find_after(self, last: str) -> int:
        """Return the place of the first solution beyond the id `last`."""
        return bisect_right(range(len(self)), last, key=self.id_at)

    def join_texts(self, life: InstanceLife, begin: int = 0) -> bytes:
        """Return the texts of an instance's solutions, from the place `begin` on."""
        text, ends, entries = self.written.text, self.written.ends, self.entries
        if entries is None:
            return b""
        places = (k for k in self.routes.get(life.instance, ()) if k >= begin and entries[k] > life.since)
        return b"".join(text[int(ends[k - 1]) if k else 0 : int(ends[k])] for k in places)

    def list_lines(self) -> Iterator[SolutionLine]:
        """Yield the solutions of a page that was written as lines."""
        for place, text in enumerate(self.written.each()):
            yield SolutionLine(self.id_at(place), text)


@dataclass(frozen=True, slots=True)
class Notice:
    """Tells of a promotion.

    `text` is a JSON object; the id stands between the last solution of the old text and the first one of the new
    text.
    """

    id: str
    text: str

    @property
    def first(self) -> str:
        return self.id

    @property
    def last(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    generation: int
    page: asyncio.Future[Page | Notice]


class PageCache:
    """Caches pages of one registration's solutions, and notices between them, by the id that each follows.

    The solution log only grows, so a page with anything in it stays the right answer to "what follows this id".
    Subscribers who keep up ask for the same page. An empty page is valid only until something of the registration is
    newer than the start of its reading.
    """

    def __init__(self, read: Callable[[str | None, int], Page | Notice], read_at_hand: Callable[[str, int], Page | Notice | None]) -> None:
        """Create the cache.

        `read_at_hand` reads like `read`, but on the event loop. It returns None where handing the reading to a thread
        takes less time.
        """
        self._read, self._read_at_hand = read, read_at_hand
        self._readings: OrderedDict[str | None, _Reading] = OrderedDict()

    async def get_page_after(self, last: str | None, generation: int, *, anew: bool = False) -> tuple[Page | Notice, bool]:
        """Return up to PAGE solutions after the id `last`, or the notice that stands there; and whether there may be
        more after that.

        If not, nothing followed when something was last new, in `generation`; with `anew`, nothing follows now. The
        page is empty only then. Raises: ValueError for what is no id.
        """
        kept = self._readings.get(last)
        # A reading at work is shared, though it may be too old to say that nothing follows: each one holds a page in memory.
        begins = kept is None or not (_has_news(kept.page) or (kept.generation >= generation and not (anew and kept.page.done())))
        if kept is None or begins:
            kept = self._readings[last] = _Reading(generation, self._start_reading(last))
        self._readings.move_to_end(last)
        while len(self._readings) > _KEPT:
            self._readings.popitem(last=False)
        page = await asyncio.shield(kept.page)  # others may wait for it when this subscriber goes
        is_old = kept.generation < generation or (anew and not begins)
        return page, isinstance(page, Notice) or not page.newest or is_old

    def _start_reading(self, last: str | None) -> asyncio.Future[Page | Notice]:
        at_hand = None if last is None else self._read_at_hand(last, PAGE)
        if at_hand is None:
            return asyncio.create_task(asyncio.to_thread(self._read, last, PAGE))
        page = asyncio.get_running_loop().create_future()
        page.set_result(at_hand)
        return page


def _has_news(page: asyncio.Future[Page | Notice]) -> bool:
    return page.done() and not page.cancelled() and page.exception() is None and bool(page.result())

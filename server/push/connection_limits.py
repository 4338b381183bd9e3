"""Limits how many clients may follow and feed at once, and counts those that do."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from server.http.problem_details import Fault, Problem
from server.settings import Settings

SOCKET, EVENT_STREAM, FEED = "websocket", "event-stream", "feed"


class ConnectionLimits:
    """Counts connections on the event loop only. `sent` counts solutions by class, `slow` the subscribers found too slow."""

    kinds = (SOCKET, EVENT_STREAM, FEED)

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._taken: Counter[str] = Counter()
        self._of_query: Counter[int] = Counter()
        self.sent: Counter[str] = Counter()
        self.slow = 0

    def taken(self, kind: str) -> int:
        return self._taken[kind]

    @contextmanager
    def follower(self, kind: str, registered: int) -> Iterator[None]:
        """Count a subscriber of a registration while the block runs. Raises: Fault 429."""
        self.check(registered)
        self._taken[kind] += 1
        self._of_query[registered] += 1
        try:
            yield
        finally:
            self._taken[kind] -= 1
            self._of_query[registered] -= 1
            if not self._of_query[registered]:
                del self._of_query[registered]

    def check(self, registered: int) -> None:
        """Check that one more subscriber is allowed. Raises: Fault 429."""
        settings = self._settings
        if self._taken[SOCKET] + self._taken[EVENT_STREAM] >= settings.max_subscribers:
            raise _full(f"{settings.max_subscribers} subscribers are here already", "max_subscribers")
        if self._of_query[registered] >= settings.max_subscribers_per_query:
            raise _full(f"{settings.max_subscribers_per_query} subscribers follow this query already", "max_subscribers_per_query")

    @contextmanager
    def feeder(self) -> Iterator[None]:
        """Count a connection that feeds while the block runs. Raises: Fault 429."""
        if self._taken[FEED] >= self._settings.max_feeds:
            raise _full(f"{self._settings.max_feeds} connections feed streams already", "max_feeds")
        self._taken[FEED] += 1
        try:
            yield
        finally:
            self._taken[FEED] -= 1


def _full(what: str, setting: str) -> Fault:
    problem = Problem(
        HTTPStatus.TOO_MANY_REQUESTS, "too-many-subscribers", f"{what}; come again later, or raise {setting}", headers={"Retry-After": "5"}
    )
    return Fault(problem)

"""Limits how many clients may follow and feed at once, and counts those that do."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from server.http.problem_details import Fault, Problem
from server.settings import Settings

SOCKET, EVENT_STREAM, FEED = "websocket", "event-stream", "feed"


class ConnectionLimits:
    """Counts connections on the event loop only.

    `sent` counts solutions by class, `slow` the subscribers found too slow.
    """

    kinds = (SOCKET, EVENT_STREAM, FEED)

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: Counter[str] = Counter()
        self._of_subject: Counter[int | str] = Counter()
        self.sent: Counter[str] = Counter()
        self.slow = 0

    def count_open(self, kind: str) -> int:
        return self._open[kind]

    @contextmanager
    def count_follower(self, kind: str, subject: int | str) -> Iterator[None]:
        """Count a subscriber while the block runs; the subject is a registration's number or a stream's name.

        Raises: Fault 429.
        """
        self.check_follower(subject)
        self._open[kind] += 1
        self._of_subject[subject] += 1
        try:
            yield
        finally:
            self._open[kind] -= 1
            self._of_subject[subject] -= 1
            if not self._of_subject[subject]:
                del self._of_subject[subject]

    def check_follower(self, subject: int | str) -> None:
        """Check that one more subscriber is allowed. Raises: Fault 429."""
        settings = self._settings
        if self._open[SOCKET] + self._open[EVENT_STREAM] >= settings.max_subscribers:
            raise _limit_fault(f"there are {settings.max_subscribers} subscribers already", "max_subscribers")
        if self._of_subject[subject] >= settings.max_subscribers_per_query:
            followed = "query" if isinstance(subject, int) else "stream"
            raise _limit_fault(f"{settings.max_subscribers_per_query} subscribers follow this {followed} already", "max_subscribers_per_query")

    @contextmanager
    def count_feeder(self) -> Iterator[None]:
        """Count a connection that feeds while the block runs. Raises: Fault 429."""
        if self._open[FEED] >= self._settings.max_feeds:
            raise _limit_fault(f"{self._settings.max_feeds} connections send events already", "max_feeds")
        self._open[FEED] += 1
        try:
            yield
        finally:
            self._open[FEED] -= 1


def _limit_fault(what: str, setting: str) -> Fault:
    problem = Problem(
        HTTPStatus.TOO_MANY_REQUESTS, "too-many-subscribers", f"{what}; try again later, or raise {setting}", headers={"Retry-After": "5"}
    )
    return Fault(problem)

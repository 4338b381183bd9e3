"""Tracks how far one subscriber is with a query's solutions."""

from collections.abc import Callable

from epsparql.deferred_methods import dataclass


@dataclass(slots=True, eq=False)
class DeliveryProgress:
    """Tracks how far one subscriber is.

    `last` is the id of the newest solution sent to it. `base` is how many solutions came before its first one, known
    once it has caught up with the log.

    `abort` ends its connection at once.
    """

    registered: int
    abort: Callable[[], None]
    last: str
    sent: int = 0
    base: int | None = None
    sending_since_s: float | None = None
    slow: bool = False

    def record_sent(self, count: int, last: str) -> None:
        self.sent, self.last = self.sent + count, last

    def waited_s(self, now_s: float) -> float:
        return 0.0 if self.sending_since_s is None else now_s - self.sending_since_s

    def count_behind(self, count: int) -> int:
        """Return the number of solutions not yet sent to a subscriber that had caught up.

        One that still reads history is never behind.
        """
        return 0 if self.base is None else count - self.base - self.sent

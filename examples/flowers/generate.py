"""Print the events of some days of Fast Flower Delivery, as a stream of `flowers.event`.

Run `python generate.py SEED DAYS > days.stream`. The same numbers give the same events.
"""

import heapq
import random
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count

STORES = {"rose": ("west", 1, True), "lily": ("west", 3, False), "iris": ("east", 2, True), "aster": ("east", 6, False)}
"""By store: its region, the least rank of a driver, and whether the best bid wins by itself."""
DRIVERS = [f"d{number}" for number in range(1, 9)]
_FIRST_DAY = datetime(2026, 3, 2, 8, tzinfo=UTC)
_DAY_S, _OPEN_S = 86_400, 9 * 3600
_REQUESTS_A_DAY = 45
_DELIVERIES_FOR_A_RANK = 20
Event = tuple[float, str]
"""Seconds since the first day began, and the event's term."""


class Town:
    """Simulates stores and drivers. What they do at an instant may plan what they do later."""

    def __init__(self, seed: int, days: int) -> None:
        self._random = random.Random(seed)
        self._numbers = count(1)
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self._events: list[Event] = []
        self._ranks = dict.fromkeys(DRIVERS, 0)
        self._regions = dict.fromkeys(DRIVERS, "")
        self._late: dict[str, list[bool]] = {driver: [] for driver in DRIVERS}
        for rank, driver in enumerate(DRIVERS):
            self._plan(-60, partial(self._publish_rank, driver, 1 + rank % 5))
        for day in range(days):
            self._plan(day * _DAY_S, partial(self._open, day))

    def run(self) -> Iterator[str]:
        """Yield the clauses of the stream, in order of their times. No two events have the same time."""
        while self._agenda:
            at, _, action = heapq.heappop(self._agenda)
            action(at)
        last = -1e9
        for at, term in sorted(self._events):
            last = max(at, last + 0.001)
            yield f"event({term}, '{_FIRST_DAY + timedelta(seconds=round(last, 3)):%Y-%m-%dT%H:%M:%S.%fZ}')."

    def _plan(self, at: float, action: Callable[[float], None]) -> None:
        heapq.heappush(self._agenda, (at, next(self._numbers), action))

    def _open(self, day: int, at: float) -> None:
        """Plan a day: shifts, positions and requests."""
        resting = self._random.choice(DRIVERS)
        for driver in DRIVERS:
            self._events.append((at, f"shift({driver}, {day})"))
            for moment in (self._random.uniform(1, _OPEN_S) for _ in range(0 if driver == resting else 12)):
                self._plan(at + moment, partial(self._move, driver))
            self._move(driver, at)
        for _ in range(_REQUESTS_A_DAY):
            self._plan(at + self._random.uniform(60, _OPEN_S), partial(self._request, day))

    def _move(self, driver: str, at: float) -> None:
        x = round(self._random.uniform(0, 19.9), 1)
        self._regions[driver] = "west" if x < 10 else "east"
        self._events.append((at, f"gps({driver}, {x}, {round(self._random.uniform(0, 19.9), 1)})"))

    def _publish_rank(self, driver: str, rank: int, at: float) -> None:
        self._ranks[driver], self._late[driver] = rank, []
        self._events.append((at, f"rank({driver}, {rank})"))

    def _request(self, day: int, at: float) -> None:
        """Let a store ask, and the drivers bid who are near and have the rank; some of them bid too late."""
        name, store = f"q{next(self._numbers)}", self._random.choice(list(STORES))
        region, least, automatic = STORES[store]
        minutes = self._random.randint(25, 60)
        self._events.append((at, f"request({name}, {store}, {day}, {minutes})"))
        offers = []
        for driver in DRIVERS:
            if self._regions[driver] == region and self._ranks[driver] >= least and self._random.random() < 0.7:
                wait, promised = self._random.uniform(5, 130), self._random.randint(3, 15)
                self._events.append((at + wait, f"bid({name}, {driver}, {promised})"))
                if wait < 119:
                    offers.append((-self._ranks[driver], int(driver[1:]), driver, promised))
        if automatic and offers:
            self._deliver(name, day, at, min(offers)[2:], at + 120, minutes)
        elif offers and self._random.random() < 0.8:
            chosen, assigned = self._random.choice(offers), at + self._random.uniform(121, 175)
            self._events.append((assigned, f"assign({name}, {chosen[2]})"))
            self._deliver(name, day, at, chosen[2:], assigned, minutes)

    def _deliver(self, name: str, day: int, asked: float, offer: tuple[str, int], assigned: float, minutes: int) -> None:
        """Let a driver fetch the flowers and bring them; the drivers with greater numbers are late more often."""
        driver, promised = offer
        is_late = self._random.random() < (0 if int(driver[1:]) < 4 else 0.4)
        pickup = assigned + 60 * promised + self._random.uniform(-120, 400)
        delivered = max(pickup + 60, asked + 60 * (minutes + 10) + (self._random.uniform(10, 900) if is_late else -self._random.uniform(10, 600)))
        self._events += [(pickup, f"pickup({name}, {driver}, {day})"), (delivered, f"delivered({name}, {driver})")]
        self._plan(delivered, partial(self._count, driver, delivered > asked + 60 * (minutes + 10)))

    def _count(self, driver: str, is_late: bool, at: float) -> None:
        """Let the guild publish a driver's rank again after 20 deliveries."""
        late = self._late[driver]
        late.append(is_late)
        if len(late) == _DELIVERIES_FOR_A_RANK:
            change = 1 if not any(late) else -1 if sum(late) > 5 else 0
            self._plan(at + 1, partial(self._publish_rank, driver, self._ranks[driver] + change))


if __name__ == "__main__":
    print("\n".join(Town(int(sys.argv[1]), int(sys.argv[2])).run()))

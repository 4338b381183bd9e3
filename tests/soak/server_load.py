"""Changes of a server whose amount stays the same: queries, streams, subscribers, background, trials and promotions
come and go.
"""

import itertools
import random
import threading
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from epsparql.client import ApiError, Client, segment
from tests.server.conftest import DEADLINE_S, EX, moment, until

PREFIX = f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
SHAPES = (
    "SELECT ?s ?x FROM STREAM <{stream}> WHERE {{ ?s :p{k} ?x FILTER(?x > {n}) }}",
    "SELECT * FROM STREAM <{stream}> WHERE {{ {{ ?s :p{k} ?x }} SEQ {{ ?s :p{m} ?y }} WITHIN 20 }}",
    "SELECT ?s (COUNT(*) AS ?n) FROM STREAM <{stream}> WHERE {{ ?s :p{k} ?x }} GROUP BY ?s WINDOW [RANGE 'PT20S'^^xsd:duration STEP 'PT10S'^^xsd:duration]",
    "SELECT * FROM STREAM <{stream}> WHERE {{ {{ ?s :p{k} ?x }} WITHOUT {{ ?s :p{m} ?y }} FOR 'PT5S'^^xsd:duration }}",
    "SELECT * FROM STREAM <{stream}> WHERE {{ {{ ?s :p{k} ?x . ?s a :Sensor }} WITHIN 20 }}",
)
"""Each has a bounded state: the first patterns of a query that joins without WITHIN would stay for ever."""
STREAMS = [f"{EX}soak/{number}" for number in range(4)]
GRAPH = "http%3A%2F%2Fexample.org%2Fsoak"
PREDICATES, KEPT_STREAMS, KEPT_TRIALS = 8, 3, 2
TRIED_ENTRIES = 500
PROMOTION_S = 900.0
"""A promotion reads the kept log again, beside the load. It may take so long on a machine with other work."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Says how much a server has, and how many steps lie between two promotions and between two trials. 0 is for none.

    Each step exchanges one of the `queries`; `lasting` ones stay, and other texts take their places.
    """

    queries: int
    subscribers: int
    events: int = 80  # of a step
    lasting: int = 0
    promotion_steps: int = 0
    trial_steps: int = 0


class PlacedQuery(NamedTuple):
    name: str
    shape: str
    stream: str
    text: str


def write_query(chance: random.Random, shape: str, stream: str) -> str:
    k, m = chance.sample(range(PREDICATES), 2)
    return PREFIX + shape.format(stream=stream, k=k, m=m, n=chance.randrange(90))


class Load:
    """Changes what the server has, step by step, so that its amount stays the same."""

    def __init__(self, client: Client, chance: random.Random, mix: Mix) -> None:
        self._client, self._chance, self._mix = client, chance, mix
        self._numbers = itertools.count()
        self._queries: deque[PlacedQuery] = deque()
        self._lasting = [self._place() for _ in range(mix.lasting)]
        self._followers: deque[tuple[threading.Event, threading.Thread]] = deque()
        self._trials: deque[str] = deque()
        self._second = self._head = 0
        for _ in range(mix.queries):
            self._register()
        for _ in range(mix.subscribers):
            self._follow()

    def step(self) -> None:
        """Send a second of events, and let a query, a subscriber, a stream and a triple of the background come and go."""
        self._second += 1
        self.send_events()
        if self._followers:
            self._unfollow()  # its query may be the one that goes
        self._client.drop(self._queries.popleft().name)
        self._register()
        if self._mix.subscribers:
            self._follow()
        self._client.send(f"{EX}own/{self._second}", self._event(0))
        if self._second > KEPT_STREAMS:
            self._client.request("DELETE", f"/streams/{segment(f'{EX}own/{self._second - KEPT_STREAMS}')}")
        triple = f"<{EX}s{self._second % 20}> a <{EX}Sensor> ."
        self._client.request("PUT", f"/ontologies/{GRAPH}", triple, Content_Type="text/turtle")
        if self._mix.promotion_steps and self._second % self._mix.promotion_steps == 0:
            self.promote(self._second // self._mix.promotion_steps)
        if self._mix.trial_steps and self._second % self._mix.trial_steps == 0:
            self._start_trial()

    def send_events(self) -> None:
        for stream in STREAMS:
            accepted = self._client.send(stream, "\n".join(self._event(subject) for subject in range(self._mix.events // len(STREAMS))))
            self._head = accepted.offset + 1

    def promote(self, number: int) -> None:
        """Let another text of the same shape take the place of a lasting query, and wait until it has."""
        place = number % len(self._lasting)
        placed = self._lasting[place]
        while (text := write_query(self._chance, placed.shape, placed.stream)) == placed.text:
            pass
        self._lasting[place] = placed._replace(text=text)
        try:
            self._client.promote(placed.name, text)
        except ApiError as error:
            if error.code != "offset-gone":
                raise
            self._client.promote(placed.name, text, start="now")
        until(lambda: self._client.promotion(placed.name)["state"] != "waiting", f"the promotion of {placed.name}", PROMOTION_S)
        found = self._client.promotion(placed.name)
        assert found["state"] == "promoted", found

    def close(self) -> None:
        while self._followers:
            self._unfollow()

    def _event(self, subject: int) -> str:
        predicate, value = self._chance.randrange(PREDICATES), self._chance.randrange(100)
        return f'{{"s":"<{EX}s{subject}>","p":"<{EX}p{predicate}>","o":"\\"{value}\\"^^<http://www.w3.org/2001/XMLSchema#integer>","at":"{moment(self._second)}"}}'

    def _register(self) -> None:
        self._queries.append(self._place())

    def _place(self) -> PlacedQuery:
        name, shape, stream = f"q{next(self._numbers)}", self._chance.choice(SHAPES), self._chance.choice(STREAMS)
        text = write_query(self._chance, shape, stream)
        self._client.register(name, text)
        return PlacedQuery(name, shape, stream, text)

    def _start_trial(self) -> None:
        """Start a trial of another text for a lasting query, over the log's last entries if they are kept, and drop
        an earlier trial.
        """
        placed = self._lasting[self._second % len(self._lasting)]
        text = write_query(self._chance, placed.shape, placed.stream)
        try:
            begun = self._client.start_trial(text, compare_with=placed.name, start=max(self._head - TRIED_ENTRIES, 0))
        except ApiError as error:
            if error.code != "offset-gone":  # once the log is cut, a trial can only begin at a snapshot or later
                raise
            return
        self._trials.append(begun["id"])
        if len(self._trials) > KEPT_TRIALS:
            self._client.drop_trial(self._trials.popleft())

    def _follow(self) -> None:
        over = threading.Event()
        thread = threading.Thread(target=self._take, args=(self._queries[-1].name, over), daemon=True)
        thread.start()
        self._followers.append((over, thread))

    def _take(self, name: str, over: threading.Event) -> None:
        with self._client.follow(name) as subscription:
            while not over.is_set():
                subscription.next(0.2)

    def _unfollow(self) -> None:
        over, thread = self._followers.popleft()
        over.set()
        thread.join(DEADLINE_S)

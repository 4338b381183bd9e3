"""This module tells how far a query is: the rows that came into its operators and went out, and the partial solutions
that they keep (ETALIS's goals).

It also tells the size of what collectors hold.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import Literal
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from engine.instances.relation import InstanceRelation
from engine.kernel.state import layout as c
from engine.network.network import Network
from engine.network.placed_query import Planned
from engine.physical_plan.operator_names import OPERATORS, RELATION_WORDS
from epsparql import terms
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
SideName = Literal["left", "right", "absent"]
_STORING = frozenset({c.JOIN, c.WITHOUT, c.WITHOUTFOR, c.RECENT, c.CHRONOLOGICAL})
_NO_SPAN = c.FOREVER - 1  # a span of no bound, or one that no sum of spans reaches
MOST_MATCHES = 20
"""So many partial matches of a query are told one by one, the oldest."""
SIDES: dict[int, SideName] = {c.LEFT: "left", c.RIGHT: "right", c.BLOCKER: "absent"}


@dataclass(frozen=True, slots=True)
class Side:
    """Counts the rows that came in at one side of an operator, and the goals that wait there for the other side.

    `oldest` is the least end among the timed goals, in µs.
    """

    side: SideName
    goals: int
    oldest: int | None
    taken: int = 0


@dataclass(frozen=True, slots=True)
class OperatorState:
    """Describes an operator; `on` are the variables that key it, `state_bytes` what it holds beside goals.

    `given` rows went out of it, and `refused` ones did not pass its filter, which had no value for `failed` of them.
    `kind` is its node's. Sides without rows and goals are left out.
    """

    operator: str
    on: tuple[str, ...]
    sides: tuple[Side, ...]
    state_bytes: int
    given: int = 0
    refused: int = 0
    kind: int = c.NONE
    failed: int = 0

    @property
    def keeps(self) -> bool:
        return self.state_bytes > 0 or any(side.goals for side in self.sides)


@dataclass(frozen=True, slots=True)
class PartialMatch:
    """Represents a goal: a solution of the operands from `first` to `last` of the query's chain, counted from 0.

    `binding` has a term in N-Triples for each variable that is bound; `start` and `end` are in µs.
    """

    start: int
    end: int
    first: int
    last: int
    binding: dict[str, str]


MatchOrder = Literal["oldest", "newest", "progress"]


@dataclass(frozen=True, slots=True)
class MatchWish:
    """Says which partial matches are wanted: those whose variables have the values of `where`, in an order, `most` of
    them.

    `progress` begins with those that most operands have reached, the newest first.
    """

    order: MatchOrder = "oldest"
    most: int = MOST_MATCHES
    where: dict[str, str] = field(default_factory=dict)


OLDEST = MatchWish()


def list_partial_matches(network: Network, planned: Planned, passed: int, wish: MatchWish = OLDEST) -> list[PartialMatch]:
    """Return partial matches of a query that may still be completed.

    Nothing comes any more before the instant `passed`.
    """
    names = [(variable.name, column) for variable, column in planned.columns.items() if not variable.hidden]
    found = [match for place, stage in planned.stages.items() for match in _list_goals(network, planned, (place, stage), names, passed, wish)]
    return sort_matches(found, wish)


def sort_matches(found: list[PartialMatch], wish: MatchWish) -> list[PartialMatch]:
    """Return as many matches as are wanted, in the order that is wanted."""
    found = sorted(found, key=lambda match: (match.end, match.start, match.first, sorted(match.binding.items())))
    if wish.order != "oldest":
        found.reverse()
    if wish.order == "progress":
        found.sort(key=lambda match: match.first - match.last)
    return found[: wish.most]


def _list_goals(
    network: Network, planned: Planned, staged: tuple[tuple[int, int], tuple[int, int]], names: list[tuple[str, int]], passed: int, wish: MatchWish
) -> Iterator[PartialMatch]:
    """Yield goals of a side in the order that is wanted, as many as are wanted.

    Those of a shared subplan are in its own columns.
    """
    place, stage = staged
    net, node = network.net, planned.at.node + place[0]
    reading, held = network.host.shares.find_reading(planned, node), network.host.shares.find_keeper(planned, node)
    kind, life = net.nodes[held, [c.KIND, c.LIFE_LEFT + place[1]]].tolist()
    if kind not in _STORING:
        return
    if reading is not None:
        shared = dict(zip(reading.subplan.columns, reading.share.columns, strict=True))
        names = [(name, shared[column]) for name, column in names if column in shared]
    expired = max(int(net.at[c.NOW]), passed) - life
    first = int(net.stores[c.SIDES * held + place[1], c.HEAD])
    for goal in _take_oldest(network, first, expired) if wish == OLDEST else _choose_goals(network, first, expired, names, wish):
        row = net.rows[goal]
        terms = ((name, int(row["terms"][column - c.VAR])) for name, column in names)
        yield PartialMatch(int(row["start"]), int(row["end"]), *stage, {name: network.arrays.terms.text(term) for name, term in terms if term})


def _take_oldest(network: Network, goal: int, expired: int) -> Iterator[int]:
    """Yield the oldest goals from one on: a report lists them, so it reads no others."""
    rows, told = network.net.rows, 0
    while goal != c.NONE and told < MOST_MATCHES:
        if int(rows[goal]["end"]) >= expired:
            yield goal
            told += 1
        goal = int(rows[goal]["queue"])


def _choose_goals(network: Network, goal: int, expired: int, names: list[tuple[str, int]], wish: MatchWish) -> list[int]:
    """Return those goals, from one on, that are wanted. Each distinct value of a variable is compared once."""
    rows, after = network.net.rows, network.net.rows["queue"].tolist()
    chain = list[int]()
    while goal != c.NONE:
        chain.append(goal)
        goal = after[goal]
    goals = np.array(chain, np.int64)
    goals = goals[rows["end"][goals] >= expired]
    columns = dict(names)
    for name, value in wish.where.items():
        if name not in columns:
            return []
        terms = rows["terms"][goals, columns[name] - c.VAR]
        named = [term for term in np.unique(terms).tolist() if term and is_value(network.arrays.terms.text(term), value)]
        goals = goals[np.isin(terms, np.array(named, np.int64))]
    chosen: list[int] = (goals[: wish.most] if wish.order == "oldest" else goals[-wish.most :]).tolist()
    return chosen


def is_value(text: str, value: str) -> bool:
    """Return whether a term in N-Triples is the value that somebody wrote: as such a term, as an IRI or its last part, or as
    the text of a literal.
    """
    if text == value or text == f"<{value}>":
        return True
    if text.startswith('"'):
        lexical = text[1 : text.rindex('"')]
        return lexical == value if "\\" not in lexical else str(terms.Literal(value)) == f'"{lexical}"'
    ends = f"/{value}>", f"#{value}>", f":{value}>"
    return bool(value) and text.startswith("<") and (text.endswith(ends) or unquote(text).endswith(ends))


def measure_progress(network: Network, planned: Planned) -> tuple[OperatorState, ...]:
    """Return the query's operators, outermost first; what only hands rows on is none."""
    names = {column: str(variable) for variable, column in planned.columns.items() if not variable.hidden}
    own = _Operators(network, planned.at.node, planned.after.node, planned.source.instances)
    keeps_own = planned.registered not in network.host.shares.readings
    found = []
    for node in range(planned.at.node, planned.after.node):
        if not own.hands_on(node):
            held = node if keeps_own else network.host.shares.find_keeper(planned, node)
            found.append(own.describe(node, own if held == node else _Operators(network, held, held + 1), held, names))
    return tuple(found)


_NODE = np.array([c.KIND, c.FILTER, c.SPAN, c.KEEP, c.MOVE_N, c.RELATION, c.KEY_AT, c.KEY_N])
_STORE = np.array([c.HEAD, c.COUNT, c.TAKEN, c.GIVEN, c.REFUSED])


class _Operators:
    """Reads the nodes from `begin` on and before `end` at once: thousands of queries are described in one report."""

    def __init__(self, network: Network, begin: int, end: int, instances: InstanceRelation | None = None) -> None:
        self._network, self._begin, self._instances = network, begin, instances
        self._nodes = network.net.nodes[begin:end, _NODE].tolist()
        self._stores = network.net.stores[c.SIDES * begin : c.SIDES * end, _STORE].tolist()

    def hands_on(self, node: int) -> bool:
        """Return whether a node stands for no step of a plan."""
        kind, filter_, span, keep, moves, *_ = self._nodes[node - self._begin]
        plain = kind == c.PASS and filter_ == c.NONE and span >= _NO_SPAN
        return bool(kind == c.DROPPED or plain or (kind == c.MOVE and keep == 1 and moves == 0))

    def describe(self, node: int, keeper: "_Operators", held: int, names: dict[int, str]) -> OperatorState:
        """Describe a node, whose rows and goals are counted at the node `held` of `keeper`."""
        *_, at, n = self._nodes[node - self._begin]
        kind, *_, relation, _, _ = keeper._nodes[held - keeper._begin]
        on = sorted(names[column] for column in self._network.net.slots[at : at + n].tolist() if column in names) if n else ()
        first = c.SIDES * (held - keeper._begin)
        placed = self._network.collectors.placed
        size = placed[node].collector.size() if node in placed else 0
        if kind == c.INSTANCES and self._instances is not None:
            size = self._instances.state_bytes
        *_, given, refused = keeper._stores[first]
        sides = tuple(
            Side(name, goals, None if head == c.NONE else int(self._network.net.rows["end"][head]), taken)
            for name, (head, goals, taken, *_) in ((name, keeper._stores[first + side]) for side, name in SIDES.items())
            if goals or taken
        )
        failed = keeper._stores[first + c.RIGHT][-1]
        return OperatorState(RELATION_WORDS[relation] if kind == c.JOIN else OPERATORS[kind], tuple(on), sides, size, given, refused, kind, failed)


class ChangedQueries:
    """Finds which queries of a network may stand otherwise than when it was last asked.

    Of thousands of queries, few do.
    """

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[Network, tuple[Ints, dict[int, Planned]]] = WeakKeyDictionary()  # stores and queries

    def find_changed(self, network: Network) -> set[int]:
        """Return the queries, by `registered`, that came, took in or gave rows, or keep what time may change: partial
        matches, shares, collectors, instances.
        """
        net = network.net
        stores = net.stores[: c.SIDES * network.arrays.used["nodes"].end, c.COUNT : c.STORE_WIDTH].copy()
        before, known = self._seen.get(network, (stores[:0], dict[int, Planned]()))
        n = min(len(before), len(stores))
        moved = stores[:, 0] > 0
        moved[n:] = True
        moved[:n] |= (stores[:n] != before[:n]).any(axis=1)
        numbers = set(net.nodes[np.flatnonzero(moved) // c.SIDES, c.QUERY].tolist())
        planned = dict(network.planned)
        holding = network.host.shares.readings.keys() | {each.registered for each in network.collectors.placed.values()}
        holding |= {k for k, query in planned.items() if query.source.instances is not None}
        self._seen[network] = stores, planned
        return {k for k, query in planned.items() if query.number in numbers or k in holding or known.get(k) is not query}

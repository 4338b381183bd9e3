"""SEQ and the interval relations under a consumption policy: which goals are joined (semantics.md section 9)."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.collect.rows import Rows, no_rows
from engine.entries import RECENT
from engine.kernel import columns as c
from engine.kernel.relations import holds
from engine.terms import TermTable
from epsparql.terms import Variable

Goal = tuple[int, ...]
"""Start and end as in Rows, then the cells."""
Key = tuple[int, ...]
Chains = dict[Key, dict[Key, Goal]]
"""By what both sides certainly bind, goals in order of age, each under what it replaces: all of it, or the variables that the sides share."""
Pair = tuple[Goal, Goal]

_START, _END, _CELLS = range(3)
_related: Callable[[int, int, int, int, int], bool] = holds.py_func  # type: ignore[attr-defined]  # numba's way back to Python


@dataclass(frozen=True, slots=True)
class Absent:
    """The group after WITHOUT: its solutions bind `mark`, share `shared` variables with the pair, and certainly `certain` ones; they count for `span` µs."""

    mark: Variable
    shared: frozenset[Variable]
    certain: frozenset[Variable]
    span: int


class Side:
    """The goals of one operand: timeless ones, those of this instant, and those of earlier ones that may still be joined."""

    def __init__(self, key: Sequence[int], replaced_by: Sequence[int] | None, span: int) -> None:
        """`key`, `replaced_by`: places in a goal; of None, a goal replaces no other. `span` µs after its end an earlier goal goes."""
        self.key, self.replaced_by, self.span = key, replaced_by, span
        self.timeless: Chains = {}
        self.arrived: Chains = {}
        self.earlier: Chains = {}
        self._ends: deque[Goal] = deque()  # earlier goals and ones that were replaced since, oldest end first; empty where none expires

    def key_of(self, goal: Goal) -> Key:
        return tuple(goal[k] for k in self.key)

    def add(self, goal: Goal) -> bool:
        """Whether it is new."""
        chain = (self.timeless if is_timeless(goal) else self.arrived).setdefault(self.key_of(goal), {})
        return chain.setdefault(goal, goal) is goal

    def settle(self, age: Callable[[Goal], Any]) -> None:
        """The instant is over: what arrived in it becomes earlier, and replaces what it replaces."""
        for goal in sorted(all_of(self.arrived), key=age):
            self.keep(goal)
        self.arrived = {}

    def keep(self, goal: Goal) -> None:
        key, name = self.key_of(goal), self._name(goal)
        chain = self.earlier.get(key)
        if chain is None:
            chain = self.earlier[key] = OrderedDict() if self.replaced_by is None else {}  # one that is taken from at its front, or a small one
        chain.pop(name, None)
        chain[name] = goal
        if self.span < c.FOREVER:
            self._ends.append(goal)

    def drop(self, goal: Goal) -> None:
        """An earlier goal goes, unless it has gone already."""
        key, name = self.key_of(goal), self._name(goal)
        chain = self.earlier.get(key, {})
        if chain.get(name) == goal:
            del chain[name]
            if not chain:
                del self.earlier[key]

    def expire(self, now: int) -> None:
        """What ended too long ago: joined now, it would outlast the span."""
        while self._ends and self._ends[0][_END] < now - self.span:
            self.drop(self._ends.popleft())

    def _name(self, goal: Goal) -> Key:
        return goal if self.replaced_by is None else tuple(goal[k] for k in self.replaced_by)

    # ------------------------------------------------------------ snapshots
    def state(self) -> list[list[Goal]]:
        return [all_of(chains) for chains in (self.timeless, self.arrived)] + [sorted(all_of(self.earlier), key=lambda goal: goal[_END])]

    def restore(self, state: list[list[list[int]]]) -> None:
        timeless, arrived, earlier = ([tuple(goal) for goal in part] for part in state)
        for goal in (*timeless, *arrived):
            self.add(goal)
        for goal in earlier:  # sorting was stable, so each chain is in its order
            self.keep(goal)


class PolicyCollector:
    """Joins of the left solutions, which arrive as rows, with the right ones, which arrive as wakes, as do those that may not lie between.

    A pair with a timeless goal is unrestricted. `recent`: a right goal meets, for each binding of the shared variables, the left goal that
    came last before the instant, and those of the instant. `chronological`: a right goal takes the oldest left goal that it may have, once.
    Replacement and consumption take effect when a later instant comes, so an instant may bring its goals in parts. WITHOUT decides after
    the choice.
    """

    done = False

    def __init__(
        self,
        policy: str,
        relation: int,
        reads: tuple[Variable, ...],
        shared: frozenset[Variable],
        certain: frozenset[Variable],
        lasting: tuple[bool, bool],
        span: int,
        absent: Absent | None = None,
    ) -> None:
        """`shared`: variables that both sides may bind; `certain`: those that they do; `lasting`: which sides' goals outlive their instant.

        `span` µs is the longest solution that is wanted.
        """
        self.policy, self.relation, self.reads, self.writes, self.lasting = policy, relation, reads, reads, lasting
        places = {variable: _CELLS + k for k, variable in enumerate(reads)}
        key, self._rest = sorted(places[v] for v in certain), sorted(places[v] for v in shared - certain)
        self.between: Side | None = None
        if absent is not None:
            self.between = Side(sorted(places[v] for v in absent.certain), None, absent.span)
            self._mark, self._between_rest = places[absent.mark], sorted(places[v] for v in absent.shared - absent.certain)
        self._order = [_CELLS + k for k in sorted(range(len(reads)), key=lambda k: (reads[k].hidden, reads[k].name))]
        expires = span if policy == RECENT else c.FOREVER  # who is gone takes nothing, so that another would be taken
        self.lefts = Side(key, (*key, *self._rest) if policy == RECENT else None, expires)
        self.rights = Side(key, None, expires)
        self._taken: dict[Goal, None] = {}
        self._served: set[Goal] = set()
        self._now = -c.BIG
        self._texts: list[str] = []

    def decide(self, now: int, rows: Rows, wakes: Rows, horizon: int | None, terms: TermTable) -> Rows:
        self._texts = terms.texts
        if now > self._now:
            self._pass_to(now)
        rights = goals_of(wakes)
        if self.between is not None:
            for z in rights:
                if z[self._mark]:
                    self.between.add(z)
            rights = [y for y in rights if not y[self._mark]]
        found: list[Pair] = []
        for x in sorted(goals_of(rows), key=self._age):
            if self.lefts.add(x):
                found += self._met_by_left(x)
        for y in rights:
            if self.rights.add(y):
                found += self._met_by_right(y)
        return joins_of(found if self.between is None else [pair for pair in found if not self._blocked(*pair, self.between)], len(self.writes))

    def _pass_to(self, now: int) -> None:
        """What the last instant has replaced and consumed is gone."""
        for side, lasting in zip((self.lefts, self.rights), self.lasting, strict=True):
            if lasting:
                side.settle(self._age)
            else:
                side.arrived = {}
        for goal in self._taken:
            self.lefts.drop(goal)
        for goal in self._served:
            self.rights.drop(goal)
        self._taken, self._served, self._now = {}, set(), now
        self.lefts.expire(now)
        self.rights.expire(now)
        if self.between is not None:
            self.between.settle(self._age)
            self.between.expire(now)

    def _age(self, goal: Goal) -> tuple[int | str, ...]:
        """Goals are ordered by end, start, then terms in N-Triples text by variable name, hidden ones last."""
        return (goal[_END], goal[_START], *(self._texts[goal[k]] for k in self._order))

    # ------------------------------------------------------------ pairs
    def _met_by_left(self, x: Goal) -> list[Pair]:
        """The pairs of a new left goal with the right ones that are there."""
        key, rights = self.lefts.key_of(x), self.rights
        free = [rights.timeless, rights.arrived] if is_timeless(x) else [rights.timeless]
        found = [(x, y) for y in in_chains(free, key) if self._fit(x, y)]
        if not is_timeless(x):
            found += [(x, y) for y in in_chains([rights.earlier, rights.arrived], key) if self._fit(x, y) and self._takes(x, y)]
        return found

    def _met_by_right(self, y: Goal) -> list[Pair]:
        """The pairs of a new right goal with the left ones that are there."""
        key, lefts = self.rights.key_of(y), self.lefts
        free = [lefts.timeless, lefts.arrived] if is_timeless(y) else [lefts.timeless]
        found = [(x, y) for x in in_chains(free, key) if self._fit(x, y)]
        if not is_timeless(y):
            fitting = (x for x in in_chains([lefts.earlier, lefts.arrived], key) if self._fit(x, y))
            if self.policy == RECENT:
                found += [(x, y) for x in fitting]
            elif (x := next(fitting, None)) is not None and self._takes(x, y):
                found.append((x, y))
        return found

    def _takes(self, x: Goal, y: Goal) -> bool:
        """Whether y still takes a goal; if each is served once, it takes this one."""
        if self.policy == RECENT:
            return True
        if y in self._served:
            return False
        self._served.add(y)
        self._taken[x] = None
        return True

    def _fit(self, x: Goal, y: Goal) -> bool:
        """Whether two goals of one key join."""
        return _related(self.relation, x[_START], x[_END], y[_START], y[_END]) and all(x[k] == y[k] or not x[k] or not y[k] for k in self._rest)

    # ------------------------------------------------------------ WITHOUT
    def _blocked(self, x: Goal, y: Goal, between: Side) -> bool:
        """Whether a compatible solution lies between the two, strictly on both sides; a timeless one does."""
        key = tuple(x[k] | y[k] for k in between.key)
        if any(self._agrees(x, y, z) for z in in_chains([between.timeless], key)):
            return True
        for chain in (between.arrived.get(key, {}), between.earlier.get(key, {})):
            for z in reversed(chain.values()):
                if not is_timeless(x) and z[_END] <= x[_END]:
                    break  # the chain falls in end, and no older one starts later
                if (is_timeless(x) or x[_END] < z[_START]) and (is_timeless(y) or z[_END] < y[_START]) and self._agrees(x, y, z):
                    return True
        return False

    def _agrees(self, x: Goal, y: Goal, z: Goal) -> bool:
        return all(not z[k] or not x[k] | y[k] or z[k] == x[k] | y[k] for k in self._between_rest)

    # ------------------------------------------------------------ the host's side
    def due(self) -> int:
        return c.FOREVER

    def state(self) -> object:
        between = [] if self.between is None else [self.between.state()]
        return [self._now, self.lefts.state(), self.rights.state(), list(self._taken), list(self._served), *between]

    def restore(self, state: Any) -> None:
        self._now, lefts, rights, taken, served, *between = state
        self.lefts.restore(lefts)
        self.rights.restore(rights)
        if self.between is not None:
            self.between.restore(*between)
        self._taken, self._served = {tuple(goal): None for goal in taken}, {tuple(goal) for goal in served}


def is_timeless(goal: Goal) -> bool:
    return goal[_START] > goal[_END]


def goals_of(rows: Rows) -> list[Goal]:
    return [tuple(goal) for goal in np.column_stack([rows.start, rows.end, rows.cells]).tolist()]


def in_chains(stores: Iterable[Chains], key: Key) -> Iterator[Goal]:
    return (goal for chains in stores for goal in chains.get(key, {}).values())


def all_of(chains: Chains) -> list[Goal]:
    return [goal for chain in chains.values() for goal in chain.values()]


def joins_of(pairs: Sequence[Pair], width: int) -> Rows:
    """Union of the bindings (equal or UNBOUND = 0, so OR), hull of the intervals; each once."""
    if not pairs:
        return no_rows(width)
    xs, ys = np.array([x for x, _ in pairs], np.int64), np.array([y for _, y in pairs], np.int64)
    whole = np.column_stack([np.minimum(xs[:, _START], ys[:, _START]), np.maximum(xs[:, _END], ys[:, _END]), xs[:, _CELLS:] | ys[:, _CELLS:]])
    if len(pairs) > 1:
        whole = np.unique(whole, axis=0)
    return Rows(whole[:, _START], whole[:, _END], whole[:, _CELLS:])

"""This module holds what a query keeps to another background.

Timeless goals that still have their triples stay, and partial solutions are made anew.

The query is placed once more in a network of its own, over the background as it is now and without streams. Its
stores then hold every timeless solution that there may be. What a negative part once let pass stays, whatever the
part would say now. So there all solutions pass, in each way in which they may (`permissive_plan`). Those that the part
is known to have kept back do not (`_hand_on_decided`). A timeless goal that is not among them has lost a triple that
it rested on. Partial solutions of a unit (`Unit`) are found by giving it once more what came of the stream, in order
of end.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.kernel.state import layout as c
from engine.kernel.state.arrays import to_width, width_of
from engine.native.entries import free_timeless_goals
from engine.network.host_calls import KernelHost
from engine.network.kernel_arrays import Goals
from engine.network.permissive_plan import Deciding, Target, make_permissive
from engine.network.placed_query import Planned
from engine.physical_plan.plan import Fact, Fragment, LastingSide, Unit
from engine.physical_plan.plan_difference import Difference
from engine.state_size import Quota
from engine.triples.relation import without

Ints = NDArray[np.int64]
NONE = np.zeros(0, np.int64)
MORE = 2
"""Where negative parts let all pass, a query's timeless solutions may have this many times its limits."""


def _join_brought(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Return the joins of timeless goals with what there is more to look up.

    If those rows were copied before, the copies have found their joins already.
    """
    found = []
    for node, rows in change.more.items():
        row = fragment.nodes[node]
        if row.kind != c.JOIN:
            continue  # what it once decided stands
        keys, free = fragment.columns_at(row.key), fragment.columns_at(row.look)
        store = c.SIDES * (planned.at.node + node) + c.LEFT
        left = host.arrays.read_goals(store, store + 1).get(store)
        if left is None or not len(left.timeless):
            continue
        for fact in change.removed:
            if _copies_for(fragment, fact, node):
                rows = without(rows, fact.rows[:, _order_columns(fragment, fact, node)])
        by_key: dict[tuple[int, ...], list[list[int]]] = {}
        for cells in rows.tolist():
            by_key.setdefault(tuple(cells[: len(keys)]), []).append(cells[len(keys) :])
        columns = tuple(range(c.VAR, c.VAR + len(fragment.columns)))
        joined = []
        for goal in left.timeless.tolist():
            for more in by_key.get(tuple(goal[k] for k in keys), ()):
                z = list(goal)
                for column, term in zip(free, more, strict=True):
                    z[column] = term
                joined.append(z[c.VAR : c.VAR + len(columns)])
        if joined:
            via = row.look_via
            found.append(Fact(node if via == c.NONE else via, c.EMIT if via == c.NONE else c.LEFT, True, columns, np.array(joined, np.int64)))
    return found


def _keep_joined(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Store what a join looked up before and copies now, and return what is new.

    Those rows have found their joins already. If they came as new ones, a negative part would decide on a timeless
    solution once more.
    """
    added = list(change.added)
    for node, looked_up in change.fewer.items():
        if fragment.nodes[node].kind != c.JOIN or fragment.lookups[node] is not None:
            continue
        for k, fact in enumerate(added):
            if not _copies_for(fragment, fact, node):
                continue
            order = _order_columns(fragment, fact, node)
            new = without(fact.rows[:, order], looked_up)
            stood = replace(fact, columns=tuple(fact.columns[column] for column in order), rows=without(fact.rows[:, order], new))
            added[k] = replace(stood, rows=new)
            row = host.arrays.net.nodes[planned.at.node + node]
            edges, row[c.EDGE_N] = int(row[c.EDGE_N]), 0
            _take_in_now(host, planned, stood)
            if planned.registered not in host.slots.planned:
                return []
            row[c.EDGE_N] = edges
    return added


def _copies_for(fragment: Fragment, fact: Fact, node: int) -> bool:
    """Return whether a fact holds copies of what a join may look up instead. A filter may stand between them."""
    own, passes = (node, c.RIGHT), fragment.nodes[fact.node].kind == c.PASS
    return (fact.node, fact.side) == own or (passes and fragment.edges_of(fact.node) == [own])


def _order_columns(fragment: Fragment, fact: Fact, node: int) -> list[int]:
    """Return where a fact has the columns of a join's look-up, in the order of that."""
    row = fragment.nodes[node]
    return [fact.columns.index(column) for column in (*fragment.columns_at(row.key), *fragment.columns_at(row.look))]


def hold_to(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Hold what a query keeps to the background for which `fragment` is its plan.

    Return what it is to take in at its next instant. It may fail by its limits.
    """
    units = [unit for unit in fragment.units if any(node in unit.nodes for node in change.nodes)]
    woken = _wake_paths(host, planned, fragment, change)
    if change.loses or units:
        _review_goals(host, planned, replace(fragment, facts=[*fragment.facts, *woken]), units)
    if planned.registered not in host.slots.planned:
        return []
    brought = [*_join_brought(host, planned, fragment, change), *woken, *_follow_paths(host, planned, fragment, change)]
    added = _keep_joined(host, planned, fragment, change)
    return _take_in_timed(host, planned, fragment, [*added, *brought]) if planned.registered in host.slots.planned else []


def _wake_paths(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Return what wakes the paths that keep walks of the stream and do not copy the background any more."""
    found = []
    for path in change.deepened:
        leaves = [store for unit in fragment.units if unit.root in path.nodes for store, _ in unit.leaves]
        numbers = _number_stores(planned, leaves)
        if any(len(goals.timed) for at in numbers for goals in host.arrays.read_goals(at, at + 1).values()):
            found.append(Fact(path.first, c.LEFT, True, (), np.zeros((1, 0), np.int64)))
    return found


def _follow_paths(host: KernelHost, planned: Planned, fragment: Fragment, change: Difference) -> list[Fact]:
    """Return the timeless solutions that are joined with paths which do not copy the background any more. They look
    it up from now on.

    What they find that stands already does not pass the set behind the join.
    """
    columns = tuple(range(c.VAR, c.VAR + len(fragment.columns)))
    found = []
    for path in change.deepened:
        (at,) = _number_stores(planned, [path.operand])
        found += [Fact(*path.entry, True, columns, goals.timeless[:, columns]) for goals in host.arrays.read_goals(at, at + 1).values()]
    return found


def _take_in_timed(host: KernelHost, planned: Planned, fragment: Fragment, added: Sequence[Fact]) -> list[Fact]:
    """Take in at once what timers look for, and return the rest, which is for the query's next instant.

    Timers decide at instants at which nothing may come.
    """
    timers = {node for node, row in enumerate(fragment.nodes) if row.kind == c.WITHOUTFOR}
    readers = [fragment.find_reader((fact.node, fact.side))[0] for fact in added]
    now = [
        fact
        for fact, reader in zip(added, readers, strict=True)
        if any(reader in nodes for nodes in fragment.timed) or (reader in timers and fact.side == c.BLOCKER)
    ]
    for fact in now:
        _take_in_now(host, planned, fact)
    return [fact for fact in added if not any(fact is each for each in now)]


def _take_in_now(host: KernelHost, planned: Planned, fact: Fact) -> None:
    rows = np.zeros((len(fact.rows), width_of(host.arrays.net)), np.int64)
    rows[:, c.START], rows[:, c.END] = c.BIG, -c.BIG
    rows[:, fact.columns] = fact.rows
    host.take_in_timeless(rows, np.broadcast_to(np.array([planned.at.node + fact.node, fact.side], np.int64), (len(rows), 2)))


def _review_goals(host: KernelHost, planned: Planned, fragment: Fragment, units: Sequence[Unit]) -> None:
    """Hold the goals of a query between two instants to the background for which `fragment` is its plan; `units` are
    those that the change concerns.
    """
    first, after = c.SIDES * planned.at.node, c.SIDES * planned.after.node
    stands = host.arrays.read_goals(first, after)
    units = [
        unit for unit in units if any(len(stands[at].timed) for at in _number_stores(planned, (store for store, _ in unit.leaves)) if at in stands)
    ]
    if not units and not any(len(goals.timeless) for goals in stands.values()):
        return
    unseen = _find_unseen(planned)
    shadow, place, deciding = _place_shadow(host, planned, fragment, stands)
    kept = {store - first: goals for store, goals in stands.items()}
    pairs = {store: _NewPairs.from_plan(planned, fragment, side.pairs, kept) for store, side in deciding.items() if side.pairs is not None}
    _hand_on_decided(shadow, place, deciding, kept, unseen, pairs)
    if shadow.failures:
        host.fail_query(planned, f"with the background as it is now, {shadow.failures[0].reason}")
        return
    for store, goals in stands.items():
        if len(goals.timeless):
            lasting = fragment.lasting.get(divmod(store - first, c.SIDES))
            at, ignored = (store - first, unseen) if lasting is None else (_store_of(lasting.decided), _find_others(planned, lasting.columns))
            held = deciding[at].held if at in deciding else at
            known = set(_key_rows(_read_timeless(shadow, held + c.SIDES * place), ignored))
            gone = np.array([key not in known for key in _key_rows(goals.timeless, ignored)], np.int64)
            free_timeless_goals(host.arrays.address, store, gone[::-1].copy())
            goals.timeless = goals.timeless[gone == 0]
    for unit in units:
        _remake_unit(host, planned, shadow, place, unit, stands)


def _number_stores(planned: Planned, places: Iterable[Target]) -> list[int]:
    return [c.SIDES * (planned.at.node + node) + side for node, side in places]


def _store_of(place: Target) -> int:
    return c.SIDES * place[0] + place[1]


def _find_others(planned: Planned, columns: Collection[int]) -> Ints:
    """Return the query's columns but for these."""
    return np.array([column for column in planned.columns.values() if column not in columns], np.int64)


def _find_unseen(planned: Planned) -> Ints:
    """Return the columns that say what an EXISTS found, which may have been either."""
    return np.array([column for variable, column in planned.columns.items() if variable.name.startswith("_:exists@")], np.int64)


def _key_rows(rows: Ints, unseen: Ints) -> list[bytes]:
    cells = rows[:, c.VAR :].copy()
    cells[:, unseen - c.VAR] = 0
    width = int(np.flatnonzero(cells.any(axis=0)).max(initial=-1)) + 1 if len(cells) else 0
    return [cell.tobytes().rstrip(b"\0") for cell in np.ascontiguousarray(cells[:, :width])]


def _remake_unit(host: KernelHost, planned: Planned, shadow: KernelHost, place: int, unit: Unit, stands: dict[int, Goals]) -> None:
    """Make the partial solutions of a unit anew: what came of the stream is joined with the background as it is now."""
    rows, places = [], []
    for store, entry in unit.leaves:
        (at,) = _number_stores(planned, [store])
        if at in stands:
            rows.append(stands[at].timed)
            places.append(np.broadcast_to(np.array([place + entry[0], entry[1]], np.int64), (len(stands[at].timed), 2)))
    shadow.arrays.net.nodes[place + unit.root, c.EDGE_N] = 0  # solutions that the unit gave in the past are not given again
    shadow.replay_solutions(np.concatenate(rows), np.concatenate(places))
    made = shadow.arrays.read_goals(c.SIDES * (place + unit.nodes.start), c.SIDES * (place + unit.nodes.stop))
    nothing = np.zeros((0, width_of(host.arrays.net)), np.int64)
    for node, side in unit.inner:
        (at,) = _number_stores(planned, [(node, side)])
        there, before = made.get(c.SIDES * (place + node) + side), stands.get(at)
        timed = nothing if there is None else there.timed
        timeless = nothing if before is None else before.timeless
        host.arrays.replace_goals(at, np.concatenate([to_width(timed, nothing.shape[1]), timeless]))


def _place_shadow(host: KernelHost, planned: Planned, fragment: Fragment, stands: dict[int, Goals]) -> tuple[KernelHost, int, dict[int, Deciding]]:
    """Place the query alone over the background, with its facts taken in.

    Return that network and the first of the query's nodes. Also return how the deciding sides decide there, by their
    stores from the query's first on.
    """
    taken = replace(fragment, facts=[*fragment.facts, *_find_first_facts(planned, fragment, stands)])
    shadow = host.make_empty()
    source = replace(planned.source, reads_after=planned.registered, max_derivations=0)  # its derivations have been counted
    permissive, deciding = make_permissive(taken, host)
    shadow.place_plan(source, permissive, planned.rates)
    there, (quota, held) = shadow.slots.planned[planned.registered], host.quotas.get_quota(planned.registered)
    shadow.quotas.set_quota(planned.registered, Quota(MORE * quota.goals, MORE * quota.state_bytes), held)
    feed = np.zeros((c.FEED_HEIGHT, 1), np.int64)
    feed[c.IN_KIND], feed[c.IN_S], feed[c.IN_END] = c.OPENING, there.number, host.arrays.net.at[c.NOW]
    shadow.feed(feed)
    return shadow, there.at.node, deciding


class _NewPairs(NamedTuple):
    """Tells which solutions of an optional join are pairs of a timeless solution that it has decided on before."""

    decided: frozenset[bytes]  # the solutions that it decided on: all their columns, and those that their pattern has
    known: frozenset[bytes]
    others: Ints

    @classmethod
    def from_plan(cls, planned: Planned, fragment: Fragment, side: LastingSide, stands: dict[int, Goals]) -> "_NewPairs":
        before = next(number for number, target in fragment.sets.items() if target == side.decided)
        goals, others = stands.get(_store_of((before, c.LEFT))), _find_others(planned, side.columns)
        rows = np.zeros((0, c.VAR + len(planned.columns)), np.int64) if goals is None else goals.timeless
        return cls(frozenset(_key_rows(rows, NONE)), frozenset(_key_rows(rows, others)), others)

    def find(self, rows: Ints) -> list[bool]:
        keys = zip(_key_rows(rows, NONE), _key_rows(rows, self.others), strict=True)
        return [known in self.known and whole not in self.decided for whole, known in keys]


def _hand_on_decided(
    shadow: KernelHost, place: int, deciding: dict[int, Deciding], stands: dict[int, Goals], unseen: Ints, pairs: Mapping[int, _NewPairs]
) -> None:  # fmt: skip
    """Let the timeless solutions at sides that decide pass by themselves, unless they are among those kept there:
    these were decided otherwise.

    `stands` are the query's goals, and `deciding` the sides, by stores from the query's first on. What passes one
    side may come to another, so this goes round until nothing new comes. New `pairs` of solutions that were decided
    on before do not pass.
    """
    kept = {store: dict(zip(_key_rows(stands[store].timeless, unseen), stands[store].timeless, strict=True)) for store in deciding if store in stands}
    passed, width = dict.fromkeys(deciding, 0), width_of(shadow.arrays.net)
    going = True
    while going and not shadow.failures:
        going = False
        for store, side in deciding.items():
            rows = _read_timeless(shadow, side.held + c.SIDES * place)[passed[store] :]
            passed[store] += len(rows)
            going |= len(rows) > 0
            new, places = [], []
            late = pairs[store].find(rows) if store in pairs else [False] * len(rows)
            for key, row, is_late in zip(_key_rows(rows, unseen), rows, late, strict=True):
                was = kept.get(store, {}).get(key)
                target = side.alone if was is None else side.decided
                if target is not None and not (is_late and was is None):
                    new.append(row if was is None else to_width(was[None], width)[0])
                    places.append((place + target[0], target[1]))
            if new:
                shadow.enter_solutions(np.array(new, np.int64), np.array(places, np.int64))


def _read_timeless(host: KernelHost, store: int) -> Ints:
    goals = host.arrays.read_goals(store, store + 1).get(store)
    return np.zeros((0, width_of(host.arrays.net)), np.int64) if goals is None else goals.timeless


def _find_first_facts(planned: Planned, fragment: Fragment, stands: dict[int, Goals]) -> list[Fact]:
    """Return facts for the graphs that a stream has named; they stay."""
    facts = []
    for node, row in enumerate(fragment.nodes):
        (at,) = _number_stores(planned, [(node, c.LEFT)])
        if row.kind == c.FIRST and at in stands:
            columns = tuple(range(c.VAR, c.VAR + len(fragment.columns)))
            facts.append(Fact(node, c.LEFT, False, columns, stands[at].timeless[:, columns]))
    return facts

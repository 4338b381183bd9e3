"""JOIN stands for every positive two-sided operator."""

from typing import NamedTuple

from engine.kernel import inlined, jit
from engine.kernel.operators.background_lookup import copy_with_triple, find_first_place, find_next_place
from engine.kernel.operators.emission import emit_row
from engine.kernel.operators.output import find_plain_out, write_joined
from engine.kernel.state.goal_store import find_newest, find_newest_timeless, hash_in_store, hash_key, hash_stored_key, store_goal, store_of
from engine.kernel.state.layout import BIG, CHUNK, JOIN_COST, LEFT, LOOK_ON, LOOK_ON_STORED, LOOKS, NEVER, NONE, RIGHT, SIDES, UNBOUND
from engine.kernel.state.rows import copy_row, free_row, is_timeless, take_row
from engine.kernel.state.tasks import life_of, opposite_of, task_to_go_on
from engine.kernel.state.temporal_relations import has_same_key, holds_relation, is_compatible, merge_rows
from engine.kernel.state.work_queues import count_looks, count_made, push_frame, push_frame_below


class Terms(NamedTuple):
    """Holds the terms on which a row meets goals of a node's other side.

    They are read once per probe, because table cells are reloaded after every store to a row.
    """

    relation: int
    oldest: int  # least start (µs) the window admits
    until: int  # least end (µs) of a goal that may count; goals that end before have expired, or may at any step
    hash_: int  # of the goals
    key_at: int
    key_n: int
    rest_at: int
    rest_n: int


@inlined
def read_terms(net, node, side, x, hash_):
    """Return the terms of x, which came from `side`; `hash_` is its key's."""
    here, now, other = net.nodes[node], net.at.now, opposite_of(side)
    until = now - min(here.span, life_of(here, other))
    hash_ = hash_in_store(store_of(node, other), hash_)
    return Terms(here.relation, now - here.span, until, hash_, here.key_at, here.key_n, here.rest_at, here.rest_n)


@inlined
def hash_join_key(net, node, x):
    return hash_key(net, x, net.nodes[node].key_at, net.nodes[node].key_n)


@inlined
def is_joinable(net, terms, x, y):
    """Return whether left x and right y join."""
    rows = net.rows
    return (
        rows[x].start >= terms.oldest
        and rows[y].start >= terms.oldest
        and holds_relation(terms.relation, rows[x].start, rows[x].end, rows[y].start, rows[y].end)
        and has_same_key(net, x, y, terms.key_at, terms.key_n)
        and is_compatible(net, x, y, terms.rest_at, terms.rest_n)
    )


@inlined
def count_given(net, node, out, made):
    """Count rows that a join has written as solutions of `out` itself."""
    net.stores[SIDES * node].given += made
    net.stores[SIDES * out].taken += made


@inlined
def join_rows(net, x, y):
    z = take_row(net)
    merge_rows(net, z, x, y)
    return z


@inlined
def arrive_join(net, node, side, x):
    """Join semi-naively: x is stored, if its side is, and meets every goal of the other side that was stored before it.

    What comes later meets x in its turn, even while x goes on in steps of its own; so each pair meets once.
    """
    here, partners = net.nodes[node], store_of(node, opposite_of(side))
    if net.rows[x].start < net.at.now - here.span or (here.gate != NONE and not is_preceded(net, here.gate, x)):
        free_row(net, x)
        return
    key, life, goal = hash_join_key(net, node, x), life_of(here, side), NONE
    if here.timeless != 0:
        defer_timeless_goals(net, node, side, x, key)
    if net.stores[partners].count > 0:  # a probe of an empty side costs nothing
        goal = find_newest(net, hash_in_store(partners, key))
    if life != NEVER:
        store_goal(net, store_of(node, side), hash_in_store(store_of(node, side), key), x, life)
        count_made(net, node, 1)
    if goal != NONE:
        probe_chain(net, node, side, x, goal, key, life != NEVER)
    elif life == NEVER:
        free_row(net, x)


@jit
def is_preceded(net, gate, x):
    """Return whether a left goal of a SEQ may end before x starts, where x is part of a right solution of that SEQ.

    What comes later ends no earlier than x does. If x lacks a variable of the key, any left goal will do.
    """
    rows, left, here = net.rows, store_of(gate, LEFT), net.nodes[gate]
    if is_timeless(net, x):
        return True
    if net.stores[left].count == 0:
        return False
    for k in range(here.key_at, here.key_at + here.key_n):
        if rows[x, net.slots[k]] == UNBOUND:
            return rows[net.stores[left].head].end < rows[x].start
    hash_, oldest = hash_stored_key(net, left, x, here.key_at, here.key_n), net.at.now - min(here.span, here.life_left)
    goal = find_newest(net, hash_)
    while goal != NONE and rows[goal].end >= oldest:
        if rows[goal].end < rows[x].start and rows[goal].hash == hash_ and has_same_key(net, goal, x, here.key_at, here.key_n):
            return True
        goal = rows[goal].older
    return False


@jit
def defer_timeless_goals(net, node, side, x, key):
    """Leave x's timeless goals, and the triples it meets in a table of the background, to other steps.

    The goals begin with the newest of x's key. The newest of the whole chain may be on another one once the table of chains has grown.
    """
    stored = life_of(net.nodes[node], side) != NEVER
    if side == LEFT and net.nodes[node].look != NONE:
        push_frame_below(net, net.at.depth, node, LOOK_ON_STORED if stored else LOOK_ON, x if stored else copy_row(net, x), NONE)
    hash_ = hash_in_store(store_of(node, opposite_of(side)), key)
    goal = find_newest_timeless(net, hash_)
    while goal != NONE and net.rows[goal].hash != hash_:
        goal = net.rows[goal].older
    if goal == NONE:
        return
    push_frame_below(net, net.at.depth, node, task_to_go_on(side, stored), x if stored else copy_row(net, x), goal)


@jit
def join_background(net, node, task, x, place):
    """Let left x meet the triples of its key in the node's table, from `place` on."""
    depth, made = net.at.depth, 0
    place = find_first_place(net, node, x) if place == NONE else place
    while place != NONE:
        if made == CHUNK:
            push_frame_below(net, depth, node, task, x, place)
            count_made(net, node, 1)
            return
        made += 1
        z = copy_with_triple(net, node, x, place)
        if net.nodes[node].look_via != NONE:
            push_frame(net, net.nodes[node].look_via, LEFT, z)
        else:
            emit_row(net, node, z)
        place = find_next_place(net, node, x, place)
    if task == LOOK_ON:
        free_row(net, x)


@jit
def go_on_join(net, node, side, x, goal, stored):
    probe_chain(net, node, side, x, goal, hash_join_key(net, node, x), stored)


@inlined
def probe_chain(net, node, side, x, goal, key, stored):
    """Let x meet the goals of one chain from `goal` on.

    Results beyond a chunk are left to another step, which finds `goal` there. A goal not older than its terms admit does not expire at this instant.
    """
    rows, out, depth, made, looked = net.rows, find_plain_out(net, node), net.at.depth, 0, 0
    terms = read_terms(net, node, side, x, key)
    timeless = goal != NONE and is_timeless(net, goal)
    # a join with a timeless x ends where its timed goal does, so an older goal would give a solution of the past
    until = -BIG if timeless else net.at.now if is_timeless(net, x) else terms.until
    while goal != NONE and rows[goal].end >= until:  # the chain falls in end
        left, right = (goal, x) if side == RIGHT else (x, goal)
        if rows[goal].hash == terms.hash_:
            looked += 1
            if is_joinable(net, terms, left, right):
                if made == CHUNK:
                    push_frame_below(net, depth, node, task_to_go_on(side, stored), x, goal)
                    if out != NONE:
                        count_given(net, node, out, made)
                    count_looks(net, node, looked + made * (LOOKS if out != NONE else JOIN_COST))
                    return
                made += 1
                if out != NONE:
                    write_joined(net, out, left, right)
                else:
                    emit_row(net, node, join_rows(net, left, right))
        goal = rows[goal].older
    if out != NONE:
        count_given(net, node, out, made)
    if looked >= LOOKS // JOIN_COST or (made > 0 and out != NONE):
        count_looks(net, node, looked + made * (LOOKS if out != NONE else JOIN_COST))
    if not stored:
        free_row(net, x)

"""JOIN stands for every positive two-sided operator."""

from typing import NamedTuple

from engine.kernel import inlined, jit
from engine.kernel.operators.background_lookup import first_place, next_place, with_triple
from engine.kernel.operators.emit import copied, count_looks, count_made, emit, plain_out, write_union
from engine.kernel.state.goal_store import (
    count_for,
    hash_of,
    in_store,
    is_timeless,
    newest,
    newest_timeless,
    push,
    push_below,
    release,
    store_goal,
    store_of,
    take,
)
from engine.kernel.state.layout import *
from engine.kernel.state.temporal_relations import compatible, holds, merge_into, same_key


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
def terms_of(net, node, side, x, hash_):
    """Return the terms of x, which came from `side`; `hash_` is its key's."""
    n, now = net.nodes, net.at[NOW]
    other = LEFT + RIGHT - side
    until = now - min(n[node, SPAN], n[node, LIFE_LEFT + other])
    hash_ = in_store(store_of(node, other), hash_)
    return Terms(n[node, RELATION], now - n[node, SPAN], until, hash_, n[node, KEY_AT], n[node, KEY_N], n[node, REST_AT], n[node, REST_N])


@inlined
def key_of(net, node, x):
    return hash_of(net, x, net.nodes[node, KEY_AT], net.nodes[node, KEY_N])


@inlined
def fits(net, terms, x, y):
    """Return whether left x and right y join."""
    rows = net.rows
    return (
        rows[x, START] >= terms.oldest
        and rows[y, START] >= terms.oldest
        and holds(terms.relation, rows[x, START], rows[x, END], rows[y, START], rows[y, END])
        and same_key(net, x, y, terms.key_at, terms.key_n)
        and compatible(net, x, y, terms.rest_at, terms.rest_n)
    )


@inlined
def merged(net, x, y):
    z = take(net)
    merge_into(net, z, x, y)
    return z


@inlined
def arrive_join(net, node, side, x):
    """Join semi-naively: x is stored, if its side is, and meets every goal of the other side that was stored before it.

    What comes later meets x in its turn, even while x goes on in steps of its own; so each pair meets once.
    """
    nodes = net.nodes
    if net.rows[x, START] < net.at[NOW] - nodes[node, SPAN]:
        release(net, x)
        return
    key, life, goal = key_of(net, node, x), nodes[node, LIFE_LEFT + side], NONE
    if nodes[node, TIMELESS] != 0:
        meet_timeless_later(net, node, side, x, key)
    if net.stores[store_of(node, LEFT + RIGHT - side), COUNT] > 0:  # a probe of an empty side costs nothing
        goal = newest(net, in_store(store_of(node, LEFT + RIGHT - side), key))
    if life != NEVER:
        store_goal(net, store_of(node, side), in_store(store_of(node, side), key), x, life)
        count_for(net, node, 1)
    if goal != NONE:
        probe(net, node, side, x, goal, key, life != NEVER)
    elif life == NEVER:
        release(net, x)


@jit
def meet_timeless_later(net, node, side, x, key):
    """Leave x's timeless goals, and the triples it meets in a table of the background, to other steps.

    The goals begin with the one that is the newest now.
    """
    stored = net.nodes[node, LIFE_LEFT + side] != NEVER
    if side == LEFT and net.nodes[node, LOOK] != NONE:
        push_below(net, net.at[DEPTH], node, LOOK_ON_STORED if stored else LOOK_ON, x if stored else copied(net, x), NONE)
    goal = newest_timeless(net, in_store(store_of(node, LEFT + RIGHT - side), key))
    if goal == NONE:
        return
    if stored:
        push_below(net, net.at[DEPTH], node, GO_ON_STORED + side, x, goal)
    else:
        push_below(net, net.at[DEPTH], node, GO_ON + side, copied(net, x), goal)


@jit
def look_up(net, node, side, x, place):
    """Let left x meet the triples of its key in the node's table, from `place` on."""
    depth, made = net.at[DEPTH], 0
    place = first_place(net, node, x) if place == NONE else place
    while place != NONE:
        if made == CHUNK:
            push_below(net, depth, node, side, x, place)
            count_made(net, node, 1)
            return
        made += 1
        z = with_triple(net, node, x, place)
        if net.nodes[node, LOOK_VIA] != NONE:
            push(net, net.nodes[node, LOOK_VIA], LEFT, z)
        else:
            emit(net, node, z)
        place = next_place(net, node, x, place)
    if side == LOOK_ON:
        release(net, x)


@jit
def go_on_join(net, node, side, x, goal, stored):
    probe(net, node, side, x, goal, key_of(net, node, x), stored)


@inlined
def probe(net, node, side, x, goal, key, stored):
    """Let x meet the goals of one chain from `goal` on.

    Results beyond a chunk are left to another step, which finds `goal` there. A goal not older than its terms admit does not expire at this instant.
    """
    rows, out, depth, made, looked = net.rows, plain_out(net, node), net.at[DEPTH], 0, 0
    terms = terms_of(net, node, side, x, key)
    timeless = goal != NONE and is_timeless(net, goal)
    # a join with a timeless x ends where its timed goal does, so an older goal would give a solution of the past
    until = -BIG if timeless else net.at[NOW] if is_timeless(net, x) else terms.until
    while goal != NONE and rows[goal, END] >= until:  # the chain falls in end
        left, right = (goal, x) if side == RIGHT else (x, goal)
        if rows[goal, HASH] == terms.hash_:
            looked += 1
            if fits(net, terms, left, right):
                if made == CHUNK:
                    push_below(net, depth, node, (GO_ON_STORED if stored else GO_ON) + side, x, goal)
                    count_looks(net, node, looked + made * (LOOKS if out != NONE else JOIN_COST))
                    return
                made += 1
                if out != NONE:
                    write_union(net, out, left, right)
                else:
                    emit(net, node, merged(net, left, right))
        goal = rows[goal, OLDER]
    if looked >= LOOKS // JOIN_COST or (made > 0 and out != NONE):
        count_looks(net, node, looked + made * (LOOKS if out != NONE else JOIN_COST))
    if not stored:
        release(net, x)

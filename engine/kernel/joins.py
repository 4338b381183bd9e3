"""JOIN: every positive two-sided operator."""

from typing import NamedTuple

from engine.kernel.columns import *
from engine.kernel.compile import inlined, jit
from engine.kernel.flow import emit
from engine.kernel.goals import is_timeless, key_hash, release, store_goal, store_of, take, timed_head, timeless_head
from engine.kernel.relations import compatible, holds, merge_into, same_key


class Terms(NamedTuple):
    """On what terms a node joins; read once per probe, because table cells are reloaded after every store to a row."""

    relation: int
    oldest: int  # least start (µs) the window admits
    key_at: int
    key_n: int
    rest_at: int
    rest_n: int


@inlined
def terms_of(net, node):
    n = net.nodes
    return Terms(n[node, RELATION], net.at[NOW] - n[node, SPAN], n[node, KEY_AT], n[node, KEY_N], n[node, REST_AT], n[node, REST_N])


@inlined
def fits(net, terms, x, y):
    """Whether left x and right y join."""
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
    """Semi-naive: x meets every stored goal of the other side; then it is stored, if its side is."""
    nodes = net.nodes
    if net.rows[x, START] < net.at[NOW] - nodes[node, SPAN]:
        release(net, x)
        return
    if net.stores[store_of(node, LEFT + RIGHT - side), COUNT] > 0:  # a probe of an empty side costs nothing
        probe(net, node, side, x, False)
        if nodes[node, TIMELESS] != 0:
            probe_timeless(net, node, side, x)
    life = nodes[node, LIFE_LEFT + side]
    if life != NEVER:
        store = store_of(node, side)
        store_goal(net, store, key_hash(net, store, x, nodes[node, KEY_AT], nodes[node, KEY_N]), x, life)
    else:
        release(net, x)


@jit
def probe_timeless(net, node, side, x):
    probe(net, node, side, x, True)


@inlined
def probe(net, node, side, x, timeless):
    rows, terms = net.rows, terms_of(net, node)
    hash_ = key_hash(net, store_of(node, LEFT + RIGHT - side), x, terms.key_at, terms.key_n)
    goal = net.heads[timeless_head(net, hash_) if timeless else timed_head(net, hash_)]
    # a join with a timeless x ends where its timed goal does, so an older goal would give a solution of the past
    oldest = net.at[NOW] if is_timeless(net, x) else terms.oldest
    while goal != NONE and (timeless or rows[goal, END] >= oldest):  # the chain falls in end
        left, right = (goal, x) if side == RIGHT else (x, goal)
        if rows[goal, HASH] == hash_ and fits(net, terms, left, right):
            emit(net, node, merged(net, left, right))
        goal = rows[goal, OLDER]

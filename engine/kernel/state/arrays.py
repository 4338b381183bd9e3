"""This module holds the arrays of one network: its program (which the kernel never writes, lives and openings aside)
and its state.
"""

from collections.abc import Mapping
from math import prod
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.kernel.state import layout as c
from engine.kernel.state.layout import RECORDS

MOST_AT_ONCE, MOST_EACH = 1_000_000, 64
"""A query that makes more at one instant fails; each occurrence that comes at it allows for more.

That is about a second, and what its input costs.
"""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Shorts = NDArray[np.int32]
Rows = NDArray[Any]


class Net(NamedTuple):
    """One handle's worth of arrays; shapes in comments, n x WIDTH by the columns' names."""

    # program
    nodes: Ints
    edges: Ints  # (node, side) that reads a node's output
    slots: Ints  # row columns: keys, residuals, hidden columns, arguments of questions
    alpha_at: Ints  # a row a predicate, ALPHA_AT_WIDTH cells each; 0 is for scans with a predicate variable
    alpha: Ints
    wants: Ints
    posted: Ints
    lists: Ints  # 0 is none
    postings: Ints
    code: Ints  # (opcode, argument)
    consts: Floats  # (value, slack)
    asks: Ints
    templates: Ints
    moves: Ints
    timers: Ints  # nodes of kind WITHOUTFOR and COLLECT
    reads: Ints
    facts: Ints
    lookups: Ints  # tables of the background and of instances, which the host keeps
    moments: Ints  # when instances changed
    # terms, by id
    numbers: Floats  # (value, slack): slack 0 exact, inf no number, nan unbound
    kinds: NDArray[np.int8]
    terms: Ints  # where each text stands, and how long it is, as the host has it
    # the input of one call
    feed: Ints  # FEED_HEIGHT x capacity
    # state
    queries: Ints
    streams: Ints
    at: Ints
    rows: Rows  # of `type_of_row`
    links: Ints  # a row for each of `rows` where a query has a policy, else none
    free: Shorts  # rows given back, for the next to take
    heads: Shorts  # chains by key hash
    timeless: Shorts  # chains of timeless goals
    stores: Ints  # SIDES a node
    stack: Ints
    waiting: Ints  # for the close of the instant
    parked: Ints  # for the host's answers
    gathered: Ints  # for the host's collectors
    deferred: Ints  # for those that decide when the feed is done
    reports: Ints  # of those
    out: Ints
    seen: Ints
    seen_heads: Ints
    questions: Ints
    question_heads: Ints
    nests: Ints  # levels of EXISTS in EXISTS
    scratch: Floats  # the filters' stack: (value, slack)
    shown: Ints  # row columns that a rule's triples show
    answers: Ints  # the address of a compiled function that answers questions, 0 for none, and that of its context


CELL_BYTES = {"rows": 4, "free": 4, "heads": 4, "timeless": 4, "kinds": 1}
"""Cells of these tables have fewer than 8 bytes."""
WORDS = 3
"""An array has these cells in the handle's table: address, length, width."""
FIRST_ROWS = 1 << 10
PLENTY = 1 << 12
"""Each pool has room for so many once one of them has had too little, so that credit for steps lasts."""
FIRST_HEADS = 1 << 8
LARGE = 1 << 18
"""Rows at which a table grows by less than it has."""


def type_of_row(width: int) -> np.dtype[np.void]:
    """Return the type of a row of `width` variables. Its fields are its columns, and `terms` has those from VAR on."""
    wide, short = ("start", "end", "hash"), ("older", "newer", "queue")
    return np.dtype([*((name, np.int64) for name in wide), *((name, np.int32) for name in short), ("terms", np.int32, (width,))])


def empty_program() -> dict[str, NDArray[Any]]:
    """Return the program of a network without queries; some tables keep one unused row."""
    return {
        "nodes": np.zeros((0, c.NODE_WIDTH), np.int64),
        "edges": np.zeros((0, 2), np.int64),
        "slots": np.zeros(0, np.int64),
        "alpha_at": np.zeros(c.ALPHA_AT_WIDTH, np.int64),
        "alpha": np.zeros((0, c.A_PLAIN + 1), np.int64),
        "wants": np.zeros((0, c.WANT_WIDTH), np.int64),
        "posted": np.full((1, c.POSTED_WIDTH), c.NONE, np.int64),
        "lists": np.zeros((1, c.LIST_WIDTH), np.int64),
        "postings": np.zeros((0, c.POSTING_WIDTH), np.int64),
        "code": np.zeros((0, 2), np.int64),
        "consts": np.zeros((0, 2), np.float64),
        "asks": np.zeros((0, c.ASK_WIDTH), np.int64),
        "templates": np.zeros((0, c.TEMPLATE_WIDTH), np.int64),
        "moves": np.zeros((0, c.MOVE_WIDTH), np.int64),
        "timers": np.zeros((0, c.TIMER_WIDTH), np.int64),
        "reads": np.zeros((0, c.READ_WIDTH), np.int64),
        "lookups": np.zeros((0, c.LOOKUP_WIDTH), np.int64),
        "moments": np.array([[-c.BIG, c.UNBOUND]], np.int64),
    }


def new_net(width: int) -> Net:
    """Return a network without queries; `width` is the number of variables of the widest solution."""
    assert width >= c.LEAST_WIDTH
    at = np.zeros(c.AT_WIDTH, np.int64)
    at[c.NOW], at[c.ENDLESS], at[c.MEMO_LIMIT], at[c.HORIZON] = -c.BIG, c.NONE, 1 << 17, c.FOREVER
    at[c.MARGIN], at[c.FEW_FROM], at[c.STAR_STORE] = c.CHUNK, c.NONE, c.NONE
    at[c.MOST_MADE], at[c.MOST_EACH], at[c.MOST_NOW] = MOST_AT_ONCE, MOST_EACH, MOST_AT_ONCE
    heads, chains = np.full(FIRST_HEADS, c.NONE, np.int64), np.full(FIRST_HEADS, c.NONE, np.int32)
    return Net(
        **empty_program(),
        **map_arrays(first_shapes(width)),
        facts=np.zeros((0, c.F_VAR + width), np.int64),
        numbers=np.full((1, 2), np.nan),
        kinds=np.zeros(1, np.int8),
        terms=np.zeros((1, c.TERM_WIDTH), np.int64),
        feed=np.zeros((c.FEED_HEIGHT, 1), np.int64),
        queries=np.zeros((0, c.QUERY_WIDTH), np.int64),
        streams=np.zeros((0, c.STREAM_WIDTH), np.int64),
        at=at,
        links=np.zeros((0, c.LINK_WIDTH), np.int64),
        heads=chains,
        timeless=chains.copy(),
        stores=np.zeros((0, c.STORE_WIDTH), np.int64),
        reports=np.zeros((0, c.G_VAR + width), np.int64),
        seen_heads=heads,
        question_heads=heads.copy(),
        nests=np.zeros((c.NEST_LEVELS, c.NEST_WIDTH), np.int64),
        scratch=np.zeros((64, 2), np.float64),
        shown=np.zeros(c.VAR + width, np.int64),
        answers=np.zeros(2, np.int64),
    )


def map_arrays(shapes: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> dict[str, NDArray[Any]]:
    """Return arrays of zeros, in one mapping of their own.

    Most rows of pools are never touched, and the system has memory only for touched pages. Blocks of the heap would
    be cleared, and so touched. A server may have thousands of networks with a query each.
    """
    sizes = {name: kind.itemsize * prod(shape) for name, (kind, shape) in shapes.items()}
    memory, at, arrays = mmap(-1, sum(sizes.values()), MAP_PRIVATE | MAP_ANONYMOUS), 0, dict[str, NDArray[Any]]()
    for name, (kind, shape) in shapes.items():
        arrays[name] = np.ndarray(shape, kind, memory, at)
        at += sizes[name]
    return arrays


def first_shapes(width: int) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return the types and shapes of a network's first rows and pools."""
    cell = np.dtype(np.int64)
    return {
        "rows": (type_of_row(width), (FIRST_ROWS,)),
        "free": (np.dtype(np.int32), (FIRST_ROWS,)),
        **dict.fromkeys(("stack", "waiting", "parked", "gathered"), (cell, (FIRST_ROWS, c.FRAME_WIDTH))),
        "deferred": (cell, (FIRST_ROWS, c.DEFERRED_WIDTH)),
        "out": (cell, (FIRST_ROWS, c.OUT_VAR + width)),
        "seen": (cell, (FIRST_ROWS, c.SEEN_VAR + width)),
        "questions": (cell, (FIRST_ROWS, c.ASK_ARG + width + 2)),
    }


KEPT = (
    "nodes", "edges", "slots", "code", "consts", "asks", "templates", "moves", "timers", "reads", "facts", "lookups",
    "queries", "streams", "at", "rows", "links", "free", "heads", "timeless", "stores", "seen_heads",
)  # fmt: skip
"""The program apart from scans, and the state apart from pools."""

POOLS = {
    "stack": c.DEPTH,
    "waiting": c.WAITING,
    "parked": c.PARKED,
    "gathered": c.GATHERED,
    "deferred": c.DEFERRED_N,
    "out": c.FOUND,
    "seen": c.SEEN_N,
    "questions": c.ASKED,
}
"""Pools that fill from the front, with the cell of `at` that says how far."""


def taller(a: NDArray[Any], height: int) -> NDArray[Any]:
    """Return `a` with `height` rows, the new ones zero."""
    b = np.zeros((height, *a.shape[1:]), a.dtype)
    b[: len(a)] = a
    return b


def wider(a: NDArray[Any], width: int) -> NDArray[Any]:
    """Return `a` with `width` columns, the new ones zero."""
    b = np.zeros((len(a), width), a.dtype)
    b[:, : a.shape[1]] = a
    return b


def width_of(net: Net) -> int:
    """Return the number of columns of a row."""
    return c.VAR + int(net.rows.dtype["terms"].shape[0])


def read_whole(net: Net, numbers: Ints) -> Ints:
    """Return rows with all their columns, as 64-bit integers."""
    rows = net.rows[numbers]
    return np.column_stack([*(rows[name] for name in RECORDS["rows"]), rows["terms"]]).astype(np.int64, copy=False)


def write_whole(net: Net, numbers: Ints, cells: Ints) -> None:
    """Write rows with all their columns."""
    for name, column in RECORDS["rows"].items():
        net.rows[name][numbers] = cells[:, column]
    net.rows["terms"][numbers] = cells[:, c.VAR :]


def to_width(a: Ints, width: int) -> Ints:
    """Return rows with as many columns as those of another network have; they do not bind the columns left out beyond
    them.
    """
    return a[:, :width] if a.shape[1] >= width else wider(a, width)


def margin(net: Net, occurrence: int) -> int:
    """Return the most that one step adds to a pool.

    It may add a chunk of results, a copy for each reader, or the rows that scans and templates make of an occurrence.

    `occurrence` is the number of scans that one occurrence may concern.
    """
    awaited = int(net.queries[:, c.Q_FACTS_N].sum())
    derived = (occurrence + 1) * int(net.nodes[:, c.TEMPLATE_N].max(initial=1))
    finds = min(int((net.nodes[:, c.KIND] == c.FIND).sum()), c.MOST_FINDS * c.NEST_LEVELS)  # a row for each may be held while a step looks on
    goes = 3 if np.isin(net.nodes[:, c.KIND], (c.RECENT, c.CHRONOLOGICAL)).any() else 1  # a policy looks through up to three chains
    return max(goes * c.CHUNK, int(net.nodes[:, c.EDGE_N].max(initial=0)), derived + awaited) + finds + c.MOST_FEW + 8


def with_room(net: Net, need: int, frames: int = 0) -> Net:
    """Make room for `need` more in each pool and for `frames` more on the stack; no row moves, so row numbers stay
    good.
    """
    need += c.MOST_FEW
    heights = dict[str, int]()
    for name, filled in POOLS.items():
        wanted, height = max(PLENTY, int(net.at[filled]) + (max(need, frames) if name == "stack" else need)), len(getattr(net, name))
        if wanted > height:
            heights[name] = max(wanted, 2 * height)
    return with_rows(with_heights(net, heights), need)


def with_first_room(net: Net) -> Net:
    """Return the network with its pools as short as at first, where what is in them leaves half of that free."""
    fitting = [name for name, filled in POOLS.items() if 2 * net.at[filled] <= FIRST_ROWS < len(getattr(net, name))]
    return with_heights(net, dict.fromkeys(fitting, FIRST_ROWS))


def with_heights(net: Net, heights: Mapping[str, int]) -> Net:
    """Return the network with pools of other heights, which have all that was in them."""
    if not heights:
        return net
    before = {name: getattr(net, name) for name in heights}
    pools = map_arrays({name: (pool.dtype, (heights[name], *pool.shape[1:])) for name, pool in before.items()})
    for name, pool in before.items():
        n = int(net.at[POOLS[name]])
        pools[name][:n] = pool[:n]
    return net._replace(**pools)


def with_rows(net: Net, need: int) -> Net:
    """Make room for `need` more rows. None moves, so row numbers stay good."""
    free = int(net.at[c.FREE])
    needed = int(net.at[c.USED]) - free + need
    if needed <= len(net.rows):
        return net
    if needed > c.MOST_ROWS:
        raise MemoryError(f"more than {c.MOST_ROWS} partial matches in one engine (run the queries with more partitions)")
    height = needed + min(needed, max(LARGE, needed // 32))
    new = {"rows": extended(net.rows, height), "free": np.zeros(height, np.int32)}
    new["free"][:free] = net.free[:free]  # the rest of it is memory that nothing has touched yet
    if len(net.links):
        new["links"] = extended(net.links, height)
    return net._replace(**new)


def extended(a: NDArray[Any], height: int) -> NDArray[Any]:
    """Return `a` itself with more rows, or a copy where that is at least twice as long or `a` does not own its memory.

    Its pages are moved and not copied, so no view of it may outlive a feed.
    """
    if not a.flags.owndata or height >= 2 * len(a):
        return taller(a, height)
    a.resize((height, *a.shape[1:]), refcheck=False)
    return a


def with_links(net: Net) -> Net:
    """Make room for what a policy needs of each goal."""
    return net if len(net.links) else net._replace(links=np.zeros((len(net.rows), c.LINK_WIDTH), np.int64))


def with_width(net: Net, width: int) -> Net:
    """Make room for solutions of `width` variables."""
    if width_of(net) >= c.VAR + width:
        return net
    rows = np.zeros(len(net.rows), type_of_row(width))
    for name in RECORDS["rows"]:
        rows[name] = net.rows[name]
    rows["terms"][:, : width_of(net) - c.VAR] = net.rows["terms"]
    return net._replace(
        rows=rows,
        facts=wider(net.facts, c.F_VAR + width),
        reports=wider(net.reports, c.G_VAR + width),
        out=wider(net.out, c.OUT_VAR + width),
        seen=wider(net.seen, c.SEEN_VAR + width),
        questions=wider(net.questions, c.ASK_ARG + width + 2),
        shown=np.zeros(c.VAR + width, np.int64),
    )

"""This module describes a query's part of a network's program, and places it among the others."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.operator import Collector
from engine.alpha.free_rows import Ranges, with_rows
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import Net
from engine.pattern_scope import asks_identity, looks_at_background, looks_at_time
from engine.physical_plan.join_trees import PlanShape, Segment
from engine.triples.hash_index import Lookup
from epsparql.algebra import Expression
from epsparql.deferred_methods import dataclass
from epsparql.terms import Variable

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """Represents a question that the kernel may put to the host: a filter's verdict, or a term to bind.

    Its arguments are the terms of `variables` and, if it is `timed`, the solution's start and end.
    """

    variables: tuple[Variable, ...]
    timed: bool
    condition: Expression | None = None
    expression: Expression | None = None
    fresh: str | None = None  # label of a template's blank node, a new one for each solution
    site: str = ""  # the place where the query asks, on which functions such as RAND depend
    solution: tuple[Variable, ...] = ()  # those of `variables` that are the whole solution's, on which RAND depends too

    @property
    def searches(self) -> bool:
        """Return whether the answer depends on a search of the background."""
        asked = self.condition or self.expression
        return self.timed and asked is not None and looks_at_background(asked)

    @property
    def lasts(self) -> bool:
        """Return whether a condition is the same for a solution at any instant."""
        return self.condition is not None and not looks_at_time(self.condition) and not asks_identity(self.condition)


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """Holds timeless rows for a side of a node: the terms of some of its columns.

    RowRange that are no `triple` of the background come only when the query opens.
    """

    node: int
    side: int
    triple: bool
    columns: tuple[int, ...]
    rows: Ints  # n x columns
    source: Ints | None = None  # the background triples of which the rows are made


def fact(node: int, side: int, triple: bool, cells: Mapping[int, int]) -> Fact:
    """Return a fact of one row."""
    return Fact(node, side, triple, tuple(cells), np.array([list(cells.values())], np.int64).reshape(1, -1))


@dataclass(frozen=True, slots=True)
class Unit:
    """Represents a group of triple patterns or a path whose plan keeps partial solutions.

    They rest on the background, and are made anew when it changes.

    What came of the stream alone is kept in its `leaves`: (node, side) of a store, and where its solutions go in again.
    """

    root: int  # the node that gives the unit's solutions
    nodes: range
    leaves: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    inner: tuple[tuple[int, int], ...]  # stores of partial solutions


@dataclass(frozen=True, slots=True)
class PathJoin:
    """Represents a join of an operand with a path whose walks may be looked up from the operand's solutions.

    If the path is `deep`, they go to `entry` too. Else the path's own nodes copy the background.
    """

    operand: tuple[int, int]  # the side at which the operand's solutions are kept
    entry: tuple[int, int]
    deep: bool
    timeless: bool  # whether their joins may be
    first: int  # the node that wakes the path's own nodes
    nodes: range  # these


COPIED, LOOKED_UP, WAITING = "copied", "looked up", "waiting"


@dataclass(frozen=True, slots=True)
class Read:
    """Describes what a query reads of the background by one triple pattern, and how many triples.

    The triples are COPIED to the query, or LOOKED_UP for its solutions in a table that queries share. Triples that
    are WAITING are taken in when a stream brings a first link of a path.
    """

    pattern: str
    triples: int
    use: str


class RowRange(NamedTuple):
    """Names consecutive rows of one of a fragment's lists: the first of them, and how many they are."""

    first: int = 0
    n: int = 0


NO_ROWS = RowRange()


@dataclass(slots=True)
class Node:
    """Describes one operator for the kernel: a row of its table `nodes`, with the columns' names
    (`engine/kernel/state/layout.py`).

    `key` and `rest` are the columns by which the sides are compared; `key2` and `rest2` compare the joined solution
    with what is absent. A COLLECT that is deferred has its window's length and step in `life_left` and `life_right`,
    and that it is deferred in `once`.
    """

    kind: int
    relation: int = 0
    span: int = c.FOREVER
    key: RowRange = NO_ROWS
    rest: RowRange = NO_ROWS
    filter: int = c.NONE
    life_left: int = 0
    life_right: int = 0
    life_blocker: int = 0
    timeless: int = 0
    edges: RowRange = NO_ROWS
    key2: RowRange = NO_ROWS
    rest2: RowRange = NO_ROWS
    by_right: int = 0
    hide: RowRange = NO_ROWS
    templates: RowRange = NO_ROWS
    condition: int = c.NONE
    ask: int = 0
    column: int = 0
    marks: RowRange = NO_ROWS
    moves: RowRange = NO_ROWS
    keep: int = 0
    once: int = 0
    look: RowRange = NO_ROWS
    look_via: int = c.NONE
    gate: int = c.NONE
    subject: int = 0
    source: int = c.NONE
    local: int = 0
    star: int = 0

    @property
    def cells(self) -> tuple[int, ...]:
        """Return the fields in the order of NODE_COLUMNS."""
        return (
            self.kind, self.relation, self.span, *self.key, *self.rest, self.filter, self.life_left, self.life_right, self.life_blocker,
            self.timeless, *self.edges, *self.key2, *self.rest2, self.by_right, *self.hide, *self.templates, self.condition, self.ask,
            self.column, *self.marks, *self.moves, self.keep, self.once, *self.look, self.look_via, self.gate, self.subject, self.source,
            self.local, self.star,
        )  # fmt: skip


NODE_COLUMNS = (
    c.KIND, c.RELATION, c.SPAN, c.KEY_AT, c.KEY_N, c.REST_AT, c.REST_N, c.FILTER, c.LIFE_LEFT, c.LIFE_RIGHT, c.LIFE_BLOCKER,
    c.TIMELESS, c.EDGE_AT, c.EDGE_N, c.KEY2_AT, c.KEY2_N, c.REST2_AT, c.REST2_N, c.BY_RIGHT, c.HIDE_AT, c.HIDE_N, c.TEMPLATE_AT, c.TEMPLATE_N,
    c.CONDITION, c.ASK, c.COLUMN, c.MARK_AT, c.MARK_N, c.MOVE_AT, c.MOVE_N, c.KEEP, c.ONCE_ONLY, c.LOOK_AT, c.LOOK_N, c.LOOK_VIA, c.GATE,
    c.SUBJECT, c.SOURCE, c.LOCAL, c.STAR,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scan:
    """Describes which triples of a stream become rows at a side of a node: a row of the kernel's table `alpha`.

    A part of the triple is a term that it must be, or NONE. Its column takes what the part is, or is NONE.
    """

    stream: int
    subject: int
    predicate: int  # 0 for any, or AS_SENT
    object: int
    columns: tuple[int, int, int]  # of subject, predicate and object
    node: int
    side: int
    graph: int = c.NONE
    graph_column: int = c.NONE
    moment: int = c.NONE

    @property
    def cells(self) -> tuple[int, ...]:
        """Return the fields in the order of SCAN_COLUMNS."""
        return (
            self.stream, self.subject, self.object, *self.columns, self.node, self.side, self.graph, self.graph_column, self.moment, self.predicate
        )  # fmt: skip

    @property
    def binds(self) -> tuple[int, ...]:
        """Return the columns that the scan binds."""
        return tuple(column for column in (*self.columns, self.graph_column, self.moment) if column != c.NONE)


SCAN_COLUMNS = (
    c.A_STREAM, c.A_S, c.A_O, c.A_SVAR, c.A_PVAR, c.A_OVAR, c.A_NODE, c.A_SIDE, c.A_GRAPH, c.A_GVAR, c.A_MOMENT, c.A_PLAIN + 1,
)  # fmt: skip
"""The predicate stands behind the columns of `alpha`."""


class TextSearch(NamedTuple):
    """Describes how instances are found by what a text has of the values of a parameter.

    `sought` is what the text has to have, an expression over the `parameter`, and `mode` says where in the text (as in
    `engine/dictionary/layout.py`). With `flags`, it is a pattern, of which a part that each match has is sought.
    """

    parameter: Variable
    sought: Expression
    mode: int
    flags: str | None = None


class InstanceLookup(NamedTuple):
    """Describes the table in which a node looks up instances.

    `parts` are the columns of the relation that are the key and, behind those, the others. Rows of one key are in the
    order of the column `order`, if there is one. They rise in it, or fall. The last part of the key has the values that
    `search` finds in a text, if there is one.
    """

    parts: tuple[int, ...]
    keys: int
    order: int | None = None
    rises: bool = True
    search: TextSearch | None = None


class TemplateTriple(NamedTuple):
    """Represents a triple that a CONSTRUCT derives: terms where they are positive, else columns of the row, with the
    sign turned.
    """

    subject: int
    predicate: int
    object: int
    stream: int


@dataclass(frozen=True, slots=True)
class LastingSide:
    """Says how long timeless solutions of an optional join stand: as long as the solution that was decided on does.

    `decided` is the side at which that came, and `columns` are its columns.
    """

    decided: tuple[int, int]
    columns: frozenset[int]


class PairNodes(NamedTuple):
    """Names the nodes of an EQUALSOPTIONAL that asks for pairs with nothing between them, for each of its two plans.

    As it is written, `joined` makes the pairs and `between` joins their left solutions with what is between.
    Otherwise `nearest` does both.
    """

    joined: int
    between: int
    nearest: int
    last: int  # of the nodes from `nearest` on


@dataclass(slots=True)
class Fragment:
    """Holds the nodes of one query, numbered from 0: `place` moves them behind those that a program has.

    `strict` holds (node, side) of edges that look strictly back in time, which recursion through a negative part
    needs. `forgetful` holds nodes that may decide on timeless solutions by less than all that ever came.
    """

    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    moves: list[tuple[int, int]] = field(default_factory=list)
    collectors: dict[int, Collector] = field(default_factory=dict)  # by node
    code: list[tuple[int, int]] = field(default_factory=list)
    consts: list[tuple[float, float]] = field(default_factory=list)
    asks: list[RowRange] = field(default_factory=list)  # the slots of each question's arguments
    templates: list[TemplateTriple] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    lookups: dict[int, Lookup | None] = field(default_factory=dict)  # by join or FIND
    instances: dict[int, InstanceLookup] = field(default_factory=dict)  # by node
    paths: list[PathJoin] = field(default_factory=list)
    deciding: dict[tuple[int, int], bool] = field(default_factory=dict)  # sides at which solutions are decided on, and whether timeless ones are
    lasting: dict[tuple[int, int], LastingSide] = field(default_factory=dict)  # sides at which what was decided stays
    optionals: dict[int, LastingSide] = field(default_factory=dict)  # optional joins, and where they decide
    projected: list[range] = field(default_factory=list)  # nodes below a DISTINCT, which leaves out columns
    paired: dict[int, LastingSide] = field(default_factory=dict)  # sets behind optional joins that are projected, and where these decide
    sets: dict[int, tuple[int, int]] = field(default_factory=dict)  # nodes behind all others that hand on each timeless solution once, and where to
    inquiries: list[Inquiry] = field(default_factory=list)
    columns: dict[Variable, int] = field(default_factory=dict)
    strict: set[tuple[int, int]] = field(default_factory=set)
    forgetful: set[int] = field(default_factory=set)
    timed: list[range] = field(default_factory=list)  # nodes whose solutions only go where a timer of WITHOUT ... FOR looks for what is absent
    rules: list[int] = field(default_factory=list)  # the outputs of the query's own rules
    last: int | None = None  # the collector that may end the whole query
    shape: PlanShape | None = None  # where the text leaves a choice of it
    matched: dict[int, str] = field(default_factory=dict)  # why the aggregates of a node need the matches of a chain
    pairs: PairNodes | None = None  # of the EQUALSOPTIONAL that the choice is about
    segments: dict[Segment, tuple[int, int]] = field(default_factory=dict)  # where the solutions of each part of this chain go
    stages: dict[tuple[int, int], Segment] = field(default_factory=dict)  # which of the query's operands have come to each (node, side)
    reads: dict[tuple[str, str], int] = field(default_factory=dict)  # triples of the background, by pattern and use

    @property
    def out(self) -> int:
        """Return the node that its solutions reach: the first that was made."""
        return 0

    def edges_of(self, node: int) -> list[tuple[int, int]]:
        """Return the (node, side) pairs that a node's solutions go to."""
        first, n = self.nodes[node].edges
        return self.edges[first : first + n]

    def marks_of(self, node: int) -> list[int]:
        """Return the nodes of EXISTS that a node looks into."""
        first, n = self.nodes[node].marks
        return [mark for mark, _ in self.edges[first : first + n]]

    def find_inquiry(self, condition: int) -> Inquiry:
        """Return what a compiled condition asks."""
        return self.inquiries[self.code[condition][0]]

    def find_reader(self, target: tuple[int, int]) -> tuple[int, int]:
        """Return a target, or where it hands solutions on to if it is one of the sets."""
        while target[0] in self.sets:
            target = self.sets[target[0]]
        return target

    def columns_at(self, rows: RowRange) -> list[int]:
        """Return the columns that stand on the list of slots."""
        return self.slots[rows.first : rows.first + rows.n]


class TableOffsets(NamedTuple):
    """Says where a fragment begins in each of a network's TABLES, or where it ends."""

    node: int
    edge: int
    slot: int
    code: int
    const: int
    ask: int
    template: int
    move: int


TABLES = ("nodes", "edges", "slots", "code", "consts", "asks", "templates", "moves")
"""Each query has a range of rows in these tables, which are in order of the fields of `TableOffsets`."""
SLOT_COLUMNS = (c.KEY_AT, c.REST_AT, c.KEY2_AT, c.REST2_AT, c.HIDE_AT, c.LOOK_AT)
CODE_COLUMNS = (c.FILTER, c.CONDITION)


def sizes(fragment: Fragment) -> list[int]:
    """Return how many rows a fragment needs, by table."""
    return [len(getattr(fragment, name)) for name in TABLES]


def end_of(fragment: Fragment, at: TableOffsets) -> TableOffsets:
    """Return where a fragment at its place ends."""
    return TableOffsets(*(first + n for first, n in zip(at, sizes(fragment), strict=True)))


def ranges_of(at: TableOffsets, after: TableOffsets) -> dict[str, tuple[int, int]]:
    """Return the (first, n) rows of each table between two places."""
    return {name: (first, end - first) for name, first, end in zip(TABLES, at, after, strict=True)}


def table(rows: list[Any], width: int, dtype: type = np.int64) -> NDArray[Any]:
    return np.array(rows, dtype).reshape(len(rows), width)


def node_table(fragment: Fragment) -> Ints:
    """Return the nodes as rows of the kernel's table, with nothing in the columns that the network fills in."""
    nodes = np.zeros((len(fragment.nodes), c.NODE_WIDTH), np.int64)
    nodes[:, NODE_COLUMNS] = table([node.cells for node in fragment.nodes], len(NODE_COLUMNS))
    nodes[:, c.LOOK] = c.NONE
    return nodes


def scan_table(fragment: Fragment) -> Ints:
    """Return the scans as rows of the kernel's table `alpha`, with their predicates behind them; whether they are
    plain is yet to be noted.
    """
    scans = np.zeros((len(fragment.scans), c.A_PLAIN + 2), np.int64)
    scans[:, SCAN_COLUMNS] = table([scan.cells for scan in fragment.scans], len(SCAN_COLUMNS))
    return scans


def placed_edges(fragment: Fragment, at: TableOffsets) -> Ints:
    """Return the fragment's edges with their nodes moved."""
    edges = table(fragment.edges, 2)
    edges[:, 0] += at.node
    return edges


def placed_nodes(fragment: Fragment, at: TableOffsets, query: int) -> Ints:
    """Return the fragment's nodes with all their references moved."""
    nodes = node_table(fragment)
    nodes[:, SLOT_COLUMNS] += at.slot
    for column in CODE_COLUMNS:
        nodes[nodes[:, column] >= 0, column] += at.code
    nodes[:, c.EDGE_AT] += at.edge
    nodes[:, c.MARK_AT] += at.edge
    nodes[:, c.MOVE_AT] += at.move
    nodes[:, c.TEMPLATE_AT] += at.template
    nodes[:, c.ASK] += at.ask
    for column in (c.LOOK_VIA, c.GATE):
        nodes[nodes[:, column] >= 0, column] += at.node
    nodes[:, c.QUERY] = query
    return nodes


def place(net: Net, fragment: Fragment, at: TableOffsets, query: int, used: Mapping[str, Ranges]) -> Net:
    """Return the network with the fragment in rows that were free, as query number `query`; scans, timers and facts
    are set apart.
    """
    placed: dict[str, NDArray[Any]] = {"nodes": placed_nodes(fragment, at, query), "edges": placed_edges(fragment, at)}
    if fragment.code or fragment.asks:  # most of thousands of queries have no conditions, and to write no rows takes as long as to write some
        placed |= _placed_conditions(fragment, at)
    if fragment.slots:
        placed["slots"] = np.array(fragment.slots, np.int64)
    if fragment.templates:
        placed["templates"] = table(fragment.templates, c.TEMPLATE_WIDTH)
    if fragment.moves:
        placed["moves"] = table(fragment.moves, c.MOVE_WIDTH)
    net = with_rows(net, {name: used[name].end for name in TABLES} | {"stores": c.SIDES * used["nodes"].end})
    for name, first in zip(TABLES, at, strict=True):
        if name in placed:
            getattr(net, name)[first : first + len(placed[name])] = placed[name]
    stores = net.stores[c.SIDES * at.node : c.SIDES * (at.node + len(fragment.nodes))]
    stores[:] = c.NONE
    stores[:, [c.COUNT, c.TAKEN, c.GIVEN, c.REFUSED]] = 0
    return net


def _placed_conditions(fragment: Fragment, at: TableOffsets) -> dict[str, NDArray[Any]]:
    """Return the code of conditions, its constants, and what it asks the host, with all their references moved."""
    code = table(fragment.code, 2)
    heads = [filter_ for node in fragment.nodes for filter_ in (node.filter, node.condition) if filter_ >= 0]
    code[heads, 0] += at.ask
    code[code_constants(code, heads), 1] += at.const
    asks = table(fragment.asks, c.ASK_WIDTH)
    asks[:, c.ASK_SLOT] += at.slot
    return {"code": code, "consts": table(fragment.consts, 2, np.float64), "asks": asks}


def timers_of(fragment: Fragment, at: TableOffsets) -> Ints:
    """Return the rows of `timers` for a fragment at its place."""
    acting = [number for number, node in enumerate(fragment.nodes) if acts(node)]
    return table([[at.node + node, collector_due(fragment, node), -c.BIG, c.NONE, c.NONE] for node in acting], c.TIMER_WIDTH)


def acts(node: Node) -> bool:
    """Return whether a node may act at instants of its own."""
    is_idle = node.once != 0 and node.life_right == 0  # it is deferred and has no step
    return node.kind == c.WITHOUTFOR or (node.kind == c.COLLECT and not is_idle)


def collector_due(fragment: Fragment, node: int) -> int:
    return fragment.collectors[node].due() if node in fragment.collectors else c.FOREVER


def code_constants(code: Ints, heads: list[int]) -> Ints:
    """Return the rows of `code` that have a constant as argument; heads hold no opcode."""
    is_constant = (code[:, 0] == c.PUSH_CONST) | (code[:, 0] >= c.WITH_CONST)
    is_constant[heads] = False
    return np.flatnonzero(is_constant)

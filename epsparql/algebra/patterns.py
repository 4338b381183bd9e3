"""This module defines patterns: one node per definition of semantics.md section 3, with groups and modifiers (section
7).

Times and durations are integers of microseconds (`Micros`).
"""

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from epsparql.algebra.expressions import Aggregate, Expression
from epsparql.algebra.paths import PropertyPath
from epsparql.terms import Iri, Term, TermOrVariable, TripleTermPattern, Variable

Micros = int


class TriplePattern(Struct, frozen=True):
    subject: TermOrVariable
    predicate: TermOrVariable
    object: TermOrVariable


def variables_in(*terms: TermOrVariable) -> Iterator[Variable]:
    """Yield the variables among the terms, and those in patterns of triple terms, as often as they stand there."""
    for term in terms:
        if isinstance(term, TripleTermPattern):
            yield from variables_in(term.subject, term.predicate, term.object)
        elif isinstance(term, Variable):
            yield term


class Place(Struct, frozen=True):
    """Says where triples are looked for. Only the engine's rewriting of GRAPH, FROM and WINDOW sets it; parse leaves
    it open.

    `graph` is bound to the name of the graph; `among` are the graphs to look at ("" is no graph), None every one;
    `window` names a window.
    """

    graph: Variable | None = None
    among: tuple[str, ...] | None = None
    window: str | None = None


ANYWHERE = Place()


class Bgp(Struct, frozen=True):
    """Matches one occurrence (or background triple) per pattern; no order is implied.

    Without patterns it is the empty group.
    """

    triples: tuple[TriplePattern, ...]
    place: Place = ANYWHERE


class Join(Struct, frozen=True):
    """Joins compatible x and y as `x >< y`: juxtaposed groups, AND.

    A policy acts on AND, where it is not `unrestricted`.
    """

    left: "Pattern"
    right: "Pattern"
    unrestricted: bool = True


class Union(Struct, frozen=True):
    left: "Pattern"
    right: "Pattern"


class Filter(Struct, frozen=True):
    condition: Expression
    pattern: "Pattern"


class Extend(Struct, frozen=True):
    """Represents BIND: `variable` is added where `expression` is no error; the interval stays."""

    pattern: "Pattern"
    variable: Variable
    expression: Expression


class SeqJoin(Struct, frozen=True):
    """Joins a `left` and a `right` solution where the left one ends before the right one starts; `unrestricted`:
    whatever the policy.
    """

    left: "Pattern"
    right: "Pattern"
    unrestricted: bool = False


class EqJoin(Struct, frozen=True):
    """Joins solutions where both intervals are the same."""

    left: "Pattern"
    right: "Pattern"


class Relation(Enum):
    """Names the interval relations after Allen and ETALIS; x is left, y is right."""

    MEETS = "MEETS"
    DURING = "DURING"
    STARTS = "STARTS"
    FINISHES = "FINISHES"
    OVERLAPS = "OVERLAPS"
    PAR = "PAR"


class RelationJoin(Struct, frozen=True):
    """Joins solutions where `relation` holds between the intervals."""

    relation: Relation
    left: "Pattern"
    right: "Pattern"


class LeftJoin(Struct, frozen=True):
    """Represents OPTIONAL: `x >< y` where y counts for x and `condition` holds of the join; and each x with no such y."""

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


class SeqRightJoin(Struct, frozen=True):
    """Represents OPTIONALSEQ: `x >< y` where x counts for y, ends before y starts and `condition` holds; and each
    right y with no such x.
    """

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


class EqLeftJoin(Struct, frozen=True):
    """Represents EQUALSOPTIONAL, which is LeftJoin where the intervals are the same."""

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


class Minus(Struct, frozen=True):
    left: "Pattern"
    right: "Pattern"


class SeqWithout(Struct, frozen=True):
    """Represents `{left} SEQ {right} WITHOUT {absent}`; `within` (µs) is a WITHIN that stood between SEQ and WITHOUT.

    Where it is `unrestricted`, no policy acts on it.
    """

    left: "Pattern"
    right: "Pattern"
    absent: "Pattern"
    within: Micros | None = None
    unrestricted: bool = False


class JoinWithout(Struct, frozen=True):
    """Represents `{left} AND {right} WITHOUT {absent}`, which wants nothing between the operands, whichever of them
    comes first.
    """

    left: "Pattern"
    right: "Pattern"
    absent: "Pattern"
    within: Micros | None = None


class WithoutFor(Struct, frozen=True):
    """Represents `{pattern} WITHOUT {absent} FOR duration`: the mapping on [x.start, x.end + duration]."""

    pattern: "Pattern"
    absent: "Pattern"
    duration: Micros


class Alarm(Struct, frozen=True):
    """Gives each x on [x.start, T] once time has passed T, the instant that the variable `at` holds, if T is later
    than x.end.
    """

    pattern: "Pattern"
    at: Variable


class Instant(Struct, frozen=True):
    """Gives one solution without bindings on [at, at], if the query reads from there or before; time alone brings it."""

    at: Micros


class Within(Struct, frozen=True):
    """Lets solutions with `end - start <= limit` pass; timeless ones pass too."""

    pattern: "Pattern"
    limit: Micros


class Path(Struct, frozen=True):
    """Matches pairs of nodes joined by `path`, as a set; the interval is the least start and the greatest end along
    the path.

    Links, inverses and sequences that stand alone are triple patterns already (SPARQL 1.1, 18.2.2.4), with hidden
    inner nodes.
    """

    subject: TermOrVariable
    path: PropertyPath
    object: TermOrVariable
    place: Place = ANYWHERE


class Values(Struct, frozen=True):
    """Gives timeless solutions, one a row, which is told apart from an equal row; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Term | None, ...], ...]


class Graph(Struct, frozen=True):
    """Matches `pattern` over the triples of one graph, event graph or background graph, whose name is `name`.

    `place` is that of the pattern's triples, once the engine has rewritten it.
    """

    name: Iri | Variable
    pattern: "Pattern"
    place: Place = ANYWHERE


class InWindow(Struct, frozen=True):
    """Represents RSP-QL's WINDOW `name` { `pattern` }, over the content of a named window of the query."""

    name: str
    pattern: "Pattern"


class RangeWindow(Struct, frozen=True):
    """Represents `WINDOW [RANGE length]`, or with a `step` (both µs)."""

    length: Micros
    step: Micros | None = None


class RowsWindow(Struct, frozen=True):
    """Represents `WINDOW [ROWS count]`."""

    count: int


class RunReport(Enum):
    """Says when a run is reported: at each instant at which it gains an element, or once when it is over."""

    EACH = "EACH"
    CLOSED = "CLOSED"


class RunWindow(Struct, frozen=True):
    """Represents `WINDOW [RUN ...]`: an element continues the run of the one before it if all parts that are given
    hold (section 13).

    `condition` is that of WHILE. In it, the variables of `previous` stand for PREV, and those of `aggregates` for
    aggregates over the run with the element. `gap` and `within` are in µs.
    """

    condition: Expression | None = None
    previous: tuple[tuple[Variable, Expression], ...] = ()
    aggregates: tuple[tuple[Variable, Aggregate], ...] = ()
    gap: Micros | None = None
    until: "Pattern | None" = None
    within: Micros | None = None
    report: RunReport = RunReport.EACH


GroupWindow = RangeWindow | RowsWindow | RunWindow


class Group(Struct, frozen=True):
    """Groups solutions of `pattern` by `keys`, a row per report with the keys and the aggregates (semantics.md
    section 7).

    Keys that are expressions are `Extend`s of `pattern`; without keys there is one group. The aggregates' variables
    are hidden ones.
    """

    pattern: "Pattern"
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, Aggregate], ...]
    window: GroupWindow | None = None


class OrderKey(Struct, frozen=True):
    """Represents one comparator of ORDER BY."""

    expression: Expression
    descending: bool = False


class Once(Struct, frozen=True):
    """Represents ONCE PER: of the solutions of one key, only the first is emitted, `within` (µs) or `until` a
    solution of a pattern (section 15).
    """

    keys: tuple[Variable, ...]
    within: Micros | None = None
    until: "Pattern | None" = None


class Modifiers(Struct, frozen=True):
    """Holds ONCE PER, ORDER BY, OFFSET, LIMIT.

    OFFSET and LIMIT count solutions from the start, or per report where `pattern` has a window.
    """

    order: tuple[OrderKey, ...] = ()
    offset: int = 0
    limit: int | None = None
    once: Once | None = None

    @property
    def gathers(self) -> bool:
        """Return whether they decide over all solutions of an instant, as ONCE PER does not."""
        return bool(self.order or self.offset) or self.limit is not None


PLAIN = Modifiers()


class SubSelect(Struct, frozen=True):
    """Represents a SELECT inside a pattern: variables that it does not project are hidden ones of its own."""

    pattern: "Pattern"
    projection: tuple[Variable, ...]
    distinct: bool = False
    modifiers: Modifiers = PLAIN


Pattern = (
    Bgp | Join | Union | Filter | Extend | SeqJoin | EqJoin | RelationJoin | LeftJoin | SeqRightJoin | EqLeftJoin
    | Minus | SeqWithout | JoinWithout | WithoutFor | Alarm | Instant | Within | Path | Values | Graph | InWindow | Group | SubSelect
)  # fmt: skip

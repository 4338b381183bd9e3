"""This module defines patterns: one node per definition of semantics.md section 3, with groups and modifiers (section
7).

Times and durations are integers of microseconds (`Micros`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from epsparql.algebra.expressions import Aggregate, Expression
from epsparql.algebra.paths import PropertyPath
from epsparql.terms import Iri, Term, TermOrVariable, TripleTermPattern, Variable

Micros = int


@dataclass(frozen=True, slots=True)
class TriplePattern:
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


@dataclass(frozen=True, slots=True)
class Place:
    """Says where triples are looked for. Only the engine's rewriting of GRAPH, FROM and WINDOW sets it; parse leaves
    it open.

    `graph` is bound to the name of the graph; `among` are the graphs to look at ("" is no graph), None every one;
    `window` names a window.
    """

    graph: Variable | None = None
    among: tuple[str, ...] | None = None
    window: str | None = None


ANYWHERE = Place()


@dataclass(frozen=True, slots=True)
class Bgp:
    """Matches one occurrence (or background triple) per pattern; no order is implied.

    Without patterns it is the empty group.
    """

    triples: tuple[TriplePattern, ...]
    place: Place = ANYWHERE


@dataclass(frozen=True, slots=True)
class Join:
    """Joins compatible x and y as `x >< y`: juxtaposed groups, AND.

    A policy acts on AND, where it is not `unrestricted`.
    """

    left: "Pattern"
    right: "Pattern"
    unrestricted: bool = True


@dataclass(frozen=True, slots=True)
class Union:
    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expression
    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class Extend:
    """Represents BIND: `variable` is added where `expression` is no error; the interval stays."""

    pattern: "Pattern"
    variable: Variable
    expression: Expression


@dataclass(frozen=True, slots=True)
class SeqJoin:
    """Joins a `left` and a `right` solution where the left one ends before the right one starts; `unrestricted`:
    whatever the policy.
    """

    left: "Pattern"
    right: "Pattern"
    unrestricted: bool = False


@dataclass(frozen=True, slots=True)
class EqJoin:
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


@dataclass(frozen=True, slots=True)
class RelationJoin:
    """Joins solutions where `relation` holds between the intervals."""

    relation: Relation
    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """Represents OPTIONAL: `x >< y` where y counts for x and `condition` holds of the join; and each x with no such y."""

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class SeqRightJoin:
    """Represents OPTIONALSEQ: `x >< y` where x counts for y, ends before y starts and `condition` holds; and each
    right y with no such x.
    """

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class EqLeftJoin:
    """Represents EQUALSOPTIONAL, which is LeftJoin where the intervals are the same."""

    left: "Pattern"
    right: "Pattern"
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Minus:
    left: "Pattern"
    right: "Pattern"


@dataclass(frozen=True, slots=True)
class SeqWithout:
    """Represents `{left} SEQ {right} WITHOUT {absent}`; `within` (µs) is a WITHIN that stood between SEQ and WITHOUT.

    Where it is `unrestricted`, no policy acts on it.
    """

    left: "Pattern"
    right: "Pattern"
    absent: "Pattern"
    within: Micros | None = None
    unrestricted: bool = False


@dataclass(frozen=True, slots=True)
class JoinWithout:
    """Represents `{left} AND {right} WITHOUT {absent}`, which wants nothing between the operands, whichever of them
    comes first.
    """

    left: "Pattern"
    right: "Pattern"
    absent: "Pattern"
    within: Micros | None = None


@dataclass(frozen=True, slots=True)
class WithoutFor:
    """Represents `{pattern} WITHOUT {absent} FOR duration`: the mapping on [x.start, x.end + duration]."""

    pattern: "Pattern"
    absent: "Pattern"
    duration: Micros


@dataclass(frozen=True, slots=True)
class Alarm:
    """Gives each x on [x.start, T] once time has passed T, the instant that the variable `at` holds, if T is later
    than x.end.
    """

    pattern: "Pattern"
    at: Variable


@dataclass(frozen=True, slots=True)
class Instant:
    """Gives one solution without bindings on [at, at], if the query reads from there or before; time alone brings it."""

    at: Micros


@dataclass(frozen=True, slots=True)
class Within:
    """Lets solutions with `end - start <= limit` pass; timeless ones pass too."""

    pattern: "Pattern"
    limit: Micros


@dataclass(frozen=True, slots=True)
class Path:
    """Matches pairs of nodes joined by `path`, as a set; the interval is the least start and the greatest end along
    the path.

    Links, inverses and sequences that stand alone are triple patterns already (SPARQL 1.1, 18.2.2.4), with hidden
    inner nodes.
    """

    subject: TermOrVariable
    path: PropertyPath
    object: TermOrVariable
    place: Place = ANYWHERE


@dataclass(frozen=True, slots=True)
class Values:
    """Gives timeless solutions, one a row, which is told apart from an equal row; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Term | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """Matches `pattern` over the triples of one graph, event graph or background graph, whose name is `name`.

    `place` is that of the pattern's triples, once the engine has rewritten it.
    """

    name: Iri | Variable
    pattern: "Pattern"
    place: Place = ANYWHERE


@dataclass(frozen=True, slots=True)
class InWindow:
    """Represents RSP-QL's WINDOW `name` { `pattern` }, over the content of a named window of the query."""

    name: str
    pattern: "Pattern"


@dataclass(frozen=True, slots=True)
class RangeWindow:
    """Represents `WINDOW [RANGE length]`, or with a `step` (both µs)."""

    length: Micros
    step: Micros | None = None


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """Represents `WINDOW [ROWS count]`."""

    count: int


class RunReport(Enum):
    """Says when a run is reported: at each instant at which it gains an element, or once when it is over."""

    EACH = "EACH"
    CLOSED = "CLOSED"


@dataclass(frozen=True, slots=True)
class RunWindow:
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


@dataclass(frozen=True, slots=True)
class Group:
    """Groups solutions of `pattern` by `keys`, a row per report with the keys and the aggregates (semantics.md
    section 7).

    Keys that are expressions are `Extend`s of `pattern`; without keys there is one group. The aggregates' variables
    are hidden ones.
    """

    pattern: "Pattern"
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, Aggregate], ...]
    window: GroupWindow | None = None


@dataclass(frozen=True, slots=True)
class OrderKey:
    """Represents one comparator of ORDER BY."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Once:
    """Represents ONCE PER: of the solutions of one key, only the first is emitted, `within` (µs) or `until` a
    solution of a pattern (section 15).
    """

    keys: tuple[Variable, ...]
    within: Micros | None = None
    until: "Pattern | None" = None


@dataclass(frozen=True, slots=True)
class Modifiers:
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


@dataclass(frozen=True, slots=True)
class SubSelect:
    """Represents a SELECT inside a pattern: variables that it does not project are hidden ones of its own."""

    pattern: "Pattern"
    projection: tuple[Variable, ...]
    distinct: bool = False
    modifiers: Modifiers = PLAIN


Pattern = (
    Bgp | Join | Union | Filter | Extend | SeqJoin | EqJoin | RelationJoin | LeftJoin | SeqRightJoin | EqLeftJoin
    | Minus | SeqWithout | JoinWithout | WithoutFor | Alarm | Instant | Within | Path | Values | Graph | InWindow | Group | SubSelect
)  # fmt: skip

"""This module defines queries, and what they read."""

from enum import Enum

from msgspec import Struct

from epsparql.algebra.patterns import PLAIN, Micros, Modifiers, Pattern, TriplePattern
from epsparql.terms import Iri, Variable

DEFAULT_STREAM = "default"


class Dataset(Struct, frozen=True):
    """Holds FROM and FROM NAMED: names of graphs, event graphs and background graphs alike."""

    default: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


class NamedWindow(Struct, frozen=True):
    """Represents `FROM NAMED WINDOW <name> ON stream [RANGE length STEP step]` (µs); `name` as resolved, `stream` as
    written.
    """

    name: str
    stream: str
    length: Micros
    step: Micros


class Report(Enum):
    """Says which of a window's solutions are reported: all, the new ones, or those that are no longer there."""

    RSTREAM = "RSTREAM"
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"


class Sources(Struct, frozen=True):
    """Holds FROM and FROM NAMED (None without either), and the named windows, which take the place of streams."""

    dataset: Dataset | None = None
    windows: tuple[NamedWindow, ...] = ()
    report: Report | None = None  # set exactly where there are windows


WHOLE = Sources()


class Select(Struct, frozen=True):
    """Represents a SELECT. `projection` holds the reported variables in their order; expressions of SELECT are
    `Extend`s of `pattern`.

    `streams` are those of the windows where the query has any. Its solutions are events if it is an ETALIS `program`.
    The `rules` of one are silent: what they derive lies on a stream that this query alone reads, with InWindow by its
    name. Those that write the stream `into` write for others. Each instance of a query with `parameters` gives these
    variables a term.
    """

    pattern: Pattern
    projection: tuple[Variable, ...]
    distinct: bool
    streams: tuple[str, ...] = (DEFAULT_STREAM,)
    modifiers: Modifiers = PLAIN
    sources: Sources = WHOLE
    rules: tuple["Construct", ...] = ()
    program: bool = False
    into: str | None = None
    parameters: tuple[Variable, ...] = ()


class Construct(Struct, frozen=True):
    """Represents a rule: each solution adds `template`'s triples, with its interval, to the stream `into`.

    Blank nodes of the template stand as BlankNode terms in it. Solution modifiers are a SubSelect of all variables in
    `pattern`. `label` names a rule of a program that derives events.
    """

    template: tuple[TriplePattern, ...]
    pattern: Pattern
    streams: tuple[str, ...] = (DEFAULT_STREAM,)
    into: str = DEFAULT_STREAM
    sources: Sources = WHOLE
    label: str = ""


class Ask(Struct, frozen=True):
    """Asks whether `pattern` has a solution: true at the first one, false where finished streams end without."""

    pattern: Pattern
    streams: tuple[str, ...] = (DEFAULT_STREAM,)
    sources: Sources = WHOLE


class Describe(Struct, frozen=True):
    """Gives the concise bounded description, over the background, of the `targets` of each solution of `pattern`."""

    targets: tuple[Iri | Variable, ...]
    pattern: Pattern
    streams: tuple[str, ...] = (DEFAULT_STREAM,)
    sources: Sources = WHOLE


class BackgroundRule(Struct, frozen=True):
    """Represents a rule over the background alone: `template`'s triples always hold in its graph `graph` while
    `pattern` matches.

    It reads no stream.
    """

    template: tuple[TriplePattern, ...]
    pattern: Pattern
    graph: str
    streams: tuple[str, ...] = ()
    sources: Sources = WHOLE


StreamQuery = Select | Construct | Ask | Describe
"""A stream query has solutions with intervals."""
Query = StreamQuery | BackgroundRule


def written_stream(query: Query) -> str | None:
    """Return the stream that a query writes, and others may read; None if it writes none."""
    return query.into if isinstance(query, Construct | Select) else None


def writing_rules(query: Query) -> tuple[Construct, ...]:
    """Return the rules by which a query writes that stream: itself, or some of a program's."""
    if isinstance(query, Construct):
        return (query,)
    return tuple(rule for rule in query.rules if rule.into == query.into) if isinstance(query, Select) else ()

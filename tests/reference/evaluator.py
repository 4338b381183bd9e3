"""The naive reference evaluator: semantics.md by brute force over finished streams.

It shares no code with the engine but the algebra and the terms. `verification/definitions/patterns.py` has the
operators, a function for each, written from its definition. Beside it stand paths, groups, order, policies, named
windows, rules and RDFS, a file each; `describe.py` has the descriptions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from epsparql import algebra
from epsparql.algebra import Query
from epsparql.terms import XSD, Iri, Literal, Term, Variable
from epsparql.trees import replace_fields
from tests.reference.describe import description
from verification.definitions.model import Bindings, Fact, Interval, Micros, Occurrence, Solution, Triple, marked, projected
from verification.definitions.patterns import USUAL, Settings
from verification.definitions.queries import Given, Streams, found
from verification.definitions.rdfs import closed, entailed
from verification.definitions.rules import ConstructRow, Rules

EMPTY_STREAM: Micros = 0
"""t0 of a finished stream without occurrences: 1970-01-01T00:00:00Z."""
ASKED = Variable("_:ask")
"""Where ASK's answer stands in its one row."""
SelectRow = tuple[Bindings, Interval]
"""Projected bindings with an interval."""
Rows = Counter[SelectRow] | list[SelectRow] | set[ConstructRow]
"""A multiset for SELECT and ASK, a list where SELECT orders; a set of triples with intervals for CONSTRUCT and
DESCRIBE.
"""


def solutions(
    queries: Mapping[str, Query],
    streams: Mapping[str, Sequence[Occurrence]],
    background: Iterable[Triple | Fact] = (),
    settings: Mapping[str, Settings] | None = None,
    reached: Mapping[str, Micros] | None = None,
) -> dict[str, Rows]:
    """All solutions of each query over the finished streams; `reached` has the time of streams whose latest
    occurrences were taken back.
    """
    facts = closed(fact if isinstance(fact, Fact) else Fact(fact) for fact in background)
    inputs: Streams = {name: entailed(stream, facts) for name, stream in streams.items()}
    prepared = {name: replace_fields(query, pattern=marked(query.pattern)) for name, query in queries.items()}
    horizons = {name: _horizon(query, queries, inputs, reached or {}) for name, query in queries.items()}
    chosen = settings or {}
    rules = Rules(prepared, inputs, facts, horizons, chosen)
    everything = rules.run()
    rows: dict[str, Rows] = dict(rules.constructed)
    for name, query in prepared.items():
        if not isinstance(query, algebra.Construct | algebra.BackgroundRule):
            given = Given(everything, everything, facts, horizons[name], horizons[name], chosen.get(name, USUAL))
            rows[name] = _rows(query, found(query, given), given)
    return rows


def _rows(query: algebra.Select | algebra.Ask | algebra.Describe, found: Sequence[Solution], given: Given) -> Rows:
    match query:
        case algebra.Select():
            listed = [(projected(x, query.projection), _interval(x)) for x in found]
            return listed if query.modifiers.order else Counter(listed)
        case algebra.Ask():
            interval = _interval(found[0]) if found else (given.horizon, given.horizon)
            return Counter([(frozenset({(ASKED, Literal("true" if found else "false", XSD + "boolean"))}), interval)])
        case algebra.Describe():
            known = frozenset(fact.triple for fact in given.facts)
            described = ((description(_targets(query, x), known), _interval(x)) for x in found)
            return {row for row in described if row[0]}


def _targets(query: algebra.Describe, x: Solution) -> list[Term]:
    values = (target if isinstance(target, Iri) else x.lookup(target) for target in query.targets)
    return [term for term in values if term is not None]


def _interval(x: Solution) -> Interval:
    assert x.start is not None
    assert x.end is not None
    return x.start, x.end


def _reached(query: Query, queries: Mapping[str, Query]) -> frozenset[str]:
    """The streams a query reads, through rules too."""
    reached = set(query.streams)
    while True:
        further = {stream for other in queries.values() if isinstance(other, algebra.Construct) and other.into in reached for stream in other.streams}
        if further <= reached:
            return frozenset(reached)
        reached |= further


def _horizon(query: Query, queries: Mapping[str, Query], streams: Streams, reached: Mapping[str, Micros]) -> Micros:
    """The last instant of the input streams that a query reaches: where their watermarks stood when they ended."""
    read = _reached(query, queries)
    ends = [occurrence.end for name in read for occurrence in streams.get(name, frozenset())]
    return max([*ends, *(reached[name] for name in read & reached.keys())], default=EMPTY_STREAM)


__all__ = [
    "ASKED",
    "EMPTY_STREAM",
    "Bindings",
    "ConstructRow",
    "Fact",
    "Interval",
    "Occurrence",
    "Rows",
    "SelectRow",
    "Settings",
    "Solution",
    "Triple",
    "solutions",
]

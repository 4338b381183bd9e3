"""The engine and the reference evaluator behind one interface, so that a test can run either."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

import epsparql
from engine.entries import END_OF_TIME, OCCURRENCES, Block, Entry, Events, Facts, Finish, Register
from engine.run import Engine
from epsparql import algebra
from epsparql.terms import Variable
from tests import oracle
from tests.feeds import Body
from tests.oracle import ConstructRow, Occurrence, SelectRow, Triple
from tests.oracle_terms import parse_statement, parse_term

Rows = Counter[SelectRow] | set[ConstructRow]
Results = dict[str, Rows]
Emitted = tuple[str, int, int, int, tuple[str | None, ...]]
"""One solution as emitted: query, entry, start, end, values."""


def in_order(streams: Mapping[str, Sequence[Occurrence]]) -> list[Body]:
    """One body per instant and stream, in order of time."""
    instants = sorted({occurrence.end for stream in streams.values() for occurrence in stream})
    bodies = [Body(name, tuple(o for o in stream if o.end == instant)) for instant in instants for name, stream in streams.items()]
    return [body for body in bodies if body.occurrences]


def entries(
    queries: Mapping[str, str], streams: Iterable[str], bodies: Sequence[Body], background: Sequence[Triple], max_delay: int = 0
) -> list[tuple[Entry, tuple[Occurrence, ...]]]:
    """The log of a whole run: facts, registrations, bodies with their watermarks, the finish of `streams` and of those that nothing feeds."""
    facts = "".join(f"{s} {p} {o} .\n" for s, p, o in background)
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [(Facts(0, "", facts), ())]
    log += [(Register(1 + number, name, text), ()) for number, (name, text) in enumerate(queries.items())]
    latest: dict[str, int] = {}
    for body in bodies:
        latest[body.stream] = max(latest.get(body.stream, -END_OF_TIME), *(o.end for o in body.occurrences))
        log.append((Events(len(log), body.stream, len(body.occurrences), latest[body.stream] - max_delay), body.occurrences))
    parsed = [epsparql.parse(text).query for text in queries.values()]
    derived = {query.into for query in parsed if isinstance(query, algebra.Construct)}
    read = {name for query in parsed for name in query.streams}
    for name in sorted((read - derived) | set(streams)):
        log.append((Finish(len(log), name), ()))
    return log


def block(part: Iterable[tuple[Entry, tuple[Occurrence, ...]]]) -> Block:
    log = list(part)
    rows = [
        {"s": str(o.triple[0]), "p": str(o.triple[1]), "o": str(o.triple[2]), "g": None, "start": o.start, "end": o.end, "late": False}
        for _, occurrences in log
        for o in occurrences
    ]
    return Block(tuple(entry for entry, _ in log), pa.RecordBatch.from_pylist(rows, schema=OCCURRENCES))


def blocks(log: Sequence[tuple[Entry, tuple[Occurrence, ...]]], cuts: Iterable[int]) -> list[Block]:
    """The log cut before each of the positions `cuts`."""
    edges = sorted({0, len(log), *(cut for cut in cuts if 0 < cut < len(log))})
    return [block(log[low:high]) for low, high in pairwise(edges)]


@dataclass(frozen=True, slots=True)
class Run:
    """What an engine gave: its solutions in order, and the queries that it refused to register."""

    emitted: list[Emitted]
    refused: frozenset[str]


def run(log: Sequence[Block], *, restore_before: Iterable[int] = ()) -> Run:
    """An engine over the blocks; it is saved and restored before the blocks of these numbers."""
    engine, found, restores = Engine(), [], set(restore_before)
    refused: set[str] = set()
    for number, part in enumerate(log):
        if number in restores:
            engine = Engine.restore(engine.snapshot())
        outcome = engine.feed(part)
        for change in outcome.changes:
            assert (change.state, change.entry) == ("failed", change.registered), change
            refused.add(change.name)
        assert engine.position == part.after
        found += _emitted(outcome.solutions)
    return Run(found, frozenset(refused))


def _emitted(solutions: pa.RecordBatch) -> list[Emitted]:
    rows = solutions.set_column(3, "start", solutions["start"].cast(pa.int64())).set_column(4, "end", solutions["end"].cast(pa.int64()))
    return [(row["query"], row["entry"], row["start"], row["end"], tuple(row["values"])) for row in rows.to_pylist()]


def results(queries: Mapping[str, str], found: Iterable[Emitted]) -> Results:
    """Emitted solutions as the reference evaluator gives them."""
    parsed = {name: epsparql.parse(text).query for name, text in queries.items()}
    gathered: Results = {name: Counter() if isinstance(query, algebra.Select) else set() for name, query in parsed.items()}
    for name, _, start, end, values in found:
        query, rows = parsed[name], gathered[name]
        if isinstance(query, algebra.Select) and isinstance(rows, Counter):
            rows[_bindings(query.projection, values), (start, end)] += 1
        elif isinstance(rows, set):
            # a rule's solutions are told apart by the bindings that its triples show, so a symmetric template may give a set of triples twice
            rows.add((frozenset(parse_statement(value) for value in values if value is not None), (start, end)))
    return gathered


def _bindings(projection: Sequence[Variable], values: Sequence[str | None]) -> oracle.Bindings:
    return frozenset((variable, parse_term(value)) for variable, value in zip(projection, values, strict=True) if value is not None)


def run_engine(queries: Mapping[str, str], streams: Mapping[str, Sequence[Occurrence]], background: Sequence[Triple] = ()) -> Results:
    """The engine's solutions over finished streams that arrive in order, as one block; without the queries that it refuses."""
    ran = run([block(entries(queries, streams, in_order(streams), background))])
    return results(without(queries, ran.refused), ran.emitted)


def run_oracle(queries: Mapping[str, str], streams: Mapping[str, Sequence[Occurrence]], background: Sequence[Triple] = ()) -> Results:
    parsed = {name: epsparql.parse(text).query for name, text in queries.items()}
    return oracle.solutions(parsed, streams, background)


def without(queries: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    left_out = set(names)
    return {name: text for name, text in queries.items() if name not in left_out}

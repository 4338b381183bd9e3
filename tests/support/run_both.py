"""The engine and the reference evaluator behind one interface, so that a test can run either."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import pyarrow as pa

import epsparql
from engine.dictionary.term_dictionary import SPARE
from engine.engine import Engine
from engine.messages import END_OF_TIME, OCCURRENCES, Block, Entry, Events, Facts, Finish, Register
from epsparql import algebra
from epsparql.terms import Iri, Variable
from tests.reference import evaluator
from tests.reference.evaluator import ASKED, Fact, Occurrence, Rows, Settings, Triple
from tests.support.feeds import Body
from tests.support.ntriples import parse_statement, parse_term

Results = dict[str, Rows]
Background = Sequence[Triple | Fact]
Runner = Callable[..., Results]
Emitted = tuple[str, int, int, int, tuple[str | None, ...]]
"""One solution as emitted: query, entry, start, end, values."""


def in_order(streams: Mapping[str, Sequence[Occurrence]]) -> list[Body]:
    """One body per instant and stream, in order of time."""
    instants = sorted({occurrence.end for stream in streams.values() for occurrence in stream})
    bodies = [Body(name, tuple(o for o in stream if o.end == instant)) for instant in instants for name, stream in streams.items()]
    return [body for body in bodies if body.occurrences]


def entries(
    queries: Mapping[str, str],
    streams: Iterable[str],
    bodies: Sequence[Body],
    background: Background,
    max_delay: int = 0,
    settings: Mapping[str, Settings] | None = None,
    *,
    instants: bool = False,
) -> list[tuple[Entry, tuple[Occurrence, ...]]]:
    """The log of a whole run: facts, registrations, bodies with their watermarks, the finish of all streams.

    `instants` says that no event lasts.
    """
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [(Facts(number, graph, text), ()) for number, (graph, text) in enumerate(_facts(background))]
    for name, text in queries.items():
        chosen = (settings or {}).get(name, Settings())
        log.append((Register(len(log), name, text, chosen.policy, chosen.default_graph, instants=instants), ()))
    latest: dict[str, int] = {}
    for body in bodies:
        latest[body.stream] = max(latest.get(body.stream, -END_OF_TIME), *(o.end for o in body.occurrences))
        log.append((Events(len(log), body.stream, len(body.occurrences), latest[body.stream] - max_delay), body.occurrences))
    read = {name for text in queries.values() for name in epsparql.parse(text).query.streams}
    for name in sorted(read | set(streams)):  # derived ones too: their rules may be refused, and then nothing feeds them
        log.append((Finish(len(log), name), ()))
    return log


def _facts(background: Background) -> list[tuple[str, str]]:
    """Each graph's name ("" for none) with its triples as N-Triples; the one for none is always there."""
    graphs: dict[str, str] = {"": ""}
    for fact in background:
        stated = fact if isinstance(fact, Fact) else Fact(fact)
        name = stated.graph.value if isinstance(stated.graph, Iri) else ""
        graphs[name] = graphs.get(name, "") + "{} {} {} .\n".format(*stated.triple)
    return list(graphs.items())


def block(part: Iterable[tuple[Entry, tuple[Occurrence, ...]]]) -> Block:
    log = list(part)
    rows = [
        {
            "s": str(o.triple[0]),
            "p": str(o.triple[1]),
            "o": str(o.triple[2]),
            "g": None if o.graph is None else str(o.graph),
            "start": o.start,
            "end": o.end,
            "late": False,
        }
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
    """Holds what an engine gave: its solutions in order, the queries that it refused to register, and those that it
    completed with their entries.
    """

    emitted: list[Emitted]
    refused: frozenset[str]
    completed: frozenset[tuple[str, int]] = frozenset()


def run(log: Sequence[Block], *, restore_before: Iterable[int] = (), spare_terms: int = SPARE, unplanned: Iterable[str] = ()) -> Run:
    """An engine over the blocks; it is saved and restored before the blocks of these numbers.

    `spare_terms` is its term table's `spare`. It plans without the choices `unplanned`.
    """
    engine, found, restores = Engine(past=partial(past_of, log)), [], set(restore_before)
    engine.registry.without |= frozenset(unplanned)
    refused: set[str] = set()
    completed: set[tuple[str, int]] = set()
    for number, part in enumerate(log):
        if number in restores:
            engine = Engine.restore(engine.snapshot())
            engine.look_back_by(partial(past_of, log))
        engine.registry.terms.spare = spare_terms
        outcome = engine.feed(part)
        for change in outcome.changes:
            if change.state == "completed":
                completed.add((change.name, change.entry))
            else:
                assert (change.state, change.entry) == ("failed", change.registered), change
                refused.add(change.name)
        assert engine.position == part.after
        found += _emitted(outcome.solutions)
    return Run(found, frozenset(refused), frozenset(completed))


def past_of(log: Sequence[Block], first: int, after: int) -> Iterator[Block]:
    """The entries [first, after) of a log, one by one."""
    for part in log:
        row = 0
        for entry in part.entries:
            count = entry.rows if isinstance(entry, Events) else 0
            if first <= entry.offset < after:
                yield Block((entry,), part.rows.slice(row, count))
            row += count


def _emitted(solutions: pa.RecordBatch) -> list[Emitted]:
    rows = solutions.set_column(3, "start", solutions["start"].cast(pa.int64())).set_column(4, "end", solutions["end"].cast(pa.int64()))
    return [(row["query"], row["entry"], row["start"], row["end"], tuple(row["values"])) for row in rows.to_pylist()]


def results(queries: Mapping[str, str], found: Iterable[Emitted]) -> Results:
    """Emitted solutions as the reference evaluator gives them."""
    parsed = {name: epsparql.parse(text).query for name, text in queries.items()}
    emitted: dict[str, list[Emitted]] = {name: [] for name in parsed}
    for solution in found:
        emitted[solution[0]].append(solution)
    return {name: _rows(query, emitted[name]) for name, query in parsed.items()}


def _rows(query: algebra.Query, emitted: Sequence[Emitted]) -> Rows:
    match query:
        case algebra.Select():
            rows = [(_bindings(query.projection, values), (start, end)) for _, _, start, end, values in emitted]
            return rows if query.modifiers.order else Counter(rows)
        case algebra.Ask():
            return Counter((_bindings((ASKED,), values), (start, end)) for _, _, start, end, values in emitted)
        case algebra.Construct() | algebra.Describe():
            # a rule's solutions are told apart by the bindings that its triples show, so a symmetric template may give a set of triples twice
            return {
                (frozenset(parse_statement(value) for value in values if value is not None), (start, end)) for _, _, start, end, values in emitted
            }
        case algebra.BackgroundRule():
            raise AssertionError("a static rule has no solutions")


def _bindings(projection: Sequence[Variable], values: Sequence[str | None]) -> evaluator.Bindings:
    return frozenset((variable, parse_term(value)) for variable, value in zip(projection, values, strict=True) if value is not None)


def run_engine(
    queries: Mapping[str, str],
    streams: Mapping[str, Sequence[Occurrence]],
    background: Background = (),
    settings: Mapping[str, Settings] | None = None,
) -> Results:
    """The engine's solutions over finished streams that arrive in order, as one block; without the queries that it
    refuses.
    """
    ran = run([block(entries(queries, streams, in_order(streams), background, settings=settings))])
    return results(without(queries, ran.refused), ran.emitted)


def run_oracle(
    queries: Mapping[str, str],
    streams: Mapping[str, Sequence[Occurrence]],
    background: Background = (),
    settings: Mapping[str, Settings] | None = None,
) -> Results:
    parsed = {name: epsparql.parse(text).query for name, text in queries.items()}
    return evaluator.solutions(parsed, streams, background, settings)


def without(queries: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    left_out = set(names)
    return {name: text for name, text in queries.items() if name not in left_out}

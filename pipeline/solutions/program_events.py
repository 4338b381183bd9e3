"""This module finds the events of ETALIS programs that other explanations rest on: those of a program's own stream,
and those that it wrote.
"""

from collections.abc import Iterator, Sequence
from itertools import count, groupby

import pyarrow as pa

from engine.background.fact_store import FactIndex
from engine.background.reasoning.rdfs_schema import Triple
from engine.engine import Engine
from engine.expressions.literals import parse_term
from engine.messages import OCCURRENCES, Block, Entry, Events, Finish, Micros, Register
from engine.provenance import Occurrence
from engine.runtime.query_registry import Registry
from epsparql import algebra as a
from epsparql.etalis.events import EVENT, SENT
from epsparql.etalis.parser.vocabulary import OWN, event_node, name_of
from epsparql.terms import Iri, Term, TermOrVariable, Variable
from epsparql.trees import replace_fields
from pipeline.errors import NotFoundAgain
from pipeline.solutions.solution_log import StoredSolution


def derive_own(program: a.Select, policy: str, seen: Sequence[Occurrence], known: FactIndex, until: Micros) -> list[Occurrence]:
    """Return the triples on a program's own stream that end by an instant: its rules run again over what it saw.

    Raises: NotFoundAgain.
    """
    own = tuple(rule for rule in program.rules if rule.into == OWN)
    parts = tuple(Variable(name) for name in "spo")
    asked = replace_fields(program, pattern=a.InWindow(OWN, a.Bgp((a.TriplePattern(*parts),))), projection=parts, rules=own, into=None)
    if not own:
        return []
    engine = Engine(Registry(terms=known.terms))
    engine.registry.known = known
    engine.registry.place_query(Register(-1, "program", "", policy), asked)  # so that it reads from the first entry on
    outcome = engine.feed(_log_of(program.streams, seen))
    if outcome.changes:
        raise NotFoundAgain(f"the program's rules could not run again: {outcome.changes[0].reason}")
    times = (outcome.solutions.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    found = zip(outcome.solutions.column("values").to_pylist(), *times, strict=True)
    return [Occurrence(_read_triple(values), OWN, start, end) for values, start, end in found if end <= until]


def _log_of(streams: Sequence[str], seen: Sequence[Occurrence]) -> Block:
    """Return a log of these occurrences, in order of their ends, after which all streams are finished."""
    offsets, entries, rows = count(), list[Entry](), sorted(seen, key=lambda each: (each.end, each.stream))
    for stream, part in groupby(rows, key=lambda each: each.stream):
        sent = list(part)
        entries.append(Events(next(offsets), stream, len(sent), sent[-1].end))
    entries += [Finish(next(offsets), stream) for stream in streams]
    columns: dict[str, list[object]] = {name: [str(each.triple[k]) for each in rows] for k, name in enumerate("spo")}
    columns["g"] = [None if each.graph is None else str(each.graph) for each in rows]
    columns |= {"start": [each.start for each in rows], "end": [each.end for each in rows], "late": [False] * len(rows)}
    return Block(tuple(entries), pa.RecordBatch.from_pydict(columns, schema=OCCURRENCES))


def _read_triple(values: Sequence[str | None]) -> Triple:
    s, p, o = (parse_term(value or "") for value in values)
    return s, p, o


def list_written(program: a.Select, solution: StoredSolution) -> Iterator[Triple]:
    """Yield the triples by which a program wrote an event that it reports; there are none if no rule derives such
    events.
    """
    values = {v: parse_term(text) for v, text in zip(program.projection, solution.values, strict=True) if text is not None}
    name = values.pop(EVENT)
    assert isinstance(name, Iri)
    node = event_node(name_of(name.value), list(values.values()), solution.start, solution.end)

    def fill(part: TermOrVariable) -> Term:
        return (values | {SENT: node})[part] if isinstance(part, Variable) else part

    for rule in a.writing_rules(program):
        parts = {part for triple in rule.template for part in (triple.subject, triple.object) if isinstance(part, Variable)} - {SENT}
        if parts == values.keys() and name in (rule.template[0].predicate, rule.template[0].object):
            yield from ((fill(triple.subject), fill(triple.predicate), fill(triple.object)) for triple in rule.template)

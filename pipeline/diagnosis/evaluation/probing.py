"""This module evaluates patterns over a sample, all at once, each as a query of its own: the engine itself says what
a step lets through.

Streams count as finished, and no event is late. So what is found does not depend on watermarks.
"""

import time
from collections.abc import Sequence
from dataclasses import field

import pyarrow as pa

from engine.engine import Engine
from engine.errors import Refusal
from engine.expressions.evaluator import parse_term
from engine.messages import NO_ROWS, RDFS, Block, Entail, Entry, Facts, Finish, Micros, Outcome, Register, Tick, int64s
from engine.network.stratification import Cycle
from engine.pattern_scope import find_scope, sort_by_name
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import Term, Variable
from pipeline.diagnosis.evaluation.sample import Sample, list_entries

MOST_SOLUTIONS, MOST_GOALS = 2_000, 500_000
"""A probe ends once it has found so many solutions, or keeps so many partial matches."""
_TEXT = "ASK {}"  # the engine is given the algebra of a probe; its text is read where it failed, and writes nothing


@dataclass(frozen=True, slots=True)
class Setting:
    """Describes what a query rests on beside its events: background (graphs with N-Triples), entailment, rules that
    write its streams, and its options.
    """

    facts: Sequence[tuple[str, str]] = ()
    regime: str = RDFS
    rules: Sequence[Register] = ()
    default_graph: str = "all"
    policy: str = UNRESTRICTED


@dataclass(frozen=True, slots=True)
class Row:
    """Represents a solution; a timeless one stands at the instant at which it was found."""

    binding: dict[Variable, Term]
    start: Micros
    end: Micros


@dataclass(slots=True)
class Found:
    """Holds what a probe found, in order of its ends. `more` if it was ended before the sample was.

    A probe that `is_linear` has at most one solution for each event, and is never ended.
    """

    variables: tuple[Variable, ...]
    is_linear: bool = False
    batches: list[pa.RecordBatch] = field(default_factory=list)
    count: int = 0
    more: bool = False

    def list_rows(self) -> list[Row]:
        rows = []
        for batch in self.batches:
            starts, ends = int64s(batch.column("start")).tolist(), int64s(batch.column("end")).tolist()
            for start, end, values in zip(starts, ends, batch.column("values").to_pylist(), strict=True):
                binding = {v: parse_term(text) for v, text in zip(self.variables, values, strict=True) if text is not None}
                rows.append(Row(binding, start, end))
        return rows


class Prober:
    """Runs probes of one query over its sample, until a deadline (of `time.thread_time`)."""

    def __init__(self, query: a.StreamQuery, setting: Setting, sample: Sample, deadline: float) -> None:
        self.query, self.setting, self.sample, self.deadline = query, setting, sample, deadline
        self.first = 0
        """Probes read the sample from this row on."""

    @property
    def is_over(self) -> bool:
        return time.thread_time() > self.deadline

    def run_probes(self, patterns: Sequence[a.Pattern], policy: str = UNRESTRICTED) -> list[Found] | None:
        """Return what each pattern finds; None if there was no time to read the sample to its end."""
        engine, found = self._place_probes(patterns, policy)
        for streams, rows, counts in self.sample.read_blocks(self.first):
            if self.is_over:
                return None
            entries = list_entries(engine.position, streams, counts)
            _collect(found, engine.feed(Block(entries, rows)), len(patterns))
            self._drop_full(engine, found)
        names = {*self.query.streams, *self.sample.names}
        finished: tuple[Entry, ...] = tuple(Finish(engine.position + k, name) for k, name in enumerate(sorted(names)))
        if finished:
            _collect(found, engine.feed(Block(finished, NO_ROWS)), len(patterns))
        return found

    def _drop_full(self, engine: Engine, found: Sequence[Found]) -> None:
        """Drop probes that have found enough: all pairs of many events are too many.

        A LIMIT would cost more, at each instant.
        """
        for k, each in enumerate(found):
            if each.count >= MOST_SOLUTIONS and not each.is_linear and k in engine.registry.registered:
                engine.registry.drop_query(k)
                each.more = True

    def _place_probes(self, patterns: Sequence[a.Pattern], policy: str) -> tuple[Engine, list[Found]]:
        """Return an engine with the background, the rules and the probes, whose registrations are the first entries."""
        engine, setting, found = Engine(), self.setting, list[Found]()
        entries: list[Entry] = [Tick(k, None, None) for k in range(len(patterns))]
        if setting.regime != RDFS:
            entries.append(Entail(len(entries), setting.regime))
        for graph, triples in setting.facts or [("", "")]:
            entries.append(Facts(len(entries), graph, triples))
        for rule in setting.rules:
            entries.append(Register(len(entries), rule.name, rule.text, rule.policy, rule.default_graph))
        engine.feed(Block(tuple(entries), NO_ROWS))
        for k, pattern in enumerate(patterns):
            variables = sort_by_name(find_scope(pattern, lambda *_: True).possible)
            found.append(Found(variables, isinstance(pattern, a.Bgp) and len(pattern.triples) == 1))
            entry = Register(k, f"probe {k}", _TEXT, policy, setting.default_graph, max_goals=MOST_GOALS)
            engine.registry.forget_layout()
            try:
                engine.registry.place_query(entry, self._make_query(pattern, variables))
            except (Refusal, Cycle):
                found[-1].more = True
        return engine, found

    def _make_query(self, pattern: a.Pattern, variables: tuple[Variable, ...]) -> a.Select:
        query = self.query
        rules = query.rules if isinstance(query, a.Select) else ()
        return a.Select(pattern, variables, False, query.streams, a.PLAIN, query.sources, rules)


def _collect(found: Sequence[Found], outcome: Outcome, probes: int) -> None:
    for change in outcome.changes:
        if change.registered < probes:
            found[change.registered].more = True
    solutions = outcome.solutions
    if not solutions.num_rows:
        return
    registered = int64s(solutions.column("registered"))
    for k, each in enumerate(found):
        mask = registered == k
        if mask.any():
            each.count += int(mask.sum())
            if sum(batch.num_rows for batch in each.batches) < MOST_SOLUTIONS:
                each.batches.append(solutions.filter(pa.array(mask)))

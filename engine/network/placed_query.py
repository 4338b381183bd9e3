"""This module plans queries, and describes them at their places in a network."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from engine.aggregation.alarms import InstantCollector
from engine.alpha.alpha_nodes import Want
from engine.alpha.free_rows import by_predicate
from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.nondeterministic import Naming
from engine.instances.relation import InstanceRelation
from engine.kernel.state import layout as c
from engine.network.kernel_arrays import KernelArrays
from engine.physical_plan.common_subplans import Subplan, find_subplans
from engine.physical_plan.join_trees import PlanShape, Segment
from engine.physical_plan.plan import Fragment, Inquiry, Read, TableOffsets, end_of, scan_table
from engine.physical_plan.plan_signature import sign_plan
from engine.planner import NetworkNames, PlanOptions, plan_query
from engine.planner.builder.join_order import EVERYTHING, KNOWN, NO_RATES, OVER, Rates, predicates_of
from engine.planner.builder.scans import FEW
from engine.planner.queries import RANK
from engine.triples.quads import Quad
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import Variable
from epsparql.trees import replace_fields

Ints = NDArray[np.int64]
POLICIES = frozenset({c.RECENT, c.CHRONOLOGICAL})
OPTIONALS = (c.OPTIONAL, c.OPTIONALSEQ, c.EQUALSOPTIONAL)
Solve = Callable[[Mapping[str, Ints], int], Ints]
"""It solves a query over contents of windows at an instant."""
SolverOf = Callable[[TermTable, a.Select, FactIndex, str, Naming], Solve]
"""It makes a solver of a query over a background, under a policy.

The nodes of its solutions are named by that of which the query is a part.
"""
_MOST_PLANS = 1_000
"""So many plans are cached while the background changes; plans of more queries are made again."""


@dataclass(frozen=True, slots=True, eq=False)
class RegisteredQuery:
    """Holds a rewritten query with what it was registered with; `registered` is the offset of its registration."""

    registered: int
    name: str
    query: a.StreamQuery
    reads_after: int  # the offset of the last entry that it does not read
    max_derivations: int = 0
    policy: str = UNRESTRICTED
    node_names: int = 1
    instants: bool = False
    local: frozenset[str] = frozenset()
    instances: InstanceRelation | None = None  # of a query with PARAMETERS

    @property
    def naming(self) -> Naming:
        return Naming(self.name, self.node_names)

    def make_options(self, rates: Rates, shape: PlanShape | None) -> PlanOptions:
        """Return how the query is planned at these rates, in this shape."""
        return PlanOptions(self.naming, self.policy, rates, shape, occurrence=0 if self.instants else c.FOREVER, local=self.local)


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """Describes a query in its network. `number` is its row in `queries`."""

    source: RegisteredQuery
    number: int
    at: TableOffsets
    after: TableOffsets
    columns: dict[Variable, int]
    inquiries: tuple[Inquiry, ...]
    strict: frozenset[tuple[int, int]]
    rules: tuple[int, ...]  # the nodes that the solutions of its own rules reach
    instants: tuple[int, ...]  # those that are patterns (µs)
    scans: tuple[tuple[int, int, Want, int], ...]  # (node, side, what it wants, stream) of each
    graphs: bool  # whether a scan asks in which graph an occurrence came
    last: int | None  # the node of the collector that may end the whole query
    form: str  # the signature of its plan
    emitted: Ints  # the columns of `out` that a SELECT wants, NONE for what is never bound: rank, what it shows by name, and as it shows it
    rates: Rates  # when it was registered, which it is always planned with
    shape: PlanShape | None  # which it keeps, where its text leaves a choice
    segments: Mapping[Segment, tuple[int, int]]  # where the solutions of each part of the chain go
    stages: Mapping[tuple[int, int], Segment]  # which of the query's operands have come to each (node, side)
    subplans: Mapping[int, Subplan]  # subplans that other queries may have too, by root
    reads: tuple[Read, ...]  # what it reads of the background

    @property
    def registered(self) -> int:
        return self.source.registered

    @property
    def shown(self) -> int:
        """Return how many terms a solution of a SELECT has."""
        return len(self.emitted) // 2

    @property
    def name_order(self) -> tuple[int, ...]:
        """Return, in order of their names, which of the variables that a SELECT shows each is; nothing if that is
        their order.
        """
        if not isinstance(self.source.query, a.Select):
            return ()
        shown = self.source.query.projection
        order = tuple(sorted(range(len(shown)), key=lambda k: shown[k].name))
        return order if order != tuple(range(len(shown))) else ()

    @property
    def out(self) -> int:
        """Return the node that the query's solutions reach."""
        return self.at.node

    @property
    def writes(self) -> str | None:
        return a.written_stream(self.source.query)

    @property
    def written(self) -> Mapping[int, a.Construct]:
        """Return the rules by which it writes that stream, by the nodes that their solutions reach."""
        query = self.source.query
        if isinstance(query, a.Construct):
            return {self.out: query}
        return {node: rule for node, rule in self._own_rules() if rule.into == self.writes}

    @property
    def silent(self) -> Mapping[int, a.Construct]:
        """Return its rules that write for itself alone, by the nodes that their solutions reach."""
        return {node: rule for node, rule in self._own_rules() if rule.into != self.writes}

    def _own_rules(self) -> Iterable[tuple[int, a.Construct]]:
        return zip(self.rules, self.source.query.rules, strict=True) if isinstance(self.source.query, a.Select) else ()


@dataclass(slots=True)
class Answers:
    """Holds what a background has told a plan that was made over it: a plan over another one that tells the same is
    the same.
    """

    facts: dict[tuple[a.TriplePattern, a.Place], Ints] = field(default_factory=dict)
    graphs: dict[a.Place, list[int]] = field(default_factory=dict)
    any: dict[a.Place, bool] = field(default_factory=dict)

    def hold_over(self, known: FactIndex) -> bool:
        """Return whether another background tells the same."""
        return (
            all(_is_same(known.matching(*asked), rows) for asked, rows in self.facts.items())
            and all(known.graphs(place) == found for place, found in self.graphs.items())
            and all(known.any(place) == found for place, found in self.any.items())
        )


def _is_same(now: Ints, before: Ints) -> bool:
    return now is before or (len(now) == len(before) and np.array_equal(now, before))


class QueryPlanning:
    """Plans the queries of a network, each over the background on which it rests."""

    def __init__(
        self, arrays: KernelArrays, number_stream: Callable[[str], int], known: FactIndex, owns: Callable[[Quad], bool] | None,
        without: frozenset[str], solver_of: SolverOf,
    ) -> None:  # fmt: skip
        self._arrays, self._number_stream = arrays, number_stream
        self.known = known  # the background as it stands
        self.knows: dict[int, FactIndex] = {}  # the one that each query rests on, by `registered`
        self.answers: dict[int, Answers] = {}  # what that one has told of each query's plan
        self.owns = owns  # says which background triples are not another partition's; None: all
        self.without = without  # those of the planner's CHOICES that are not made
        self.solver_of = solver_of
        self._plans: dict[tuple[RegisteredQuery, PlanShape | None, FactIndex], tuple[Fragment, Answers]] = {}  # for a change of the background
        self._plans_terms = 0  # the generation of the terms that they name

    def make_names(self, facts: FactIndex, options: PlanOptions, answers: Answers | None = None) -> NetworkNames:
        """Return what a plan over a background is made with, without what the network does without.

        What the background tells is noted in `answers`.
        """
        noted = Answers() if answers is None else answers
        solvers: list[tuple[FactIndex, Solve]] = []

        def once(inner: a.Select, contents: Mapping[str, Ints], now: int) -> Ints:
            if not solvers or solvers[-1][0] is not self.known:
                solvers[:] = [(self.known, self.solver_of(self._arrays.terms, inner, self.known, options.policy, options.naming))]
            return solvers[-1][1](contents, now)

        owns, intern = self.owns, self._arrays.terms.intern
        own = None if owns is None else lambda rows: rows[[owns(facts.quad(*row)) for row in rows.tolist()]]

        def matching(pattern: a.TriplePattern, place: a.Place) -> Ints:
            return noted.facts.setdefault((pattern, place), facts.matching(pattern, place))

        def graphs(place: a.Place) -> list[int]:
            return noted.graphs.setdefault(place, facts.graphs(place))

        def is_any(place: a.Place) -> bool:
            return noted.any.setdefault(place, facts.any(place))

        return NetworkNames(intern, self._number_stream, matching, graphs, is_any, replace_fields(options, without=self.without), once, own)

    def plan_anew(self, planned: Planned) -> Fragment:
        """Plan a query as it was planned, over the background on which it rests."""
        return self._plan(planned, self.knows[planned.registered])[0]

    def plan_over(self, planned: Planned, known: FactIndex | None = None) -> tuple[Fragment, Answers]:
        """Return a query's plan over a background, with what that tells of it; None stands for the one on which it
        rests.

        A change of the background asks for one plan several times. So plans are cached until `forget_plans`, and
        nobody may change them.
        """
        facts = self.knows[planned.registered] if known is None else known
        generation = self._arrays.terms.generation
        if self._plans_terms != generation or len(self._plans) >= _MOST_PLANS:
            self._plans, self._plans_terms = {}, generation
        key = planned.source, planned.shape, facts
        if (found := self._plans.get(key)) is None:
            found = self._plans[key] = self._plan(planned, facts)
        return found

    def _plan(self, planned: Planned, facts: FactIndex) -> tuple[Fragment, Answers]:
        source, answers = planned.source, Answers()
        return plan_query(source.query, self.make_names(facts, source.make_options(planned.rates, planned.shape), answers)), answers

    def forget_plans(self) -> None:
        """Forget the plans that a change of the background asked for."""
        self._plans = {}

    def find_changing(self, queries: Iterable[int], known: FactIndex) -> set[int]:
        """Return the queries (by `registered`) whose plan over another background may not be the one that they have."""
        return {registered for registered in queries if not self.answers[registered].hold_over(known)}

    def rest_on(self, registered: int, known: FactIndex, answers: Answers) -> None:
        """Note the background on which a query rests, and what that has told of its plan."""
        self.knows[registered], self.answers[registered] = known, answers

    def forget_query(self, registered: int) -> None:
        self.knows.pop(registered, None)
        self.answers.pop(registered, None)

    def estimate_rates(self, query: a.StreamQuery) -> Rates:
        """Return how often there have been triples of each predicate of a query here.

        If there have been none at all, only predicates of which the background has many are there.
        """
        arrays = self._arrays
        seen = by_predicate(arrays.net)[:, c.ALPHA_SEEN]
        known = {f"{KNOWN}{text}": n for text in sorted(predicates_of(query)) if (n := self.known.count(text)) > FEW}
        if not seen[0]:
            return known
        numbers = {text: arrays.terms.intern(text) for text in sorted(predicates_of(query))}
        known |= {OVER: int(arrays.net.at[c.NOW]) - arrays.began} if arrays.began is not None else {}
        return known | {EVERYTHING: int(seen[0])} | {text: int(seen[number]) for text, number in numbers.items() if number < len(seen)}

    def replace_known(self, known: FactIndex, other: FactIndex) -> None:
        """Replace the background `known` by `other`, which is the same background."""
        self.knows = {registered: other if each is known else each for registered, each in self.knows.items()}
        self.known = other if self.known is known else self.known


def describe_plan(source: RegisteredQuery, number: int, fragment: Fragment, at: TableOffsets, rates: Rates = NO_RATES) -> Planned:
    scans, after = list_scans(fragment), end_of(fragment, at)
    graphs = any(scan.graph != c.NONE or scan.graph_column != c.NONE for scan in fragment.scans)
    questions, strict = tuple(fragment.inquiries), frozenset(fragment.strict)
    last = None if fragment.last is None else at.node + fragment.last
    shown = source.query.projection if isinstance(source.query, a.Select) else ()
    columns = dict(fragment.columns)
    emitted = [columns.get(v, c.NONE) for v in (RANK, *sorted(shown, key=lambda v: v.name), *shown)]
    places = np.array([column if column == c.NONE else column + c.OUT_VAR - c.VAR for column in emitted], np.int64)
    form = sign_plan(fragment)
    rules = tuple(at.node + node for node in fragment.rules)
    instants = tuple(sorted(each.at for each in fragment.collectors.values() if isinstance(each, InstantCollector)))
    return Planned(
        source, number, at, after, columns, questions, strict, rules, instants, scans, graphs, last, form, places,
        rates, fragment.shape, fragment.segments, fragment.stages, find_subplans(fragment), list_reads(fragment),
    )  # fmt: skip


def list_reads(fragment: Fragment) -> tuple[Read, ...]:
    return tuple(Read(pattern, n, use) for (pattern, use), n in fragment.reads.items())


def list_scans(fragment: Fragment) -> tuple[tuple[int, int, Want, int], ...]:
    return tuple((scan.node, scan.side, (scan.predicate, max(scan.object, 0)), scan.stream) for scan in fragment.scans)


def make_scan_rows(fragment: Fragment, at: TableOffsets, query: int) -> Ints:
    """Return the fragment's scans with their nodes moved, whether they are plain, and their predicates as last column."""
    alpha = scan_table(fragment)
    alpha[:, c.A_QUERY], alpha[:, c.A_NODE], alpha[:, c.A_PLAIN] = query, alpha[:, c.A_NODE] + at.node, is_plain(alpha)
    return alpha


def is_plain(alpha: Ints) -> NDArray[np.bool_]:
    """Return which scans are plain: they take any triple of their stream and predicate, and put subject and object,
    alone, into two columns.
    """
    unwanted = [c.A_S, c.A_O, c.A_PVAR, c.A_GRAPH, c.A_GVAR, c.A_MOMENT]
    s, o = alpha[:, c.A_SVAR], alpha[:, c.A_OVAR]
    plain: NDArray[np.bool_] = (alpha[:, unwanted] == c.NONE).all(axis=1) & (s >= 0) & (o >= 0) & (s != o)
    return plain

"""The background changes while queries run: the engine against the reference evaluator, instant by instant."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import epsparql
from engine.engine import Engine
from engine.messages import ADD, DROP, REPLACE, Drop, Entry, Events, Facts, Fail, Finish, Pause, Register
from engine.network import placed_query
from engine.physical_plan.plan import Fragment
from engine.planner import NetworkNames, plan_query
from engine.planner.builder import scans
from engine.query_lifecycle.replay import LOST
from epsparql import algebra
from epsparql.algebra import DEFAULT_STREAM
from epsparql.solutions.policies import CHRONOLOGICAL, RECENT, UNRESTRICTED
from epsparql.terms import RDF, Iri
from epsparql.trees import replace_fields
from tests.engine.runtime.test_partitioning import has_key, shared_out, whole
from tests.reference.evaluator import Fact, Occurrence, Settings
from tests.reference.reasoning import background_changes
from tests.reference.reasoning.background_changes import Version
from tests.soak import examples, is_full
from tests.support import query_strategies
from tests.support.feeds import EXAMPLE, SECOND, Body, parse_facts, parse_feed, show, shown
from tests.support.feeds import term as parse_shorthand
from tests.support.run_both import blocks, in_order, past_of, results, run
from verification.definitions.rdfs import RDFS

pytestmark = pytest.mark.slow

LOOKED_UP_OR_COPIED = (0, 1000) if is_full() else (0,)
"""What `copied` is given where CI proves the one way by other rows: by `test_by_hand` and `test_at_random`."""
RANDOM = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])


@dataclass(frozen=True, slots=True)
class Change:
    """A graph's triples are added, take the place of its own, or go, before the body of this number."""

    before: int
    graph: str
    change: str
    facts: tuple[Fact, ...]

    def applied(self, known: frozenset[Fact]) -> frozenset[Fact]:
        graph = Iri(EXAMPLE + self.graph) if self.graph else None
        kept = known if self.change == ADD else frozenset(fact for fact in known if fact.graph != graph)
        return kept if self.change == DROP else kept | {Fact(fact.triple, graph) for fact in self.facts}


def change(text: str) -> Change:
    """`2 add K(s,k)`, `3 drop`, `1 replace g/K(x,1) g/K(y,1)`."""
    before, kind, *facts = text.split()
    parsed = parse_facts(" ".join(fact for fact in facts if "(" in fact))
    graph = next((fact.split("/")[0] for fact in facts if "/" in fact), "")
    return Change(int(before), graph, kind, tuple(parsed))


def log_of(query: str, bodies: Sequence[Body], changes: Sequence[Change], policy: str = UNRESTRICTED) -> list[tuple[Entry, tuple[Occurrence, ...]]]:
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [(Register(0, "q", query, policy), ())]
    for number in range(len(bodies) + 1):
        for each in (each for each in changes if each.before == number):
            text = "".join("{} {} {} .\n".format(*fact.triple) for fact in each.facts)
            log.append((Facts(len(log), EXAMPLE + each.graph if each.graph else "", text, each.change), ()))
        for body in bodies[number : number + 1]:
            log.append((Events(len(log), body.stream, len(body.occurrences), body.occurrences[0].end), body.occurrences))
    log.append((Finish(len(log), DEFAULT_STREAM), ()))
    return log


def versions(bodies: Sequence[Body], changes: Sequence[Change]) -> list[Version]:
    found: list[Version] = [(-1, frozenset())]
    for number in range(len(bodies) + 1):
        for each in (each for each in changes if each.before == number):
            found.append((bodies[number - 1].occurrences[0].end if number else -1, each.applied(found[-1][1])))
    return found


@contextmanager
def copied(few: int) -> Iterator[None]:
    """So many triples of a pattern are copied to its queries; more are looked up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scans, "FEW", few)
        yield


def agree(
    query: str,
    stream: Sequence[Occurrence],
    changes: Sequence[Change],
    cuts: frozenset[int] = frozenset(),
    policy: str = UNRESTRICTED,
    *,
    may_be_refused: bool = False,
) -> None:
    bodies = in_order({DEFAULT_STREAM: stream})
    log = log_of(query, bodies, changes, policy)
    parsed = epsparql.parse(query).query
    assert isinstance(parsed, algebra.Select)
    expected = background_changes.solutions(parsed, stream, versions(bodies, changes), Settings(policy))
    parts = blocks(log, cuts)
    whole = run(parts)
    if may_be_refused:
        assume(not whole.refused)  # such as the time of an EXISTS that is compared with a variable from outside
    assert not whole.refused
    found = results({"q": query}, whole.emitted)["q"]
    assert shown(found) == shown(expected)
    if cuts:
        assert run(parts, restore_before=range(1, len(parts))) == whole


# ---------------------------------------------------------------- by hand
K, L, A, B, C = "?s :K ?k", "?s :L ?l", "?s :A ?a", "?s :B ?b", "?s :C ?c"
SHORT = "getDURATION() < 'PT2S'^^xsd:duration"
PROJECTED = f"{{ SELECT DISTINCT ?s WHERE {{ {{ {L} }} OPTIONAL {{ {K} }} }} }}"
CASES = [
    pytest.param(f"{A} . {K}", "A(1)@1 A(2)@2 A(3)@3", "1 add K(k)|2 drop", ["2"], id="added and dropped"),
    pytest.param(f"{A} . {K} . {C}", "A@1 C@3", "1 add K(k)", ["1-3"], id="added between two that it stands between"),
    pytest.param(f"{A} . {K} . {C}", "A@1 C@3", "0 add K(k)|1 drop", [], id="dropped before the last one came"),
    pytest.param(f"{A} . {K} . {C}", "A@1 C@3 C(2)@4", "0 add K(k)|2 drop", ["1-3"], id="dropped after it was joined"),
    pytest.param(f"{A} . {K} . {C}", "A@1 D@2 C@3", "0 add K(k)|1 drop|2 add K(k)", ["1-3"], id="dropped and back again"),
    pytest.param(f"{K} . {L} . {C}", "C@1 C(2)@2", "0 add K(k) L(l)|1 replace L(l)", ["1"], id="of two the first goes"),
    pytest.param(f"{A} . {B} . {K} . {C}", "A@1 B@2 C@3", "2 add K(k)", ["1-3"], id="added among four"),
    pytest.param(f"{A} . {B} . {K} . {C}", "A@1 B@2 C@3", "0 add K(k)|2 drop", [], id="dropped among four"),
    pytest.param(f"{K} . {A} . {B} . {C}", "A@1 B@2 C@3 C@4", "0 add K(k)|1 drop|2 add K(k)|3 drop", ["1-3"], id="first of four, and back again"),
    pytest.param(f"{{ {A} . {K} }} SEQ {{ {C} }}", "A@1 C@3", "0 add K(k)|1 drop", ["1-3"], id="a group's solution stands"),
    pytest.param(f"{{ {A} }} AND {{ {K} }}", "A@1 A(2)@2", "1 add K(k)", ["2"], id="a join does not look back"),
    pytest.param(f"{{ {K} . {L} }} SEQ {{ {C} }}", "C@1 C@2", "0 add K(k) L(l)|1 drop", ["1"], id="a timeless join goes"),
    pytest.param(K, "A@1 A@2 A@3", "0 add K(k)|1 drop|2 add K(k)", ["1", "3"], id="brought twice"),
    pytest.param(K, "A@1 A@2", "0 add g/K(k)|1 add h/K(k)", ["1"], id="in another graph too"),
    pytest.param(K, "A@1 A@2", "0 add K(k)|1 replace K(k)", ["1"], id="replaced by itself"),
    pytest.param(f"{{ {K} }} UNION {{ ?s :L ?k }}", "A@1 A@2", "0 add K(k)|1 add L(k)", ["1"], id="found another way too"),
    pytest.param(f"{{ {A} }} MINUS {{ {K} }}", "A@1 A(2)@2", "0 add K(k)|1 drop", ["2"], id="what was missing"),
    pytest.param(f"{{ {A} }} OPTIONAL {{ {K} }}", "A@1 A(2)@2", "0 add K(k)|1 drop", ["1", "2"], id="OPTIONAL"),
    pytest.param(f"{{ {A} }} OPTIONAL {{ {K} }}", "A@1 A(2)@2 A(3)@3", "1 add K(k)|2 add K(l)", ["1", "2", "3", "3"], id="OPTIONAL finds more"),
    pytest.param(f"{{ {A} }} OPTIONAL {{ {K} FILTER(?a > 1) }}", "A@1 A(2)@2", "0 add K(k)", ["1", "2"], id="OPTIONAL with a filter"),
    pytest.param(f"{{ {A} }} EQUALSOPTIONAL {{ {K} }}", "A@1 A(2)@2-3", "0 add K(k) K(l)", ["1", "1", "2-3", "2-3"], id="EQUALSOPTIONAL"),
    pytest.param(f"{{ {K} }} OPTIONALSEQ {{ {A} }}", "A@1 A(2)@2", "1 add K(k)", ["1", "2"], id="OPTIONALSEQ"),
    pytest.param(f"{{ {{ {K} }} OPTIONALSEQ {{ {L} }} }} SEQ {{ {A} }}", "A@1 A(2)@2", "0 add K(k) L(l)|1 drop", ["1"], id="a timeless OPTIONALSEQ"),
    pytest.param(
        f"{{ {{ {L} }} OPTIONAL {{ {K} }} }} SEQ {{ {A} }}", "A@1 A(2)@3", "0 add K(k) L(l)|1 replace L(l)", ["1"], id="what OPTIONAL added goes"
    ),
    pytest.param(
        f"{{ {{ {L} }} OPTIONAL {{ {K} }} }} SEQ {{ {A} }}",
        "A@1 A(2)@3",
        "0 add K(k) K(m) L(l)|1 replace L(l) K(m)",
        ["1", "1", "3"],
        id="of two that OPTIONAL added, one goes",
    ),
    pytest.param(
        f"{{ {{ {L} }} OPTIONAL {{ {K} }} }} SEQ {{ {A} }}",
        "X@1 X@2 A@3",
        "0 add K(k) L(l)|1 replace L(l)|2 add K(k)",
        [],
        id="what OPTIONAL added was decided on once",
    ),
    pytest.param(
        f"{{ {{ {L} }} OPTIONAL {{ {K} }} }} SEQ {{ {A} }}",
        "X@1 X@2 A@3",
        "0 add L(l)|1 add K(k)|2 replace L(l)",
        ["3"],
        id="what came after OPTIONAL had decided",
    ),
    pytest.param(
        f"{{ {{ {L} }} EQUALSOPTIONAL {{ {K} }} }} SEQ {{ {A} }}",
        "A@1 A(2)@3",
        "0 add K(k) L(l)|1 replace L(l)",
        ["1"],
        id="what EQUALSOPTIONAL added goes",
    ),
    pytest.param(
        f"{{ {{ {K} }} OPTIONALSEQ {{ {L} }} }} SEQ {{ {A} }}",
        "A@1 A(2)@3",
        "0 add K(k) L(l)|1 replace L(l)",
        ["1"],
        id="what OPTIONALSEQ added goes",
    ),
    pytest.param(
        f"{PROJECTED} SEQ {{ {A} }}", "A@1 A(2)@3", "0 add K(k) L(l)|1 replace L(l) K(m)", ["1"], id="a pair that came late brings no projection"
    ),
    pytest.param(
        f"{PROJECTED} SEQ {{ {A} }}", "A@1 A(2)@3", "0 add K(k) L(l) K(m)|1 replace L(l) K(m)", ["1", "3"], id="of two pairs of a projection one goes"
    ),
    pytest.param(f"{PROJECTED} SEQ {{ {A} }}", "A@1 A(2)@3", "0 add K(k) L(l)|1 replace L(n) K(m)", ["1", "3"], id="a projection has a new reason"),
    pytest.param(
        f"{PROJECTED} SEQ {{ {A} }}", "X@1 X@2 A@3", "0 add L(l)|1 add K(k)|2 replace L(l)", ["3"], id="a projection of what was decided alone"
    ),
    pytest.param(f"{PROJECTED} SEQ {{ {A} }}", "X@1 X@2 A@3", "0 add L(l) K(k)|1 replace L(l)|2 add K(k)", [], id="a projection was decided on once"),
    pytest.param(
        f"{PROJECTED} OPTIONAL {{ ?s :K ?m }}",
        "A@1 A(2)@2",
        "0 add K(k) L(l)|1 replace L(n) K(m)",
        ["1"],
        id="a new reason is no new projection",
    ),
    pytest.param(f"{{ {A} FILTER EXISTS {{ {K} }} }}", "A@1 A(2)@2 A(3)@3", "1 add K(k)|2 drop", ["2"], id="EXISTS"),
    pytest.param(f"{{ {A} FILTER NOT EXISTS {{ {K} FILTER(?k > ?a) }} }}", "A(1)@1 A(5)@2", "0 add K(2) K(3)", ["2"], id="NOT EXISTS with a filter"),
    pytest.param(f"{{ {A} FILTER(?a = 3 || EXISTS {{ {K} }}) }}", "A@1 A(2)@2 A(3)@3", "1 add K(k)|2 drop", ["2", "3"], id="EXISTS or"),
    pytest.param(
        "{ ?s :A ?a FILTER(?a = 1 || EXISTS { ?s :L ?l }) } SEQ { ?s :A ?b . ?s :B ?c . ?s :C ?d }",
        "A(1)@1 B(1)@3 C(1)@4",
        "1 add A(1) L(1)",
        ["1-4", "3-4"],
        id="EXISTS or: one that says otherwise is the same solution",
    ),
    pytest.param(
        f"{{ {A} FILTER NOT EXISTS {{ {K} FILTER NOT EXISTS {{ {L} FILTER(?l = ?k && ?l = ?a) }} }} }}",
        "A@1 A(2)@2",
        "0 add K(1) L(1) K(2)|1 drop",
        ["2"],
        id="EXISTS in EXISTS",
    ),
    pytest.param(f"{{ {A} OPTIONAL {{ ?s :L ?k }} OPTIONAL {{ {K} }} }}", "A@1", "0 add K(1) K(2) L(2)", ["1"], id="what is bound already"),
    pytest.param(
        f"{{ {A} OPTIONAL {{ {K} . {L} }} }}",
        "A@1 A(2)@2 A(3)@3",
        "0 add K(1) K(2) L(3)|2 replace K(1)",
        ["1", "1", "2", "2", "3"],
        id="OPTIONAL of a group",
    ),
    pytest.param(
        f"{{ {A} OPTIONAL {{ {K} . {L} }} }}",
        "A@1 K(2)@2 A(3)@3 A(4)@4",
        "0 add K(1) L(3)|3 add L(4)",
        ["1", "2-3", "3", "2-4", "4", "4"],
        id="OPTIONAL of a group, partly of the stream",
    ),
    pytest.param(f"{{ {A} OPTIONAL {{ {L} . {K} }} }}", "A@1 K(2)@2 A(3)@3", "0 add K(1) L(3)", ["1", "3", "2-3"], id="and the other way round"),
    pytest.param(
        f"{{ {A} OPTIONAL {{ {K} . {L} FILTER(?k != ?l) }} }}",
        "A@1 A(2)@2",
        "0 add K(3) L(3)|1 add L(2)",
        ["1", "2"],
        id="OPTIONAL of a group with a filter",
    ),
    pytest.param(
        f"{{ {A} MINUS {{ {K} . {L} . {B} }} }}",
        "A@1 A(2)@2 B@3 A(4)@4 A(5)@5",
        "0 add K(1) L(3)|4 drop",
        ["1", "2"],
        id="MINUS of a group",
    ),
    pytest.param(
        f"{{ {A} FILTER EXISTS {{ {K} . ?k :L ?l . ?l :B ?b }} }}",
        "A@1 A(2)@2 A(3)@3",
        "0 add K(x) K(y) L(y,z) B(x,1)|1 add B(z,1)|2 replace K(y)",
        ["2"],
        id="EXISTS of a chain",
    ),
    pytest.param(
        f"{{ {A} FILTER(?a = 1 || EXISTS {{ {K} . {L} FILTER(?l = ?a) }}) }}",
        "A(1)@1 A(2)@2 A(3)@3",
        "0 add K(k) L(2) L(4)",
        ["1", "2"],
        id="EXISTS of a group or",
    ),
    pytest.param(
        f"{{ {A} FILTER NOT EXISTS {{ {K} . {L} FILTER NOT EXISTS {{ {B} . {C} FILTER(?b = ?k && ?c = ?a) }} }} }}",
        "A(1)@1 A(2)@2 A(3)@3",
        "0 add K(1) L(1) B(1) C(2)|2 drop",
        ["2", "3"],
        id="a group in a group",
    ),
    pytest.param(
        f"{{ {K} . {L} }} OPTIONALSEQ {{ {A} }}",
        "A@1 A(2)@2 K(3)@3 A(4)@4",
        "1 add K(1) L(1)|2 add L(2)",
        ["1", "2", "4", "4", "3-4", "3-4"],
        id="OPTIONALSEQ of a group",
    ),
    pytest.param(
        f"{{ {{ {B} }} OPTIONAL {{ {K} . {L} }} }} SEQ {{ {A} }}",
        "A@1 A(2)@2",
        "0 add B(1) B(2) K(1) L(1)|1 replace B(1) K(1) L(1)",
        ["1", "1", "2"],
        id="a timeless OPTIONAL of a group",
    ),
    pytest.param(
        f"{{ {{ SELECT ?s ?k WHERE {{ {K} }} ORDER BY ?k LIMIT 5 }} {{ {L} }} }} SEQ {{ {A} }}",
        "Z@1 A(2)@2 A(3)@3",
        "0 add K(k) L(l) L(m)|2 replace K(k) L(l)",
        ["2", "2", "3"],
        id="what a sub-SELECT with an order has given stays",
    ),
    pytest.param("{ GRAPH ?g { } } SEQ { ?s :A ?a }", "A@1 A(2)@2", "0 add g/K(1)|0 add h/K(1)|1 drop g/K(1)", ["1", "1", "2"], id="a graph goes"),
    pytest.param(
        "GRAPH ?g { ?s :p ?v }",
        "g/A@1 g/A@5 g/A@6 g/A@7 g/A@8 g/A@9",
        "1 add g/p(b,1)",
        ["5", "6", "7", "8", "9"],
        id="what is timeless in a graph that a stream goes on with",
    ),
    pytest.param(
        "GRAPH :g { ?s :p ?v }",
        "g/A@1 g/A@5 g/A@6 h/A@7 g/A@8 g/A@9",
        "1 add g/p(b,1)|3 drop g/p(b,1)|5 add g/p(b,1)",
        ["5", "6", "9"],
        id="in one graph, until it goes and when it is back",
    ),
    pytest.param(
        "GRAPH :g { ?s :p ?v . ?s :q ?w }",
        "g/A@1 g/A@5 g/A@6 g/A@7",
        "1 add g/p(b,1)|2 add g/q(b,1)",
        ["6", "7"],
        id="two that come one after the other",
    ),
    pytest.param(
        "{ ?s :A ?a } OPTIONAL { GRAPH ?g { ?x :p ?v } }",
        "g/A@1 g/A(2)@5 h/A(3)@6 g/A(4)@7",
        "1 add g/p(b,1)",
        ["1", "5", "6", "5-6", "7", "5-7"],
        id="OPTIONAL of a graph",
    ),
    pytest.param(
        "{ ?s :A ?a FILTER NOT EXISTS { GRAPH :g { ?x :p ?v } } }",
        "g/A@1 g/A(2)@5 h/A(3)@6",
        "1 add g/p(b,1)",
        ["1"],
        id="NOT EXISTS of a graph",
    ),
    pytest.param("?s :road+ ?t", "A@1 A@2", "0 add road(a,b) road(b,c) road(c,a)|1 replace road(a,b)", ["1"] * 9, id="a circle breaks"),
    pytest.param(
        "?s :road+ ?t . ?t :at ?p FILTER(?s = :a && ?t = :c)",
        "at(c,1)@1 at(c,2)@2 at(c,3)@3",
        "0 add road(a,b) road(b,c)|1 replace road(a,b)|2 add road(b,c)",
        ["1", "3"],
        id="a road closed and open again",
    ),
    pytest.param(
        "?x :at ?p . ?x :road+ ?y",
        "at(a,1)@1 at(b,1)@2 at(a,1)@3",
        "0 add road(a,b) road(b,c)|1 add road(c,d)",
        ["1", "1", "2", "2", "3", "3", "3"],
        id="roads from each place",
    ),
    pytest.param(
        "?x :at ?p . ?x :road+ ?y",
        "at(a,1)@1 road(c,e)@2 at(a,1)@3",
        "0 add road(a,b) road(b,c)",
        ["1", "1", "1-2", "2-3", "3", "3"],
        id="and one of the stream",
    ),
    pytest.param("?x :at ?p . ?y :road* ?x", "at(c,1)@1 at(d,1)@4", "0 add road(a,b) road(b,c)", ["1", "1", "1", "4"], id="roads to each place"),
    pytest.param(
        "?x :at ?p . ?x (:road/:lane*) :d",
        "at(b,1)@1 at(c,1)@4",
        "0 add road(b,c) lane(c,d) road(c,f) lane(f,d)|1 drop",
        ["1"],
        id="roads to one place",
    ),
    pytest.param("?x :K ?p . ?x :road+ ?y", "A@1 A@2", "0 add K(a,1) road(a,b)|1 add road(b,c)", ["1", "2"], id="a road from what is known"),
    pytest.param(":a :road+ :d", "road(a,b)@1 road(c,d)@3", "0 add road(b,c)", ["1-3"], id="a road of both"),
    pytest.param(":a :road+ :d", "road(a,b)@1 road(c,d)@3", "0 add road(b,c)|1 drop", [], id="closed meanwhile"),
    pytest.param(":a :road+ :d", "road(a,b)@1 road(c,d)@3", "1 add road(b,c)", ["1-3"], id="opened meanwhile"),
    pytest.param(":a (:road/:road/:road) :d", "road(a,b)@1 road(c,d)@3", "1 add road(b,c)", ["1-3"], id="three steps"),
    pytest.param(":a (:road|(:lane/:lane))+ :d", "road(a,b)@1 lane(c,d)@3", "1 add lane(b,c)", ["1-3"], id="a link beside longer walks"),
    pytest.param(":a (:road|(:lane/:lane))+ :d", "road(a,b)@1 road(c,d)@3", "1 add road(b,c)", ["1-3"], id="a link that is kept apart"),
    *(
        pytest.param(f"{{ {A} }} SEQ {{ {B} }} WITHIN 2 WITHOUT {{ {absent} }}", "C@1 Z@8 B@9 Z@10", "2 add A(1)", [], id=f"expired: {name}")
        for name, absent in [
            ("what WITHOUT looks for", C),
            ("of what is known", f"{C} VALUES ?c {{ :o }}"),
            ("one of two", f"{{ {C} }} UNION {{ {L} }}"),
            ("a count", "{ SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :C ?c } GROUP BY ?s }"),
        ]
    ),
    pytest.param(
        f"{{ {A} }} SEQ {{ {B} }} WITHIN 2 WITHOUT {{ {C} }}",
        "C(t,1)@1 Z@8 B@9 B(t,2)@10",
        "2 add A(1) A(t,1)",
        ["9"],
        id="expired: of one key",
    ),
    pytest.param(
        f"{{ {A} }} SEQ {{ {B} }} WITHIN 2 WITHOUT {{ {C} . {L} }}",
        "C@1 L@6 Z@8 B@9",
        "3 add A(1)",
        [],
        id="expired: what lasts longer than the window",
    ),
    pytest.param(
        f"{{ {A} }} SEQ {{ {B} }} WITHIN 2 WITHOUT {{ {C} }}",
        "C@1 A(2)@7 B@8 B@9 A@10 B@11",
        "3 add A(1)|4 drop",
        ["7-8", "7-9", "10-11"],
        id="expired: the timeless goes again",
    ),
    pytest.param(
        f"{{ {A} }} SEQ {{ {B} }} WITHIN 2 WITHOUT {{ {C} }}", "Z@1 B(2)@2 C@8 B@9", "1 add A(1)", ["2"], id="a timeless one is blocked from then on"
    ),
    *(
        pytest.param(f"{{ {K} }} OPTIONAL {{ {A} FILTER({SHORT}) }}", feed, changes, intervals, id=f"expired: {name}")
        for name, feed, changes, intervals in [
            ("what OPTIONAL looks for", "A@1 Z@8 Z@9", "2 add K(k)", []),
            ("what is too long for OPTIONAL", "A@1-4 A(2)@1-5 Z@8 Z@9", "3 add K(k)", ["9"]),
            ("more for OPTIONAL", "A(t,1)@1 Z@8 Z@9 Z@10", "0 add K(k)|2 add K(t,k)|3 add K(u,k)", ["1", "10"]),
        ]
    ),
    pytest.param(f"{{ {K} }} EQUALSOPTIONAL {{ {A} }}", "A@1-4 A(2)@5 Z@8 Z@9", "3 add K(k) K(u,k)", ["9"], id="expired: EQUALSOPTIONAL"),
    *(
        pytest.param(
            f"{{ {{ {K} }} EQUALSOPTIONAL {{ {{ {A} }} SEQ {{ {B} }} }} }} WITHIN 2", "A@1 Z@8 B@9 Z@10", changes, intervals, id=f"expired: {name}"
        )
        for name, changes, intervals in [
            ("EQUALSOPTIONAL finds nothing yet", "0 add K(k)", ["1"]),
            ("EQUALSOPTIONAL finds what is too long", "2 add K(k)", []),
            ("EQUALSOPTIONAL finds what was too long", "3 add K(k)", []),
            ("EQUALSOPTIONAL finds nothing", "2 add K(u,k)", ["9"]),
        ]
    ),
    pytest.param(f"{{ {A} }} SEQ {{ {{ {B} }} AND {{ {C} }} }}", "B@1 Z@5 C@9", "2 add A(1)", ["1-9"], id="what nothing preceded by then"),
    pytest.param(f"{{ {A} }} SEQ {{ {B} . {C} }}", "B@1 Z@5 C@9 C(2)@10", "1 add A(1)|3 drop", ["1-9"], id="what nothing preceded, and back again"),
    pytest.param(
        f"{{ {A} }} OVERLAPS {{ {{ {C} }} EQUALS {{ {{ {K} }} WITHIN 1 }} }}",
        "A@1-5 B@8 C@3-9",
        "2 add K(k)",
        ["1-9"],
        id="no bound of what may be timeless",
    ),
    pytest.param(f"{{ {A} FILTER({SHORT}) }} OPTIONALSEQ {{ {K} }}", "A@1 Z@8 Z@9", "2 add K(k) K(u,k)", ["9"], id="expired: OPTIONALSEQ"),
]


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize(("pattern", "feed", "changes", "intervals"), CASES)
def test_by_hand(pattern: str, feed: str, changes: str, intervals: list[str], few: int) -> None:
    query = f"{query_strategies.PROLOGUE} SELECT * WHERE {{ {pattern} }}"
    stream, changed = parse_feed(feed), [change(text) for text in changes.split("|")]
    with copied(few):
        agree(query, stream, changed, frozenset(range(1, 20)))
    log = log_of(query, in_order({DEFAULT_STREAM: stream}), changed)
    found = shown(results({"q": query}, run(blocks(log, ())).emitted)["q"])
    assert sorted(row.rsplit("@", 1)[-1] for row in found) == sorted(row.rsplit("@", 1)[-1] for row in intervals)


EXPIRED = [case for case in CASES if str(case.id).startswith("expired")]


@pytest.mark.parametrize("partitions", [2, 4] if is_full() else [2])
@pytest.mark.parametrize(("pattern", "feed", "changes", "_"), EXPIRED)
def test_each_partition_reads_its_share_of_the_log_again(pattern: str, feed: str, changes: str, _: list[str], partitions: int) -> None:
    """A query that a change makes decide by what it has let go goes on in each of several partitions as it does in one."""
    query = f"{query_strategies.PROLOGUE} SELECT * WHERE {{ {pattern} }}"
    assert has_key(query)
    log = blocks(log_of(query, in_order({DEFAULT_STREAM: parse_feed(feed)}), [change(text) for text in changes.split("|")]), range(1, 20))
    found, told, begins = shared_out(log, partitions, frozenset({len(log) - 2}))
    assert (found, told) == whole(log)
    assert not told
    assert set(begins) <= {0, 1}


TWO, OTHERWISE = "?s :A ?u . ?s :K ?v", "OPTIONAL { ?s :p ?t }"
MOVED = [
    pytest.param(f"{{ ?s :p ?t }} OPTIONALSEQ {{ {TWO} }}", "0 add A(u) K(v) K(w)|1 replace A(u) K(v)", id="OPTIONALSEQ, copied"),
    pytest.param(f"{{ ?s :p ?t }} OPTIONALSEQ {{ {TWO} }}", "0 add A(u) K(v)|1 add K(w)", id="OPTIONALSEQ, looked up"),
    pytest.param(f"{{ {TWO} . ?u :L ?x }} {OTHERWISE}", "0 add A(u) K(v) K(w) L(u,x) L(u,y)|1 replace A(u) K(v) L(u,x)", id="both of a group"),
    pytest.param(f"{{ {TWO} }} {OTHERWISE}", "0 add A(u) K(v) K(w)|1 replace A(u) K(x)", id="another one comes"),
    pytest.param(f"{{ {TWO} }} {OTHERWISE}", "0 add A(u) K(v) K(w)|1 replace A(u) K(v)|2 add K(w)", id="there and back"),
    pytest.param(f"{{ {TWO} FILTER(?v != 7) }} {OTHERWISE}", "0 add A(u) K(1) K(7)|1 replace A(u) K(1)", id="a filter, copied"),
    pytest.param(f"{{ {TWO} FILTER(?v != 7) }} {OTHERWISE}", "0 add A(u) K(1)|1 add K(2)", id="a filter, looked up"),
    pytest.param(f"{{ {TWO} }} WITHOUT {{ ?s :p ?t }} FOR 5", "0 add A(u) K(v) K(w)|1 replace A(u) K(v)", id="a timer"),
    pytest.param(f"{{ ?s :p ?t }} OPTIONAL {{ {TWO} }}", "0 add A(u) K(v) K(w)|2 replace A(u) K(v)", id="of an optional group"),
    pytest.param(f"{{ ?s :p ?t }} MINUS {{ {TWO} . ?u :L ?x }}", "0 add A(u) K(v) K(w) L(u,x)|2 replace A(u) K(v) L(u,x)", id="of MINUS"),
]
REACHED = "?s :K ?u . ?u :road+ ?v"
CROSSED = [
    pytest.param(REACHED, "0 add K(u) road(u,v)|1 add road(v,w)", id="a path, looked up"),
    pytest.param(REACHED, "0 add K(u) road(u,v) road(v,w)|1 replace K(u) road(u,v)|2 add road(u,x)", id="a path, copied and looked up again"),
    pytest.param(
        f"{{ {REACHED} }} {OTHERWISE}", "0 add K(u) road(u,v) road(v,w)|1 replace K(u) road(u,v)", id="a path of what OPTIONAL keeps, copied"
    ),
    pytest.param(f"{{ {REACHED} }} {OTHERWISE}", "0 add K(u) road(u,v)|1 add road(v,w)", id="a path of what OPTIONAL keeps, looked up"),
    pytest.param("?s :K ?u . ?v :road+ ?u", "0 add K(w) road(v,w)|1 add road(u,v)", id="a path to its end"),
    pytest.param("?s :K ?u . ?u :road? ?v", "0 add K(v)|1 add road(v,w) road(w,x)", id="a step that may be left out"),
    pytest.param("?s :K ?u . ?u :road* ?v", "0 add K(u) road(u,v)|1 add road(v,w)", id="walks that may be empty"),
    pytest.param("?s :K ?u . ?u (:road|:lane)+ ?v", "0 add K(u) road(u,v)|1 add lane(v,w) lane(w,x)", id="alternatives"),
    pytest.param("?s :K ?u . ?u !:lane ?v", "0 add K(u) road(u,v)|1 add road(u,w)", id="a negated link"),
    pytest.param(f"{REACHED} . ?v :lane+ ?w", "0 add K(u) road(u,v) lane(v,w)|1 add road(v,x) lane(x,y) lane(w,z)", id="two paths"),
    pytest.param(f"GRAPH :g {{ {REACHED} }}", "0 add g/K(u) g/road(u,v)|1 add g/road(v,w)", id="a path in a graph"),
    pytest.param(
        f"{{ {REACHED} }} MINUS {{ ?s :L ?x }}", "0 add K(u) road(u,v) L(x)|1 replace K(u) road(u,v) road(v,w)", id="a path of what MINUS keeps"
    ),
    pytest.param(
        f"{{ ?s :p ?t }} OPTIONAL {{ {REACHED} }}", "0 add K(u) road(u,v)|1 add road(v,w)|2 replace K(u) road(u,v)", id="a path of what is added"
    ),
    pytest.param(
        f"{{ SELECT DISTINCT ?s ?v WHERE {{ {REACHED} }} }} {OTHERWISE}",
        "0 add K(u) road(u,v)|1 add road(v,w) road(w,v)",
        id="a path of a sub-SELECT",
    ),
]
WALKED = [
    pytest.param("road(c,e)@1 Z@2 at(a,1)@3", "0 add road(a,b)|1 add road(b,c)", id="a link of the stream came before it was looked up"),
    pytest.param("road(c,e)@1 Z@2 at(a,1)@3 road(e,f)@4", "0 add road(a,b)|1 add road(b,c)", id="and another link after it"),
    pytest.param("road(c,e)@1 Z@2 at(a,1)@3", "0 add road(a,b) road(b,c)|1 replace road(b,c)|2 add road(a,b)", id="between two that were"),
    pytest.param(
        "road(c,e)@1 at(a,1)@3 at(b,1)@4", "0 add road(a,b) road(b,c)|1 replace road(b,c)", id="a link of the stream came before it was copied"
    ),
]
EITHER = "{ ?s :A ?u } UNION { ?s :K ?u }"
ANOTHER_WAY = [
    pytest.param(f"{{ {EITHER} }} {OTHERWISE}", "0 add A(u)|1 add K(u)", id="OPTIONAL"),
    pytest.param(f"{{ {EITHER} }} EQUALSOPTIONAL {{ ?s :p ?t }}", "0 add A(u)|1 add K(u)", id="EQUALSOPTIONAL"),
    pytest.param(f"{{ ?s :p ?t }} OPTIONALSEQ {{ {EITHER} }}", "0 add A(u)|1 add K(u)|2 replace K(u)", id="OPTIONALSEQ"),
    pytest.param(f"{{ {EITHER} }} MINUS {{ ?s :L ?x }}", "0 add A(u) L(x)|1 replace A(u) K(u)", id="MINUS"),
    pytest.param(f"{{ {EITHER} FILTER NOT EXISTS {{ ?s :L ?x }} }}", "0 add A(u) L(x)|1 replace A(u) K(u)", id="NOT EXISTS"),
    pytest.param(f"{{ {EITHER} FILTER EXISTS {{ ?s :p ?t }} }}", "0 add A(u)|1 add K(u)", id="EXISTS"),
    pytest.param(f"{{ {EITHER} FILTER(?u = :x || NOT EXISTS {{ ?s :L ?x }}) }}", "0 add A(u) L(x)|1 replace A(u) K(u)", id="NOT EXISTS or"),
    pytest.param(f"{{ {EITHER} }} SEQ {{ ?s :p ?t }} WITHOUT {{ ?s :q ?y }}", "0 add A(u)|1 add K(u)", id="SEQ ... WITHOUT"),
    pytest.param(f"{{ {{ {EITHER} }} UNION {{ ?s :L ?u }} }} {OTHERWISE}", "0 add A(u)|1 add L(u)|2 add K(u)", id="a UNION in a UNION"),
    pytest.param(f"{{ {{ {EITHER} }} OPTIONAL {{ ?s :L ?x }} }} {OTHERWISE}", "0 add A(u) L(x)|1 add K(u)", id="OPTIONAL in OPTIONAL"),
    pytest.param(f"{{ SELECT DISTINCT ?s ?u WHERE {{ {EITHER} }} }} {OTHERWISE}", "0 add A(u)|1 add K(u)", id="a sub-SELECT"),
    pytest.param(f"{{ {{ {EITHER} }} {{ ?u :L ?x }} }} {OTHERWISE}", "0 add A(u) L(u,x)|1 add K(u)", id="a join"),
    pytest.param(f"GRAPH :g {{ {{ {EITHER} }} {OTHERWISE} }}", "0 add g/A(u)|1 add g/K(u)", id="in a graph"),
    pytest.param(
        f"{{ {{ GRAPH :g {{ ?s :A ?u }} }} UNION {{ GRAPH :h {{ ?s :A ?u }} }} }} {OTHERWISE}", "0 add g/A(u)|1 add h/A(u)", id="two graphs"
    ),
    pytest.param(f"{{ {EITHER} }} {OTHERWISE}", "0 add A(u)|1 add K(u)|1 replace K(u)", id="the first way goes"),
    pytest.param(f"{{ {EITHER} }} {OTHERWISE}", "0 add A(u)|1 drop|2 add K(u)", id="it went and is back"),
    pytest.param(f"{{ {EITHER} }} {OTHERWISE}", "1 add A(u)|2 add K(u)", id="it comes and then another way"),
]


PART = "{ ?s :A ?u } OPTIONAL { ?s :K ?u }"
NOTHING_NEW = [
    pytest.param("{ { ?s :A ?u } OPTIONAL { ?s :K ?u } } SEQ { ?s :p ?t }", "0 add A(u) K(u)|1 replace A(u)", id="OPTIONAL"),
    pytest.param("{ { ?s :A ?u } OPTIONAL { :s :K 1 } } SEQ { ?s :p ?t }", "0 add A(u) K(1)|1 replace A(u)", id="no variable"),
    pytest.param("{ { ?s :A ?u } OPTIONAL { ?s :K 1 } } SEQ { ?s :p ?t }", "0 add A(u)|1 add K(1)|2 replace A(u)", id="not found first"),
    pytest.param("{ { ?s :A ?u } OPTIONAL { ?s :K 1 } } SEQ { ?s :p ?t }", "0 add A(u) K(1)|1 replace A(u)|2 add K(1)", id="back again"),
    pytest.param("{ { ?s :A ?u } OPTIONAL { ?s :K ?u FILTER(?u = :u) } } SEQ { ?s :p ?t }", "0 add A(u) K(u)|1 replace A(u)", id="a filter"),
    pytest.param("{ { ?s :A ?u } EQUALSOPTIONAL { ?s :K ?u } } SEQ { ?s :p ?t }", "0 add A(u) K(u)|1 replace A(u)", id="EQUALSOPTIONAL"),
    pytest.param(
        "{ { ?s :A ?u } OPTIONAL { { ?s :K ?u } UNION { ?s :L ?u } } } SEQ { ?s :p ?t }",
        "0 add A(u) K(u)|1 replace A(u) L(u)|2 replace A(u)",
        id="a UNION that is optional",
    ),
    pytest.param("{ { { ?s :A ?u } OPTIONAL { ?s :K ?u } } UNION { ?s :K ?u } } SEQ { ?s :p ?t }", "0 add A(u) K(u)", id="one of a UNION's two"),
    pytest.param("{ { ?s :A ?u } OPTIONAL { ?s :K ?u OPTIONAL { ?s :L ?x } } } SEQ { ?s :p ?t }", "0 add A(u) K(u)|1 replace A(u)", id="or a little"),
    pytest.param(
        "GRAPH ?g { { { ?s :A ?u } OPTIONAL { ?s :K ?u } } AND { ?s :L ?x } }", "0 add g/A(u) g/K(u)|1 replace g/A(u) g/L(x)", id="in a graph"
    ),
    pytest.param("{ ?s :p ?t } MINUS { { ?s :A ?u } OPTIONAL { ?s :K ?u } }", "0 add A(u) K(u)|1 replace A(u)", id="in MINUS"),
    pytest.param(
        "{ { ?s :A ?u } OPTIONAL { ?s :K ?u } } SEQ { ?s :p ?t } WITHOUT { ?s :q ?y }", "0 add A(u) K(u)|1 replace A(u)", id="SEQ ... WITHOUT"
    ),
    pytest.param("{ { ?s :K ?u } OPTIONALSEQ { ?s :A ?u } } SEQ { ?s :p ?t }", "0 add A(u) K(u)|1 replace A(u)", id="OPTIONALSEQ"),
    pytest.param(f"{{ {{ {PART} }} UNION {{ ?s :L ?u }} }} SEQ {{ ?s :p ?t }}", "0 add A(u) K(u)|1 replace A(u)", id="in a UNION"),
    pytest.param(f"{{ SELECT DISTINCT ?s WHERE {{ {PART} }} }} SEQ {{ ?s :p ?t }}", "0 add A(u) K(u)|1 replace A(u)", id="DISTINCT"),
    pytest.param(f"{{ ?s :p ?t }} FILTER EXISTS {{ {PART} }}", "0 add A(u) K(u)|1 replace A(u)", id="in EXISTS"),
    pytest.param(f"{{ ?s :p ?t }} FILTER NOT EXISTS {{ {PART} }}", "0 add A(u) K(u)|1 replace A(u)", id="in NOT EXISTS"),
    pytest.param(f"{{ ?s :p ?t FILTER(?t = 7 || EXISTS {{ {PART} }}) }}", "0 add A(u) K(u)|1 replace A(u)", id="in EXISTS or"),
    pytest.param(
        "{ ?s :p ?t } FILTER EXISTS { { ?s :A ?u } OPTIONAL { ?s :K ?v } }", "0 add A(u) K(v)|1 replace A(u)", id="in EXISTS, something new"
    ),
    pytest.param("{ ?s :p ?t } FILTER EXISTS { { ?s :A ?u } OPTIONAL { ?s :q ?v } }", "1 add A(u)|2 replace K(u)", id="in EXISTS, of the stream"),
    pytest.param(
        "{ ?s :p ?t } FILTER EXISTS { { ?s :A ?u } OPTIONAL { ?s :K ?t } }", "0 add A(u) K(1)|1 replace A(u)", id="in EXISTS, for one outer value"
    ),
    pytest.param(
        "{ ?s :p ?t } FILTER NOT EXISTS { { ?s :A ?u } OPTIONAL { ?s :K ?v FILTER(?t > ?v) } }",
        "0 add A(u) K(1)|1 replace A(u)|1 add K(0)",
        id="in NOT EXISTS, by an outer condition",
    ),
    pytest.param(
        "{ ?s :p ?t } FILTER EXISTS { { ?s :A ?u } OPTIONAL { ?s :K ?t } }",
        "0 add A(u) K(1)|1 drop|1 add A(u)|2 drop|2 add A(u)",
        id="in EXISTS, and back",
    ),
    pytest.param("{ ?s :p ?t } FILTER EXISTS { { ?s :A ?u } OPTIONAL { ?x :q ?y FILTER(?t = 2) } }", "1 add A(u)", id="in EXISTS, of what has ended"),
    pytest.param(
        "{ SELECT DISTINCT ?s WHERE { { ?s :A ?u } OPTIONAL { ?s :K ?v } } } SEQ { ?s :p ?t }",
        "0 add A(u) K(v)|1 replace A(u)",
        id="DISTINCT of something new",
    ),
    pytest.param(
        "{ SELECT DISTINCT ?s WHERE { { ?s :K ?u } OPTIONALSEQ { ?s :A ?u } } } SEQ { ?s :p ?t }",
        "0 add A(u) K(u)|1 replace A(u)|2 replace A(u) K(u)",
        id="DISTINCT of OPTIONALSEQ",
    ),
    pytest.param(
        "{ { ?s :A ?u } OPTIONAL { { ?s :K ?v } UNION { ?s :L ?u } } } SEQ { ?s :p ?t }",
        "0 add A(u) K(v) L(u)|1 replace A(u) K(v)",
        id="of two that it found, one goes",
    ),
    pytest.param(
        "{ { { ?s :A ?u } OPTIONAL { ?s :K ?v } } UNION { ?s :L ?u } } SEQ { ?s :p ?t }",
        "0 add A(u) K(v) L(u)|1 replace A(u) K(v)",
        id="another branch's solution goes",
    ),
    pytest.param(
        "{ { { ?s :A ?u } MINUS { ?s :K ?u } } UNION { ?s :L ?u } } SEQ { ?s :p ?t }",
        "0 add A(u) K(u) L(u)|1 replace A(u) K(u)",
        id="beside MINUS",
    ),
    pytest.param(
        "{ { ?s :A ?u FILTER NOT EXISTS { ?s :K ?u } } UNION { ?s :L ?u } } SEQ { ?s :p ?t }",
        "0 add A(u) K(u) L(u)|1 replace A(u) K(u)",
        id="beside NOT EXISTS",
    ),
    pytest.param(
        "{ { ?s :A ?u FILTER EXISTS { ?s :K ?u } } UNION { ?s :L ?u } } SEQ { ?s :p ?t }",
        "0 add A(u) L(u)|1 add K(u)|1 replace A(u)",
        id="beside EXISTS",
    ),
    pytest.param(
        "{ { ?s :A ?u FILTER(?u = 7 || EXISTS { ?s :K ?u }) } UNION { ?s :L ?u } } SEQ { ?s :p ?t }",
        "0 add A(u) L(u)|1 add K(u)|1 replace A(u)",
        id="beside EXISTS or",
    ),
    pytest.param(
        "{ { { ?s :A ?u } OPTIONAL { ?s :K ?v FILTER(?v != 7) } } UNION { ?s :L ?u } } SEQ { ?s :p ?t }",
        "0 add A(u) K(7) K(8)|1 replace A(u) K(7)|2 replace A(u)",
        id="a condition",
    ),
    pytest.param(
        "{ SELECT DISTINCT ?s WHERE { { ?s :A ?u } OPTIONAL { ?s :K ?v FILTER(?v != 7) } } } SEQ { ?s :p ?t }",
        "0 add A(u) K(7) K(8)|1 replace A(u) K(7)",
        id="DISTINCT of a condition",
    ),
    pytest.param(
        f"{{ SELECT DISTINCT ?s WHERE {{ {{ {PART} }} OPTIONAL {{ ?s :L ?u }} }} }} SEQ {{ ?s :p ?t }}",
        "0 add A(u) L(u)|1 add K(u)|2 replace A(u) K(u)",
        id="OPTIONAL in OPTIONAL, the outer one found",
    ),
    pytest.param(
        f"{{ SELECT DISTINCT ?s WHERE {{ {{ {PART} }} OPTIONAL {{ ?s :L ?u }} }} }} SEQ {{ ?s :p ?t }}",
        "0 add A(u) K(u)|1 replace A(u) L(u)",
        id="OPTIONAL in OPTIONAL, the inner one found",
    ),
    pytest.param(
        f"{{ SELECT DISTINCT ?s WHERE {{ {{ {PART} }} OPTIONAL {{ ?s :L ?u }} }} }} SEQ {{ ?s :p ?t }}",
        "0 add A(u)|1 add K(u) L(u)|2 replace A(u)",
        id="OPTIONAL in OPTIONAL, none found",
    ),
    pytest.param(
        f"{{ SELECT ?s (COUNT(*) AS ?n) WHERE {{ {{ {{ {PART} }} UNION {{ ?s :L ?u }} }} SEQ {{ ?s :p ?t }} }} GROUP BY ?s }}",
        "0 add A(u) K(u)|1 replace A(u)",
        id="counted",
    ),
    pytest.param(
        f"GRAPH ?g {{ {{ {{ {PART} }} UNION {{ ?s :L ?u }} }} AND {{ ?s :M ?x }} }}",
        "0 add g/A(u) g/K(u)|1 replace g/A(u) g/M(x)",
        id="in a graph's UNION",
    ),
    pytest.param(f"{{ ?s :p ?t }} MINUS {{ {{ {PART} }} UNION {{ ?s :L ?u }} }}", "0 add A(u) K(u)|1 replace A(u)|2 add L(u)", id="in MINUS's UNION"),
    pytest.param(
        f"{{ ?s :q ?x }} SEQ {{ ?s :p ?t }} WITHOUT {{ {{ {PART} }} UNION {{ ?s :L ?u }} }}", "0 add A(u) K(u)|1 replace A(u)", id="in WITHOUT"
    ),
    pytest.param(
        f"{{ {{ {PART} }} UNION {{ ?s :L ?u }} }} SEQ {{ ?s :p ?t }}",
        "0 add A(u) K(u) L(u)|1 replace A(u) L(u)|2 replace A(u)",
        id="one after another",
    ),
    pytest.param(
        f"{{ {{ {PART} }} UNION {{ ?s :L ?u }} }} SEQ {{ ?s :p ?t }}", "0 add A(u)|1 add K(u)|2 replace K(u)|2 replace A(u)", id="kept and gone"
    ),
]


@pytest.mark.parametrize("few", [0, 1, 1000] if is_full() else [1])
@pytest.mark.parametrize(("pattern", "changes"), MOVED + CROSSED)
def test_what_is_copied_and_was_looked_up_is_not_decided_again(pattern: str, changes: str, few: int) -> None:
    """A change may take a pattern past the number of triples that are copied, either way."""
    with copied(few):
        agree(
            f"{query_strategies.PROLOGUE} SELECT * WHERE {{ {pattern} }}",
            parse_feed("Z@3 p(s,1)@4 p(s,2)@5"),
            [change(text) for text in changes.split("|")],
            frozenset(range(1, 20)),
        )


@pytest.mark.parametrize("few", LOOKED_UP_OR_COPIED)
@pytest.mark.parametrize(("pattern", "changes"), ANOTHER_WAY)
def test_what_stands_and_is_found_another_way_is_not_decided_again(pattern: str, changes: str, few: int) -> None:
    with copied(few):
        agree(
            f"{query_strategies.PROLOGUE} SELECT * WHERE {{ {pattern} }}",
            parse_feed("q(a,b)@3 p(s,1)@4 p(s,2)@5"),
            [change(text) for text in changes.split("|")],
            frozenset(range(1, 20)),
        )


@pytest.mark.parametrize("few", LOOKED_UP_OR_COPIED)
@pytest.mark.parametrize(("pattern", "changes"), NOTHING_NEW)
def test_what_was_found_goes_though_it_bound_nothing_new(pattern: str, changes: str, few: int) -> None:
    with copied(few):
        agree(
            f"{query_strategies.PROLOGUE} SELECT * WHERE {{ {pattern} }}",
            parse_feed("q(a,b)@3 p(s,1)@4 p(s,2)@5"),
            [change(text) for text in changes.split("|")],
            frozenset(range(1, 20)),
        )


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize(("feed", "changes"), WALKED)
def test_walks_of_the_stream_go_on_over_the_background(feed: str, changes: str, few: int) -> None:
    with copied(few):
        agree(
            f"{query_strategies.PROLOGUE} SELECT * WHERE {{ ?x :at ?p . ?x :road+ ?y }}",
            parse_feed(feed),
            [change(text) for text in changes.split("|")],
            frozenset(range(1, 20)),
        )


def test_a_timer_starts_once_for_what_is_found_another_way() -> None:
    parts: list[Entry | str] = [
        registered("q", f"{{ {EITHER} }} WITHOUT {{ ?s :L ?x }} FOR 5"),
        "add A(u)",
        "q(a,b)@3",
        "add K(u)",
        "q(a,b)@4",
        "q(a,b)@20",
    ]
    assert ends_of("q", parts) == ["8"]


def test_what_is_looked_up_is_joined_from_both_sides() -> None:
    with copied(0):
        parts: list[Entry | str] = [registered("q", f"{A} . {K} . {B}"), "add K(k)", "A@1", "B@2", "B(2)@3", "A(2)@4"]
        assert ends_of("q", parts) == ["2", "3", "4", "4"]


def test_what_exists_found_for_one_outer_value_stays_found() -> None:
    query = registered("q", "{ ?s :p ?t } FILTER EXISTS { { ?s :A ?u } OPTIONAL { ?s :K ?t } }")
    assert ends_of("q", [query, "add A(u) K(1)", "q(a,b)@3", "replace A(u)", "p(s,1)@4", "p(s,2)@5", "q(a,b)@6"]) == ["5"]


def test_a_timer_begins_at_the_instant_that_brings_what_it_waits_on() -> None:
    parts: list[Entry | str] = [registered("q", f"{{ {K} }} WITHOUT {{ {B} }} FOR 3"), "A@1", "add K(k)", "A@5", "A@10"]
    assert ends_of("q", parts) == ["8"]


WITHOUT_FOR = [
    pytest.param("?s :K ?k", "A@1 C@20", "1 add K(k)", [], id="a fact that comes before the timer"),
    pytest.param("?s :K ?k", "A@1 C@20", "0 add K(k)|1 drop", ["1-6"], id="one that goes before it"),
    pytest.param("?s :K ?k", "A@1 C@20", "1 add K(k)|1 drop", ["1-6"], id="one that comes and goes between two instants"),
    pytest.param("?s :K ?k", "A@1 C@6 C@20", "2 add K(k)", ["1-6"], id="one that comes with the timer's instant begun"),
    pytest.param("?s :K ?k . ?s :L ?l", "A@1 C@20", "1 add K(k) L(l)", [], id="a group"),
    pytest.param("?s :K ?k . ?s :L ?l", "A@1 L(l)@3 C@20", "1 add K(k)", [], id="a group that ends with an occurrence"),
    pytest.param("?s :K ?k . ?s :L ?l", "A@1 L(l)@3 C@20", "2 add K(k)", ["1-6"], id="a group that would end in the past"),
    pytest.param("?s :K ?k MINUS { ?s :L ?l }", "A@1 C@20", "1 add K(k)", [], id="less nothing"),
    pytest.param("?s :K ?k MINUS { ?s :L ?l }", "A@1 C@20", "1 add K(k) L(l)", ["1-6"], id="less what comes too"),
    pytest.param("?s :road+ ?k", "A@1 C@20", "1 add road(s,x) road(x,y)", [], id="a path"),
]


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize(("absent", "feed", "changes", "intervals"), WITHOUT_FOR)
def test_a_timer_decides_by_the_background_of_its_instant(absent: str, feed: str, changes: str, intervals: list[str], few: int) -> None:
    query = f"{query_strategies.PROLOGUE} SELECT * WHERE {{ {{ {A} }} WITHOUT {{ {absent} }} FOR 5 }}"
    log = log_of(query, in_order({DEFAULT_STREAM: parse_feed(feed)}), [change(text) for text in changes.split("|")])
    with copied(few):
        whole = run(blocks(log, ()))
        assert [row.rsplit("@", 1)[-1] for row in shown(results({"q": query}, whole.emitted)["q"])] == intervals
        parts = blocks(log, range(1, len(log)))
        assert run(parts, restore_before=range(1, len(parts))) == whole


@pytest.mark.parametrize(("window", "fails"), [(2, True), (20, False)])
def test_what_has_left_its_window_is_never_taken_for_absent(window: int, fails: bool) -> None:
    """A query says so and ends if no log is at hand that has it."""
    query = f"{query_strategies.PROLOGUE} SELECT * WHERE {{ {{ {A} }} SEQ {{ {B} }} WITHIN {window} WITHOUT {{ {C} }} }}"
    log = log_of(query, in_order({DEFAULT_STREAM: parse_feed("C@1 Z@8 B@9 Z@10")}), [change("2 add A(1)")])
    engine = Engine()
    outcomes = [engine.feed(each) for each in blocks(log, range(1, 10))]
    assert not any(outcome.solutions.num_rows for outcome in outcomes)
    told = [(told.entry, told.reason) for outcome in outcomes for told in outcome.changes]
    assert told == [(3, LOST.format("the log does not go back to where the query began"))] * fails


@pytest.mark.parametrize(("fails", "ends"), [(False, []), (True, ["9"])])
def test_a_rule_that_was_stopped_is_stopped_when_the_log_is_read_again(fails: bool, ends: list[str]) -> None:
    """The runner stops it in all partitions. So it derived nothing more, and nothing may come of it later."""
    query = f"{{ {A} }} SEQ {{ {B} }} WITHIN 2 WITHOUT {{ ?s :L ?l }}"
    rule = registered("rule", "?s :D ?l", "CONSTRUCT { ?s :L ?l } INTO STREAM <http://e/derived> FROM STREAM <default>")
    stop: list[Entry | str] = [Fail(0, 0, "rule", "its partial matches")] if fails else []
    parts = [
        rule,
        registered("q", query, "SELECT * FROM STREAM <default> FROM STREAM <http://e/derived>"),
        *stop,
        "D@1",
        "Z@8",
        "add A(1)",
        "B@9",
        "Z@10",
    ]
    log = blocks(of_shorthand(parts), range(1, 20))
    engine = Engine(past=partial(past_of, log))
    found = [row for each in log for row in engine.feed(each).solutions.to_pylist()]
    assert [f"{row['end'].timestamp():g}" for row in found if row["query"] == "q"] == ends


def test_a_change_that_brings_more_than_a_query_may_keep_ends_it() -> None:
    """A path with two free ends has as many pairs as the square of its length, also where the pairs are made anew."""
    bodies = in_order({DEFAULT_STREAM: parse_feed("A@1 A@2 A@3")})
    log = log_of(f"{query_strategies.PROLOGUE} SELECT * WHERE {{ ?x :road+ ?y }}", bodies, [])
    register = log[0][0]
    assert isinstance(register, Register)
    log[0] = replace_fields(register, max_goals=2_000), ()
    for before, kind, length in ((1, ADD, 5), (3, REPLACE, 300)):
        text = "".join(f"<{EXAMPLE}{kind}{k}> <{EXAMPLE}road> <{EXAMPLE}{kind}{k + 1}> .\n" for k in range(length))
        log.insert(before, (Facts(before, "", text, kind), ()))
    log = [(replace_fields(entry, offset=k), rows) for k, (entry, rows) in enumerate(log)]
    engine = Engine()
    outcomes = [engine.feed(block) for block in blocks(log, range(1, len(log)))]
    assert sum(outcome.solutions.num_rows for outcome in outcomes) == 15
    (failed,) = (failed for outcome in outcomes for failed in outcome.changes)
    assert (failed.name, failed.state) == ("q", "failed")
    assert failed.reason.startswith("with the background as it is now, q stores ")
    assert engine.goals == 0


def test_what_a_query_found_at_the_instant_before_a_change_that_ends_it_is_given() -> None:
    """It is decided at the close of that instant, in the feed in which the query ends."""
    query = replace_fields(registered("q", "{ ?x :road+ ?y } MINUS { ?x :L ?l }"), max_goals=2_000)
    roads = {n: " ".join(f"road(x{k},x{k + 1})" for k in range(n)) for n in (5, 300)}
    log = of_shorthand([registered("other", A), query, f"add {roads[5]}", "A@1", f"replace {roads[300]}", "A@2"])
    for cuts in ((), range(1, len(log))):
        engine = Engine()
        outcomes = [engine.feed(each) for each in blocks(log, cuts)]
        found = [row for outcome in outcomes for row in outcome.solutions.to_pylist()]
        assert [(change.name, change.state) for outcome in outcomes for change in outcome.changes] == [("q", "failed")]
        assert [sum(row["query"] == name for row in found) for name in ("q", "other")] == [15, 2]


def test_rules_and_reports_count_what_the_background_brings_once() -> None:
    texts = {
        "rule": "CONSTRUCT { ?s :D ?k } INTO STREAM <derived> WHERE { ?s :K ?k }",
        "derived": "SELECT ?k FROM STREAM <derived> WHERE { ?s :D ?k }",
        "many": "SELECT (COUNT(?k) AS ?n) WHERE { ?s :K ?k } GROUP BY ?s",
        "first": "SELECT ?k WHERE { { SELECT ?k WHERE { ?s :K ?k } ORDER BY ?k LIMIT 1 } ?s :A ?a }",
    }
    bodies = in_order({DEFAULT_STREAM: parse_feed("A@1 A@2 A@3 A@4")})
    changes = [change(text) for text in ("0 add K(1)", "1 add g/K(1)", "1 add K(2)", "2 replace K(2)", "3 add K(1)")]
    texts = {name: query_strategies.PROLOGUE + text for name, text in texts.items()}
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [(Register(k, name, text), ()) for k, (name, text) in enumerate(texts.items())]
    for entry, occurrences in log_of("", bodies, changes)[1:]:
        log.append((replace_fields(entry, offset=len(log)), occurrences))
    ran = run(blocks(log, range(1, len(log))), restore_before=range(len(texts), len(log)))
    assert ran.emitted
    found = {name: shown(rows) for name, rows in results(texts, ran.emitted).items()}
    assert found["derived"] == ["k=1@1", "k=2@2"]
    assert found["many"] == ["n=1@1", "n=2@1-2"]
    assert ran == run(blocks(log, ()))


def of_shorthand(parts: Sequence[Entry | str]) -> list[tuple[Entry, tuple[Occurrence, ...]]]:
    """A log of entries, with texts for bodies of events (`g/A@1`) and for changes (`add g/K(b)`); offsets follow from
    the places.
    """
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = []
    for offset, part in enumerate(parts):
        if not isinstance(part, str):
            log.append((replace_fields(part, offset=offset), ()))
        elif "@" in part:
            body = tuple(parse_feed(part))
            log.append((Events(offset, DEFAULT_STREAM, len(body), max(o.end for o in body)), body))
        else:
            changed = change(f"0 {part}")
            text = "".join("{} {} {} .\n".format(*fact.triple) for fact in changed.facts)
            log.append((Facts(offset, EXAMPLE + changed.graph if changed.graph else "", text, changed.change), ()))
    return log


def registered(name: str, pattern: str, head: str = "SELECT *", tail: str = "") -> Register:
    return Register(0, name, f"{query_strategies.PROLOGUE} {head} WHERE {{ {pattern} }} {tail}")


def ends_of(name: str, parts: Sequence[Entry | str]) -> list[str]:
    """When a query's solutions end, with an engine that is saved and restored between all entries as with one that
    never is.
    """
    log = of_shorthand(parts)
    engines, emitted = [Engine(), Engine()], [list[str](), list[str]()]
    for each in blocks(log, range(1, len(log))):
        engines[1] = Engine.restore(engines[1].snapshot())
        for engine, found in zip(engines, emitted, strict=True):
            outcome = engine.feed(each)
            assert not [told for told in outcome.changes if told.state == "failed"]
            found += [f"{row['end'].timestamp():g}" for row in outcome.solutions.to_pylist() if row["query"] == name]
    assert emitted[0] == emitted[1]
    return emitted[0]


def test_a_change_plans_those_alone_whom_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The background is asked by every plan; one that it tells nothing else stands."""
    planned = list[str]()

    def plan(query: algebra.Query, names: NetworkNames) -> Fragment:
        planned.append(names.options.naming.query)
        return plan_query(query, names)

    monkeypatch.setattr(placed_query, "plan_query", plan)
    others = [registered(f"other {n}", f"?s :A ?a . ?s :L{n % 3} ?k") for n in range(9)]
    paths = [registered("walk", "?s :L+ ?t"), registered("graphs", "GRAPH ?g { ?s :A ?a }"), registered("all", "?s ?p ?k . ?s :A ?a")]
    log = of_shorthand([*others, registered("q", "?s :A ?a . ?s :K ?k"), *paths, "add L0(1)", "A@1", "add K(1)", "A@2", "add K(1)", "A@3"])
    engine, first = Engine(), len(others) + len(paths) + 1
    for each in blocks(log, range(1, len(log)))[: first + 2]:
        engine.feed(each)
    planned.clear()
    found = [engine.feed(each).solutions for each in blocks(log, range(1, len(log)))[first + 2 :]]
    assert sorted(planned) == ["all", "all", "q", "q"], "once over each of the two backgrounds"
    assert {name for part in found for name in part.column("query").to_pylist()} == {"q", "all", *(f"other {n}" for n in (0, 3, 6))}


GOING = [
    pytest.param([registered("q", "GRAPH ?g { ?s :p ?v }")], [Drop(0, 1, "q")], id="drop"),
    pytest.param([registered("q", "GRAPH ?g { ?s :p ?v }")], [Pause(0, 1, "q")], id="pause"),
    pytest.param([registered("q", "GRAPH ?g { ?s :p ?v }", tail="LIMIT 1")], [], id="completion"),
]


@pytest.mark.parametrize(("coming", "going"), GOING)
def test_what_reads_graphs_goes_after_a_change_and_leaves_the_others(coming: list[Entry], going: list[Entry]) -> None:
    other = registered("other", "GRAPH ?h { ?x :p ?y }")
    parts = [other, *coming, "g/A@1", "add g/p(b,1)", "g/A@5", *going, "g/A@6", "drop g/p(b,1)", "g/A@7", "add g/p(b,1)", "g/A@8 g/p(b,1)@8"]
    assert ends_of("other", parts) == ["5", "6", "8"]


@pytest.mark.parametrize("beside", [[], [registered("other", A)], [registered("rule", A, "CONSTRUCT { ?s :D ?a } INTO STREAM <d>")]])
@pytest.mark.parametrize("pattern", [f"{A} . {K}", f"{{ {A} }} SEQ {{ {B} }} AND {{ {K} }}", f"{A} FILTER EXISTS {{ {K} }}", "?s a :X"])
def test_an_instant_that_began_before_a_change_is_decided_without_it(pattern: str, beside: list[Entry]) -> None:
    """A query that has seen nothing of the instant yet decides as one that has."""
    schema = Facts(0, "urn:schema", f"<{EXAMPLE}A> <{RDFS}domain> <{EXAMPLE}X> .\n")
    parts = [*beside, "A(1)@0 Z@1", registered("q", pattern), "add K(k)", schema, "A(2)@1", "B@2 A(3)@2", "Z@3"]
    assert ends_of("q", parts) == ["2"]


def test_who_takes_the_place_of_a_completed_query_completes_too() -> None:
    ask, engine = registered("first", A, "ASK"), Engine()
    log = of_shorthand([registered("other", A), ask, "A@1", replace_fields(ask, name="second"), "Z@2", Finish(0, DEFAULT_STREAM)])
    told = [change for each in blocks(log, range(1, len(log))) for change in engine.feed(each).changes]
    assert [(change.name, change.state) for change in told] == [("first", "completed"), ("second", "completed")]


@pytest.mark.parametrize("first", [[], ["Z@1"]])
def test_streams_that_end_after_a_change_end_what_no_instant_has_reached(first: list[Entry | str]) -> None:
    """An ASK that has met no event is false when its stream ends, though the background changed before."""
    log = of_shorthand([registered("q", A, "ASK"), *first, "add K(k)", Finish(0, DEFAULT_STREAM)])
    engine = Engine()
    told = [change for each in blocks(log, range(1, len(log))) for change in engine.feed(each).changes]
    assert [(change.state, change.reason) for change in told] == [("completed", "ASK is answered")]
    assert [row[-1] for row in run(blocks(log, ())).emitted] == [('"false"^^<http://www.w3.org/2001/XMLSchema#boolean>',)]


def test_a_change_at_the_last_instant_says_the_same_however_the_log_is_cut() -> None:
    """A query that the last entry's occurrences open is not opened once more by the streams' end."""
    ends: list[Entry | str] = [Finish(0, name) for name in (DEFAULT_STREAM, "urn:other", "urn:further")]
    log = of_shorthand([registered("q", K), "Z@1", registered("late", f"{K} . ?t :Z ?z"), "add K(k)", "Z(2)@1", *ends])
    assert run(blocks(log, ())).emitted == run(blocks(log, range(1, len(log)))).emitted == []


@pytest.mark.parametrize("changes", [[], ["add K(k)"]])
def test_the_last_instant_hides_no_tick_of_an_entry_before_it(changes: list[Entry | str]) -> None:
    """An instant that closes at an entry gives its solutions at that entry, also if the streams end in the same block."""
    parts: list[Entry | str] = [registered("q", f"{{ {A} }} OPTIONAL {{ {B} }}"), "Z@9", *changes, "A@9", "A(2)@12", Finish(0, DEFAULT_STREAM)]
    log = of_shorthand(parts)
    last, rows = log[-2]
    assert isinstance(last, Events)
    log[-2] = replace_fields(last, watermark=11 * SECOND), rows  # it waits for the end of the stream
    assert run(blocks(log, ())).emitted == run(blocks(log, range(1, len(log)))).emitted


def test_a_query_that_comes_after_a_change_has_it_from_the_first_beside_others_too() -> None:
    schema = Facts(0, "urn:schema", f"<{EXAMPLE}A> <{RDFS}domain> <{EXAMPLE}X> .\n")
    for beside in ([], [registered("other", A)]):
        assert ends_of("q", [*beside, "Z@1", schema, registered("q", "?s a :X"), "A(2)@1", "A(3)@2"]) == ["1", "2"]


UNFED = [("GRAPH :h { }", []), ("?s :K ?k", []), ("VALUES ?x { 1 }", ["10"]), ("VALUES ?x { 1 } MINUS { ?x :K ?k }", ["10"])]


@pytest.mark.parametrize("beside", [[], [registered("other", "?s :D ?d", "SELECT * FROM STREAM <default> FROM STREAM <d>")]])
@pytest.mark.parametrize(("pattern", "ends"), UNFED)
def test_what_waits_for_another_query_opens_none_whose_rule_has_gone(pattern: str, ends: list[str], beside: list[Entry]) -> None:
    """The rule's stream ends without an occurrence, at the instant that time had reached; the change would hold from
    the next one.
    """
    rule, query = registered("rule", A, "CONSTRUCT { ?s :D ?a } INTO STREAM <d>"), registered("q", pattern, "SELECT * FROM STREAM <d>")
    finishes = [Finish(0, DEFAULT_STREAM), Finish(0, "d")]
    log = of_shorthand([rule, query, *beside, "h/A@11", "add h/K(1)", Drop(0, 0, "rule"), *finishes])
    at = 2 + len(beside)
    events, rows = log[at]
    assert isinstance(events, Events)
    log[at] = replace_fields(events, watermark=10 * SECOND), rows
    for cuts in ((), range(1, len(log))):
        assert [f"{end / SECOND:g}" for name, _, _, end, _ in run(blocks(log, cuts)).emitted if name == "q"] == ends


DESCRIBED = [
    pytest.param(A, ["1 old", "2 new"], id="at once"),
    pytest.param(f"{A} MINUS {{ {C} }}", ["1 old", "2 new"], id="at the close of the instant"),
    pytest.param(f"{{ {A} }} WITHOUT {{ {C} }} FOR 1", ["2 new", "3 new"], id="by a timer, for an instant after the change"),
]


@pytest.mark.parametrize("cuts", [(), (1, 2, 3, 4, 5, 6, 7), (4,), (1, 2, 3, 4, 6)], ids=["whole", "each alone", "events after the change", "a few"])
@pytest.mark.parametrize(("pattern", "described"), DESCRIBED)
def test_a_solution_is_described_by_the_background_of_its_instant(pattern: str, described: list[str], cuts: Sequence[int]) -> None:
    """An instant that began before the change is described without it, however the log is cut."""
    log = of_shorthand(["add L(old)", registered("q", pattern, "DESCRIBE ?s"), "Z@1", "replace L(new)", "A(2)@1", "A(3)@2", "Z@4"])
    parts = blocks(log, cuts)
    whole = run(parts)
    found = [f"{end / SECOND:g} {str(values[0]).split()[2].removeprefix(f'<{EXAMPLE}').rstrip('>')}" for *_, end, values in whole.emitted]
    assert found == described
    assert run(parts, restore_before=range(1, len(parts))) == whole


def test_a_window_is_solved_over_the_background_of_its_report() -> None:
    text = "SELECT ?a ?k FROM NAMED WINDOW :w ON <default> [RANGE PT4S STEP PT1S] { WINDOW :w { ?s :A ?a } ?s :K ?k }"
    query = Register(0, "q", f"{query_strategies.PROLOGUE} {text}")
    assert ends_of("q", [query, "A(1)@1", "Z@2", "add K(k)", "Z@3", "Z@4", "drop", "Z@5", "A(2)@5", "add K(k) K(l)", "Z@6", "Z@20"]) == [
        *("3", "4"),
        *("6", "6", "7", "7", "8", "8"),
    ]


# ---------------------------------------------------------------- at random
SUBJECTS, OBJECTS = st.sampled_from(("?s", "?s", "?s", "?t", ":a")), st.sampled_from(("?v", "?v", "?w", "?t", "?s", "1"))
PATTERNS = st.tuples(SUBJECTS, st.sampled_from((":p", ":q", ":k", ":k")), OBJECTS).map(" ".join)
GROUPS = st.lists(PATTERNS, min_size=1, max_size=3).map(lambda parts: "{ " + " . ".join(parts) + " }")
OPTIONALS = ("G OPTIONAL G", "G OPTIONAL { P }", "G OPTIONALSEQ G", "G EQUALSOPTIONAL G")
DECIDED = (
    *(
        shape.format(decided)
        for decided in (*OPTIONALS, "G MINUS G", "G FILTER EXISTS G", "G FILTER NOT EXISTS G", "G FILTER(C || EXISTS G)")
        for shape in ("{{ {{ {} }} UNION G }} SEQ G", "{{ SELECT DISTINCT ?s WHERE {{ {} }} }} SEQ G", "GRAPH N {{ {{ {{ {} }} UNION G }} AND G }}")
    ),
    *(f"G {absence} {{ {optional} }}" for absence in ("MINUS", "OPTIONAL") for optional in OPTIONALS),
    *(
        f"G FILTER({condition})".replace("EXISTS", f"EXISTS {{ {optional} }}")
        for condition in ("EXISTS", "NOT EXISTS", "C || EXISTS")
        for optional in (*OPTIONALS, "G OPTIONAL { G FILTER(C) }", "G OPTIONAL G FILTER(C)", "{ G OPTIONAL G } UNION G")
    ),
)
"""What is timeless stays as it was decided, also where another way or another solution gives the same."""
SHAPES = (
    "G", "G", "{ P }", "G { P }", "G { P }", "{ P } G", "G SEQ G", "G SEQ G SEQ G", "{ P } SEQ G", "G OPTIONAL G", "G MINUS G", "G FILTER EXISTS G", "G FILTER NOT EXISTS G",
    "G FILTER(EXISTS G || C)", "G AND G", "G OPTIONALSEQ G", "G EQUALSOPTIONAL G", "{ G EQUALSOPTIONAL { G SEQ G } } WITHIN D", "G OVERLAPS { G SEQ G WITHIN D }", "G SEQ { G AND G }", "G SEQ { G SEQ G } WITHIN D", "G AND G WITHOUT G", "G AND G WITHIN D WITHOUT G", "{ G UNION G } SEQ G", "G SEQ G WITHIN D", "{ G OPTIONAL G } SEQ G",
    "G OPTIONAL { P }", "G MINUS { P }", "G FILTER EXISTS { P }", "G FILTER NOT EXISTS { P }", "{ P } OPTIONALSEQ G", "{ { P } OPTIONALSEQ G } SEQ G",
    "{ G MINUS G } AND G", "G V", "GRAPH N G", "G GRAPH N G", "{ GRAPH N G } SEQ G", "G OPTIONAL { GRAPH N G }", "G MINUS { GRAPH N G }", "GRAPH N { G AND G }",
    *DECIDED,
)  # fmt: skip


AGGREGATES = ("COUNT(*)", "COUNT(?v)", "SUM(?v)", "MAX(?w)", "COUNT(DISTINCT ?v)")
WINDOWS = (
    "", "", ' WINDOW [RANGE "PT2S"]', " WINDOW [ROWS 1]", " WINDOW [ROWS 2]",
    " WINDOW [SESSION PT1S]", " WINDOW [RUN WHILE (COUNT(*) <= 2 || ?v != PREV(?v))]",
)  # fmt: skip
"""Those that report at the instants of their solutions."""


@st.composite
def queries(draw: st.DrawFn) -> str:
    body = draw(query_strategies.shaped(draw(st.sampled_from(SHAPES)), GROUPS))
    if draw(st.integers(0, 3)) == 0:
        made, keys, window = draw(st.sampled_from(AGGREGATES)), draw(st.sampled_from(("?s", "?v", "?s ?v"))), draw(st.sampled_from(WINDOWS))
        return query_strategies.PROLOGUE + f"SELECT {keys} ({made} AS ?made) WHERE {body} GROUP BY {keys}{window}"
    return query_strategies.PROLOGUE + f"SELECT {draw(st.sampled_from(('', '', 'DISTINCT ')))}* WHERE {body}"


def _schema() -> st.SearchStrategy[tuple[Iri, Iri, Iri]]:
    names = st.sampled_from([parse_shorthand(name) for name in ("p", "q", "k")])
    return st.tuples(names, st.sampled_from((Iri(RDFS + "subPropertyOf"), Iri(RDFS + "domain"), Iri(RDF + "type"))), names)


KNOWN = st.tuples(
    st.sampled_from([parse_shorthand(name) for name in ("a", "a", "b")]),
    st.sampled_from([parse_shorthand(name) for name in ("k", "k", "p", "q")]),
    st.sampled_from([parse_shorthand(name) for name in ("1", "a", "b", "2")]),
)
FACTS = st.lists(st.builds(Fact, st.one_of(KNOWN, KNOWN, KNOWN, _schema())), max_size=3, unique=True).map(tuple)
CHANGES = st.lists(
    st.builds(Change, st.integers(0, 8), st.sampled_from(("", "", "g")), st.sampled_from((ADD, ADD, REPLACE, DROP)), FACTS), max_size=5
)


@RANDOM
@given(
    query=queries(),
    stream=query_strategies.feeds(10),
    changes=CHANGES,
    cuts=st.frozensets(st.integers(1, 14), max_size=4),
    few=st.sampled_from((0, 0, 1, 1000)),
    policy=st.sampled_from((UNRESTRICTED, UNRESTRICTED, UNRESTRICTED, RECENT, CHRONOLOGICAL)),
)
def test_at_random(query: str, stream: list[Occurrence], changes: list[Change], cuts: frozenset[int], few: int, policy: str) -> None:
    plain = [Occurrence(o.triple, o.start, o.end) for o in stream]
    note(f"{policy}: {query}")
    note(show(plain))
    note("\n".join(f"{each.before} {each.change} {each.graph}: {show(each.facts)}" for each in changes))
    with copied(few):
        agree(query, list(dict.fromkeys(plain)), changes, cuts, policy, may_be_refused=True)

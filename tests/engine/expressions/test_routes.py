"""ep:route and ep:routeLength give the shortest path over the background as it stands at a solution's end."""

import json
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.background import routes
from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.engine import Engine
from engine.expressions import background_functions
from engine.expressions.background_functions import ROUTE, ROUTE_LENGTH, call_background_function
from engine.expressions.values import ExpressionError
from engine.messages import ADD, DROP, REPLACE, Entry, Events, Facts, Finish, Register
from engine.triples.quads import Quad
from engine.validation.validate import check
from epsparql import parse
from epsparql.errors import Unsupported
from epsparql.terms import RDF, XSD, BlankNode, Iri, Literal, Term, TripleTerm
from server.cli.commands import main
from server.cli.subcommands.definition import OK
from tests.reference.evaluator import Fact, Occurrence
from tests.soak import examples
from tests.support.run_both import block, run_engine, run_oracle

EX = "http://example.org/"
EP = f"PREFIX : <{EX}> PREFIX ep: <urn:epsparql:function:> PREFIX xsd: <{XSD}> "
DELIVERY = Path(__file__).parents[4] / "shared" / "conformance" / "papers-2" / "delivery"
DATA = DELIVERY.parents[2] / "data"
Ints = NDArray[np.int64]
NODES = [Iri(f"{EX}{name}") for name in ("a", "b", "c", "d", "e", "aa")]
LINK, WEIGHT, OTHER = Iri(f"{EX}link"), Iri(f"{EX}km"), Iri(f"{EX}other")


def node(name: str) -> Iri:
    return Iri(EX + name)


def test_an_agent_goes_the_way_from_its_present_place(capsys: pytest.CaptureFixture[str]) -> None:
    """The links are derived by a static rule, and the route begins at the place where the agent is."""
    arguments = ["--query", f"{DELIVERY}/link.rq", "--query", f"{DELIVERY}/q.rq", "--background", f"{DELIVERY}/bg.ttl"]
    assert main(["replay", *arguments, "--stream", f"{DELIVERY}/s.ndjson"]) == OK
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    routes_found = [(each["end"], each["binding"]["route"]["value"]) for each in found]
    assert routes_found == [
        ("2026-01-01T00:00:02Z", f"<{EX}a> <{EX}b> <{EX}d>"),
        ("2026-01-01T00:00:11Z", f"<{EX}b> <{EX}d>"),
    ]


# ---------------------------------------------------------------- engine and reference
NUMBERS = [
    *(Literal(text, XSD + "integer") for text in ("0", "1", "2", "-1")),
    *(Literal(text, XSD + "decimal") for text in ("0.1", "0.2", "1.5")),
    *(Literal(text, XSD + "double") for text in ("0.1", "1.0e16", "1.0", "NaN", "INF")),
    *(Literal(text, XSD + "float") for text in ("0.1", "16777216")),
    Literal("1"), node("a"),
]  # fmt: skip


@st.composite
def backgrounds(draw: st.DrawFn) -> list[Fact]:
    """Links among few nodes, so that several routes are equally short; some have weights, in graphs or none."""
    ends: st.SearchStrategy[Iri | BlankNode] = st.sampled_from([*NODES, BlankNode("z")])
    numbers: st.SearchStrategy[Term] = st.sampled_from(NUMBERS)
    facts = list[Fact]()
    for number in range(draw(st.integers(0, 12))):
        s, o = draw(ends), draw(ends)
        predicate = draw(st.sampled_from([LINK, LINK, LINK, OTHER]))
        facts.append(Fact((s, predicate, o), draw(st.sampled_from([None, Iri(EX + "g")]))))
        for weight in draw(st.lists(numbers, max_size=2)):
            reifier = BlankNode(f"r{number}")
            facts.append(Fact((reifier, Iri(RDF + "reifies"), TripleTerm(s, predicate, o))))
            facts.append(Fact((reifier, WEIGHT, weight)))
    return facts


ASKED = [
    "SELECT ?x ?y ?r ?n { ?x :to ?y BIND(ep:route(?x, ?y, :link) AS ?r) BIND(ep:routeLength(?x, ?y, :link) AS ?n) }",
    "SELECT ?x ?y ?r ?n { ?x :to ?y BIND(ep:route(?x, ?y, :link, :km) AS ?r) BIND(ep:routeLength(?x, ?y, :link, :km) AS ?n) }",
    "SELECT ?x ?y (ep:routeLength(?x, ?y, :link) + 1 AS ?n) { {?x :to ?y} SEQ {?y :to ?z} FILTER(ep:routeLength(?x, ?z, :link) < 3) }",
    "SELECT ?x { ?x :to ?y FILTER(!(ep:routeLength(?x, ?y, :link, :km) > 1)) }",
    "SELECT ?x ?y { ?x :to ?y FILTER NOT EXISTS { ?y :to ?z FILTER(ep:routeLength(?y, ?z, :link) < 2) } }",
    "SELECT ?x ?z { {?x :to ?y} OPTIONAL { ?y :to ?z FILTER(ep:routeLength(?x, ?z, :link) >= 1) } }",
]


@settings(max_examples=examples(400), deadline=None)
@given(background=backgrounds(), events=st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), min_size=1, max_size=5))
def test_engine_and_definition_agree(background: list[Fact], events: list[tuple[Iri, Iri]]) -> None:
    stream = [Occurrence((x, node("to"), y), at, at) for at, (x, y) in enumerate(events, 1)]
    queries = {f"q{k}": EP + text for k, text in enumerate(ASKED)}
    assert run_engine(queries, {"default": stream}, background) == run_oracle(queries, {"default": stream}, background)


# ---------------------------------------------------------------- another implementation
def index_of(links: list[tuple[int, int]], weights: list[Term] | None = None) -> FactIndex:
    quads: list[Quad] = [(node(f"n{x}"), LINK, node(f"n{y}"), None) for x, y in links]
    for k, ((x, y), weight) in enumerate(zip(links, weights or [], strict=False)):
        quads.append((node(f"r{k}"), Iri(RDF + "reifies"), TripleTerm(node(f"n{x}"), LINK, node(f"n{y}")), None))
        quads.append((node(f"r{k}"), WEIGHT, weight, None))
    return FactIndex.from_quads(quads, TermTable())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_routes_are_as_short_as_those_of_networkx(seed: int, *, weighted: bool) -> None:
    graph = nx.gnp_random_graph(60, 0.05, seed=seed, directed=True) if seed else nx.DiGraph(nx.grid_2d_graph(8, 8))
    graph = nx.convert_node_labels_to_integers(graph)
    rng = np.random.default_rng(seed)
    for x, y in graph.edges:
        graph.edges[x, y]["km"] = int(rng.integers(0, 5)) if weighted else 1
    links = list(graph.edges)
    weights: list[Term] | None = [Literal(str(graph.edges[link]["km"]), XSD + "integer") for link in links] if weighted else None
    known, ends = index_of(links, weights), [(int(x), int(y)) for x, y in rng.integers(0, len(graph), (60, 2))]
    for x, y in ends:
        arguments = [node(f"n{x}"), node(f"n{y}"), LINK, *([WEIGHT] if weighted else [])]
        found = known.find_route(arguments)
        if not nx.has_path(graph, x, y):
            assert found is None
            continue
        assert found is not None
        assert found.length == Literal(str(nx.shortest_path_length(graph, x, y, weight="km")), XSD + "integer")
        nodes = [int(text.removeprefix(f"<{EX}n").removesuffix(">")) for text in found.nodes]
        assert (nodes[0], nodes[-1]) == (x, y)
        assert sum(Fraction(graph.edges[link]["km"]) for link in pairwise(nodes)) == Fraction(str(found.length.lexical))


def real_links() -> list[tuple[int, int]]:
    """Return the links between resources of published observations."""
    store = ox.Store()
    for path in sorted((DATA / "csrbench" / "data").glob("*.ttl"))[:4]:
        store.bulk_load(path=str(path), format=ox.RdfFormat.TURTLE)
    pairs = sorted({(str(q.subject), str(q.object)) for q in store if isinstance(q.object, ox.NamedNode) and isinstance(q.subject, ox.NamedNode)})
    numbers = {name: number for number, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
    return [(numbers[x], numbers[y]) for x, y in pairs]


def convert_links(links: Iterable[tuple[int, int]], terms: TermTable) -> Ints:
    return np.array([[terms.intern(str(part)) for part in (node(f"n{x}"), LINK, node(f"n{y}"))] for x, y in links], np.int64).reshape(-1, 3)


LINKS = [
    pytest.param(lambda: list(nx.convert_node_labels_to_integers(nx.grid_2d_graph(9, 9)).to_directed().edges), id="grid"),
    pytest.param(lambda: list(nx.gnp_random_graph(60, 0.04, seed=5, directed=True).edges), id="random"),
    pytest.param(real_links, id="observations"),
]


@pytest.mark.parametrize("draw", LINKS)
def test_routes_follow_links_that_close_and_open(draw: Callable[[], list[tuple[int, int]]]) -> None:
    """Links lie in several graphs, some in two of them, and graphs are replaced, dropped and added to."""
    rng, links = np.random.default_rng(7), draw()
    known, held = FactIndex.from_quads([], TermTable()), {f"{EX}g{k}": links[k::3] + links[:5] for k in range(3)}
    for name, some in held.items():
        known = known.with_change(name, convert_links(some, known.terms), ADD)
    for step in range(24):
        name = f"{EX}g{step % 3}"
        some = held[name]
        if step % 4 == 3:
            known, held[name] = known.with_change(name, convert_links([], known.terms), DROP), []
        elif step % 4 == 2 or not some:
            held[name] = [*some, links[int(rng.integers(len(links)))]]
            known = known.with_change(name, convert_links(held[name][-1:], known.terms), ADD)
        else:
            held[name] = [link for link in some if rng.random() > 0.1]
            known = known.with_change(name, convert_links(held[name], known.terms), REPLACE)
        graph = nx.DiGraph([link for some in held.values() for link in some])
        nodes = sorted(graph)
        for x, y in rng.choice(nodes, (8, 2)).tolist() if nodes else ():
            found = known.find_route([node(f"n{x}"), node(f"n{y}"), LINK])
            expected = nx.shortest_path_length(graph, x, y) if nx.has_path(graph, x, y) else None
            assert (None if found is None else len(found.nodes) - 1) == expected


def test_a_search_beyond_the_bound_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    links = [(k, k + 1) for k in range(50)]
    weights: list[Term] = [Literal("1", XSD + "integer")] * len(links)
    asked = [node("n0"), node("n50"), LINK]
    found = index_of(links, weights).find_route(asked)
    assert found is not None
    assert len(found.nodes) == 51
    monkeypatch.setattr(routes, "MOST_VISITED", 20)
    known = index_of(links, weights)
    assert known.find_route(asked) is known.find_route([*asked, WEIGHT]) is None
    assert known.find_route([node("n40"), *asked[1:]]) is not None


def test_what_is_kept_of_routes_and_graphs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A predicate may come from events, and a route may be as long as the background."""
    monkeypatch.setattr(routes, "_REMEMBERED", 20)
    known = index_of([(k, k + 1) for k in range(15)])
    for k in range(15):
        found = known.find_route([node(f"n{k}"), node("n15"), LINK])
        assert found is not None
        assert len(found.nodes) == 16 - k
        (kept,) = known._graphs.values()
        assert kept.nodes == sum(len(each.nodes) for each in kept.routes.values() if each is not None) <= 20
    for k in range(100):
        assert known.find_route([node("n0"), node("n1"), node(f"no link {k}".replace(" ", "-"))]) is None
        assert len(known._graphs) <= 16


def test_a_route_too_long_for_a_text_has_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    known, asked = index_of([(k, k + 1) for k in range(50)]), [node("n0"), node("n50"), LINK]
    monkeypatch.setattr(background_functions, "MAX_TEXT", 1_000)
    assert call_background_function(ROUTE_LENGTH, asked, known.find_route) == Literal("50", XSD + "integer")
    with pytest.raises(ExpressionError):
        call_background_function(ROUTE, asked, known.find_route)


# ---------------------------------------------------------------- a background that changes
def test_each_solution_has_the_route_of_its_own_instant() -> None:
    """A change holds from the next instant on; later solutions with the same ends get another route."""
    direct, around = f"<{EX}a> <{EX}link> <{EX}b> .\n", f"<{EX}a> <{EX}link> <{EX}c> .\n<{EX}c> <{EX}link> <{EX}b> .\n"
    asked = Occurrence((node("a"), node("to"), node("b")), 0, 0)
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [
        (Facts(0, "urn:around", around), ()),
        (Register(1, "q", EP + "SELECT ?n { ?x :to ?y BIND(ep:routeLength(?x, ?y, :link) AS ?n) }"), ()),
    ]

    def ask(at: int) -> None:
        log.append((Events(len(log), "default", 1, at), (Occurrence(asked.triple, at, at),)))

    ask(1)
    log.append((Facts(len(log), "urn:direct", direct), ()))
    ask(1)
    ask(2)
    log.append((Facts(len(log), "urn:direct", "", DROP), ()))
    ask(3)
    log.append((Facts(len(log), "urn:around", "", DROP), ()))
    ask(4)
    log.append((Finish(len(log), "default"), ()))
    for parts in ([log], [[entry] for entry in log]):
        engine = Engine()
        found = [row for part in parts for row in engine.feed(block(part)).solutions.to_pylist()]
        assert [row["values"] for row in found] == [[f'"{n}"^^<{XSD}integer>'] if n else [None] for n in (2, 1, 2, None)]


# ---------------------------------------------------------------- where it cannot stand
REFUSED = [
    ("SELECT (SUM(ep:routeLength(?x, ?y, :link)) AS ?n) { ?x :to ?y }", "in an aggregate, ORDER BY or RUN"),
    ("SELECT ?x { ?x :to ?y } ORDER BY ep:routeLength(?x, ?y, :link)", "in an aggregate, ORDER BY or RUN"),
    ("CONSTRUCT { ?x :near ?y } INTO BACKGROUND :g { ?x :to ?y FILTER(ep:routeLength(?x, ?y, :link) < 2) }", "in a static rule"),
    ("SELECT ?x { ?x :to ?y BIND(ep:route(?x, ?y) AS ?r) }", "with 2 arguments"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message) as refused:
        check(parse(EP + text))
    assert "ep:route" in refused.value.text[refused.value.span.start :][:30]


def test_a_background_beyond_the_bound_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    quads: list[Quad] = [(node(f"n{k}"), LINK, node(f"n{k + 1}"), None) for k in range(5)]
    parsed = parse(EP + "SELECT ?n { ?x :to ?y BIND(ep:routeLength(?x, ?y, :link) AS ?n) }")
    assert check(parsed, facts=quads) == ()
    monkeypatch.setattr("engine.validation.validate.MOST_VISITED", 4)
    (warning,) = check(parsed, facts=quads)
    assert warning.code == "bounded-search"
    assert warning.message == f"the background has 5 links <{EX}link>, and a search that has visited 4 nodes finds no route"

"""MIN and MAX feed their own rules: distances follow links that come and go, as another implementation finds them."""

from collections.abc import Iterable
from pathlib import Path

import networkx as nx
import numpy as np
import pyoxigraph as ox
import pytest

import epsparql
from engine.background.fact_store import FactIndex
from engine.background.static_rules.derivations import RegisteredRule
from engine.dictionary.term_dictionary import TermTable
from engine.messages import ADD, REPLACE
from engine.validation.validate import check
from epsparql import algebra as a
from epsparql.errors import CyclicNegation
from epsparql.terms import XSD, Iri, Literal
from tests.engine.static_rules.test_engine_rules import PREFIX
from tests.soak import is_full

DATA = Path(__file__).parents[4] / "shared" / "data"
Link = tuple[int, int]


def rule(pattern: str, function: str = "MIN", keys: str = "?x", template: str = "?x :far ?d") -> str:
    return f"{PREFIX}CONSTRUCT {{ {template} }} INTO BACKGROUND :d WHERE {{ SELECT {keys} ({function}(?n) AS ?d) WHERE {{ {pattern} }} GROUP BY {keys} }}"


STEPS = rule("{ ?x :start ?n } UNION { ?y :far ?k . ?y :to ?x BIND(?k + 1 AS ?n) }")
WEIGHTS = rule("{ ?x :start ?n } UNION { ?y :far ?k . ?road :from ?y ; :ends ?x ; :km ?w BIND(?w + ?k AS ?n) }")
LOSSES = rule("{ ?x :start ?n } UNION { ?y :far ?k . ?road :from ?y ; :ends ?x ; :km ?w BIND(?k - ?w AS ?n) }", "MAX")
LABELS = rule("{ ?x :start ?n } UNION { ?y :far ?n . { ?y :to ?x } UNION { ?x :to ?y } }")


def index_with(*texts: str) -> FactIndex:
    rules = []
    for number, text in enumerate(texts, 1):
        query = epsparql.parse(text).query
        assert isinstance(query, a.BackgroundRule)
        rules.append(RegisteredRule(number, f"rule{number}", text, "all", query))
    return FactIndex.from_quads([], TermTable()).with_rules(rules)


class Town:
    """Holds links with weights, and a background that follows them, each link in a graph of its own or all in one."""

    def __init__(self, *texts: str) -> None:
        self.index = index_with(*texts)
        self.links: dict[Link, int] = {}

    def change(self, graph: str, lines: Iterable[tuple[str, str, str]], change: str) -> None:
        intern = self.index.terms.intern
        numbers = [[intern(part if part.startswith('"') else f"<http://e/{part}>") for part in line] for line in lines]
        self.index = self.index.with_change(graph, np.array(numbers, np.int64).reshape(-1, 3), change)

    def start(self, starts: dict[int, int]) -> None:
        self.change("http://e/starts", [(f"n{node}", "start", integer(value)) for node, value in starts.items()], REPLACE)

    def build(self, links: dict[Link, int]) -> None:
        self.links = dict(links)
        self.change("http://e/links", [line for link, weight in links.items() for line in lines_of(link, weight)], REPLACE)

    def values(self) -> dict[int, int]:
        text = self.index.terms.text
        found = [
            (int(text(s)[len("<http://e/n") : -1]), round(float(text(o).split('"')[1]))) for s, _, o in self.index.derived("http://e/d").tolist()
        ]
        assert len(dict(found)) == len(found), "one value each"
        return dict(found)


def integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


def lines_of(link: Link, weight: int) -> list[tuple[str, str, str]]:
    x, y = link
    road = f"r{x}-{y}"
    return [(f"n{x}", "to", f"n{y}"), (road, "from", f"n{x}"), (road, "ends", f"n{y}"), (road, "km", integer(weight))]


def expected_of(name: str, starts: dict[int, int], links: dict[Link, int]) -> dict[int, int]:
    """Find the same with networkx: the starts are reached from one node by links of their own values."""
    graph = nx.DiGraph([("all", node) for node in starts])
    for node, value in starts.items():
        graph.edges["all", node]["w"] = value
    for (x, y), weight in links.items():
        graph.add_edge(x, y, w={"steps": 1, "weights": weight, "losses": weight, "labels": 0}[name])
        if name == "labels":
            graph.add_edge(y, x, w=0)
    found = nx.single_source_dijkstra_path_length(graph, "all", weight="w")
    return {node: value for node, value in found.items() if node != "all"}


@pytest.mark.parametrize("seed", range(20 if is_full() else 2))
@pytest.mark.parametrize(("name", "text"), [("steps", STEPS), ("weights", WEIGHTS), ("losses", LOSSES), ("labels", LABELS)])
def test_values_follow_links_as_networkx_finds_them(name: str, text: str, seed: int) -> None:
    """Weights may be 0, so that links in a circle rest on each other; the last change of each run closes many at once."""
    rng, town = np.random.default_rng(seed), Town(text)
    drawn = (
        nx.gnp_random_graph(14, 0.16, seed=seed, directed=True) if seed else nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4)).to_directed()
    )
    links = {(int(x), int(y)): int(rng.integers(0, 3)) for x, y in drawn.edges}
    starts, sign = {0: 0, 5: 4}, -1 if name == "losses" else 1
    town.build(links)
    for step in range(17):
        if step % 8 == 0:
            starts = {int(node): int(rng.integers(0, 5)) for node in rng.choice(14, 2, replace=False)}
            town.start({node: sign * value for node, value in starts.items()})
        elif step == 16 or not links:
            links = {link: weight for link, weight in links.items() if rng.random() < 0.5}
            town.build(links)
        else:
            link = list(drawn.edges)[int(rng.integers(len(drawn.edges)))]
            if links.pop(link, None) is None:
                links[link] = int(rng.integers(0, 3))
                town.change("http://e/links", lines_of(link, links[link]), ADD)
            else:
                town.build(links)
        assert {node: sign * value for node, value in town.values().items()} == expected_of(name, starts, links)
    town.build(links)
    again = Town(text)
    again.start({node: sign * value for node, value in starts.items()})
    again.build(links)
    assert town.values() == again.values()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), [("steps", STEPS), ("weights", WEIGHTS)])
def test_distances_on_a_grid_of_100_by_100_places(name: str, text: str) -> None:
    """Links close and open, those beside the start too, which move many distances."""
    rng, town = np.random.default_rng(1), Town(text)
    pairs = [(int(x), int(y)) for x, y in nx.convert_node_labels_to_integers(nx.grid_2d_graph(100, 100)).to_directed().edges]
    links = {link: int(rng.integers(1, 10)) for link in pairs}
    some = [(0, 1), (100, 0), (1, 2), *(pairs[int(k)] for k in rng.choice(len(pairs), 5, replace=False))]
    town.start({0: 0})
    town.build({link: weight for link, weight in links.items() if link not in some})
    for closed in [*some, *some[::-1]]:
        graph = "http://e/{}-{}".format(*closed)
        is_open = town.links.pop(closed, None) is not None
        town.change(graph, [] if is_open else lines_of(closed, links[closed]), REPLACE)
        if not is_open:
            town.links[closed] = links[closed]
        assert town.values() == expected_of(name, {0: 0}, town.links)


FIRST = "{ ?x :start ?n } UNION "
ROAD = "?road :from ?y ; :ends ?x ; :km ?w"
TAKEN = [
    pytest.param([rule(FIRST + "{ ?y :far ?k . ?y :to ?x FILTER(?k < 2) BIND(?k + 1 AS ?n) }")], {0: 0, 1: 1, 2: 2}, id="a bound that better values meet"),
    pytest.param([rule(FIRST + "{ ?y :far ?k . ?y :to ?x FILTER(2 >= ?k) BIND(1 + ?k + 0.5 AS ?m) BIND(?m - -0.5 AS ?n) }")], {0: 0, 1: 2, 2: 4}, id="sums"),
    pytest.param([STEPS.replace("?k + 1 AS ?n", "?k AS ?n").replace("MIN(?n)", "MIN(?n + 1)")], {0: 1, 1: 2, 2: 3, 3: 4}, id="the argument is a sum"),
    pytest.param([STEPS.replace("GROUP BY ?x", "GROUP BY ?x HAVING (MIN(?n) <= 1)")], {0: 0, 1: 1}, id="HAVING"),
    pytest.param([rule(FIRST + "{ ?y :far ?k . " + ROAD + " BIND(?k - ?w AS ?n) }")], {0: 0}, id="numbers of the other sign have no sum"),
    pytest.param(
        [rule(FIRST + "{ ?y :on ?k . ?y :to ?x BIND(?k + 1 AS ?n) }"), f"{PREFIX}CONSTRUCT {{ ?x :on ?k }} INTO BACKGROUND :e {{ ?x :far ?k }}"],
        {0: 0, 1: 1, 2: 2, 3: 3}, id="a loop through another rule",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "expected"), TAKEN)
def test_what_a_loop_may_do_with_its_value(texts: list[str], expected: dict[int, int]) -> None:
    town = Town(*texts)
    town.start({0: 0})
    town.build({(0, 1): 7, (1, 2): 0, (2, 3): 1})
    assert town.values() == expected
    town.build({})
    assert set(town.values()) == {0}
    town.build({(0, 1): 7, (1, 2): 0, (2, 3): 1})
    assert town.values() == expected


def test_a_given_value_and_one_of_a_property_below_feed_the_loop() -> None:
    town = Town(STEPS)
    town.build({(0, 1): 1, (1, 2): 1, (2, 0): 1})
    town.change("http://e/more", [("n1", "far", integer(3)), ("n2", "near", integer(0))], ADD)
    assert town.values() == {2: 4, 0: 5, 1: 6}
    schema = np.array(
        [[town.index.terms.intern(text) for text in ("<http://e/near>", "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>", "<http://e/far>")]]
    )
    town.index = town.index.with_change("http://e/schema", schema, ADD)
    assert town.values() == {0: 1, 1: 2, 2: 3}
    town.change("http://e/more", [("n1", "far", integer(3))], REPLACE)
    assert town.values() == {2: 4, 0: 5, 1: 6}


def test_a_rule_that_closes_a_loop_comes_and_goes() -> None:
    """Without it the aggregate is folded as any other is."""
    closing = f"{PREFIX}CONSTRUCT {{ ?x :on ?k }} INTO BACKGROUND :e {{ ?y :far ?m . ?y :to ?x BIND(?m + 1 AS ?k) }}"
    folding = rule("{ ?x :start ?n } UNION { ?x :on ?n }")
    both, alone = index_with(folding, closing).rules, index_with(folding).rules
    town = Town(folding)
    town.start({0: 0})
    town.build({(0, 1): 1, (1, 0): 1, (1, 2): 1})
    for rules, expected in ((both, {0: 0, 1: 1, 2: 2}), (alone, {0: 0}), (both, {0: 0, 1: 1, 2: 2})):
        town.index = town.index.with_rules(rules)
        assert town.values() == expected


REFUSED = [
    ("{ ?y :far ?k . ?y :to ?x BIND(?k * 2 AS ?n) }", "MIN", "the value is used otherwise than in a sum"),
    ("{ ?y :far ?k . ?y :to ?x BIND(?k - 1 AS ?n) }", "MIN", "a sum with 1 makes the value better"),
    ("{ ?y :far ?k . ?y :to ?x BIND(?k + 1 AS ?n) }", "MAX", "a sum with 1 makes the value better"),
    ("{ ?y :far ?k . ?y :to ?x FILTER(?k > 3) BIND(?k + 1 AS ?n) }", "MIN", "a better value may fail"),
    ("{ ?y :far ?k . ?x :start ?k BIND(?k + 1 AS ?n) }", "MIN", "joins by it"),
    ("{ ?y :far ?k . ?x :far ?m BIND(?k + ?m AS ?n) }", "MIN", "more than one pattern"),
    ("{ ?x :start ?n FILTER NOT EXISTS { ?x :far ?any } }", "MIN", "asks that one is absent|own negation"),
    ("{ ?y :far ?n . ?y :to ?x }", "COUNT", "own negation"),
    ("{ ?y :far ?n . ?y :to ?x }", "SUM", "own negation"),
]


@pytest.mark.parametrize(("pattern", "function", "reason"), REFUSED)
def test_other_loops_are_refused(pattern: str, function: str, reason: str) -> None:
    parsed = epsparql.parse(rule(pattern, function))
    with pytest.raises(CyclicNegation, match=reason) as refused:
        check(parsed, name="far")
    if function in ("MIN", "MAX"):
        assert "far> of far" in refused.value.message
        assert ("not below 0" in str(refused.value)) == ("own negation$" not in reason)


def test_a_value_is_explained_by_the_links_of_its_way() -> None:
    town = Town(STEPS)
    town.start({0: 0})
    town.build({(0, 1): 1, (1, 2): 1, (0, 2): 1, (2, 3): 1})
    node, far, value = Iri("http://e/n3"), Iri("http://e/far"), Literal("2", XSD + "integer")
    steps = town.index.explain_derived((node, far, value))
    assert steps is not None
    assert [(str(conclusion[0])[-3:-1], str(conclusion[2])[1]) for _, _, conclusion in steps] == [("n0", "0"), ("n2", "1"), ("n3", "2")]


def test_values_over_real_links() -> None:
    """The links are the triples between resources of published observations."""
    store = ox.Store()
    for path in sorted((DATA / "csrbench" / "data").glob("*.ttl"))[:4]:
        store.bulk_load(path=str(path), format=ox.RdfFormat.TURTLE)
    pairs = sorted({(str(q.subject), str(q.object)) for q in store if isinstance(q.object, ox.NamedNode) and isinstance(q.subject, ox.NamedNode)})
    numbers = {name: number for number, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
    links = {(numbers[x], numbers[y]): 1 for x, y in pairs}
    town, start = Town(LABELS), {0: 3, 7: 2}
    town.start(start)
    town.build(links)
    assert town.values() == expected_of("labels", start, links)
    assert len(town.values()) > 300

"""The engine against the reference evaluator, on random queries, rules, streams, facts and arrivals."""

import re
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import epsparql
from engine.validation.validate import check
from epsparql import algebra
from epsparql.algebra import DEFAULT_STREAM
from tests.reference.evaluator import Fact, Occurrence, Settings
from tests.soak import examples
from tests.support import query_strategies
from tests.support.feeds import parse_facts, parse_feed, show
from tests.support.run_both import Emitted, block, blocks, entries, results, run, run_engine, run_oracle, without

USUAL = Settings()
RANDOM = settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])
Streams = dict[str, list[Occurrence]]


def streams() -> st.SearchStrategy[Streams]:
    """The default stream alone, or with a second one."""
    alone = st.fixed_dictionaries({DEFAULT_STREAM: query_strategies.feeds()})
    both = st.fixed_dictionaries({DEFAULT_STREAM: query_strategies.feeds(6), query_strategies.OTHER: query_strategies.feeds(4)})
    return st.one_of(alone, alone, both)


def run_streams() -> st.SearchStrategy[Streams]:
    return st.one_of(streams(), *[st.fixed_dictionaries({DEFAULT_STREAM: query_strategies.run_feeds()})] * 3)


def accepted(queries: Mapping[str, str]) -> bool:
    """Return whether the engine evaluates each of the queries; it may refuse only what it names as unsupported."""
    try:
        for text in queries.values():
            check(epsparql.parse(text))
    except epsparql.QueryError as fault:
        if fault.code not in ("unsupported", "cyclic-negation"):
            raise
        return False
    return True


def explain(queries: Mapping[str, str], fed: Streams, background: list[Fact]) -> None:
    for name, text in queries.items():
        note(f"{name}: {text}")
    for name, stream in fed.items():
        note(f"{name}: {show(stream)}")
    note(f"background: {show(background)}")


LABEL = re.compile(r"_:\w+")
Interval = tuple[int, int]


def agree(query: str, fed: Streams, background: list[Fact], chosen: Settings = USUAL) -> None:
    queries = {"q": query}
    assume(accepted(queries))
    explain(queries, fed, background)
    note(str(chosen))
    assert run_engine(queries, fed, background, {"q": chosen}) == run_oracle(queries, fed, background, {"q": chosen})


def agree_however_it_arrives(query: str, fed: Streams, background: list[Fact], arrival: query_strategies.Arrival) -> None:
    """Any order within the delay gives the same solutions; cuts and restores do not even change the order of emission."""
    queries = {"q": query}
    assume(accepted(queries))
    explain(queries, fed, background)
    log = entries(queries, fed, arrival.bodies, background, query_strategies.MAX_DELAY)
    whole = run([block(log)])
    assert results(queries, whole.emitted) == run_oracle(queries, fed, background)
    assert run(blocks(log, arrival.cuts), restore_before=arrival.restores) == whole
    assert in_emission_order(query, whole.emitted)


def in_emission_order(query: str, found: list[Emitted]) -> bool:
    """Return whether solutions stand by entry and end, so ends never fall; then by start where the query gives no
    order.
    """
    parsed = epsparql.parse(query).query
    own = isinstance(parsed, algebra.Select) and parsed.modifiers.order
    keys = [(entry, end, 0 if own else start) for _, entry, start, end, _ in found]
    return keys == sorted(keys) and [end for _, end, _ in keys] == sorted(end for _, end, _ in keys)


@pytest.mark.parametrize("shape", [*query_strategies.SHAPES, *query_strategies.BINDINGS])
@settings(RANDOM, max_examples=examples(20))
@given(fed=query_strategies.feeds(12), background=query_strategies.facts(), data=st.data())
def test_shapes(shape: str, fed: list[Occurrence], background: list[Fact], data: st.DataObject) -> None:
    """Each operator on groups that often match, shuffled within the delay, cut and restored."""
    sent = {DEFAULT_STREAM: fed}
    agree_however_it_arrives(data.draw(query_strategies.of_shape(shape)), sent, background, data.draw(query_strategies.arrivals(sent)))


@RANDOM
@given(query=query_strategies.groupings(), fed=streams(), background=query_strategies.facts())
def test_groupings(query: str, fed: Streams, background: list[Fact]) -> None:
    agree(query, fed, background)


@RANDOM
@given(query=query_strategies.run_queries(), fed=run_streams(), background=query_strategies.facts(), data=st.data())
def test_runs(query: str, fed: Streams, background: list[Fact], data: st.DataObject) -> None:
    """Runs and sessions, shuffled within the delay, cut and restored in the middle of a run."""
    agree_however_it_arrives(query, fed, background, data.draw(query_strategies.arrivals(fed)))


@RANDOM
@given(condition=query_strategies.calculations(), fed=query_strategies.numeric_feeds())
def test_numbers_of_every_type(condition: str, fed: list[Occurrence]) -> None:
    """The kernel's float64 decides only what the exact arithmetic of the host would."""
    pairs = "{ { ?s :p ?v } SEQ { ?s :q ?w } "
    for pattern in (f"FILTER({condition})", f"FILTER(!({condition}))", f"BIND({condition} AS ?x)"):
        agree(f"{query_strategies.PROLOGUE}SELECT * WHERE {pairs}{pattern} }}", {DEFAULT_STREAM: fed}, [])


@RANDOM
@given(query=query_strategies.triple_queries(), fed=query_strategies.triple_feeds(), background=query_strategies.facts())
def test_triple_terms(query: str, fed: list[Occurrence], background: list[Fact]) -> None:
    agree(query, {DEFAULT_STREAM: fed}, background)


@RANDOM
@given(query=query_strategies.triple_rules(), fed=query_strategies.triple_feeds())
def test_triple_terms_in_templates(query: str, fed: list[Occurrence]) -> None:
    """Fresh blank nodes have other labels in the evaluator, so solutions are compared with the nodes of each numbered."""
    queries, streams = {"q": query}, {DEFAULT_STREAM: fed}
    assume(accepted(queries))
    explain(queries, streams, [])
    found, expected = run_engine(queries, streams, [], {"q": USUAL}), run_oracle(queries, streams, [], {"q": USUAL})
    assert with_numbered_nodes(found["q"]) == with_numbered_nodes(expected["q"])


def with_numbered_nodes(solutions: Iterable[tuple[frozenset[tuple[object, ...]], Interval]]) -> list[tuple[list[str], Interval]]:
    numbered = []
    for triples, interval in solutions:
        texts = sorted((" ".join(map(str, triple)) for triple in triples), key=lambda text: LABEL.sub("_:", text))
        numbers: dict[str, str] = {}
        numbered.append(([LABEL.sub(lambda label: numbers.setdefault(label[0], f"_:{len(numbers)}"), text) for text in texts], interval))  # noqa: B023
    return sorted(numbered)


@RANDOM
@given(query=query_strategies.orderings(), fed=streams(), background=query_strategies.facts())
def test_orderings(query: str, fed: Streams, background: list[Fact]) -> None:
    """The order of emission is compared too, as the queries have ORDER BY."""
    agree(query, fed, background)


@RANDOM
@given(query=query_strategies.forms(), fed=streams(), background=query_strategies.facts())
def test_forms(query: str, fed: Streams, background: list[Fact]) -> None:
    agree(query, fed, background)


@RANDOM
@given(query=query_strategies.window_queries(), fed=streams(), background=query_strategies.facts())
def test_named_windows(query: str, fed: Streams, background: list[Fact]) -> None:
    agree(query, fed, background)


@RANDOM
@given(query=query_strategies.selects(), fed=streams(), background=query_strategies.facts(), chosen=query_strategies.settings())
def test_queries(query: str, fed: Streams, background: list[Fact], chosen: Settings) -> None:
    agree(query, fed, background, chosen)


@RANDOM
@given(
    texts=st.lists(query_strategies.rules(), min_size=1, max_size=2),
    query=query_strategies.queries(),
    fed=st.fixed_dictionaries({DEFAULT_STREAM: query_strategies.feeds(5), query_strategies.OTHER: query_strategies.feeds(2)}),
    background=query_strategies.facts(),
)
def test_rules(texts: list[str], query: str, fed: Streams, background: list[Fact]) -> None:
    queries = {f"rule{number}": text for number, text in enumerate(texts)} | {"q": query}
    assume(accepted(queries))
    explain(queries, fed, background)
    ran = run_engine(queries, fed, background)
    assert ran == run_oracle(without(queries, queries.keys() - ran.keys()), fed, background)


@RANDOM
@given(
    query=st.one_of(query_strategies.queries(), query_strategies.window_queries()), fed=streams(), background=query_strategies.facts(), data=st.data()
)
def test_arrivals(query: str, fed: Streams, background: list[Fact], data: st.DataObject) -> None:
    agree_however_it_arrives(query, fed, background, data.draw(query_strategies.arrivals(fed)))


@RANDOM
@given(
    rules=st.lists(query_strategies.rules(), min_size=2, max_size=4),
    selects=st.lists(st.one_of(query_strategies.queries(), query_strategies.window_queries()), min_size=1, max_size=3),
    fed=st.fixed_dictionaries({DEFAULT_STREAM: query_strategies.feeds(5), query_strategies.OTHER: query_strategies.feeds(4)}),
    background=query_strategies.facts(),
    data=st.data(),
)
def test_many_together(rules: list[str], selects: list[str], fed: Streams, background: list[Fact], data: st.DataObject) -> None:
    """Several rules and queries over two streams, in networks of their own or together, cut and restored."""
    texts = {f"rule{number}": text for number, text in enumerate(rules)} | {f"q{number}": text for number, text in enumerate(selects)}
    queries = {name: text for name, text in texts.items() if accepted({name: text})}
    assume(queries)
    explain(queries, fed, background)
    arrival = data.draw(query_strategies.arrivals(fed))
    log = entries(queries, fed, arrival.bodies, background, query_strategies.MAX_DELAY)
    whole = run([block(log)])
    kept = without(queries, whole.refused)
    assert results(kept, whole.emitted) == run_oracle(kept, fed, background)
    assert run(blocks(log, arrival.cuts), restore_before=arrival.restores) == whole


TOGETHER = [
    pytest.param({"q": "SELECT * WHERE { { ?s :A ?a } SEQ { ?s :B ?b } }"}, "A@1-2 B@3-4 A@4 B@4", "", id="SEQ"),
    pytest.param({"q": "SELECT * WHERE { { ?s :A ?a } OPTIONAL { ?s :K ?a } }"}, "A(x,1)@1 A(x,2)@2", "K(x,1)", id="background"),
    pytest.param(
        {
            "one": "CONSTRUCT { ?s :N 1 } WHERE { ?s :A ?a }",
            "more": "CONSTRUCT { ?s :N ?m } WHERE { { ?s :N ?n } SEQ { ?s :A ?a } BIND(?n + 1 AS ?m) }",
            "q": "SELECT ?n WHERE { ?s :N ?n FILTER(getDURATION() >= 'PT2S'^^xsd:duration) }",
        },
        "A@1 A@2 A@3 A@4",
        "",
        id="a counter over any subsequence",
    ),
    pytest.param(
        {"q": "SELECT * WHERE { { ?s :A ?a } SEQ { ?s :A ?b } WITHIN 'PT0S'^^xsd:duration WITHOUT { ?s :A ?b } }"},
        "A(1)@0 A(1)@1",
        "A(2)",
        id="what blocks may lie before the interval of a join with a timeless one",
    ),
    pytest.param(
        {"r": "CONSTRUCT { :x :N ?s . ?b :N ?s } WHERE { ?s :B ?b }", "q": "SELECT * WHERE { ?x :N ?s }"},
        "B(x,1)@1 B(x,2)@1",
        "",
        id="triples that are none of RDF do not tell constructed solutions apart",
    ),
    pytest.param(
        {"r": "CONSTRUCT { ?s ?p ?unbound . ?b ?p ?s } WHERE { ?s ?p ?b FILTER(?p = :C) }"},
        "C(x,y)@1",
        "",
        id="variables as predicates of a template",
    ),
]


@pytest.mark.parametrize(("queries", "feed", "facts"), TOGETHER)
def test_examples(queries: dict[str, str], feed: str, facts: str) -> None:
    texts = {name: query_strategies.PROLOGUE + text for name, text in queries.items()}
    fed, background = {DEFAULT_STREAM: parse_feed(feed)}, parse_facts(facts)
    assert run_engine(texts, fed, background) == run_oracle(texts, fed, background)
    assert run_engine(texts, fed, background)

"""Static rules derive what a naive fixpoint derives, whatever comes and goes."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from engine.background.fact_store import FactIndex, numbers_of
from engine.background.static_rules.derivations import NegativeRecursion, RegisteredRule
from engine.dictionary.term_dictionary import TermTable
from engine.messages import ADD, DROP, REPLACE
from epsparql import algebra as a
from epsparql import parse
from tests.engine.static_rules import naive_rules as naive

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
RDF_PROPERTY = "http://www.w3.org/1999/02/22-rdf-syntax-ns#Property"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
PREDICATES, SCHEMA = naive.PREDICATES, naive.SCHEMA
NODES = ("n0", "n1", "n2", "n3")


Rules = dict[int, tuple[int, naive.Rule]]
"""By its name, the number of a rule's registration and the rule."""


def registered(rules: Rules) -> list[RegisteredRule]:
    found = []
    for name, (number, rule) in rules.items():
        query = parse(rule.text()).query
        assert isinstance(query, a.BackgroundRule)
        found.append(RegisteredRule(number, f"rule{name}", rule.text(), "all", query))
    return found


def written(name: str) -> str:
    if name == "a":
        return f"<{RDF_TYPE}>"
    if name in SCHEMA:
        return f"<{RDFS}{name}>"
    return f'"{name}"^^<{INTEGER}>' if name.isdigit() else f"<http://e/{name}>"


def graph_iri(name: str) -> str:
    return f"http://e/{name}" if name else ""


def short(text: str) -> str:
    if text.startswith('"'):
        return text[1:].partition('"')[0]
    text = text[1:-1]
    return {RDF_TYPE: "a", RDF_PROPERTY: "Property"}.get(text) or text.removeprefix("http://e/").removeprefix(RDFS)


def holding(index: FactIndex) -> set[naive.Fact]:
    """Return what holds of the test's own predicates and classes."""
    text = index.terms.text
    quads = {(short(text(s)), short(text(p)), short(text(o)), short(text(g)) if g else "") for s, p, o, g in index.everything().tolist()}
    return {quad for quad in quads if quad[1] in PREDICATES or (quad[1] == "a" and quad[2] in naive.CLASSES)}


variables = st.sampled_from(["?x", "?y", "?z"])
subjects = st.one_of(variables, variables, st.sampled_from(NODES))
graphs = st.sampled_from([None, None, None, "g1", "h1"])


@st.composite
def matches(draw: st.DrawFn, terms: st.SearchStrategy[str] = variables) -> naive.Match:
    graph = draw(graphs)
    if draw(st.integers(0, 3)):
        return naive.Match(draw(terms), draw(st.sampled_from(PREDICATES)), draw(terms), graph)
    return naive.Match(draw(terms), "a", draw(st.sampled_from([*naive.CLASSES, *naive.CLASSES, "?x"])), graph)


@st.composite
def folds(draw: st.DrawFn, bound: list[str]) -> naive.Fold:
    function = draw(st.sampled_from(["COUNT", "COUNT", "SUM", "MIN", "MAX"]))
    argument = None if function == "COUNT" and draw(st.booleans()) else draw(st.sampled_from(bound))
    return naive.Fold(function, draw(st.sampled_from([None, *bound, *bound])), argument, argument is not None and draw(st.booleans()))


@st.composite
def rules(draw: st.DrawFn) -> naive.Rule:
    body = tuple(draw(st.lists(matches(subjects), min_size=1, max_size=3)))
    bound = sorted({v for m in body for v in (m.subject, m.object) if v.startswith("?")})
    sums: tuple[tuple[str, int, str], ...] = ()
    if bound and draw(st.integers(0, 5)) == 5:
        sums = ((draw(st.sampled_from(bound)), draw(st.integers(1, 2)), "?w"),)
    compared = draw(st.booleans())
    less = ((draw(st.sampled_from(bound)), "?w"),) if sums and compared else ()
    group = st.lists(matches(st.one_of(subjects, st.just("?u"))), min_size=1, max_size=2).map(tuple)
    absent: tuple[tuple[naive.Match, ...], ...] = draw(st.sampled_from([(), ()]) | st.tuples(group))
    if bound and not sums and not draw(st.integers(0, 4)):
        fold = draw(folds(bound))
        keys = [fold.key] if fold.key else []
        head = naive.Match(
            draw(st.sampled_from([*keys, *NODES[:1]])),
            draw(st.sampled_from(PREDICATES)),
            draw(st.sampled_from(["?n", "?n", *keys])),
            draw(st.sampled_from(["g1", "g2"])),
        )
        return naive.Rule(head, body, absent, fold=fold)
    names = st.sampled_from([*bound, *NODES[:1]])
    writable = st.sampled_from([*bound, *(["?w"] * 3 if sums else []), *NODES[:1]])
    graph = draw(st.sampled_from(["g1", "g2"]))
    if draw(st.integers(0, 3)):
        head = naive.Match(draw(names), draw(st.sampled_from(PREDICATES)), draw(writable), graph)
    else:
        head = naive.Match(draw(names), "a", draw(st.sampled_from(naive.CLASSES)), graph)
    return naive.Rule(head, body, absent, less, sums)


facts = st.one_of(
    st.tuples(st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from([*NODES, "1", "2", "3"])),
    st.tuples(st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from(NODES)),
    st.tuples(st.sampled_from(NODES), st.just("a"), st.sampled_from(naive.CLASSES)),
)
schema = st.one_of(
    st.tuples(st.sampled_from(PREDICATES), st.just("subPropertyOf"), st.sampled_from(PREDICATES)),
    st.tuples(st.sampled_from(naive.CLASSES), st.just("subClassOf"), st.sampled_from(naive.CLASSES)),
    st.tuples(st.sampled_from(PREDICATES), st.sampled_from(["domain", "range"]), st.sampled_from(naive.CLASSES)),
)
names_of_graphs = st.sampled_from(["", "h1", "h2", "g1"])
changes = st.one_of(
    st.tuples(st.just(ADD), names_of_graphs, st.lists(facts, min_size=1, max_size=8)),
    st.tuples(st.just(ADD), names_of_graphs, st.lists(st.one_of(facts, facts, schema), min_size=1, max_size=4)),
    st.tuples(st.sampled_from([DROP, REPLACE]), names_of_graphs, st.lists(facts, max_size=3)),
    st.tuples(st.just("rule"), st.integers(0, 5), rules()),
    st.tuples(st.just("unrule"), st.integers(0, 5), st.none()),
)


def expect_refusal(change: Callable[[], FactIndex], rule_set: Rules) -> None:
    """Rules without strata are refused, but for loops through MIN and MAX, which may stand (test_best_values.py)."""
    with suppress(NegativeRecursion):
        change()
        assert any(rule.fold is not None and rule.fold.function in ("MIN", "MAX") for _, rule in rule_set.values())


@given(st.lists(changes, min_size=2, max_size=10))
def test_rules_derive_what_a_naive_fixpoint_derives(steps: list[tuple[str, object, object]]) -> None:
    index = FactIndex(TermTable())
    facts: set[naive.Fact] = set()
    rule_set: Rules = {}
    for step, (kind, name, what) in enumerate(steps, 1):
        if kind in ("rule", "unrule"):
            wanted = {k: v for k, v in rule_set.items() if k != name}
            if kind == "rule":
                wanted[name] = step, what  # type: ignore[index, assignment]
            if naive.closed(facts, [rule for _, rule in wanted.values()]) is None:
                expect_refusal(partial(index.with_rules, registered(wanted)), wanted)
                continue
            index, rule_set = index.with_rules(registered(wanted)), wanted
        else:
            triples = [(s, p, o, str(name)) for s, p, o in what]  # type: ignore[attr-defined]
            after = set(facts) if kind == ADD else {fact for fact in facts if fact[3] != name}
            after |= set(triples) if kind != DROP else set()
            expected = naive.closed(after, [rule for _, rule in rule_set.values()])
            text = "".join(f"{written(s)} {written(p)} {written(o)} .\n" for s, p, o, _ in triples)
            if expected is None:
                expect_refusal(partial(index.with_change, graph_iri(str(name)), numbers_of(text, index.terms), kind), rule_set)
                continue
            facts, index = after, index.with_change(graph_iri(str(name)), numbers_of(text, index.terms), kind)
        expected = naive.closed(facts, [rule for _, rule in rule_set.values()])
        assert expected is not None
        assert holding(index) == {f for f in expected if f[1] in PREDICATES or (f[1] == "a" and f[2] in naive.CLASSES)}
        assert index.overflow is None

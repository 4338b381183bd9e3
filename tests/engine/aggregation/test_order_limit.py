"""Solution modifiers and ASK by themselves: tables with answers derived by hand from semantics.md section 7."""

import pytest

from engine.aggregation import AskCollector, Collector, ModifiersCollector, Projection
from engine.aggregation.row_batch import no_rows
from engine.dictionary.sort_keys import sort_key
from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from epsparql import algebra as a
from epsparql.algebra import Modifiers, OrderKey
from epsparql.terms import Variable
from tests.engine.aggregation.harness import RANK, G, Host, K, V, W, rows, run, shown, term

# ---------------------------------------------------------------- the order
IN_ORDER = [
    "?", "_:a", "_:b", "a", "a/b", "b", "NaN", "-INF", "-1", "0.5", "1", "1.5e0", "'9007199254740992'^double", "9007199254740993", "INF",
    "''", "'a'", "'\uffff'", "'\U00010000'", "'false'^boolean", "true",
    "'2013-01-01T00:00:00Z'^dateTime", "'2013-01-01T00:00:00-01:00'^dateTime", "'-PT1S'^duration", "'PT59M'^dayTimeDuration", "'PT1H'^duration",
    "'P1M'^duration", "'a'@en", "'a'@fr", "'x'^integer",
]  # fmt: skip
EQUALS = [("1", "1.0"), ("0e0", "'-0.0'^double"), ("true", "'1'^boolean"), ("'PT1H'^duration", "'PT60M'^dayTimeDuration")]


def test_the_order_is_total() -> None:
    keys = [sort_key(None if text == "?" else term(text)) for text in IN_ORDER]
    for k, key in enumerate(keys):
        assert all(other < key for other in keys[:k])
        assert all(key < other for other in keys[k + 1 :])


@pytest.mark.parametrize(("left", "right"), EQUALS)
def test_equals_of_the_order(left: str, right: str) -> None:
    assert sort_key(term(left)) == sort_key(term(right))


def order(*keys: str) -> tuple[OrderKey, ...]:
    return tuple(OrderKey(a.Var(Variable(key.lstrip("-"))), key.startswith("-")) for key in keys)


MODIFIERS = [
    (Modifiers(), "b 1@0-1, a 2@1, a 1@0-1, a 1@2", "a 1 #1@0-1, b 1 #2@0-1, a 2 #3@1-1, a 1 #1@2-2"),
    (Modifiers(order("v")), "a 2@1, b ?@1, c 1@1, d _:x@1", "b ? #1@1-1, d _:x #2@1-1, c 1 #3@1-1, a 2 #4@1-1"),
    (Modifiers(order("-v")), "a 1@1, b 2@1, c 1.0@1", "b 2 #1@1-1, a 1 #2@1-1, c 1.0 #3@1-1"),  # equals stay in the order of terms
    (Modifiers(order("v", "-k")), "a 1@1, c 1@1, b 0@1", "b 0 #1@1-1, c 1 #2@1-1, a 1 #3@1-1"),
    (Modifiers(order("v"), offset=1, limit=2), "a 3@1, b 1@1, c 2@1, a 0@2, b 1@3", "c 2 #1@1-1, a 3 #2@1-1"),
    (Modifiers(offset=3), "a 1@1, b 1@1, a 1@2, b 1@2, c 1@2", "b 1 #1@2-2, c 1 #2@2-2"),
    (Modifiers(limit=3), "a 1@1, b 1@1, a 1@2, b 1@2, c 1@3", "a 1 #1@1-1, b 1 #2@1-1, a 1 #1@2-2"),
    (Modifiers(limit=0), "a 1@1", ""),
    (Modifiers(), "b 1@, a 1@0, a 2@-1-0", "a 2 #1@-1-0, a 1 #2@0-0, b 1 #3@"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("modifiers", "feed", "found"), MODIFIERS)
def test_modifiers(modifiers: Modifiers, feed: str, found: str, cut: bool) -> None:
    assert run(lambda: ModifiersCollector(modifiers, Projection((K, V), (K, V), False, RANK), False), feed, cut) == [*filter(None, found.split(", "))]


PER_REPORT = [
    (Modifiers(order("v"), limit=1), "a 3@1, b 1@1, a 0@2, b 1@2", "b 1 #1@1-1, a 0 #1@2-2"),
    (Modifiers(order("v"), offset=1), "a 3@1, b 1@1, a 0@2", "a 3 #1@1-1"),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("modifiers", "feed", "found"), PER_REPORT)
def test_modifiers_count_per_report(modifiers: Modifiers, feed: str, found: str, cut: bool) -> None:
    assert run(lambda: ModifiersCollector(modifiers, Projection((K, V), (K, V), False, RANK), True), feed, cut) == found.split(", ")


DISTINCT = [
    (Modifiers(), "a 1@1, a 2@1, b 1@1, a 1@0-1, a 1@2", "a@0-1, a@1-1, b@1-1, a@2-2"),
    (Modifiers(order("-v")), "a 1@1, a 3@1, b 2@1", "a@1-1, b@1-1"),
    (Modifiers(order("v"), limit=2), "b 1@1, b 2@1, a 3@1, c 4@1", "b@1-1, a@1-1"),
    (Modifiers(), "a 1@0, a 1@, a 2@", "a@, a@0-0"),  # a timeless solution stays timeless
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("modifiers", "feed", "found"), DISTINCT)
def test_distinct(modifiers: Modifiers, feed: str, found: str, cut: bool) -> None:
    assert run(lambda: ModifiersCollector(modifiers, Projection((K, V), (K,), True), False), feed, cut) == found.split(", ")


def test_of_a_query_timeless_solutions_stand() -> None:
    def make() -> Collector:
        return ModifiersCollector(Modifiers(limit=2), Projection((K, V), (K, V)), False, stands=True)

    assert run(make, "b 1@, a 1@, a 1@0, c 1@0", False) == ["a 1@0-0", "b 1@0-0"]


def test_projected_variables_that_nothing_binds() -> None:
    assert run(lambda: ModifiersCollector(Modifiers(), Projection((K, V), (W, K), True), False), "a 1@1, a 2@1", False) == ["a@1-1"]


@pytest.mark.parametrize("cut", [False, True])
def test_graphs_are_counted_apart(cut: bool) -> None:
    def make() -> Collector:
        return ModifiersCollector(Modifiers(order("-k"), limit=1), Projection((K, G), (K,), True, graph=G), False)

    host = Host(make, cut)
    assert host.run("a g@1, b g@1, a h@1, c g@2, c i@2", {}, True) == ["b g@1-1", "a h@1-1", "c i@2-2"]
    assert not host.collector.done


def test_done() -> None:
    def done_after(feed: str) -> bool:
        host = Host(lambda: ModifiersCollector(Modifiers(limit=2), Projection((K, V), (K, V)), False), cut=False)
        host.run(feed, {}, False)
        return host.collector.done

    assert not done_after("a 1@1")
    assert done_after("a 1@1, a 1@2, b 1@2")
    assert ModifiersCollector(Modifiers(limit=0), Projection((K,), (K,)), True).done
    assert not ModifiersCollector(Modifiers(limit=1), Projection((K,), (K,)), True).done


def test_a_key_that_is_an_error_comes_first() -> None:
    key = OrderKey(a.Arithmetic(a.Operator.MULTIPLY, a.Var(V), a.Constant(term("-1"))))
    assert run(lambda: ModifiersCollector(Modifiers((key,)), Projection((K, V), (K,), True), False), "a 1@1, b 2@1, c x@1", False) == [
        "c@1-1",
        "b@1-1",
        "a@1-1",
    ]


ASKED = [
    ("a 1@3-5, b 1@1-5, c 1@7", {}, True, "true@1-5"),
    ("a 1@, b 1@5", {}, True, "true@0-0"),
    ("", {4: ["?"]}, True, "false@4-4"),
    ("", {4: ["?"]}, False, ""),
]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("feed", "wakes", "finished", "found"), ASKED)
def test_ask(feed: str, wakes: dict[int, list[str]], finished: bool, found: str, cut: bool) -> None:
    host = Host(lambda: AskCollector((K, V)), cut)
    assert host.run(feed, wakes, finished) == [*filter(None, [found])]
    assert host.collector.done is bool(found)


def test_ask_may_still_be_true_after_the_end() -> None:
    collector, terms = AskCollector((K,)), TermTable()
    assert len(collector.decide(1, no_rows(1), rows([(None, ["?"])], 1, terms), 1, terms)) == 0
    assert collector.due() == c.FOREVER - 1
    found = collector.decide(9, rows([((1, 9), ["a"])], 1, terms), no_rows(1), 1, terms)
    assert [shown(int(n), terms) for n in found.cells[0]] == ["true"]
    assert collector.due() == c.FOREVER

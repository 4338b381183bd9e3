"""Events dealt out to several engines bring what one engine brings, and tables of them what the log does."""

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import epsparql
from epsparql.solutions.policies import UNRESTRICTED
from pipeline.dataframes.asked import Asked, Share
from pipeline.dataframes.engine_task import SOLVED, Solver, occurrences
from pipeline.dataframes.engine_task import solved as rows_of
from pipeline.dataframes.query_partitions import shares
from pipeline.errors import SolveFailed
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support import query_strategies
from tests.support.feeds import by_end


def table(feed: Sequence[Occurrence]) -> pa.Table:
    rows = [
        {
            "s": str(o.triple[0]),
            "p": str(o.triple[1]),
            "o": str(o.triple[2]),
            "g": None if o.graph is None else str(o.graph),
            "stream": None,
            "start": o.start,
            "end": o.end,
        }
        for o in by_end(feed)
    ]
    texts, times = (pa.field(name, pa.utf8()) for name in ("s", "p", "o", "g", "stream")), (pa.field(name, pa.int64()) for name in ("start", "end"))
    return pa.Table.from_pylist(rows, schema=pa.schema([*texts, *times]))


def solved(asked: Asked, events: pa.Table, size: int = 3) -> "Counter[str]":
    solver, found = Solver(asked), list[pa.RecordBatch]()
    for part in events.to_batches(max_chunksize=size):
        rows = pa.Table.from_batches([part])
        found += rows_of(solver.feed(occurrences(rows), None, rows.column("end")[-1].as_py()), solver.queries)
    found += rows_of(solver.finish(), solver.queries)
    return Counter(repr(row) for batch in found for row in batch.to_pylist())


def dealt(queries: Mapping[str, str], events: pa.Table, partitions: int) -> "Counter[str]":
    """Deal the events to the partitions by a function of the term and count the solutions; any function will do, and
    Spark has its own.
    """
    found: Counter[str] = Counter()
    for share in shares({name: epsparql.parse(text).query for name, text in queries.items()}, {}, background=False, partitions=partitions):
        asked = Asked(tuple((name, queries[name], UNRESTRICTED) for name in share.queries), (), "all")
        for partition in range(share.partitions):
            mine = [
                share.column is None or sum(map(ord, term)) % share.partitions == partition for term in events.column(share.column or "s").to_pylist()
            ]
            found += solved(asked, events.filter(pa.array(mine, pa.bool_())))
    return found


@given(query_strategies.queries(), query_strategies.queries(), query_strategies.feeds())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_partitions_find_what_one_engine_finds(one: str, other: str, feed: list[Occurrence]) -> None:
    queries, events = {"one": one, "other": other}, table(feed)
    try:
        whole = solved(Asked(tuple((name, text, UNRESTRICTED) for name, text in queries.items()), (), "all"), events)
    except SolveFailed:  # what this version refuses
        return
    assert dealt(queries, events, 3) == whole


DEALT = [
    pytest.param("{?s :a ?x} SEQ {?s :b ?y}", "s", id="subject"),
    pytest.param("{?x :a ?s} SEQ {?y :b ?s}", "o", id="object"),
    pytest.param("{?s :a ?x} SEQ {?x :b ?s}", None, id="now here, now there"),
    pytest.param("{?s :a ?x} SEQ {?y :b ?z}", None, id="nothing in common"),
    pytest.param("{?s :a ?x} MINUS {?s :b ?y}", "s", id="negation by the key"),
    pytest.param("{?s :a ?x} MINUS {?y :b ?x}", "o", id="negation by the object"),
    pytest.param("{?s :a ?x} FILTER EXISTS {?s :b ?y}", "s", id="EXISTS by the key"),
    pytest.param("?s :a ?x VALUES ?s { :i }", None, id="VALUES matches by itself"),
    pytest.param("?s :a+ ?x", None, id="paths go from key to key"),
    pytest.param("{ SELECT ?s (COUNT(*) AS ?n) { ?s :a ?x } GROUP BY ?s }", None, id="groups"),
]


@pytest.mark.parametrize(("pattern", "column"), DEALT)
def test_what_can_be_dealt_out(pattern: str, column: str | None) -> None:
    parsed = epsparql.parse(f"PREFIX : <http://e/> SELECT * WHERE {{ {pattern} }}").query
    assert shares({"q": parsed}, {}, background=False, partitions=4) == (Share(("q",), column, 0, 4 if column else 1),)
    assert shares({"q": parsed}, {}, background=True, partitions=4) == (Share(("q",), None, 0, 1),)
    assert shares({"q": parsed}, {"q": "recent"}, background=False, partitions=4) == (Share(("q",), None, 0, 1),)


FORMS = [
    pytest.param("SELECT DISTINCT ?s { ?s :a ?x }", "s", id="DISTINCT with the key"),
    pytest.param("SELECT DISTINCT ?x { ?s :a ?x }", "o", id="DISTINCT with another"),
    pytest.param("SELECT DISTINCT ?x { ?s :a ?x ; :b ?y }", None, id="DISTINCT without the key"),
    pytest.param("SELECT ?s { ?s :a ?x ; :b ?y } LIMIT 2", None, id="LIMIT"),
    pytest.param("CONSTRUCT { ?s :r ?x } INTO STREAM <o> { ?s :a ?x ; :b ?y }", "s", id="a template with the key"),
    pytest.param("CONSTRUCT { ?y :r ?x } INTO STREAM <o> { ?s :a ?x ; :b ?y }", None, id="a template without the key"),
    pytest.param("ASK { ?s :a ?x }", None, id="ASK"),
]


@pytest.mark.parametrize(("text", "column"), FORMS)
def test_what_is_compared_stays_together(text: str, column: str | None) -> None:
    parsed = epsparql.parse(f"PREFIX : <http://e/> {text}").query
    assert shares({"q": parsed}, {}, background=False, partitions=4) == (Share(("q",), column, 0, 4 if column else 1),)


@given(query_strategies.rules(), query_strategies.feeds())
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
def test_a_rule_s_partitions_find_what_one_engine_finds(rule: str, feed: list[Occurrence]) -> None:
    test_partitions_find_what_one_engine_finds.hypothesis.inner_test(rule, "SELECT * WHERE { ?s ?p ?o }", feed)  # type: ignore[attr-defined]


def test_rules_and_what_reads_them_stay_together() -> None:
    texts = {
        "rule": "PREFIX : <http://e/> CONSTRUCT { ?s :up ?x } INTO STREAM <up> WHERE { ?s :a ?x }",
        "reader": "PREFIX : <http://e/> SELECT * FROM STREAM <up> WHERE { ?s :up ?x }",
        "other": "PREFIX : <http://e/> SELECT * WHERE { ?s :a ?x }",
    }
    found = shares({name: epsparql.parse(text).query for name, text in texts.items()}, {}, background=False, partitions=2)
    assert found == (Share(("rule", "reader"), None, 0, 1), Share(("other",), "s", 1, 2))


def test_a_solver_goes_on_from_its_snapshot() -> None:
    text = "PREFIX : <http://e/> SELECT * WHERE { {?s :a ?x} SEQ {?s :b ?y} }"
    asked = Asked((("q", text, UNRESTRICTED),), (), "all")
    first, second = (occurrences(one_event(p, at)) for p, at in (("a", 1), ("b", 2)))
    solver = Solver(asked)
    assert not solver.feed(first, None, 1).num_rows
    (found,) = rows_of(Solver(asked, solver.snapshot()).feed(second, None, 2), solver.queries)
    assert found.schema == SOLVED
    assert found.column("binding").to_pylist() == [[("s", "<http://e/s>"), ("x", '"1"'), ("y", '"2"')]]


def one_event(predicate: str, at: int) -> pa.Table:
    row = {"s": "<http://e/s>", "p": f"<http://e/{predicate}>", "o": f'"{at}"', "g": None, "stream": None, "start": at, "end": at}
    return pa.Table.from_pylist([row], schema=table([]).schema)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        pytest.param("s", "nonsense", "'nonsense' is no term in N-Triples syntax", id="no term"),
        pytest.param("p", '"text"', "p: ", id="a literal for a predicate"),
        pytest.param("o", None, "o is null", id="null"),
        pytest.param("end", None, "start or end is null", id="no time"),
        pytest.param("end", 0, "start is after end", id="backwards"),
    ],
)
def test_rows_that_are_no_occurrences_are_named(column: str, value: object, said: str) -> None:
    event = one_event("a", 5)
    broken = event.set_column(event.column_names.index(column), event.schema.field(column), pa.array([value], event.schema.field(column).type))
    with pytest.raises(SolveFailed, match=said):
        occurrences(broken)

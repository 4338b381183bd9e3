"""A query of the suites is answered at `/sparql` as it is answered when it is registered, over the same background."""

import pyarrow as pa
import pytest

import epsparql
from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.engine import Engine
from engine.messages import ADD, OCCURRENCES, Block, Entry, Facts, Finish, Register
from engine.runtime.one_shot_query import solve_ask, solve_construct, solve_describe, solve_select
from epsparql import algebra as a
from epsparql.trees import replace_fields
from tests.soak import is_full
from tests.w3c.evaluate import dataset, make_table, text_of
from tests.w3c.results import FALSE, TRUE, Quad, statement_table, truth
from tests.w3c.suite import ROOT, Kind, SuiteCase, cases
from tests.w3c.tables import Table, same

pytestmark = pytest.mark.skipif(not ROOT.exists(), reason="the W3C suites are not beside the project")
EVALUATED = [case for case in cases() if case.kind is Kind.EVALUATION] if ROOT.exists() else []
NOW = 1_700_000_000_000_000
CHANGING = ("RAND", "UUID", "NOW", "BNODE")
"""These functions give other values at each door."""


def graphs_of(quads: list[Quad]) -> dict[str, list[tuple[str, str, str]]]:
    """The triples of each graph, by its name as log entries have it."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for s, p, o, g in quads:
        found.setdefault("" if g is None else g.strip("<>"), []).append((s, p, o))
    return found


def answer_once(query: a.Query, graphs: dict[str, list[tuple[str, str, str]]]) -> Table:
    terms = TermTable()
    known = FactIndex(terms)
    for name, triples in graphs.items():
        known = known.with_change(name, terms.intern_all([part for triple in triples for part in triple]).reshape(-1, 3), ADD)
    if query.sources.dataset is None:
        query = replace_fields(query, sources=replace_fields(query.sources, dataset=a.Dataset(("",), tuple(name for name in graphs if name))))
    match query:
        case a.Select():
            rows = [tuple(row) for part in solve_select(query, known, NOW) for row in part.to_pylist()]
            return Table(tuple(variable.name for variable in query.projection), tuple(rows))
        case a.Ask():
            return truth(TRUE if solve_ask(query, known, NOW) else FALSE)
        case a.Construct() | a.Describe():
            parts = solve_construct(query, known, NOW) if isinstance(query, a.Construct) else solve_describe(query, known, NOW)
            return statement_table((s, p, o) for part in parts for s, p, o in part.to_pylist())
    raise AssertionError("the suites have no static rules")


def answer_registered(query: a.Query, case: SuiteCase, graphs: dict[str, list[tuple[str, str, str]]]) -> Table:
    text = epsparql.render(replace_fields(query, into="out")) if isinstance(query, a.Construct) else text_of(case)
    facts = ("".join(f"{s} {p} {o} .\n" for s, p, o in triples) for triples in graphs.values())
    entries: list[Entry] = [Facts(k, name, triples) for k, (name, triples) in enumerate(zip(graphs, facts, strict=True))]
    entries += [Register(len(entries), "test", text, default_graph="unnamed"), Finish(len(entries) + 1, "default")]
    outcome = Engine().feed(Block(tuple(entries), pa.RecordBatch.from_pylist([], schema=OCCURRENCES)))
    assert not [change.reason for change in outcome.changes if change.state == "failed"]
    return make_table(query, outcome.solutions["values"].to_pylist())


@pytest.mark.parametrize("case", EVALUATED[:: 1 if is_full() else 12], ids=lambda case: case.id)
def test_one_dialect(case: SuiteCase) -> None:
    query = epsparql.parse(text_of(case)).query
    if any(function in case.text.upper() for function in CHANGING):
        pytest.skip("its values differ from time to time")
    graphs = graphs_of(dataset(case, query))
    found, wanted = answer_once(query, graphs), answer_registered(query, case, graphs)
    is_any = isinstance(query, a.Select) and query.modifiers != a.PLAIN and not query.modifiers.order
    assert len(found.rows) == len(wanted.rows) if is_any else same(replace_fields(found, ordered=False), replace_fields(wanted, ordered=False)), (
        found,
        wanted,
    )

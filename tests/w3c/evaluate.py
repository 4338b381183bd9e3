"""A test of the suites through the engine: its dataset as one message at one instant, or as background where
entailment is asked for.
"""

from typing import assert_never

import pyarrow as pa

import epsparql
from engine.engine import Engine
from engine.messages import OCCURRENCES, OWL_RL, Block, Entail, Entry, Events, Facts, Finish, Register
from epsparql import algebra as a
from epsparql.trees import replace_fields
from tests.support.ntriples import parse_statement, parse_term
from tests.w3c.results import Quad, csv_cell, expected, quads, statement_table, truth
from tests.w3c.suite import SuiteCase, is_beyond_rdfs
from tests.w3c.tables import Table, by_value, same

INSTANT = 1_700_000_000_000_000
"""The one instant of a test's message."""
EMPTY = 0
"""Where the solutions of an empty finished stream stand (semantics.md section 1)."""


def text_of(case: SuiteCase) -> str:
    """The query's text with the base of its file."""
    return f"BASE <{case.iri(case.query)}>\n{case.text}"


def difference(case: SuiteCase, *, numbers_by_value: bool = False) -> str | None:
    """How the engine's answer differs from the expected one; None if it does not."""
    try:
        query = epsparql.parse(text_of(case)).query
    except epsparql.QueryError as fault:
        return f"refused: {fault}"
    assert case.result is not None, case
    wanted = expected(case.path(case.result), case.iri(case.result), isinstance(query, a.Construct))
    instant, solutions, failures = _run(case, query)
    if failures:
        return f"failed: {failures}"
    if stray := {(start, end) for start, end, _ in solutions} - {(instant, instant)}:
        return f"intervals: {stray}"
    found = make_table(query, [values for *_, values in solutions])
    return _compared(case, query, found, wanted, numbers_by_value)


def _compared(case: SuiteCase, query: a.Query, found: Table, wanted: Table, numbers_by_value: bool) -> str | None:
    if case.result is not None and case.result.endswith(".csv"):
        found = replace_fields(found, rows=tuple(tuple(None if cell is None else csv_cell(parse_term(cell)) for cell in row) for row in found.rows))
    wanted = replace_fields(wanted, ordered=wanted.ordered and isinstance(query, a.Select) and bool(query.modifiers.order))
    if case.lax:
        found, wanted = (replace_fields(table, rows=tuple(dict.fromkeys(table.rows))) for table in (found, wanted))
    if numbers_by_value:
        found, wanted = by_value(found), by_value(wanted)
    return None if same(found, wanted) else f"found {found}\nexpected {wanted}"


def make_table(query: a.Query, solutions: list[list[str | None]]) -> Table:
    match query:
        case a.Select(projection=projection):
            return Table(tuple(variable.name for variable in projection), tuple(map(tuple, solutions)))
        case a.Construct() | a.Describe():
            statements = [parse_statement(text) for values in solutions for text in values if text is not None]
            return statement_table((str(s), str(p), str(o)) for s, p, o in statements)
        case a.Ask():
            [[value]] = solutions
            return truth(str(value))
        case a.BackgroundRule():
            raise AssertionError("a static rule has no solutions")
    assert_never(query)


def _run(case: SuiteCase, query: a.Query) -> tuple[int, list[tuple[int, int, list[str | None]]], str]:
    """The instant at which solutions are due, the solutions, and why the engine refused the query if it did."""
    quads = dataset(case, query)
    # a rule is to write into a stream that it does not read, so that it does not feed itself
    text = epsparql.render(replace_fields(query, into="out")) if isinstance(query, a.Construct) else text_of(case)
    register = Register(1, "test", text, default_graph="unnamed")
    entries: list[Entry] = [Facts(0, "", ""), register]
    if case.regimes:
        entries[0] = Facts(0, "", "".join(f"{s} {p} {o} .\n" for s, p, o, _ in quads))
        quads = []
    if is_beyond_rdfs(case):
        entries = [entries[0], Entail(1, OWL_RL), replace_fields(register, offset=2)]
    if quads:
        entries.append(Events(len(entries), "default", len(quads), INSTANT))
    entries.append(Finish(len(entries), "default"))
    rows = [{"s": s, "p": p, "o": o, "g": g, "start": INSTANT, "end": INSTANT, "late": False} for s, p, o, g in quads]
    outcome = Engine().feed(Block(tuple(entries), pa.RecordBatch.from_pylist(rows, schema=OCCURRENCES)))
    start, end = (outcome.solutions[name].cast(pa.int64()).to_pylist() for name in ("start", "end"))
    found = list(zip(start, end, outcome.solutions["values"].to_pylist(), strict=True))
    return INSTANT if quads else EMPTY, found, "; ".join(change.reason for change in outcome.changes if change.state == "failed")


def dataset(case: SuiteCase, query: a.Query) -> list[Quad]:
    """The default graph, the named graphs, and what FROM and FROM NAMED name; blank nodes are of their file."""
    named = set(case.graphs)
    if query.sources.dataset is not None:
        named |= {name.rpartition("/")[2] for name in (*query.sources.dataset.default, *query.sources.dataset.named)}
    files = [(name, None) for name in case.data] + [(name, f"<{case.iri(name)}>") for name in sorted(named)]
    return [
        (s, p, o, graph or own) for number, (name, graph) in enumerate(files) for s, p, o, own in quads(case.path(name), case.iri(name), f"d{number}")
    ]

"""Some tests of the suites through the command line, in the formats that it prints: `epsparql replay --default-graph
unnamed`.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

import epsparql
from server.cli import commands
from tests.w3c.evaluate import dataset, text_of
from tests.w3c.results import csv_table, expected, solutions, statement_table
from tests.w3c.suite import ROOT, SuiteCase, cases
from tests.w3c.tables import Table, same
from verification.log_files import convert_term

AT = "2023-11-14T22:13:20Z"
PRINTED = {
    "sparql11/csv-tsv-res/csv01": "csv",
    "sparql11/csv-tsv-res/csv02": "csv",
    "sparql11/csv-tsv-res/csv03": "csv",
    "sparql11/json-res/jsonres01": "json",
    "sparql11/json-res/jsonres02": "json",
    "sparql11/json-res/jsonres03": "json",
    "sparql11/json-res/jsonres04": "json",
    "sparql10/graph/dawg-graph-03": "json",
    "sparql10/graph/dawg-graph-06": "json",
    "sparql10/dataset/dawg-dataset-08": "json",
    "sparql11/construct/constructwhere01": "turtle",
    "sparql10/construct/construct-1": "turtle",
}

pytestmark = pytest.mark.skipif(not ROOT.exists(), reason="the W3C suites are not beside the project")


def lines(case: SuiteCase) -> Iterator[str]:
    """The dataset of a test as a stream in ndjson: what is in no graph is one message."""
    quads = dataset(case, epsparql.parse(text_of(case)).query)
    yield json.dumps({"triples": "".join(f"{s} {p} {o} .\n" for s, p, o, g in quads if g is None), "at": AT})
    for s, p, o, g in quads:
        if g is not None:
            yield json.dumps({"s": s, "p": p, "o": o, "g": g, "at": AT})


def printed(fmt: str, text: str) -> Table:
    match fmt:
        case "csv":
            table = csv_table(text.splitlines(keepends=True))
            assert {row[1:3] for row in table.rows} == {(AT, AT)}
            return table.columns(table.variables[3:])
        case "json":
            return solutions(text.encode(), ox.QueryResultsFormat.JSON)
        case _:
            read = ox.parse(text.encode(), format=ox.RdfFormat.TURTLE)
            return statement_table((str(convert_term(t.subject)), str(convert_term(t.predicate)), str(convert_term(t.object))) for t in read)


@pytest.mark.parametrize("case", [case for case in cases() if case.id in PRINTED], ids=lambda case: case.id)
def test_replay(case: SuiteCase, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, stream, fmt = tmp_path / "q.rq", tmp_path / "s.ndjson", PRINTED[case.id]
    query.write_text(text_of(case))
    stream.write_text("\n".join(lines(case)))
    assert commands.main(["replay", "--query", str(query), "--stream", f"default={stream}", "--default-graph", "unnamed", "--format", fmt]) == 0
    assert case.result is not None
    wanted = expected(case.path(case.result), case.iri(case.result), fmt == "turtle")
    found = printed(fmt, capsys.readouterr().out)
    assert same(found, wanted), (found, wanted)

"""The queries of CSRBench (docs/rsp-benchmarks.md) give the answers that were published for other engines."""

import json
import re
from pathlib import Path

import pytest

import epsparql

ROOT = Path(__file__).parents[2]
BENCH = ROOT.parent / "shared" / "data" / "csrbench"
QUERIES = ROOT / "examples" / "csrbench"
ANSWERS = {
    1: ("csparql", 1),
    2: ("csparql", 1),
    3: ("sparqlstream", 1_001),
    4: ("csparql", 1),
    5: ("sparqlstream", 0),
    6: ("csparql", 1),
    7: ("csparql", 1),
}
"""The engine whose answer is compared, and the milliseconds by which the stream is later, since each engine opened
its first window at another time.
"""
Window = list[str]


def windows(rows: list[list[dict[str, str]]]) -> list[Window]:
    """Return the windows that have rows other than the average of nothing; numbers are compared to six digits."""
    found = [sorted(json.dumps({name: rounded(value) for name, value in row.items()}, sort_keys=True) for row in window) for window in rows]
    return [window for window in found if window and window != ['{"avg": "0.000000"}']]


def rounded(value: str) -> str:
    number = re.fullmatch(r'"?([-+.\deE]+)"?(\^\^.*)?', value)
    return f"{float(number[1]):.6f}" if number else value


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The stream as a file, by the milliseconds by which it is later."""
    bodies = [path.read_text(encoding="utf-8") for path in sorted((BENCH / "data").glob("*.ttl"))]
    assert len(bodies) == 34
    found = {}
    for later in {later for _, later in ANSWERS.values()}:
        times = [k * 1_000 + later for k in range(len(bodies))]
        lines = [json.dumps({"triples": body, "at": f"1970-01-01T00:00:{at / 1000:06.3f}Z"}) for at, body in zip(times, bodies, strict=True)]
        found[later] = tmp_path_factory.mktemp("csrbench") / "observations.ndjson"
        found[later].write_text("\n".join(lines), encoding="utf-8")
    return found


@pytest.mark.parametrize("number", ANSWERS)
def test_answers_are_those_that_were_published(number: int, streams: dict[int, Path]) -> None:
    engine, later = ANSWERS[number]
    query = (QUERIES / f"query{number}.rq").read_text(encoding="utf-8")
    rows: dict[str, list[dict[str, str]]] = {}
    for solution in epsparql.run(query, {"observations": streams[later]})["query"]:
        assert solution.binding is not None
        rows.setdefault(solution.end, []).append({name: term["value"] for name, term in solution.binding.items()})
    published = json.loads((BENCH / "answers" / f"{engine}-answer-{number}.json").read_text(encoding="utf-8"))["relations"]
    expected = [[{name: term["value"] for name, term in row["binding"].items()} for row in each["results"]["bindings"]] for each in published]
    assert windows([rows[end] for end in sorted(rows)]) == windows(expected)
    assert len(windows(expected)) >= 3

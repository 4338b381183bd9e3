"""The conformance programs of the ETALIS Language for Events, ETALIS's own examples, and the programs that are refused.

Of `conformance/papers-2` there are the cases that an answer decides: policies, and conditions on times. Routes are in
tests/engine/expressions/test_routes.py, and texts as they are printed in tests/pipeline/test_mending.py.
"""

import json
from pathlib import Path

import pytest

import epsparql
from engine.explain import Declared, explain
from server.cli.commands import main
from tests.etalis.programs import Reported, reported, run_files, run_program

pytestmark = pytest.mark.slow

SHARED = Path(__file__).resolve().parents[3] / "shared/conformance"
CASES = sorted((SHARED / "ele").glob("case*"))
EXAMPLES = sorted(path.parent for path in (SHARED / "etalis-examples").glob("*/program.event"))
PAPERS = SHARED / "papers-2"
REFUSED = sorted(path.parent for path in (SHARED / "ele/refused").glob("*/program.event"))
USER_FAULT = 2


def test_the_suites_are_there() -> None:
    assert (len(CASES), len(EXAMPLES), len(REFUSED)) == (100, 46, 34)


@pytest.mark.parametrize("directory", [*CASES, *EXAMPLES], ids=lambda path: path.name)
def test_programs(directory: Path) -> None:
    found = run_files(directory)
    assert set(found) == {reported(line) for line in (directory / "expected.ndjson").read_text().splitlines()}
    assert len(found) == len(set(found)), "no event comes twice"


@pytest.mark.parametrize("directory", REFUSED, ids=lambda path: path.name)
def test_refusals(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is refused before anything runs, with its place and its reason."""
    wanted = json.loads((directory / "refused.json").read_text())
    code = main(["replay", "--rules", str(directory / "program.event"), "--stream", str(directory / "stream.stream")])
    out, err = capsys.readouterr()
    assert (code, out) == (USER_FAULT, "")
    assert wanted["names"] in err
    if wanted["line"] is not None:
        assert f"program.event:{wanted['line']}:" in err


# ---------------------------------------------------------------- the papers
POLICIES: list[tuple[str, str, list[tuple[int, ...]]]] = [
    ("recent", "recent", [(2, 15, 50), (3, 40, 80)]),
    ("recent", "recent-longest", [(1, 1, 50), (3, 40, 80)]),
    ("recent", "recent-by ?X", [(2, 15, 50), (3, 40, 80)]),
    ("and", "unrestricted", [(1, 3, 1, 3), (1, 4, 1, 4), (2, 3, 2, 3), (2, 4, 2, 4)]),
    ("and", "chronological", [(1, 3, 1, 3), (2, 4, 2, 4)]),
    ("and", "recent", [(2, 3, 2, 3), (2, 4, 2, 4)]),
]
"""A program and a stream, a policy, and the events: their arguments, start and end in seconds."""


def written_policy(name: str, policy: str) -> str:
    return f"set_etalis_flag(event_consumption_policy, '{policy}').\n{(PAPERS / 'policies' / f'{name}.event').read_text()}"


def events_of(found: list[tuple[int, ...]]) -> list[Reported]:
    times = [[f"1970-01-01T00:{at // 60:02d}:{at % 60:02d}Z" for at in each[-2:]] for each in found]
    return [Reported("e", json.dumps(list(each[:-2])), *at) for each, at in zip(found, times, strict=True)]


@pytest.mark.parametrize(("name", "policy", "found"), POLICIES)
def test_policies(tmp_path: Path, name: str, policy: str, found: list[tuple[int, ...]]) -> None:
    stream = (PAPERS / "policies" / f"{name}.stream").read_text()
    assert sorted(run_program(tmp_path, written_policy(name, policy), stream)) == sorted(events_of(found))


BOUNDS = [
    ("theta", "2026-01-01T01:00:00Z", "for ever"),
    ("theta2", None, "less than PT1H after its end"),  # b is exactly an hour after a
    ("back", "2026-01-01T05:00:00Z", "less than P1D after its end"),
]
"""A query, the end of its solution, and how long its join keeps the left side over events that do not last."""


@pytest.mark.parametrize(("name", "end", "kept"), BOUNDS)
def test_conditions_on_times(capsys: pytest.CaptureFixture[str], name: str, end: str | None, kept: str) -> None:
    query = PAPERS / "time-bounds" / f"{name}.rq"
    assert main(["replay", "--query", str(query), "--stream", str(PAPERS / "time-bounds" / "s.ndjson")]) == 0
    assert [json.loads(line)["end"] for line in capsys.readouterr().out.splitlines()] == ([] if end is None else [end])
    plan = explain(epsparql.parse(query.read_text()).query, declared=Declared(instants=True)).plan
    assert [[each.time for each in step.keeps] for step in plan if step.operator == "AND"] == [[f"kept {kept}", "not stored"]]

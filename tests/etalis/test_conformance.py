"""The conformance programs of the ETALIS Language for Events, ETALIS's own examples, and the programs that are refused."""

import json
from pathlib import Path

import pytest

from server.cli.commands import main
from tests.etalis.programs import reported, run_files

pytestmark = pytest.mark.slow

SHARED = Path(__file__).resolve().parents[3] / "shared/conformance"
CASES = sorted((SHARED / "ele").glob("case*"))
EXAMPLES = sorted(path.parent for path in (SHARED / "etalis-examples").glob("*/program.event"))
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

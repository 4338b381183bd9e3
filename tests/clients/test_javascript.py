"""The JavaScript package: its types, its own tests in Node.js, and the form in which it is published."""

import json
from pathlib import Path

import pytest

from tests.clients.conftest import NODE, ROOT, TOKEN, run_npm, run_process

pytestmark = pytest.mark.slow
WITHOUT_WEBSOCKETS = "--no-experimental-websocket"
"""Node 20 has no WebSocket: this option makes a later one like it."""


def test_types_are_those_of_openapi(package: Path) -> None:
    known = (package / "src" / "openapi.ts").read_text(encoding="utf-8")
    run_npm("run", "types", cwd=package)
    assert (package / "src" / "openapi.ts").read_text(encoding="utf-8") == known, "make clients"


def test_the_tests_have_correct_types(package: Path) -> None:
    run_npm("exec", "--", "tsc", "--project", "tests", cwd=package)


def test_terms(package: Path) -> None:
    run_process(str(NODE), "--test", "tests/terms.test.ts", cwd=package)


@pytest.mark.parametrize("options", [(), (WITHOUT_WEBSOCKETS, "--test-name-pattern=over HTTP")], ids=["with WebSockets", "without"])
def test_all_that_a_client_does(package: Path, guarded: str, options: tuple[str, ...]) -> None:
    run_process(str(NODE), *options, "--test", "tests/server.test.ts", cwd=package, EPSPARQL_URL=guarded, EPSPARQL_TOKEN=TOKEN)


def test_what_is_published(package: Path, tmp_path: Path) -> None:
    """The tarball has code and types without dependencies, and works where it is installed."""
    (packed,) = json.loads(run_npm("pack", "--json", "--pack-destination", str(tmp_path), cwd=package))
    files = {file["path"] for file in packed["files"]}
    assert {"package.json", "README.md", "LICENSE", "dist/index.js", "dist/index.d.ts"} <= files
    assert {path.partition("/")[0] for path in files} == {"package.json", "README.md", "LICENSE", "dist"}
    assert "dependencies" not in json.loads((package / "package.json").read_text())
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}')
    run_npm("install", "--no-audit", "--no-fund", packed["filename"], cwd=tmp_path)
    script = 'import { Client } from "epsparql"; console.log(typeof new Client("http://127.0.0.1:8080").feed)'
    assert run_process(str(NODE), "--input-type=module", "--eval", script, cwd=tmp_path) == "function\n"


def test_versions_are_one() -> None:
    declared = json.loads((ROOT / "clients" / "js" / "package.json").read_text())["version"]
    assert f'\nversion = "{declared}"\n' in (ROOT / "pyproject.toml").read_text()

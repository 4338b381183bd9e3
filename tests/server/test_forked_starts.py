"""Servers that tests start as forks: for the test, and for the system, each is a process as if it had been started by
exec.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from server.child_server import Child
from tests.server.conftest import DEADLINE_S, until
from tests.server.forked_starts import ForkedStarts

pytestmark = pytest.mark.slow


def state_of(pid: int) -> tuple[str, int]:
    """Return the letter of a process's state and the number of its parent."""
    state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return state, int(parent)


def test_a_fork_stops_goes_on_and_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "of-the-test")
    with Child(tmp_path / "data", "inprocess", tmp_path / "log") as child:
        process = Path(f"/proc/{child.pid}")
        assert b"tests.server.forked_starts" in (process / "cmdline").read_bytes()
        assert (process / "fd" / "2").resolve() == tmp_path / "log"
        assert state_of(child.pid)[1] == os.getpid()
        os.kill(child.pid, signal.SIGSTOP)
        until(lambda: state_of(child.pid)[0] == "T", "it stands still")
        os.kill(child.pid, signal.SIGCONT)
        assert httpx.get(f"{child.url}/livez", timeout=DEADLINE_S).status_code == 200
        child.kill()
        assert not child.alive
        assert not process.exists()
    assert child.stop() == -signal.SIGKILL


def test_the_code_and_words_of_a_fork_arrive(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "server.cli", "serve", "--runner", "neither"]
    refused = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "must be one of spark, inprocess" in refused.stderr


def test_what_is_read_while_a_server_loads_needs_a_new_process(forked_starts: ForkedStarts) -> None:
    here = dict(os.environ)
    assert forked_starts.may_fork(here | {"OMP_NUM_THREADS": "1"})
    for name in ("EPSPARQL_FUNCTIONS", "NUMBA_BOUNDSCHECK", "HOME"):
        assert not forked_starts.may_fork(here | {name: "another"})

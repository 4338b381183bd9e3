"""A test that hangs is named and ended, and the other tests run."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
TESTS = """
import threading
import pytest

@pytest.fixture
def held():
    yield
    threading.Event().wait()

def test_that_waits(): threading.Event().wait()
def test_whose_fixture_waits(held): pytest.fail("and so pytest's own limit ends")
def test_that_passes(): threading.Thread(target=lambda: threading.Event().wait(60)).start()
"""


def test_a_test_that_hangs_is_ended(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-n", "1", "--dist", "loadfile", "-c", "pyproject.toml"]
    told = subprocess.run(
        [*command, "-o", "faulthandler_timeout=2", str(tmp_path)], capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )
    assert "crashed while running 'test_it.py::test_that_waits'" in told.stdout, told.stdout + told.stderr
    assert "crashed while running 'test_it.py::test_whose_fixture_waits'" in told.stdout
    assert " failed, 1 passed" in told.stdout
    for place in ("in test_that_waits", "in held"):
        assert place in told.stderr

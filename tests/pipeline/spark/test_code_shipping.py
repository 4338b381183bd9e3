"""The code that executors get: the one that was shipped, from a path that stays, or the same one where it is installed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pipeline.spark import code_shipping

ROOT = Path(__file__).parents[3]
ASK = "import importlib.util; print(importlib.util.find_spec('engine').origin)"


@pytest.fixture
def executor(tmp_path: Path) -> Path:
    """A directory in which Spark has unpacked the archive."""
    code_shipping.pack(tmp_path / "archive.zip")
    with zipfile.ZipFile(tmp_path / "archive.zip") as archive:
        archive.extractall(tmp_path / "executor" / code_shipping.NAME)
    return tmp_path / "executor"


def asked(executor: Path, *more: Path, path: str = code_shipping.NAME) -> Path:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([path, *map(str, more)]), "EPSPARQL_CACHE": str(executor.parent / "cache")}
    answer = subprocess.run([sys.executable, "-c", ASK], cwd=executor, env=environment, capture_output=True, text=True, check=True)
    assert not answer.stderr
    return Path(answer.stdout.strip())


def test_what_was_shipped_is_imported_from_a_path_that_stays(executor: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "engine").mkdir(parents=True)
    (other / "engine" / "__init__.py").write_text("")
    first = asked(executor, other)
    assert first.is_relative_to(tmp_path / "cache")
    assert first.read_bytes() == (ROOT / "engine" / "__init__.py").read_bytes()
    executor.rename(tmp_path / "another")
    assert asked(tmp_path / "another", other) == first
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [first.parents[1].name]


def test_what_is_installed_alike_is_left_alone(executor: Path, tmp_path: Path) -> None:
    assert asked(executor, ROOT) == ROOT / "engine" / "__init__.py"
    assert not (tmp_path / "cache").exists()

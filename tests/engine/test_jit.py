"""Tests of the cache of compiled code (engine/jit.py): its key is what the files say, not where they stand; and of code that was compiled elsewhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import numba
import pytest

from engine.jit import BASELINE, SHIPPED

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ADDER = """
from pathlib import Path
from engine.jit import Native

native = Native.of(Path(__file__).parent)

@native.jit
def scaled(row, factor):
    for k in range(len(row)):
        row[k] = row[k] * factor + factor{more}

@native.entry_point
def total(row, factor):
    scaled(row, factor)
    return row.sum()

@native.jit
def item_of(row, n):
    return row[n]

@native.entry_point
def item(row, n):
    return item_of(row, n)
"""
CALL = """
import numpy as np
from engine.jit import has_code
from adders import total
stored = has_code(total)
row = np.arange(1000) / 7
print(total(row, 1.1).hex(), row[-1].hex(), int(stored), sum(total.stats.cache_hits.values()))
"""
BEYOND = """
import numpy as np
from adders import item, item_of
try:
    item(np.arange(2), 2)
except IndexError as fault:
    print(fault, bool(item_of.signatures))
"""
NOT_WRITABLE = "/proc/epsparql"
"""Nobody can make this directory, not even root."""
HOST = {name for name, there in llvmlite.binding.get_host_cpu_features().items() if there}
portable = pytest.mark.skipif(not {name[1:] for name in BASELINE[1].split(",")} <= HOST, reason=f"this processor is no {BASELINE[0]}")


class Machine:
    """A place where the package `adders` and a copy of engine/jit.py are installed, with a cache of its own."""

    def __init__(self, place: Path, more: str = "") -> None:
        self.installed, self.cache, self.work = place / "packages", place / "cache", place / "work"
        self.engine = self.installed / "engine"
        self.engine.mkdir(parents=True)
        (self.engine / "__init__.py").touch()
        shutil.copy(ROOT / "engine" / "jit.py", self.engine)
        (self.installed / "adders").mkdir()
        (self.installed / "adders" / "__init__.py").write_text(ADDER.format(more=more))
        self.work.mkdir()

    def ship(self, shipped: Path) -> None:
        shutil.copytree(shipped, self.engine / SHIPPED.name)

    def call(self, program: str = CALL, **variables: str) -> list[str]:
        """Run `program` in a new process, which prints two results, whether the function had code, and the number of its cache hits."""
        environment = os.environ | {"EPSPARQL_CACHE": str(self.cache), "PYTHONPATH": str(self.installed)} | variables
        done = subprocess.run([sys.executable, "-c", program], cwd=self.work, env=environment, capture_output=True, text=True, check=True)
        assert (done.stderr, list(self.work.iterdir())) == ("", [])
        return done.stdout.split()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Machine, list[str]]:
    """A machine on which the function was compiled, and what it gave there."""
    machine = Machine(tmp_path_factory.mktemp("first"))
    return machine, machine.call()


def test_a_copy_of_the_same_files_elsewhere_finds_the_compiled_code_and_changed_files_do_not(
    first: tuple[Machine, list[str]], tmp_path: Path
) -> None:
    second, changed = Machine(tmp_path / "second"), Machine(tmp_path / "changed", more=" + 1")
    second.cache = changed.cache = first[0].cache
    assert first[1][2:] == ["0", "0"]
    assert second.call() == [*first[1][:2], "1", "1"]
    assert changed.call()[2:] == ["0", "0"]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Code of the package for the baseline, compiled as a wheel's is."""
    maker = Machine(tmp_path_factory.mktemp("maker"))
    maker.call(NUMBA_CPU_NAME=BASELINE[0], NUMBA_CPU_FEATURES=BASELINE[1])
    return maker.cache


@portable
def test_shipped_code_is_loaded_and_gives_what_fresh_code_gives(shipped: Path, first: tuple[Machine, list[str]], tmp_path: Path) -> None:
    user = Machine(tmp_path / "user")
    user.ship(shipped)
    before = sorted(user.engine.rglob("*.nb?"))
    assert before
    assert user.call(EPSPARQL_CACHE=NOT_WRITABLE) == [*first[1][:2], "1", "1"]
    assert sorted(tmp_path.rglob("*.nb?")) == before


@portable
def test_a_processor_that_lacks_features_of_the_baseline_compiles(shipped: Path, first: tuple[Machine, list[str]], tmp_path: Path) -> None:
    user = Machine(tmp_path / "user")
    user.ship(shipped)
    assert user.call(NUMBA_ENABLE_AVX="0", EPSPARQL_CACHE=NOT_WRITABLE) == [*first[1][:2], "0", "0"]


@portable
def test_another_version_of_numba_compiles(shipped: Path, first: tuple[Machine, list[str]], tmp_path: Path) -> None:
    user = Machine(tmp_path / "user")
    user.ship(shipped)
    for index in user.engine.rglob("*.nbi"):
        written = index.read_bytes()
        index.write_bytes(written.replace(numba.__version__.encode(), b"0" * len(numba.__version__)))
        assert index.read_bytes() != written
    assert user.call() == [*first[1][:2], "0", "0"]


def test_bounds_are_checked_in_the_functions_that_an_entry_point_calls(tmp_path: Path) -> None:
    """Also where the entry point comes from the cache, and the function is not compiled again."""
    machine = Machine(tmp_path / "machine")
    for compiled in (True, False):
        assert " ".join(machine.call(BEYOND, NUMBA_BOUNDSCHECK="1")) == f"index is out of bounds {compiled}"

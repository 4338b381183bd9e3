"""Tests of the cache of compiled code (engine/jit.py): its key is what the files say, not where they stand."""

import os
import subprocess
import sys
from pathlib import Path

ADDER = """
from pathlib import Path
import numpy as np
from engine.jit import Native

native = Native.of(Path(__file__).parent)

@native.jit
def sum_of(pair, n):
    return pair[0] + pair[n]

@native.entry_point
def add(left, right, n):
    return sum_of(np.array([left, right]), n){more}
"""
CALL = "from adders import add; print(add(1, 2, 1), sum(add.stats.cache_hits.values()))"
BEYOND = """
from adders import add, sum_of
try:
    add(1, 2, 2)
except IndexError as fault:
    print(fault, bool(sum_of.signatures))
"""


def _call(folder: Path, cache: Path, program: str, more: str = "", **settings: str) -> str:
    """Write the package `adders` into `folder`, and return what `program` prints in a new process."""
    package = folder / "adders"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(ADDER.format(more=more))
    environment = {
        **os.environ,
        **settings,
        "EPSPARQL_CACHE": str(cache),
        "PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parents[2])]),
    }
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True).stdout


def test_a_copy_of_the_same_files_elsewhere_finds_the_compiled_code_and_changed_files_do_not(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert _call(tmp_path / "first" / "packages", cache, CALL) == "3 0\n"
    assert _call(tmp_path / "second" / "packages", cache, CALL) == "3 1\n"
    assert _call(tmp_path / "second" / "packages", cache, CALL, " + 1") == "4 0\n"


def test_bounds_are_checked_in_the_functions_that_an_entry_point_calls(tmp_path: Path) -> None:
    """Also where the entry point comes from the cache, and the function is not compiled again."""
    message = "index is out of bounds"
    for compiled in (True, False):
        assert _call(tmp_path / "packages", tmp_path / "cache", BEYOND, NUMBA_BOUNDSCHECK="1") == f"{message} {compiled}\n"

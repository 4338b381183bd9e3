"""Tests of the cache of compiled code (engine/jit.py): its key is what the files say, not where they stand."""

import os
import subprocess
import sys
from pathlib import Path

ADDER = """
from pathlib import Path
from engine.jit import Native

native = Native.of(Path(__file__).parent)

@native.entry_point
def add(left, right):
    return left + right{more}
"""
CALL = "from adders import add; print(add(1, 2), sum(add.stats.cache_hits.values()))"


def _sum_and_cache_hits(folder: Path, cache: Path, more: str = "") -> list[int]:
    """Write the package `adders` into `folder`, call its function in a new process, and return its result and the number of cache hits."""
    package = folder / "adders"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(ADDER.format(more=more))
    environment = {**os.environ, "EPSPARQL_CACHE": str(cache), "PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parents[2])])}
    return [int(word) for word in subprocess.run([sys.executable, "-c", CALL], env=environment, capture_output=True, check=True).stdout.split()]


def test_a_copy_of_the_same_files_elsewhere_finds_the_compiled_code_and_changed_files_do_not(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert _sum_and_cache_hits(tmp_path / "first" / "packages", cache) == [3, 0]
    assert _sum_and_cache_hits(tmp_path / "second" / "packages", cache) == [3, 1]
    assert _sum_and_cache_hits(tmp_path / "second" / "packages", cache, more=" + 1") == [4, 0]

"""`epsparql warm` compiles parts of the kernel ahead, in two processes: those that the kernel itself then takes from the cache."""

import subprocess
import sys

from engine.warmup import BESIDE, HERE, compile_engine, compiling_beside, is_kernel_compiled


def test_the_parts_are_those_that_the_kernel_calls() -> None:
    """The kernel's own compilation, when it was first called, left each of them in the cache; so they are compiled for its types."""
    compile_engine()
    assert is_kernel_compiled()
    check = "from engine.warmup import *\nfor part in (*HERE, *BESIDE):\n    compile_parts([part])\n    assert not part[0].stats.cache_misses, part"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=300)
    assert len({function for function, _ in (*HERE, *BESIDE)}) == len(HERE) + len(BESIDE)


def test_a_compiled_kernel_begins_no_process() -> None:
    compile_engine()
    with compiling_beside():
        assert not any(part.signatures for part, _ in HERE[:1])

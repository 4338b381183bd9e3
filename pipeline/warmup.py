"""This module compiles what makes batches of bodies before it is needed.

That takes some seconds, once per machine; later it takes a fraction of one to load.

    python -m pipeline.warmup [portable]

compiles the engine too. `portable` compiles for `engine.jit.BASELINE` instead of this processor, and puts the code into the package, as a wheel has it.
"""

import os
import sys

from engine.compiling import ship_code, telling_of_functions
from engine.jit import BASELINE, config
from engine.warmup import compile_engine
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.batches.fast_path import quads_batch


def compile_formats() -> None:
    """Make a batch of one body, which compiles or loads what makes batches."""
    assert quads_batch(b"<x:s> <x:p> <x:o> .", Interval(0, 0), graphs=True) is not None


def compile_all() -> None:
    """Compile or load all compiled code, and say on standard error which functions took long to compile."""
    with telling_of_functions():
        compile_formats()
        compile_engine()


if __name__ == "__main__":
    name, features = BASELINE
    portable = sys.argv[1:] == ["portable"]
    if portable and name != config.CPU_NAME:  # numba reads its settings when it is loaded
        command = [sys.executable, "-m", "pipeline.warmup", "portable"]
        os.execve(sys.executable, command, os.environ | {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features})
    compile_all()
    if portable:
        ship_code()

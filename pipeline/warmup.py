"""This module compiles what reads bodies, deals their rows to partitions and writes solutions before it is needed.

That takes some twenty seconds, once per machine; later it takes a fraction of one to load.

    python -m pipeline.warmup [portable]

compiles the engine too. `portable` compiles for `engine.jit.BASELINE` instead of this processor, and puts the code into the package, as a wheel has it.
"""

import os
import sys

import numpy as np
import pyarrow as pa

from engine.compiling import ship_code, telling_of_functions
from engine.jit import BASELINE, config
from engine.messages import INSTANT
from engine.warmup import compile_engine
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.batches.fast_path import events_batch, odd_terms, quads_batch, used_terms
from pipeline.log.encoding.sliced_rows import encode_slices
from pipeline.solutions.json_encoder import bindings, heads, ndjson
from pipeline.solutions.result_kinds import Bindings
from pipeline.solutions.solution_ids import STORED

_QUADS = rb'<x:s> <x:p> "\u00e9" <x:g> .'
_EVENT = rb'{"s":"<x:s>","p":"<x:p>","o":"\"\u00e9\"","at":"2026-01-01T00:00:00Z"}'


def compile_formats() -> None:
    """Send one body of each kind and one solution through each entry point."""
    default = Interval(0, 0)
    quads, events = quads_batch(_QUADS, default, graphs=True), events_batch(_EVENT, default, frame=False)
    assert quads is not None
    assert events is not None
    encode_slices(b"[]", (), quads, 2)
    odd_terms(used_terms(pa.array(["<x:s>"]).dictionary_encode()).dictionary, "<")
    one, name = pa.array(np.zeros(1, np.int64)), pa.array(["q"]).dictionary_encode()
    page = pa.RecordBatch.from_arrays([name, one, one, one.view(INSTANT), one.view(INSTANT), pa.array([["<x:s>"]]), one], schema=STORED)
    ndjson(page, {"q": Bindings(("s",))})
    bindings(page, ("s",))
    heads(page)


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

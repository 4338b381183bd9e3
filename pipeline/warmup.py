"""This module compiles what reads bodies, deals their rows to partitions and writes solutions before it is needed.

That takes some twenty seconds, once per machine; later it takes a fraction of one to load.
"""

import numpy as np
import pyarrow as pa

from engine.messages import INSTANT
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

"""This module is the process of an executor that starts Spark's Python workers, with the engine loaded before.

The workers are copies of it, so they share its memory, and a worker that takes the place of a dead one starts at once.
"""

import contextlib
import gc
import os
import sys
import traceback
from importlib import import_module

from pyspark.daemon import manager

HIDDEN = "EPSPARQL_HIDDEN_MODULES"
"""This variable names modules that no task of a session uses, separated by commas."""
SHARED = ("pyspark.worker", "pipeline.runners.log_follower", "pipeline.spark.long_running_task")
"""Each worker would import these for itself."""


def load_engine() -> None:
    """Load the engine. No thread may run when workers are forked, and standard output is Spark's."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")  # read when pyarrow is imported
    with contextlib.redirect_stdout(sys.stderr):
        try:
            from pipeline.hidden_modules import hide_modules

            hide_modules(*filter(None, os.environ.get(HIDDEN, "").split(",")))
            for module in SHARED:
                import_module(module)
            from epsparql.deferred_methods import generate_all

            generate_all()
        except Exception:  # noqa: BLE001  # a task meets the same fault, and its message reaches the server
            traceback.print_exc()
    gc.collect()
    gc.freeze()  # a collection in a worker would write to the memory that it shares


if __name__ == "__main__":
    load_engine()
    manager()

"""The process that Spark's Python workers are forked from: it has loaded the engine, and a fork is safe."""

import subprocess
import sys

import pytest

from tests.support.spark_cases import compile_kernel

LOADED = """
import os, sys
from pipeline.spark.worker_daemon import load_engine
load_engine()
from engine.kernel.scheduler import run
assert run.signatures, "the kernel's code is loaded"
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.slow
def test_the_engine_is_loaded_and_no_thread_runs() -> None:
    compile_kernel()
    done = subprocess.run([sys.executable, "-W", "error", "-c", LOADED], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == "1\n", done.stderr

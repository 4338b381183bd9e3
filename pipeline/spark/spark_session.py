"""This module opens a Spark session of our own, with its JVM."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pipeline.spark.jvm import JVM_FLAGS, SOCKETS, class_archive, configuration, java_home, spark_environment, spark_home
from pipeline.spark.spark_conf import shown_settings

STOP_PATIENCE_S = 10.0


@contextlib.contextmanager
def session(
    master: str = "local[*,4]",
    scratch: Path | None = None,
    log: Path | None = None,
    *,
    flags: str = JVM_FLAGS,
    chosen: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[SparkSession]:
    """Open a Spark session of our own with its JVM, gone without trace at the end. Spark's own output goes to the
    file `log`, if any.

    Settings that the operator has `chosen` go before ours, and these before SPARK_CONF_DIR's. `flags` are the JVM's;
    the usual ones fit jobs whose rows do not pass through it. There is one session at a time in a process. The 4 in
    the master lets a failed task be retried. Raises: JavaMissing.
    """
    java, home = java_home(), spark_home()
    archive = class_archive(java, home, flags)
    with start_session(
        java, master, scratch, log, [flags, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else [flags], chosen=chosen
    ) as spark:
        yield spark


@contextlib.contextmanager
def start_session(
    java: Path,
    master: str,
    scratch: Path | None,
    log: Path | None,
    jvm: Sequence[str],
    patience_s: float = STOP_PATIENCE_S,
    chosen: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[SparkSession]:
    with contextlib.ExitStack() as stack:
        place = scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="epsparql-spark-")))
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=SOCKETS)))  # not in `place`, whose path may be too long
        (place / "sockets").symlink_to(sockets)
        output = stack.enter_context((log or Path(os.devnull)).open("ab"))
        stack.enter_context(spark_environment(java, spark_home()))
        settings = configuration(master, place, sockets, jvm, chosen)
        conf, shown = SparkConf(loadDefaults=False), SparkConf(loadDefaults=False)
        conf.setAll(list(settings.items()))
        shown.setAll(list(shown_settings(settings).items()))
        gateway = launch_gateway(shown, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
        stack.callback(_end, gateway, patience_s)
        context = SparkContext(conf=conf, gateway=gateway)
        stack.callback(quietly, context.stop)
        yield SparkSession(context)


def quietly(step: Callable[[], object]) -> None:
    """Take a step and ignore its failure: the JVM may be gone already, and py4j says so in many ways; there is
    nothing left to do then.
    """
    with contextlib.suppress(Exception):
        step()


def _end(gateway: Any, patience_s: float) -> None:
    """Close the JVM, which ends when its standard input does, and let pyspark forget it, so that a new session starts
    a new one.
    """
    quietly(gateway.shutdown)
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(patience_s)
    except subprocess.TimeoutExpired:  # a JVM that does not end is ended
        gateway.proc.kill()
        gateway.proc.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None

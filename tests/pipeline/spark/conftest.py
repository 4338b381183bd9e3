"""One Spark session for all tests here that need no more than one: a JVM takes some ten seconds to start and to end."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.spark.spark_session import session
from tests.support.spark_cases import compile_kernel


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """There is one session at a time in a process, so a test that opens its own does so in a process of its own."""
    compile_kernel()
    with session("local[4,4]") as started:
        yield started

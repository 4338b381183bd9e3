"""One Spark session for all tests here that need no more than one: a JVM takes some ten seconds to start and to end."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.spark.spark_session import session


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """There is one session at a time in a process, so a test that opens its own does so in a process of its own."""
    with session("local[4,4]") as started:
        yield started

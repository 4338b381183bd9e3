"""Slices as Spark's tasks give what one engine gives."""

import pytest
from pyspark.sql import SparkSession

from pipeline.spark import slice_tasks
from tests.pipeline.slices.test_operators import RUNS, random_bodies
from tests.support.slices import by_one_engine, list_solutions, plan_of, written_log

pytestmark = pytest.mark.slow


def test_slices_are_tasks(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short results come with the task's, long ones by the store."""
    with written_log({"q": RUNS["all pairs"]}, random_bodies(900), ["default"]) as (data, registrations, first):
        expected, _ = by_one_engine(data)
        log, planner = plan_of(data, registrations, first)
        works = log.list_work(planner.plan_exactly(5))
        found = [
            each for piece in slice_tasks.run_on_spark(spark, works, 2) for outcome in piece.outcomes for each in list_solutions(outcome.solutions)
        ]
        assert found == expected

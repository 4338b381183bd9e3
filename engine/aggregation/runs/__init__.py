"""This package evaluates runs and sessions, the windows that the data itself delimits."""

from engine.aggregation.runs.open_run import RunShape
from engine.aggregation.runs.run_collector import RunCollector

__all__ = ["RunCollector", "RunShape"]

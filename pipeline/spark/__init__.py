"""This package runs the engine on Spark.

Public names are loaded when they are asked for: the server's process uses files of this package without pyspark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from epsparql.extras import check_extra

if TYPE_CHECKING:
    from pipeline.dataframes.api import solve
    from pipeline.spark.job import cache_jvm_classes, main, run_to_end
    from pipeline.spark.spark_session import session

__all__ = ["cache_jvm_classes", "main", "run_to_end", "session", "solve"]

_HOMES = {"cache_jvm_classes": "job", "main": "job", "run_to_end": "job", "session": "spark_session"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_extra("server", "pipeline.spark")
    if name == "solve":
        return import_module("pipeline.dataframes.api").solve
    return getattr(import_module(f"pipeline.spark.{_HOMES[name]}"), name)

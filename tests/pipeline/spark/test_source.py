"""The planning side of the source of solutions, without Spark: where micro-batches end, and what is known of the next one."""

from itertools import pairwise
from pathlib import Path
from random import Random

from pyspark.sql.streaming.datasource import ReadMaxRows

from pipeline.log import LogWriter
from pipeline.spark.source import Range, SolutionStream
from tests.support import spark_cases as cases


def planned(stream: SolutionStream, position: int) -> list[Range]:
    """All that the log has now."""
    found = []
    while (end := stream.latestOffset({"position": position}, ReadMaxRows(stream.max_rows))["position"]) > position:
        (part,) = stream.partitions({"position": position}, {"position": end})
        assert isinstance(part, Range)
        found.append(part)
        position = end
    return found


def test_the_next_batch_is_told_of_where_the_log_has_the_whole_of_it(tmp_path: Path) -> None:
    with LogWriter(tmp_path, cases.frozen_clock) as log:
        cases.sequences(log)
        stream = SolutionStream({"data": str(tmp_path), "maxRows": "40"})
        parts = planned(stream, 0)
        assert len(parts) > 5
        assert all(part.then == after.hi for part, after in pairwise(parts[:-1]))
        assert [part.then for part in parts[-2:]] == [None, None]  # the last may yet grow
        cases.readings(log, range(200, 300), Random(3))
        parts = planned(stream, parts[-2].hi)
        assert all(part.then in (None, after.hi) for part, after in pairwise(parts))
        assert parts[0].then is not None


def test_where_a_stream_is_to_end_its_last_batch_is_known_too(tmp_path: Path) -> None:
    with LogWriter(tmp_path, cases.frozen_clock) as log:
        cases.sequences(log)
        stream = SolutionStream({"data": str(tmp_path), "maxRows": "40"})
        stream.prepareForTriggerAvailableNow()
        cases.readings(log, range(200, 300), Random(3))
        parts = planned(stream, 0)
        assert all(part.then == after.hi for part, after in pairwise(parts))
        assert parts[-1].hi == stream.last
        assert parts[-1].then is None or parts[-1].then <= parts[-1].hi

"""This module holds queries to their quotas over all partitions, and appends the entry of the log that stops one
everywhere.

A partition stops a query that is beyond its quota there (docs/decisions/0024-buckets.md).
"""

from collections.abc import Callable, Collection
from pathlib import Path

from engine.messages import Fail, StateChange
from engine.state_size import excess
from pipeline.log import LogWriter
from pipeline.partition_count import recorded
from pipeline.runners.engine_report import EngineReport


class QuotaTotals:
    """Appends the entries that stop queries in all partitions. One thread at a time."""

    def __init__(self, data_dir: Path | str, log: LogWriter, read_report: Callable[[], EngineReport | None]) -> None:
        self._data, self._log, self._read_report = data_dir, log, read_report
        self._stopped = set[int]()

    def check(self, changes: Collection[StateChange]) -> None:
        """Stop the queries whose state is too large by the last reports of all partitions.

        Stop those, too, that failed in one by these changes of state.
        """
        if (recorded(self._data) or 1) == 1 or (report := self._read_report()) is None:
            return
        failed = {change.registered: change.reason for change in changes if change.state == "failed"}
        for query in list(self._log.catalogue.queries.values()):
            standing, registered = report.queries.get(query.registered), query.registered
            if standing is None or registered in self._stopped:
                continue
            if reason := failed.get(registered) or excess(query.name, standing.usage, standing.quota):
                self._log.append(lambda offset, k=registered, name=query.name, why=reason: Fail(offset, k, name, why))  # type: ignore[misc]
                self._stopped.add(registered)

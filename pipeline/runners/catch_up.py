"""This module lets queries that are behind read on.

It appends a log entry for each piece of the past, once the runner has read the piece before.
"""

from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from engine.messages import CatchUp, Micros, Revise, StateChange, Withdraw
from pipeline.log import LogReader, LogWriter

PIECE_ROWS = 25_000
"""A piece of the past has this many rows; incoming events wait for it, a few hundredths of a second."""


class Catching:
    """Appends the entries that let queries catch up. One thread at a time."""

    def __init__(self, data_dir: Path | str, log: LogWriter, patience: Micros, rows: int = PIECE_ROWS) -> None:
        """Begin. A promotion that has not caught up after `patience` (µs) is withdrawn."""
        self._data, self._log, self._patience, self._rows = data_dir, log, patience, rows
        self._asked: dict[int, int] = {}
        self._revised = -1

    def revise(self, solved: int) -> None:
        """Append the entry that has revised queries tell what has changed, once the runner has read the one before."""
        if self._revised < solved:
            self._revised = self._log.append(Revise)

    def step(self, solved: int, changes: Collection[StateChange], now: Micros) -> None:
        """Append the entries that are due, where the runner has read the log up to `solved`, with these changes of
        state.
        """
        self._withdraw(changes, now)
        leads = self._log.catalogue.leads
        self._asked = {lead: offset for lead, offset in self._asked.items() if lead in leads}
        for lead in leads:
            if self._asked.get(lead, -1) < solved:
                self._ask(lead)

    def _withdraw(self, changes: Collection[StateChange], now: Micros) -> None:
        """Withdraw the promotions that have failed, and those that go on for too long."""
        failed = {change.registered: change.reason for change in changes if change.state == "failed"}
        for query in list(self._log.catalogue.queries.values()):
            for version in query.versions[-1:]:
                late = f"it has not caught up within {self._patience // 1_000_000} s: send fewer events meanwhile, or promote from a later offset"
                reason = failed.get(version.offset, late if now - version.at > self._patience else "")
                if version.reads is not None and reason:
                    self._log.append(lambda offset, k=version.offset, name=query.name, why=reason: Withdraw(offset, k, name, why))  # type: ignore[misc]

    def _ask(self, lead: int) -> None:
        reads = self._log.catalogue.find_reads(lead)
        if reads is None:
            return
        with closing(LogReader(self._data)) as reader:
            upto = reader.advance(reads, self._rows)
            last = upto >= reader.head()
        self._asked[lead] = self._log.append(lambda offset: CatchUp(offset, lead, offset if last else upto))

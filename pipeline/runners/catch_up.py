"""This module lets queries that are behind read on. It appends a log entry for each piece of the past, once the runner has read the piece before."""

from contextlib import closing
from pathlib import Path

from engine.messages import CatchUp
from pipeline.log import LogReader, LogWriter

PIECE_ROWS = 25_000
"""A piece of the past has this many rows; incoming events wait for it, a few hundredths of a second."""


class Catching:
    """Appends the entries that let queries catch up. One thread at a time."""

    def __init__(self, data_dir: Path | str, log: LogWriter, rows: int = PIECE_ROWS) -> None:
        self._data, self._log, self._rows = data_dir, log, rows
        self._asked: dict[int, int] = {}

    def step(self, solved: int) -> None:
        """Append the entries that are due, where the runner has read the log up to `solved`."""
        leads = self._log.catalogue.leads
        self._asked = {lead: offset for lead, offset in self._asked.items() if lead in leads}
        for lead in leads:
            if self._asked.get(lead, -1) < solved:
                self._ask(lead)

    def _ask(self, lead: int) -> None:
        behind = self._log.catalogue.behind(lead)
        read = [query.reads for query in behind if query.reads is not None]
        if not read or any(query.registered == lead and query.state == "paused" for query in behind):
            return
        with closing(LogReader(self._data)) as reader:
            upto = reader.advance(min(read), self._rows)
            last = upto >= reader.head()
        self._asked[lead] = self._log.append(lambda offset: CatchUp(offset, lead, offset if last else upto))

"""Decides who may do what, and how much at once."""

import asyncio

from pipeline.log import LogWriter
from pipeline.solutions.solution_log import SolutionReader
from server.http.audit import Audit
from server.http.auth import Gate
from server.http.body_parsing import BodyBudget
from server.http.connection_limits import ConnectionLimits
from server.query_output.answer_spool import AnswerSpool
from server.settings import Settings


class Admission:
    """Holds the token check and its audit, and the limits that all requests share."""

    def __init__(self, settings: Settings, gate: Gate, log: LogWriter, solutions: SolutionReader) -> None:
        self._settings, self._log, self._solutions = settings, log, solutions
        self.gate, self.audit = gate, Audit(settings.data, settings.audit_bytes)
        self.bodies, self.connections = BodyBudget(settings), ConnectionLimits(settings)
        self.answers = AnswerSpool()
        self.one_derivation = asyncio.Semaphore(1)  # one derivation is searched for at a time
        self.one_question = asyncio.Lock()  # one question about partial matches stands at a time

    @property
    def backlog(self) -> str:
        """Return why events have to wait for the runner; empty if they do not."""
        entries, rows = self._settings.max_lag, self._settings.max_lag_rows
        position = self._solutions.position
        if 0 < entries < (lag := self._log.head() - position):
            return f"{lag} entries behind, more than max_lag={entries}"
        if 0 < rows < (lag := self._log.backlog.beyond(position)):
            return f"{lag} rows behind, more than max_lag_rows={rows}"
        return ""

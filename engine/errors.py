"""This module defines faults that the engine's caller has to handle; a query's own faults are in `epsparql.errors`."""

from typing import ClassVar


class EngineError(Exception):
    """This is the base of what the engine raises on purpose; `code` is stable."""

    code: ClassVar[str] = "engine"


class SnapshotMismatch(EngineError):
    """Signals a snapshot of another format or of another version of the engine: drop it and read the log instead."""

    code = "snapshot-mismatch"


class LogGap(EngineError):
    """Signals a block that does not start where the engine stands."""

    code = "log-gap"


class OnePartitionOnly(EngineError):
    """The log has revised queries or retractions, whose state cannot be dealt out."""

    code = "one-partition-only"


class EntailmentLimit(EngineError):
    """Signals a background of which OWL entails more triples than are kept."""

    code = "entailment-limit"


class SolverStopped(Exception):
    """Signals that what decides for a query was beyond a bound of its own, so the query is to stop: a query over what
    windows hold, or an aggregate.
    """


class Refusal(Exception):
    """Signals a pattern that this engine does not evaluate; `word` is where the query's text says it."""

    def __init__(self, message: str, word: str = "") -> None:
        super().__init__(message)
        self.word = word

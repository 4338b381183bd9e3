"""Faults of the engine that are its caller's to handle; a query's own faults are `epsparql.errors`."""

from typing import ClassVar


class EngineError(Exception):
    """Base of what the engine raises on purpose; `code` is stable."""

    code: ClassVar[str] = "engine"


class SnapshotMismatch(EngineError):
    """A snapshot of another format or of another version of the engine: drop it and read the log instead."""

    code = "snapshot-mismatch"


class LogGap(EngineError):
    """A block that does not start where the engine stands."""

    code = "log-gap"


class OneBucketOnly(EngineError):
    """The log has a query that reads the past or is paused, whose state cannot be dealt out."""

    code = "one-bucket-only"


class EntailmentLimit(EngineError):
    """A background of which OWL entails more than is kept."""

    code = "entailment-limit"


class Refusal(Exception):
    """A pattern that this engine does not evaluate; `word` is where the query's text says it."""

    def __init__(self, message: str, word: str = "") -> None:
        super().__init__(message)
        self.word = word

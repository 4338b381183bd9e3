"""These are the errors of bodies, logs and runners. `code` is stable, wording is not."""

from collections.abc import Sequence
from pathlib import Path

from engine.messages import Micros

_SHOWN = 100  # a message shows this many characters of a position or source
_NAMED = 3  # a message names this many sources


class PipelineError(Exception):
    """This class is the base of all errors that this package raises on purpose."""

    code: str = "pipeline"
    retry_after_s: int = 1
    """A refusal that may pass says after how many seconds to ask again."""


class FormatError(PipelineError):
    """A body is not what its media type says; nothing of it is accepted.

    `code` is per instance here. `line` and `column` (code points) count from 1 and are None where the body has no
    lines. `expected` says what would have been accepted at the place, or is empty.
    """

    def __init__(self, code: str, message: str, line: int | None = None, column: int | None = None, expected: str = "") -> None:
        super().__init__(code, message, line, column, expected)  # all of them: unpickling calls cls(*args)
        self.code = code
        self.message, self.line, self.column, self.expected = message, line, column, expected

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line is not None else ""
        return f"{place}{self.message}" + (f"; expected {self.expected}" if self.expected else "")


class InvalidMapping(PipelineError):
    """A mapping's document is not as it must be (400): `member` is the path to the member at fault, "" for the whole
    document.
    """

    code = "invalid-mapping"

    def __init__(self, member: str, message: str, expected: str) -> None:
        super().__init__(member, message, expected)
        self.member, self.message, self.expected = member, message, expected

    def __str__(self) -> str:
        return f"mapping{f'.{self.member}' if self.member else ''}: {self.message}" + (f"; expected {self.expected}" if self.expected else "")


class StreamFinished(PipelineError):
    """The stream has ended and takes no more events (409)."""

    code = "stream-finished"

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.stream = stream

    def __str__(self) -> str:
        return f"stream {self.stream!r} is finished and takes no more events; delete it to start again"


class NotRevisable(PipelineError):
    """A retraction came to a stream that is not revisable (409)."""

    code = "not-revisable"

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.stream = stream

    def __str__(self) -> str:
        return f"stream {self.stream!r} takes nothing back: set its `revisable` to a horizon, such as PT10M"


class TooFarAhead(PipelineError):
    """An `end` lies further beyond the clock than the stream's max_ahead allows (422).

    `row` counts from 0; `unit` says if times look like another unit.
    """

    code = "too-far-ahead"

    def __init__(self, stream: str, row: int, end: Micros, limit: Micros, unit: str | None = None) -> None:
        super().__init__(stream, row, end, limit, unit)
        self.stream, self.row, self.end, self.limit, self.unit = stream, row, end, limit, unit

    def __str__(self) -> str:
        return (
            f"occurrence {self.row + 1} ends {(self.end - self.limit) / 1e6:g} s beyond the latest end that stream {self.stream!r} "
            f"takes now; {self.unit or 'correct its time or raise max_ahead, which 0 turns off'}"
        )


class NoInstant(PipelineError):
    """An event lasts, and the stream takes only instants (422). `row` counts from 0."""

    code = "no-instant"

    def __init__(self, stream: str, row: int) -> None:
        super().__init__(stream, row)
        self.stream, self.row = stream, row

    def __str__(self) -> str:
        return (
            f"occurrence {self.row + 1} starts before it ends, and stream {self.stream!r} takes only instants: send one time, or turn off `instants`"
        )


class SubjectReturned(PipelineError):
    """A body describes a subject that another body of its stream has described, and its subjects are local (422)."""

    code = "subject-returned"

    def __init__(self, stream: str, subject: str) -> None:
        super().__init__(stream, subject)
        self.stream, self.subject = stream, subject

    def __str__(self) -> str:
        return (
            f"another body has described {self.subject[:_SHOWN]}, and the subjects of stream {self.stream!r} are local: "
            "send all triples of a subject in one body, or give this one a name of its own"
        )


class MessageKeyRefused(PipelineError):
    """A body does not have one key for each message, as its stream declares (422)."""

    code = "message-key"

    def __init__(self, stream: str, why: str) -> None:
        super().__init__(stream, why)
        self.stream, self.why = stream, why

    def __str__(self) -> str:
        return f"stream {self.stream!r} declares a message key: {self.why}; send each node with one key, or remove `key` from the stream's settings"


class SourceConflict(PipelineError):
    """A body does not continue its source from where the stream stands (409).

    `stored` is None where the stream does not know the source.
    """

    code = "source-conflict"

    def __init__(self, stream: str, source: str, after: str | None, stored: str | None) -> None:
        super().__init__(stream, source, after, stored)
        self.stream, self.source, self.after, self.stored = stream, source, after, stored

    def __str__(self) -> str:
        known = "has no position" if self.stored is None else f"is at {self.stored[:_SHOWN]!r}"
        sent = "at the source's beginning" if self.after is None else f"after {self.after[:_SHOWN]!r}"
        return f'source {self.source!r} of stream {self.stream!r} {known}, and the body begins {sent}; read on from there, or send "reset": true'


class TooManySources(PipelineError):
    """The stream stores as many source positions as it may (422)."""

    code = "too-many-sources"

    def __init__(self, stream: str, known: int) -> None:
        super().__init__(stream, known)
        self.stream, self.known = stream, known

    def __str__(self) -> str:
        return f'stream {self.stream!r} stores the positions of {self.known} sources; let it forget old ones by "position": null, or use fewer'


class SourceSilent(PipelineError):
    """So many events wait for a declared source of their stream that no more are taken from others (429)."""

    code, retry_after_s = "source-silent", 10

    def __init__(self, stream: str, sources: tuple[str, ...], waiting: int, idle_timeout: bool) -> None:
        super().__init__(stream, sources, waiting, idle_timeout)
        self.stream, self.sources, self.waiting, self.idle_timeout = stream, sources, waiting, idle_timeout

    def __str__(self) -> str:
        named = ", ".join(repr(source[:_SHOWN]) for source in self.sources[:_NAMED])
        more = f" and {len(self.sources) - _NAMED} more" if len(self.sources) > _NAMED else ""
        source, its, it = ("source", "its", "it") if len(self.sources) == 1 else ("sources", "their", "them")
        remedy = "shorten" if self.idle_timeout else "set"
        return (
            f"{self.waiting} events of stream {self.stream!r} wait for its {source} {named}{more}; "
            f"send {its} events, remove {it} from `sources`, or {remedy} `idle_timeout`"
        )


class Overloaded(PipelineError):
    """The log's queue is full, or too many idempotency keys are remembered (429)."""

    code = "overloaded"


class LogFailed(PipelineError):
    """A write to the log failed; what was not acknowledged is not in it (503)."""

    code = "log-failed"


class Locked(PipelineError):
    """Another process works on the data directory, or exports into the directory."""

    code = "locked"

    def __init__(self, path: Path, holder: str, option: str = "--data") -> None:
        super().__init__(path, holder, option)
        self.path, self.holder, self.option = path, holder, option

    def __str__(self) -> str:
        return f"{self.path.parent} is in use by {self.holder}; stop it, or choose another directory with {self.option}"


class Corrupt(PipelineError):
    """A log file holds what its writer did not write, before its end."""

    code = "corrupt"

    def __init__(self, path: Path, byte: int, reason: str) -> None:
        super().__init__(path, byte, reason)
        self.path, self.byte, self.reason = path, byte, reason

    def __str__(self) -> str:
        again = ", or remove solutions/ and snapshots/ to compute them again" if self.path.parent.name == "solutions" else ""
        return f"{self.path} is damaged at byte {self.byte}: {self.reason}; restore it from a copy{again}"


class NotOfOneLog(PipelineError):
    """Parts of a data directory are of different logs, or of different times of one log."""

    code = "not-of-one-log"

    def __init__(self, path: Path, reason: str, remedy: str) -> None:
        super().__init__(path, reason, remedy)
        self.path, self.reason, self.remedy = path, reason, remedy

    def __str__(self) -> str:
        return f"{self.path} {self.reason}; {self.remedy}"


class NewerFormat(PipelineError):
    """A data directory or a store is in a format that this version cannot read."""

    code = "newer-format"

    def __init__(self, place: str, found: int, needed: int, known: int) -> None:
        super().__init__(place, found, needed, known)
        self.place, self.found, self.needed, self.known = place, found, needed, known

    def __str__(self) -> str:
        return (
            f"{self.place} has format {self.found}, which versions from format {self.needed} on can read, and this version has format {self.known}; "
            "start the version that wrote it, or a later one"
        )


class OutOfOrder(PipelineError):
    """A frame does not start where the log ends, or the ends of solutions fall."""

    code = "out-of-order"


class PartitionsFixed(PipelineError):
    """The number of partitions was to change, and the log no longer has what engines of another number would read."""

    code = "partitions-fixed"

    def __init__(self, asked: int, known: int, begin: int, names: Sequence[str] = ()) -> None:
        """Say that `asked` partitions cannot take over from `known` ones, where the log begins at the position `begin`.

        `names` are those of the queries that look further back; none where there is no snapshot to begin with.
        """
        reason = (
            f"the queries {', '.join(names)} look back further, or over a change of the background: start with --partitions {known}, "
            f"and try later or register them again"
            if names
            else f"there are no snapshots from which {asked} partitions could begin: start with --partitions {known}"
        )
        super().__init__(f"retention has removed the log before offset {begin}, and {reason}")


class JavaMissing(PipelineError):
    """There is no Java that can run Spark."""

    code = "java-missing"


class SparkFailed(PipelineError):
    """A Spark job ended before it was done."""

    code = "spark-failed"


class Superseded(PipelineError):
    """A later attempt has replaced a task of Spark's, or no process looks after its worker any more: the task must
    not go on.
    """

    code = "superseded"


class SolveFailed(PipelineError):
    """A DataFrame is no stream of occurrences, or queries cannot be run over it."""

    code = "solve-failed"


class NotOfThisLog(PipelineError):
    """Another log is exported to the place, or this log cannot go on with the place."""

    code = "not-of-this-log"

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        return f"{self.place} {self.reason}; choose an empty directory, or prefix of a store, with --export"


class Overtaken(PipelineError):
    """Another server has begun to export to the same place, which has no lock."""

    code = "overtaken"

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place

    def __str__(self) -> str:
        return f"another server exports to {self.place} since; give each its own with --export, and start this one again"


class StoreFailed(PipelineError):
    """A store cannot be reached, refuses, or does not hold what it should."""

    code = "store-failed"


class BackupFailed(PipelineError):
    """A data directory cannot be copied as it was asked for."""

    code = "backup-failed"


class StoreDamaged(StoreFailed):
    """An object of a store is damaged or missing, or is not the one that it should be."""

    code = "store-damaged"

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason

    def __str__(self) -> str:
        remedy = "restore it from a copy of the store, or give the data directory of the last server an empty store"
        return f"{self.place} is damaged: {self.reason}; {remedy}"


class StoreTaken(PipelineError):
    """Another server writes to the store, which is one server's at a time."""

    code = "store-taken"

    def __init__(self, place: str, what: str) -> None:
        super().__init__(place, what)
        self.place, self.what = place, what

    def __str__(self) -> str:
        return f"{self.what} {self.place}; give each server a store of its own with --store, and start this one again if it is to have this one"


class NotOfThisStore(PipelineError):
    """The data directory is not the one from which the store goes on."""

    code = "not-of-this-store"

    def __init__(self, data: Path, place: str, reason: str) -> None:
        super().__init__(data, place, reason)
        self.data, self.place, self.reason = data, place, reason

    def __str__(self) -> str:
        return (
            f"{self.data} {self.reason} {self.place}; give an empty directory with --data, into which the store is copied, or an "
            f"empty store with --store"
        )


class Withdrawn(OSError):
    """Reports that entries which were evaluated while they were written are not in the log, because the disk failed."""


class Gone(PipelineError):
    """A part of the log that would be needed has been removed (410)."""

    code = "log-gone"


class TooMuchWork(PipelineError):
    """One answer would take more work than is granted (503)."""

    code = "too-much-work"


class NotFoundAgain(PipelineError):
    """A solution cannot be derived again from what is left (409)."""

    code = "not-found-again"


def locate_undecodable(error: UnicodeDecodeError) -> tuple[int, int]:
    """Return line and column, from 1, of the first byte that could not be decoded; columns count characters."""
    before = error.object[: error.start].decode("utf-8")
    return before.count("\n") + 1, len(before) - before.rfind("\n")

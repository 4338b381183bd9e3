"""Solutions as Parquet files, `query=NAME/date=YYYY-MM-DD/<lo>-<hi>.parquet`, for whatever reads Parquet; each exactly once (docs/decisions/0027).

What is exported next is noted before it is written, as a range of log positions that names the files: an export that was killed is done again, into the same files.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import epsparql
from engine.entries import Register, int64s
from epsparql.algebra import Query
from pipeline.errors import NotOfThisLog, PipelineError
from pipeline.frames import oldest, sync_directory
from pipeline.lock import DirectoryLock
from pipeline.log import LogReader
from pipeline.ordinals import solution_id
from pipeline.solutions import SolutionReader
from pipeline.solving import SOLVED, solved
from pipeline.times import iso

ROWS = 200_000
"""Solutions held at a time, about."""
EXPORTED = pa.schema([("id", pa.utf8()), ("registered", pa.int64()), ("entry", pa.int64()), *list(SOLVED)[1:]])
"""As of `solve`, with the solution's id and the log positions of its registration and of the entry that brought it; `query` and `date` are in the path."""
_DAY_US = 86_400_000_000
_PAUSE_S = 5.0
_log = logging.getLogger("epsparql.export")


class State(msgspec.Struct, frozen=True):
    """What is exported for good; and, beyond that, what is being written. `texts` are the queries that have been met, by registration."""

    position: int = 0
    until: int = 0
    texts: dict[str, str] = {}  # msgspec copies a default


class Exporter:
    """Follows the solution log of a data directory into `directory`. `text_of` gives the text of a registration that stands, None otherwise."""

    def __init__(self, data_dir: Path | str, directory: Path, text_of: Callable[[int], str | None], every_s: float = 60.0) -> None:
        """Raises: Locked; NotOfThisLog; OSError."""
        self._data, self._directory, self._text_of, self._every_s = Path(data_dir), directory, text_of, every_s
        self._lock = DirectoryLock(directory / "_epsparql.lock")  # what begins with _ is no data, to those who read
        try:
            self._state = self._read()
            with closing(LogReader(self._data)) as log:
                if log.head() < max(self._state.position, self._state.until):
                    raise NotOfThisLog(directory, self._state.position, log.head())
        except BaseException:
            self._lock.close()
            raise
        self._parsed: dict[int, Query] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="export", daemon=True)
        self.failure = ""
        """Why the last round did not end; the next one tries again."""

    @property
    def position(self) -> int:
        """The log position up to which solutions are exported."""
        return self._state.position

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Export what there is, and end."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._lock.close()

    def round(self) -> None:
        """Bring the files up to the solutions' present position. Raises: OSError, PipelineError."""
        with closing(SolutionReader(self._data)) as solutions:
            if self._state.until > self._state.position:
                if solutions.position < self._state.until:
                    return  # the machine fell: the solutions are still being found again
                self._write(solutions, self._state.until)
            while (head := solutions.position) > self._state.position:
                until = _piece(solutions, self._state.position, head)
                self._note(State(self._state.position, until, self._state.texts))
                self._write(solutions, until)
        standing = {number: text for number, text in self._state.texts.items() if self._text_of(int(number)) is not None}
        if len(standing) < len(self._state.texts):
            self._note(State(self._state.position, self._state.until, standing))

    def _run(self) -> None:
        stopped = False
        while not stopped:
            stopped = self._stopping.wait(_PAUSE_S if self.failure else self._every_s)
            try:
                self.round()
                self.failure = ""
            except (OSError, PipelineError, pa.ArrowException) as fault:
                self.failure = f"{type(fault).__name__}: {fault}"
                _log.warning("the export at position %d tries again in %g s: %s", self.position, _PAUSE_S, self.failure)

    # ------------------------------------------------------------ files
    def _write(self, solutions: SolutionReader, until: int) -> None:
        """The files of the noted range, and then the note that they are there."""
        by_place: dict[tuple[str, int], list[pa.Table]] = {}
        for batch in solutions.emitted(self._state.position):
            entries = batch.column("entry").to_numpy()
            if entries[0] >= until:
                break
            for name, day, table in self._tables(batch.filter(pa.array(entries < until))):
                by_place.setdefault((name, day), []).append(table)
        for (name, day), tables in by_place.items():
            place = self._directory / f"query={quote(name, safe='')}" / f"date={iso(day * _DAY_US).partition('T')[0]}"
            _put(place / f"{self._state.position:020d}-{until:020d}.parquet", pa.concat_tables(tables))
        self._note(State(until, until, self._state.texts))

    def _tables(self, batch: pa.RecordBatch) -> Iterator[tuple[str, int, pa.Table]]:
        """EXPORTED by query name and day."""
        registered = batch.column("registered").to_numpy()
        for number in np.unique(registered).tolist():
            mine = batch.filter(pa.array(registered == number))
            name = mine.column("query")[0].as_py()
            (found,) = solved(mine, {name: self._query(number)})
            ends = int64s(mine.column("end"))
            ids = pa.array(map(solution_id, ends.tolist(), mine.column("ordinal").to_pylist()), pa.utf8())
            table = pa.Table.from_arrays([ids, mine.column("registered"), mine.column("entry"), *found.columns[1:]], schema=EXPORTED)
            days = ends // _DAY_US
            for day in np.unique(days).tolist():
                yield name, day, table.filter(pa.array(days == day))

    # ------------------------------------------------------------ queries
    def _query(self, registered: int) -> Query:
        if registered not in self._parsed:
            text = self._state.texts.get(str(registered)) or self._text_of(registered) or self._logged(registered)
            self._parsed[registered] = epsparql.parse(text).query
            self._note(State(self._state.position, self._state.until, self._state.texts | {str(registered): text}))
        return self._parsed[registered]

    def _logged(self, registered: int) -> str:
        """Of a query that is gone."""
        with closing(LogReader(self._data)) as log:
            (entry,) = (entry for block in log.blocks(registered, 1, registered + 1) for entry in block.entries)
        assert isinstance(entry, Register), entry
        return entry.text

    # ------------------------------------------------------------ state
    def _read(self) -> State:
        path = self._directory / "_epsparql.json"
        return msgspec.json.decode(path.read_bytes(), type=State) if path.exists() else State(oldest(self._data / "solutions"))

    def _note(self, state: State) -> None:
        _replace(self._directory / "_epsparql.json", lambda path: path.write_bytes(msgspec.json.encode(state)))
        self._state = state


def _piece(solutions: SolutionReader, position: int, head: int) -> int:
    """Where the next range ends: at the head, or after about ROWS solutions."""
    rows = 0
    for batch in solutions.emitted(position):
        rows += batch.num_rows
        if rows >= ROWS:
            return min(int(batch.column("entry").to_numpy().max()) + 1, head)
    return head


def _put(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, lambda temporary: pq.write_table(table, temporary, compression="zstd"))


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """A file that is there whole or not at all, also after the machine's fall. What begins with `.` is not read by those who read Parquet."""
    temporary = path.with_name(f".{path.name}.tmp")
    write(temporary)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)

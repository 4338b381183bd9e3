"""This module exports solutions as Parquet files, `query=NAME/date=YYYY-MM-DD/<lo>-<hi>.parquet`, each exactly once
(docs/decisions/0046).

A long name is cut and ends in a digest, for a directory's name has at most 255 bytes; the file's own metadata hold
the whole name. The next export is noted before it is written, as a range of log positions that names the files. An
export that was killed is thus done again, into the same files.
"""

import hashlib
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa

import epsparql
from engine.messages import REVISED, Promote, Register, StateChange, int64s
from epsparql.algebra import Query
from pipeline.dataframes.engine_task import SOLVED, solved
from pipeline.errors import Gone, NotOfThisLog, Overtaken, PipelineError, StoreFailed
from pipeline.formats.batches.timestamps import iso
from pipeline.log import LogReader
from pipeline.log.log_fingerprint import Marks
from pipeline.log.segments import oldest
from pipeline.object_store.backends import ObjectStore, open_store
from pipeline.solutions.solution_ids import solution_id
from pipeline.solutions.solution_log import SolutionReader

ROWS = 200_000
"""About this many solutions are held at a time."""
EXPORTED = pa.schema([("id", pa.utf8()), ("registered", pa.int64()), ("entry", pa.int64()), *list(SOLVED)[1:]])
"""The columns are those of `solve`, with the solution's id and the log positions of its registration and of the entry
that brought it.

`query` and `date` are in the path.
"""
_DAY_US = 86_400_000_000
_PAUSE_S = 5.0
_LONGEST = 249  # bytes of an encoded name: file systems allow 255, less `query=`
_CUT = 200  # bytes that a longer name keeps, beside its digest
_BROKEN = re.compile(r"%[0-9A-F]?$")  # an escape of which the end is cut off
_NOTE = "_epsparql.json"  # readers take no file that begins with _ for data
_log = logging.getLogger("epsparql.export")


class State(msgspec.Struct, frozen=True):
    """Records what is exported for good and, beyond that, what is being written. `texts` are the queries that have
    been met, by registration or promotion.

    `log` is the log's mark where this ends (`pipeline.log.log_fingerprint`), empty in notes of before; `writer` the
    exporter's own name for itself.
    """

    position: int = 0
    until: int = 0
    texts: dict[str, str] = {}  # msgspec copies a default
    log: str = ""
    writer: str = ""

    @property
    def reached(self) -> int:
        return max(self.position, self.until)


def export_place(given: str) -> ObjectStore:
    """Return a place that answers, to be closed.

    Raises: NotOfThisLog where its note is damaged; Locked, OSError, StoreFailed.
    """
    place = open_store(given)
    try:
        _noted(place)
    except BaseException:
        place.close()
        raise
    return place


CHANGELOG = ""
"""This stands for the text of a query whose changes are not exported, because files of solutions stay."""


class Exporter:
    """Follows the solution log of a data directory into `place`, which it closes.

    `standing` gives the texts of the registrations that stand, and of their promotions; CHANGELOG for those that are
    emitted as revised.
    """

    def __init__(self, data_dir: Path | str, place: ObjectStore, standing: Callable[[], Mapping[int, str]], every_s: float = 60.0) -> None:
        """Read the place's note, and write it anew as this exporter's. Raises: NotOfThisLog; OSError, StoreFailed."""
        self._data, self._place, self._standing, self._every_s = Path(data_dir), place, standing, every_s
        self._stood = standing()  # at the last round: who goes between two may have registered where the log is no longer kept
        self._marks, self._writer = Marks(self._data), token_hex(8)
        self._parsed: dict[int, Query | None] = {}
        self._promoted: list[StateChange] = []
        self._folders: dict[str, str] = {}
        try:
            self._state = self._found()
            self._texts = dict(self._state.texts)
            self._write_note(self._state)
        except BaseException:
            self._close()
            raise
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="export", daemon=True)
        self.failure = ""
        """The text says why the last round did not end; the next one tries again, unless another server has taken the
        place.
        """

    @property
    def position(self) -> int:
        """Return the log position up to which solutions are exported."""
        return self._state.position

    @property
    def marked(self) -> int:
        """Return the position from which on the input log must be kept: the note's mark is of a frame that is not
        before it.
        """
        return self._state.reached - 1

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Export what there is, and end.

        A store that does not answer is left to the next start, which repeats the noted range.
        """
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(self._place.patience_s)
            if self._thread.is_alive():
                _log.warning(
                    "the export to %s at position %d did not end within %g s: the next start goes on there",
                    self._place, self.position, self._place.patience_s,
                )  # fmt: skip
                return
        self._close()

    def round(self) -> None:
        """Bring the files up to the solutions' present position. Raises: OSError, PipelineError."""
        stand = self._standing()
        self._stood = {**self._stood, **stand}
        with closing(SolutionReader(self._data)) as solutions:
            self._promoted = [change for change in solutions.changes if change.state == "promoted"]
            if self._state.until > self._state.position:
                if solutions.position < self._state.until:
                    return  # the machine fell: the solutions are still being found again
                self._write_files(self._files(solutions, self._state.until), self._state.until)
            while (head := solutions.position) > self._state.position:
                self._promoted = [change for change in solutions.changes if change.state == "promoted"]
                until = _piece(solutions, self._state.position, head)
                files = self._files(solutions, until)
                if files:
                    self._note(State(self._state.position, until, dict(self._texts)))
                self._write_files(files, until)
        self._stood = stand
        wanted = {number: text for number, text in self._texts.items() if int(number) in stand}
        if len(wanted) < len(self._texts):
            self._note(State(self._state.position, self._state.until, wanted))
            self._texts = wanted

    def _run(self) -> None:
        stopped = False
        while not stopped:
            stopped = self._stopping.wait(_PAUSE_S if self.failure else self._every_s)
            try:
                self.round()
                self.failure = ""
            except Overtaken as fault:
                self.failure = str(fault)
                _log.error("the export has ended at position %d: %s", self.position, fault)
                return
            except (OSError, PipelineError, pa.ArrowException) as fault:
                self.failure = f"{type(fault).__name__}: {fault}"
                _log.warning("the export to %s at position %d tries again in %g s: %s", self._place, self.position, _PAUSE_S, self.failure)

    def _close(self) -> None:
        self._marks.close()
        self._place.close()

    # ------------------------------------------------------------ files
    def _files(self, solutions: SolutionReader, until: int) -> dict[str, pa.Table]:
        """Return the files of the range from the present position on, by name."""
        by_folder: dict[str, list[pa.Table]] = {}
        for batch in solutions.emitted(self._state.position):
            entries = batch.column("entry").to_numpy()
            if entries[0] >= until:
                break
            for folder, table in self._tables(batch.filter(pa.array(entries < until))):
                by_folder.setdefault(folder, []).append(table)
        return {f"{folder}/{self._state.position:020d}-{until:020d}.parquet": pa.concat_tables(tables) for folder, tables in by_folder.items()}

    def _write_files(self, files: dict[str, pa.Table], until: int) -> None:
        """Write the files of the noted range, and then the note that they are there."""
        from pyarrow.parquet import write_table  # 10 MB that a server without an export need not have

        self._still_ours()
        for name, table in files.items():
            data = pa.BufferOutputStream()
            write_table(table, data, compression="zstd")
            self._place.put(name, data.getvalue())
        self._note(State(until, until, dict(self._texts)))

    def _tables(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
        """Yield EXPORTED by query name and day."""
        registered = batch.column("registered").to_numpy()
        for number in np.unique(registered).tolist():
            mine = batch.filter(pa.array(registered == number))
            name = mine.column("query")[0].as_py()
            for offset, part in self._split_by_text(number, name, mine):
                yield from self._tables_of(offset, name, part)

    def _split_by_text(self, number: int, name: str, mine: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the solutions of one registration by the log position of their text: that of the registration, or of
        a promotion.
        """
        versions = [(change.entry, change.registered) for change in self._promoted if change.name == name and change.entry > number]
        place = np.searchsorted([entry for entry, _ in versions], int64s(mine.column("entry")), side="right")
        for k in np.unique(place).tolist():
            yield versions[k - 1][1] if k else number, mine.filter(pa.array(place == k))

    def _tables_of(self, offset: int, name: str, mine: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
        """Yield EXPORTED by folder, of solutions of one text."""
        query = self._query(offset, name)
        if query is None:
            return
        (found,) = solved(mine, {name: query})
        ends = int64s(mine.column("end"))
        ids = pa.array(map(solution_id, ends.tolist(), mine.column("ordinal").to_pylist()), pa.utf8())
        columns = [ids, mine.column("registered"), mine.column("entry"), *found.columns[1:]]
        table = pa.Table.from_arrays(columns, schema=EXPORTED.with_metadata({"query": name}))
        days = ends // _DAY_US
        for day in np.unique(days).tolist():
            yield f"{self._folder(name)}/date={iso(day * _DAY_US).partition('T')[0]}", table.filter(pa.array(days == day))

    def _folder(self, name: str) -> str:
        """Return a query's folder.

        A folder with a longer name, which a store took before names were cut, goes on in use.
        """
        if name not in self._folders:
            whole, found = f"query={quote(name, safe='')}", folder_of(name)
            self._folders[name] = whole if whole != found and self._has(whole) else found
        return self._folders[name]

    def _has(self, folder: str) -> bool:
        try:
            return bool(self._place.names(folder))
        except (OSError, StoreFailed):  # such a name is too long for this place
            return False

    # ------------------------------------------------------------ queries
    def _query(self, registered: int, name: str) -> Query | None:
        if registered not in self._parsed:
            text = self._texts.get(str(registered)) or self._stood.get(registered)
            text = self._logged(registered) if text is None else text
            if text == CHANGELOG:
                self._parsed[registered] = None
            elif text is None:
                _log.error("solutions of %s are not exported: it is gone, and so is its text, of log position %d", name, registered)
                self._parsed[registered] = None
            else:
                self._parsed[registered] = epsparql.parse(text).query
                self._texts[str(registered)] = text
        return self._parsed[registered]

    def _logged(self, registered: int) -> str | None:
        """Return the text of a query that is gone. A registration after the last round is still kept."""
        try:
            with closing(LogReader(self._data)) as log:
                (entry,) = (entry for block in log.blocks(registered, 1, registered + 1) for entry in block.entries)
        except Gone:
            return None
        assert isinstance(entry, Register | Promote), entry
        return CHANGELOG if isinstance(entry, Register) and entry.emit == REVISED else entry.text

    # ------------------------------------------------------------ state
    def _found(self) -> State:
        """Return the state that this log can go on from. Raises: NotOfThisLog."""
        begins, known = oldest(self._data / "solutions"), _noted(self._place)
        if known is None:
            return State(begins)
        with closing(LogReader(self._data)) as log:
            head = log.head()
        if head < known.reached:
            raise NotOfThisLog(
                str(self._place), f"has solutions up to log position {known.reached}, and this log ends at {head}: they are of another log"
            )
        try:
            if known.log and not self._marks.holds(known.log):
                raise NotOfThisLog(str(self._place), f"has solutions of another log, up to its position {known.reached}")
            if known.position < begins:
                raise Gone
        except Gone:
            reason = f"has solutions up to log position {known.position}, and what is needed to go on from there is no longer kept"
            raise NotOfThisLog(str(self._place), reason) from None
        return known

    def _still_ours(self) -> None:
        """Check that no other server exports here, for there may be no lock. Raises: Overtaken."""
        found = _noted(self._place)
        if found is not None and found.writer != self._writer:
            raise Overtaken(str(self._place))

    def _note(self, state: State) -> None:
        self._still_ours()
        self._write_note(state)

    def _write_note(self, state: State) -> None:
        marked = msgspec.structs.replace(state, log=self._marks.mark_at(state.reached), writer=self._writer)
        self._place.put(_NOTE, msgspec.json.encode(marked))
        self._state = state


def folder_of(name: str) -> str:
    """Return the name of a query's folder, whose `!` no encoded name holds."""
    encoded = quote(name, safe="")
    if len(encoded) > _LONGEST:
        encoded = f"{_BROKEN.sub('', encoded[:_CUT])}!{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    return f"query={encoded}"


def _noted(place: ObjectStore) -> State | None:
    note = place.read(_NOTE)
    try:
        return None if note is None else msgspec.json.decode(note, type=State)
    except msgspec.MsgspecError as fault:
        raise NotOfThisLog(str(place), f"has a note, {_NOTE}, that is damaged ({fault})") from None


def _piece(solutions: SolutionReader, position: int, head: int) -> int:
    """Return where the next range ends: at the head, or after about ROWS solutions."""
    rows = 0
    for batch in solutions.emitted(position):
        rows += batch.num_rows
        if rows >= ROWS:
            return min(int(batch.column("entry").to_numpy().max()) + 1, head)
    return head

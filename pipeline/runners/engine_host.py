"""This module hosts an engine for one partition of a data directory, and brings it to the position where it is needed.

An engine's state is a function of the log before its position. So an engine that is behind only reads on, and any
snapshot at or below a position will do; one that is ahead is of no use. Kill tests taught two rules: an engine is
taken out of its place before it changes and put back after, and snapshots are named by log position.
"""

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from engine.engine import Engine
from engine.errors import LogGap
from engine.messages import Block
from engine.partitioning import ONE, PartitionShare
from engine.runtime.query_registry import Registry
from epsparql.translate.parsed_texts import ParsedTexts, looking_up
from pipeline.errors import Gone, OutOfOrder
from pipeline.log import LogReader
from pipeline.log.log_fingerprint import Marks
from pipeline.log.reader import Published
from pipeline.partition_count import SNAPSHOT_WEIGHT, name_of
from pipeline.runners.engine_report import Reporter, find_matches
from pipeline.runners.goal_questions import GoalAnswerer
from pipeline.runners.host_messages import Advance
from pipeline.runners.snapshots import Snapshots

MAX_ROWS = 50_000
_WIDEST = 4  # a query without a key reads all rows of a block, in one of the partitions
_ENTRY = 100  # to read an entry of the log, or to write a query, costs as much as so many rows


def block_rows(share: PartitionShare) -> int:
    """Return how many rows of the log a block has, of which a partition decodes its own: as many as a block of one
    partition has, up to a limit.
    """
    return MAX_ROWS * min(share.partitions, _WIDEST)


class EngineHost:
    """Keeps an engine between calls. One thread at a time."""

    def __init__(
        self, data_dir: Path | str, share: PartitionShare = ONE, *, reader: LogReader | None = None, snapshot_weight: int = SNAPSHOT_WEIGHT
    ) -> None:
        self._data, self._share = data_dir, share
        self._name = name_of(share.partition, share.partitions)
        self._marks = Marks(Path(data_dir))
        self._snapshots = Snapshots(Path(data_dir) / "snapshots", self._name, share)
        self._reader = reader or LogReader(data_dir, sliced=not share.whole)
        self._reporter = Reporter(data_dir, self._name, time.monotonic)
        self._answerer = GoalAnswerer(data_dir, self._name, time.monotonic)
        self._engine: Engine | None = None
        self._weight, self._snapshot_weight = 0, snapshot_weight  # the weight of all that was read since the last snapshot
        self.unswept = True
        """This is true where there may be snapshots that `sweep` would drop."""

    def run(self, lo: int, hi: int, max_rows: int = MAX_ROWS) -> Generator[Advance, None, None]:
        """Bring the engine to `lo` (kept engine, else snapshot and log), then yield what each piece of [lo, hi)
        brings, in order.

        Raises: OutOfOrder if the log does not reach `hi`; whatever the engine raises.
        """
        engine = self._restore_engine(lo, max_rows)
        try:
            for piece in self._feed(engine, hi, max_rows):
                yield piece
                self._report_state(engine)  # now that it is committed
        except GeneratorExit:  # left between two pieces, where the engine is whole
            self._engine = engine
            raise
        self._engine = engine
        self._report_state(engine)

    @property
    def published(self) -> Published | None:
        """Return what the log's writer in this process hands on, if there is one.

        Then `run` may read ahead of the disk.
        """
        return self._reader.published

    def tell(self) -> None:
        """Report the size of the kept engine's state, if that is due, and answer who asks for partial matches."""
        if self._engine is not None:
            self._report_state(self._engine)

    def _report_state(self, engine: Engine) -> None:
        self._reporter.tell(engine)
        self._answerer.answer(engine.position, partial(find_matches, engine))

    def save(self) -> None:
        """Snapshot the kept engine, if it has read anything since the last one."""
        if self._engine is not None and self._weight:
            self._write_snapshot(self._engine)

    def stand_at(self, position: int) -> Engine:
        """Bring the engine to a position, of which there is a snapshot then, and give it away. Raises: as `run`."""
        for _ in self.run(position, position):
            raise AssertionError("an empty range brings nothing")
        engine, self._engine = self._engine, None
        assert engine is not None
        if self._weight or position not in self._snapshots.positions():
            self._write_snapshot(engine)
        return engine

    def sweep(self, committed: int) -> None:
        """Drop the snapshots before the newest one at or below `committed`, the position whose solutions are durable."""
        self.unswept = False
        self._snapshots.sweep(committed)

    def close(self) -> None:
        self._engine = None
        self._reader.close()
        self._marks.close()

    def _restore_engine(self, lo: int, max_rows: int) -> Engine:
        engine, self._engine = self._engine, None
        if engine is None or engine.position > lo:
            with closing(ParsedTexts(Path(self._data))) as texts, looking_up(texts):
                engine = self._snapshots.newest(lo, self._is_ours) or Engine(Registry(self._share, self._snapshots.read_sets()))
                engine.look_back_by(self._past)
                self._weight = 0
                self._read_on(engine, lo, max_rows)
        else:
            self._read_on(engine, lo, max_rows)
        return engine

    def _read_on(self, engine: Engine, lo: int, max_rows: int) -> None:
        """Bring an engine to `lo`; its solutions were committed before."""
        for _ in self._feed(engine, lo, max_rows):
            pass

    def _feed(self, engine: Engine, until: int, max_rows: int) -> Iterator[Advance]:
        """Yield what each block brings."""
        for block in self._reader.blocks(engine.position, max_rows, until):
            before = engine.caught_up
            outcome = engine.feed(block)
            self._weight += block.num_rows + max(engine.caught_up - before, 0) + _ENTRY * len(block.entries)
            yield Advance(block.first, block.after, outcome)
            if self._weight >= self._snapshot_weight and self._weight >= engine.goals + _ENTRY * len(engine.registry.registered):
                self._write_snapshot(engine)  # so a row pays for one goal at most, and an entry for one query
        if engine.position < until:
            raise OutOfOrder(f"the log ends at {engine.position}, before {until}, to which there are solutions: it is not the log they came from")

    def _past(self, lo: int, hi: int) -> Iterator[Block]:
        """Yield the blocks that queries which are behind read, while a later part of the log is read for the others.

        Raises LogGap.
        """
        with closing(LogReader(self._data)) as reader:
            try:
                yield from reader.blocks(lo, MAX_ROWS, hi)
            except Gone as gone:
                raise LogGap(str(gone)) from gone

    def _is_ours(self, position: int, mark: int) -> bool:
        """Tell whether a snapshot with this mark may be of this log: 0 says nothing."""
        with closing(Marks(Path(self._data))) as marks:
            return not mark or marks.mark_before(position) in (0, mark)

    def _write_snapshot(self, engine: Engine) -> None:
        self._snapshots.write(engine, self._marks.mark_before(engine.position))
        self._weight, self.unswept = 0, True

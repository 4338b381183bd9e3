"""This module settles how many partitions a data directory has. The first start settles it, until another number is
asked for.

Another number is a move of all queries at one entry: that up to which there are solutions
(docs/decisions/0104-moves-of-one-set.md). The engines of the earlier number come to this entry, and those
of the new one begin with them. Only when all have a snapshot there is the number recorded. So a start that is killed
before leaves the earlier number, with its snapshots, and one that is killed after leaves the new one.
"""

import json
import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from engine.partitioning import PartitionShare
from epsparql.translate.parsed_texts import ParsedTexts, looking_up
from pipeline.errors import PartitionsFixed
from pipeline.log.log_fingerprint import Marks
from pipeline.log.segments import oldest
from pipeline.partition_count import SETS, name_of, record, recorded, sweep_others
from pipeline.retention import sync_snapshots
from pipeline.solutions.solution_log import SolutionReader

_log = logging.getLogger(__name__)


def settle(data_dir: Path | str, wanted: int | None, secure: Callable[[], int], *, away: bool = False) -> int:
    """Settle and record the number that was asked for, else the earlier one, else one. Only the process that runs the
    directory calls this.

    `secure` makes solutions durable, and returns the position that they reach. With `away` the snapshots are
    elsewhere: then another number begins with the log. Raises: PartitionsFixed, OnePartitionOnly; nothing has changed
    then.
    """
    data, known = Path(data_dir), recorded(data_dir) or 1
    number = wanted or known
    if number == known:
        _forget_later_sets(data, known)
    elif not away and all(any((data / "snapshots").glob(f"{name_of(partition, known)}-*.snapshot")) for partition in range(known)):
        _change(data, known, number, secure())
    elif begin := oldest(data / "log"):
        raise PartitionsFixed(number, known, begin)
    if number != recorded(data):
        record(data, number)
    sweep_others(data, number)
    return number


def _forget_later_sets(data: Path, number: int) -> None:
    """Begin with the log itself where damage took the solutions back behind the entry at which the number changed."""
    path = data / "snapshots" / f"{name_of(0, number)}-{SETS}"
    if path.exists():
        with closing(SolutionReader(data)) as solutions:
            if solutions.position < json.loads(path.read_bytes())["until"]:
                sweep_others(data, 0)


def _change(data: Path, known: int, number: int, position: int) -> None:
    """Write the snapshots with which engines of another number begin."""
    from engine.query_lifecycle.moves import (
        change_share,
        list_names,
        renumber,
        survey,
    )  # the engine, which the driver of Spark does not load otherwise
    from pipeline.runners.engine_host import EngineHost
    from pipeline.runners.snapshots import Snapshots

    begin, directory = oldest(data / "log"), data / "snapshots"
    sweep_others(data, known)  # what an earlier try has left
    with closing(ParsedTexts(data)) as texts, looking_up(texts), closing(Marks(data)) as marks:
        standings = []
        for partition in range(known):
            with closing(EngineHost(data, PartitionShare(partition, known))) as host:
                standings.append(survey(host.stand_at(position), number, begin))
        renumbering = renumber(standings, number, begin)
        if lost := renumbering.list_unread(begin):
            raise PartitionsFixed(number, known, begin, list_names(lost))
        if alone := [each for each in renumbering.moved if each.earliest in standings[0].alone]:
            names = ", ".join(list_names(alone))
            _log.warning("the log does not have all that %s look back to: they run in one partition until they are registered again", names)
        for partition, source in enumerate(renumbering.sources):
            share = PartitionShare(partition, number)
            with closing(EngineHost(data, PartitionShare(source, known))) as host:
                engine = host.stand_at(position)
                if stranded := change_share(engine, renumbering, share):
                    raise PartitionsFixed(number, known, begin, list_names(each for each, _ in stranded))
            Snapshots(directory, name_of(partition, number), share).write(engine, marks.mark_before(position))
    if number > 1:
        Snapshots(directory, name_of(0, number), PartitionShare(0, number)).write_sets(renumbering.sets)
    sync_snapshots(directory)

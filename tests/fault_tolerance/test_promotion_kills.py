"""Promotions under 10,000 events a second, with a server that is killed with -9 in between.

Up to each position the solutions are those of the text before, and beyond it those of the next, as engines find them that run one text alone over the log.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread

import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.messages import Finish, Register
from epsparql.client import ApiError, Client, Promoted, Solution, Source, Unreachable
from pipeline.log import LogReader
from pipeline.solutions.solution_log import SolutionReader
from server.child_server import Child
from tests.server.conftest import COMPILING_S, EX, until
from tests.soak import is_full

pytestmark = pytest.mark.slow
MOMENTS, KILLS = (50, 25) if is_full() else (4, 1)
BODY, PAUSE_S, IDS = 500, 0.05, 500
"""A body has so many events of so many things, and another one follows after the pause: 10,000 events a second."""
WITHIN = "PREFIX : <{0}> SELECT ?s ?b WHERE {{ {{ {{ ?s :value ?{1} }} SEQ {{ ?s :value ?b }} }} WITHIN '{2}' }}"
TEXTS = [WITHIN.format(EX, "a", "PT0.5S"), WITHIN.format(EX, "a", "PT1S"), WITHIN.format(EX, "aa", "PT1S"), WITHIN.format(EX, "a", "PT0.5S")]
"""The third has the plan of the second."""
SWITCH_S = 1.0
Row = tuple[int, int, int, tuple[str, ...]]


def body(first: int) -> str:
    """Events of a millisecond each."""
    return "\n".join(
        f'{{"s":"<{EX}{k % IDS}>","p":"<{EX}value>","o":"\\"{k}\\"","at":"2026-01-01T{k // 3_600_000:02}:{k // 60_000 % 60:02}:{k // 1000 % 60:02}.{k % 1000:03}Z"}}'
        for k in range(first, first + BODY)
    )


class Feeder:
    """Sends events at an even pace, each once, across deaths of the server."""

    def __init__(self, url: str) -> None:
        self.url, self.sent, self._over = url, 0, Event()
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._over.wait(max(due - time.monotonic(), 0.0)):
            due = max(due + PAUSE_S, time.monotonic() - 0.1)
            with suppress(OSError, ApiError, Unreachable):
                client, after = Client(self.url, patience_s=1), self.sent + BODY
                client.send("default", body(self.sent), source=Source("feeder", str(self.sent) if self.sent else None, str(after)))
                self.sent = after

    @contextmanager
    def feeding(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()


class Watcher:
    """Follows the query across deaths of the server; tells how long no solution came around each notice."""

    def __init__(self, client: Client, stopped: Event) -> None:
        self._subscription, self._stopped = client.follow("q"), stopped
        self.ids: list[str] = []
        self.notices: list[Promoted] = []
        self.gaps: list[float] = []
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        before, waits = time.monotonic(), False
        while not self._stopped.is_set():
            word = self._subscription.next(0.5)
            if isinstance(word, Promoted):
                self.notices.append(word)
                waits = True
            elif isinstance(word, Solution):
                now = time.monotonic()
                if waits:
                    self.gaps.append(now - before)
                before, waits = now, False
                self.ids.append(word.id)

    def end(self, last: str) -> None:
        until(lambda: bool(self.ids) and self.ids[-1] == last, "the last solution is told")
        self._stopped.set()
        self._thread.join()
        self._subscription.close()


def alone(data: Path, text: str, registered: int, after: int, before: int) -> list[Row]:
    """Return what a text finds that was registered in the first place, of the entries between two positions."""
    engine, found = Engine(), list[Row]()
    engine.heeds = lambda entry: isinstance(entry, Finish)
    with closing(LogReader(data)) as reader:
        for block in reader.blocks(0, 1, registered + 1):
            engine.apply_block(block)
        engine.enrol_query(Register(registered, "q", text), [])
        for block in reader.blocks(registered + 1, 50_000, before):
            found += [row for row in listed(engine.feed(block).solutions) if row[0] >= after]
    return found


def listed(batch: pa.RecordBatch) -> list[Row]:
    columns = (batch.column(name).cast(pa.int64()).to_pylist() for name in ("entry", "start", "end"))
    return list(zip(*columns, map(tuple, batch.column("values").to_pylist()), strict=True))


def test_at_every_moment_one_text_ends_and_the_next_begins(tmp_path: Path) -> None:
    chance, data, log = Random(11), tmp_path / "data", tmp_path / "server.log"
    killed = set(chance.sample(range(MOMENTS), KILLS))
    child = Child(data, "inprocess", log)
    with child:
        port = int(child.url.rpartition(":")[2])
        client = Client(child.url)
        client.wait_ready(COMPILING_S)
        registered = client.register("q", TEXTS[0])["registered"]
        feeder, watcher = Feeder(child.url), Watcher(client, Event())
        with feeder.feeding():
            for k in range(MOMENTS):
                time.sleep(chance.uniform(0.1, 0.6))  # the moment itself is what is tried
                asked = Thread(target=promote, args=(client, TEXTS[(k + 1) % len(TEXTS)]))
                asked.start()
                if k in killed:
                    time.sleep(chance.uniform(0, 0.3))
                    child.kill()
                    child = Child(data, "inprocess", log, port=port)
                    child.__enter__()
                    client.wait_ready(COMPILING_S)
                asked.join()
                until(lambda: (client.query("q")["promotion"] or {"state": ""})["state"] != "waiting", "it has taken over")
        client.finish("default")
        until(lambda: client.query("q")["lag"] == 0, "the end is applied")
        versions, last = client.versions("q"), client.query("q")["last"]
        watcher.end(last)
        child.stop()
    with closing(SolutionReader(data)) as solutions, closing(LogReader(data)) as reader:
        found = [row for batch in solutions.emitted() for row in listed(batch)]
        ends = [*(version["position"] for version in versions[1:]), reader.head()]
    assert feeder.sent > MOMENTS * 1000
    assert len(versions) > MOMENTS - KILLS, "a promotion that was asked for just before a kill may never have come"
    expected: list[Row] = []
    for version, end in zip(versions, ends, strict=True):
        expected += alone(data, version["query"], registered, version["position"], end)
    assert found == expected
    assert watcher.ids == sorted(set(watcher.ids))
    assert len(watcher.ids) == len(found)
    assert [(notice.after, notice.position) for notice in watcher.notices] == [(each["version"], each["position"]) for each in versions[1:]]
    assert "Traceback" not in log.read_text()
    print(f"{feeder.sent} events, {len(versions)} versions, gaps in s: {[round(gap, 2) for gap in watcher.gaps]}")
    assert KILLS or max(watcher.gaps) < SWITCH_S


def promote(client: Client, text: str) -> None:
    with suppress(OSError, ApiError, Unreachable):
        client.promote("q", text)

"""Promotions under 10,000 events a second, with a server that is killed with -9 in between.

Up to each position the solutions are those of the text before, and beyond it those of the next, as engines find them
that run one text alone over the log. EPSPARQL_RATE gives another rate, for machines that cannot deliver this one.
"""

import os
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
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
MOMENTS, KILLS = (50, 25) if is_full() else (3, 2)
RATE = int(os.environ.get("EPSPARQL_RATE", "10000"))
LEAST, MOST, IDS = 250, 5_000, 10_000
"""A body has so many events, of so many things: one event in ten gives a solution, or one in five."""
WITHIN = "PREFIX : <{0}> SELECT ?s ?b WHERE {{ {{ {{ ?s :value ?{1} }} SEQ {{ ?s :value ?b }} }} WITHIN '{2}' }}"
TEXTS = [WITHIN.format(EX, name, window) for window, name in (("PT1S", "a"), ("PT2S", "a"), ("PT2S", "aa"), ("PT1S", "aa"))]
"""The third has the plan of the second, and the first that of the last."""
SWITCH_S, KEPT_S = 1.0, 0.1
"""The longest time from the last solution of a text to the first one of the next, and where both have one plan."""
Row = tuple[int, int, int, tuple[str, ...]]


def body(first: int, after: int) -> str:
    """Events of a millisecond each."""
    return "\n".join(
        f'{{"s":"<{EX}{zlib.crc32(b"%d" % k) % IDS}>","p":"<{EX}value>","o":"\\"{k}\\"",'
        f'"at":"2026-01-01T{k // 3_600_000:02}:{k // 60_000 % 60:02}:{k // 1000 % 60:02}.{k % 1000:03}Z"}}'
        for k in range(first, after)
    )


class Feeder:
    """Sends events at an even pace, each once, across deaths of the server.

    A body has all that is due, and is sent again until it is taken.
    """

    def __init__(self, url: str) -> None:
        self.url, self.sent, self.begun_s, self._over = url, 0, time.monotonic(), Event()
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        client, dead = Client(self.url, patience_s=1), False
        while not self._over.wait(max(self.begun_s + (self.sent + LEAST) / RATE - time.monotonic(), 0.0)):
            after = self.sent + min(max(int((time.monotonic() - self.begun_s) * RATE) - self.sent, LEAST), MOST)
            source, text = Source("feeder", str(self.sent) if self.sent else None, str(after)), body(self.sent, after)
            while self.sent < after and not self._over.is_set():
                try:
                    client.send("default", text, source=source)
                except (OSError, ApiError, Unreachable):
                    client, dead = Client(self.url, patience_s=1), True
                else:
                    self.sent = after
            if dead:  # the pace goes on from here
                self.begun_s, dead = time.monotonic() - self.sent / RATE, False

    @property
    def rate(self) -> float:
        """Return how many events have been sent a second while there was a server."""
        return self.sent / (time.monotonic() - self.begun_s)

    def wait_for(self, count: int) -> None:
        """Wait until so many more events are sent."""
        until_sent = self.sent + count
        until(lambda: self.sent >= until_sent, "events are sent")

    @contextmanager
    def feeding(self) -> Iterator[None]:
        self.begun_s = time.monotonic()
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()


class Watcher:
    """Follows the query across deaths of the server; tells how long no solution came around each notice, and otherwise."""

    def __init__(self, client: Client, stopped: Event) -> None:
        self._subscription, self._stopped = client.follow("q"), stopped
        self.ids: list[str] = []
        self.notices: list[tuple[Promoted, float]] = []
        self.switches: dict[int, float] = {}
        """The seconds from the last solution before each notice to the first one after it, by version."""
        self.waits: list[float] = []
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        before = time.monotonic()
        told: Promoted | None = None
        while not self._stopped.is_set():
            word = self._subscription.next(0.5)
            now = time.monotonic()
            if isinstance(word, Promoted):
                self.notices.append((word, now))
                told = word
            elif isinstance(word, Solution):
                if told is None:
                    self.waits.append(now - before)
                else:
                    self.switches[told.after] = now - before
                before, told = now, None
                self.ids.append(word.id)

    def end(self, last: str) -> None:
        until(lambda: bool(self.ids) and self.ids[-1] == last, "the last solution is told")
        self._stopped.set()
        self._thread.join()
        self._subscription.close()


def alone(data: Path, text: str, registered: int) -> list[Row]:
    """Return what a text finds that was registered in the first place."""
    engine, found = Engine(), list[Row]()
    engine.heeds = lambda entry: isinstance(entry, Finish)
    with closing(LogReader(data)) as reader:
        for block in reader.blocks(0, 1, registered + 1):
            engine.apply_block(block)
        engine.registry.enrol_query(Register(registered, "q", text), [])
        for block in reader.blocks(registered + 1, 50_000):
            found += listed(engine.feed(block).solutions)
    return found


def listed(batch: pa.RecordBatch) -> list[Row]:
    columns = (batch.column(name).cast(pa.int64()).to_pylist() for name in ("entry", "start", "end"))
    return list(zip(*columns, map(tuple, batch.column("values").to_pylist()), strict=True))


def promote(url: str, text: str) -> bool:
    """Ask for a promotion, and return whether the text is the query's now, or is to be."""
    with suppress(OSError, ApiError, Unreachable):
        Client(url, patience_s=1).promote("q", text)
        return True
    return False


def test_at_every_moment_one_text_ends_and_the_next_begins(tmp_path: Path) -> None:
    chance, data, log = Random(11), tmp_path / "data", tmp_path / "server.log"
    killed = set(chance.sample(range(MOMENTS), KILLS))
    asked_s: list[float] = []
    with ExitStack() as children:
        child = children.enter_context(Child(data, "inprocess", log))
        url, port = child.url, int(child.url.rpartition(":")[2])
        client = Client(url, patience_s=COMPILING_S)
        client.wait_ready(COMPILING_S)
        registered = client.register("q", TEXTS[0])["registered"]
        feeder, watcher = Feeder(url), Watcher(client, Event())
        with feeder.feeding():
            for k in range(MOMENTS):
                feeder.wait_for(chance.randrange(2_000, 7_000))  # so that both windows matter
                text = TEXTS[(k + 1) % len(TEXTS)]
                asked = Thread(target=promote, args=(url, text))
                asked_s.append(time.monotonic())
                asked.start()
                if k in killed:
                    time.sleep(chance.uniform(0, 0.3))
                    child.kill()
                    child = children.enter_context(Child(data, "inprocess", log, port=port))
                    client.wait_ready(COMPILING_S)
                asked.join()
                until(lambda text=text: promote(url, text), "the text is taken")  # type: ignore[misc]
                until(lambda k=k: client.query("q")["version"] == k + 2, "it has taken over")  # type: ignore[misc]
            feeder.wait_for(3_000)
            rate = feeder.rate
        client.finish("default")
        until(lambda: client.query("q")["lag"] == 0, "the end is applied")
        versions, last = client.versions("q"), client.query("q")["last"]
        watcher.end(last)
        child.stop()
    with closing(SolutionReader(data)) as solutions, closing(LogReader(data)) as reader:
        found = [row for batch in solutions.emitted() for row in listed(batch)]
        ends = [*(version["position"] for version in versions[1:]), reader.head()]
    assert [version["query"] for version in versions] == [TEXTS[k % len(TEXTS)] for k in range(MOMENTS + 1)]
    narrow, wide = (alone(data, TEXTS[k], registered) for k in range(2))
    expected: list[Row] = []
    for version, end in zip(versions, ends, strict=True):
        expected += [row for row in (narrow if "PT1S" in version["query"] else wide) if version["position"] <= row[0] < end]
    assert found == expected
    assert len(narrow) < len(found) < len(wide)
    assert watcher.ids == sorted(set(watcher.ids))
    assert len(watcher.ids) == len(found)
    assert [(notice.after, notice.position) for notice, _ in watcher.notices] == [(each["version"], each["position"]) for each in versions[1:]]
    assert "Traceback" not in log.read_text()
    print(f"{feeder.sent} events, {rate:.0f} a second, {KILLS} kills; {len(found)} solutions")
    report(watcher, asked_s, killed)


def report(watcher: Watcher, asked_s: list[float], killed: set[int]) -> None:
    """Print how long switches without a kill took. In full, hold them to their limits, with what solutions wait anyway."""
    calm = [k for k in range(MOMENTS) if k not in killed]
    kept, others = ([k for k in calm if (k % 2 == 1) is alike] for alike in (True, False))
    taken = sorted(watcher.notices[k][1] - asked_s[k] for k in others)
    switches = [sorted(watcher.switches[k + 2] for k in part if k + 2 in watcher.switches) for part in (kept, others)]
    ordinary = sorted(watcher.waits)[-1 - len(watcher.waits) // 1000]
    print(f"a thousandth of the solutions come {ordinary * 1000:.0f} ms or longer after the one before")
    for name, found in (("one plan, last solution to first", switches[0]), ("other plans", switches[1]), ("other plans, request to notice", taken)):
        if found:
            print(f"{name}: {len(found)} moments, half within {found[len(found) // 2] * 1000:.0f} ms, all within {found[-1] * 1000:.0f} ms")
    if is_full():
        assert switches[0][-1] < KEPT_S + ordinary
        assert switches[1][-1] < SWITCH_S + ordinary

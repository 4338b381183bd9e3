"""Servers that stand by for each other over one store: killed, paused and cut off from the store, and looked at from
outside.

Each server is a process, and reaches an emulation of S3 by a line of its own. Whoever sends gives each event a key,
and sends it to either server until it is acknowledged. In the end each acknowledged event has one solution, under one
id. EPSPARQL_TAKEOVERS says how many takeovers (`make takeovers`).
"""

import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from epsparql.client import ApiError, Client, Solution, Unreachable
from pipeline.object_store.backends import connect_store
from pipeline.replication.standbys import STANDBYS
from tests.server.conftest import COMPILING_S, event, until, values
from tests.soak import is_full
from tests.support.s3_emulator import CREDENTIALS, Line, S3Bucket, served

TERM_S = 4.0
WITHIN_S = 10.0
"""A takeover takes no longer, from the death to the next acknowledgement."""
PATIENCE_S = 600.0
TAKEOVERS = int(os.environ.get("EPSPARQL_TAKEOVERS", 200 if is_full() else 4))
IS_TIMED = is_full() or "EPSPARQL_TAKEOVERS" in os.environ  # elsewhere, other tests take the time
KILL, PAUSE, CUT, TOGETHER = FAULTS = ("kill", "pause", "cut", "together")


@dataclass
class Member:
    """A server of the pair, with its line to the store."""

    directory: Path
    line: Line
    bucket: S3Bucket
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "server.cli",
            "serve",
            "--runner",
            "inprocess",
            "--port",
            str(self.port),
            "--data",
            str(self.directory / "data"),
        ]
        command += ["--store", self.bucket.uri("p", port=self.line.port), "--takeover-s", str(TERM_S)]
        with (self.directory / "told").open("ab") as told:
            self.process = subprocess.Popen(command, stdout=told, stderr=told, stdin=subprocess.DEVNULL)

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def end(self, number: signal.Signals) -> None:
        self.send_signal(number)
        assert self.process is not None
        self.process.wait(60)

    def leads(self) -> bool:
        try:
            Client(self.url, patience_s=0).request("GET", "/readyz")
        except (OSError, ApiError):
            return False
        return True


@dataclass
class Sender:
    """Sends numbered events without end, each until it is acknowledged. `acked` has the time of each acknowledgement."""

    urls: str
    acked: dict[int, float] = field(default_factory=dict)
    stopping: threading.Event = field(default_factory=threading.Event)
    failure: str = ""

    def run(self) -> None:
        client = Client(self.urls)  # it turns by itself from a server that is paused, long before its own time limit
        for number in itertools.count():
            deadline = time.monotonic() + PATIENCE_S
            while number not in self.acked and not self.stopping.is_set():
                try:
                    client.send("s", event(number), key=f"event {number}")
                    self.acked[number] = time.monotonic()
                except (OSError, ApiError) as fault:
                    if time.monotonic() > deadline or (isinstance(fault, ApiError) and fault.status < 500):
                        self.failure = f"event {number}: {fault}"
                        return
                    time.sleep(0.05)
            if self.stopping.wait(0.02):
                return

    def wait_for_next(self, since: float) -> float:
        """Return how long after an instant the first acknowledgement came of an event that was sent then or later."""
        known, deadline = len(self.acked), time.monotonic() + PATIENCE_S
        while len(self.acked) <= known + 1:  # the answer to an earlier one may be on its way
            assert time.monotonic() < deadline, self.failure or "no acknowledgement"
            time.sleep(0.02)
        return sorted(self.acked.values())[known + 1] - since


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Member]]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        bucket = stack.enter_context(served(tmp_path)).bucket()
        members = []
        for name in "ab":
            (tmp_path / name).mkdir()
            member = Member(tmp_path / name, stack.enter_context(Line(bucket)), bucket, _free_port())
            members.append(member)
            stack.callback(_end, member)
        yield members


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _end(member: Member) -> None:
    if member.process is not None and member.process.poll() is None:
        member.end(signal.SIGKILL)


def leader_of(pair: list[Member]) -> Member:
    """Wait until exactly one server leads, and return it."""
    deadline = time.monotonic() + COMPILING_S
    while True:
        leading = [member for member in pair if member.process is not None and member.leads()]
        if len(leading) == 1:
            return leading[0]
        assert time.monotonic() < deadline, [(member.directory / "told").read_text()[-2000:] for member in pair]
        time.sleep(0.05)


def strike(fault: str, leader: Member, other: Member, sender: Sender) -> float:
    """Let the leader suffer a fault, and return how long it took until an event was acknowledged by the other server.

    Both servers run in the end.
    """
    began = time.monotonic()
    if fault == KILL:
        leader.end(signal.SIGKILL)
    elif fault == PAUSE:
        leader.send_signal(signal.SIGSTOP)
    elif fault == CUT:
        leader.line.hold()
    else:  # both are killed, and begin in the same instant
        other.end(signal.SIGKILL)
        leader.end(signal.SIGKILL)
        leader.start()
        other.start()
        leader_of([leader, other])
        return sender.wait_for_next(time.monotonic())
    took = sender.wait_for_next(began)
    assert leader_of([other]) is other
    if fault == KILL:
        leader.start()
    elif fault == PAUSE:
        leader.send_signal(signal.SIGCONT)
    else:
        leader.line.mend()
    return took


@pytest.mark.slow
def test_a_server_that_stands_by_takes_over(pair: list[Member]) -> None:
    chance = random.Random(0)
    for member in pair:
        member.start()
    leader = leader_of(pair)
    urls = ",".join(member.url for member in pair)
    client = Client(urls, patience_s=PATIENCE_S)
    client.register("q", values("s"))
    sender, told = Sender(urls), list[Solution]()
    over = threading.Event()
    threads = [threading.Thread(target=sender.run), threading.Thread(target=_follow, args=(urls, told, over))]
    for thread in threads:
        thread.start()
    try:
        took: dict[str, list[float]] = {fault: [] for fault in FAULTS}
        sender.wait_for_next(time.monotonic())
        for fault in [*FAULTS, *(chance.choice(FAULTS) for _ in range(TAKEOVERS - len(FAULTS)))]:
            leader = leader_of(pair)
            other = next(member for member in pair if member is not leader)
            _wait_for_standby(other)
            took[fault].append(strike(fault, leader, other, sender))
        longest = {fault: max(times) for fault, times in took.items()}
        print(
            f"\n{sum(map(len, took.values()))} takeovers, {len(sender.acked)} events; the longest took",
            {fault: round(s, 1) for fault, s in longest.items()},
        )
        sender.stopping.set()
        threads[0].join(PATIENCE_S)
        assert sender.failure == ""
        check_from_outside(client, sender, told)
        if IS_TIMED:
            assert max(longest[KILL], longest[PAUSE], longest[CUT]) < WITHIN_S, longest
    finally:
        sender.stopping.set()
        over.set()
        for thread in threads:
            thread.join(PATIENCE_S)


def _wait_for_standby(member: Member) -> None:
    """Wait until a server has loaded its code and stands by: only then does it take over in time."""
    deadline = time.monotonic() + COMPILING_S
    while code_of(member) != "standby-loaded":
        assert time.monotonic() < deadline, (member.directory / "told").read_text()[-2000:]
        time.sleep(0.05)


def code_of(member: Member) -> str:
    """Return the code of the problem with which a server answers `/readyz`; nothing where it serves, or does not
    answer.
    """
    try:
        Client(member.url, patience_s=0).request("GET", "/readyz")
    except ApiError as fault:
        return fault.code
    except OSError:
        pass
    return ""


def count_standbys(leader: Member) -> dict[str, int]:
    """Return how many servers stand by for a server, by state, as it says."""
    found: dict[str, int] = json.loads(Client(leader.url).request("GET", "/readyz")[2])["standbys"]
    text = Client(leader.url).request("GET", "/metrics")[2].decode()
    assert set(re.findall(r'epsparql_standbys{state="(\w+)"}', text)) == set(found)
    return found


@pytest.mark.slow
def test_a_server_knows_who_stands_by_for_it(pair: list[Member]) -> None:
    leader, other = pair
    leader.start()
    assert leader_of(pair) is leader
    other.start()
    _wait_for_standby(other)
    assert Client(other.url).request("GET", "/livez")[0] == 200
    until(lambda: count_standbys(leader) == {"loading": 0, "loaded": 1}, "it is counted")
    client = Client(f"{other.url},{leader.url}", patience_s=0)
    client.register("q", values("s"))  # the standby server is asked first
    assert [query["name"] for query in client.queries()] == ["q"]
    with pytest.raises(ApiError) as refused:
        Client(other.url, patience_s=0).queries()
    assert (refused.value.status, refused.value.code) == (503, "standby-loaded")
    other.end(signal.SIGKILL)
    until(lambda: count_standbys(leader) == {"loading": 0, "loaded": 0}, "it is forgotten")
    store = connect_store(leader.bucket.uri("p"))
    assert store.names(STANDBYS) == []
    other.start()
    until(lambda: store.names(STANDBYS) != [], "it has begun")
    assert code_of(other).startswith("standby-")
    leader.end(signal.SIGKILL)
    assert leader_of([other]) is other, "it takes over, although it may not have loaded its code"
    until(lambda: count_standbys(other) == {"loading": 0, "loaded": 0}, "it does not count itself")
    store.close()


def check_from_outside(client: Client, sender: Sender, told: list[Solution]) -> None:
    """Each acknowledged event has one solution, ids rise, and the follower was told of each solution once, in order."""
    client.wait_ready(COMPILING_S)  # it turns to the server that leads
    deadline = time.monotonic() + PATIENCE_S
    while client.query("q")["lag"] or client.query("q")["solutions"] < len(sender.acked):
        assert time.monotonic() < deadline, client.query("q")
        time.sleep(0.1)
    found, after = list[Solution](), None
    while page := client.solutions("q", after=after, limit=1000):
        found += page
        after = page[-1].id
    ids = [solution.id for solution in found]
    assert ids == sorted(set(ids))
    numbers = [int(str(solution["v"])) for solution in found]
    assert len(numbers) == len(set(numbers))
    assert set(sender.acked) <= set(numbers)
    while len(told) < len(ids):
        assert time.monotonic() < deadline, "the follower was not told of all solutions"
        time.sleep(0.1)
    assert [solution.id for solution in told] == ids


def _follow(urls: str, told: list[Solution], over: threading.Event) -> None:
    with Client(urls, patience_s=PATIENCE_S).follow("q", policy="disconnect") as subscription:
        while not over.is_set():
            try:
                word = subscription.next(0.5)
            except Unreachable:
                return
            if isinstance(word, Solution):
                told.append(word)

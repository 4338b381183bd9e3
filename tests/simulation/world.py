"""Servers on machines, clients that send events, and what goes wrong meanwhile; at the end the world checks what was
promised.

What is promised: an event that was acknowledged is in the log once, at the place that was told; the log is evaluated
in order and once; ids stay; nobody reads what is not on the disk; and of two servers over one store, only what the
later one goes on from counts.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from engine.engine import Engine
from engine.messages import Events, Register
from pipeline.errors import Corrupt, Locked, LogFailed, NotOfOneLog, NotOfThisStore, Overloaded, StoreFailed, StoreTaken
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.log import LogReader, LogWriter, reader, writer
from pipeline.log.segments import HEAD, segment_path
from pipeline.replication import log_replica, replicator
from pipeline.replication.replicator import Replicator
from pipeline.runners import in_process, snapshots
from pipeline.runners.in_process import InProcessRunner
from pipeline.solutions import solution_log
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter, check_solutions, listed
from tests.simulation.disk import Disk, Disks
from tests.simulation.scheduler import Process, Scheduler, is_simulated
from tests.simulation.store import SharedBucket, StoreClient

_MODULES = (reader, writer, in_process, snapshots, solution_log, log_replica)
_EVENTS, CLIENTS = 12, 2
_SEGMENT_BYTES, _SNAPSHOT_WEIGHT, _MAX_ROWS = 6000, 150, 3
"""A segment holds three or four frames: some follow others in their segment, and some begin one."""
_ANSWER_S = 45.0
_BASE_US = 1_767_225_600_000_000
_QUERIES = {
    "plain": "SELECT ?o FROM STREAM <c0> WHERE { ?s <http://e/p> ?o }",
    "pairs": "SELECT ?a ?b FROM STREAM <c0> FROM STREAM <c1> WHERE { { ?s <http://e/p> ?a } SEQ { ?s <http://e/p> ?b } WITHIN 'PT4S' }",
}
Found = tuple[str, tuple[str | None, ...]]
"""An id, and values."""


class Broken(BaseException):
    """Reports that a promise does not hold. No handler of the product takes it for a fault that passes."""


@dataclass(slots=True, eq=False)
class SimulatedServer:
    """A process on a machine, with its parts while it runs."""

    process: Process
    disk: Disk
    log: LogWriter | None = None
    runner: InProcessRunner | None = None
    keeper: Replicator | None = None
    ended: bool = False

    @property
    def up(self) -> bool:
        return self.process.alive and self.log is not None and not self.ended


@dataclass(slots=True, eq=False)
class World:
    """One history. `stored` has its servers keep their data in a store."""

    scheduler: Scheduler
    root: Path
    stored: bool
    bucket: SharedBucket = field(default_factory=SharedBucket)
    servers: list[SimulatedServer] = field(default_factory=list)
    acks: dict[tuple[int, int], int] = field(default_factory=dict)
    seen: dict[str, list[Found]] = field(default_factory=lambda: {name: [] for name in _QUERIES})
    outside: Process = field(default_factory=lambda: Process("outside", outside=True))
    disks: Disks = field(init=False)
    calm: bool = False
    last: Path | None = None
    """This directory is what counts in the end."""

    def __post_init__(self) -> None:
        self.disks = Disks(self.scheduler, _check_published)

    # ------------------------------------------------------------ servers
    def boot(self, disk: Disk) -> SimulatedServer:
        """Start a server on a machine."""
        process = disk.process = Process(f"{disk.root.name}.{len(self.servers)}")
        server = SimulatedServer(process, disk)
        self.servers.append(server)
        self.scheduler.start("main", process, lambda: self._serve(server))
        return server

    def new_machine(self) -> Disk:
        root = self.root / f"machine{len(self.disks.disks)}"
        root.mkdir()
        disk = self.disks.disks[root] = Disk(root, self.outside)
        return disk

    def _serve(self, server: SimulatedServer) -> None:
        """Do what `epsparql serve` does, again after refusals that pass."""
        while server.process.alive:
            try:
                self._open(server)
            except (OSError, StoreFailed, LogFailed) as refusal:
                self.scheduler.note(f"refused: {refusal!r}")
                self._release(server)
                self.scheduler.sleep(1.0)
            except (Corrupt, NotOfOneLog) as refusal:
                self.scheduler.note(f"refused: {refusal!r}")
                server.ended = True
                return
            except (StoreTaken, NotOfThisStore, Locked) as refusal:  # Locked: what copies to the store has not ended yet, as a process would have
                self.scheduler.note(f"refused: {refusal!r}")
                self._release(server)
                server.ended = True
                return
            else:
                self.scheduler.note("serves")
                self._deliver(server)
                return

    def _open(self, server: SimulatedServer) -> None:
        data = server.disk.root / "data"
        if self.stored:
            server.keeper = Replicator(data, StoreClient(self.bucket, server.process, self.scheduler))
            server.keeper.start()
        log = LogWriter(data, self.clock, segment_bytes=_SEGMENT_BYTES, keep=None if server.keeper is None else server.keeper.write_log)
        try:
            check_solutions(data)
            server.runner = InProcessRunner(data, log.reader(), max_rows=_MAX_ROWS, snapshot_weight=_SNAPSHOT_WEIGHT)
            server.runner.start()
        except BaseException:
            log.close()
            raise
        server.log = log

    def _release(self, server: SimulatedServer) -> None:
        if server.keeper is not None:
            server.keeper.stop()
            server.keeper = None

    def _deliver(self, server: SimulatedServer) -> None:
        """Give subscribers what is new, while the server runs."""
        assert server.log is not None
        assert server.runner is not None
        data, told, log = server.disk.root / "data", b"", server.log
        with closing(SolutionReader(data)) as solutions:
            while not server.ended:
                if server.runner.state.startswith("failed"):
                    raise Broken(f"the runner of {server.process.name} {server.runner.state}")
                if server.keeper is not None and server.keeper.taken:
                    self.scheduler.note("another server has the store")
                    server.ended = True
                    return
                head = _head_record(data)
                if head != told and not sum(self._tell(log, solutions, name) for name in _QUERIES):
                    told = head
                self.scheduler.sleep(self.scheduler.random.random() * 0.5)

    def _tell(self, log: LogWriter, solutions: SolutionReader, name: str) -> int:
        """Give subscribers of a query some of what they have not seen, and return how many solutions that were.

        A subscriber has one connection. So what another server has told meanwhile counts, and what was read here does
        not.
        """
        query, seen = log.catalogue.queries.get(name), self.seen[name]
        if query is None:
            return 0
        known = len(seen)
        found = listed(solutions.read(query.registered, seen[-1][0] if seen else None, 4))
        if len(seen) == known:
            seen += [(solution.id, solution.values) for solution in found]
        return len(found)

    def clock(self) -> int:
        return _BASE_US + round(self.scheduler.now_s * 1e6)

    def stop_server(self, server: SimulatedServer) -> None:
        """Stop a server in order. It is a task of the server's."""
        assert server.log is not None
        assert server.runner is not None
        log, server.log, server.ended = server.log, None, True
        server.runner.stop()
        log.close()
        self._release(server)
        server.process.alive = False

    # ------------------------------------------------------------ clients
    def find_server(self) -> SimulatedServer | None:
        """Wait for a server that runs, and return one of them; None where none came."""
        self.scheduler.wait(lambda: any(server.up for server in self.servers), _ANSWER_S)
        up = [server for server in self.servers if server.up]
        return self.scheduler.random.choice(up) if up else None

    def send_events(self, client: int) -> None:
        """Send events one after the other, each again until it is acknowledged."""
        for number in range(_EVENTS):
            at = _BASE_US + (2 * number + client) * 1_000_000
            rows = batch_of(["<http://e/s>"], ["<http://e/p>"], [f'"{client}-{number}"'], [None], [at], [at])
            while (client, number) not in self.acks:
                server = self.find_server()
                if server is None or server.log is None:
                    continue
                try:
                    ack = server.log.submit(f"c{client}", rows, f"{client}-{number}")
                    self.scheduler.wait(lambda: ack.done() or not server.up, _ANSWER_S)  # noqa: B023 - it is waited for here
                    if ack.done() and server.process.alive:
                        self.acks[client, number] = ack.result().offset
                        self.scheduler.note(f"event {client}-{number} is at {ack.result().offset}")
                except (LogFailed, Overloaded) as refusal:
                    self.scheduler.note(f"event {client}-{number}: {refusal!r}")
                    self.scheduler.sleep(0.5)
            self.scheduler.sleep(self.scheduler.random.random())

    def register(self, then: Callable[[], None]) -> None:
        """Register the queries, and then begin."""
        for name, text in _QUERIES.items():
            while True:
                server = self.find_server()
                if server is None or server.log is None:
                    continue
                if name in server.log.catalogue.queries:
                    break
                log = server.log

                def build(offset: int, log: LogWriter = log, name: str = name, text: str = text) -> Register:
                    if name in log.catalogue.queries:  # a server answers one registration of a name before it looks at the next
                        raise LogFailed(f"{name} was registered meanwhile")
                    return Register(offset, name, text)

                try:
                    ack = log.submit_entry(build)
                    self.scheduler.wait(lambda: ack.done() or not server.up, _ANSWER_S)  # noqa: B023
                    if ack.done() and server.process.alive:
                        ack.result()
                        break
                except (LogFailed, Overloaded):
                    self.scheduler.sleep(0.5)
        then()

    # ------------------------------------------------------------ the end
    def is_settled(self) -> bool:
        """Return whether all events are acknowledged, all is calm, and what runs has evaluated everything and told it."""
        if not self.calm or len(self.acks) < _EVENTS * CLIENTS:
            return False
        up = [server for server in self.servers if server.up and not (server.keeper is not None and server.keeper.taken)]
        self.last = up[-1].disk.root / "data" if up else None
        return bool(up) and all(server.runner is not None and server.log is not None and server.runner.position == server.log.head() for server in up)

    def check_promises(self) -> None:
        """Compare what stands in the end with what was promised. Raises: Broken."""
        data = self.last
        assert data is not None
        with closing(LogReader(data)) as log:
            blocks = list(log.blocks(0, 10))
        found: dict[tuple[int, int], list[int]] = {}
        for block in blocks:
            offsets = [entry.offset for entry in block.entries if isinstance(entry, Events) for _ in range(entry.rows)]
            for text, offset in zip(block.rows.column("o").to_pylist(), offsets, strict=True):
                client, _, number = text.strip('"').partition("-")
                found.setdefault((int(client), int(number)), []).append(offset + 1)
        for event, offset in self.acks.items():
            if found.get(event) != [offset]:
                raise Broken(f"event {event} was told to be at {offset}, and is at {found.get(event)}")
        expected, written = self._evaluate(blocks), _read_solutions(data)
        if written != expected:
            raise Broken(f"the solutions are {written}, and should be {expected}")
        for name, seen in self.seen.items():
            if seen != expected[name][: len(seen)]:
                raise Broken(f"a subscriber of {name} was told {seen}, and should be told {expected[name]}")

    def _evaluate(self, blocks: list) -> dict[str, list[Found]]:  # type: ignore[type-arg]
        """Return what one engine gives that reads the log at once."""
        data, engine = self.root / "expected", Engine()
        with closing(SolutionWriter(data)) as solutions:
            for block in blocks:
                outcome = engine.feed(block)
                solutions.commit(block.first, block.after, outcome.solutions, outcome.changes)
        return _read_solutions(data)


def _head_record(data: Path) -> bytes:
    try:
        return (data / "solutions" / "head").read_bytes()
    except FileNotFoundError:
        return b""


def _read_solutions(data: Path) -> dict[str, list[Found]]:
    found: dict[str, list[Found]] = {name: [] for name in _QUERIES}
    with closing(SolutionReader(data)) as solutions:
        for batch in solutions.emitted():
            for solution in listed(batch):
                found[solution.query].append((solution.id, solution.values))
    return found


def _check_published(disk: Disk, path: Path, record: bytes) -> None:
    """See that a log's published bytes are on the disk. Raises: Broken."""
    _, segment, size, position, _ = HEAD.unpack(record)
    if size and not disk.is_durable(segment_path(path.parent, segment), size):
        raise Broken(f"the log is published up to {position}, which is not on the disk")


@contextmanager
def simulated(scheduler: Scheduler, world: World) -> Iterator[None]:
    """Have the product's threads, clock and files be those of the simulation while the block runs."""
    made = scheduler.primitives()
    sleep, monotonic = time.sleep, time.monotonic
    with ExitStack() as stack:
        for module in _MODULES:
            for name, stand_in in made.items():
                if getattr(module, name, None) is getattr(threading, name):
                    stack.enter_context(mock.patch.object(module, name, stand_in))
        stack.enter_context(mock.patch.object(replicator, "threading", SimpleNamespace(**made)))
        stack.enter_context(mock.patch.object(time, "sleep", lambda seconds: scheduler.sleep(seconds) if is_simulated() else sleep(seconds)))
        stack.enter_context(mock.patch.object(time, "monotonic", lambda: scheduler.now_s if is_simulated() else monotonic()))  # noqa: PT008 - it depends on the caller
        stack.enter_context(world.disks.in_place())
        yield

"""Runs one history: servers and clients, and the faults that a seed chooses."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from pipeline.errors import Corrupt
from pipeline.log.segments import FrameWriter, segment_path, segments
from pipeline.replication.replicator import PATIENCE_S
from tests.simulation.disk import Disk
from tests.simulation.scheduler import Scheduler, Task
from tests.simulation.world import CLIENTS, Broken, SimulatedServer, World, simulated

_FAULTS = 6


def run_history(seed: int, *, stored: bool = False) -> list[str]:
    """Run the history of a seed, and return its trace.

    Raises: Broken, and whatever else goes wrong, with the seed and the trace.
    """
    scheduler = Scheduler(seed)
    with tempfile.TemporaryDirectory(prefix="epsparql-simulation-") as root:
        world = World(scheduler, Path(root), stored)
        try:
            with simulated(scheduler, world):
                _begin(world)
                scheduler.run(world.is_settled)
        except BaseException as fault:
            fault.add_note(f"seed {seed}, stored {stored}\n" + "\n".join([*scheduler.trace[:60], "...", *scheduler.trace[-10:]]))
            raise
        finally:
            for disk in world.disks.disks.values():
                disk.release()
        try:
            world.check_promises()
        except Broken as fault:
            fault.add_note(f"seed {seed}, stored {stored}\n" + "\n".join(scheduler.trace))
            raise
    return scheduler.trace


def _begin(world: World) -> None:
    world.boot(world.new_machine())

    def send() -> None:
        for client in range(CLIENTS):
            world.scheduler.start(f"client{client}", world.outside, lambda client=client: world.send_events(client))  # type: ignore[misc]

    world.scheduler.start("setup", world.outside, lambda: world.register(send))
    world.scheduler.start("chaos", world.outside, _Chaos(world).run)


class _Chaos:
    """Does harm now and then, and heals it all in the end."""

    def __init__(self, world: World) -> None:
        self._world, self._scheduler, self._random = world, world.scheduler, world.scheduler.random
        self._old_log: Path | None = None
        self._lasting: list[Task] = []
        """These end harm that lasts for a while."""

    def run(self) -> None:
        kinds: list[Callable[[Disk, SimulatedServer], None]] = [
            self._kill,
            self._kill,
            self._lose_power,
            self._lose_power,
            self._fail_syncs,
            self._fill,
            self._slow,
            self._restart,
        ]
        if not self._world.stored:
            kinds += [self._lose_segment, self._set_back]
        else:
            kinds += [self._freeze, self._cut_off, self._drop_calls, self._take_over, self._take_over]
        for _ in range(self._random.randrange(1, _FAULTS + 1)):
            self._scheduler.sleep(self._random.expovariate(0.3))
            server = self._world.servers[-1]
            kind = self._random.choice(kinds)
            self._scheduler.note(kind.__name__)
            kind(server.disk, server)
        self._scheduler.wait(lambda: all(task.done for task in self._lasting))
        self._heal()

    # ------------------------------------------------------------ harm
    def _end(self, server: SimulatedServer) -> None:
        server.process.alive = False
        server.process.frozen = False
        tasks = [task for task in self._scheduler.tasks if task.process is server.process]
        self._scheduler.wait(lambda: all(task.done for task in tasks))
        server.disk.release()

    def _again(self, disk: Disk) -> None:
        self._scheduler.sleep(self._random.random() * 2)
        self._world.boot(disk)

    def _kill(self, disk: Disk, server: SimulatedServer) -> None:
        self._end(server)
        self._again(disk)

    def _lose_power(self, disk: Disk, server: SimulatedServer) -> None:
        self._end(server)
        disk.lose_power(self._scheduler)
        self._again(disk)

    def _restart(self, disk: Disk, server: SimulatedServer) -> None:
        if server.up:
            task = self._scheduler.start("stop", server.process, lambda: self._world.stop_server(server))
            self._scheduler.wait(lambda: task.done, 60.0)
        self._kill(disk, server)

    def _lose_segment(self, disk: Disk, server: SimulatedServer) -> None:
        """Remove a segment that others follow: the server has to say so."""
        self._end(server)
        log = disk.root / "data" / "log"
        before = segments(log)[:-1] if log.exists() else []
        if before:
            self._expect_refusal(disk, segment_path(log, self._random.choice(before)).unlink)
        self._again(disk)

    def _set_back(self, disk: Disk, server: SimulatedServer) -> None:
        """Put an older log beside newer solutions: the server has to say so.

        The first call keeps the log that the next one puts back.
        """
        self._end(server)
        data = disk.root / "data"
        old, self._old_log = self._old_log, self._world.root / f"log{len(self._world.servers)}"
        shutil.copytree(data / "log", self._old_log, dirs_exist_ok=True)
        before, after = None if old is None else self._find_reach(old), self._find_reach(data / "solutions")
        if old is not None and before is not None and after is not None and before < after:

            def replace() -> None:
                shutil.rmtree(data / "log")
                shutil.copytree(old, data / "log")
                (data / "catalogue.json").unlink(missing_ok=True)

            self._expect_refusal(disk, replace)
        self._again(disk)

    def _find_reach(self, directory: Path) -> int | None:
        """Return the position to which the next writer brings a log that a loss of power may have torn; None where it
        cannot be mended.
        """
        with tempfile.TemporaryDirectory(dir=self._world.root) as copy:
            try:
                shutil.copytree(directory, copy, dirs_exist_ok=True)
                with closing(FrameWriter(Path(copy), durable=False)) as writer:
                    return writer.position
            except (Corrupt, FileNotFoundError):
                return None

    def _expect_refusal(self, disk: Disk, spoil: Callable[[], object]) -> None:
        """Spoil the data of a server that does not run, see that the next one refuses them, and mend them."""
        data, kept = disk.root / "data", disk.root / "kept"
        shutil.copytree(data, kept)
        spoil()
        server = self._world.boot(disk)
        self._scheduler.wait(lambda: server.up or server.ended)
        if server.up:
            raise Broken("a server began with a log that lacks something")
        self._end(server)
        shutil.rmtree(data)
        kept.rename(data)
        disk.take_as_it_is()

    def _fail_syncs(self, disk: Disk, _server: SimulatedServer) -> None:
        disk.faults.syncs = self._random.randrange(1, 4)

    def _fill(self, disk: Disk, _server: SimulatedServer) -> None:
        disk.faults.full = True
        self._scheduler.sleep(self._random.random() * 5)
        disk.faults.full = False

    def _slow(self, disk: Disk, _server: SimulatedServer) -> None:
        disk.faults.slow_s = self._random.random()

    def _freeze(self, _disk: Disk, server: SimulatedServer) -> None:
        server.process.frozen = True
        self._lasting.append(self._scheduler.start("thaw", self._world.outside, lambda: self._thaw(server, self._random.random() * 60)))

    def _thaw(self, server: SimulatedServer, after_s: float) -> None:
        self._scheduler.sleep(after_s)
        server.process.frozen = False

    def _cut_off(self, _disk: Disk, server: SimulatedServer) -> None:
        """Cut a server off the store, half the time for longer than a writer waits for it."""
        self._world.bucket.cut_off.append(server.process)
        after_s = self._random.random() * 2 * PATIENCE_S
        self._lasting.append(self._scheduler.start("mend", self._world.outside, lambda: self._join(server, after_s)))

    def _join(self, server: SimulatedServer, after_s: float) -> None:
        self._scheduler.sleep(after_s)
        if server.process in self._world.bucket.cut_off:
            self._world.bucket.cut_off.remove(server.process)

    def _drop_calls(self, _disk: Disk, _server: SimulatedServer) -> None:
        self._world.bucket.drops, self._world.bucket.slow_s = self._random.random() * 0.3, self._random.random()

    def _take_over(self, _disk: Disk, _server: SimulatedServer) -> None:
        """A new machine goes on, whatever the one before it does."""
        self._world.boot(self._world.new_machine())

    # ------------------------------------------------------------ the end
    def _heal(self) -> None:
        """End all harm; the machine that began last goes on, or a new one."""
        world, bucket = self._world, self._world.bucket
        bucket.cut_off.clear()
        bucket.drops, bucket.slow_s = 0.0, 0.05
        for disk in world.disks.disks.values():
            disk.faults.syncs, disk.faults.full, disk.faults.slow_s = 0, False, 0.0
        for server in world.servers:
            server.process.frozen = False
        self._scheduler.sleep(100.0)
        while not any(server.up for server in world.servers):
            server = world.servers[-1]
            if server.process.alive and not server.ended:
                self._scheduler.sleep(10.0)
            else:
                self._end(server)
                world.boot(world.new_machine() if world.stored else server.disk)
                self._scheduler.sleep(30.0)
        world.calm = True

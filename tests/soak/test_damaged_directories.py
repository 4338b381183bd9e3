"""Data directories damaged in every way: a start refuses with a message that names file and remedy, or finds the very
same solutions and goes on.
"""

import os
import random
import re
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from epsparql.client import ApiError, Client
from pipeline.errors import Corrupt, LogFailed, PipelineError
from pipeline.log import LogWriter
from pipeline.runners.in_process import InProcessRunner
from pipeline.scrub import Scrubber
from pipeline.solutions.solution_log import SolutionReader, StoredSolution, check_solutions, listed
from server.child_server import Child, ChildFailed
from tests.pipeline.log.test_retention import SEGMENT, fill
from tests.soak import budget_s, first_seed, is_short
from tests.support import spark_cases as cases
from tests.support.logs import DEADLINE_S, until

pytestmark = pytest.mark.slow
OLDER, WHOLE, FURTHER = 60, 150, 190
REMEDIES = re.compile(r"restore|remove |stop it")
BACKUP = "log and catalogue.json of "
SHORT = 40
"""How many directories CI tries."""
CHILDREN = 1
"""The damaged directories that a real server starts on, one in each minute: what all of them do is tried in this
process.
"""


@dataclass(frozen=True)
class Healthy:
    """A directory, an older copy of it, one of other events, and what further events bring."""

    whole: Path
    older: Path
    other: Path
    found: list[StoredSolution]
    backups: tuple[list[StoredSolution], ...]  # what the older copy and the other directory bring, taken whole


Damage = Callable[[Path, random.Random, Healthy], str]


# ---------------------------------------------------------------- kinds of damage
def files(data: Path) -> list[Path]:
    return sorted(path for path in data.rglob("*") if path.is_file() and path.name != "lock" and "reports" not in path.parts)


def delete(data: Path, pick: random.Random, _: Healthy) -> str:
    path = pick.choice(files(data))
    path.unlink()
    return f"deleted {path.relative_to(data)}"


def delete_directory(data: Path, pick: random.Random, _: Healthy) -> str:
    path = pick.choice(sorted(path for path in data.iterdir() if path.is_dir()))
    shutil.rmtree(path)
    return f"deleted {path.name}/"


def empty_directory(data: Path, pick: random.Random, _: Healthy) -> str:
    path = pick.choice(sorted(path for path in data.iterdir() if path.is_dir()))
    shutil.rmtree(path)
    path.mkdir()
    return f"emptied {path.name}/"


def truncate(data: Path, pick: random.Random, _: Healthy) -> str:
    path = pick.choice(files(data))
    size = pick.randrange(max(path.stat().st_size, 1))
    os.truncate(path, size)
    return f"cut {path.relative_to(data)} to {size}"


def flip(data: Path, pick: random.Random, _: Healthy) -> str:
    path = pick.choice(files(data))
    content = bytearray(path.read_bytes())
    if not content:
        return "nothing"
    at = pick.randrange(len(content))
    content[at] ^= 1 << pick.randrange(8)
    path.write_bytes(content)
    return f"flipped {path.relative_to(data)} at {at}"


def zero(data: Path, pick: random.Random, _: Healthy) -> str:
    """Zero up to 512 bytes of a file, as a file system may leave a page after a crash."""
    path = pick.choice(files(data))
    content = bytearray(path.read_bytes())
    at = pick.randrange(len(content) or 1)
    content[at : at + 512] = bytes(len(content[at : at + 512]))
    path.write_bytes(content)
    return f"zeroed {path.relative_to(data)} at {at}"


def swap(data: Path, pick: random.Random, _: Healthy) -> str:
    folder = pick.choice(["log", "solutions"])
    kind = pick.choice(["*.frames", "*.frames", "*"])
    found = [path for path in sorted((data / folder).glob(kind)) if path.is_file()]
    if len(found) < 2:
        return "nothing"
    one, other = pick.sample(found, 2)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    return f"swapped {one.relative_to(data)} and {other.relative_to(data)}"


def older_copy(data: Path, pick: random.Random, healthy: Healthy) -> str:
    return _from(data, pick, healthy.older)


def of_another(data: Path, pick: random.Random, healthy: Healthy) -> str:
    return _from(data, pick, healthy.other)


def older_part(data: Path, pick: random.Random, healthy: Healthy) -> str:
    return _part(data, pick, healthy.older)


def part_of_another(data: Path, pick: random.Random, healthy: Healthy) -> str:
    return _part(data, pick, healthy.other)


def stray(data: Path, pick: random.Random, _: Healthy) -> str:
    names = ("notes.frames", "5.frames", f"{pick.randrange(10**6):020d}.frames", "x.tmp", "0-abc.snapshot", f"{77:020d}.index", ".hidden")
    path = data / pick.choice(["log", "solutions", "snapshots"]) / pick.choice(names)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pick.randbytes(pick.randrange(100)))
    return f"stray {path.relative_to(data)}"


def _from(data: Path, pick: random.Random, source: Path) -> str:
    path = pick.choice(files(source))
    to = data / path.relative_to(source)
    to.parent.mkdir(exist_ok=True)
    shutil.copy(path, to)
    return f"{to.relative_to(data)} of {source.name}"


def _part(data: Path, pick: random.Random, source: Path) -> str:
    """A folder, or the backup of the documentation: log/ and catalogue.json."""
    names = pick.choice([("log",), ("solutions",), ("snapshots",), ("catalogue.json",), ("log", "catalogue.json"), ("solutions", "snapshots")])
    for name in names:
        if (data / name).is_dir():
            shutil.rmtree(data / name)
        if (source / name).is_dir():
            shutil.copytree(source / name, data / name)
        else:
            shutil.copy(source / name, data / name)
    return f"{' and '.join(names)} of {source.name}"


DAMAGES: list[Damage] = [
    delete, delete_directory, empty_directory, truncate, flip, flip, zero, swap, older_copy, of_another, older_part, part_of_another, stray,
]  # fmt: skip


# ---------------------------------------------------------------- what must come of it
def go_on(data: Path) -> list[StoredSolution]:
    """Start as `serve` does, feed the further events, and read all solutions. Raises: PipelineError, OSError."""
    with LogWriter(data, cases.frozen_clock, segment_bytes=SEGMENT) as log:
        check_solutions(data)
        runner = InProcessRunner(data, log.reader(), snapshot_weight=2_000)
        runner.start()
        try:
            cases.readings(log, range(WHOLE, FURTHER), random.Random(WHOLE))
            until(lambda: runner.position >= log.head() or runner.state.startswith("failed"), "the head is reached")
            if runner.state.startswith("failed"):
                raise PipelineError(runner.state)
        finally:
            runner.stop()
        found = read(data)
        Scrubber(data, log.tell_damage, rests=0).scrub()
    return found


def read(data: Path) -> list[StoredSolution]:
    with closing(SolutionReader(data)) as solutions:
        (registered,) = {solution.registered for batch in solutions.emitted(0) for solution in listed(batch)}
        found = listed(solutions.read(registered, None, 10**6))
        assert solutions.tally(registered).count == len(found)
        return found


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Healthy:
    root = tmp_path_factory.mktemp("healthy")
    fill(root / "whole", range(OLDER), begin=True)
    shutil.copytree(root / "whole", root / "older")
    fill(root / "whole", range(OLDER, WHOLE))
    with LogWriter(root / "other", cases.frozen_clock, segment_bytes=SEGMENT) as log:
        log.heartbeat()
    fill(root / "other", range(7, 7 + WHOLE), begin=True)
    found = []
    for name in ("whole", "older", "other"):
        shutil.copytree(root / name, root / f"{name}-expected")
        found.append(go_on(root / f"{name}-expected"))
    return Healthy(root / "whole", root / "older", root / "other", found[0], tuple(found[1:]))


def check(data: Path, told: str, healthy: Healthy) -> str:
    """Return what became of a damaged directory. Raises: AssertionError."""
    try:
        found = go_on(data)
    except (PipelineError, OSError) as fault:
        return refused(fault, told, data)
    except Exception as fault:
        raise AssertionError(f"{told}: {type(fault).__name__}: {fault}") from fault
    if BACKUP in told and found in healthy.backups:  # with no solutions that know more, it is that directory
        return "restored"
    assert found == healthy.found, f"{told}: {len(found)} solutions, not the {len(healthy.found)} of the healthy one"
    return "went on"


def refused(fault: Exception, told: str, data: Path) -> str:
    """See that the message names the place, and what to do."""
    assert "damaged" in str(fault) or not isinstance(fault, LogFailed), f"{told}: {fault}"
    assert REMEDIES.search(str(fault)) or isinstance(fault, OSError), f"{told}: no remedy in {type(fault).__name__}: {fault}"
    assert str(data) in str(fault), f"{told}: no file in {type(fault).__name__}: {fault}"
    return "damaged" if isinstance(fault, Corrupt) else "refused"


def test_damaged_directories(healthy: Healthy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fsync", "fdatasync"):  # a disk takes its time, and none fails here
        monkeypatch.setattr(os, name, lambda _: None)
    seed = first_seed()
    print(f"seed {seed}")
    pick = random.Random(seed)
    deadline = time.monotonic() + budget_s()
    outcomes: dict[str, int] = {}
    count = 0
    while (time.monotonic() < deadline or count < 10) and not (is_short() and count == SHORT):
        data = tmp_path / f"d{count}"
        shutil.copytree(healthy.whole, data)
        told = f"seed {seed}, {count}: " + ", ".join(pick.choice(DAMAGES)(data, pick, healthy) for _ in range(pick.choice([1, 1, 1, 2])))
        outcome = check(data, told, healthy)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        shutil.rmtree(data)
        count += 1
    print(outcomes)
    assert len(outcomes) > 1


def test_servers_over_damaged_directories(healthy: Healthy, tmp_path: Path) -> None:
    """The servers run as child processes: the same holds, and there is no traceback."""
    seed = first_seed()
    print(f"seed {seed}")
    pick = random.Random(seed)
    for count in range(max(CHILDREN, round(CHILDREN * budget_s() / 60))):
        data, text = tmp_path / f"d{count}", tmp_path / f"d{count}.log"
        shutil.copytree(healthy.whole, data)
        told = f"seed {seed}, {count}: {pick.choice(DAMAGES)(data, pick, healthy)}"
        try:
            with Child(data, "inprocess", text) as child:
                check_child(child.url, told, len(read(healthy.whole)))
        except ChildFailed:
            assert REMEDIES.search(text.read_text()), f"{told}: {text.read_text()}"
        assert "Traceback" not in text.read_text(), f"{told}: {text.read_text()}"
        shutil.rmtree(data)


def check_child(url: str, told: str, count: int) -> None:
    """Ready, and with all solutions once the log is read again, or not ready and with a reason.

    What is damaged may be found after the server was ready, by whatever reads it first.
    """
    states: list[httpx.Response] = []

    def settled() -> bool:
        states[:] = [httpx.get(f"{url}/readyz", timeout=DEADLINE_S)]
        return states[0].is_success or "fail" in states[0].text or "damaged" in states[0].text

    until(settled, told)
    if states[0].is_success:
        found: list[str] = []

        def solved() -> bool:
            try:
                return bool(Client(url).query("pairs")["solutions"] == count)
            except ApiError as fault:
                found.append(str(fault))
                return True

        until(solved, f"{told}: {count} solutions")
        assert all("damaged" in text and REMEDIES.search(text) for text in found), f"{told}: {found}"
    else:
        assert REMEDIES.search(states[0].text), (told, states[0].text)

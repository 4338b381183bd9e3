"""Logs for the runners' tests, and what an undisturbed in-process run makes of them."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import pyarrow as pa

from engine.messages import CatchUp, Drop, Facts, Fail, Finish, Pause, Promote, Register, Resume, SetStream, StateChange
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.log import LogReader, LogWriter
from pipeline.runners.in_process import InProcessRunner
from pipeline.solutions.solution_log import SolutionReader, StoredSolution, listed
from pipeline.source_positions import Source

SECOND = 1_000_000
START = 1_767_225_600 * SECOND
PAIRS = """PREFIX : <http://e/> SELECT ?s ?v ?w WHERE { { ?s :a ?v } SEQ { ?s :b ?w } WITHIN "PT30S"^^<http://www.w3.org/2001/XMLSchema#duration> }"""
CROSS = """PREFIX : <http://e/> SELECT ?s ?t ?v ?w WHERE { { ?s :a ?v } SEQ { ?t :b ?w } WITHIN "PT2S"^^<http://www.w3.org/2001/XMLSchema#duration> FILTER(?w > ?v) }"""
"""Several partitions share this one by time, in slices of 16 seconds."""
HIGH = "PREFIX : <http://e/> SELECT ?s ?v WHERE { ?s :a ?v FILTER(?v > 60) }"
NEAR = "PREFIX : <http://e/> SELECT ?s ?o ?v WHERE { ?s :a ?v . ?o :near ?s }"
RULE = 'PREFIX : <http://e/> CONSTRUCT { ?s :rise ?w } INTO STREAM <up> WHERE { { ?s :a ?v } SEQ { ?s :a ?w } FILTER(?w > ?v && getDURATION() < "PT5S"^^<http://www.w3.org/2001/XMLSchema#duration>) }'
RISES = "PREFIX : <http://e/> SELECT ?s ?w FROM STREAM <up> WHERE { ?s :rise ?w }"
BROKEN = "SELECT ?s WHERE { ?s ?p }"

Found = tuple[list[StoredSolution], tuple[StateChange, ...]]


def frozen_clock() -> int:
    """Arrival times are no part of any answer."""
    return START


def message(number: int, chance: Random) -> pa.RecordBatch:
    """One reading of a few sensors, a second after the last."""
    sensors = [f"<http://e/s{chance.randrange(4)}>" for _ in range(2)]
    predicates = [f"<http://e/{chance.choice('ab')}>" for _ in sensors]
    values = [f'"{chance.randrange(100)}"^^<http://www.w3.org/2001/XMLSchema#integer>' for _ in sensors]
    at = [START + number * SECOND] * len(sensors)
    return batch_of(sensors, predicates, values, None, at, at)


def register(log: LogWriter, name: str, text: str) -> int:
    return log.append(lambda offset: Register(offset, name, text, by_time=True))


def finish(log: LogWriter) -> int:
    return log.append(lambda offset: Finish(offset, "default"))


def readings(log: LogWriter, numbers: Sequence[int], chance: Random) -> None:
    for number in numbers:
        log.append_events("default", message(number, chance))


def sequences(log: LogWriter) -> None:
    register(log, "pairs", PAIRS)
    readings(log, range(150), Random(1))


def crossing(log: LogWriter) -> None:
    """A query without a key, which partitions share by time until a fact concerns it."""
    register(log, "cross", CROSS)
    readings(log, range(100), Random(8))
    log.append(lambda offset: Facts(offset, "", '<http://e/s1> <http://e/b> "1000"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'))
    readings(log, range(100, 130), Random(9))


def changing(log: LogWriter) -> None:
    """Queries that come, go, fail and are promoted, and facts, in the middle of the stream."""
    chance, high = Random(2), register(log, "high", HIGH)
    readings(log, range(60), chance)
    pairs = register(log, "pairs", PAIRS)
    register(log, "broken", BROKEN)
    readings(log, range(60, 90), chance)
    log.append(lambda offset: Facts(offset, "", "<http://e/hall> <http://e/near> <http://e/s1> .\n"))
    log.append(lambda offset: Drop(offset, high, "high"))
    register(log, "near", NEAR)
    log.append(lambda offset: Promote(offset, pairs, "pairs", PAIRS.replace("WHERE", "# as before\nWHERE"), keeps=True))
    log.heartbeat()
    readings(log, range(90, 150), chance)


def rules(log: LogWriter) -> None:
    rule = register(log, "rule", RULE)
    register(log, "rises", RISES)
    pairs = register(log, "pairs", PAIRS)
    readings(log, range(80), Random(3))
    log.append(lambda offset: Fail(offset, pairs, "pairs", "it keeps too much"))
    readings(log, range(80, 120), Random(4))
    log.append(lambda offset: Fail(offset, rule, "rule", "it keeps too much"))
    readings(log, range(120, 130), Random(5))


def completing(log: LogWriter) -> None:
    """Queries of every form; some have given all they can long before the end."""
    chance = Random(4)
    log.append(lambda offset: Facts(offset, "http://e/plan", "<http://e/s1> <http://e/in> <http://e/hall> .\n"))
    for name, text in FORMS.items():
        register(log, name, text)
    log.append(lambda offset: Register(offset, "unnamed", FORMS["rooms"], default_graph="unnamed"))
    readings(log, range(60), chance)
    log.append_events(
        "default", batch_of(["<http://e/s1>"], ["<http://e/a>"], ['"7"'], ["<http://e/m>"], [START + 60 * SECOND], [START + 60 * SECOND])
    )
    readings(log, range(61, 120), chance)


def history(log: LogWriter) -> None:
    """Queries that read the past, are paused or are promoted, caught up with piece by piece while the stream goes on."""
    chance, rule = Random(5), register(log, "rule", RULE)
    reader = register(log, "rises", RISES)
    readings(log, range(40), chance)
    past = log.append(lambda offset: Register(offset, "past", PAIRS, reads_from=0))
    at = log.append(lambda offset: Pause(offset, rule, "rule", (reader,)))
    readings(log, range(40, 60), chance)
    for upto in range(9, past, 9):
        log.append(lambda offset, upto=upto: CatchUp(offset, past, upto))  # type: ignore[misc]
        readings(log, range(50 + upto, 59 + upto), chance)
    log.append(lambda offset: CatchUp(offset, past, offset))
    log.append(lambda offset: Resume(offset, rule, "rule"))
    log.append(lambda offset: CatchUp(offset, rule, at + 10))
    readings(log, range(120, 140), chance)
    log.append(lambda offset: CatchUp(offset, rule, offset))
    readings(log, range(140, 150), chance)
    promotion = log.append(lambda offset: Promote(offset, past, "past", PAIRS.replace("PT30S", "PT60S"), reads_from=0))
    log.append(lambda offset: CatchUp(offset, promotion, promotion // 2))
    readings(log, range(150, 160), chance)
    log.append(lambda offset: CatchUp(offset, promotion, offset))
    readings(log, range(160, 170), chance)


def backlogs(log: LogWriter) -> None:
    """Two declared sources that are read one after the other, so that pairs wait for the second one."""
    chance = Random(6)
    register(log, "pairs", PAIRS)
    log.append(lambda offset: SetStream(offset, "default", sources=("a", "b")))
    for k, source in enumerate("ab"):
        for number in range(60):
            position = Source(source, str(number + 1), str(number) if number else None)
            assert log.append_events("default", message(2 * number + k, chance), source=position).late == 0


OBSERVED = """PREFIX : <http://e/> SELECT ?s ?v ?w WHERE {
    { ?o :by ?s ; :a ?v } SEQ { ?p :by ?s ; :result [ :b ?w ] } WITHIN "PT30S"^^<http://www.w3.org/2001/XMLSchema#duration> }"""
TELLS = "PREFIX : <http://e/> SELECT ?s ?v ?room WHERE { ?o :by ?s ; :a ?v . ?s :in ?room }"


def observation(number: int, chance: Random) -> pa.RecordBatch:
    """One body of some observations, each of several triples; some sensors say where they are."""
    triples = list[tuple[str, str, str]]()
    for k in range(3):
        sensor, node, value = f"<http://e/s{chance.randrange(6)}>", f"<http://e/o{number}.{k}>", f'"{chance.randrange(100)}"'
        triples.append((node, "<http://e/by>", sensor))
        if chance.random() < 0.5:
            triples.append((node, "<http://e/a>", value))
        else:
            triples += [(node, "<http://e/result>", f"_:r{number}{k}"), (f"_:r{number}{k}", "<http://e/b>", value)]
        if chance.random() < 0.2:
            triples.append((sensor, "<http://e/in>", f"<http://e/room{number % 3}>"))
    chance.shuffle(triples)
    at = [START + number * SECOND] * len(triples)
    s, p, o = ([triple[part] for triple in triples] for part in range(3))
    return batch_of(s, p, o, None, at, at)


def observations(log: LogWriter) -> None:
    """Messages with a key; the query is dealt out by messages, by subjects and at last not at all."""
    chance = Random(7)
    register(log, "early", OBSERVED)
    log.append(lambda offset: SetStream(offset, "default", key="http://e/by", parts=("http://e/result",)))
    register(log, "observed", OBSERVED)
    register(log, "tells", TELLS)
    register(log, "high", HIGH)
    for number in range(80):
        log.append_events("default", observation(number, chance))
    log.append(lambda offset: SetStream(offset, "default"))
    for number in range(80, 110):
        log.append_events("default", observation(number, chance))


FORMS = {
    "some": "PREFIX : <http://e/> ASK { ?s :a ?v FILTER(?v > 60) }",
    "none": "PREFIX : <http://e/> ASK { ?s :a ?v FILTER(?v > 600) }",
    "three": "PREFIX : <http://e/> SELECT ?s ?v { ?s :a ?v } ORDER BY DESC(?v) LIMIT 3",
    "about": "PREFIX : <http://e/> DESCRIBE ?s { ?s :a ?v FILTER(?v > 60) }",
    "rooms": "PREFIX : <http://e/> SELECT ?s ?room { ?s :a ?v ; :in ?room }",
    "graphs": "PREFIX : <http://e/> SELECT ?g ?v { GRAPH ?g { ?s :a ?v } }",
    "means": "PREFIX : <http://e/> SELECT ?s (AVG(?v) AS ?mean) { ?s :a ?v } GROUP BY ?s WINDOW [RANGE PT20S STEP PT10S]",
}


CASES: dict[str, Callable[[LogWriter], None]] = {
    "sequences": sequences,
    "crossing": crossing,
    "changing": changing,
    "rules": rules,
    "completing": completing,
    "history": history,
    "backlogs": backlogs,
    "observations": observations,
}


def write(case: str, data: Path, partitions: int = 1) -> None:
    """The finished log of a case."""
    with LogWriter(data, frozen_clock, partitions=partitions) as log:
        CASES[case](log)
        finish(log)


def found_in(data: Path) -> Found:
    """All solutions in order of emission, and the changes of state."""
    with closing(SolutionReader(data)) as reader:
        return [solution for some in reader.emitted() for solution in listed(some)], reader.changes


def undisturbed(data: Path, elsewhere: Path, within: float = 60) -> Found:
    """Return what the in-process runner finds in a copy of the log."""
    shutil.copytree(data / "log", elsewhere / "log")
    runner = InProcessRunner(elsewhere)
    runner.start()
    try:
        reached(elsewhere, head_of(data), within, lambda: runner.state)
    finally:
        runner.stop()
    return found_in(elsewhere)


def head_of(data: Path) -> int:
    with closing(LogReader(data)) as log:
        return log.head()


def reached(data: Path, position: int, within: float, state: Callable[[], str] = lambda: "") -> None:
    """Wait until the solution log is at a position of the input log."""
    with closing(SolutionReader(data)) as reader:
        eventually(lambda: reader.position >= position, within, lambda: f"{data.name} at {reader.position} of {position}, {state()}")


def eventually(holds: Callable[[], bool], within: float, otherwise: Callable[[], str]) -> None:
    """Wait for a condition, with a deadline.

    It is asked more and more seldom, since asking takes the time of what is waited for.
    """
    deadline, pause_s = time.monotonic() + within, 0.02
    while not holds():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.2)


# ---------------------------------------------------------------- processes
Processes = dict[int, tuple[int, str]]


def processes() -> Processes:
    """Parent and command line of each process that runs (a dead one that nobody has waited for does not)."""
    lines = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    fields = [line.split(None, 3) for line in lines]
    return {int(pid): (int(parent), args) for pid, parent, state, args in (f for f in fields if len(f) == 4) if not state.startswith("Z")}


def below(root: int, table: Processes | None = None) -> dict[int, str]:
    """The descendants of a process with their command lines."""
    known = processes() if table is None else table

    def walk(pid: int) -> Iterator[tuple[int, str]]:
        for child, (parent, args) in known.items():
            if parent == pid:
                yield child, args
                yield from walk(child)

    return dict(walk(root))


def gone(family: dict[int, str], within: float = 20) -> None:
    """Wait until none of these processes is left."""

    def left() -> dict[int, str]:
        return {pid: args for pid, (_, args) in processes().items() if family.get(pid) == args}

    eventually(lambda: not left(), within, lambda: f"left behind: {left()}")

"""`epsparql bench peers` with a small engine in the place of Esper and Flink, which finds the sequences of W1 by
comparing all events.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from bench.engine import peers
from bench.measurement import UnusableInput, WrongCount
from bench.workloads import WORKLOADS, drawn

ENGINE = """
import sys, time
from itertools import product

path, query, passes = sys.argv[1:4]
assert query in ("W1_any", "W1"), query
events = [line.split(",") for line in open(path).read().split()[1:]]
by = {}
for _, kind, key, _, ts in events:
    by.setdefault((key, kind), []).append(int(ts))
for number in range(int(passes)):
    began = time.process_time()
    keys = {key for key, _ in by}
    found = sum(
        a < b < c < a + 10_000 for key in keys for a, b, c in product(*(by.get((key, kind), ()) for kind in "abc"))
    ) + MORE
    print(f"RESULT esper {query} ev.csv pass={number + 1} events={len(events)} matches={found} wall=0.500 ev/s=1 cpu={time.process_time() - began + 0.01:.2f}")
"""


FIGURES = {"matches": 0, "events_per_s": 1_000, "events_per_cpu_s": 1_000}


def stand_in(directory: Path, more: int = 0) -> Path:
    (directory / "engine.py").write_text(ENGINE.replace("MORE", str(more)))
    (directory / "run.sh").write_text(f'exec "{sys.executable}" "{directory}/engine.py" "$@"\n')
    return directory


def stand_in_for_flink(directory: Path, more: int = 0) -> Path:
    """Make a directory of Flink's jars, and programs in place of a JDK's: one compiles nothing, the other is the
    small engine.
    """
    (directory / "flink-cep.jar").touch()
    (directory / "flink.py").write_text(ENGINE.replace("MORE", str(more)).replace("RESULT esper", "RESULT flink").replace("argv[1:4]", "argv[-3:]"))
    for name, command in (("javac", "true"), ("java", f'exec "{sys.executable}" "{directory}/flink.py" "$@"')):
        (directory / name).write_text(f"#!/bin/sh\n{command}\n")
        (directory / name).chmod(0o755)
    return directory


@pytest.fixture(autouse=True)
def _w1_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "WORKLOADS", {"W1": WORKLOADS["W1"]})


def test_flink_runs_beside_it_and_is_held_to_the_same_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_apart", lambda _measured, _workload, _n, _k: FIGURES)
    esper, flink, other = (tmp_path / name for name in ("esper", "flink", "other"))
    for each in (esper, flink, other):
        each.mkdir()
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{stand_in_for_flink(flink)}:{path}")
    line = json.loads(next(peers.measure(stand_in(esper), 10, 1_000, flink)))
    assert (line["flink_events_per_s"], line["flink_ratio"], line["blocks_ratio"]) == (20, 50.0, 50.0)
    monkeypatch.setenv("PATH", f"{stand_in_for_flink(other, 7)}:{path}")
    with pytest.raises(WrongCount, match="Flink on W1 gave 7 matches and must give 0"):
        next(peers.measure(esper, 10, 1_000, other))
    with pytest.raises(UnusableInput, match="Flink needs a JDK, and its jars in"):
        next(peers.measure(esper, 10, 1_000, esper))


@pytest.mark.soak  # two processes, each with the engine; the test below has the rest of the way
def test_both_run_over_the_same_events(tmp_path: Path) -> None:
    (text,) = peers.measure(stand_in(tmp_path), 3_000, 300)
    line = json.loads(text)
    assert (line["bench"], line["workload"], line["esper_events_per_s"]) == ("peers", "W1", 6_000)
    assert line["blocks_ratio"] == round(line["blocks_events_per_s"] / 6_000, 2)
    assert line["bytes_ratio"] == round(line["bytes_events_per_s"] / 6_000, 2)


def test_other_matches_and_programs_that_do_not_run_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnusableInput, match="name it with --peers"):
        next(peers.measure(None, 10, 10))
    with pytest.raises(UnusableInput, match=r"Esper did not run on W1: .*run\.sh"):
        next(peers.measure(tmp_path, 10, 10))
    monkeypatch.setattr(peers, "_apart", lambda _measured, _workload, _n, _k: {"matches": 0})
    with pytest.raises(WrongCount, match="Esper on W1 gave 7 matches and must give 0"):
        next(peers.measure(stand_in(tmp_path, 7), 10, 1_000))


def test_events_are_written_as_they_were_drawn(tmp_path: Path) -> None:
    path, events = tmp_path / "events.csv", drawn(50, 10)
    peers.write_events(path, events)
    head, *lines = path.read_text().splitlines()
    assert head == "i,type,id,x,ts"
    assert [float(line.split(",")[3]) for line in lines] == events.values.tolist()
    assert [(line.split(",")[1], int(line.split(",")[2])) for line in lines] == [
        ("abc"[kind], key) for kind, key in zip(events.types.tolist(), events.ids.tolist(), strict=True)
    ]

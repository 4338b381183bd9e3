"""Memory of a server whose queries, streams, subscribers, background, trials and promotions come and go, by a census
of its process.

`make soak` runs the mix for EPSPARQL_SOAK_S seconds. EPSPARQL_SOAK_CSV names a file for the samples.
"""

import csv
import os
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import linear_regression

import pytest

from epsparql.client import Client
from pipeline.registrations.query_cache import check_registration
from server.child_server import Child
from tests.server.conftest import COMPILING_S
from tests.soak import budget_s, first_seed
from tests.soak.observed_server import Census, ask_census
from tests.soak.server_load import SHAPES, STREAMS, Load, Mix, write_query

MIXED = Mix(queries=20, subscribers=20, events=200, lasting=200, promotion_steps=24, trial_steps=34)
STEP_S, SAMPLE_S = 1.0, 30.0  # a short run has twenty samples
KEPT = "64M"  # of each log
SETTLING_S = 1800.0
"""Caches and logs reach their bounds within this time, or within the first half of a shorter run."""
MOST_AN_HOUR_MB, SHORT_H, SHORT = 10.0, 0.25, 4.0
"""A run that has less than `SHORT_H` hours after that is held to `SHORT` times as much in all."""

FEW = Mix(queries=0, subscribers=0, events=400, lasting=20)
PROMOTIONS = 60
MOST_LEFT_MB, MOST_USED_MB = 10.0, 1.0
"""So much may the promotions leave in memory, and in use on the heap.

A promoted query shares a network with the others.
"""


@dataclass(frozen=True, slots=True)
class Level:
    at_s: float
    steps: int
    census: Census

    def row(self) -> dict[str, float]:
        return {"at_s": round(self.at_s, 1), "steps": self.steps, **asdict(self.census)}


def slope_after(samples: Sequence[Level], since_s: float) -> float:
    """Return by how many MB an hour the resident memory grows after a time."""
    later = [sample for sample in samples if sample.at_s >= since_s]
    return linear_regression([sample.at_s / 3600 for sample in later], [sample.census.rss_mb for sample in later]).slope


def run_mix(load: Load, socket: Path, seconds: float) -> list[Level]:
    """Let a load make a step a second, and return the samples. Each is written to EPSPARQL_SOAK_CSV, if that is set."""
    samples, began, sampled, steps = list[Level](), time.monotonic(), 0.0, 0
    with ExitStack() as stack:
        writer = None
        if path := os.environ.get("EPSPARQL_SOAK_CSV"):
            file = stack.enter_context(Path(path).open("w", encoding="utf-8", buffering=1))
            writer = csv.DictWriter(file, ["at_s", "steps", *(each.name for each in fields(Census))])
            writer.writeheader()
        while (now := time.monotonic()) < began + seconds:
            load.step()
            steps += 1
            if time.monotonic() >= sampled + min(SAMPLE_S, seconds / 20):
                sampled = time.monotonic()
                samples.append(Level(sampled - began, steps, ask_census(socket)))
                if writer is not None:
                    writer.writerow(samples[-1].row())
            time.sleep(max(0.0, now + STEP_S - time.monotonic()))
    return samples


@pytest.mark.parametrize("shape", SHAPES)
def test_queries_of_the_mix_have_a_bounded_state(shape: str) -> None:
    assert [warning.code for warning in check_registration(write_query(random.Random(1), shape, STREAMS[0]))] == []


@pytest.mark.slow
def test_promotions_leave_little_memory(tmp_path: Path) -> None:
    socket = tmp_path / "census"
    with Child(tmp_path / "data", "inprocess", tmp_path / "told", command=("tests.soak.observed_server", str(socket))) as child:
        client = Client(child.url)
        client.wait_ready(COMPILING_S)
        load = Load(client, random.Random(1), FEW)
        for number in range(5):  # what the first ones load stays
            load.send_events()
            load.promote(number)
        before = ask_census(socket, trims=True)
        for number in range(5, PROMOTIONS + 5):
            load.promote(number)
        after = ask_census(socket, trims=True)
        assert child.stop() == 0
    left, used = after.kept_mb - before.kept_mb, after.heap_used_mb - before.heap_used_mb
    print(f"{PROMOTIONS} promotions of {FEW.lasting} queries left {left:.1f} MB, of which {used:.1f} MB are in use on the heap")
    assert left <= MOST_LEFT_MB
    assert used <= MOST_USED_MB


@pytest.mark.soak
def test_memory_of_a_mix_levels_off(tmp_path: Path) -> None:
    socket = tmp_path / "census"
    extra, command = ("--retain-bytes", KEPT), ("tests.soak.observed_server", str(socket))
    with Child(tmp_path / "data", "inprocess", tmp_path / "told", extra=extra, command=command) as child:
        client = Client(child.url)
        client.wait_ready(COMPILING_S)
        load = Load(client, random.Random(first_seed()), MIXED)
        try:
            samples = run_mix(load, socket, budget_s())
        finally:
            load.close()
        states = {query["state"] for query in client.queries()}
        assert child.stop() == 0
    last = samples[-1]
    settled_s = min(SETTLING_S, last.at_s / 2)
    slope = slope_after(samples, settled_s)
    print(f"\n{last.steps} steps in {last.at_s:.0f} s: {samples[0].census} {last.census}, {slope:+.1f} MB an hour after {settled_s:.0f} s")
    assert states == {"running"}
    hours = (last.at_s - settled_s) / 3600
    assert slope <= MOST_AN_HOUR_MB if hours > SHORT_H else slope * hours <= MOST_AN_HOUR_MB * SHORT

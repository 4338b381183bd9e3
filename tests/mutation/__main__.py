"""Tries mutants of the planner and the host, or with --native of compiled code, and prints how many were killed, and
where the others are.
"""

import argparse
import os
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutation.native_functions import NATIVE, NativeFunctions
from tests.mutation.python_functions import PythonFunctions
from tests.mutation.trials import KILLED, ROOT, UNREACHED, MutantDraw, Trial, Trials

HOST = ("planner", "rewrite", "physical_plan", "network", "runtime", "partitioning", "alpha")
TESTS = (ROOT / "tests/engine", ROOT / "tests/pipeline/slices")
AT_LEAST = 0.9
"""The part of the mutants that are to be killed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", help="files or folders whose functions are changed, or FILE:LINE")
    parser.add_argument("--native", action="store_true", help="change compiled functions; if no paths are given, those of the kernel")
    parser.add_argument("--number", type=int, default=300, help="of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", type=int, default=(), help="of the drawn mutants those with these numbers")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="children at once")
    parser.add_argument("--tests", nargs="+", type=Path, default=TESTS)
    parser.add_argument("--marks", default="not slow and not soak", help="which tests are used, by their marks")
    parser.add_argument("--most-s", type=float, default=10.0, help="seconds of CPU for the tests of one mutant, and for a test as it is")
    chosen = parser.parse_args()
    usual = [str(NATIVE / "kernel")] if chosen.native else [f"engine/{name}" for name in HOST]
    files = defaultdict[Path, set[int]](set)
    for path, _, line in (each.partition(":") for each in chosen.paths or usual):
        place = ROOT / path
        for file in sorted(place.rglob("*.c" if chosen.native else "*.py")) if place.is_dir() else [place]:
            files[file] |= {int(line)} if line else set()
    began = time.monotonic()
    program = NativeFunctions(files) if chosen.native else PythonFunctions(files)
    trials = Trials(program, MutantDraw(chosen.number, chosen.seed, chosen.only), chosen.jobs, chosen.most_s)
    code = run_silently(trials, ["-m", chosen.marks, *map(str, chosen.tests)])
    if not trials.found:
        print(f"no mutants were tried; pytest ended with {code}")
        return 2
    print_table(trials.found)
    cpu_s = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"\nThe seed is {chosen.seed}. It took {cpu_s / 60:.0f} minutes of CPU, and {(time.monotonic() - began) / 60:.0f} minutes.")
    killed = sum(trial.fate == KILLED for trial in trials.found) / len(trials.found)
    return 0 if killed >= AT_LEAST else 1


def run_silently(trials: Trials, arguments: list[str]) -> int:
    """Run pytest without what it and the tests print, which would be the same for each mutant.

    The trials tell what they find meanwhile.
    """
    sys.stdout.flush()
    null, kept = os.open(os.devnull, os.O_WRONLY), [os.dup(1), os.dup(2)]
    trials.tell = lambda text: os.write(kept[0], f"{text}\n".encode())
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        usual = ["-s", "--tb=native", "-o", "faulthandler_timeout=0"]  # all mutants are tried in one run
        return pytest.main([*usual, "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "not oracle", *arguments], plugins=[trials])
    finally:
        sys.stdout.flush()
        for number, handle in enumerate(kept, 1):
            os.dup2(handle, number)
            os.close(handle)
        os.close(null)


def print_table(found: Sequence[Trial]) -> None:
    """Print a row for each folder, and one for all."""
    print("\n| folder | mutants | killed | survived | unreached | killed |\n|---|---|---|---|---|---|")
    for folder in [*sorted({trial.folder for trial in found}), None]:
        fates = Counter(trial.fate for trial in found if folder in (None, trial.folder))
        tried, killed, unreached = fates.total(), fates[KILLED], fates[UNREACHED]
        print(f"| {folder or 'all'} | {tried} | {killed} | {tried - killed - unreached} | {unreached} | {100 * killed / tried:.0f} % |")


if __name__ == "__main__":
    sys.exit(main())

"""Each mutant has its fate: one that a test notices, one that none can, one that never ends, and one that no test
reaches.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.native_changes import list_changes
from tests.mutation.trials import ROOT

pytestmark = pytest.mark.slow

SAMPLE = """
def count_down(n):
    while n > 0:
        n -= 1
    return n


def is_adult(age):
    return age >= 18


def is_near(a, b):
    return max(a - b, b - a) < 3


def is_one(n):
    match n:
        case 1:
            return True
        case _:
            return False


def is_never_asked(n):
    return n < 0
"""
TESTS = """
import sample


def test_count_down():
    assert sample.count_down(3) == 0


def test_is_adult():
    assert sample.is_adult(18)
    assert not sample.is_adult(17)


def test_is_near():
    assert sample.is_near(1, 1)
    assert not sample.is_near(1, 9)


def test_is_one():
    assert sample.is_one(1)
    assert not sample.is_one(2)


def test_that_fails():
    assert not sample.is_adult(18)


def test_that_takes_too_long():
    while sample.is_one(1):
        pass
"""


def run_mutation(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "tests.mutation", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.soak
def test_what_becomes_of_mutants(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(SAMPLE)
    (tmp_path / "test_sample.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    soak\n")
    done = run_mutation(tmp_path / "sample.py", "--most-s", "1", "--tests", tmp_path / "test_sample.py")
    told = re.findall(r"\d+ of \d+: (\w+) \d+ tests: \S+ \w+: (.*)", done.stdout)
    fates = {
        "a - b  ->  a + b": "survived",
        "b - a  ->  b + a": "survived",
        "max(a - b, b - a) < 3  ->  max(a - b, b - a) <= 3": "survived",
        "3  ->  4": "survived",
        "n < 0  ->  n <= 0": "unreached",
        "0  ->  1": "unreached",
    }
    assert {change: fate for fate, change in told} == fates, done.stdout + done.stderr
    unused = re.findall(r"(.*), and was not used: .*::(\w+)", done.stdout)
    assert unused == [("fails as it is", "test_that_fails"), ("takes more than 1 s", "test_that_takes_too_long")]
    assert done.returncode == 1


C = """/* a - b */
static inline int is_near(i64 a, i64 b) { return greater(a - b, b - a) < 3; }

static void count(Net net, i64 x) {
  i64 n = 0; /* if (x) */
  if (!is_near(x, n)) {
    net->at->n += x;
    forget(net, x);
  }
}
"""


def test_changes_of_c() -> None:
    expected = {
        (2, "is_near", "greater  ->  lesser"), (2, "is_near", "-  ->  +"), (2, "is_near", "<  ->  <="), (2, "is_near", "3  ->  4"),
        (5, "count", "0  ->  1"), (6, "count", "!  ->  nothing"), (6, "count", "!is_near(x, n)  ->  0"), (6, "count", "!is_near(x, n)  ->  1"),
        (7, "count", "+=  ->  -="), (7, "count", "net->at->n += x;  ->  ;"), (8, "count", "forget(net, x);  ->  ;"),
    }  # fmt: skip
    changes = list(list_changes(C))
    assert {(change.line, change.function, str(change)) for change in changes} == expected
    assert all(change.made_in(C) == C[: change.at] + change.new + C[change.at + len(change.old) :] for change in changes)


@pytest.mark.soak
def test_mutants_of_the_kernel() -> None:
    """Tests fail for most changes of what the kernel says of intervals."""
    place = "engine/native/source/kernel/state/temporal_relations.c"
    tests = [f"tests/engine/semantics/test_{name}.py" for name in ("policies", "operators")]
    done = run_mutation("--native", place, "--number", "20", "--tests", *tests)
    assert "was not used" not in done.stdout, done.stdout
    found = re.search(r"\| all \| 20 \| (\d+) \|", done.stdout)
    assert found, done.stdout + done.stderr
    assert int(found[1]) >= 15, done.stdout

"""Who may work as the resident task: the latest attempt, while its driver wants one and its worker has a parent."""

import os
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from pipeline.spark.task_lease import Claim, Tenure

pytestmark = pytest.mark.slow

ORPHAN = """
import os, sys, time
from pathlib import Path
from pipeline.spark.task_lease import Claim, Tenure
claim = Claim(Path(sys.argv[1]), "run", 1)
if os.fork():
    sys.stdin.read()
    os._exit(0)
claim.take_lease()
tenure = Tenure(claim)
print(tenure.is_set(), flush=True)
print(tenure.wait(30), tenure.orphaned, claim.is_held(), flush=True)
"""


@pytest.fixture
def offered(tmp_path: Path) -> Claim:
    claim = Claim(tmp_path / "claim", "run")
    claim.offer()
    return claim


def attempt(of: Claim, number: int) -> Claim:
    return Claim(of.path, of.run, number)


def test_the_latest_attempt_has_it(offered: Claim) -> None:
    first, second = attempt(offered, 0), attempt(offered, 3)
    assert first.take_lease()
    assert first.is_held()
    assert second.take_lease()
    assert (first.is_held(), second.is_held(), offered.offered()) == (False, True, True)
    assert not first.take_lease()
    assert second.is_held()
    assert second.take_lease()


def test_nobody_has_it_when_it_is_withdrawn(offered: Claim) -> None:
    first = attempt(offered, 0)
    assert first.take_lease()
    offered.withdraw()
    offered.withdraw()
    assert (first.is_held(), first.offered(), first.take_lease(), attempt(offered, 1).take_lease()) == (False, False, False, False)


def test_attempts_of_another_run_have_no_part(offered: Claim) -> None:
    old = Claim(offered.path, "before", 7)
    assert (old.take_lease(), old.is_held(), old.offered()) == (False, False, False)
    assert attempt(offered, 0).take_lease()


def test_a_directory_that_has_gone_with_its_driver(tmp_path: Path) -> None:
    assert not Claim(tmp_path / "gone" / "claim", "run", 0).take_lease()


def test_a_tenure_ends_with_the_claim(offered: Claim) -> None:
    first = attempt(offered, 0)
    assert first.take_lease()
    tenure = Tenure(first)
    assert (tenure.is_set(), tenure.wait(0.0)) == (False, False)
    began = time.monotonic()
    assert not tenure.wait(0.12)
    assert time.monotonic() - began >= 0.12
    attempt(offered, 1).take_lease()
    assert (tenure.is_set(), tenure.wait(60.0), tenure.orphaned) == (True, True, False)


def test_a_tenure_ends_with_the_process_that_looks_after_its_own(offered: Claim) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with Popen([sys.executable, "-c", ORPHAN, str(offered.path)], stdin=PIPE, stdout=PIPE, text=True, env=environment) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        assert parent.stdout.readline() == "False\n"
        parent.stdin.close()
        assert parent.stdout.readline() == "True True True\n"

"""Histories of servers under faults, each a function of its seed; and faults of the past, which histories have to
find when they are put back.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest import mock

import pytest

from pipeline.log import LogWriter, segments
from pipeline.log.segments import FrameWriter
from tests.simulation import world
from tests.simulation.history import run_history
from tests.simulation.world import Broken
from tests.soak import first_seed, is_full

pytestmark = pytest.mark.slow

_SEEDS = 10_000 if is_full() else 10
_MOST = 1_000
"""A fault that is put back is found by one of so many histories."""


@pytest.mark.parametrize("stored", [False, True], ids=["one disk", "a store"])
def test_every_history_keeps_what_was_promised(stored: bool) -> None:
    begin = first_seed()
    print(f"seeds from {begin}")
    for seed in range(begin, begin + _SEEDS):
        run_history(seed, stored=stored)


@pytest.mark.parametrize("seed", [1471, 2000617, 2000721, 2003089, 3003977, 3007280, 3007699])
def test_histories_that_once_went_wrong(seed: int) -> None:
    """Run histories again in which a fault was found, of the product or of the simulation.

    - 1471: A round met the solutions before their writer had mended them, and the thread of the copies ended in silence.
    - 2000617: The power was lost after a synced file got its name and before its folder was synced. The disk then kept half of the file.
    - 2000721: A server was refused while the thread of its copies went on, and met its own lock, which ends with a process.
    - 2003089: A server was paused after its look at the store. It then claimed the store by a number that was free again, and lacked acknowledged events.
    - 3003977: Two servers answered one subscriber of the simulation at once, and each told it the same solutions.
    - 3007280: An older log was put beside solutions while the heads of both were torn. The simulation went by the heads, and expected a refusal.
    - 3007699: A server removed its claim when others had followed it. The earlier server found the number free, and the two went on side by side.

    Those with odd numbers have a store.
    """
    run_history(seed, stored=seed % 2 == 1)


def test_a_history_is_a_function_of_its_seed() -> None:
    assert run_history(7, stored=True) == run_history(7, stored=True) != run_history(8, stored=True)


# ---------------------------------------------------------------- faults of the past
def _do_nothing(*_: object) -> None:
    pass


def _recover_in_silence(log: LogWriter) -> None:
    """Recover, but tell no reader of entries that turned out to be on the disk."""
    log._frames.cut_back()
    log._frames.close()
    log._open()
    log._broken = False


@contextmanager
def _untold_recovery() -> Iterator[None]:
    with mock.patch.object(LogWriter, "_recover", _recover_in_silence):
        yield


@contextmanager
def _second_sync() -> Iterator[None]:
    """Go on with the bytes whose sync failed, and have another sync say that they are on the disk."""
    with mock.patch.object(FrameWriter, "_rewrite", _do_nothing), mock.patch.object(FrameWriter, "cut_back", _do_nothing):
        yield


@contextmanager
def _no_look_at_the_chain() -> Iterator[None]:
    with mock.patch.object(segments, "check_chain", _do_nothing), mock.patch.object(FrameWriter, "_check_succession", _do_nothing):
        yield


@contextmanager
def _no_look_at_the_solutions() -> Iterator[None]:
    with mock.patch.object(world, "check_solutions", _do_nothing):
        yield


@pytest.mark.parametrize(
    ("put_back", "stored", "seed"),
    [(_no_look_at_the_chain, False, 7), (_no_look_at_the_solutions, False, 169), (_second_sync, False, 47), (_untold_recovery, True, 32)],
)
def test_a_fault_that_is_put_back_is_found(put_back: Callable[[], AbstractContextManager[None]], stored: bool, seed: int) -> None:
    with put_back():
        for each in range(1 if is_full() else seed, 1 + _MOST):  # elsewhere, the first one that finds it begins
            try:
                run_history(each, stored=stored)
            except (Exception, Broken) as found:  # noqa: BLE001 - whatever it is, it is seen
                print(f"found by seed {each}: {type(found).__name__}: {found}")
                return
    raise AssertionError(f"{_MOST} histories do not find it")

"""Work in threads: its end is always told."""

import asyncio
from collections.abc import Iterator

import pytest

from server.thread_pool import Threads


def _first(found: Iterator[int]) -> int:
    return next(found)


async def _in_a_thread(found: list[int]) -> int:
    asyncio.get_running_loop().set_default_executor(Threads())
    async with asyncio.timeout(30):
        return await asyncio.to_thread(_first, iter(found))


def test_what_runs_out_is_a_fault_of_ours() -> None:
    assert asyncio.run(_in_a_thread([1])) == 1
    with pytest.raises(RuntimeError, match="ran out"):
        asyncio.run(_in_a_thread([]))

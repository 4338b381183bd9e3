"""This bench measures how time grows with events under a window, and whether what has expired still costs."""

from collections.abc import Iterator

from bench.engine.engine import fed, numbered
from bench.measurement import line, median, one_core, slope
from bench.workloads import blocks, check, drawn

_DOUBLINGS = 3
_ROUNDS = 3


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield a line: seconds for n events and for half, a quarter and an eighth of them, with slopes.

    The seconds are those of the kernel alone, and those from blocks to solutions. A slope of 1 says that twice as much takes twice as long. The line
    also has what an event of the last quarter costs over one of the first.
    """
    one_core()
    sizes = [n >> d for d in range(_DOUBLINGS, -1, -1)]
    kernel, whole = [], []
    numbered(workload, drawn(sizes[0], k))()
    for size in sizes:
        events = drawn(size, k)
        runs = numbered(workload, events), fed(workload, list(blocks(events)))
        took = [[run() for _ in range(_ROUNDS)] for run in runs]
        check(workload, size, k, took[0][0][1])
        check(workload, size, k, took[1][0][1])
        kernel.append(median([seconds for seconds, _ in took[0]]))
        whole.append(median([seconds for seconds, _ in took[1]]))
    yield line(
        "growth",
        workload=workload,
        n=sizes,
        k=k,
        kernel_s=[round(seconds, 4) for seconds in kernel],
        kernel_slope=round(slope(sizes, kernel), 3),
        seconds=[round(seconds, 4) for seconds in whole],
        slope=round(slope(sizes, whole), 3),
        late_over_early=round((whole[-1] - whole[-2]) / (n - n // 2) / (whole[0] / sizes[0]), 3),
    )

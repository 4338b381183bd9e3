"""Adversarial drivers: each makes random histories for a given time and stops at the first one that goes wrong.

CI gives each driver a minute; `make soak` gives each an hour, by EPSPARQL_SOAK_S. The other tests ask here, too, how
much they try: `make soak` tries everything in full, `make check` and `make test` a part of what is merely more of the
same.
"""

import os
from random import SystemRandom


def budget_s() -> float:
    """Return the seconds that one driver may run."""
    return float(os.environ.get("EPSPARQL_SOAK_S", "60"))


def first_seed() -> int:
    """Return the seed to begin with: EPSPARQL_SEED, in CI the same one each time, so that a run there can be
    repeated, else a random one.
    """
    given = os.environ.get("EPSPARQL_SEED") or ("1" if is_short() else None)
    return int(given) if given else SystemRandom().randrange(1 << 30)


def is_full() -> bool:
    """Return whether this is a run of `make soak`."""
    return "EPSPARQL_SOAK_S" in os.environ


def examples(full: int, part: int = 10) -> int:
    """Return how many examples Hypothesis tries of a property: the `full` number in `make soak`, else a tenth of it.

    Where an example takes a tenth of a CPU second or more, `part` is larger: a twentieth is tried, or a fiftieth.
    There are always three.
    """
    return full if is_full() else max(full // part, 3)


def is_short() -> bool:
    """Return whether this is CI's short run, which ends after a number of cases, however fast the machine is."""
    return "CI" in os.environ and not is_full()

"""Adversarial drivers: each makes random histories for a given time and stops at the first one that goes wrong.

CI gives each driver a minute; `make soak` gives each an hour, by EPSPARQL_SOAK_S.
"""

import os


def budget_s() -> float:
    """Return the seconds that one driver may run."""
    return float(os.environ.get("EPSPARQL_SOAK_S", "60"))

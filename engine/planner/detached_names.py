"""This module gives the names for a plan that no network is to run: for checks, for what a query reads, and for how
far back it looks.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from engine.background.fact_store import FactIndex
from engine.planner.builder.plan_builder import NetworkNames, PlanOptions
from epsparql import algebra as a
from epsparql.solutions.policies import UNRESTRICTED

Ints = NDArray[np.int64]


def name_apart(known: FactIndex, policy: str = UNRESTRICTED) -> NetworkNames:
    """Return what a plan over a background is made with that no kernel is to run: it needs no network, which costs
    three times as much as the plan.
    """
    numbers = dict[str, int]()

    def once(inner: a.Select, contents: Mapping[str, Ints], now: int) -> Ints:
        raise AssertionError("the plan runs nowhere")

    return NetworkNames(
        known.terms.intern, lambda stream: numbers.setdefault(stream, len(numbers)), known.matching, known.graphs, known.any,
        PlanOptions(policy=policy), once
    )  # fmt: skip

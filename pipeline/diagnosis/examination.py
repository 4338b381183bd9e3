"""This module holds what the explanations of one diagnosis share: the counted steps, their solutions and the events."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.errors import Span
from epsparql.translate.translator import ParsedQuery
from pipeline.diagnosis.evaluation.probing import Found, Prober, Row
from pipeline.diagnosis.evaluation.sample import Sample
from pipeline.diagnosis.evaluation.steps import Node, Words
from pipeline.diagnosis.model import Reason

OtherStreams = Callable[[], Sample]
"""Reads some events of streams that the query does not read."""


@dataclass(frozen=True, slots=True, eq=False)
class Examination:
    """Holds a query whose steps were counted. `found` has what each step lets through."""

    parsed: ParsedQuery
    words: Words
    prober: Prober
    found: Mapping[Node, Found]
    read_others: OtherStreams

    @property
    def sample(self) -> Sample:
        return self.prober.sample

    @property
    def of_query(self) -> NDArray[np.bool_]:
        """Return which events are of streams that the query itself reads, and not of those that feed its rules."""
        return self.sample.of_streams(self.parsed.query.streams)

    def list_rows(self, node: Node) -> list[Row]:
        return self.found[node].list_rows()

    def probe(self, *patterns: a.Pattern) -> Sequence[Found]:
        """Return what further patterns find; nothing where the time is over."""
        return self.prober.run_probes(patterns) or [Found((), more=True) for _ in patterns]

    def make_reason(self, node: Node, code: str, message: str, remedy: str = "", nearest: str | None = None, at: Span | None = None) -> Reason:
        """Return a reason at the place of a step, or of a part of it."""
        line, column = self.words.find_place(node.pattern) if at is None else at.place(self.parsed.text)
        return Reason(code, message, remedy, nearest, line, column)

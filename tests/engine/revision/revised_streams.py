"""Revision by brute force (semantics.md section 14): what is present, and the solutions that it gives, computed anew each time it is asked for."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from epsparql.algebra import Query
from tests.reference.evaluator import solutions
from verification.definitions.model import Micros, Occurrence


@dataclass(slots=True)
class RevisedStreams:
    """Holds the occurrences of revisable streams that are present, with one horizon for all."""

    horizon: Micros
    present: dict[str, list[Occurrence]] = field(default_factory=dict)
    latest: dict[str, Micros] = field(default_factory=dict)

    def watermark(self, stream: str) -> Micros | None:
        return None if stream not in self.latest else self.latest[stream] - self.horizon

    def send(self, stream: str, occurrence: Occurrence) -> bool:
        """Return whether the occurrence was in time."""
        self.latest.setdefault(stream, occurrence.end)
        if occurrence.end < self.latest[stream] - self.horizon:
            return False
        self.latest[stream] = max(self.latest[stream], occurrence.end)
        if occurrence not in self.present.setdefault(stream, []):
            self.present[stream].append(occurrence)
        return True

    def take_back(self, stream: str, occurrence: Occurrence) -> bool:
        """Return whether the occurrence was present, and within the horizon."""
        watermark = self.watermark(stream)
        if watermark is None or occurrence.end <= watermark or occurrence not in self.present.get(stream, []):
            return False
        self.present[stream].remove(occurrence)
        return True

    def standing(self, queries: Mapping[str, Query], name: str, before: Micros | None = None) -> Counter[Any]:
        """Return the solutions of a query that end before an instant; None for all that the streams give if they are finished."""
        rows: Counter[Any] = Counter(solutions(queries, self.present, reached=self.latest)[name])
        return rows if before is None else Counter({row: count for row, count in rows.items() if row[1][1] < before})

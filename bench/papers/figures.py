"""This module describes the papers' figures and tables, and the rows that a reproduction of one prints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

NOT_LEGIBLE = "not legible"


class Chart(StrEnum):
    """Says how the rows of a figure are drawn."""

    LINES = "lines"
    BARS = "bars"
    POINTS = "points"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Figure:
    """Describes a figure or a table of a paper.

    `x` and `y` name the axes, and `drawn` those of the chart where it has others. `parameters` are the experiment's,
    and `differs` says what is not as in the paper. `axis` is what can be read of the paper's y axis. The chart has
    lines at `thresholds`.
    """

    title: str
    source: str
    x: str
    y: str
    parameters: str
    differs: str
    chart: Chart = Chart.LINES
    axis: str = ""
    drawn: tuple[str, str] | None = None
    thresholds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a point of a figure, or a line of a table.

    `ours` is None in a row that has only the paper's number, and `paper` is None where the paper has no such row. A
    row that is `drawn` is a point of the chart alone.
    """

    figure: str
    series: str
    x: str | float
    ours: float | None
    paper: float | str | None = NOT_LEGIBLE
    more: Mapping[str, object] = field(default_factory=dict)
    drawn: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """Says how large a run is, and which files it reads beside what it generates.

    `quick` sizes show that everything runs; their figures mean nothing. `data` is a directory with the published data
    sets, and `network` a GTFS feed.
    """

    quick: bool = False
    data: Path | None = None
    network: Path | None = None

    def of(self, full: int, quick: int) -> int:
        return quick if self.quick else full

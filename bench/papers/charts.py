"""This module draws a figure's rows as SVG: lines, bars or points."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from bench.papers.figures import Chart, Figure, Row

WIDTH, HEIGHT = 720, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 20, 44, 92
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_WIDE = 50
"""Values that differ by more than this factor are drawn on a logarithmic axis."""
Points = Mapping[str, Sequence[tuple[str | float, float]]]


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps values between `low` and `high` to places between `first` and `last`."""

    low: float
    high: float
    first: float
    last: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        low, high, value = (math.log10(each) if self.logarithmic else each for each in (self.low, self.high, value))
        return round(self.first + (value - low) / ((high - low) or 1) * (self.last - self.first), 1)

    def ticks(self) -> list[float]:
        if self.logarithmic:
            return [10.0**k for k in range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)]
        step = 10 ** math.floor(math.log10((self.high - self.low) or 1))
        step = next(each for each in (step / 5, step / 2, step, 2 * step) if (self.high - self.low) / each <= 6)
        return [round(k * step, 10) for k in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]


def draw(figure: Figure, rows: Sequence[Row]) -> str:
    """Return the chart of a figure as an SVG document.

    Rows without a number of ours are left out; the paper's numbers are a series of their own.
    """
    points = _points(figure, rows)
    is_map = figure.chart == Chart.POINTS and all(len(each) == 1 for each in points.values())
    x_name, y_name = figure.drawn or (figure.x, figure.y)
    parts = (
        _place_points(points, figure.thresholds) if figure.chart == Chart.POINTS else {Chart.LINES: _lines, Chart.BARS: _bars}[figure.chart](points)
    )
    legend = (
        f'<rect x="{_LEFT + 210 * (k % 3)}" y="{HEIGHT - 38 + 18 * (k // 3)}" width="10" height="10" fill="{_COLOURS[k % 6]}"/>'
        f'<text x="{_LEFT + 14 + 210 * (k % 3)}" y="{HEIGHT - 29 + 18 * (k // 3)}">{escape(name)}</text>'
        for k, name in enumerate(points)
        if not is_map
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" role="img">'
    title = f"<title>{escape(figure.title)}</title>"
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/><text x="{_LEFT}" y="20" font-size="14">{escape(figure.title)}</text>'
    names = f'<text x="8" y="{_TOP - 8}">{escape(y_name)}</text><text x="{WIDTH / 2}" y="{HEIGHT - 50}" text-anchor="middle">{escape(x_name)}</text>'
    return "\n".join([head + title, ground + names, *parts, *legend, "</svg>"]) + "\n"


def _points(figure: Figure, rows: Sequence[Row]) -> Points:
    drawn = [row for row in rows if row.drawn] or rows
    found: dict[str, list[tuple[str | float, float]]] = {}
    for row in drawn:
        if row.ours is not None:
            found.setdefault(row.series, []).append((row.x, row.ours))
            if isinstance(row.paper, int | float):
                found.setdefault(f"paper, {row.series}" if figure.chart == Chart.LINES else "paper", []).append((row.x, row.paper))
    return found


def _range(values: Sequence[float], first: float, last: float) -> Axis:
    low, high = min(values), max(values)
    if low > 0 and high / low > _WIDE:
        return Axis(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)), first, last, True)
    return Axis(min(low, 0), high * 1.05 or 1, first, last)


def _vertical(points: Points) -> Axis:
    return _range([y for each in points.values() for _, y in each], HEIGHT - _BOTTOM, _TOP)


def _levels(axis: Axis) -> Iterator[str]:
    for value in axis.ticks():
        y = axis.place(value)
        yield (
            f'<line x1="{_LEFT}" y1="{y}" x2="{WIDTH - _RIGHT}" y2="{y}" stroke="#dddddd"/><text x="{_LEFT - 6}" y="{y + 4}" '
            f'text-anchor="end">{value:,.10g}</text>'
        )


def _under(x: float, text: str) -> str:
    return f'<text x="{x}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">{escape(text)}</text>'


def _lines(points: Points) -> Iterator[str]:
    """Yield a line for each series; the x axis has a place for each of its values."""
    upright = _vertical(points)
    yield from _levels(upright)
    steps = sorted({x for each in points.values() for x, _ in each}, key=float)
    across = Axis(0, max(len(steps) - 1, 1), _LEFT + 30, WIDTH - _RIGHT - 30)
    yield from (_under(across.place(k), f"{x:,}") for k, x in enumerate(steps))
    for k, each in enumerate(points.values()):
        places = [(across.place(steps.index(x)), upright.place(y)) for x, y in each]
        joined = " ".join(f"{x},{y}" for x, y in places)
        yield f'<polyline fill="none" stroke="{_COLOURS[k % 6]}" stroke-width="2" points="{joined}"/>'
        yield from (f'<circle cx="{x}" cy="{y}" r="3" fill="{_COLOURS[k % 6]}"/>' for x, y in places)


def _bars(points: Points) -> Iterator[str]:
    upright = _vertical(points)
    yield from _levels(upright)
    steps = list(dict.fromkeys(x for each in points.values() for x, _ in each))
    room = (WIDTH - _LEFT - _RIGHT) / len(steps)
    wide = room * 0.8 / len(points)
    yield from (_under(round(_LEFT + room * (k + 0.5), 1), str(x)) for k, x in enumerate(steps))
    for k, each in enumerate(points.values()):
        for x, y in each:
            left, top = round(_LEFT + room * (steps.index(x) + 0.1) + wide * k, 1), upright.place(y)
            yield f'<rect x="{left}" y="{top}" width="{wide:.1f}" height="{HEIGHT - _BOTTOM - top:.1f}" fill="{_COLOURS[k % 6]}"/>'


def _spread(values: Sequence[float], first: float, last: float) -> Axis:
    margin = 0.05 * ((max(values) - min(values)) or 1)
    return Axis(min(values) - margin, max(values) + margin, first, last)


def _place_points(points: Points, thresholds: Sequence[float]) -> Iterator[str]:
    """Yield a point for each value, both axes by value. A series of one point is labelled, as on a map."""
    xs, ys = [float(x) for each in points.values() for x, _ in each], [y for each in points.values() for _, y in each]
    across, upright = _spread(xs, _LEFT, WIDTH - _RIGHT), _spread([*ys, *thresholds], HEIGHT - _BOTTOM, _TOP)
    yield from _levels(upright)
    for level in map(upright.place, thresholds):
        yield f'<line x1="{_LEFT}" y1="{level}" x2="{WIDTH - _RIGHT}" y2="{level}" stroke="#d55e00" stroke-dasharray="6 4"/>'
    yield from (_under(across.place(value), f"{value:,.10g}") for value in across.ticks())
    for k, (name, each) in enumerate(points.items()):
        for x, y in each:
            yield f'<circle cx="{across.place(float(x))}" cy="{upright.place(y)}" r="2.5" fill="{_COLOURS[k % 6]}"/>'
        if len(each) == 1:
            yield f'<text x="{across.place(float(each[0][0])) + 5}" y="{upright.place(each[0][1]) + 4}">{escape(name)}</text>'

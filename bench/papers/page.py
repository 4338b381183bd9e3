"""This module writes the tables and charts of docs/paper-experiments.md between the page's marks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.measurement import UnusableInput, format_figure
from bench.papers.charts import draw
from bench.papers.figures import NOT_LEGIBLE, Chart, Figure, Row

_DIGITS = 6
_BUSY = 1.5
"""Above this load, other work ran beside the measurement."""


def write_page(page: Path, figures: Mapping[str, tuple[Figure, Sequence[Row]]], machine: Mapping[str, object]) -> None:
    """Write the figures' blocks of a page, and their charts as SVG into the folder of the page's name.

    Raises: UnusableInput.
    """
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise UnusableInput(f"{page}: {error.strerror}; expected a page with marks such as <!-- 003-1a -->") from None
    charts = page.with_suffix("")
    for name, (figure, rows) in figures.items():
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not mark.search(text):
            raise UnusableInput(f"{page} has no place for {name}; expected the lines <!-- {name} --> and <!-- end -->")
        block = _block(name, figure, rows, machine, charts.name)
        text = mark.sub(lambda found: found[1] + block + found[2], text)  # noqa: B023 - it is called at once
        if figure.chart != Chart.NONE:
            charts.mkdir(exist_ok=True)
            (charts / f"{name}.svg").write_text(draw(figure, rows), encoding="utf-8")
    page.write_text(text, encoding="utf-8")


def _block(name: str, figure: Figure, rows: Sequence[Row], machine: Mapping[str, object], folder: str) -> str:
    paper_axis = f" Axis: {figure.axis}." if figure.axis else ""
    lines = ["", f"*Paper.* {figure.parameters}{paper_axis}", "", f"*Here.* {figure.differs}", ""]
    if figure.chart != Chart.NONE:
        lines += [f"![{figure.title}]({folder}/{name}.svg)", ""]
    if figure.chart != Chart.POINTS:
        lines += [f"| series | {figure.x}: ours, {figure.y} (paper) |", "|---|---|"]
        lines += _lines_of([row for row in rows if not row.drawn])
    load = machine["load"]
    busy = f", load {load}" if isinstance(load, float) and load > _BUSY else ""
    return "\n".join([*lines, "", f"Measured on {machine['measured']}, {machine['machine']}{busy}.", ""])


def _lines_of(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each series, with its points; bench/results/papers.jsonl has all else of them."""
    for series in dict.fromkeys(row.series for row in rows):
        yield f"| {series} | `{'; '.join(_format_point(row) for row in rows if row.series == series)}` |"


def _format_point(row: Row) -> str:
    paper = "" if row.paper in (None, NOT_LEGIBLE) else f" ({format_figure(row.paper, _DIGITS)})"
    return f"{format_figure(row.x, _DIGITS)}: {format_figure(row.ours, _DIGITS)}{paper}"

"""This bench runs the experiments of the papers: it prints a line for each row of each figure and table, ours beside
the paper's number.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from bench.measurement import UnusableInput, line, machine, one_core
from bench.papers.figures import Figure, Row, Size
from bench.papers.page import write_page

_EXPERIMENTS = ("stock_windows", "class_instances", "delivery", "tsunami", "operators", "blizzard")
PAPERS_MACHINE = "Intel Core Quad Q9400, 2.66 GHz, 8 GB"
"""The machine of all three papers; ours is `machine` of the first line."""


def experiments() -> dict[str, ModuleType]:
    """Return the module that measures each figure, by the figure's name, in the order of the papers."""
    modules = [import_module(f"bench.papers.{name}") for name in _EXPERIMENTS]
    return {name: module for module in modules for name in module.FIGURES}


def describe(figure: str) -> Figure:
    found: Figure = experiments()[figure].FIGURES[figure]
    return found


def measure(size: Size, figure: str | None = None, page: Path | None = None) -> Iterator[str]:
    """Yield a line about the machines, and one for each row. With a page, its tables and charts are written anew at
    the end.

    Raises: NoData, UnusableInput, WrongCount, QueryFailed.
    """
    known = experiments()
    if figure is not None and figure not in known:
        raise UnusableInput(f"there is no figure {figure!r}; there is {', '.join(known)}")
    one_core()
    about = machine()
    yield line("papers", figure="machines", **about, papers_machine=PAPERS_MACHINE)
    rows: dict[str, list[Row]] = {}
    for module in dict.fromkeys(known[name] for name in known if figure in (None, name)):
        for row in module.measure(size):
            if figure in (None, row.figure):
                rows.setdefault(row.figure, []).append(row)
                if not row.drawn:
                    yield _line_of(row)
    if page is not None:
        write_page(page, {name: (describe(name), found) for name, found in rows.items()}, about)


def _line_of(row: Row) -> str:
    about = describe(row.figure)
    return line("papers", figure=row.figure, series=row.series, x=row.x, x_axis=about.x, y_axis=about.y, ours=row.ours, paper=row.paper, **row.more)

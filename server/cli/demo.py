"""`epsparql demo` sends a year of weather through a server of its own, and shows what three continuous queries find
in it.
"""

import io
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from epsparql.client import Client, Solution
from epsparql.client import Progress as Word
from epsparql.deferred_methods import dataclass
from server.child_server import Child, ChildFailed
from server.cli.demo_data import HEAT_CLASSES, QUERIES, WATCHED, Instant, NoData, find, instants, station

_STREAM = "default"
_START_S, _END_S = 240.0, 300.0  # the first start on a machine compiles the kernel
_REFRESH_S = 0.1
_WIDTH = 100
_NEXT = (
    "Next: `epsparql serve` starts a server of your own, and docs/tutorial.md makes your first alert in ten minutes. "
    "`epsparql demo --keep` leaves the demo's server running, with its queries, for you to look into."
)
_RUNNER_NAMES = {"spark": "Spark (Structured Streaming, local)", "inprocess": "in-process"}


@dataclass(slots=True)
class Found:
    """Records what one query has found so far; only its follower's thread writes it."""

    query: str
    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    latest: Solution | None = None
    warnings: list[Solution] = field(default_factory=list)
    finished: bool = False
    failure: str = ""

    def add(self, solution: Solution) -> None:
        self.count += 1
        self.latest = solution
        if self.query == "heat":
            self.kinds[_value(solution, "class")] += 1
        elif self.query == "blizzard":
            self.warnings.append(solution)
        if self.query != "heat":
            self.kinds[station(_value(solution, "st"))] += 1


def demo(runner: str, picture: Path | None = None, *, keep: bool = False) -> int:
    """Run the demo and return its exit code: 0 if each query delivered everything it found, 2 without the data, else 1.

    With `keep` the server runs on until Ctrl-C.
    """
    console = Console(soft_wrap=not sys.stdout.isatty())
    try:
        year = instants(find())
    except NoData as fault:
        print(f"epsparql: {fault}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="epsparql-demo-") as directory:
        try:
            return _run(console, year, runner, Path(directory), picture, keep=keep)
        except ChildFailed as fault:
            print(f"epsparql: {fault}", file=sys.stderr)
            return 1


def _run(console: Console, year: Sequence[Instant], runner: str, directory: Path, picture: Path | None, *, keep: bool) -> int:
    readings = sum(instant.readings for instant in year)
    console.print(f"{readings:,} weather readings of {year[0].at[:4]} at EWR, JFK and LGA, in {len(year):,} messages.", highlight=False)
    console.print(f"Starting the server, runner: {_RUNNER_NAMES[runner]} …", highlight=False)
    began = time.monotonic()
    with Child(directory / "data", runner, directory / "server.log") as child:
        client = Client(child.url, patience_s=60)
        client.wait_ready(_START_S)
        console.print(f"Ready after {time.monotonic() - began:.1f} s at {child.url}", highlight=False)
        for name, text in QUERIES.items():
            client.register(name, text)
        console.print(f"Registered: {', '.join(QUERIES)}", highlight=False)
        found = {name: Found(name) for name in WATCHED}
        stop, streaming = Event(), time.monotonic()
        followers = [Thread(target=_follow_query, args=(client, each, stop), daemon=True) for each in found.values()]
        for follower in followers:
            follower.start()
        show = (_Terminal if console.is_terminal else _Lines)(console, readings, found)
        with show:
            _stream(client, year, show)
            _wait(child, found, show)
        seconds = time.monotonic() - streaming
        stop.set()
        complete = _complete(client, found)
        summary = _summary(found, readings, seconds, runner)
        console.print(summary)
        if picture is not None:
            _draw(picture, found, summary)
        if keep:
            _wait_for_interrupt(console, child)
    if not keep:
        console.print(_NEXT, highlight=False)
    return 0 if complete else 1


def _wait_for_interrupt(console: Console, child: Child) -> None:
    console.print(
        f"The server runs on at {child.url}, with these queries and the year's events. Open it in a browser; Ctrl-C ends it.", highlight=False
    )
    with suppress(KeyboardInterrupt):
        while child.alive:
            time.sleep(_REFRESH_S)


# ---------------------------------------------------------------- streaming and following
def _stream(client: Client, year: Sequence[Instant], show: "_Lines") -> None:
    with client.feed(_STREAM) as feed:
        for instant in year:
            feed.send(instant.frame)
            show.fed(instant)
        feed.flush()
    client.finish(_STREAM)


def _follow_query(client: Client, found: Found, stop: Event) -> None:
    try:
        with client.follow(found.query) as subscription:
            while not stop.is_set():
                word = subscription.next(1.0)
                if isinstance(word, Solution):
                    found.add(word)
                elif isinstance(word, Word) and word.finished:
                    found.finished = True
                    return
    except Exception as error:  # noqa: BLE001 - told by the main thread, which waits for this one's word
        found.failure = f"{found.query}: {error}"


def _wait(child: Child, found: dict[str, Found], show: "_Lines") -> None:
    """Wait until every query has reported that nothing more will come."""
    deadline = time.monotonic() + _END_S
    while not all(each.finished for each in found.values()):
        if time.monotonic() > deadline or not child.alive or any(each.failure for each in found.values()):
            return
        show.look()
        time.sleep(_REFRESH_S)
    show.look()


def _complete(client: Client, found: dict[str, Found]) -> bool:
    """Return whether every query runs and delivered all solutions that the server counts for it; print those that did
    not.
    """
    complete = True
    for name, each in found.items():
        state = client.query(name)
        if each.failure or not each.finished or state["state"] != "running" or state["solutions"] != each.count:
            print(f"epsparql: {name} is {state['state']}, told {each.count} of {state['solutions']} solutions; {each.failure}", file=sys.stderr)
            complete = False
    return complete


# ---------------------------------------------------------------- what is shown
class _Lines:
    """Prints plain lines, where stdout is no terminal."""

    def __init__(self, console: Console, readings: int, found: dict[str, Found]) -> None:
        self.console, self.readings, self.found = console, readings, found
        self.sent, self.at, self._told, self._tenth = 0, "", 0, 0

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, *_: object) -> None:
        self.look()

    def fed(self, instant: Instant) -> None:
        self.sent, self.at = self.sent + instant.readings, instant.at
        if self.sent * 10 // self.readings > self._tenth:
            self._tenth = self.sent * 10 // self.readings
            heat, wind = self.found["heat"].count, self.found["wind"].count
            self.console.print(f"{self.sent:,} of {self.readings:,} readings, up to {self.at[:10]}; heat {heat:,}, wind {wind:,}", highlight=False)
        self.look()

    def look(self) -> None:
        """Print the warnings that are new."""
        warnings = self.found["blizzard"].warnings
        while self._told < len(warnings):
            self.console.print(_warning_line(warnings[self._told]))
            self._told += 1


class _Terminal(_Lines):
    """Shows a progress bar and a live table below the warnings."""

    def __init__(self, console: Console, readings: int, found: dict[str, Found]) -> None:
        super().__init__(console, readings, found)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console)
        self._task = self._bar.add_task("streaming", total=readings)
        self._live = Live(get_renderable=self._picture, console=console, refresh_per_second=8, transient=True)

    def _picture(self) -> RenderableType:
        return Group(_table(self.found, "so far"), self._bar)

    def __enter__(self) -> "_Terminal":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.look()
        self._live.stop()

    def fed(self, instant: Instant) -> None:
        self.sent, self.at = self.sent + instant.readings, instant.at
        self._bar.update(self._task, completed=self.sent, description=f"streaming {self.at[:10]}")
        self.look()


def _value(solution: Solution, variable: str) -> str:
    assert solution.binding is not None
    return str(solution.binding[variable]["value"])


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _interval(solution: Solution) -> str:
    start, end = _moment(solution.start), _moment(solution.end)
    if start == end:
        return f"{start:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M} to {end:{'%H:%M' if start.date() == end.date() else '%m-%d %H:%M'}} ({(end - start) // timedelta(hours=1)} h)"


def _warning_line(solution: Solution) -> Text:
    return Text.assemble(("BLIZZARD", "bold cyan"), f"  {station(_value(solution, 'st'))}  {_interval(solution)}")


def _latest(found: Found) -> str:
    if found.latest is None:
        return "-"
    where = f"{station(_value(found.latest, 'st'))} {_interval(found.latest)}"
    match found.query:
        case "heat":
            return f"{where}: {float(_value(found.latest, 'hi')):.1f} °F, {_value(found.latest, 'class')}"
        case "wind":
            return f"{where}: {float(_value(found.latest, 'a')):.1f} → {float(_value(found.latest, 'b')):.1f} mph"
        case _:
            return where


def _details(found: Found) -> str:
    order = HEAT_CLASSES if found.query == "heat" else sorted(found.kinds)
    return ", ".join(f"{kind} {found.kinds[kind]:,}" for kind in order if found.kinds[kind]) or "-"


def _table(found: dict[str, Found], title: str) -> Table:
    table = Table(title=title, title_justify="left", expand=False)
    for heading in ("query", "solutions", "of which", "latest"):
        table.add_column(heading, justify="right" if heading == "solutions" else "left", overflow="fold")
    titles = {"blizzard": "blizzard warnings", "heat": "heat index", "wind": "wind up ≥ 10 % within 3 h"}
    for name, each in found.items():
        table.add_row(titles[name], f"{each.count:,}", _details(each), _latest(each))
    return table


def _summary(found: dict[str, Found], readings: int, seconds: float, runner: str) -> Table:
    return _table(found, f"{readings:,} readings in {seconds:.1f} s, runner: {_RUNNER_NAMES[runner]}")


def _draw(picture: Path, found: dict[str, Found], summary: Table) -> None:
    """Write the end of the run as an SVG."""
    console = Console(record=True, width=_WIDTH + 20, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ make demo", style="bold"))
    for warning in found["blizzard"].warnings:
        console.print(_warning_line(warning))
    console.print(summary)
    picture.write_text(
        re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="epsparql demo"), flags=re.DOTALL)
    )  # the picture loads no fonts from other sites

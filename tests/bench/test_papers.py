"""`epsparql bench papers` at its quick size: each figure and table has its rows, and the paper's numbers where they
are legible.
"""

import json
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.measurement import UnusableInput
from bench.papers import papers
from bench.papers.blizzard import kilometres
from bench.papers.charts import draw
from bench.papers.datasets import Place, read_airports, read_gtfs
from bench.papers.delivery import Journey, deliver
from bench.papers.figures import Chart, Row
from server.cli.commands import main
from server.cli.subcommands.definition import USER_FAULT

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "paper-experiments.md"
DATA = ROOT.parent / "shared" / "data"
FIGURES = {
    "003-1a", "003-1b", "003-2", "003-3a", "003-3b", "003-4", "002-5",
    "000-t2", "000-t3", "000-t4", "000-4", "000-5", "000-6a", "000-6b",
}  # fmt: skip
LEGIBLE = {
    ("003-3a", "5"): 31, ("003-3b", "5"): 35, ("003-4", "46073"): 3, ("000-t2", "KAVAX"): 161, ("000-t4", "all"): 51,
    ("000-6a", "(39)"): 24_696, ("000-6a", "(40)"): 37_437, ("000-6a", "(42)"): 3_900,
}  # fmt: skip
"""The paper's numbers among the first rows of each figure."""


@pytest.fixture(autouse=True)
def _every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests that come after share this process."""
    monkeypatch.setattr(papers, "one_core", lambda: None)


@pytest.mark.soak  # it takes four seconds to draw all figures; one of them is drawn below
def test_every_figure_has_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bench itself compares how much comes out with what must."""
    page = tmp_path / "paper-experiments.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["bench", "papers", "--quick", "--page", str(page)]) == 0
    about, *rows = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert about["machine"]
    assert "Q9400" in about["papers_machine"]
    assert {row["figure"] for row in rows} == FIGURES
    assert {key: row["paper"] for row in rows if (key := (row["figure"], str(row["x"]))) in LEGIBLE and row["paper"] is not None} == LEGIBLE
    assert {row["paper"] for row in rows if isinstance(row["paper"], str)} == {"not legible"}
    assert all(row["ours"] is None or row["ours"] >= 0 or row["figure"] in ("000-4", "000-5") for row in rows)
    text = page.read_text(encoding="utf-8")
    for figure in FIGURES:
        block = text.partition(f"<!-- {figure} -->")[2].partition("<!-- end -->")[0]
        assert "Measured on" in block
        shown = papers.describe(figure).chart != Chart.NONE
        assert shown == (page.with_suffix("") / f"{figure}.svg").exists() == (f"paper-experiments/{figure}.svg" in block)


def test_one_figure_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "papers", "--quick", "--figure", "003-2"]) == 0
    assert {json.loads(line)["figure"] for line in capsys.readouterr().out.splitlines()} == {"machines", "003-2"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(["--figure", "9"], "there is no figure '9'; there is 003-1a,", id="figure"),
        pytest.param(["--figure", "003-4", "--data", "nowhere"], "nowhere has no folder dart-tohoku", id="data"),
        pytest.param(["--figure", "003-3a", "--network", "nowhere"], "nowhere has no stop_times.txt", id="network"),
        pytest.param(["--figure", "003-2", "--page", "nowhere.md"], "nowhere.md: No such file", id="page"),
    ],
)
def test_what_cannot_be_used_is_named(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "papers", "--quick", *given]) == USER_FAULT
    assert said in capsys.readouterr().err


def test_the_page_is_that_of_the_figures() -> None:
    found = dict(re.findall(r"^<!-- (?!end)(\S+) -->\n(.*?)<!-- end -->$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    assert found.keys() == FIGURES == papers.experiments().keys()
    for name, block in found.items():
        figure = papers.describe(name)
        assert figure.parameters in block
        assert figure.differs in block
        assert "Measured on" in block
        assert (PAGE.with_suffix("") / f"{name}.svg").exists() == (figure.chart != Chart.NONE)


@pytest.mark.parametrize("chart", [Chart.LINES, Chart.BARS, Chart.POINTS])
def test_a_chart_has_each_number(chart: Chart) -> None:
    figure = next(each for name in FIGURES if (each := papers.describe(name)).chart == chart)
    rows = [Row("f", "one", x, y, paper) for x, y, paper in ((1, 10.0, 20), (2, 4_000.0, None))] + [Row("f", "other", 1, 7.0, "not legible")]
    shapes = [element.tag.rpartition("}")[2] for element in ElementTree.fromstring(draw(figure, rows)).iter()]
    numbers = shapes.count("rect") - 1 - 3 if chart == Chart.BARS else shapes.count("circle")  # the ground, and the legend's three series
    assert numbers == 4, "three of ours and one of the paper's"


# ---------------------------------------------------------------- data
STOP_TIMES = "trip_id,arrival_time,departure_time,stop_id,stop_sequence\nt1,8:00:00,8:00:00,Duomo,1\nt1,8:04:00,8:04:00,Cordusio,2\nt1,8:09:00,8:09:00,Cadorna,5\nt2,9:00:00,9:00:00,Cadorna,1\nt2,9:05:00,9:05:00,Duomo,2\n"


@pytest.fixture
def feed(tmp_path: Path) -> Path:
    (tmp_path / "gtfs").mkdir()
    (tmp_path / "gtfs" / "stop_times.txt").write_text("\ufeff" + STOP_TIMES, encoding="utf-8")
    return tmp_path / "gtfs"


def test_a_timetable_gives_connections(feed: Path) -> None:
    expected = [("Cadorna", "Duomo"), ("Cordusio", "Cadorna"), ("Duomo", "Cordusio")]
    assert read_gtfs(feed) == expected
    with zipfile.ZipFile(feed.parent / "gtfs.zip", "w") as file:
        file.write(feed / "stop_times.txt", "stop_times.txt")
    assert read_gtfs(feed.parent / "gtfs.zip") == expected


def test_agents_travel_over_a_timetable(feed: Path) -> None:
    """The run compares each way with a breadth-first search."""
    assert deliver(Journey.draw(read_gtfs(feed), 2, 2)).counts["routes"] == len(Journey.draw(read_gtfs(feed), 2, 2).expected())


@pytest.mark.parametrize(
    ("table", "said"), [("trip_id,stop_id\nt1,Duomo\n", "a row without 'stop_sequence'"), ("trip_id,stop_id,stop_sequence\n", "has 0 connections")]
)
def test_unusable_timetables(feed: Path, table: str, said: str) -> None:
    (feed / "stop_times.txt").write_text(table)
    with pytest.raises(UnusableInput, match=said):
        read_gtfs(feed)


def test_the_formula_of_distances() -> None:
    """One degree of a great circle, and the airports of San Francisco and Oakland."""
    assert kilometres(Place("a", "", "0", "0"), Place("b", "", "0", "1")) == pytest.approx(6378.137 * 3.141592653589793 / 180)
    airports = read_airports()
    assert kilometres(airports["SFO"], airports["OAK"]) == pytest.approx(17.7, abs=0.1)

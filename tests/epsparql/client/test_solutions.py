"""Solutions as frames of pandas and polars, and as what a notebook shows."""

import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import polars as pl
import pytest
import rdflib

from epsparql.extras import MissingExtra
from epsparql.python_values import PythonValue
from epsparql.solutions.solution import Solution
from epsparql.solutions.solution_list import Solutions
from epsparql.solutions.timeline import BARS, ROWS
from epsparql.terms import XSD, Literal


def literal(lexical: str, datatype: str = XSD + "string") -> dict[str, str]:
    return {"type": "literal", "value": lexical, "datatype": datatype}


def solution(number: int, end: str = "2026-01-01T10:40:00Z", **values: PythonValue | Literal) -> Solution:
    terms = {name: value if isinstance(value, Literal) else Literal.from_python(value) for name, value in values.items()}
    return Solution(
        "q", f"{number}-0", "2026-01-01T10:00:00Z", end, {name: literal(term.lexical, term.datatype) for name, term in terms.items()}, None
    )


def solutions(*values: PythonValue | Literal | None) -> Solutions:
    return Solutions(solution(k) if value is None else solution(k, x=value) for k, value in enumerate(values))


DAY = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS: list[tuple[list[Any], str, Any]] = [
    ([True, False], "bool", pl.Boolean),
    ([True, None], "boolean", pl.Boolean),
    ([1, 2], "int64", pl.Int64),
    ([1, None], "Int64", pl.Int64),
    ([1, 1 << 63], "object", pl.Object),
    ([1.5, None], "float64", pl.Float64),
    ([Decimal("1.50"), Decimal(2), None], "object", pl.Decimal(38, 2)),
    ([Decimal("1e30"), Decimal("1e-30")], "object", pl.Object),
    ([Decimal("1" * 30 + "." + "1" * 8), Decimal(1)], "object", pl.Decimal(38, 8)),
    ([1, Decimal("1.5")], "object", pl.Object),
    ([DAY, None], "datetime64[us, UTC]", pl.Datetime("us", "UTC")),
    ([DAY.replace(tzinfo=None)], "datetime64[us]", pl.Datetime("us")),
    ([DAY, DAY.replace(tzinfo=None)], "object", pl.Object),
    ([date(2026, 1, 1)], "object", pl.Date),
    ([timedelta(hours=1)], "timedelta64[us]", pl.Duration("us")),
    ([b"x"], "object", pl.Object),
]


@pytest.mark.parametrize(("values", "in_pandas", "in_polars"), COLUMNS)
def test_a_column_has_the_librarys_type(values: list[Any], in_pandas: str, in_polars: Any) -> None:
    found = solutions(*values)
    pandas, polars = found.to_frame(), found.to_frame("polars")
    assert str(pandas["x"].dtype) == in_pandas
    assert polars["x"].dtype == in_polars
    assert [None if value is None or value is pd.NA or value != value else value for value in pandas["x"]] == values
    assert polars["x"].to_list() == values


def test_texts_have_the_librarys_type() -> None:
    found = solutions("a", None, "b")
    assert found.to_frame()["x"].dropna().tolist() == ["a", "b"]
    assert found.to_frame("polars")["x"].to_list() == ["a", None, "b"]


def test_zones_become_one() -> None:
    found = solutions(Literal("2026-01-01T01:00:00+01:00", XSD + "dateTime"))
    assert found.to_frame()["x"][0] == found.to_frame("polars")["x"][0] == DAY


def test_numbers_need_not_be_exact() -> None:
    found = solutions(1, Decimal("1.5"), 2.5, None)
    assert found.to_frame(exact=False)["x"].dropna().tolist() == [1.0, 1.5, 2.5]
    assert found.to_frame("polars", exact=False)["x"].to_list() == [1.0, 1.5, 2.5, None]


def test_a_literal_without_a_value_stays_itself() -> None:
    odd = Literal("P1M", XSD + "duration")
    assert solutions(odd).to_frame()["x"][0] == rdflib.Literal("P1M", datatype=rdflib.XSD.duration)


def test_times_are_timestamps_and_names_do_not_collide() -> None:
    found = Solutions([solution(1, start=5, id="mine")]).to_frame()
    assert list(found.columns) == ["id", "start", "end", "?start", "?id"]
    assert found["start"][0] == datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert found["?start"][0] == 5


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_no_solutions_are_a_frame_without_rows(library: str) -> None:
    found = Solutions().to_frame(library)
    assert (list(found.columns), len(found)) == (["id", "start", "end"], 0)
    assert "UTC" in str(found["start"].dtype)


def test_other_forms() -> None:
    triples = Solution(
        "q", "1-0", "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z", None, '<a> <b> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n<a> <b> "x" .'
    )
    assert triples.statements()[0].object.toPython() == 1
    assert Solutions([triples]).to_frame()[["subject", "predicate", "object"]].values.tolist() == [["a", "b", 1], ["a", "b", "x"]]
    answer = Solution("q", "1-0", "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z", None, None, True)
    assert Solutions([answer]).to_frame()["boolean"].tolist() == [True]


def test_what_no_frame_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="'dask' is no library of frames here"):
        solutions(1).to_frame("dask")
    with pytest.raises(ValueError, match="12026-01-01T00:00:00Z is beyond the years of a datetime"):
        Solutions([solution(1, end="12026-01-01T00:00:00Z")]).to_frame()


def test_a_missing_library_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match=r"a frame needs polars, .* pip install 'epsparql\[polars\]'"):
        solutions(1).to_frame("polars")


def test_a_part_is_shown_like_the_whole() -> None:
    found = solutions(*range(5))
    assert isinstance(found[1:3], Solutions)
    assert [each["x"].toPython() for each in found[1:3]] == [1, 2]


def shown(found: Solutions) -> tuple[ElementTree.Element, str]:
    """The page as a tree, which is well-formed, and as text."""
    html = found._repr_html_()
    return ElementTree.fromstring(f"<body>{html}</body>"), html


SVG = "{http://www.w3.org/2000/svg}"


def test_a_notebook_shows_a_table_and_a_timeline() -> None:
    instant = Solution("q", "2-0", "2026-01-01T10:40:00Z", "2026-01-01T10:40:00Z", {"x": literal("<b>&")}, None)
    tree, html = shown(Solutions([solution(1, x="a"), instant]))
    assert [cell.text for cell in tree.iter("th")] == ["start", "end", "x"]
    assert [cell.text for cell in tree.iter("td")][-3:] == ["2026-01-01T10:40:00Z", "2026-01-01T10:40:00Z", "<b>&"]
    assert "<b>" not in html
    (bar,), (dot,) = tree.iter(f"{SVG}rect"), tree.iter(f"{SVG}circle")
    assert float(bar.attrib["x"]) + float(bar.attrib["width"]) == float(dot.attrib["cx"]) == 632


def test_what_is_shown_has_a_bound_that_it_names() -> None:
    tree, html = shown(solutions(*("y" * 1000 for _ in range(ROWS + BARS))))
    assert len([*tree.iter("tr")]) == ROWS + 1
    assert len([*tree.iter(f"{SVG}rect")]) == BARS
    assert f"The table shows {ROWS} of {ROWS + BARS} solutions" in html
    assert max(len(cell.text or "") for cell in tree.iter("td")) == 201


def test_solutions_without_a_timeline_are_shown() -> None:
    assert "No solutions" in shown(Solutions())[1]
    assert "<svg" not in shown(Solutions([solution(1, end="12026-01-01T00:00:00Z")]))[1]

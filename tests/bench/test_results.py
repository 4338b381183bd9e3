"""The tables of docs/benchmarks.md are those of the lines in bench/results."""

import json
import shutil
from pathlib import Path

import pytest

from bench.measurement import UnusableInput
from bench.page import write_tables
from server.cli.commands import main

ROOT = Path(__file__).parents[2]
PAGE, RESULTS = ROOT / "docs" / "benchmarks.md", ROOT / "bench" / "results"
LINE = {"bench": "b", "query": "q", "rate": 1_234_567, "took": {"4": 1.0549}, "measured": "2026-01-02", "machine": "M, 2 cores"}


def test_the_page_has_the_tables_of_the_kept_lines(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    shutil.copy(PAGE, page)
    write_tables(page, RESULTS)
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), "run: python -m bench.page"
    assert page.read_text(encoding="utf-8").count("Measured on") == 5


def written(tmp_path: Path, mark: str, *lines: dict[str, object]) -> str:
    page = tmp_path / "page.md"
    page.write_text(f"A\n<!-- figures b{mark} -->\nold\n<!-- end -->\nB\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    write_tables(page, tmp_path)
    return page.read_text(encoding="utf-8")


def test_a_table_has_the_wanted_lines_and_their_figures(tmp_path: Path) -> None:
    mark = " where kind=x and query=q: query, rate as events/s, took.4 as of four, no_such"
    text = written(tmp_path, mark, LINE | {"kind": "x"}, LINE | {"kind": "y"}, {"kind": "x", "measured": "2020-01-01", "machine": "none"})
    assert text == (
        f"A\n<!-- figures b{mark} -->\n\n| query | events/s | of four | no such |\n|---|---|---|---|\n| q | 1,234,567 | 1.05 | \u2013 |\n\n"
        "Measured on 2026-01-02, M, 2 cores.\n<!-- end -->\nB\n"
    )


def test_a_table_without_lines_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match=r"b\.jsonl has no line for the table of query; run epsparql bench b --json"):
        written(tmp_path, ": query")
    with pytest.raises(UnusableInput, match=r"nowhere\.md: No such file"):
        write_tables(tmp_path / "nowhere.md", tmp_path)


def test_kept_lines_have_the_date_and_the_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "static-rules.jsonl"
    assert main(["bench", "static-rules", "--n", "2", "--json", str(kept)]) == 0
    printed = [*map(json.loads, capsys.readouterr().out.splitlines())]
    lines = [*map(json.loads, kept.read_text(encoding="utf-8").splitlines())]
    assert [line.get("workload") for line in lines] == ["grid", None]
    for shown, line in zip(printed, lines, strict=True):
        assert shown.items() < line.items()
        assert {"measured", "machine", "load"} <= line.keys()

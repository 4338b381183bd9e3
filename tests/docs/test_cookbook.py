"""The cookbook's commands, in a shell and in their order, and its Python against a real server: each prints what stands
below it.
"""

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT
from tests.server.conftest import serving
from tests.support.shell_pages import run_page

COOKBOOK = Path(__file__).parents[2] / "docs" / "cookbook"
ADDRESS = "http://127.0.0.1:8080"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path / "data") as found:
        yield found


@pytest.mark.parametrize("page", ["notebooks.md", "rdflib.md"])
def test_a_page_prints_what_it_says(page: str, server: str) -> None:
    blocks = BLOCK.findall((COOKBOOK / page).read_text(encoding="utf-8"))
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for code, expected in blocks:
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(code.replace(ADDRESS, server), page, "exec"), names)
        assert out.getvalue() == expected


@pytest.mark.slow
def test_the_notebook_runs(server: str, tmp_path: Path) -> None:
    import nbformat  # with nbclient it takes as long to load as half of all tests take to be collected
    from nbclient import NotebookClient

    notebook = nbformat.read(COOKBOOK / "solutions.ipynb", as_version=4)  # type: ignore[no-untyped-call]  # it has no types
    for cell in notebook.cells:
        cell.source = cell.source.replace(ADDRESS, server)
        assert cell.cell_type == "markdown" or not cell.outputs, "the notebook is stored without outputs"
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output["data"] for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs if "data" in output]
    assert any("<svg" in data.get("text/html", "") for data in shown)
    assert any("<table" in data.get("text/html", "") and "14.1" in data["text/html"] for data in shown)


@pytest.mark.slow
def test_queries_are_tested_as_the_page_says(tmp_path: Path) -> None:
    assert run_page((ROOT / "docs/cookbook/tests.md").read_text(encoding="utf-8"), tmp_path, {}) == 3


@pytest.mark.slow
def test_shapes_become_a_query_as_the_page_says(tmp_path: Path) -> None:
    assert run_page((ROOT / "docs/cookbook/shacl.md").read_text(encoding="utf-8"), tmp_path, {}) == 1


@pytest.mark.slow
def test_the_readme_leads_from_a_file_to_a_solution(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace(".venv/bin/", "")
    assert run_page(text, tmp_path, {}) == 1

"""The cookbook's commands, in a shell and in their order, and what they print."""

from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT
from tests.support.shell_pages import run_page

pytestmark = pytest.mark.slow


def test_queries_are_tested_as_the_page_says(tmp_path: Path) -> None:
    assert run_page((ROOT / "docs/cookbook/tests.md").read_text(encoding="utf-8"), tmp_path, {}) == 3


def test_the_readme_leads_from_a_file_to_a_solution(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace(".venv/bin/", "")
    assert run_page(text, tmp_path, {}) == 1

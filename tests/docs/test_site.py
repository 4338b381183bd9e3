"""The documentation site, as far as it can be checked without building it: its navigation, its links, and the pages
of its reference.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.cli.commands import parser
from server.cli.documentation.command_reference import write_command_page
from server.cli.documentation.http_reference import write_http_pages
from server.cli.documentation.python_reference import write_python_page
from server.cli.documentation.site import GATHERED, SiteFault, adapt_page, add_reading_time

ROOT = Path(__file__).parents[2]
DOCUMENT: dict[str, Any] = yaml.load((ROOT / "openapi.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
PLACES = {"docs/a.md": "a.md", "docs/cookbook/b.md": "cookbook/b.md", "README.md": "index.md", "docs/cookbook/README.md": "cookbook/README.md"}


def pages_of(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else (entry,):
            yield from pages_of(value) if isinstance(value, list) else (value,)


def test_the_navigation_has_each_page_once() -> None:
    nav = list(pages_of(tomllib.loads((ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]))
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "decisions"}
    gathered = {place for place in GATHERED.values() if place.endswith(".md")}
    made = {f"reference/http/{name}" for name in write_http_pages(DOCUMENT)} | {"reference/commands.md", "reference/python.md"}
    assert sorted(nav) == sorted(written | gathered | made)


LINKS = [
    pytest.param("docs/a.md", "[b](cookbook/b.md#part)", "[b](cookbook/b.md#part)", id="within docs"),
    pytest.param("docs/cookbook/b.md", "[`a`](../a.md), [c](README.md)", "[`a`](../a.md), [c](README.md)", id="up and beside"),
    pytest.param("README.md", "[a](docs/a.md) ![p](docs/cookbook/)", "[a](a.md) ![p](cookbook/README.md)", id="from outside, and a folder"),
    pytest.param("docs/a.md", "[x](https://example.org/#y) [z](#z)", "[x](https://example.org/#y) [z](#z)", id="elsewhere"),
    pytest.param("docs/a.md", "[the code](../pyproject.toml)", "the code", id="a file of the code"),
    pytest.param("docs/a.md", "```\n[x](nowhere.md)\n```", "```\n[x](nowhere.md)\n```", id="no link"),
    pytest.param("docs/a.md", "text\n- one\n  - two", "text\n\n- one\n    - two", id="a list at once, and one in it"),
    pytest.param("docs/a.md", "text\n| a |\n|---|", "text\n\n| a |\n|---|", id="a table at once"),
]


@pytest.mark.parametrize(("page", "written", "read"), LINKS)
def test_pages_are_adapted(page: str, written: str, read: str) -> None:
    assert adapt_page(page, written, PLACES, ROOT) == read + "\n"


def test_a_link_that_leads_nowhere_is_a_fault() -> None:
    with pytest.raises(SiteFault, match=r"docs/a\.md: the link to nowhere\.md leads nowhere"):
        adapt_page("docs/a.md", "[x](nowhere.md)", PLACES, ROOT)


TIMES = [
    pytest.param("one " * 398, "400 words, 2 minutes", id="two minutes"),
    pytest.param("one &amp; <b>two</b><pre>three four</pre>", "5 words, 1 minute", id="code apart"),
    pytest.param("one " * 1_399, "1,401 words, 8 minutes", id="a minute that has begun"),
]


@pytest.mark.parametrize(("text", "told"), TIMES)
def test_a_page_says_how_long_it_takes(text: str, told: str) -> None:
    title = '<h1 id="a">A title<a class="headerlink" href="#a">¶</a></h1>'
    page = f"<nav>Other words</nav><article>{title}<p>{text}</p></article>"
    assert add_reading_time(page) == page.replace("</h1>", f"</h1><p><small>{told}</small></p>")


def test_the_reference_has_every_operation_and_every_type() -> None:
    text = "\n".join(write_http_pages(DOCUMENT).values())
    for path, operations in DOCUMENT["paths"].items():
        for method in operations:
            assert f"`{method.upper()} {path}`" in text
    headings = set(re.findall(r"^## (\w+)$", text, re.MULTILINE))
    assert set(DOCUMENT["components"]["schemas"]) <= headings


def test_the_reference_has_every_command_and_method() -> None:
    text = write_command_page()
    assert all(f"## epsparql {name}\n" in text for name in ("serve", "replay", "queries", "drop"))
    assert "--max-partial-matches" in text
    assert parser().prog in text
    python = write_python_page()
    for name in ("epsparql.run", "epsparql.client.Client", "Client.register", "Feed.send", "epsparql.async_client.AsyncClient"):
        assert re.search(rf"^##+ {re.escape(name)}$", python, re.MULTILINE), name

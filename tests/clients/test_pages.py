"""Pages that authors copy, pasted beside the installed package and opened in a browser: they are of another origin
than the server.
"""

import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from epsparql.client import Client
from server.settings import EVERY_ORIGIN
from tests.clients.conftest import ROOT, TOKEN, run_npm, serve_files
from tests.server.conftest import serving
from tests.server.operations.test_security import digest

pytestmark = pytest.mark.slow
ADDRESS = "http://127.0.0.1:8080"
PAGE = re.compile(r"^```html\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WARM = "PREFIX : <http://example.org/> SELECT ?room ?value FROM STREAM <rooms> WHERE { ?room :temperature ?value FILTER(?value > 25) }"


@pytest.fixture
def site(package: Path, tmp_path: Path) -> Path:
    """Return a directory with the package installed from its published form."""
    found = tmp_path / "site"
    found.mkdir()
    name = run_npm("pack", "--silent", "--pack-destination", str(found), cwd=package).strip()
    (found / "package.json").write_text('{"private": true}')
    run_npm("install", "--no-audit", "--no-fund", name, cwd=found)
    return found


def read_page(source: str) -> str:
    (text,) = PAGE.findall((ROOT / source).read_text(encoding="utf-8"))
    return str(text)


def open_page(browser: Browser, address: str) -> Page:
    page = browser.new_page()
    page.on("pageerror", lambda error: pytest.fail(f"{address}: {error}"))
    page.goto(address)
    return page


def test_the_page_of_the_readme(browser: Browser, site: Path, tmp_path: Path) -> None:
    """It finds solutions, and a reload goes on after the last one."""
    text = read_page("clients/js/README.md")
    assert len(text.splitlines()) <= 25
    with serve_files(site) as origin, serving(tmp_path / "data", origins=(origin,)) as url:
        (site / "index.html").write_text(text.replace(ADDRESS, url))
        page = open_page(browser, origin)
        rows = page.get_by_role("listitem")
        while not rows.count():
            page.get_by_role("button").click()
            page.wait_for_timeout(50)
        expect(rows.first).to_contain_text("http://example.org/hall: 2")
        last, before = page.evaluate("localStorage.last"), Client(url).query("warm")["solutions"]
        page.reload()
        while not rows.count():
            page.get_by_role("button").click()
            page.wait_for_timeout(50)
        assert page.evaluate("localStorage.last") > last
        assert rows.count() <= Client(url).query("warm")["solutions"] - before + 1
        page.close()


def test_the_page_of_the_cookbook(browser: Browser, site: Path, tmp_path: Path) -> None:
    """The token is asked for, again where it is refused; a refused event is told, and so is the end of the query."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{digest(TOKEN)} admin\n{digest('page')} read:warm ingest:rooms\n")
    with serve_files(site) as origin, serving(tmp_path / "data", token_file=tokens, origins=(origin,)) as url:
        Client(url, TOKEN).register("warm", WARM)
        (site / "index.html").write_text(read_page("docs/cookbook/web-page.md").replace(ADDRESS, url))
        page, answers = browser.new_page(), iter(("stranger", "page"))
        page.on("dialog", lambda dialog: dialog.accept(next(answers)))
        page.goto(origin)
        status = page.get_by_role("status")
        expect(status).to_have_text("live")
        for count in (1, 2):
            page.get_by_role("button").click()
            expect(page.get_by_role("row")).to_have_count(count)
        expect(page.get_by_role("cell").nth(1)).to_have_text("http://example.org/hall")
        Client(url, TOKEN).finish("rooms")
        expect(status).to_have_text("the query is completed")
        page.get_by_role("button").click()
        expect(status).to_contain_text("refused: ")
        page.close()


def test_the_example(browser: Browser, site: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "web", site, dirs_exist_ok=True)
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{digest(TOKEN)} admin\n")
    with serve_files(site) as origin, serving(tmp_path / "data", token_file=tokens, origins=(EVERY_ORIGIN,)) as url:
        page = browser.new_page()
        page.on("dialog", lambda dialog: dialog.accept(TOKEN))
        page.goto(f"{origin}?server={url}")
        expect(page.get_by_role("status")).to_have_text("live")
        expect(page.locator("rect").nth(2)).to_be_visible()
        page.get_by_role("button", name="Stop measuring").click()
        expect(page.get_by_role("button")).to_have_text("Measure")
        page.close()

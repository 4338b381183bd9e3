"""The documentation site, built from docs/ and served by a server, in a browser: what its search finds, and that
nothing comes from elsewhere.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, TimeoutError

from server.cli.documentation.site import build_site
from tests.browser.conftest import DEADLINE_MS
from tests.server.conftest import serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ANSWERS = {
    "alert when a sensor stops sending": "questions/#get-an-alert-when-a-sensor-stops-sending",
    "prevent automation from running more than once per hour": "questions/#get-an-alert-once-an-hour-or-once-until-it-is-reset",
}
"""Questions, and the place of an answer that must be among the first three hits. tests/docs/test_search.py has more of
them, and asks the search without a browser.
"""
HITS = """
    () => {
        const links = (root) => [...root.querySelectorAll("*")].flatMap((each) => (each.shadowRoot ? [...each.shadowRoot.querySelectorAll("a"), ...links(each.shadowRoot)] : []));
        return links(document).map((each) => each.href);
    }
"""
"""The addresses of the hits, which stand in a shadow root."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("docs") / "site"
    build_site(ROOT, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("server.http.documentation.DIST", folder)
        with serving(tmp_path_factory.mktemp("data")) as url:
            yield f"{url}/docs/"


@pytest.fixture
def opened(context: BrowserContext, site: str) -> Iterator[Page]:
    page, wrong = context.new_page(), list[str]()
    page.on("pageerror", lambda error: wrong.append(f"exception: {error}"))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)  # also what the policy forbids
    page.on("request", lambda request: None if request.url.startswith((site, "data:", "blob:")) else wrong.append(f"request to {request.url}"))
    page.goto(site)
    yield page
    page.close()
    assert wrong == []


def find_hits(page: Page, question: str) -> list[str]:
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.wait_for_function(f"() => ({HITS})().length === 0", timeout=DEADLINE_MS)
    page.keyboard.insert_text(question)
    with suppress(TimeoutError):  # there may be none
        page.wait_for_function(f"() => ({HITS})().length > 0", timeout=DEADLINE_MS)
    found: list[str] = page.evaluate(HITS)
    return found


def test_the_page_shows_the_hits_of_the_search(opened: Page, site: str) -> None:
    opened.get_by_role("button", name="Search").first.click()
    for question, answer in ANSWERS.items():
        assert answer in [re.sub(r"\?[^#]*", "", hit).removeprefix(site) for hit in find_hits(opened, question)[:3]]


def test_words_of_a_question_are_marked_in_the_hits(opened: Page) -> None:
    opened.get_by_role("button", name="Search").first.click()
    find_hits(opened, "hysteresis")
    assert "hysteresis" in {text.lower() for text in opened.locator("mark").all_inner_texts()}


def test_more_hits_come_with_scrolling(opened: Page) -> None:
    opened.get_by_role("button", name="Search").first.click()
    first = len(find_hits(opened, "query"))
    opened.get_by_role("option").last.scroll_into_view_if_needed()
    opened.wait_for_function(f"() => ({HITS})().length > {first}", timeout=DEADLINE_MS)


@pytest.mark.parametrize("path", ["concepts/time/", "reference/http/queries/", "reference/commands/", "project/changelog/"])
def test_pages_come_from_the_server_alone(opened: Page, site: str, path: str) -> None:
    opened.goto(site + path)
    assert opened.locator("h1").first.is_visible()
    pictures = opened.evaluate("() => [...document.images].map((each) => each.naturalWidth)")
    assert all(pictures)


def test_addresses_of_the_site(site: str) -> None:
    """The folder is entered without its slash, a missing page is the site's own, and files are asked for again by
    their tag.
    """
    with httpx.Client(base_url=site, follow_redirects=True) as http:
        assert str(http.get(site.removesuffix("/")).url) == site
        assert str(http.get("tutorial").url) == f"{site}tutorial/"
        missing = http.get("nowhere/")
        assert missing.status_code == 404
        assert "text/html" in missing.headers["content-type"]
        found = http.get("search.json")
        assert http.get("search.json", headers={"If-None-Match": found.headers["etag"]}).status_code == 304

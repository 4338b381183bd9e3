"""The console's pages of the background, of lag and errors, and of webhooks; the order and the filter of the table;
the way to the documentation.
"""

from importlib.metadata import version

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from epsparql.client import Client
from tests.browser.test_access import find_violations, set_scheme
from tests.browser.test_connectors import enter
from tests.server.conftest import EX, event, values
from tests.soak import is_full
from tests.support.webhook_receiver import receiving

pytestmark = pytest.mark.slow

FACTS = "\n".join(f"<{EX}s{k}> <{EX}in> <{EX}hall> ." for k in range(3)) + f"\n<{EX}s0> a <{EX}Sensor> ."
WIDTHS = (390, 768, 1440)


def go(page: Page, title: str) -> None:
    burger = page.get_by_role("button", name="Queries and streams")
    if burger.is_visible():
        burger.click()
    page.get_by_role("navigation").get_by_role("link", name=title).first.click()


def load(client: Client) -> None:
    client.request("PUT", "/ontologies/default", FACTS, Content_Type="text/turtle")


def test_the_background_is_asked(page: Page, client: Client) -> None:
    go(page, "SPARQL")
    expect(page.get_by_text("The background is empty")).to_be_visible()
    load(client)
    expect(page.get_by_text("The background is empty")).to_have_count(0)
    page.get_by_role("button", name="Ask").click()
    rows = page.get_by_role("region", name="Rows").locator("tbody tr")
    expect(rows.filter(has=page.get_by_title(f"<{EX}in>"))).to_contain_text("3")
    text = page.get_by_role("textbox", name="Query", exact=True)
    for query, told in (
        (f"ASK {{ <{EX}s0> a <{EX}Sensor> }}", "Yes, it holds."),
        (f"CONSTRUCT WHERE {{ ?s a <{EX}Sensor> }}", "The triples as Turtle"),
        ("SELECT ?s WHERE { ?s <x:none> ?o }", "0 rows"),
    ):
        text.fill(query)
        text.press("Control+Enter")
        expect(page.get_by_role("status").filter(has_text=told)).to_be_visible()
    text.fill("SELECT ?s WHERE { ?s")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("alert")).to_contain_text("line 1, column")


def test_what_is_late_or_waits_is_told(page: Page, client: Client) -> None:
    go(page, "Lag and errors")
    expect(page.get_by_text("No query is registered.")).to_be_visible()
    client.register("waiting", values("never"))
    client.send("hall of lag", event(4))
    client.send("hall of lag", event(0))
    queries, streams = (page.get_by_role("region", name=f"{what} that need attention") for what in ("Queries", "Streams"))
    expect(queries).to_contain_text("waits for the first event on <never>")
    expect(streams.locator("tbody tr").filter(has_text="hall of lag")).to_contain_text("1")
    queries.get_by_role("link", name="waiting").click()
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value("waiting")


def test_the_table_is_put_in_order_and_filtered(page: Page, client: Client) -> None:
    client.register("sorted", values("sorted"))
    client.send("sorted", "\n".join(event(second, value) for second, value in enumerate((2, 30, 4, 100), 1)))
    go(page, "sorted")
    column = page.locator("tr[data-id] td:nth-child(5)")
    expect(column).to_have_text(["100", "4", "30", "2"])
    heading = page.get_by_role("columnheader", name="?v")
    for order, shown in (("ascending", ["2", "4", "30", "100"]), ("descending", ["100", "30", "4", "2"]), ("none", ["100", "4", "30", "2"])):
        heading.get_by_role("button").click()
        expect(heading).to_have_attribute("aria-sort", order)
        expect(column).to_have_text(shown)
    page.get_by_role("searchbox", name="Show only rows that contain").fill("30")
    expect(column).to_have_text(["30"])
    expect(page.get_by_role("status").filter(has_text="1 of 4 rows")).to_be_visible()
    page.keyboard.press("Escape")
    expect(column).to_have_count(4)


def test_the_documentation_is_a_link_away(page: Page, url: str) -> None:
    link = page.get_by_role("link", name="Docs")
    expect(page.locator(".brand")).to_contain_text(version("epsparql"))
    assert link.evaluate("(link) => link.href") == f"{url}/docs/"


def test_webhooks_are_created_tested_and_deleted(context: BrowserContext, restricted: str) -> None:
    Client(restricted, "root").register("alert", values("hall"))
    page = context.new_page()
    page.goto(f"{restricted}/")
    enter(page, "root")
    go(page, "alert")
    page.get_by_role("tab", name="Webhooks").click()
    expect(page.get_by_text("None yet.")).to_be_visible()
    with receiving() as receiver:
        page.get_by_role("textbox", name="Name of the webhook").fill("screen")
        page.get_by_role("textbox", name="Address of the receiver").fill(receiver.url)
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_role("status").filter(has_text="whsec_")).to_be_visible()
        page.get_by_role("button", name="Test screen").click()
        expect(page.get_by_role("status").filter(has_text="accepted the test")).to_be_visible()
        Client(restricted, "root").send("hall", event(1))
        expect(page.get_by_role("row").filter(has_text="screen").get_by_role("cell").nth(3)).to_have_text("1")
    page.get_by_role("button", name="Delete screen").click()
    page.get_by_role("button", name="Really delete? screen").click()
    expect(page.get_by_text("None yet.")).to_be_visible()
    page.close()


def test_a_reader_sees_what_may_be_seen(context: BrowserContext, restricted: str) -> None:
    root = Client(restricted, "root")
    root.register("alert", values("hall"))
    root.start_trial(values("hall"), compare_with="alert")
    page = context.new_page()
    page.goto(f"{restricted}/")
    enter(page, "some")
    rail = page.get_by_role("navigation")
    go(page, "Lag and errors")
    expect(page.get_by_role("region", name="Queries that need attention")).to_contain_text("alert")
    expect(page.get_by_text("of what this token may read")).to_be_visible()
    for hidden in ("SPARQL", "Background", "Connectors"):
        expect(rail.get_by_role("link", name=hidden)).to_have_count(0)
    go(page, "alert")
    page.get_by_role("tab", name="Webhooks").click()
    expect(page.get_by_text("Webhooks are shown to tokens with the scope admin")).to_be_visible()
    go(page, "Trials")
    expect(page.get_by_text("Trials are started with tokens that have the scope admin.")).to_be_visible()
    page.get_by_role("region", name="Trials, the newest first").get_by_role("link", name="alert").click()
    expect(page.get_by_text("A new text beside that of alert, over all of the log.")).to_be_visible()
    for change in ("Promote", "Discard", "Cancel", "Try on the past"):
        expect(page.get_by_role("button", name=change)).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    page.close()


def test_the_pages_on_three_widths(page: Page, client: Client) -> None:
    """One width is enough in the dark outside of `make soak`: colours do not depend on it."""
    load(client)
    client.register("waiting", values("never"))
    for title in ("SPARQL", "Lag and errors", "waiting"):
        page.set_viewport_size({"width": WIDTHS[-1], "height": 844})
        go(page, title)
        if title == "SPARQL":
            page.get_by_role("button", name="Ask").click()
            expect(page.get_by_role("region", name="Rows")).to_be_visible()
        if title == "waiting":
            page.get_by_role("tab", name="Webhooks").click()
            expect(page.get_by_text("None yet.")).to_be_visible()
        for scheme in ("light", "dark"):
            set_scheme(page, scheme)
            for width in WIDTHS if scheme == "light" or is_full() else WIDTHS[-1:]:
                page.set_viewport_size({"width": width, "height": 844})
                assert page.evaluate("document.documentElement.scrollWidth") == width, (title, width)
                assert find_violations(page, scheme) == [], (title, scheme, width)


def test_the_ways_to_pages_stay_in_sight(page: Page, client: Client) -> None:
    """Many queries scroll above them, on a low window too."""
    for number in range(35):
        client.register(f"q{number}", values("s"))
    ways = page.get_by_role("navigation").locator(".ways").get_by_role("link")
    for width, height in ((1440, 500), (390, 600)):
        page.set_viewport_size({"width": width, "height": height})
        if width == min(WIDTHS):
            page.get_by_role("button", name="Queries and streams").click()
        expect(page.get_by_role("navigation").get_by_text("q34", exact=True)).to_be_attached()
        expect(ways).to_have_count(6)
        for way in ways.all():
            expect(way).to_be_in_viewport(ratio=1)

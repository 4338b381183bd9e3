"""Tabs: each has a name, a view and an address of its own, and says where its name is that of another query."""

import re
import subprocess

import pytest
from playwright.sync_api import Page, expect

from epsparql.client import Client, segment
from tests.browser import at_work as work
from tests.browser.test_access import find_overlaps, find_violations
from tests.browser.test_limits import SECONDS, send
from tests.server.conftest import EX, moment
from tests.soak import is_full
from tests.support.logs import until

pytestmark = pytest.mark.slow
OTHER = SECONDS.replace("?s ?v FROM", "?v FROM")


def begin(page: Page, name: str, text: str = SECONDS) -> None:
    """A tab of its own."""
    page.get_by_role("button", name="New query").first.click()
    work.write(page, text)
    rename(page, name)


def rename(page: Page, name: str) -> None:
    page.get_by_role("textbox", name="Name").fill(name)
    page.keyboard.press("Tab")


def test_a_new_tab_opens_with_its_solutions_and_each_keeps_its_view(page: Page, client: Client) -> None:
    begin(page, "first")
    page.keyboard.press("Alt+p")
    expect(page.get_by_role("tab", name="Plan")).to_have_attribute("aria-selected", "true")
    begin(page, "second")
    expect(page.get_by_role("tab", name="Solutions")).to_have_attribute("aria-selected", "true")
    work.tab(page, "first").click()
    expect(page.get_by_role("tab", name="Plan")).to_have_attribute("aria-selected", "true")
    page.reload()
    expect(page.get_by_role("tab", name="Plan")).to_have_attribute("aria-selected", "true")
    work.tab(page, "second").click()
    expect(page.get_by_role("tab", name="Solutions")).to_have_attribute("aria-selected", "true")


def test_no_two_tabs_have_one_name(page: Page, client: Client) -> None:
    client.register("alert-2", SECONDS)
    expect(page.get_by_role("navigation").get_by_role("link", name="alert-2")).to_be_visible()
    begin(page, "alert")
    begin(page, "alert")
    expect(page.get_by_role("status").filter(has_text="There is a tab alert already, so this one is alert-3")).to_be_visible()
    expect(work.tab(page, "alert")).to_have_count(1)
    expect(page.get_by_role("textbox", name="Name")).to_have_value("alert-3")
    rename(page, "alert-3 ")  # its own name, with a blank
    expect(work.tab(page, "alert-3")).to_have_count(1)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("button", name="Running")).to_be_visible()
    assert sorted(query["name"] for query in client.queries()) == ["alert-2", "alert-3"]


def test_a_name_that_runs_with_another_text_is_told_and_can_be_looked_at(page: Page, client: Client) -> None:
    client.register("alert", SECONDS)
    send(client, 1, 2)
    told = page.get_by_role("status").filter(has_text="alert is running with another text")
    page.get_by_role("navigation").get_by_role("link", name="alert").first.click()
    expect(page.locator("tr[data-id]")).to_have_count(2)
    expect(told).to_have_count(0)
    page.get_by_role("button", name="Close alert").click()
    begin(page, "alert", OTHER)
    expect(told).to_be_visible()
    page.get_by_role("button", name="Look at it").click()
    expect(page.locator(".cm-content")).to_contain_text("?s ?v FROM")
    expect(page.locator("tr[data-id]")).to_have_count(2)
    expect(told).to_have_count(0)
    work.tab(page, "alert-2").click()
    expect(page.locator(".cm-content")).not_to_contain_text("?s ?v FROM")
    expect(page.locator(".counts")).to_have_count(0)
    assert [query["name"] for query in client.queries()] == ["alert"]


def test_it_is_told_what_is_other(page: Page, client: Client) -> None:
    client.register("alert", SECONDS)
    page.get_by_role("navigation").get_by_role("link", name="alert").first.click()
    page.locator("summary", has_text="Options").click()
    page.get_by_label("Policy").select_option("recent")
    page.get_by_label("Default graph").select_option("unnamed")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Policy")).to_be_hidden()
    expect(page.locator("summary", has_text="Options: recent, unnamed graph")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="another policy and default graph")).to_be_visible()
    work.replace(page)
    expect(page.locator(".results .doubt")).to_have_count(0)
    assert client.query("alert")["policy"] == "recent"


def test_what_is_written_in_place_of_a_query_that_has_ended_is_judged(page: Page, client: Client) -> None:
    client.register("whether", SECONDS.replace("SELECT ?s ?v", "ASK"))
    send(client, 1, 2)
    page.get_by_role("navigation").get_by_role("link", name="whether").click()
    expect(page.locator(".verdict")).to_contain_text("completed")
    work.write(page, SECONDS.replace("WHERE", "WHER"))
    expect(page.locator(".verdict")).to_contain_text("1:")
    expect(page.locator(".verdict")).not_to_contain_text("completed")


def test_a_query_says_for_which_stream_it_waits(page: Page, client: Client) -> None:
    """Through a rule as well; the event that the page proposes is one that the rule looks for, so the query finds it."""
    client.register("rule", SECONDS.replace("SELECT ?s ?v", "CONSTRUCT { ?s :value ?v } INTO STREAM <derived>"))
    client.register("alert", SECONDS.replace("<seconds>", "<derived>"))
    page.get_by_role("navigation").get_by_role("link", name="alert").first.click()
    expect(page.locator(".verdict")).to_contain_text("no faults · nothing was sent to <seconds> yet")
    expect(page.locator(".empty")).to_contain_text("alert waits for the first event on <seconds>. The rule rule looks for ?s :value ?v.")
    done = subprocess.run(["bash", "-c", page.locator(".empty pre").inner_text()], capture_output=True, text=True, timeout=60, check=True)
    assert '"accepted":1' in done.stdout
    expect(page.locator(".verdict")).not_to_contain_text("nothing was sent")
    expect(page.locator("tr[data-id]")).to_have_count(1)
    send(client, 1)
    expect(page.locator("tr[data-id]")).to_have_count(2)
    assert client.stream("seconds")["late"] == 0


def test_the_page_says_why_a_query_finds_nothing(page: Page, client: Client) -> None:
    client.register("silent", SECONDS.replace("?s :value ?v", "?s :value ?v FILTER(?v > 900000)"))
    send(client, 1)
    page.get_by_role("navigation").get_by_role("link", name="silent").first.click()
    panel = page.get_by_role("region", name="Why nothing?")
    panel.get_by_role("button", name="Why nothing?").click()
    expect(panel.get_by_role("status")).to_contain_text("?v was compared with a number once and was a text each time")
    expect(panel.locator("tr.silent")).to_contain_text("FILTER ?v > 900000")
    expect(panel.get_by_role("status")).to_contain_text("1 event was examined")


def test_an_empty_view_counts_the_events_of_each_pattern(page: Page, client: Client) -> None:
    client.register("pairs", SECONDS.replace("?s :value ?v", "{ ?s :value ?v } SEQ { ?s :other ?w }"))
    send(client, 1, 2)
    page.get_by_role("navigation").get_by_role("link", name="pairs").first.click()
    rows = page.locator(".matched tbody tr")
    expect(rows).to_have_text(["?s :value ?v2", "?s :other ?w0"])
    expect(page.locator(".empty")).to_contain_text("No event has matched ?s :other ?w.")


def test_back_and_reload_find_the_page_the_view_and_the_solution(page: Page, client: Client) -> None:
    client.register("alert", SECONDS)
    client.register("other", SECONDS)
    send(client, 1, 2)
    rail, chosen = page.get_by_role("navigation"), page.get_by_role("complementary", name="The chosen solution")
    expect(page).to_have_url(re.compile("#/examples$"))
    expect(rail.get_by_role("link", name="alert")).to_have_attribute("href", "#/query/alert")
    rail.get_by_role("link", name="alert").click()
    page.get_by_role("tab", name="Chart").click()
    page.get_by_role("tab", name="Solutions").click()
    page.locator("tr[data-id]").last.click()
    expect(page).to_have_url(re.compile(r"#/query/alert\?solution="))
    page.reload()
    expect(chosen).to_contain_text('"1"')
    page.get_by_role("button", name="Newer").click()  # another solution beside the table is no step of its own
    expect(chosen).to_contain_text('"2"')
    rail.get_by_role("link", name="seconds").click()
    expect(page).to_have_url(re.compile("#/stream/seconds$"))
    rail.get_by_role("link", name="other").click()
    expect(page.locator("tr[data-id]")).to_have_count(2)
    expect(chosen).to_be_hidden()
    for address, shown in (
        ("stream/seconds", page.get_by_role("heading", name="seconds", exact=True)),
        ("query/alert?solution=", chosen),
        ("query/alert", page.get_by_role("tab", name="Solutions", selected=True)),
        ("query/alert/chart", page.get_by_role("tab", name="Chart", selected=True)),
        ("query/alert", page.get_by_role("tab", name="Solutions", selected=True)),
        ("examples", page.get_by_role("heading", name="Examples on real data")),
    ):
        page.go_back()
        expect(page).to_have_url(re.compile(re.escape(f"#/{address}") + (".+" if address.endswith("=") else "$")))
        expect(shown).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("textbox", name="Name")).to_have_value("alert")
    rename(page, "renamed")
    expect(page).to_have_url(re.compile("#/query/renamed$"))


def test_every_address_opens_cold(page: Page, client: Client, url: str) -> None:
    """A browser without tabs opens each, and the page tells what is not there. Nothing overlaps at three widths."""
    client.register("a/b c", SECONDS)
    send(client, 1, 2)
    client.request("PUT", f"/ontologies/{segment(f'{EX}devices')}", f"<{EX}a> <{EX}in> <{EX}b> .", Content_Type="text/turtle")
    trial = client.start_trial(SECONDS)["id"]
    until(lambda: client.trial(trial)["state"] == "completed", "the trial")
    first = client.solutions("a/b c", limit=1)[0].id
    chosen = page.get_by_role("complementary", name="The chosen solution").get_by_text('"1"')
    views = {"chart": "Chart", "map": "Map", "plan": "Plan", "partial": "Partial matches", "versions": "Versions", "webhooks": "Webhooks"}
    addresses = {
        "examples": page.get_by_role("heading", name="Examples on real data", level=1),
        "file": page.get_by_role("heading", name="Send a file to a stream", level=1),
        "background": page.get_by_role("heading", name="Background", level=1),
        f"background/{segment(f'{EX}devices')}": page.get_by_role("region", name=f"Triples of {EX}devices").locator("tbody tr"),
        "sparql": page.get_by_role("heading", name="SPARQL", level=1),
        "connectors": page.get_by_role("heading", name="Connectors", level=1),
        "lag": page.get_by_role("heading", name="Lag and errors", level=1),
        "trials": page.get_by_role("region", name="Trials, the newest first"),
        f"trials/{trial}": page.get_by_role("status").filter(
            has_text=re.compile("^The text finds .* solutions")
        ),  # other tests have sent events before
        f"trials/{trial}?solution=new+0": chosen,
        "stream/seconds": page.get_by_role("heading", name="seconds", level=1),
        "query/a%2Fb%20c": page.get_by_role("region", name="Solutions, the newest first").locator("tr[data-id]").first,
        f"query/a%2Fb%20c?solution={first}": chosen,
        f"query/a%2Fb%20c/chart?solution={first}": chosen,
        **{f"query/a%2Fb%20c/{view}": page.get_by_role("tab", name=title, selected=True) for view, title in views.items()},
        "query/a%2Fb%20c/chart?from=2026-01-01T10%3A00%3A02&to=2026-01-01T11%3A00%3A00": page.get_by_role("form", name="Time").get_by_text(
            "1 solution"
        ),
        "query/none": page.get_by_text("There is no query none on this server"),
        "query/a%2Fb%20c?solution=0000000000000000-00000001": page.get_by_role("alert").filter(has_text="not kept any more"),
        "stream/none": page.get_by_text("There is no stream none."),
    }
    for address, shown in addresses.items():
        page.evaluate("localStorage.clear(), sessionStorage.clear()")
        page.goto("about:blank")
        page.goto(f"{url}/#/{address}")
        expect(shown).to_be_visible()
        if "00001" not in address:
            assert page.url == f"{url}/#/{address}"
        for width in (390, 1024, 1440):
            assert find_overlaps(page, width) == [], (address, width)
        if is_full():
            assert find_violations(page) == [], address


def test_partial_matches_are_shown_and_their_operands_are_registered(page: Page, client: Client) -> None:
    chain = f"PREFIX : <{EX}> SELECT * FROM STREAM <steps> WHERE {{ {{ ?s :a ?x }} SEQ {{ ?s :b ?y }} SEQ {{ ?s :c ?z }} }}"
    client.register("steps", chain)
    client.send("steps", "\n".join(f'{{"s":"<{EX}p>","p":"<{EX}{name}>","o":"\\"1\\"","at":"{moment(k)}"}}' for k, name in enumerate("ab")))
    page.get_by_role("navigation").get_by_role("link", name="steps").first.click()
    page.get_by_role("tab", name="Partial matches").click()
    rows = page.get_by_role("region", name="Partial matches").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("2 of 3 reached")
    expect(rows.nth(1)).to_contain_text("?s :a ?x \N{MIDDLE DOT} ?s :b ?y")
    page.get_by_role("button", name="Notify at 2 of 3").click()
    page.get_by_role("region", name="Partial matches").get_by_role("button", name="steps~2").click()
    expect(work.tab(page, "steps~2")).to_be_visible()
    assert sorted(query["name"] for query in client.queries()) == ["steps", "steps~2"]
    client.drop("steps")
    assert client.queries() == []


def test_programs_and_static_rules_have_their_own_colours(page: Page, client: Client) -> None:
    begin(page, "colours", "CONSTRUCT { ?s :a ?o } INTO BACKGROUND :g WHERE { ?s :b ?o }")
    word = page.locator(".cm-line span", has_text=re.compile("^BACKGROUND$"))
    expect(word).to_have_class(page.locator(".cm-line span", has_text=re.compile("^INTO$")).get_attribute("class") or "")
    work.write(page, "#!etalis recent\nrise(X) <- price(X) seq price(Y) where X < Y. % why")
    word = page.locator(".cm-line span", has_text=re.compile("^seq$"))
    expect(word).to_have_class(page.locator(".cm-line span", has_text=re.compile("^where$")).get_attribute("class") or "")
    expect(page.locator(".cm-line span", has_text=re.compile("^% why$"))).to_be_visible()

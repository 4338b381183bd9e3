"""Tabs: each has a name and a view of its own, and says where its name is that of another query."""

import re
import subprocess

import pytest
from playwright.sync_api import Page, expect

from epsparql.client import Client
from tests.browser import at_work as work
from tests.browser.test_limits import SECONDS, send
from tests.server.conftest import EX, moment

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
    expect(page.get_by_role("navigation").get_by_role("button", name="alert-2")).to_be_visible()
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
    page.get_by_role("navigation").get_by_role("button", name="alert").first.click()
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
    page.get_by_role("navigation").get_by_role("button", name="alert").first.click()
    page.get_by_label("Policy").select_option("recent")
    page.get_by_label("Default graph").select_option("unnamed")
    expect(page.get_by_role("status").filter(has_text="another policy and default graph")).to_be_visible()
    page.get_by_role("button", name="Replace").click()
    page.get_by_role("button", name="Replace, and start again?").click()
    expect(page.locator(".results .doubt")).to_have_count(0)
    assert client.query("alert")["policy"] == "recent"


def test_what_is_written_in_place_of_a_query_that_has_ended_is_judged(page: Page, client: Client) -> None:
    client.register("whether", SECONDS.replace("SELECT ?s ?v", "ASK"))
    send(client, 1, 2)
    page.get_by_role("navigation").get_by_role("button", name="whether").click()
    expect(page.locator(".verdict")).to_contain_text("completed")
    work.write(page, SECONDS.replace("WHERE", "WHER"))
    expect(page.locator(".verdict")).to_contain_text("1:")
    expect(page.locator(".verdict")).not_to_contain_text("completed")


def test_a_query_says_for_which_stream_it_waits(page: Page, client: Client) -> None:
    """Through a rule as well; what the page proposes to send can be sent."""
    client.register("rule", SECONDS.replace("SELECT ?s ?v", "CONSTRUCT { ?s :value ?v } INTO STREAM <derived>"))
    client.register("alert", SECONDS.replace("<seconds>", "<derived>"))
    page.get_by_role("navigation").get_by_role("button", name="alert").first.click()
    expect(page.locator(".verdict")).to_contain_text("no faults · nothing was sent to <seconds> yet")
    expect(page.locator(".empty")).to_contain_text("alert waits for the first event on <seconds>")
    done = subprocess.run(["bash", "-c", page.locator(".empty pre").inner_text()], capture_output=True, text=True, timeout=60, check=True)
    assert '"accepted":1' in done.stdout
    expect(page.locator(".verdict")).not_to_contain_text("nothing was sent")
    expect(page.locator(".empty")).to_contain_text("alert reads <derived> and has found nothing yet")
    send(client, 1)
    expect(page.locator("tr[data-id]")).to_have_count(1)
    assert client.stream("seconds")["late"] == 0


def test_the_page_says_why_a_query_finds_nothing(page: Page, client: Client) -> None:
    client.register("silent", SECONDS.replace("?s :value ?v", "?s :value ?v FILTER(?v > 900000)"))
    send(client, 1)
    page.get_by_role("navigation").get_by_role("button", name="silent").first.click()
    panel = page.get_by_role("region", name="Why nothing?")
    panel.get_by_role("button", name="Why nothing?").click()
    expect(panel.get_by_role("status")).to_contain_text("?v was compared with a number once and was a text each time")
    expect(panel.locator("tr.silent")).to_contain_text("FILTER ?v > 900000")
    expect(panel.get_by_role("status")).to_contain_text("1 event was examined")


def test_partial_matches_are_shown_and_their_operands_are_registered(page: Page, client: Client) -> None:
    chain = f"PREFIX : <{EX}> SELECT * FROM STREAM <steps> WHERE {{ {{ ?s :a ?x }} SEQ {{ ?s :b ?y }} SEQ {{ ?s :c ?z }} }}"
    client.register("steps", chain)
    client.send("steps", "\n".join(f'{{"s":"<{EX}p>","p":"<{EX}{name}>","o":"\\"1\\"","at":"{moment(k)}"}}' for k, name in enumerate("ab")))
    page.get_by_role("navigation").get_by_role("button", name="steps").first.click()
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

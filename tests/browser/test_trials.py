"""The console's page of trials: a text is tried on the past beside a query that runs, and then promoted or discarded."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from epsparql.client import Client
from tests.browser import at_work as work
from tests.browser.test_access import find_violations
from tests.browser.test_pages import WIDTHS, go
from tests.server.conftest import EX, event, values

pytestmark = pytest.mark.slow
LAST = 1103
"""Pairs of consecutive seconds begin at the seconds 1 to 1102; each text leaves one of them out, so both find 1,100,
which take two pages.
"""


def pairs(stream: str, without: int, columns: str = "?v ?w") -> str:
    """Return a query for the values of consecutive seconds, but not for those after the second `without`."""
    pattern = f"{{ {{ {{ ?s :value ?v }} SEQ {{ ?s :value ?w }} }} WITHIN 'PT1S' FILTER(?v != '{without}') }}"
    return f"PREFIX : <{EX}> SELECT {columns} FROM STREAM <{stream}> WHERE {pattern}"


def send(client: Client, stream: str, last: int) -> None:
    client.send(stream, "\n".join(event(second) for second in range(1, last + 1)))


def start(page: Page) -> Locator:
    """Start a trial as the form proposes it, and return its page."""
    page.get_by_role("button", name="Try on the past").click()
    page.get_by_role("button", name="Start the trial").click()
    found = page.get_by_role("article", name="Trial", exact=True)
    expect(found).to_be_visible()
    return found


def text_of(client: Client, name: str) -> str:
    text: str = client.query(name)["query"]
    return text


def test_a_text_is_tried_and_takes_the_place_of_the_query(page: Page, client: Client) -> None:
    client.register("alarm", pairs("tried", without=7))
    send(client, "tried", LAST)
    go(page, "Trials")
    expect(page.get_by_text("None yet.", exact=True)).to_be_visible()
    go(page, "alarm")
    changed = pairs("tried", without=9)
    work.write(page, changed)
    trial = start(page)
    expect(trial.get_by_role("button", name="Cancel")).to_be_visible()
    told = trial.get_by_role("status").filter(
        has_text="The new text finds 1 solution that alarm does not, and misses 1 that alarm finds. 1\u202f100 are the same."
    )
    expect(told).to_be_visible()
    rows, page_of = trial.locator("tr[data-id]"), trial.locator(".paging").get_by_role("status")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("only new")
    expect(rows.last).to_contain_text("only old")
    expect(page_of).to_have_text("1 to 2 of 2 solutions")
    page.reload()  # the address has the trial
    expect(told).to_be_visible()
    trial.get_by_role("checkbox", name="both").check()
    expect(page_of).to_have_text("1 to 1\u202f000 of 1\u202f102 solutions")
    expect(trial.locator(".plots polyline")).to_have_count(3)
    assert len(set(trial.locator(".plots polyline").evaluate_all("(lines) => lines.map((line) => line.getAttribute('stroke-dasharray'))"))) == 3
    expect(trial.get_by_role("application", name=re.compile("^1.000 solutions as intervals"))).to_be_visible()
    trial.get_by_role("button", name="Later").click()
    expect(page_of).to_have_text("1\u202f001 to 1\u202f102 of 1\u202f102 solutions")
    trial.get_by_role("checkbox", name="only new").uncheck()
    expect(page_of).to_have_text("1 to 1\u202f000 of 1\u202f101 solutions")
    trial.get_by_role("region", name="Solutions, the earliest first").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("complementary", name="The chosen solution")).to_contain_text("found by")
    assert text_of(client, "alarm") == pairs("tried", without=7)
    trial.get_by_role("button", name="Promote").click()
    expect(page.get_by_role("region", name="Versions of the query").locator("tbody tr")).to_have_count(2)
    assert text_of(client, "alarm") == changed
    go(page, "Trials")
    page.get_by_role("region", name="Trials, the newest first").get_by_role("link", name="alarm", exact=True).click()
    expect(trial.get_by_text("alarm has this text now.")).to_be_visible()
    expect(trial.get_by_role("button", name="Promote")).to_have_count(0)
    assert_accessible(page)
    page.get_by_role("button", name="Discard the trial of alarm").click()
    expect(page.get_by_text("None yet.", exact=True)).to_be_visible()
    assert client.trials() == []


def assert_accessible(page: Page) -> None:
    """Check a trial's page, and then that of all trials, at three widths, the last one in both themes."""
    for shown in ("Trial", "Trials"):
        expect(page.get_by_role("article", name=shown, exact=True)).to_be_visible()
        for width, scheme in zip((*WIDTHS, WIDTHS[-1]), ("light", "light", "light", "dark"), strict=True):
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
            assert page.evaluate("document.documentElement.scrollWidth") == width, (shown, width)
            assert find_violations(page, scheme) == [], (shown, width, scheme)
        if shown == "Trial":
            page.get_by_role("link", name="All trials").click()


def test_a_trial_is_cancelled_and_what_cannot_be_tried_is_told(page: Page, client: Client) -> None:
    send(client, "waits", 3)
    before = client.start_trial(values("waits"))["id"]  # one runs at a time
    go(page, "Trials")
    expect(page.get_by_text("A text from the editor is tried.")).to_be_visible()
    page.get_by_role("button", name="write a new one").click()
    work.write(page, values("waits").replace("?v }", "}"))
    page.get_by_role("button", name="Try on the past").click()
    begin = page.get_by_role("button", name="Start the trial")
    begin.click()
    expect(page.get_by_role("alert")).to_contain_text("line 1, column")
    page.get_by_role("button", name="Go to the text").click()
    work.write(page, values("waits"))
    page.get_by_role("button", name="Try on the past").click()
    page.get_by_role("combobox", name="over").select_option("times")
    page.get_by_label("From, UTC").fill("2026-01-01T00:00:02")
    page.get_by_label("To, UTC").fill("2026-01-01T00:00:01")
    begin.click()
    expect(page.get_by_role("alert")).to_contain_text("expected a later place in to")
    page.get_by_role("combobox", name="over").select_option("the last hour")
    expect(page.get_by_text("from 2025-12-31 23:00:03 UTC on")).to_be_visible()
    begin.click()
    trial = page.get_by_role("article", name="Trial", exact=True)
    trial.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status").filter(has_text="the trial is cancelled")).to_be_visible()
    assert [each["id"] for each in client.trials()] == [before]
    listed = page.get_by_role("region", name="Trials, the newest first").locator("tbody tr")
    expect(listed).to_have_count(1)
    listed.get_by_role("link", name=re.compile("^SELECT")).click()
    expect(trial.get_by_role("status").filter(has_text="The text finds 3 solutions.")).to_be_visible()
    expect(trial.locator("tr[data-id]")).to_have_count(3)
    client.drop_trial(before)
    page.reload()
    expect(trial.get_by_role("alert")).to_contain_text("There is no such trial")


def test_a_text_with_other_columns_is_promoted_when_asked_twice(page: Page, client: Client) -> None:
    client.register("columns", pairs("columns", without=1))
    go(page, "columns")
    work.write(page, pairs("columns", without=1, columns="?v"))
    page.get_by_role("button", name="Promote").click()
    expect(page.get_by_role("alert")).to_contain_text("the new text has the columns ?v")
    page.get_by_role("button", name="Promote with other columns?").click()
    expect(page.get_by_role("button", name="Promote")).to_have_count(0)
    assert text_of(client, "columns") == pairs("columns", without=1, columns="?v")

"""What the console shows and does on a stream's page: its events as they arrive, and files that are dropped on it."""

import pytest
from playwright.sync_api import Page, expect

from epsparql.client import Client
from tests.server.conftest import event

pytestmark = pytest.mark.slow


def open_stream(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("button", name=name).click()
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()


def test_events_as_they_arrive(page: Page, client: Client) -> None:
    """The newest stands first; what is held stays while others come, and then they are there."""
    client.send("readings", f"{event(1)}\n{event(2)}")
    open_stream(page, "readings")
    rows = page.get_by_role("region", name="Last events, the newest first").locator("tbody tr")
    expect(rows).to_have_count(2)
    client.send("readings", event(0))
    expect(rows.first).to_contain_text("late")
    page.get_by_role("button", name="Hold").click()
    client.send("readings", event(4))
    expect(page.locator(".figures-list")).to_contain_text("4")
    expect(rows).to_have_count(3)
    page.get_by_role("button", name="Hold").click()
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("00:00:04")
    client.finish("readings")
    expect(page.get_by_role("status").filter(has_text="ended")).to_be_visible()

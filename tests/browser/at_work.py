"""This module holds what people do in the console, as steps that tests share."""

import csv
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from epsparql.client import Client

WINTER = Path(__file__).parents[2] / "console" / "data" / "winter.csv"
_ALL_ROWS = """
    async (table) => {
        const ids = new Set();
        for (let top = 0; ; top += 200) {
            table.scrollTop = top;
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            table.querySelectorAll("tr[data-id]").forEach((row) => ids.add(row.dataset.id));
            if (top > table.scrollHeight) break;
        }
        table.scrollTop = 0;
        return [...ids];
    }
"""


def run_example(page: Page, title: str, pace: str = "25\N{MULTIPLICATION SIGN}") -> None:
    """Registered, and its data played; `pace` is a button's name."""
    page.get_by_role("button", name=f"Run {title}").click()
    page.get_by_role("button", name=pace, exact=True).click()


def played(page: Page) -> None:
    """Wait until all the data are sent."""
    expect(page.get_by_role("region", name="Data being played")).to_be_hidden(timeout=60_000)


def write(page: Page, text: str) -> None:
    """Write a text in place of what the editor holds. Brackets are typed as one paste, which closes none of them."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def replace(page: Page) -> None:
    """Drop the query that runs, and start the text in the editor in its place."""
    page.get_by_label("Other ways to run this text").click()
    page.get_by_role("button", name="Replace").click()
    page.get_by_role("button", name="Replace, and start again?").click()


def tab(page: Page, name: str) -> Locator:
    return page.get_by_role("group", name="Queries being worked on").get_by_role("button", name=name, exact=True)


def table(page: Page) -> Locator:
    return page.get_by_role("region", name="Solutions, the newest first")


def ids_on_screen(page: Page) -> list[str]:
    """Return the ids of all rows in order of emission, found by scrolling through the table."""
    found: list[str] = table(page).evaluate(_ALL_ROWS)
    return sorted(found)


def ids_of(client: Client, name: str) -> list[str]:
    return [solution.id for solution in client.solutions(name, limit=100_000)]


def caught_up(page: Page, client: Client, name: str) -> None:
    """Wait until the runner has applied all there is and the page shows all of it."""
    page.wait_for_function("() => !document.querySelector('.counts')?.textContent.includes('behind')")
    count = str(client.query(name)["solutions"])
    expect(table(page).locator("table")).to_have_attribute("aria-rowcount", count)


def rises() -> set[tuple[str, str, str]]:
    """Work out naively from the data what the example "Rising wind" must find: the station and the times of the two
    readings.
    """
    with WINTER.open(newline="", encoding="utf-8") as file:
        readings = [(row["station"], row["at"], float(row["wind_speed"])) for row in csv.DictReader(file) if row["wind_speed"]]
    return {
        (station, early, late)
        for station, early, a in readings
        for other, late, b in readings
        if station == other
        and early < late
        and datetime.fromisoformat(late) - datetime.fromisoformat(early) <= timedelta(hours=3)
        and a > 0
        and b >= a * 1.1
    }


def found(client: Client, name: str) -> set[tuple[str, str, str]]:
    return {
        (str(value(solution.binding, "st")).rpartition("/")[2], solution.start, solution.end) for solution in client.solutions(name, limit=100_000)
    }


def value(binding: Any, variable: str) -> object:
    return binding[variable]["value"]

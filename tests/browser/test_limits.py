"""The console where there is much, where nothing answers, and where something is about to be lost."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from epsparql.client import Client
from tests.browser import at_work as work
from tests.server.conftest import serving
from tests.soak import is_full

pytestmark = pytest.mark.slow
MANY = 10_000 if is_full() else 2_000
SECONDS = """PREFIX : <http://example.org/> SELECT ?s ?v FROM STREAM <seconds> WHERE { ?s :value ?v }"""
LIVE = "() => document.querySelector('.wire')?.textContent === 'live'"


def send(client: Client, *numbers: int) -> None:
    """At these seconds after ten o'clock, into `seconds`."""
    client.send("seconds", "\n".join(event(number) for number in numbers))


def event(number: int) -> str:
    at = f"2026-01-01T{10 + number // 3600}:{number // 60 % 60:02}:{number % 60:02}Z"
    return json.dumps({"s": "<http://example.org/s>", "p": "<http://example.org/value>", "o": f'"{number}"', "at": at})


def test_thousands_of_solutions(page: Page, client: Client) -> None:
    """All of them can be scrolled to, but few are in the page at any time."""
    client.register("seconds", SECONDS)
    for first in range(0, MANY, 1000):
        send(client, *range(first, first + 1000))
    page.get_by_role("navigation").get_by_role("link", name="seconds").first.click()
    work.caught_up(page, client, "seconds")
    assert page.locator("tr[data-id]").count() < 100
    work.table(page).evaluate("table => table.scrollTop = table.scrollHeight")
    expect(page.locator("tr[data-id]").last).to_contain_text("10:00:00")


def test_a_hundred_queries(page: Page, client: Client) -> None:
    for number in range(100):
        client.register(f"alert {number}", SECONDS)
    found = page.get_by_role("region", name="Queries").get_by_role("link")
    expect(found).to_have_count(100)
    expect(page.get_by_role("link", name="Background")).to_be_in_viewport()
    page.get_by_role("searchbox", name="Find a query or stream").fill("T 42")
    expect(found).to_have_count(1)
    found.click()
    expect(work.tab(page, "alert 42")).to_be_visible()
    page.get_by_role("searchbox").press("Escape")
    expect(found).to_have_count(100)


def test_while_the_server_does_not_answer(page: Page, context: BrowserContext, client: Client) -> None:
    """Told at once; what was found meanwhile is there afterwards, without gap or repeat."""
    client.register("seconds", SECONDS)
    send(client, 1, 2, 3)
    page.get_by_role("navigation").get_by_role("link", name="seconds").first.click()
    work.caught_up(page, client, "seconds")
    context.set_offline(True)
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    work.write(page, SECONDS.replace(":value", ":other"))
    expect(page.locator(".verdict")).to_contain_text("Not checked yet")
    send(client, 4, 5)
    context.set_offline(False)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".verdict")).to_contain_text("has never carried the predicate")
    work.caught_up(page, client, "seconds")
    assert work.ids_on_screen(page) == work.ids_of(client, "seconds")


def test_one_subscriber_too_many_waits_for_its_turn(context: BrowserContext, tmp_path: Path) -> None:
    with serving(tmp_path / "data", max_subscribers=1) as url:
        client = Client(url)
        client.register("seconds", SECONDS)
        send(client, 1)
        pages = [context.new_page(), context.new_page()]
        for page in pages:
            page.goto(f"{url}/")
            page.get_by_role("navigation").get_by_role("link", name="seconds").first.click()
            expect(page.locator(".wire")).to_have_text("live" if page is pages[0] else "waiting")
        pages[0].close()
        pages[1].wait_for_function(LIVE)
        expect(pages[1].locator("tr[data-id]")).to_have_count(1)
        pages[1].close()


def test_the_keys_that_run_promote_and_ask_before_columns_change(page: Page, client: Client) -> None:
    """Solutions stay; only when the text has other columns, the keys are to be pressed twice."""
    client.register("seconds", SECONDS)
    send(client, 1)
    registered = client.query("seconds")["registered"]
    page.get_by_role("navigation").get_by_role("link", name="seconds").first.click()
    work.caught_up(page, client, "seconds")
    for text, asked in ((SECONDS.replace("}", " FILTER(?v != '7') }"), 1), (SECONDS.replace("?s ?v FROM", "?v FROM"), 2)):
        work.write(page, text)
        for again in range(asked):
            page.keyboard.press("Control+Enter")
            if again + 1 < asked:
                expect(page.get_by_role("button", name="Promote with other columns?")).to_be_visible()
        expect(page.get_by_role("button", name="Running")).to_be_visible()
        found = client.query("seconds")
        assert (found["query"], found["registered"], found["solutions"]) == (text, registered, 1)


def test_a_question_that_was_answered_can_be_asked_again(page: Page, client: Client) -> None:
    client.register("whether", SECONDS.replace("SELECT ?s ?v", "ASK"))
    send(client, 1, 2)
    page.get_by_role("navigation").get_by_role("link", name="whether").click()
    page.get_by_role("button", name="Run again").click()
    page.get_by_role("button", name="Replace, and start again?").click()
    expect(page.get_by_role("button", name="Running")).to_be_visible()
    send(client, 3, 4)
    expect(page.get_by_role("button", name="Run again")).to_be_visible()


def test_solutions_are_saved_as_a_file(page: Page, client: Client) -> None:
    client.register("seconds", SECONDS)
    send(client, *range(5))
    page.get_by_role("navigation").get_by_role("link", name="seconds").first.click()
    work.caught_up(page, client, "seconds")
    page.get_by_text("Download").click()
    with page.expect_download() as saving:
        page.get_by_role("button", name="ndjson").click()
    assert saving.value.suggested_filename == "seconds.ndjson"
    lines = Path(saving.value.path()).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == work.ids_of(client, "seconds")


def test_a_stream_is_set_up_and_forgotten(page: Page, client: Client) -> None:
    client.create_stream("hall", max_delay="PT5S", description="a hall")
    page.get_by_role("link", name="hall").click()
    delay = page.get_by_label("max_delay")
    expect(delay).to_have_value("5 s")
    delay.fill("soon")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("max_delay")
    delay.fill("1 min")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    assert (client.stream("hall")["max_delay"], client.stream("hall")["description"]) == ("PT60S", "a hall")
    page.get_by_role("button", name="Delete").click()
    assert client.stream("hall")
    page.get_by_role("button", name="Really delete?").click()
    expect(page.get_by_role("link", name="hall")).to_have_count(0)


def test_an_example_describes_its_stream_and_keeps_how_it_was_set_up(page: Page, client: Client) -> None:
    client.create_stream("winter", max_delay="PT5S")
    work.run_example(page, "Rising wind")
    expect(page.get_by_role("region", name="Data being played")).to_be_visible()
    found = client.stream("winter")
    assert (found["max_delay"], "New York" in found["description"]) == ("PT5S", True)


def test_a_stream_that_is_only_read_takes_events_from_its_page(page: Page, client: Client) -> None:
    client.register("alert", SECONDS)
    page.get_by_role("region", name="Streams").get_by_role("link", name="seconds").click()
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="1 accepted")).to_be_visible()
    assert client.query("alert")["unfed"] == []


def test_a_query_that_waits_for_time_names_the_setting_that_lets_it_pass(page: Page, client: Client) -> None:
    client.register(
        "still", 'SELECT ?s FROM STREAM <hall> { { ?s <http://example.org/value> ?v } WITHOUT { ?s <http://example.org/value> ?w } FOR "PT1H" }'
    )
    page.get_by_role("navigation").get_by_role("link", name="still").first.click()
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text("if the events of 'hall' carry times, no time passes here without new events: set the stream's idle_timeout")
    page.get_by_role("link", name="hall").click()
    page.get_by_label("idle_timeout").fill("PT1M")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    page.get_by_role("navigation").get_by_role("link", name="still").first.click()
    expect(verdict).to_contain_text("no faults")

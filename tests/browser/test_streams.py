"""These tests check the console's page of a stream: its events as they arrive, and files that are dropped on it."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from epsparql.client import Client
from tests.browser import at_work as work
from tests.server.conftest import EX, event, moment

pytestmark = pytest.mark.slow


def open_stream(page: Page, name: str) -> None:
    page.get_by_role("navigation").get_by_role("link", name=name).click()
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


def test_names_of_the_stream_complete_the_query(page: Page, client: Client) -> None:
    """Predicates where one stands, classes after `a`, and whole IRIs where no prefix is declared for them."""
    typed = f'{{"s":"<{EX}s>","p":"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>","o":"<{EX}Sensor>","at":"{moment(3)}"}}'
    client.send("readings", f"{event(1)}\n{event(2)}\n{typed}")
    page.keyboard.press("Alt+n")
    offered = page.locator(".cm-tooltip-autocomplete li")
    for written, label, completed in (
        (f"PREFIX : <{EX}> SELECT * FROM STREAM <readings> WHERE {{ ?s :va", ":value", ":value"),
        (f"PREFIX e: <{EX}> SELECT * FROM STREAM <readings> WHERE {{ ?s a e:Se", "e:Sensor", "e:Sensor"),
        ("SELECT * FROM STREAM <readings> WHERE { ?s :va", ":value", f"<{EX}value>"),
        ("SELECT * FROM STREAM <readings> WHERE { ?s <http", f"<{EX}value>", f"<{EX}value>"),
    ):
        work.write(page, written)
        page.keyboard.press("Control+Space")
        offered.filter(has_text=label).first.click()
        expect(page.locator(".cm-content")).to_contain_text(written[: written.rindex(" ") + 1] + completed)


ROWS = "ts,sensor,temp\n2026-01-01T00:00:00Z,a,1.5\n2026-01-01T00:00:01Z,b,cold\n2026-01-01T00:00:02Z,c,3.5\n"
DROP = """(element, [name, text]) => {
    const dropped = new DataTransfer();
    dropped.items.add(new File([text], name));
    element.dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""


OUTSIDE = Path(__file__).parents[3] / "shared" / "conformance" / "outside"
SEND = "Send the events"


def drop(page: Page, name: str, text: str) -> Locator:
    """Drop a file on the page's place for files, and return that place."""
    place = page.get_by_role("region", name="Send a file")
    place.locator(".drop").evaluate(DROP, [name, text])
    return place


def first_rows(place: Locator) -> Locator:
    return place.get_by_role("list", name="The first rows as triples")


def test_a_file_that_is_dropped_on_a_stream(page: Page, client: Client) -> None:
    """Its mapping is proposed and may be changed; a row that does not map is told with its field, or set aside and
    shown.
    """
    client.create_stream("readings", description="of the cellar", max_delay="PT5S")
    open_stream(page, "readings")
    place = drop(page, "readings.csv", ROWS)
    expect(place).to_contain_text("time is 'ts', read as iso")
    place.get_by_text("The mapping as JSON").click()
    mapping = page.get_by_role("textbox", name="Mapping")
    proposed = json.loads(mapping.input_value())
    proposed["properties"]["temp"] = {"iri": ":temperature", "datatype": "xsd:decimal"}
    mapping.fill(json.dumps(proposed)[:-1])
    place.get_by_role("button", name=SEND).click()
    expect(place.get_by_role("alert")).to_contain_text("the mapping is no JSON")
    mapping.fill(json.dumps(proposed))
    place.get_by_role("button", name=SEND).click()
    expect(place.get_by_role("alert")).to_contain_text("row 2, field temp: 'cold' is no xsd:decimal; expected rows that fit")
    page.get_by_role("combobox", name="Rows that do not map").select_option("dead_letter")
    place.get_by_role("button", name=SEND).click()
    expect(place.get_by_role("status")).to_have_text("readings.csv: 2 events accepted, 1 row did not map")
    expect(place).to_contain_text("row 2, field temp: 'cold' is no xsd:decimal. All are in the stream's dead-letter feed")
    expect(page.get_by_role("region", name="Rows that did not map").locator("tbody tr")).to_contain_text("'cold' is no xsd:decimal")
    expect(page.get_by_role("region", name="Last events, the newest first").locator("tbody tr")).to_have_count(2)
    page.get_by_role("textbox", name="description").fill("of the attic")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("of the attic", exact=True)).to_be_visible()
    found = client.stream("readings")
    assert (found["mapping"], found["on_error"], found["max_delay"]) == (proposed, "dead_letter", "PT5S")
    drop(page, "readings.xls", ROWS)
    expect(place.get_by_role("alert")).to_contain_text("readings.xls cannot be sent: choose a file whose name ends in .csv, .tsv, ")
    drop(page, "again.csv", ROWS)
    expect(place).to_contain_text("The stream's own mapping is used.")
    place.get_by_role("button", name="Propose another").click()
    expect(first_rows(place)).to_contain_text("<sensor/a>")


def test_each_guess_has_its_alternative(page: Page, client: Client) -> None:
    """Each choice is asked of the server anew: day and month, the zone, the subject and what values are.

    Nothing of a file is markup.
    """
    page.get_by_role("link", name="Send a file", exact=True).click()
    place = drop(page, "ais.csv", (OUTSIDE / "05-ais.csv").read_text())
    expect(place.get_by_role("alert")).to_contain_text("is 2018-01-04 with the day first, and 2018-04-01 with the month first")
    expect(place.get_by_role("button", name=SEND)).to_have_count(0)
    place.get_by_role("button", name="the month first: 2018-04-01").click()
    expect(first_rows(place)).to_contain_text('<MMSI/219000001> :SOG "10.4"^^xsd:decimal .  # 2018-04-01T00:00:01Z')
    place.get_by_label("day and month").select_option("the day first")
    expect(first_rows(place)).to_contain_text("# 2018-01-04T00:00:01Z")
    place.get_by_label("time zone").fill("Mars/Phobos")
    place.get_by_label("time zone").press("Enter")
    expect(place.get_by_role("alert")).to_contain_text("'Mars/Phobos' is no time zone")
    place.get_by_label("time zone").fill("Europe/Vienna")
    place.get_by_label("time zone").press("Tab")
    expect(first_rows(place)).to_contain_text("# 2018-01-03T23:00:01Z")
    place.get_by_label("subject").select_option("a blank node for each row")
    expect(first_rows(place)).to_contain_text(':MMSI "219000001"^^xsd:integer .  # 2018-01-03T23:00:01Z')
    for name, triple in (
        ("de.csv", '<sensor/A> :temp "21.5"^^xsd:decimal .'),
        ("us.csv", '<Sensor/A> :Value "21.5"^^xsd:decimal .'),
        ("15-collide.json", '<id/p1> :update_state "idle" .'),
        ("msg.json", '<eui/A1> :temperature_v "21.5"^^xsd:decimal .'),
    ):
        drop(page, name, (OUTSIDE / name).read_text())
        readings = place.get_by_role("button", name="the month first")
        expect(readings.or_(first_rows(place))).to_be_visible()
        if readings.is_visible():
            readings.click()
        expect(first_rows(place)).to_contain_text(triple)
    drop(page, "app.log", "2026-03-01 08:00:00 INFO <img src=x onerror=window.violations.push(1)>\n")
    expect(first_rows(place)).to_contain_text(':message "<img src=x onerror=window.violations.push(1)>"')
    drop(page, "events.ndjson", (OUTSIDE / "10-path.ndjson").read_text())
    place.get_by_label("to the new stream").fill("paths")
    place.get_by_role("button", name=SEND).click()
    expect(place.get_by_role("status")).to_have_text("events.ndjson: 4 events accepted")
    place.get_by_role("link", name="Open the stream paths").click()
    expect(page.get_by_role("heading", name="paths", exact=True)).to_be_visible()
    assert client.stream("paths")["accepted"] == 4


def test_a_large_file_is_sent_in_parts(page: Page, client: Client) -> None:
    """A part whose answer is awaited when the sending is cancelled is accepted once, also if it is sent again;
    messages count the file's rows.
    """
    count = 30_000
    rows = [f"2026-01-01T{k // 3600:02}:{k // 60 % 60:02}:{k % 60:02}Z,sensor {k % 7},{k}.5 is the value of this row" for k in range(count)]
    rows[-1] = "never,sensor 1,x"
    page.get_by_role("link", name="Send a file", exact=True).click()
    held, sent = list[Route](), list[str]()

    def hold(route: Route) -> None:
        sent.append(route.request.headers["idempotency-key"])
        if len(sent) == 2:
            held.append(route)
        else:
            route.continue_()

    page.route("**/streams/large/events", hold)
    place = drop(page, "large.tsv", "time,sensor,value\n".replace(",", "\t") + "\n".join(rows[:-1]).replace(",", "\t"))
    page.get_by_role("combobox", name="Rows that do not map").select_option("skip")
    place.get_by_role("button", name=SEND).click()
    expect(place.get_by_role("progressbar")).to_be_visible()
    page.wait_for_function("() => document.querySelector('progress')?.value > 0")
    place.get_by_role("button", name="Cancel").click()
    expect(place.get_by_role("status")).to_contain_text("The rest is not sent.")
    accepted = client.stream("large")["accepted"]
    assert 0 < accepted < count
    place.get_by_role("button", name="Send the rest").click()
    expect(place.get_by_role("status")).to_have_text("large.tsv: 29\u202f999 events accepted")
    assert client.stream("large")["accepted"] == count - 1
    assert sent[2] == sent[1] != sent[0]

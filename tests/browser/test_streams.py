"""These tests check the console's page of a stream: its events as they arrive, and files that are dropped on it."""

import json

import pytest
from playwright.sync_api import Page, expect

from epsparql.client import Client
from tests.browser import at_work as work
from tests.server.conftest import EX, event, moment

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


def test_a_file_that_is_dropped_on_a_stream(page: Page, client: Client) -> None:
    """Its mapping is proposed and may be changed; a row that does not map is told with its field, or set aside and shown."""
    client.create_stream("readings", description="of the cellar", max_delay="PT5S")
    open_stream(page, "readings")
    place = page.get_by_role("region", name="Send a file")
    place.locator(".drop").evaluate(DROP, ["readings.csv", ROWS])
    mapping = page.get_by_role("textbox", name="Mapping")
    expect(place).to_contain_text("time is 'ts', read as iso")
    proposed = json.loads(mapping.input_value())
    proposed["properties"]["temp"] = {"iri": ":temperature", "datatype": "xsd:decimal"}
    mapping.fill(json.dumps(proposed)[:-1])
    place.get_by_role("button", name="Set the mapping and send").click()
    expect(place.get_by_role("alert")).to_contain_text("the mapping is no JSON")
    mapping.fill(json.dumps(proposed))
    place.get_by_role("button", name="Set the mapping and send").click()
    expect(place.get_by_role("alert")).to_contain_text("row 2")
    expect(place.get_by_role("alert")).to_contain_text("temp")
    page.get_by_role("combobox", name="Rows that do not map").select_option("dead_letter")
    place.get_by_role("button", name="Set the mapping and send").click()
    expect(page.get_by_role("status").filter(has_text="readings.csv: 2 events accepted, 1 row did not map")).to_be_visible()
    expect(page.get_by_role("region", name="Rows that did not map").locator("tbody tr")).to_contain_text("'cold' is no xsd:decimal")
    expect(page.get_by_role("region", name="Last events, the newest first").locator("tbody tr")).to_have_count(2)
    page.get_by_role("textbox", name="description").fill("of the attic")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("of the attic", exact=True)).to_be_visible()
    found = client.stream("readings")
    assert (found["mapping"], found["on_error"], found["max_delay"]) == (proposed, "dead_letter", "PT5S")
    place.locator(".drop").evaluate(DROP, ["readings.txt", ROWS])
    expect(place.get_by_role("alert")).to_contain_text("readings.txt has no mapping")

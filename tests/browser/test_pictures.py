"""These tests check the chart and the map of a query's solutions, and that no page asks the server in vain."""

import json
import re
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, Page, expect

from epsparql.client import Client
from tests.browser.test_access import NARROW, find_violations
from tests.server.conftest import EX, moment

pytestmark = pytest.mark.slow
XSD = "http://www.w3.org/2001/XMLSchema#"
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
HALL = f"PREFIX : <{EX}> SELECT ?room ?temp ?humid FROM STREAM <hall> WHERE {{ {{ ?room :temp ?temp }} EQUALS {{ ?room :humid ?humid }} }}"
SHIPS = f"PREFIX : <{EX}> SELECT ?ship ?at FROM STREAM <sea> WHERE {{ ?ship :at ?at }}"
BUOYS = f"PREFIX : <{EX}> SELECT ?buoy ?lat ?long FROM STREAM <buoys> WHERE {{ {{ ?buoy :north ?lat }} EQUALS {{ ?buoy :east ?long }} }}"
SIGHTINGS = f"PREFIX : <{EX}> CONSTRUCT {{ ?ship :seen ?at }} FROM STREAM <sea> WHERE {{ ?ship :at ?at }}"


def event(subject: str, predicate: str, value: object, second: int, datatype: str = f"{XSD}decimal") -> str:
    return json.dumps({"s": f"<{EX}{subject}>", "p": f"<{EX}{predicate}>", "o": f'"{value}"^^<{datatype}>', "at": moment(second)})


def send_rooms(client: Client, *seconds: int) -> None:
    """Each second, the cellar is as warm as the second's number, and the attic ten degrees warmer."""
    rooms = (("cellar", 0), ("attic", 10))
    client.send("hall", "\n".join(event(room, name, at + more, at) for at in seconds for room, more in rooms for name in ("temp", "humid")))


def open_pane(page: Page, query: str, pane: str) -> None:
    if page.get_by_role("button", name="Queries and streams").is_visible():
        page.get_by_role("button", name="Queries and streams").click()
    page.get_by_role("navigation").get_by_role("link", name=query).first.click()
    page.get_by_role("tab", name=pane, exact=True).click()


def plot(page: Page, number: int = 0) -> Locator:
    return page.locator(".plots svg").nth(number)


def heights(plot: Locator, group: str) -> list[float]:
    """Return how high the points of a line are, in pixels from the top."""
    points = plot.locator(f'g[data-group="{EX}{group}"] polyline').get_attribute("points") or ""
    return [float(point.partition(",")[2]) for point in points.split()]


def test_values_over_time_as_solutions_come(page: Page, client: Client) -> None:
    """A line for each room, which grows; the numbers rise, so the line does."""
    client.register("rooms", HALL)
    send_rooms(client, 0, 1, 2)
    open_pane(page, "rooms", "Chart")
    expect(page.locator(".plots svg")).to_have_count(2)
    expect(plot(page).locator("circle")).to_have_count(6)
    found = heights(plot(page), "cellar")
    assert len(found) == 3
    assert all(late < early for early, late in pairwise(found))
    assert all(attic < cellar for attic, cellar in zip(heights(plot(page), "attic"), found, strict=True))
    send_rooms(client, 3)
    expect(plot(page).locator("circle")).to_have_count(8)
    page.get_by_role("checkbox", name="?humid").uncheck()
    expect(page.locator(".plots svg")).to_have_count(1)
    page.get_by_role("combobox", name="lines by").select_option("")
    expect(plot(page).locator("polyline")).to_have_count(1)
    page.reload()  # what was chosen stays with the tab
    expect(plot(page).locator("polyline")).to_have_count(1)
    expect(page.locator(".plots svg")).to_have_count(1)


def test_values_of_a_past_range(page: Page, client: Client) -> None:
    """The range holds still while solutions come, and its ends belong to it."""
    client.register("rooms", HALL)
    send_rooms(client, *range(10))
    open_pane(page, "rooms", "Chart")
    expect(plot(page).locator("circle")).to_have_count(20)
    page.get_by_role("combobox", name="time", exact=True).select_option("past")
    page.get_by_label("From, UTC").fill("2026-01-01T00:00:02")
    page.get_by_label("To, UTC").fill("2026-01-01T00:00:04")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("form", name="Time")).to_contain_text("6 solutions")
    expect(plot(page).locator("circle")).to_have_count(6)
    send_rooms(client, 10)
    expect(page.locator(".counts")).to_contain_text("22 solutions")
    expect(plot(page).locator("circle")).to_have_count(6)
    page.get_by_label("To, UTC").fill("2026-01-01T00:00:00")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("alert")).to_contain_text("from is later than to")
    page.get_by_label("From, UTC").fill("2020-01-01T00:00:00")
    page.get_by_label("To, UTC").fill("2021-01-01T00:00:00")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No solution ends in this range.")).to_be_visible()
    page.get_by_role("combobox", name="time", exact=True).select_option("live")
    expect(plot(page).locator("circle")).to_have_count(22)
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("button", name="Really drop?").click()
    expect(page.locator(".empty")).to_contain_text("to run the query")


def test_solutions_that_end_together_are_one_point_of_the_line(page: Page, client: Client) -> None:
    """The line goes on in time, and a bar shows how far the values of an instant lie apart."""
    client.register("rooms", HALL)
    send_rooms(client, 0, 1, 2)
    open_pane(page, "rooms", "Chart")
    expect(plot(page).locator("path")).to_have_count(0)
    page.get_by_role("combobox", name="lines by").select_option("")
    expect(plot(page).locator("polyline")).to_have_count(1)
    points = (plot(page).locator("polyline").get_attribute("points") or "").split()
    places = [float(point.partition(",")[0]) for point in points]
    assert len(places) == 3
    assert places == sorted(set(places))
    assert (plot(page).locator("path").get_attribute("d") or "").count("M") == 3
    expect(plot(page).locator("circle")).to_have_count(6)


@pytest.mark.parametrize("width", NARROW)
def test_a_chart_without_a_mouse(page: Page, client: Client, width: int) -> None:
    client.register("rooms", HALL)
    send_rooms(client, *range(5))
    page.set_viewport_size({"width": width, "height": 844})
    open_pane(page, "rooms", "Chart")
    picture = page.get_by_role("application", name=re.compile(r"^\?temp and \?humid over time, 20 points"))
    expect(picture).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for control in (page.get_by_role("checkbox", name="?temp"), page.get_by_role("combobox", name="time", exact=True), plot(page)):
        expect(control).to_be_in_viewport(ratio=1)
    page.get_by_role("combobox", name="time", exact=True).focus()
    page.keyboard.press("Tab")
    expect(picture).to_be_focused()
    for key, second, room in (("ArrowRight", 4, "attic"), ("ArrowLeft", 3, "attic"), ("ArrowDown", 3, "cellar"), ("Home", 0, "cellar")):
        page.keyboard.press(key)
        told = page.get_by_role("tooltip")
        expect(told).to_contain_text(f"00:00:0{second}")
        expect(told).to_contain_text(room)
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="The chosen solution")).to_contain_text("cellar")


def test_a_chart_tells_why_it_is_empty(page: Page, client: Client) -> None:
    client.register("texts", HALL)
    client.send("hall", "\n".join(event("cellar", name, "7", 1, f"{XSD}string") for name in ("temp", "humid")))
    open_pane(page, "texts", "Chart")
    expect(page.get_by_text("xsd:decimal(?x)")).to_be_visible()
    page.get_by_role("tab", name="Map").click()
    expect(page.get_by_text("No solution carries coordinates")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def places(page: Page) -> Locator:
    return page.locator("circle[data-place]")


def centre(page: Page, place: str) -> tuple[float, float]:
    mark = page.locator(f'circle[data-place="{place}"]')
    return float(mark.get_attribute("cx") or "nan"), float(mark.get_attribute("cy") or "nan")


def test_points_of_wkt_on_a_map(page: Page, client: Client) -> None:
    """East is right and north is up; EPSG:4326 has its latitude first; a place that is seen again is one mark, and
    the newest is shown.
    """
    client.register("ships", SHIPS)
    client.register("sightings", SIGHTINGS)
    points = (
        ("Ada", "POINT(8 54)"),
        ("Brise", "POINT (9 54)"),
        ("Corona", "<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(55 8)"),
        ("Dora", "LINESTRING(1 2, 3 4)"),
        ("Ada", "POINT(8 54)"),
    )
    client.send("sea", "\n".join(event(ship, "at", point, second, WKT) for second, (ship, point) in enumerate(points)))
    open_pane(page, "ships", "Map")
    expect(places(page)).to_have_count(3)
    expect(page.locator(".foot")).to_contain_text("3 places · 1 solution without coordinates")
    west, east, north = centre(page, "8 54"), centre(page, "9 54"), centre(page, "8 55")
    assert west[0] == north[0] < east[0]
    assert north[1] < west[1] == east[1]
    assert (east[0] - west[0]) / (west[1] - north[1]) == pytest.approx(0.58, abs=0.01)  # the cosine of 54.5 degrees
    expect(page.locator(".graticule text").filter(has_text="54.0°N")).to_have_count(1)
    expect(page.locator(".scale text")).to_contain_text("km")
    page.locator('circle[data-place="8 54"]').hover()
    expect(page.get_by_role("tooltip")).to_contain_text("the newest of 2 here")
    expect(page.get_by_role("tooltip")).to_contain_text("00:00:04")
    page.get_by_role("button", name="Zoom in").click()
    expect(page.locator('circle[data-place="8 54"]')).not_to_have_attribute("cx", str(west[0]))
    page.get_by_role("button", name="All", exact=True).click()
    assert centre(page, "8 54") == west
    open_pane(page, "sightings", "Map")  # the same points, in triples
    expect(places(page)).to_have_count(3)


@pytest.mark.parametrize("width", NARROW)
def test_a_map_of_two_variables_without_a_mouse(page: Page, client: Client, width: int) -> None:
    """The buoys lie on both sides of the date line, and near each other on the map."""
    client.register("buoys", BUOYS)
    for second, (buoy, lat, long) in enumerate((("west", 10, 178), ("east", 11, -178))):
        client.send("buoys", f"{event(buoy, 'north', lat, second)}\n{event(buoy, 'east', long, second)}")
    page.set_viewport_size({"width": width, "height": 844})
    open_pane(page, "buoys", "Map")
    expect(places(page)).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert find_violations(page) == []
    assert centre(page, "178 10")[0] < centre(page, "-178 11")[0]
    for mark in places(page).all():
        expect(mark).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="All", exact=True)).to_be_in_viewport(ratio=1)
    page.get_by_role("combobox", name="time", exact=True).focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("application", name=re.compile("^2 places on a map"))).to_be_focused()
    for key, buoy in (("n", "east"), ("p", "west")):
        page.keyboard.press(key)
        expect(page.get_by_role("tooltip")).to_contain_text(buoy)
    before = centre(page, "178 10")
    page.keyboard.press("ArrowRight")
    expect(page.locator('circle[data-place="178 10"]')).not_to_have_attribute("cx", str(before[0]))
    page.keyboard.press("0")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="The chosen solution")).to_contain_text("west")


# ---------------------------------------------------------------- asking in vain
WATCH = """() => {
    const send = window.fetch;
    window.asked = [];
    window.fetch = (path, ...rest) => {
        window.asked.push([path, Date.now()]);
        return send(path, ...rest);
    };
}"""
HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
    return window.asked.length;
}"""


def asked_for_plan(page: Page) -> list[int]:
    """Return when the plan was asked for, in milliseconds of the page's clock, which tests set forward."""
    found: list[int] = page.evaluate("window.asked.filter(([path]) => path.endsWith('/plan')).map(([, at]) => at)")
    return found


def open_plan(page: Page, client: Client) -> None:
    client.register("rooms", HALL)
    send_rooms(client, 0)
    open_pane(page, "rooms", "Solutions")
    expect(page.locator("tr[data-id]")).to_have_count(2)  # an empty view asks for the plan too
    page.clock.install()
    page.evaluate(WATCH)
    with page.expect_response("**/plan"):
        open_pane(page, "rooms", "Plan")


def test_a_hidden_page_asks_nothing(page: Page, client: Client) -> None:
    open_plan(page, client)
    with page.expect_response("**/plan"):
        page.clock.run_for(2_500)
    before = page.evaluate(HIDE, True)
    page.clock.run_for(20_000)
    assert page.evaluate("window.asked.length") == before
    with page.expect_response("**/plan"):  # at once, and again after two seconds
        page.evaluate(HIDE, False)
    with page.expect_response("**/plan"):
        page.clock.run_for(2_500)


def test_a_plan_that_fails_is_asked_for_ever_more_rarely(page: Page, client: Client) -> None:
    """The pauses double while it fails. Once it comes again, so do those of two seconds."""
    page.route("**/plan", lambda route: route.fulfill(status=500, body="{}"))
    open_plan(page, client)
    for wait_s in (4, 8, 16):
        with page.expect_response("**/plan"):
            page.clock.run_for(wait_s * 1000 + 500)
    gaps_s = [(late - early) / 1000 for early, late in pairwise(asked_for_plan(page))]
    assert [gap >= wait for gap, wait in zip(gaps_s, (4, 8, 16), strict=True)] == [True, True, True], gaps_s
    page.unroute("**/plan")
    for wait_s in (30, 2):
        with page.expect_response("**/plan"):
            page.clock.run_for(wait_s * 1000 + 500)
    expect(page.locator(".step .live").first).to_be_visible()

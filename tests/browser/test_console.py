"""The console as people use it."""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from playwright.sync_api import TimeoutError as NotYet

from epsparql.client import Client
from tests.browser import at_work as work
from tests.browser.test_limits import SECONDS, event, send
from tests.server.conftest import EX, moment, serving
from tests.server.operations.test_security import digest

pytestmark = pytest.mark.slow
WIND = """PREFIX : <http://example.org/weather#>
SELECT ?st ?s FROM STREAM <winter> WHERE { ?st :wind_speed ?s FILTER(?s > 30) }"""


def test_a_fault_is_underlined_and_mended_and_the_query_runs(page: Page, client: Client) -> None:
    page.get_by_role("button", name="New query").first.click()
    work.write(page, WIND.replace("?st :wind_speed", "?st w:wind_speed"))
    fault = page.locator(".cm-lintRange-error")
    expect(fault).to_have_text("w:")
    expect(page.locator(".verdict")).to_contain_text("2:48")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("Correct the fault")
    assert client.queries() == []
    work.write(page, WIND)
    expect(fault).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".verdict")).to_contain_text("no faults")
    page.get_by_role("textbox", name="Name").fill("strong wind")
    page.keyboard.press("Control+Enter")  # from within the field
    expect(page.get_by_role("button", name="Running")).to_be_visible()
    assert [query["name"] for query in client.queries()] == ["strong wind"]
    speed = {"s": "<http://example.org/JFK>", "p": "<http://example.org/weather#wind_speed>"}
    for second, value in enumerate((35, 20, 40)):
        client.send("winter", json.dumps(speed | {"o": f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>', "at": moment(second)}))
    client.finish("winter")
    expect(page.locator("tr[data-id]")).to_have_count(2)
    assert work.ids_on_screen(page) == work.ids_of(client, "strong wind")


def test_rows_and_intervals_are_all_there_after_a_reload_in_the_middle(page: Page, client: Client) -> None:
    work.run_example(page, "Rising wind", "5\N{MULTIPLICATION SIGN}")
    page.wait_for_function("() => document.querySelectorAll('tr[data-id]').length > 5")
    expect(page.get_by_role("application")).to_have_attribute("aria-label", re.compile(r"^[1-9]\d* solutions as intervals"))
    page.reload()  # both the data and the solutions go on where they were
    expect(work.tab(page, "wind")).to_be_visible()
    expect(page.get_by_role("region", name="Data being played")).to_be_visible()
    page.get_by_role("button", name="25\N{MULTIPLICATION SIGN}", exact=True).click()
    work.played(page)
    work.caught_up(page, client, "wind")
    assert work.ids_on_screen(page) == work.ids_of(client, "wind")
    assert work.found(client, "wind") == work.rises()


def test_the_plan_counts_what_waits(page: Page) -> None:
    work.run_example(page, "Tsunami")
    page.wait_for_function("() => document.querySelectorAll('tr[data-id]').length > 0")
    page.get_by_role("tab", name="Plan").click()
    steps = page.locator(".step")
    expect(steps.filter(has_text="SEQ")).to_have_count(4)
    expect(steps.filter(has_text="scan")).not_to_have_count(0)
    expect(steps.filter(has_text="SEQ").locator(".rows").first).to_have_text(re.compile(r"in left [1-9]\d*, right [1-9]"))
    expect(steps.filter(has_text="scan").locator(".live").first).to_have_text(re.compile(r"^[1-9][\d\u202f]* out$"))
    expect(steps.filter(has_text="SELECT").locator(".live")).to_have_count(0)  # the page's own count is of another moment
    expect(steps.filter(has_text="SELECT").locator(".rows").first).to_have_text(re.compile(r"^in [1-9]"))


def test_pause_and_resume(page: Page, client: Client) -> None:
    """A query reads what is sent during its pause when it goes on."""
    client.register("seconds", SECONDS)
    send(client, 1, 2, 3)
    page.get_by_role("navigation").get_by_role("link", name="seconds").first.click()
    work.caught_up(page, client, "seconds")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert client.query("seconds")["state"] == "paused"
    send(client, 4, 5)
    assert len(client.solutions("seconds")) < 5
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    client.finish("seconds")
    expect(page.locator("tr[data-id]")).to_have_count(5)
    assert work.ids_on_screen(page) == work.ids_of(client, "seconds")


def test_zoom_hover_the_way_to_a_solution_and_where_it_came_from(page: Page, client: Client) -> None:
    work.run_example(page, "Blizzard")
    work.played(page)
    work.caught_up(page, client, "blizzard")
    canvas = page.get_by_role("application")
    shown = page.locator(".timeline .bar .figures")
    everything = shown.inner_text()
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.wheel(0, -600)
    expect(shown).not_to_have_text(everything)
    canvas.focus()
    page.keyboard.press("0")
    expect(shown).to_have_text(everything)
    page.keyboard.press("n")
    chosen = page.get_by_role("complementary", name="The chosen solution")
    expect(chosen).to_contain_text("?hours")
    expect(page.locator("tr.chosen")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(chosen).to_be_hidden()
    page.locator("tr[data-id]").first.hover()
    page.locator("tr[data-id]").first.click()
    expect(chosen.locator("li.derived").first).to_contain_text(":settling")
    chosen.get_by_text("by the rule settling-n").first.click()
    expect(chosen.locator("li.occurrence").first).to_contain_text(":wind_speed")
    page.keyboard.press("Escape")
    tooltip = page.get_by_role("tooltip")
    for step in range(20):
        box = canvas.bounding_box()  # which grows when the panel goes
        assert box is not None
        page.mouse.move(box["x"] + box["width"] * 0.6 + step % 2, box["y"] + 50)
        with suppress(NotYet):
            tooltip.wait_for(timeout=500)
            break
    expect(tooltip).to_contain_text(":settling")


def test_completion(page: Page, client: Client) -> None:
    client.create_stream("readings/hall")
    expect(page.get_by_role("link", name="readings/hall")).to_have_count(0)  # shown by its last part
    expect(page.get_by_role("link", name="hall")).to_be_visible()
    page.keyboard.press("Alt+n")
    page.locator(".cm-content").click()
    for typed, label, given in (
        ("PREFIX xs", "xsd:", "xsd: <http://www.w3.org/2001/XMLSchema#>"),
        ("SELECT * FROM STREAM <", "<readings/hall>", "<readings/hall>"),
    ):
        page.keyboard.type(typed)
        page.locator(".cm-tooltip-autocomplete li").filter(has_text=label).click()
        expect(page.locator(".cm-content")).to_contain_text(given)
        page.keyboard.press("Enter")
    page.keyboard.type("WITH")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("WITHOUT")


def test_a_link_opens_what_it_holds_and_runs_nothing(page: Page, context: BrowserContext, url: str, client: Client) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="New query").first.click()
    work.write(page, WIND)
    page.get_by_role("button", name="Share").click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{url}/#")
    other = context.browser.new_context() if context.browser else context  # somebody else, with nothing kept
    there = other.new_page()
    there.goto(link)
    expect(there.locator(".cm-content")).to_contain_text("FILTER(?s > 30)")
    expect(there).to_have_url(f"{url}/#/query/query")  # that of the tab
    assert client.queries() == []
    other.close()


def test_replacing_asks_first(page: Page, client: Client) -> None:
    client.register("alert", WIND)
    page.get_by_role("link", name="alert").first.click()
    work.write(page, WIND.replace("30", "20"))
    expect(page.get_by_role("button", name="Promote")).to_be_visible()
    expect(page.get_by_role("button", name="Replace")).to_be_hidden()  # behind the button that keeps the solutions
    registered = client.query("alert")["registered"]
    work.replace(page)
    expect(page.get_by_role("button", name="Running")).to_be_visible()
    assert client.query("alert")["query"] == WIND.replace("30", "20")
    assert client.query("alert")["registered"] != registered
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("button", name="Really drop?").click()
    expect(page.get_by_role("button", name=re.compile(r"^Run\b"))).to_be_visible()
    assert client.queries() == []


def test_a_query_that_reads_from_the_beginning_finds_what_was_sent_before(page: Page, client: Client) -> None:
    client.send("earlier", "\n".join(map(event, (1, 2, 3))))  # no other test sends to it: the log has what was sent to deleted streams
    client.finish("earlier")
    page.keyboard.press("Alt+n")
    page.keyboard.insert_text(SECONDS.replace("<seconds>", "<earlier>"))
    page.get_by_role("combobox", name="Reads from").select_option("beginning")
    page.keyboard.press("Control+Enter")
    expect(page.locator("tr[data-id]")).to_have_count(3)


def test_events_are_sent_from_the_page_and_faults_in_them_placed(page: Page, client: Client) -> None:
    client.create_stream("hall")
    page.get_by_role("link", name="hall").click()
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="1 accepted")).to_be_visible()
    page.get_by_role("textbox", name="Events", exact=True).fill('{"s":')
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("line 1, column")
    assert client.stream("hall")["accepted"] == 1


def test_late_events_are_shown(page: Page, client: Client) -> None:
    event = {"s": "<http://example.org/s>", "p": "<http://example.org/v>", "o": '"1"'}
    for at in ("2026-01-01T10:00:00Z", "2026-01-01T09:00:00Z"):
        client.send("hall", json.dumps(event | {"at": at}))
    expect(page.get_by_role("link", name="hall")).to_contain_text("1 late")
    page.get_by_role("link", name="hall").click()
    expect(page.get_by_role("region", name="Late events")).to_contain_text("2026-01-01 09:00:00")


ONTOLOGY = """@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <http://example.org/> .
:Freezer rdfs:subClassOf :Device . :Oven rdfs:subClassOf :Device . :cellar a :Freezer ."""


def test_an_ontology_is_loaded_looked_into_and_dropped(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "devices.ttl"
    file.write_text(ONTOLOGY)
    page.get_by_role("link", name="Background").click()
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("textbox", name="Name").fill("http://example.org/devices")
    page.get_by_role("button", name="Load").click()
    graph = page.get_by_role("button", name="http://example.org/devices", exact=True)
    expect(page.locator(".graphs")).to_contain_text("3 triples")
    graph.click()
    expect(page.locator(".browse .tree").first).to_contain_text("Freezer")
    page.get_by_role("searchbox").fill("oven")
    expect(page.get_by_role("region", name="Triples of http://example.org/devices").locator("tbody tr")).to_have_count(1)
    other = tmp_path / "other.ttl"
    other.write_text("this is no Turtle")
    page.get_by_label("File").set_input_files(other)
    page.get_by_role("button", name="Load").click()
    expect(page.get_by_role("alert")).to_contain_text("line 1, column 1")
    other.write_text(ONTOLOGY)
    page.get_by_role("button", name="Load").click()
    expect(page.get_by_role("alert")).to_contain_text("choose it again")
    page.get_by_role("button", name="Drop http://example.org/devices").click()
    page.get_by_role("button", name="Really drop? http://example.org/devices").click()
    expect(graph).to_be_hidden()


def test_a_file_is_loaded_under_the_name_that_is_filled_in(page: Page, client: Client, tmp_path: Path) -> None:
    """Each file under its own: the next one does not replace the graph before it."""
    page.get_by_role("link", name="Background").click()
    for name, stem in (("onto.TTL", "onto.TTL"), ("a b.ttl", "a%20b.ttl")):
        (tmp_path / name).write_text(ONTOLOGY)
        page.get_by_label("File", exact=True).set_input_files(tmp_path / name)
        expect(page.get_by_role("textbox", name="Name")).to_have_value(f"file:///{stem}")
        page.get_by_role("button", name="Load", exact=True).click()
        expect(page.get_by_role("button", name=f"Drop file:///{stem}")).to_be_visible()
    page.get_by_role("textbox", name="Name").fill("onto")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.get_by_role("button", name="Drop urn:epsparql:graph:onto")).to_be_visible()  # a plain name


def test_an_event_as_it_is_proposed_moves_no_watermark(page: Page, client: Client) -> None:
    """This holds for a stream that replays the past.

    It also holds for one without a watermark yet, to which the past may still come.
    """
    client.create_stream("hall")
    client.create_stream("cellar", max_delay="PT1H")
    client.send("cellar", json.dumps({"s": "<http://example.org/s>", "p": "<http://example.org/v>", "o": '"1"', "at": "2013-02-01T10:00:00.25Z"}))
    before = client.stream("cellar")
    for name in ("cellar", "hall"):
        page.get_by_role("link", name=name).click()
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.locator(".figures-list dd").first).to_have_text("2" if name == "cellar" else "1")
    found = client.stream("cellar")
    assert [found[key] for key in ("latest", "watermark", "late")] == [before["latest"], before["watermark"], 0]
    assert client.stream("hall")["watermark"] < "2001"


def test_a_refusal_is_no_longer_told_once_it_is_done(page: Page, client: Client) -> None:
    """A step that says nothing when it is done."""
    page.get_by_role("button", name="New query").first.click()
    work.write(page, WIND)
    page.route("**/queries/query", lambda route: route.abort())
    page.get_by_role("button", name="Run").click()
    told = page.get_by_role("alert").filter(has_text="the server does not answer")
    expect(told).to_be_visible()
    page.unroute("**/queries/query")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("button", name="Running")).to_be_visible()
    expect(told).to_have_count(0)


LONG = "The wind rose from the north-west, the pressure fell, and the sea was rough until the evening"
OVERFLOWS = "(cell) => cell.scrollWidth > cell.clientWidth || [...cell.children].some((each) => each.scrollHeight > each.clientHeight + 1)"


def test_values_are_whole_where_there_is_room(page: Page, client: Client) -> None:
    client.register("remarks", "PREFIX : <http://example.org/> SELECT ?n ?remark FROM STREAM <hall> WHERE { ?s :n ?n ; :remark ?remark }")
    triples = f'<http://example.org/s> <http://example.org/n> 0.123456789012345 ; <http://example.org/remark> "{LONG}" .'
    client.send("hall", triples, "text/turtle", at="2026-01-01T00:00:00Z")
    page.get_by_role("navigation").get_by_role("link", name="remarks").click()
    for text in ("0.123457", LONG):
        cell = page.get_by_role("cell", name=text, exact=True)
        expect(cell).to_be_visible()
        assert not cell.evaluate(OVERFLOWS), text
    exact = '"0.123456789012345"^^xsd:decimal'
    expect(page.get_by_role("cell", name="0.123457", exact=True)).to_have_attribute("title", exact)
    page.locator("tr[data-id]").click()
    expect(page.get_by_role("complementary", name="The chosen solution")).to_contain_text(exact)
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.get_by_role("cell", name=LONG, exact=True).evaluate(OVERFLOWS)  # but there it is cut
    page.get_by_role("cell", name=LONG, exact=True).click()
    expect(page.get_by_role("complementary", name="The chosen solution")).to_contain_text(LONG)


def test_a_plan_has_whole_lines_and_fits(page: Page) -> None:
    page.get_by_role("button", name="Read Tsunami").click()
    page.get_by_role("tab", name="Plan").click()
    steps = page.locator(".step")
    expect(steps.first).to_be_visible()
    lines = steps.locator(".line")
    assert not any(lines.evaluate_all("(all) => all.map((line) => line.scrollWidth > line.clientWidth)"))
    assert "…" not in "".join(lines.all_inner_texts())
    page.get_by_role("button", name="Larger").click()
    page.get_by_role("button", name="Larger").click()
    expect(steps.filter(has_text="SELECT")).not_to_be_in_viewport(ratio=1)
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 844})
        page.get_by_role("button", name="Fit").click()
        for step in steps.all():
            expect(step).to_be_in_viewport(ratio=1)
        assert page.locator(".graph").evaluate("(graph) => [graph.scrollWidth - graph.clientWidth, graph.scrollHeight - graph.clientHeight]") == [
            0,
            0,
        ]
        page.get_by_role("button", name="Smaller").click()
        expect(steps.last).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize(
    ("scopes", "queries", "streams"),
    [
        pytest.param("read:alert", ["alert"], [], id="one query"),
        pytest.param("read:* ingest:hall", ["alert", "other"], ["hall"], id="all queries and a stream"),
    ],
)
def test_the_page_shows_what_a_token_may(context: BrowserContext, tmp_path: Path, scopes: str, queries: list[str], streams: list[str]) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{digest('root')} admin\n{digest('a-token')} {scopes}\n")
    with serving(tmp_path / "data", token_file=tokens) as url:
        root = Client(url, "root")
        for name in ("alert", "other"):
            root.register(name, "SELECT * FROM STREAM <hall> WHERE { ?s ?p ?o }")
        root.send("hall", '{"s":"<http://example.org/s>","p":"<http://example.org/v>","o":"\\"1\\"","at":"2026-01-01T10:00:00Z"}')
        root.create_stream("garden")
        page = context.new_page()
        page.goto(f"{url}/")
        page.get_by_label("Bearer token").fill("another")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("The server does not know this token")
        page.get_by_label("Bearer token").fill("a-token")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").filter(has_text="inprocess")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        rail = page.get_by_role("navigation")
        expect(rail.get_by_role("region", name="Queries").locator(".name")).to_have_text(queries)
        expect(rail.get_by_role("region", name="Streams").locator(".name")).to_have_text(streams)
        expect(rail.get_by_role("link", name="Background")).to_have_count(0)
        rail.get_by_role("link", name="alert").first.click()
        expect(page.locator("tr[data-id]")).to_have_count(1)
        page.get_by_role("tab", name="Plan").click()
        expect(page.locator(".step").first).to_be_visible()
        for change in ("Drop", "Pause"):
            expect(page.get_by_role("button", name=change)).to_have_count(0)
        expect(page.get_by_role("button", name="Run")).to_be_disabled()
        if streams:
            rail.get_by_role("link", name="hall").first.click()
            page.get_by_role("button", name="Send", exact=True).click()
            expect(page.get_by_role("status").filter(has_text="1 accepted")).to_be_visible()
            expect(page.get_by_role("button", name="Delete")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)
        assert "a-token" not in page.evaluate("JSON.stringify(localStorage)")
        page.close()


def test_a_triple_term_is_shown_as_one(page: Page, client: Client) -> None:
    reports = (
        f"PREFIX : <{EX}> SELECT ?report ?said FROM STREAM <reports> WHERE {{ ?report <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> ?said }}"
    )
    client.register("reports", reports)
    client.send("reports", f'PREFIX : <{EX}> << :door :name "x"@ar--rtl ~ :r1 >> :by :s1 .', "text/turtle")
    page.get_by_role("navigation").get_by_role("link", name="reports").first.click()
    expect(page.locator("tr[data-id]")).to_contain_text("<<( :door :name x@ar--rtl )>>")

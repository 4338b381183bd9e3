"""These tests check access for everybody: names for what can be operated, contrast, a way without a mouse, narrow
screens.
"""

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from epsparql.client import Client
from pipeline.query_tests.cases import examples_in
from tests.browser import at_work as work
from tests.server.conftest import EX, event, values
from tests.soak import is_full

pytestmark = pytest.mark.slow

NARROW = (390, 1024) if is_full() else (390,)
CONSOLE_PAGE = Path(__file__).parents[2] / "docs" / "console.md"
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
VIOLATIONS = """
    async (rules) => (await axe.run(document, { runOnly: rules })).violations
        .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
"""

# Text whose colour is too near to what is behind it (WCAG 2.2, 1.4.3); axe passes over what is scrolled away or hidden from screen readers, as line numbers are.
FAINT = """
    () => {
        const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        const rgba = (text) => {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = text;
            canvas.fillRect(0, 0, 1, 1);
            const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
            return [r, g, b, a / 255];
        };
        const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
        const parent = (node) => node.parentElement ?? node.getRootNode().host;
        const behind = (node) => {
            const layers = [];
            for (let at = node; at; at = parent(at)) layers.push(rgba(getComputedStyle(at).backgroundColor));
            return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
        };
        const opacity = (node) => (node ? Number(getComputedStyle(node).opacity) * opacity(parent(node)) : 1);
        const light = (colour) => {
            const [r, g, b] = colour.slice(0, 3).map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const found = [];
        const walk = (root) => {
            for (const node of root.querySelectorAll("*")) {
                if (node.shadowRoot) walk(node.shadowRoot);
                const own = [...node.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
                if (!own || !node.checkVisibility() || node.closest("svg, noscript, style, option")) continue;
                const ground = behind(node);
                const ink = rgba(getComputedStyle(node).color);
                const [a, b] = [light(over([...ink.slice(0, 3), ink[3] * opacity(node)], ground)), light(ground)].sort((x, y) => y - x);
                const ratio = (a + 0.05) / (b + 0.05);
                if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${node.tagName}.${node.className}: ${node.textContent.trim().slice(0, 40)}`);
            }
        };
        walk(document.body);
        return found;
    }
"""


# What a reader sees or presses, where two of them lie on each other: of each, the part that no ancestor hides.
OVERLAPS = """
    () => {
        const scrolls = (node) => getComputedStyle(node).overflow !== "visible";
        const inSight = (node) => {
            let { left, top, right, bottom } = node.getBoundingClientRect();
            for (let at = node.parentElement; at; at = at.parentElement) {
                if (!scrolls(at)) continue;
                const box = at.getBoundingClientRect();
                [left, top, right, bottom] = [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)];
            }
            return { node, left, top, right: Math.min(right, innerWidth), bottom: Math.min(bottom, innerHeight) };
        };
        const shown = [...document.querySelectorAll("button, a, input, select, textarea, summary, h1, h2, label, p, dd, dt, .counts > span, .detail")]
            .filter((node) => node.checkVisibility() && !node.closest(".unseen, .skip, .tip, .choices, .cm-editor, svg"))
            .map(inSight)
            .filter(({ left, top, right, bottom }) => right - left > 2 && bottom - top > 2);
        const layer = (node) => node.closest("dialog, .rail.shown, .notice, .why");
        const found = [];
        shown.forEach((a, k) => {
            for (const b of shown.slice(k + 1)) {
                if (a.node.contains(b.node) || b.node.contains(a.node) || layer(a.node) !== layer(b.node)) continue;
                const [w, h] = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
                if (w > 2 && h > 2) found.push(`${a.node.outerHTML.slice(0, 70)} | ${b.node.outerHTML.slice(0, 70)} | ${w.toFixed()}x${h.toFixed()}`);
            }
        });
        return found;
    }
"""


def find_overlaps(page: Page, width: int) -> list[str]:
    """Return what overlaps on a page of this width, and whether the page is larger than the window."""
    page.set_viewport_size({"width": width, "height": 844})
    found: list[str] = page.evaluate(OVERLAPS)
    size = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    return found + ([] if size == [width, 844] else [f"the page has {size} pixels"])


def find_violations(page: Page, scheme: str = "light") -> list[str]:
    """Return what breaks the rules of accessibility on a page.

    Only colours depend on the scheme, so axe looks at a dark page in `make soak` alone.
    """
    found: list[str] = page.evaluate(FAINT)
    if scheme == "light" or is_full():
        page.evaluate(AXE)
        found += page.evaluate(VIOLATIONS, RULES)
    return found


def set_scheme(page: Page, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")


def scenes(page: Page) -> Any:
    """The console's faces, one after the other."""
    yield "examples"
    work.run_example(page, "Rising wind")
    page.wait_for_function("() => document.querySelectorAll('tr[data-id]').length > 5")
    page.locator("tr[data-id]").first.click()
    yield "solutions"
    page.get_by_role("tab", name="Chart").click()
    expect(page.locator(".plots polyline").first).to_be_visible()
    page.get_by_role("combobox", name="time", exact=True).select_option("past")
    page.get_by_role("application").focus()
    page.keyboard.press("End")
    yield "chart"
    page.get_by_role("tab", name="Map").click()
    yield "no map"
    page.get_by_role("tab", name="Plan").click()
    expect(page.locator(".step").first).to_be_visible()
    yield "plan"
    work.write(page, "SELECT * WHERE { ?s a:b ?o } # a comment")
    expect(page.locator(".verdict.bad")).to_be_visible()
    yield "fault"
    page.get_by_role("navigation").get_by_role("link", name="winter").click()
    yield "stream"
    page.get_by_role("link", name="Background").click()
    yield "ontologies"
    page.get_by_role("navigation").get_by_role("link", name="Connectors").click()
    page.get_by_role("textbox", name="Name of the connector").fill("broker")
    yield "connectors"
    page.keyboard.press("?")
    yield "keys"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Token").click()
    yield "token"


def test_rules_of_accessibility(page: Page) -> None:
    for scene in scenes(page):
        for scheme in ("dark", "light"):
            set_scheme(page, scheme)
            assert find_violations(page, scheme) == [], (scene, scheme)


def test_without_a_mouse(page: Page, client: Client) -> None:
    """The keyboard alone leads from the first tab stop to a running query, and into its solutions."""
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement?.getAttribute('aria-label')") == "Run Rising wind":
            break
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('tr[data-id]').length > 5")
    page.keyboard.press("Alt+n")
    page.keyboard.insert_text("SELECT * FROM STREAM <winter> WHERE { ?s <http://example.org/weather#temp> ?t }")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("button", name="Running")).to_be_visible()
    assert {query["name"] for query in client.queries()} == {"wind", "query"}
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")  # Escape first, then Tab leaves the editor
    assert page.evaluate("document.activeElement?.className") != "editor"
    page.keyboard.press("Alt+1")
    expect(work.tab(page, "wind")).to_have_attribute("aria-current", "true")
    page.get_by_role("region", name="Solutions, the newest first").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("complementary", name="The chosen solution")).to_be_visible()


def test_escape_and_tab_leave_the_editor(page: Page) -> None:
    """The keys do so whether completions are only about to be offered or are on screen."""
    page.keyboard.press("Alt+n")
    for offered in (False, True):
        page.keyboard.press("Alt+e")
        page.keyboard.insert_text(" SEL")
        if offered:
            expect(page.get_by_role("listbox")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement?.className") != "editor"


def test_what_has_the_focus_can_be_seen(page: Page) -> None:
    for _ in range(12):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", page.evaluate("document.activeElement.outerHTML")


def test_a_narrow_screen(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="Run Rising wind").click()
    expect(page.get_by_role("application")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for _ in range(5):
        page.keyboard.press("Alt+n")
    expect(work.tab(page, "query-5")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="New query")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Queries and streams").click()
    page.get_by_role("navigation").get_by_role("link", name="winter").click()
    expect(page.get_by_role("heading", name="winter")).to_be_visible()


@pytest.mark.parametrize("width", NARROW)
def test_long_names_and_reasons_are_whole(page: Page, client: Client, width: int) -> None:
    """The name of a query that waits for its first event, and why an event was late."""
    name = "http://example.org/queries/with/a/name/that/goes/on/and/on/and/has/no/space"
    client.register(name, values(f"{EX}streams/of/its/own"))
    hall = f"hall {width}"  # late events are kept by the stream's name
    client.send(hall, event(4))
    client.send(hall, event(0))
    page.set_viewport_size({"width": width, "height": 844})
    rail, burger = page.get_by_role("navigation"), page.get_by_role("button", name="Queries and streams")
    for open_page, told in ((name, page.locator(".empty p")), (hall, page.get_by_role("region", name="Late events").locator("td.reason"))):
        if burger.is_visible():
            burger.click()
        rail.get_by_role("link", name=open_page).click()
        expect(told).to_be_visible()
        assert told.evaluate("(told) => told.scrollWidth > told.clientWidth") is False
        assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.soak
def test_pictures(page: Page, client: Client, pictures: Path) -> None:
    """At work, in light and in dark, a chart, a map and a plan: none is blank, and they differ."""
    client.register("strong wind", next(example.query for example in examples_in(CONSOLE_PAGE.read_text(encoding="utf-8"))))
    for example in ("Heat index", "Tsunami"):
        work.run_example(page, example)
        work.played(page)
        page.get_by_role("link", name="Examples").click()
    work.run_example(page, "Rising wind", "5\N{MULTIPLICATION SIGN}")
    page.wait_for_function("() => document.querySelector('table')?.getAttribute('aria-rowcount') > 330")
    page.get_by_role("button", name="Pause the data").click()
    expect(page.locator(".counts")).not_to_contain_text("behind")
    taken = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        point_at_a_bar(page)
        taken[scheme] = page.screenshot(path=pictures / f"console-{scheme}.png")
    work.tab(page, "heat").click()
    page.get_by_role("tab", name="Chart").click()
    page.get_by_role("application", name="?hi over time").focus()
    page.keyboard.press("End")
    expect(page.get_by_role("tooltip")).to_contain_text(":humid")
    taken["chart"] = page.screenshot(path=pictures / "console-chart.png")
    page.get_by_role("navigation").get_by_role("link", name="strong wind").click()
    page.get_by_role("tab", name="Map").click()
    expect(page.locator("circle[data-place]")).to_have_count(3)
    page.get_by_role("application", name="3 places on a map").focus()
    page.keyboard.press("n")
    expect(page.get_by_role("tooltip")).to_contain_text(":wind_speed")
    taken["map"] = page.screenshot(path=pictures / "console-map.png")
    work.tab(page, "tsunami").click()
    page.get_by_role("tab", name="Plan").click()
    expect(page.locator(".step .live").first).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("no faults")
    taken["plan"] = page.screenshot(path=pictures / "console-plan.png")
    work.tab(page, "wind").click()
    work.write(page, client.query("wind")["query"].replace("?a * 1.1", "?a * 1.5").replace("PT3H", "PT4H"))
    page.get_by_role("button", name="Try on the past").click()
    page.get_by_role("button", name="Start the trial").click()
    expect(page.get_by_role("status").filter(has_text="are the same")).to_be_visible()
    page.get_by_role("checkbox", name="both").check()
    expect(page.locator("tr[data-id]").first).to_be_visible()
    page.mouse.move(0, 0)
    taken["trial"] = page.screenshot(path=pictures / "console-trial.png")
    assert len(set(taken.values())) == 6
    assert min(map(len, taken.values())) > 40_000


def point_at_a_bar(page: Page) -> None:
    """Whichever bar lies right of the middle of the first lanes; what it is about is shown."""
    box = page.get_by_role("application").bounding_box()
    assert box is not None
    for x in range(int(box["width"] * 0.55), int(box["width"]), 4):
        page.mouse.move(box["x"] + x, box["y"] + 37)
        if page.get_by_role("tooltip").is_visible():
            expect(page.get_by_role("tooltip")).to_contain_text(":wind_speed")  # of the occurrences
            return
    raise AssertionError("there is no bar")

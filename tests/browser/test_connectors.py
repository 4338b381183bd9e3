"""These tests check the console's page of connectors: how each one is doing, and what an admin may do there."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from epsparql.client import ApiError, Client
from tests.browser.test_access import find_violations
from tests.connectors.systems.brokers import free_port
from tests.server.conftest import event, serving
from tests.server.operations.test_security import digest

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a directory that connectors may read, with two events."""
    found = tmp_path / "files"
    found.mkdir()
    (found / "a.ndjson").write_text(f"{event(1)}\n{event(2)}\n")
    return found


@pytest.fixture
def server(tmp_path: Path, files: Path) -> Iterator[str]:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{digest('root')} admin\n{digest('some')} read:*\n")
    with serving(tmp_path / "data", token_file=tokens, connector_files=files) as url:
        yield url


@pytest.fixture
def admin(server: str) -> Client:
    return Client(server, "root")


@pytest.fixture
def connected(context: BrowserContext, server: str) -> Iterator[Page]:
    """The page of connectors, as an admin sees it."""
    page = context.new_page()
    page.goto(f"{server}/")
    enter(page, "root")
    page.get_by_role("navigation").get_by_role("link", name="Connectors").click()
    yield page
    page.close()


def enter(page: Page, token: str) -> None:
    page.get_by_label("Bearer token").fill(token)
    page.keyboard.press("Enter")


def options_of(client: Client, name: str) -> object:
    return client._json("GET", f"/connectors/{name}")["options"]


def connector(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem", name=name, exact=True)


def test_a_connector_is_created_from_an_example_changed_and_deleted(connected: Page, admin: Client, files: Path) -> None:
    settings, alert = connected.get_by_role("textbox", name="Settings as JSON"), connected.get_by_role("alert")
    expect(connected.get_by_role("button", name="Create")).to_be_disabled()
    connected.get_by_role("textbox", name="Name of the connector").fill("readings")
    connected.get_by_role("combobox", name="Example settings").select_option("Files of a directory into a stream")
    options = json.loads(settings.input_value()) | {"path": str(files), "pattern": "*.ndjson"}
    for written, told in ((json.dumps(options)[:-1], "is no JSON"), (json.dumps(options | {"batch": 0}), "batch must be at least 1")):
        settings.fill(written)
        connected.get_by_role("button", name="Create").click()
        expect(alert).to_contain_text(told)
    settings.fill(json.dumps(options))
    connected.get_by_role("button", name="Create").click()
    shown = connector(connected, "readings")
    for told in ("running", "files → stream weather", "messages2", "lag0", "a.ndjson", "faults0"):
        expect(shown).to_contain_text(told)
    expect(alert).to_have_count(0)
    assert admin.stream("weather")["accepted"] == 2

    shown.get_by_role("button", name="Edit readings").click()
    expect(settings).to_be_focused()
    assert json.loads(settings.input_value()) == options
    settings.fill(json.dumps(options | {"batch": 7}))
    connected.get_by_role("button", name="Replace").click()
    assert options_of(admin, "readings") == options
    connected.get_by_role("button", name="Really replace?").click()
    expect(connected.get_by_role("status").filter(has_text="readings starts again")).to_be_visible()
    assert options_of(admin, "readings") == options | {"batch": 7}

    shown.get_by_role("button", name="Delete readings").click()
    assert options_of(admin, "readings")
    shown.get_by_role("button", name="Really delete? readings").click()
    expect(shown).to_have_count(0)
    with pytest.raises(ApiError):
        options_of(admin, "readings")


@pytest.mark.parametrize("width", [390, 1024])
def test_a_connector_with_a_fault_without_a_mouse(connected: Page, width: int) -> None:
    connected.set_viewport_size({"width": width, "height": 844})
    connected.get_by_role("textbox", name="Name of the connector").focus()
    connected.keyboard.insert_text("broker")
    connected.keyboard.press("Tab")
    connected.keyboard.press("Tab")
    connected.keyboard.press("Control+a")
    connected.keyboard.insert_text(
        json.dumps({"type": "nats", "stream": "weather", "url": f"nats://127.0.0.1:{free_port()}", "jetstream": "READINGS"})
    )
    connected.keyboard.press("Tab")
    connected.keyboard.press("Enter")
    shown = connector(connected, "broker")
    expect(shown).to_contain_text("waiting")
    expect(shown.locator(".fault")).to_contain_text("NATS")
    assert connected.evaluate("document.documentElement.scrollWidth") == width
    assert find_violations(connected) == []
    page = connected.get_by_role("article", name="Connectors")
    assert page.evaluate("(page) => page.scrollWidth - page.clientWidth") == 0
    if width == 390:
        connected.get_by_role("button", name="Queries and streams").click()
    expect(connected.get_by_role("navigation").get_by_role("link", name="Connectors")).to_contain_text("1 with a fault")


def test_without_the_scope_a_plain_message_stands_there(connected: Page) -> None:
    connected.get_by_role("button", name="Token", exact=True).click()
    enter(connected, "some")
    expect(connected.get_by_text("Connectors are shown to tokens with the scope admin.")).to_be_visible()
    expect(connected.get_by_role("link", name="Connectors")).to_have_count(0)
    expect(connected.get_by_role("form")).to_have_count(0)
    expect(connected.get_by_role("alert")).to_have_count(0)

"""Thirty wishes in plain words, fulfilled through the tools as an assistant would, without a model: from the list of
streams to a standing query and the reason of a solution. How often each is fulfilled was counted in Python.
"""

import asyncio
from collections.abc import Iterator

import pytest
from mcp.client import Client as Assistant

from epsparql.client import Client
from tests.server.conftest import DEADLINE_S, serving
from tests.server.mcp.assistant import ask, assisting, refusal
from tests.server.mcp.wishes import SLIPS, WISHES, Weather, Wish, read_weather
from tests.server.operations.test_security import digest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def weather() -> tuple[Weather, str]:
    return read_weather()


@pytest.fixture(scope="module")
def guarded(weather: tuple[Weather, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with two months of weather; `root` may do all, and `reader` may read."""
    directory = tmp_path_factory.mktemp("mcp")
    (directory / "tokens").write_text(f"{digest('root')} admin\n{digest('reader')} read:* ingest:weather\n")
    with serving(directory / "data", token_file=directory / "tokens") as url:
        Client(url, "root").send("weather", weather[1])
        yield url


def test_there_are_thirty_wishes() -> None:
    assert len(WISHES) == 30
    assert len({wish.words for wish in WISHES}) == 30


def test_each_wish(guarded: str, weather: tuple[Weather, str]) -> None:
    """Each text uses predicates that the list shows, has no fault, and finds in the past what Python counts."""

    async def fulfil(assistant: Assistant, wish: Wish) -> None:
        checked = await ask(assistant, "check_query", query=wish.query)
        assert checked["errors"] == [], wish.words
        assert "never-seen" not in {warning["code"] for warning in checked["warnings"]}, wish.words
        tried = await ask(assistant, "try_query", query=wish.query, limit=3)
        expected = wish.count(weather[0])
        assert tried["counts"] == {"new": expected, "old": 0, "both": 0}, wish.words
        assert len(tried["solutions_new"]) == min(expected, 3)

    async def run() -> None:
        async with assisting(guarded, "root") as assistant:
            (stream,) = (await ask(assistant, "list_streams"))["streams"]
            assert (stream["name"], stream["events"]) == ("weather", sum(map(len, weather[0].of.values())))
            assert {each["name"].rpartition("#")[2][:-1] for each in stream["predicates"]} == weather[0].of.keys()
            for wish in WISHES:
                await fulfil(assistant, wish)

    asyncio.run(run())


def test_slips_are_repaired(guarded: str) -> None:
    async def run() -> None:
        async with assisting(guarded, "root") as assistant:
            for slip, meant in SLIPS:
                checked = await ask(assistant, "check_query", query=slip)
                assert checked["mended"].split() == meant.split()
                assert checked["repairs"]
            checked = await ask(assistant, "check_query", query=WISHES[0].query.replace("wind_speed", "windspeed"))
            assert [warning["code"] for warning in checked["warnings"]] == ["never-seen"]
            assert "wind_speed" in checked["warnings"][0]["message"]

    asyncio.run(run())


def test_from_a_wish_to_a_standing_query(guarded: str) -> None:
    """Nothing changes until it is confirmed, nor with another token than an admin's."""
    storm, stronger = WISHES[0].query, WISHES[0].query.replace("35", "38")

    async def run() -> None:
        async with assisting(guarded, "reader") as assistant:
            assert "needs a token with the scope admin" not in await refusal(assistant, "register_query", name="storm", query=storm)
            for tool, arguments in (("register_query", {"confirm": True}), ("promote_query", {"confirm": True})):
                assert "scope admin" in await refusal(assistant, tool, name="storm", query=storm, **arguments)
            assert "scope admin" in await refusal(assistant, "try_query", query=storm)
        async with assisting(guarded, "root") as assistant:
            told = await refusal(assistant, "register_query", name="storm", query=storm)
            assert told.startswith("Nothing was changed. Show the user the whole text")
            assert (await ask(assistant, "list_queries"))["queries"] == []
            registered = await ask(assistant, "register_query", name="storm", query=storm, confirm=True, start="beginning")
            assert registered["state"] in ("running", "catching-up")
            tried = await ask(assistant, "try_query", query=stronger, compare_with="storm")
            assert (tried["counts"]["new"], tried["counts"]["old"] + tried["counts"]["both"]) == (0, 12)
            await asyncio.to_thread(Client(guarded, "root").solutions, "storm", limit=1, wait_s=DEADLINE_S)
            newest, *_ = (await ask(assistant, "read_solutions", query="storm", limit=5))["solutions"]
            why = await ask(assistant, "explain_solution", query="storm", solution=newest["id"])
            assert [cause["p"] for cause in why["because"]] == ["<http://example.org/weather#wind_speed>"]
            assert "Nothing was changed" in await refusal(assistant, "promote_query", name="storm", query=stronger)
            promoted = await ask(assistant, "promote_query", name="storm", query=stronger, confirm=True)
            assert promoted["promotion"]["state"] in ("waiting", "promoted")
            await ask(assistant, "register_query", name="never", query=WISHES[-1].query, confirm=True, start="beginning")
            diagnosis = await ask(assistant, "diagnose_query", query="never")
            assert (diagnosis["state"], diagnosis["reason"]["code"]) == ("nothing", "filter-false")
        client = Client(guarded, "root")
        for name in ("storm", "never"):
            client.drop(name)

    asyncio.run(run())

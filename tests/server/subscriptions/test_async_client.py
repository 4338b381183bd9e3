"""The client for asyncio: what it sends and follows is there once, across a restart of the server."""

import asyncio
import json
from pathlib import Path

import pytest
import rdflib

from epsparql.async_client import AsyncClient
from epsparql.client import ApiError, Closed, Solution
from server.child_server import Child
from tests.server.conftest import COMPILING_S, DEADLINE_S, EX, event, values
from tests.server.operations.test_restart import port

__all__ = ["port"]
_N = 600


def test_all_that_a_client_does(url: str, name: str, stream: str) -> None:
    async def use() -> list[Solution]:
        client = AsyncClient(url)
        await client.wait_ready()
        await client.create_stream(stream, max_delay="PT1S")
        assert (await client.register(name, values(stream)))["state"] == "running"
        assert (await client.send(stream, event(1), key="k")).accepted == 1
        async with client.feed(stream, window=4) as feed:
            for number in range(2, 30):
                await feed.send(event(number))
            assert await feed.flush() > 0
            await feed.send("{")
            with pytest.raises(ApiError, match="400"):
                await feed.flush()
        await client.finish(stream)
        assert (await client.stream(stream))["accepted"] == 29
        async with client.follow(name) as subscription:
            found = [solution async for solution in subscription]
        assert found == await client.solutions(name, wait_s=1)
        async with client.follow(name, after=found[9].id) as subscription:
            assert [solution async for solution in subscription] == found[10:]
        assert (await client.query(name))["solutions"] == 29
        await client.drop(name)
        async with client.follow(name) as subscription:
            with pytest.raises(Closed, match="4004"):
                await subscription.next()
        return found

    assert len(asyncio.run(use())) == 29


EMPTY = '{"triples": ""}'
"""A frame that brings no events."""


def test_answers_are_read_as_they_come(url: str, stream: str) -> None:
    """A refusal, and what is acknowledged, are known long before `window` frames are unanswered."""

    async def use() -> int:
        async with AsyncClient(url).feed(stream, window=10_000) as feed, asyncio.timeout(DEADLINE_S):
            await feed.send(event(1))
            while not feed.acked:
                await asyncio.sleep(0.01)
                await feed.send(EMPTY)
            await feed.send("{")
            refusals: list[int] = []
            while not refusals:
                await asyncio.sleep(0.01)
                try:
                    await feed.send(EMPTY)
                except ApiError as error:
                    refusals.append(error.status)
            await feed.flush()
            return refusals[0]

    assert asyncio.run(use()) == 400


def test_a_query_is_held(url: str, name: str, stream: str) -> None:
    async def use() -> int:
        client = AsyncClient(url)
        await client.send(stream, event(1))
        await client.register(name, values(stream), start=0)
        assert (await client.pause(name))["state"] == "paused"
        assert name in {query["name"] for query in await client.queries() if query["state"] == "paused"}
        assert (await client.resume(name))["state"] == "running"
        return len(await client.solutions(name, wait_s=30))

    assert asyncio.run(use()) == 1


def test_background_and_reasons(url: str, name: str, stream: str) -> None:
    """A graph is loaded, extended, queried, read and dropped; a solution says which of its triples it rests on."""
    graph, query = f"{EX}rooms", f"SELECT ?s ?room FROM STREAM <{stream}> WHERE {{ ?s <{EX}value> ?v . ?s <{EX}in> ?room }}"

    async def use() -> None:
        client = AsyncClient(url)
        assert (await client.load_background(graph, f"<{EX}s> <{EX}in> <{EX}hall> ."))["triples"] == 1
        added = rdflib.Graph().add((rdflib.URIRef(f"{EX}t"), rdflib.URIRef(f"{EX}in"), rdflib.URIRef(f"{EX}hall")))
        assert (await client.load_background(graph, added, add=True))["triples"] == 2
        assert [each["triples"] for each in await client.background() if each["name"] == graph] == [2]
        found = json.loads(await client.query_background(f"ASK {{ GRAPH <{graph}> {{ <{EX}t> ?p ?o }} }}"))
        assert found["boolean"] is True
        await client.register(name, query)
        await client.send(stream, event(1))
        await client.finish(stream)
        (solution,) = await client.solutions(name, wait_s=30)
        kinds = {step["kind"] for step in (await client.why(name, solution.id))["because"]}
        assert kinds == {"occurrence", "background"}
        assert (await client.diagnose(name))["state"] == "found"
        assert f"<{EX}hall>" in await client.read_background(graph, "application/n-triples")
        await client.drop_background(graph)
        with pytest.raises(ApiError, match="404"):
            await client.read_background(graph)
        await client.replace(name, values(stream))
        assert await client.solutions(name) == []
        assert stream in {each["name"] for each in await client.streams()}
        await client.drop(name)
        await client.drop_stream(stream)
        assert stream not in {each["name"] for each in await client.streams()}

    asyncio.run(use())


@pytest.mark.slow
def test_a_restart_in_between(tmp_path: Path, port: int) -> None:
    async def use() -> list[str]:
        client = AsyncClient(f"http://127.0.0.1:{port}", patience_s=COMPILING_S)
        half = asyncio.Event()

        async def feed() -> None:
            async with client.feed("default", window=16) as connection:
                for number in range(_N):
                    await connection.send(event(number))
                    if number == _N // 2:
                        half.set()
                await connection.flush()
            await client.finish("default")

        with Child(tmp_path / "data", "inprocess", tmp_path / "log", port) as child:
            await client.wait_ready(COMPILING_S)
            await client.register("q", values("default"))
            feeding = asyncio.create_task(feed())
            subscription = client.follow("q")
            seen = [await subscription.next()]
            await half.wait()
            await asyncio.to_thread(child.kill)
        with Child(tmp_path / "data", "inprocess", tmp_path / "log", port):
            seen += [solution async for solution in subscription]
            await feeding
            await subscription.close()
        return [each.binding["v"]["value"] for each in seen if isinstance(each, Solution) and each.binding]

    assert asyncio.run(use()) == [str(number) for number in range(_N)]

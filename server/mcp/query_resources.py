"""Serves standing queries as resources, and tells subscribers of new solutions.

A client of 2026-07-28 names resources in `subscriptions/listen`, and one of an earlier version subscribes to each. Both
are told that a resource was updated, at most once a second, and read it then.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    EmptyResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextResourceContents,
    UnsubscribeRequestParams,
)

from epsparql.async_client import AsyncClient
from epsparql.client import ApiError, Unreachable
from server.mcp.answers import NOTICE, explain_fault, write_data
from server.mcp.query_tools import read_solution_lines

_PLACE = "epsparql://queries/"
_SHOWN, _MOST_LISTED, _MOST_FOLLOWED = 20, 500, 100
_PAUSE_S, _WAIT_S = 1.0, 20.0
_log = logging.getLogger("epsparql.mcp")
_Request = ServerRequestContext[Any, Any]


class QueryResources:
    """Has a method for each request about resources. Runs on the event loop."""

    def __init__(self, connect: Callable[[_Request], AsyncClient]) -> None:
        """Take what returns the client of a request, with the token of whoever sends it."""
        self._connect, self._listeners = connect, 0
        self._subscribed: dict[str, asyncio.Task[None]] = {}

    async def list_resources(self, request: _Request, _: PaginatedRequestParams | None) -> ListResourcesResult:
        """List the queries that the caller may read, the first _MOST_LISTED of them."""
        with _refusing(_PLACE):
            queries = await self._connect(request).queries()
        about = "The newest solutions of a standing query."
        return ListResourcesResult(
            resources=[Resource(uri=uri_of(query["name"]), name=query["name"], description=about) for query in queries[:_MOST_LISTED]]
        )

    async def list_templates(self, _: _Request, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """Return the form of a resource's URI, by which one reads a query that no list holds."""
        about = "The newest solutions of the standing query of this name."
        return ListResourceTemplatesResult(resource_templates=[ResourceTemplate(uri_template=f"{_PLACE}{{name}}", name="query", description=about)])

    async def read_resource(self, request: _Request, wish: ReadResourceRequestParams) -> ReadResourceResult:
        """Return the newest solutions of a query, marked as data."""
        name = _name_of(wish.uri)
        client = self._connect(request)
        with _refusing(wish.uri):
            found = {"query": await client.query(name), "newest_first": await read_solution_lines(client, name, _SHOWN)}
        parts = [(NOTICE, "text/plain"), (write_data(found), "application/json")]
        return ReadResourceResult(contents=[TextResourceContents(uri=wish.uri, text=text, mime_type=kind) for text, kind in parts])

    async def listen(self, request: _Request, wish: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Serve a stream of notifications, and follow what it names as long as it is open.

        Each stream has a bus of its own, so nobody is told twice, or of what another one may see.
        """
        uris = dict.fromkeys(wish.notifications.resource_subscriptions or ())
        if len(uris) > _MOST_FOLLOWED:
            raise MCPError(INVALID_PARAMS, f"at most {_MOST_FOLLOWED} resources may be followed")
        if self._listeners >= _MOST_FOLLOWED:
            raise MCPError(INTERNAL_ERROR, f"{_MOST_FOLLOWED} streams of notifications are open, which is the most")
        bus = InMemorySubscriptionBus()
        followed: list[tuple[_News, ServerEvent]] = [(await self._find_news(request, uri), ResourceUpdated(uri=uri)) for uri in uris]
        if wish.notifications.resources_list_changed:
            followed.append((await self._find_list(request), ResourcesListChanged()))
        following = [asyncio.create_task(_tell_news(news, partial(bus.publish, event))) for news, event in followed]
        self._listeners += 1
        try:
            return await ListenHandler(bus)(request, wish)
        finally:
            self._listeners -= 1
            for task in following:
                task.cancel()

    async def subscribe(self, request: _Request, wish: SubscribeRequestParams) -> EmptyResult:
        """Follow a query for a client of an earlier version of the protocol, the only one of this process."""
        self._subscribed = {uri: task for uri, task in self._subscribed.items() if not task.done()}
        if len(self._subscribed) >= _MOST_FOLLOWED:
            raise MCPError(INVALID_PARAMS, f"at most {_MOST_FOLLOWED} resources may be followed")
        if wish.uri not in self._subscribed:
            news = await self._find_news(request, wish.uri)
            self._subscribed[wish.uri] = asyncio.create_task(_tell_news(news, partial(request.session.send_resource_updated, wish.uri)))
        return EmptyResult()

    async def unsubscribe(self, _: _Request, wish: UnsubscribeRequestParams) -> EmptyResult:
        task = self._subscribed.pop(wish.uri, None)
        if task is not None:
            task.cancel()
        return EmptyResult()

    async def _find_news(self, request: _Request, uri: str) -> "QueryNews":
        """Return the news of a query from now on. Raises: MCPError where the caller may not read the query."""
        client, name = self._connect(request), _name_of(uri)
        with _refusing(uri):
            return QueryNews(client, name, _key_of(await read_solution_lines(client, name, 1)))

    async def _find_list(self, request: _Request) -> "ListNews":
        """Return the news of the list that the caller sees, from now on. Raises: MCPError."""
        news = ListNews(self._connect(request))
        with _refusing(_PLACE):
            await news.look()
        return news


@dataclass(slots=True)
class QueryNews:
    """Looks for solutions of a query after the one with the key `seen`."""

    client: AsyncClient
    name: str
    seen: str

    async def look(self) -> bool:
        """Return whether there are new ones; wait for a first one for _WAIT_S."""
        found = await read_solution_lines(self.client, self.name, 1, self.seen, _WAIT_S)
        if found:
            self.seen = _key_of(await read_solution_lines(self.client, self.name, 1))
        return bool(found)


@dataclass(slots=True)
class ListNews:
    """Looks for queries that were registered or dropped."""

    client: AsyncClient
    name: str = "the list of queries"
    seen: frozenset[str] = frozenset()

    async def look(self) -> bool:
        before, self.seen = self.seen, frozenset([query["name"] for query in await self.client.queries()])
        return before != self.seen


_News = QueryNews | ListNews


async def _tell_news(news: _News, tell: Callable[[], Awaitable[None]]) -> None:
    """Tell that there is news, at most once each _PAUSE_S, until the query or the right to read it is gone."""
    while True:
        try:
            if await news.look():
                await tell()
        except ApiError as fault:
            if fault.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                _log.warning("%s is not followed any longer: %s", news.name, fault)
                return
        except (OSError, Unreachable) as fault:
            _log.info("%s is asked again: %s", news.name, fault)
        await asyncio.sleep(_PAUSE_S)


def uri_of(name: str) -> str:
    """Return the URI of a query's resource."""
    return _PLACE + quote(name, safe="")


def _name_of(uri: str) -> str:
    """Return the name of the query of a resource. Raises: MCPError."""
    if not uri.startswith(_PLACE):
        raise MCPError(INVALID_PARAMS, f"there is no resource {uri[:200]!r}; expected {_PLACE}<name>", {"uri": uri})
    return unquote(uri.removeprefix(_PLACE))


def _key_of(newest: Sequence[Mapping[str, Any]]) -> str:
    """Return the key after which solutions are new; a revised query counts its changes."""
    return str(newest[0].get("id") or newest[0]["seq"]) if newest else ""


@contextmanager
def _refusing(uri: str) -> Iterator[None]:
    """Turn what a server refuses into an error of the protocol."""
    try:
        yield
    except (ApiError, OSError, Unreachable) as fault:
        raise MCPError(INVALID_PARAMS, explain_fault(fault), {"uri": uri}) from None

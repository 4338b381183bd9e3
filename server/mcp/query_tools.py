"""Defines the tools. Their first lines and parameters are what an assistant reads of them."""

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import urlencode

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations
from pydantic import Field

from epsparql.async_client import AsyncClient
from epsparql.client import segment
from server.mcp.language_guide import write_guide

_NDJSON = "application/x-ndjson"
_MOST_PROFILES = 20
_MOST_LISTED = 200
_LOOK_S, _TRIAL_S = 0.1, 600.0
_UNDER_WAY = ("waiting", "running")
_NOT_CONFIRMED = "Nothing was changed. Show the user the whole text and what it found, and call again with confirm=true once the user agrees."

Text = Annotated[str, Field(description="The EP-SPARQL text.")]
Name = Annotated[str, Field(description="The query's name.")]
Confirm = Annotated[bool, Field(description="True only if the user has seen the text and agreed.")]
Limit = Annotated[int, Field(description="At most this many.", ge=1, le=200)]
Connect = Callable[[Context[Any, Any]], AsyncClient]


class QueryTools:
    """Has a method for each tool, each with the context of its call."""

    def __init__(self, connect: Connect) -> None:
        """Take what returns the client of a call, with the token of whoever calls."""
        self._connect = connect

    async def show_language(self) -> str:
        """Show the operators of EP-SPARQL over time, with an example for each kind of wish."""
        return write_guide()

    async def list_streams(
        self, context: Context[Any, Any], name: Annotated[str | None, Field(description="Only this stream, with its whole profile.")] = None
    ) -> Any:
        """List the streams with what their last events carry: predicates, classes, datatypes, counts and examples."""
        client = self._connect(context)
        if name is not None:
            return {"stream": await client.stream(name), "profile": await client.profile(name)}
        streams = await client.streams()
        shown = [
            _choose(stream, "name", "description", "latest", "accepted", "finished") | _summarize_profile(await client.profile(stream["name"]))
            for stream in streams[:_MOST_PROFILES]
        ]
        return {"streams": shown, "without_profile": [stream["name"] for stream in streams[_MOST_PROFILES:_MOST_LISTED]], "all": len(streams)}

    async def look_at_events(
        self, context: Context[Any, Any], stream: Annotated[str, Field(description="The stream's name.")], last: Limit = 20
    ) -> Any:
        """Show the last events of a stream, the newest first, with their times."""
        events = await self._connect(context).events(stream, last)
        return {"events": [_choose(event, "s", "p", "o", "g", "start", "end", "late") for event in events]}

    async def list_queries(self, context: Context[Any, Any]) -> Any:
        """List the standing queries with their texts, states and numbers of solutions."""
        queries = await self._connect(context).queries()
        shown = [_choose(query, "name", "query", "state", "reason", "policy", "emit", "solutions", "waits_for") for query in queries[:_MOST_LISTED]]
        return {"queries": shown, "all": len(queries)}

    async def check_query(self, context: Context[Any, Any], query: Text) -> Any:
        """Check a text without registering it: faults with repairs, the mended text, and warnings such as names never seen."""
        body = json.dumps({"query": query})
        _, _, content = await self._connect(context).request("POST", "/check", body, Content_Type="application/json")
        return _choose(json.loads(content), "errors", "warnings", "repairs", "mended")

    async def try_query(
        self,
        context: Context[Any, Any],
        query: Text,
        compare_with: Annotated[str | None, Field(description="A registered query; what only one of both finds is shown.")] = None,
        start: Annotated[str, Field(description="A date or time of events, or 'beginning'.")] = "beginning",
        end: Annotated[str, Field(description="A date or time of events, or 'now'.")] = "now",
        limit: Limit = 20,
    ) -> Any:
        """Try a text on the past without registering it: how often it would have found something, when, and the first solutions."""
        client = self._connect(context)
        trial = await client.start_trial(query, compare_with=compare_with, start=start, until=end)
        try:
            async with asyncio.timeout(_TRIAL_S):
                while trial["state"] in _UNDER_WAY:
                    await _report(context, trial)
                    await asyncio.sleep(_LOOK_S)
                    trial = await client.trial(trial["id"])
            if trial["state"] != "completed":
                raise ToolError(f"the trial {trial['state']}: {trial['reason']}")
            sides = ("new",) if compare_with is None else ("new", "old")
            found = {f"solutions_{side}": await client.trial_solutions(trial["id"], side, limit=limit) for side in sides}
        except TimeoutError:
            raise ToolError(f"the trial took more than {_TRIAL_S:g} s; choose a later start") from None
        finally:
            await client.drop_trial(trial["id"])
        return _choose(trial, "counts", "timeline", "warning", "unbounded", "ended", "queries") | found

    async def read_solutions(
        self,
        context: Context[Any, Any],
        query: Name,
        limit: Limit = 20,
        after: Annotated[str | None, Field(description="The id of a solution: those after it, the oldest first.")] = None,
    ) -> Any:
        """Read solutions of a standing query: the newest ones, or those after an id."""
        return {"solutions": await read_solution_lines(self._connect(context), query, limit, after)}

    async def explain_solution(
        self, context: Context[Any, Any], query: Name, solution: Annotated[str, Field(description="The solution's id, from read_solutions.")]
    ) -> Any:
        """Explain why there is this solution: the events, background, rules and inferences that it rests on."""
        return await self._connect(context).why(query, solution)

    async def diagnose_query(self, context: Context[Any, Any], query: Name) -> Any:
        """Say why a standing query finds nothing: the step that lets nothing through, the nearest value, and a remedy."""
        return await self._connect(context).diagnose(query)

    async def register_query(
        self,
        context: Context[Any, Any],
        name: Annotated[str, Field(description="A new name.")],
        query: Text,
        confirm: Confirm = False,
        start: Annotated[str, Field(description="'now', or 'beginning' to read the past first.")] = "now",
    ) -> Any:
        """Register a text as a standing query under a new name. It needs the user's agreement, and an admin's token."""
        _check_confirmed(confirm)
        return _choose(await self._connect(context).register(name, query, start=start), "name", "state", "registered", "warnings")

    async def promote_query(
        self,
        context: Context[Any, Any],
        name: Name,
        query: Text,
        confirm: Confirm = False,
        change_columns: Annotated[bool, Field(description="True if the new text may have other columns.")] = False,
    ) -> Any:
        """Let a text take a standing query's place without a gap. It needs the user's agreement, and an admin's token."""
        _check_confirmed(confirm)
        return _choose(await self._connect(context).promote(name, query, change_columns=change_columns), "name", "state", "promotion", "warnings")


def make_tools(connect: Connect) -> dict[str, Tool]:
    """Return the tools by their names."""
    tools = QueryTools(connect)
    reading = (
        tools.show_language, tools.list_streams, tools.look_at_events, tools.list_queries, tools.check_query, tools.try_query,
        tools.read_solutions, tools.explain_solution, tools.diagnose_query,
    )  # fmt: skip
    made = [Tool.from_function(each, annotations=ToolAnnotations(read_only_hint=True)) for each in reading]
    adding = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False)
    replacing = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True)
    made += [Tool.from_function(tools.register_query, annotations=adding), Tool.from_function(tools.promote_query, annotations=replacing)]
    return {tool.name: tool for tool in made}


async def read_solution_lines(client: AsyncClient, name: str, limit: int, after: str | None = None, wait_s: float = 0.0) -> list[dict[str, Any]]:
    """Return solutions, or changes of a revised query, as the server writes them.

    They are the newest ones, newest first, or those after an id, where an empty one is before all. Then a first one
    is waited for.
    """
    place = {"order": "newest"} if after is None else {"wait": wait_s} | ({"after": after} if after else {})
    wish = {"limit": limit} | place
    _, _, content = await client.request("GET", f"/queries/{segment(name)}/solutions?{urlencode(wish)}", Accept=_NDJSON)
    return [json.loads(line) for line in content.splitlines()]


def _check_confirmed(confirm: bool) -> None:
    if not confirm:
        raise ToolError(_NOT_CONFIRMED)


async def _report(context: Context[Any, Any], trial: dict[str, Any]) -> None:
    """Tell a caller that wishes to know how far a trial is."""
    if progress := trial["progress"]:
        await context.report_progress(progress["position"] - progress["from"], progress["to"] - progress["from"], f"{progress['rows']:,} events")


def _summarize_profile(profile: dict[str, Any]) -> dict[str, Any]:
    """Return the names that events carry with their counts, and an example of each."""
    shown = {}
    for kind in ("predicates", "classes", "datatypes"):
        names = profile[kind]["names"]
        shown[kind] = [_choose(each, "name", "count", "example") if kind == "predicates" else _choose(each, "name", "count") for each in names[:50]]
    return {"events": profile["events"], **shown}


def _choose(document: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the members of these names that there are."""
    return {name: document[name] for name in names if name in document}

"""The dialogue of docs/cookbook/assistant.md: its commands are run, its calls are made, and the answers compared."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from mcp.client import Client as Assistant

from epsparql.async_client import AsyncClient
from epsparql.client import Client
from server.mcp.mcp_server import McpServer
from tests.server.conftest import DEADLINE_S, serving, until
from tests.server.mcp.assistant import ROOT, texts_of
from tests.server.service.test_cookbook import BASE, LEFT_OUT, run_commands

PAGE = (ROOT / "docs" / "cookbook" / "assistant.md").read_text(encoding="utf-8")
CALL = re.compile(r"^```call\n(\w+) (.*)\n```\n```answer\n(.*)\n```$", re.MULTILINE)


@pytest.mark.slow
def test_the_dialogue(tmp_path: Path) -> None:
    async def talk(url: str) -> int:
        async with Assistant(McpServer(lambda token: AsyncClient(url, token), None).protocol) as assistant:
            for tool, arguments, expected in CALL.findall(PAGE):
                if tool == "read_solutions":
                    await asyncio.to_thread(until, lambda: Client(url).query("warmer")["solutions"] == 1, "the solution", DEADLINE_S)
                _, data = texts_of((await assistant.call_tool(tool, json.loads(arguments))).content)
                pattern = ".*?".join(map(re.escape, expected.split(LEFT_OUT)))
                assert re.fullmatch(pattern, data), f"{tool}\n{data}"
            return len((await assistant.list_tools()).tools)

    with serving(tmp_path / "data") as url:
        assert run_commands(PAGE, tmp_path, {BASE: url}) == 1
        count = asyncio.run(talk(url))
    assert len(CALL.findall(PAGE)) == 6
    table = PAGE.split("## Tools and resources")[1]
    assert len(re.findall(r"`[a-z]+_[a-z_]+`", table.split("\n\n")[0])) == count

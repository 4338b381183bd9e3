"""An assistant without a model: the SDK's client, with `epsparql mcp` as a process or in this one."""

import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters
from mcp.client import Client as Assistant
from mcp.client.stdio import stdio_client
from mcp_types import TextContent, TextResourceContents

from server.mcp.answers import NOTICE
from tests.server.conftest import until

ROOT = Path(__file__).parents[3]


@asynccontextmanager
async def assisting(url: str, token: str | None, mode: str = "auto", **chosen: Any) -> AsyncIterator[Assistant]:
    """Yield a client of `epsparql mcp`, a process with which it speaks over stdio."""
    environment = {"EPSPARQL_SERVER": url} | ({"EPSPARQL_TOKEN": token} if token else {})
    command = StdioServerParameters(command=sys.executable, args=["-m", "server.cli", "mcp"], env=environment, cwd=str(ROOT))
    async with Assistant(stdio_client(command), mode=mode, **chosen) as assistant:
        yield assistant


@contextmanager
def serving_http(url: str, **variables: str) -> Iterator[str]:
    """Yield the address of `epsparql mcp --http`, a process of its own for the server at a URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "server.cli", "mcp", "--http", str(port), "--server", url]
    with subprocess.Popen(command, env=variables, cwd=ROOT) as process:
        try:
            until(lambda: _is_listening(port), "epsparql mcp listens")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


def _is_listening(port: int) -> bool:
    with socket.socket() as plain:
        return plain.connect_ex(("127.0.0.1", port)) == 0


def texts_of(parts: Iterable[Any]) -> list[str]:
    """Return the texts of the parts of an answer, all of which are texts."""
    found = list(parts)
    assert all(isinstance(part, TextContent | TextResourceContents) for part in found)
    return [part.text for part in found]


async def ask(assistant: Assistant, tool: str, **arguments: Any) -> Any:
    """Call a tool, and return its data, which stand after the notice."""
    answer = await assistant.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return read_data(answer.content)


def read_data(parts: Iterable[Any]) -> Any:
    notice, data = texts_of(parts)
    assert notice == NOTICE
    return json.loads(data)


async def refusal(assistant: Assistant, tool: str, **arguments: Any) -> str:
    """Call a tool, and return why that fails."""
    answer = await assistant.call_tool(tool, arguments)
    assert answer.is_error
    return " ".join(texts_of(answer.content))

"""Builds the server of the Model Context Protocol, and runs it over stdio or HTTP.

Over stdio, one client starts the process, and requests go on with the token of the command. Over HTTP, each request
goes on with the token that it brings, so that nobody gets at the rights of others.
"""

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.stdio import stdio_server
from mcp_types import INVALID_PARAMS, CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent
from mcp_types import Tool as ToolDocument

from epsparql.async_client import AsyncClient
from epsparql.client import ApiError, Unreachable
from server.mcp.answers import NOTICE, explain_fault, write_data
from server.mcp.language_guide import INSTRUCTIONS
from server.mcp.query_resources import QueryResources
from server.mcp.query_tools import make_tools

_Request = ServerRequestContext[Any, Any]
MakeClient = Callable[[str | None], AsyncClient]
"""Returns a client with a token, or with none."""
_BEARER = "bearer "
_log = logging.getLogger("epsparql.mcp")


class McpServer:
    """Answers the requests of the protocol by those of a client of epsparql."""

    def __init__(self, make_client: MakeClient, token: str | None, *, over_http: bool = False) -> None:
        """Take what makes clients, and the token of all requests; over HTTP, each request has its own."""
        self._make_client, self._token, self._over_http = make_client, token, over_http
        self._tools = make_tools(lambda context: self._connect(context.request_context))
        resources = QueryResources(self._connect)
        self.protocol: Server[Any] = Server(
            "epsparql",
            version=version("epsparql"),
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=resources.list_resources,
            on_list_resource_templates=resources.list_templates,
            on_read_resource=resources.read_resource,
            on_subscriptions_listen=resources.listen,
            on_subscribe_resource=None if over_http else resources.subscribe,
            on_unsubscribe_resource=None if over_http else resources.unsubscribe,
        )

    def _connect(self, request: _Request) -> AsyncClient:
        """Return the client of a request."""
        if not self._over_http:
            return self._make_client(self._token)
        header = request.request.headers.get("authorization", "") if request.request is not None else ""
        return self._make_client(header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else None)

    async def _list_tools(self, _: _Request, __: PaginatedRequestParams | None) -> ListToolsResult:
        listed = [
            ToolDocument(name=tool.name, description=tool.description, input_schema=tool.parameters, annotations=tool.annotations)
            for tool in self._tools.values()
        ]
        return ListToolsResult(tools=listed)

    async def _call_tool(self, request: _Request, wish: CallToolRequestParams) -> CallToolResult:
        """Answer a call by the notice and the data. A fault that the caller may mend is an answer, too.

        Raises: MCPError where there is no such tool, which the protocol counts as a fault of the client's program.
        """
        tool = self._tools.get(wish.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {wish.name[:100]!r}; there are {', '.join(self._tools)}")
        try:
            parts = [NOTICE, write_data(await tool.run(wish.arguments or {}, Context(request_context=request)))]
        except ToolError as fault:
            return CallToolResult(content=[_part(text) for text in _explain_failure(fault)], is_error=True)
        return CallToolResult(content=[_part(text) for text in parts])

    async def run_stdio(self) -> None:
        """Serve the client at stdin and stdout until it ends."""
        async with stdio_server() as (incoming, outgoing):
            await self.protocol.run(incoming, outgoing, self.protocol.create_initialization_options())

    async def run_http(self, port: int) -> None:
        """Serve `/mcp` on a port of this machine, until a signal."""
        import uvicorn

        app = self.protocol.streamable_http_app(stateless_http=True)
        # h11 removes the space around a header's value, as HTTP says; httptools leaves it.
        await uvicorn.Server(uvicorn.Config(app, "127.0.0.1", port, http="h11", log_level="warning")).serve()


def _explain_failure(fault: ToolError) -> list[str]:
    """Return the parts of the answer to a call that failed; what the server says may hold data, and is marked."""
    match fault.__cause__:
        case ApiError() as refused:
            return [NOTICE, write_data(explain_fault(refused))]
        case OSError() | Unreachable() as silent:
            return [explain_fault(silent)]
        case ToolError() as told:
            return [str(told)]
        case unforeseen if isinstance(fault, UnexpectedToolError):
            _log.error("%s", fault, exc_info=unforeseen)
    return [str(fault)]


def _part(text: str) -> TextContent:
    return TextContent(type="text", text=text)

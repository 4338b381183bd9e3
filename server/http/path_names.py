"""Reads names in paths. Each is one percent-encoded segment, so an IRI's slashes arrive as %2F."""

from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import Depends, Path
from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.problem_details import bad_request


class RawPath:
    """Routes by the path as it was sent. A decoded path would have split an encoded slash into two segments."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path")
        if scope["type"] in ("http", "websocket") and raw:
            scope["path"] = raw.decode("latin-1").partition("?")[0]
        await self._app(scope, receive, send)


def decode_name(segment: str) -> str:
    """Decode the name in a path segment.

    Raises: Fault 400 for a segment that does not encode UTF-8 text, or whose text is no name.
    """
    try:
        name = unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise bad_request("bad-name", f"the path segment {segment!r} is not percent-encoded UTF-8") from None
    if not name or min(name) < " ":
        raise bad_request("bad-name", f"{name!r} is no name: it is empty or holds control characters")
    if name in (".", ".."):
        raise bad_request("bad-name", f"{name!r} is no name: clients take it for a step in the path, encoded or not")
    return name


def encode_name(name: str) -> str:
    return quote(name, safe="")


async def _name(  # FastAPI would call a function in another thread, for each request
    name: Annotated[str, Path(description="Percent-encoded as one path segment")],
) -> str:
    return decode_name(name)


async def _instance(  # as above
    instance: Annotated[str, Path(description="The id of an instance, percent-encoded as one path segment")],
) -> str:
    return decode_name(instance)


Name = Annotated[str, Depends(_name)]
Instance = Annotated[str, Depends(_instance)]

"""Serves the console: static files that Vite made of `console/` at the top of the project, and that come with the
server.

The files ask for nothing that the policy on all answers (`server.observability.middleware`) forbids.
"""

import asyncio
import hashlib
import re
from http import HTTPStatus
from pathlib import Path

from fastapi import APIRouter, Request, Response

from server.http.problem_details import Fault, Problem

router = APIRouter(include_in_schema=False)
DIST = Path(__file__).parents[1] / "console" / "dist"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_FILE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
_FOR_EVER, _ASK = "public, max-age=31536000, immutable", "no-cache"


@router.get("/")
async def console(request: Request) -> Response:
    return await _answer(request, "index.html", _ASK)


@router.get("/console/{file}")
async def console_file(file: str, request: Request) -> Response:
    """Serve a file for browsers to keep: its name holds a hash of its content."""
    return await _answer(request, file, _FOR_EVER)


async def _answer(request: Request, file: str, kept: str) -> Response:
    """Answer without a token. The files hold nothing of the server's data, and a page must be there to ask for a token."""
    path = DIST / file if file == "index.html" else DIST / "console" / file
    if not _FILE.fullmatch(file) or path.suffix not in _TYPES or not path.is_file():
        raise Fault(Problem(HTTPStatus.NOT_FOUND, "not-found", f"the console has no file {file!r}; it starts at /"))
    body, tag = await asyncio.to_thread(_read_asset, path)
    headers = {"Cache-Control": kept, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(body, media_type=_TYPES[path.suffix], headers=headers)


def _read_asset(path: Path) -> tuple[bytes, str]:
    body = path.read_bytes()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'

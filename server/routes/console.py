"""Serves the console: static files that Vite made of `console/` at the top of the project, and that come with the
server. Its users may sign in at an issuer (`server.tokens.sign_in`).

The files ask for nothing that the policy on all answers (`server.observability.middleware`) forbids.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from server.dependencies import Shared
from server.http.body_parsing import parse_json_object, read_body, read_text_member
from server.http.problem_details import Fault, Problem, bad_request
from server.tokens.issuer_keys import IssuerSilent
from server.tokens.sign_in import SignIn, SignInRefused

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


# ---------------------------------------------------------------- sign-in
_LONGEST = 1 << 14
_CODE, _REFRESH = ("code", "verifier", "redirect_uri"), "refresh_token"


async def _find_sign_in(request: Request, service: Shared) -> SignIn | None:
    """Return the way to sign in; None where there is none. Raises: Fault 403 for a page of a foreign origin."""
    gate = service.admission.gate
    gate.check_origin(request.headers)
    return gate.sign_in


Signing = Annotated[SignIn | None, Depends(_find_sign_in)]


@router.get("/sign-in")
async def get_sign_in(signing: Signing) -> dict[str, Any] | None:
    """Answer with the issuer's address and the parameters for it; null where users sign in by tokens alone."""
    if signing is None:
        return None
    with _telling():
        return await signing.describe_offer()


@router.post("/sign-in")
async def post_sign_in(signing: Signing, request: Request) -> dict[str, Any]:
    """Answer with the issuer's tokens for a code, or for a refresh token."""
    if signing is None:
        raise Fault(Problem(HTTPStatus.NOT_FOUND, "no-sign-in", "this server was given no --oidc-client-id; enter a token"))
    found = parse_json_object(await read_body(request, _LONGEST), (*_CODE, _REFRESH))
    given = {name: read_text_member(found, name, "") for name in found}
    with _telling():
        if given.keys() == {_REFRESH}:
            return await signing.refresh_tokens(given[_REFRESH])
        if given.keys() == {*_CODE}:
            return await signing.exchange_code(given["code"], given["verifier"], given["redirect_uri"])
    raise bad_request("bad-sign-in", f"the body needs {', '.join(_CODE)}, or {_REFRESH} alone", expected="a JSON object of these members")


@contextmanager
def _telling() -> Iterator[None]:
    """Turn what the issuer refuses into a fault of the request."""
    try:
        yield
    except SignInRefused as refused:
        raise Fault(Problem(HTTPStatus.FORBIDDEN, "sign-in-refused", str(refused))) from None
    except IssuerSilent as fault:
        headers = {"Retry-After": str(fault.retry_after_s)}
        raise Fault(Problem(HTTPStatus.SERVICE_UNAVAILABLE, "issuer-silent", str(fault), headers=headers)) from None

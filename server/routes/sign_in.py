"""Lets the console sign its user in at the issuer of the settings (`server.tokens.sign_in`).

These routes need no token, and only pages that may use this server can call them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from server.dependencies import Shared
from server.http.body_parsing import parse_json_object, read_body, read_text_member
from server.http.problem_details import Fault, Problem, bad_request
from server.tokens.issuer_keys import IssuerSilent
from server.tokens.sign_in import SignIn, SignInRefused

router = APIRouter(include_in_schema=False)
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

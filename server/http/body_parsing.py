"""Reads request bodies within a limit, and JSON objects with places for faults."""

import asyncio
import json
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Request
from pydantic import Field
from starlette.types import Scope

from engine.expressions.temporal import duration_micros
from engine.messages import Micros
from epsparql.solutions.policies import POLICIES, PolicyFault, read_policy
from pipeline.errors import locate_undecodable
from server.http.problem_details import Fault, Problem, bad_request, malformed_json, too_large
from server.settings import Settings

_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_HELD = "body_bytes"
_WINDOWS = {"gzip": 31, "deflate": 15}
"""The numbers by which zlib knows the formats of compressed bodies."""
PolicyText = Annotated[str, Field(description=f"This is the consumption policy: {', '.join(POLICIES[:-1])} or {POLICIES[-1]}.")]
MAX_DEPTH = 64
"""Arrays and objects of a JSON body are nested at most this deep."""


class BodyBudget:
    """Counts the bytes of bodies and WebSocket frames that are not answered yet; all share one limit.

    Runs on the event loop only.
    """

    def __init__(self, settings: Settings) -> None:
        self._most, self._held = max(settings.max_bodies, settings.max_body, settings.max_background), 0
        self._freed = asyncio.Event()

    def check_room(self, size: int) -> None:
        """Check that there is room for so many more bytes. Raises: Fault 429."""
        if self._held + size > self._most:
            detail = f"the bodies of other requests leave no room for this one (max_bodies={self._most}); send it again later"
            raise Fault(Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-bodies", detail, headers={"Retry-After": "1", "Connection": "close"}))

    def reserve_bytes(self, size: int) -> None:
        """Count so many bytes until `release_bytes`. Raises: Fault 429."""
        self.check_room(size)
        self._held += size

    def reserve_body(self, scope: Scope, size: int) -> None:
        """Count so many bytes until `release_body` of the same scope. Raises: Fault 429."""
        self.reserve_bytes(size)
        state = scope.setdefault("state", {})
        state[_HELD] = state.get(_HELD, 0) + size

    def release_body(self, scope: Scope) -> None:
        """Release the bytes of a request that is over."""
        self.release_bytes(scope.get("state", {}).pop(_HELD, 0))

    async def reserve_frame(self, size: int) -> None:
        """Wait until there is room for a frame, or nothing else is held, and count its bytes until `release_bytes`."""
        while self._held and self._held + size > self._most:
            self._freed.clear()
            await self._freed.wait()
        self._held += size

    def release_bytes(self, size: int) -> None:
        self._held -= size
        self._freed.set()


def describe_body(content: Mapping[str, Mapping[str, Any]], *, required: bool = True) -> dict[str, Any]:
    """Return what the HTTP document says of a route's body: what it is in each media type."""
    return {"requestBody": ({"required": True} if required else {}) | {"content": content}}


def describe_content(model: str | None = None, example: object = None) -> dict[str, Any]:
    """Return what the HTTP document says of a body in one media type: it is of a model, or any text."""
    schema = {"type": "string"} if model is None else {"$ref": f"#/components/schemas/{model}"}
    return {"schema": schema} | ({} if example is None else {"example": example})


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body of a request.

    Raises: Fault 413 as soon as more than `limit` bytes are announced or come; 415 for an encoded body; 408 for a
    body that does not come in time; 429 where the bodies of other requests leave no room. A client that hangs up
    causes a Fault 400, which only the log shows.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise _unknown_encoding(encoding, "no Content-Encoding")
    return await _receive_body(request, limit)


async def read_compressed_body(request: Request, limit: int) -> bytes:
    """Return the body of a request, which may be compressed by gzip or deflate.

    Raises: Fault like `read_body`. Neither the body nor what it expands to has more than `limit` bytes.
    """
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding != "identity" and encoding not in _WINDOWS:
        raise _unknown_encoding(encoding, f"{', '.join(_WINDOWS)}, or no Content-Encoding")
    body = await _receive_body(request, limit)
    if encoding == "identity":
        return body
    expanded = await asyncio.to_thread(_expand, body, _WINDOWS[encoding], limit)
    request.app.state.service.admission.bodies.reserve_body(request.scope, len(expanded))
    return expanded


def _unknown_encoding(encoding: str, expected: str) -> Fault:
    detail = f"bodies with the Content-Encoding {encoding!r} are not accepted"
    return Fault(Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "content-encoding", detail, expected=expected))


def _expand(body: bytes, window: int, limit: int) -> bytes:
    """Return a compressed body as it was. Raises: Fault 400 or 413."""
    decoder = zlib.decompressobj(window)
    try:
        expanded = decoder.decompress(body, limit + 1)
    except zlib.error as error:
        raise bad_request("content-encoding", f"the body cannot be decompressed: {error}", expected="what Content-Encoding says") from None
    if len(expanded) > limit:
        raise Fault(too_large("decompressed body", limit))
    if not decoder.eof or decoder.unused_data:
        fault = "ends early" if not decoder.eof else "is followed by other bytes"
        raise bad_request("content-encoding", f"the compressed body {fault}", expected="one whole compressed body")
    return expanded


async def _receive_body(request: Request, limit: int) -> bytes:
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > limit:
        raise Fault(too_large("body", limit))
    settings: Settings = request.app.state.service.settings
    bodies: BodyBudget = request.app.state.service.admission.bodies
    if announced.isdigit():
        bodies.check_room(int(announced))
    parts: list[bytes] = []
    size, loop = 0, asyncio.get_running_loop()
    end_s, more = loop.time() + settings.body_total_s, True
    try:
        async with asyncio.timeout_at(min(end_s, loop.time() + settings.body_s)) as patience:
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise bad_request("hung-up", f"the client hung up after {size} bytes of the body")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if size > limit:
                    raise Fault(too_large("body", limit))
                bodies.reserve_body(request.scope, len(part))
                parts.append(part)
                if more:
                    patience.reschedule(min(end_s, loop.time() + settings.body_s))
    except TimeoutError:
        detail = f"the body did not arrive in time: only {size} bytes did (body_s, body_total_s)"
        raise Fault(Problem(HTTPStatus.REQUEST_TIMEOUT, "slow-body", detail, headers={"Connection": "close"})) from None
    return b"".join(parts)


def read_media_type(request: Request) -> str:
    """Return the media type of the body, without parameters; empty if the request names none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def decode_text(body: bytes) -> str:
    """Decode the body as UTF-8. Raises: Fault 400 that gives the place of the first byte which is not UTF-8."""
    try:
        return body.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        place = locate_undecodable(error)
        raise Fault(Problem(bad_request("", "").problem.status, "bad-encoding", "the body is not UTF-8", *place, "UTF-8 text")) from None


def parse_json_object(body: bytes, members: Iterable[str]) -> dict[str, Any]:
    """Parse a JSON object with some of `members`; an empty body is an empty object.

    Raises: Fault 400, with the place where the JSON is malformed, if the parser gives one.
    """
    if not body.strip():
        return {}
    try:
        text = decode_text(body)
        _check_depth(text)
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise malformed_json(error) from None
    except (RecursionError, ValueError) as error:  # it is nested too deeply, or a number has thousands of digits
        raise bad_request("malformed-json", f"the body cannot be read: {error}", expected="a JSON object") from None
    if not isinstance(found, dict):
        raise bad_request("malformed-json", "the body is no JSON object", expected="a JSON object")
    allowed = tuple(members)
    for name in found:
        if name not in allowed:
            raise bad_request("unknown-member", f"the member {name!r} is not known here", expected=", ".join(allowed))
    return found


def _check_depth(text: str) -> None:
    """Check the nesting, before a parser goes deeper than MAX_DEPTH. Raises: Fault 400."""
    depth = 0
    for token in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > MAX_DEPTH:
            line, column = text.count("\n", 0, token.start()) + 1, token.start() - text.rfind("\n", 0, token.start())
            detail = f"the body is nested deeper than {MAX_DEPTH}"
            raise Fault(Problem(HTTPStatus.BAD_REQUEST, "too-deep", detail, line, column, "less deep JSON"))


def read_text_member(found: dict[str, Any], name: str, default: str) -> str:
    """Return a string member. Raises: Fault 400 for what is no string, or for a string that UTF-8 cannot encode."""
    value = found.get(name, default)
    if not isinstance(value, str):
        raise bad_request("invalid-member", f"{name} must be a string, not {_describe_value(value)}", expected="a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        detail = f"{name} holds half of a surrogate pair, {json.dumps(value[error.start])}, as its character {error.start + 1}"
        raise bad_request("invalid-member", detail, expected="a string of Unicode characters") from None
    return value


def read_choice_member(found: dict[str, Any], name: str, choices: tuple[str, ...], default: str, query: str | None = None) -> str:
    """Return a string member that is one of some choices. Raises: Fault 400."""
    value = read_text_member(found, name, default)
    if value not in choices:
        raise bad_request("invalid-member", f"{name} cannot be {value!r}", expected=" or ".join(choices), query=query)
    return value


def read_policy_member(found: dict[str, Any], default: str, query: str | None = None) -> str:
    """Return the consumption policy of a body. Raises: Fault 400."""
    value = read_text_member(found, "policy", default)
    try:
        return read_policy(value)
    except PolicyFault:
        raise bad_request("invalid-member", f"policy cannot be {value!r}", expected=" or ".join(POLICIES), query=query) from None


def read_flag_member(found: dict[str, Any], name: str) -> bool:
    """Return a boolean member; one that is missing is false. Raises: Fault 400."""
    value = found.get(name, False)
    if not isinstance(value, bool):
        raise bad_request("invalid-member", f"{name} is {_describe_value(value)}", expected="true or false")
    return value


def read_names_member(found: dict[str, Any], name: str, most: int, longest: int) -> tuple[str, ...]:
    """Return an array of different strings of 1 to `longest` characters, at most `most` of them. Raises: Fault 400."""
    values = found.get(name, [])
    expected = f"at most {most} different strings of 1 to {longest} characters"
    if not isinstance(values, list) or len(values) > most:
        shown = f"{len(values)} members" if isinstance(values, list) else _describe_value(values)
        raise bad_request("invalid-member", f"{name} must be an array of at most {most} strings, not {shown}", expected=expected)
    read = tuple(read_text_member({f"{name}[{k}]": value}, f"{name}[{k}]", "") for k, value in enumerate(values))
    for k, value in enumerate(read):
        if not 1 <= len(value) <= longest:
            raise bad_request("invalid-member", f"{name}[{k}] has {len(value)} characters", expected=expected)
    if len(set(read)) < len(read):
        twice = next(value for k, value in enumerate(read) if value in read[:k])
        raise bad_request("invalid-member", f"{name} has {twice!r} twice", expected=expected)
    return read


def _describe_value(value: object) -> str:
    """Return a JSON value for a message; objects and arrays are only named."""
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case _:
            return json.dumps(value)


def read_duration_member(found: dict[str, Any], name: str) -> Micros | None:
    """Return a day-time duration, from xsd:duration text or a number of seconds; None where it is absent or null.

    Raises: Fault 400.
    """
    value = found.get(name)
    if value is None:
        return None
    micros = None
    if isinstance(value, str):
        micros = duration_micros(value)
    elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12:
        micros = round(value * 1_000_000)
    if micros is None or micros < 0:
        detail = f'{name} must be a day-time duration such as "PT10S", or a number of seconds; not {_describe_value(value)}'
        raise bad_request("invalid-duration", detail, expected="a day-time duration that is not negative")
    return micros


def format_duration(micros: Micros | None) -> str | None:
    """Return the shortest plain spelling in seconds, which `read_duration_member` reads."""
    if micros is None:
        return None
    seconds, rest = divmod(micros, 1_000_000)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"PT{seconds}{fraction}S"

"""Answers faults of the doors of OTLP as the protocol prescribes: by the message google.rpc.Status, in the media type
of the request.
"""

import json
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from epsparql.events.media_types import JSON
from server.http.body_parsing import read_media_type
from server.http.problem_details import FORESEEN, Problem, describe_exception

PROTOBUF = "application/x-protobuf"
_CODES = {
    HTTPStatus.UNAUTHORIZED: 16,
    HTTPStatus.FORBIDDEN: 7,
    HTTPStatus.CONFLICT: 9,
    HTTPStatus.REQUEST_TIMEOUT: 4,
    HTTPStatus.TOO_MANY_REQUESTS: 8,
    HTTPStatus.NOT_IMPLEMENTED: 12,
    HTTPStatus.SERVICE_UNAVAILABLE: 14,
}
"""The codes of gRPC for statuses of HTTP; others are 3, an invalid argument."""
_INVALID, _LONGEST = 3, 2_000


class OtlpRoute(APIRoute):
    """Represents a route whose faults are answered by Status. Requests of other media types get a problem document."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except FORESEEN as fault:
                media_type = read_media_type(request)
                if media_type not in (PROTOBUF, JSON):
                    raise
                problem = describe_exception(fault).redact(all_names=getattr(request.state, "all_names", False))
                return write_status(problem, media_type)

        return answer


def write_status(problem: Problem, media_type: str) -> Response:
    """Return the answer that tells a sender in `media_type` of a problem."""
    code = _CODES.get(problem.status, _INVALID)
    place = "" if problem.line is None else f"line {problem.line}, column {problem.column}: "
    message = f"{problem.code}: {place}{problem.detail}{f'; expected {problem.expected}' if problem.expected else ''}"[:_LONGEST]
    content = json.dumps({"code": code, "message": message}).encode() if media_type == JSON else _encode_status(code, message.encode())
    return Response(content, int(problem.status), headers=dict(problem.headers), media_type=media_type)


def _encode_status(code: int, message: bytes) -> bytes:
    """Return google.rpc.Status in protobuf: the varint 1 is the code, and the text 2 the message."""
    size, length = bytearray(), len(message)
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([0x08, code, 0x12, *size, length]) + message

"""Takes logs, metrics and traces of OpenTelemetry by OTLP over HTTP, as SDKs and Collectors send them."""

import asyncio
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel

from epsparql.events.media_types import JSON
from epsparql.events.on_error import DEAD_LETTER
from epsparql.extras import MissingExtra
from pipeline.log import Ack
from pipeline.mapping.mapper import MappedBody
from pipeline.otlp.export_request import MOST_BODY, SIGNALS, Signal
from pipeline.otlp.telemetry_body import read_telemetry
from pipeline.rejected_rows import describe_rejected
from server.dependencies import INGEST, Shared
from server.http.body_parsing import describe_body, read_compressed_body, read_media_type
from server.http.otlp_status import PROTOBUF, OtlpRoute
from server.http.path_names import Name
from server.http.problem_details import MEDIA_TYPE, Fault, Problem, phrase
from server.routes.streams.ingest import check_backlog, get_stream_settings, undeclared_source_warning, wrong_unit_warning
from server.service import Service

router = APIRouter(tags=["streams"], route_class=OtlpRoute)
_STATUSES = (400, 401, 403, 408, 409, 413, 415, 422, 429, 501, 503)


class StatusDocument(BaseModel):
    """Describes a fault as google.rpc.Status does. Requests in protobuf get this message in protobuf."""

    code: int
    message: str


class PartialSuccess(BaseModel):
    """Describes records that were rejected, which must not be sent again, or a warning.

    The count is a number in a string. It is named `rejectedLogRecords`, `rejectedDataPoints` or `rejectedSpans`.
    """

    errorMessage: str


class ExportDocument(BaseModel):
    """Answers an export. Requests in protobuf get this message in protobuf."""

    partialSuccess: PartialSuccess | None = None


def _describe_answers(statuses: Iterable[int], model: str, more: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """Return OpenAPI's description of answers in both media types, and in `more`."""
    content = {JSON: {"schema": {"$ref": f"#/components/schemas/{model}"}}, PROTOBUF: {"schema": _BYTES}, **more}
    return {status: {"description": phrase(HTTPStatus(status)), "content": content} for status in statuses}


_BYTES = {"type": "string", "format": "binary"}
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
_EXAMPLE = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "1767225600000000000", "body": {"stringValue": "started"}}]}]}]}
_BODY = describe_body(
    {PROTOBUF: {"schema": _BYTES}, JSON: {"schema": {"type": "object"}, "example": _EXAMPLE}},
    required=False,
)


@router.post(
    "/streams/{name}/otlp/v1/{signal}",
    dependencies=[INGEST],
    response_class=Response,
    summary="Send telemetry by OTLP; the answer comes when it is durable",
    responses=_describe_answers([200], "ExportDocument", {}) | _describe_answers(_STATUSES, "StatusDocument", _PROBLEM),
    openapi_extra=_BODY,
)
async def post_telemetry(
    name: Name,
    signal: Annotated[Literal["logs", "metrics", "traces"], Path(description="This says what the records are.")],
    request: Request,
    service: Shared,
) -> Response:
    check_backlog(service)
    media_type = read_media_type(request)
    if media_type not in (PROTOBUF, JSON):
        detail = f"{media_type!r} is not a media type of OTLP"
        raise Fault(Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", detail, expected=f"{PROTOBUF} or {JSON}"))
    body = await read_compressed_body(request, min(service.settings.max_body, MOST_BODY))
    arrived, skips = service.clock(), get_stream_settings(service, name).on_error != DEAD_LETTER
    try:
        found = await asyncio.to_thread(read_telemetry, body, signal, is_json=media_type == JSON, arrived=arrived, skips=skips)
    except MissingExtra as missing:
        raise Fault(Problem(HTTPStatus.NOT_IMPLEMENTED, "missing-extra", str(missing))) from None
    ack = Ack(0)
    if found.mapped.rows or found.mapped.rejected:
        submitted = service.intake.submit(name, found.mapped, found.key, None, arrived)
        await service.intake.wait_for(submitted)
        ack = submitted.result()
    return _confirm(SIGNALS[signal], found.mapped, _find_warning(service, name, ack), media_type)


def _find_warning(service: Service, name: str, ack: Ack) -> str | None:
    """Return what the sender should know of records that were taken."""
    if ack.late:
        return f"{ack.late} of {ack.accepted} triples came late, so queries do not see them; set a max_delay for the stream {name!r}"
    return undeclared_source_warning(service, name, None) or wrong_unit_warning(service, name)


def _confirm(signal: Signal, mapped: MappedBody, warning: str | None, media_type: str) -> Response:
    """Return the answer to records that are in the log, or were rejected."""
    answer, count = signal.new_message("Response"), len(mapped.rejected) + mapped.beyond
    if count or warning:
        partial = answer.partial_success
        setattr(partial, signal.rejected, count)
        partial.error_message = describe_rejected(mapped.rejected, mapped.beyond) if count else warning
    if media_type == PROTOBUF:
        return Response(answer.SerializeToString(), media_type=PROTOBUF)
    from google.protobuf.json_format import MessageToJson

    return Response(MessageToJson(answer, indent=None), media_type=JSON)

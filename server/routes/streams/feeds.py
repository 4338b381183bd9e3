"""Shows what queries do not see of a stream: late events, and rows that did not map."""

import json
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel

from engine.messages import NO_ROWS
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import NDJSON
from pipeline.log import LateRow, RejectedRow
from pipeline.mapping.mapper import LONGEST_TEXT, MappedBody
from pipeline.rejected_rows import Rejected
from pipeline.source_positions import LONGEST_HEADER, parse_source
from server.dependencies import INGEST, Shared
from server.http.body_parsing import describe_body, describe_content, parse_json_object, read_body, read_text_member
from server.http.path_names import Name
from server.http.problem_details import bad_request, describe_responses
from server.routes.streams.ingest import Accepted

router = APIRouter(tags=["streams"])
_LETTER = ("reason", "text", "field")
FEED_RESPONSES = describe_responses(
    [404, 410], success={200: {"description": "Each line is a JSON object.", "content": {NDJSON: {"schema": {"type": "string"}}}}}
)
After = Annotated[int, Query(ge=0, description="This is the `offset` of the last line that was already read.")]
MostLines = Annotated[int, Query(ge=1, le=100_000, description="This limits the lines. Whole bodies are returned, so there may be a few more.")]


@router.get(
    "/streams/{name}/late",
    dependencies=[INGEST],
    summary="Show late events, which are not evaluated",
    responses=FEED_RESPONSES,
    response_class=Response,
)
async def get_late(
    name: Name,
    service: Shared,
    after: After = 0,
    limit: MostLines = 1000,
) -> Response:
    rows = await service.catalog.late_feed.read_rows(service.catalog.get_stream(name), after, limit)
    return Response("".join(_format_late_row(row) + "\n" for row in rows), media_type=NDJSON)


def _format_late_row(row: LateRow) -> str:
    times = {"start": row.start, "end": row.end, "watermark": row.watermark, "arrived": row.arrived}
    terms = {"s": row.s, "p": row.p, "o": row.o, "g": row.g}
    return json.dumps(terms | {name: iso(at) for name, at in times.items()} | {"offset": row.offset, "reason": row.reason}, ensure_ascii=False)


@router.get(
    "/streams/{name}/rejected",
    dependencies=[INGEST],
    summary="Show rows that did not map: the stream's dead-letter feed",
    responses=FEED_RESPONSES,
    response_class=Response,
)
async def get_rejected(
    name: Name,
    service: Shared,
    after: After = 0,
    limit: MostLines = 1000,
) -> Response:
    rows = await service.catalog.late_feed.read_rejected(service.catalog.get_stream(name), after, limit)
    return Response("".join(_format_rejected_row(row) + "\n" for row in rows), media_type=NDJSON)


def _format_rejected_row(row: RejectedRow) -> str:
    found = {"row": row.rejected.row, "field": row.rejected.field or None, "reason": row.rejected.reason, "text": row.rejected.text}
    return json.dumps(found | {"arrived": iso(row.arrived), "offset": row.offset}, ensure_ascii=False)


class DeadLetter(BaseModel):
    """Describes a message that could not be sent to the stream, with the reason and perhaps the field.

    The feed keeps 1,000 characters of its text.
    """

    reason: str
    text: str
    field: str = ""


@router.post(
    "/streams/{name}/rejected",
    dependencies=[INGEST],
    status_code=202,
    response_model_exclude_none=True,
    summary="Put a message that cannot be read into the stream's dead-letter feed",
    responses=describe_responses([400, 409, 413, 429]),
    openapi_extra=describe_body({"application/json": describe_content("DeadLetter")}),
)
async def post_rejected(
    name: Name,
    request: Request,
    service: Shared,
    epsparql_source: Annotated[
        str | None, Header(max_length=LONGEST_HEADER, description="This is the position of the message in its source, as for events.")
    ] = None,
) -> Accepted:
    found = parse_json_object(await read_body(request, service.settings.max_query), _LETTER)
    reason, text, field = (read_text_member(found, member, "")[:LONGEST_TEXT] for member in _LETTER)
    if not reason:
        raise bad_request("invalid-member", "reason is missing", expected="why the message cannot be read")
    source = None if epsparql_source is None else parse_source(epsparql_source)
    body = MappedBody(NO_ROWS, (Rejected(1, field, reason, text),), 0)
    submitted = service.intake.submit(name, body, None, source, service.clock())
    await service.intake.wait_for(submitted)
    ack = submitted.result()
    return Accepted(accepted=0, offset=ack.offset, late=0, rejected=ack.rejected or None, duplicate=ack.duplicate or None)

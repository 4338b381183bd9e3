"""Shows what queries do not see of a stream: late events, and rows that did not map."""

import json
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response

from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import NDJSON
from pipeline.log import LateRow, RejectedRow
from server.dependencies import INGEST, Shared
from server.http.path_names import Name
from server.http.problem_details import describe_responses

router = APIRouter(tags=["streams"])
FEED_RESPONSES = describe_responses(
    HTTPStatus.NOT_FOUND,
    HTTPStatus.GONE,
    success={200: {"description": "Each line is a JSON object.", "content": {NDJSON: {"schema": {"type": "string"}}}}},
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

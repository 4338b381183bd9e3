"""Proposes a mapping for the rows that somebody wants to send to a stream."""

import asyncio
import json
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from epsparql.events.media_types import CSV, JSON, LINES
from pipeline.mapping.mapping import check_base
from server.dependencies import INGEST, Shared
from server.http.body_parsing import describe_body, describe_content, read_body, read_media_type
from server.http.path_names import Name
from server.http.problem_details import Fault, Problem, bad_request, describe_responses
from server.routes.streams.ingest import EXAMPLES, get_stream_settings

router = APIRouter(tags=["streams"])
_BASE = "http://example.org/"  # names of a proposed mapping are relative to this IRI where nothing else is said


class ChoiceDocument(BaseModel):
    """Describes something that the rows leave open: the value that was taken, and the others that can be.

    `order` and `time_zone` are set by parameters of these names, and others by the parameter `choices`. An empty time
    zone is UTC.
    """

    setting: str
    value: str
    alternatives: list[str]


class MappingProposal(BaseModel):
    """Proposes a mapping for a stream, with each guess and its alternative, and the triples of the first three rows."""

    mapping: dict[str, Any]
    comments: list[str]
    choices: list[ChoiceDocument]
    preview: list[list[str]] = Field(description="The triples of each of the first three rows, as Turtle writes them, with their time as a comment.")


@router.post(
    "/streams/{name}/mapping",
    dependencies=[INGEST],
    summary="Propose a mapping from the rows of a body; nothing is set or sent",
    responses=describe_responses([400, 413, 415, 422]),
    openapi_extra=describe_body({media: describe_content(example=EXAMPLES[media]) for media in (CSV, JSON, LINES)}),
)
async def propose_stream_mapping(
    name: Name,
    request: Request,
    service: Shared,
    base: Annotated[str | None, Query(description="Names are relative to this IRI, if the stream has no base.")] = None,
    order: Annotated[
        Literal["day-first", "month-first"] | None,
        Query(
            description="Dates such as 04/01/2026 have the day or the month first. Without it, 422 `ambiguous-date` says that the rows do not tell."
        ),
    ] = None,
    time_zone: Annotated[str | None, Query(description="Times that name no zone are local to this one, such as Europe/Vienna or +01:00.")] = None,
    choices: Annotated[
        str | None, Query(description='An object of JSON that gives settings of a proposal another value, such as {"subject": "sensor"}.')
    ] = None,
) -> MappingProposal:
    from pipeline.proposals.proposal import AmbiguousDates, Choices, propose_mapping  # a start does without them

    media_type = read_media_type(request)
    if media_type not in (CSV, JSON, LINES):
        raise Fault(
            Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", "a mapping is for rows of CSV or JSON, or lines", expected=f"{CSV}, {JSON}, {LINES}"
            )
        )
    body = await read_body(request, service.settings.max_body)
    wanted = get_stream_settings(service, name).base or check_base(base or _BASE)
    decided = Choices(service.clock(), order, time_zone, _parse_choices(choices))
    try:
        found = await asyncio.to_thread(propose_mapping, body, media_type, wanted, decided)
    except AmbiguousDates as fault:
        expected = "the query parameter order, day-first or month-first"
        raise Fault(
            Problem(HTTPStatus.UNPROCESSABLE_ENTITY, fault.code, fault.message, expected=expected, members={"readings": fault.readings})
        ) from None
    return MappingProposal(
        mapping=found.document,
        comments=list(found.comments),
        choices=[ChoiceDocument(setting=each.setting, value=each.value, alternatives=list(each.alternatives)) for each in found.choices],
        preview=[list(triples) for triples in found.preview],
    )


def _parse_choices(text: str | None) -> dict[str, str]:
    """Return the decisions of a request by setting. Raises: Fault 400."""
    try:
        found = json.loads(text) if text is not None else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise bad_request("invalid-parameter", "the query parameter choices is no object of texts", expected='such as {"subject": "sensor"}')
    return found

"""Shows how a query is evaluated, as JSON, text or a mermaid flowchart."""

import asyncio
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from engine.runtime.introspection import SideName
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import Observed, explain_query
from server.dependencies import READ, Shared
from server.http.content_negotiation import choose_media_type
from server.http.path_names import Name
from server.http.problem_details import describe_responses
from server.service import Service

router = APIRouter(tags=["queries"])


class AlgebraItem(BaseModel):
    """Describes a node of the algebra, such as SeqJoin.

    `inputs` are the places in the list of the nodes that it is made of; `detail` describes everything else in it.
    """

    node: str
    detail: str
    inputs: list[int]


class PlanFilter(BaseModel):
    """Describes a condition that a step applies, in the `kernel` or by the `host`.

    `pushed_down` is true if the condition stands below an operator that the query has inside it.
    """

    condition: str
    by: Literal["kernel", "host"]
    pushed_down: bool


class PlanLimit(BaseModel):
    """Gives the longest duration that a step lets pass."""

    duration: str
    pushed_down: bool


class PlanStore(BaseModel):
    """Says how long a step keeps one side: `kept PT10S`, `kept for ever`, `kept for the instant`, `kept 3 rows each` or `not stored`."""

    side: str
    time: str


class PlanSide(BaseModel):
    """Counts the rows that came in at one side of a step, and the partial matches (`goals`) that wait there now."""

    side: SideName
    rows: int
    goals: int


class PlanLive(BaseModel):
    """Counts the rows of a step since the query was registered. `refused` ones did not pass its filters; `state_bytes` is what groups and windows hold.

    `out` is null for the outermost step, whose rows are the query's solutions. Sides without rows are left out.
    """

    sides: list[PlanSide]
    out: int | None
    refused: int
    state_bytes: int


class PlanStep(BaseModel):
    """Describes an operator, fed by the steps whose places in the list are its `inputs`.

    `on` are the variables that key its stored rows; `checks` are those that may be unbound.

    A step of a running query has `live`, which is null where the rows of the step are not known.
    """

    operator: str
    detail: str
    on: list[str]
    checks: list[str]
    within: PlanLimit | None
    filters: list[PlanFilter]
    keeps: list[PlanStore]
    inputs: list[int]
    live: PlanLive | None = None


class PlanMessageKey(BaseModel):
    """Names the message key by which a query could be partitioned, as a stream's settings have it."""

    key: str
    parts: list[str]


class PlanPartition(BaseModel):
    """Names the variable by which the query could be partitioned; null if there is none, for the `reason`.

    `message_key` is what its stream may declare, so that the query has a key; null if it has one already, or none is known.
    """

    key: str | None
    reason: str
    message_key: PlanMessageKey | None


class PlanRead(BaseModel):
    """Describes how the query uses the triples of the background that match a triple pattern.

    `copied` triples are kept by the query, with what they join. `looked up` means a lookup for each solution, in a table that queries share.
    `waiting` means that a stream must bring a first link of a path, which then takes in all of it.
    """

    pattern: str
    triples: int
    use: Literal["copied", "looked up", "waiting"]


class PlanReach(BaseModel):
    """Tells how long before a solution's end events may end on which it depends. `duration` is null where nothing bounds that, and then there is a reason."""

    duration: str | None
    reason: str


class PlanDocument(BaseModel):
    """Describes how a query is evaluated.

    The members are its canonical text, its algebra, the operators, the parts of its state that nothing bounds, and what it reads of the background.
    `reach` is how far it reaches back by itself, over an empty background. It is null for a rule over the background.

    `algebra` and `plan` are trees with their roots first. They are lists because plans are deeper than JSON parsers go. In a plan whose property path
    or rule is recursive, a step may feed several others.
    """

    query: str
    algebra: list[AlgebraItem]
    plan: list[PlanStep]
    partition: PlanPartition
    unbounded: list[str]
    reach: PlanReach | None
    background: list[PlanRead]


PLAN_FORMATS = {"application/json": "json", "text/plain": "text", "text/vnd.mermaid": "mermaid"}
_PLAN: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The plan",
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/PlanDocument"}},
            "text/plain": {"schema": {"type": "string"}},
            "text/vnd.mermaid": {"schema": {"type": "string"}},
        },
    }
}


@router.get(
    "/queries/{name}/plan",
    dependencies=[READ],
    summary="Show how the query is evaluated",
    responses=describe_responses(HTTPStatus.NOT_FOUND, HTTPStatus.NOT_ACCEPTABLE, success=_PLAN),
    response_class=Response,
)
async def get_plan(name: Name, request: Request, service: Shared) -> Response:
    media_type = choose_media_type(request.headers.get("accept"), tuple(PLAN_FORMATS))
    registration = service.catalog.get_query(name)
    found = await asyncio.to_thread(_explain_registration, service, registration, PLAN_FORMATS[media_type])
    return Response(found, media_type=media_type)


def _explain_registration(service: Service, registration: Registration, form: str) -> str:
    report = service.read_report()
    standing = report.queries.get(registration.registered) if report is not None else None
    keys = service.log.catalogue.message_keys
    observed = Observed(message_keys=keys) if standing is None else Observed(standing.reads, standing.operators, keys)
    return explain_query(registration.text, form, registration.default_graph, registration.policy, observed=observed)

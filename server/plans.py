"""How a query is evaluated, as JSON, text or a mermaid flowchart."""

import asyncio
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from server.access import READ, Shared
from server.compiled import explained
from server.names import Name
from server.negotiation import choose
from server.problems import described

router = APIRouter(tags=["queries"])


class AlgebraItem(BaseModel):
    """A node of the algebra, such as SeqJoin; `inputs` are the places in the list of the nodes that it is made of, `detail` is what it holds beside them."""

    node: str
    detail: str
    inputs: list[int]


class PlanFilter(BaseModel):
    """A condition that a step applies, in the `kernel` or by the `host`. `pushed_down`: it stands below an operator that the query has inside it."""

    condition: str
    by: Literal["kernel", "host"]
    pushed_down: bool


class PlanLimit(BaseModel):
    """The longest duration that a step lets pass."""

    duration: str
    pushed_down: bool


class PlanStore(BaseModel):
    """How long a step keeps what, in words: `kept PT10S`, `kept for ever`, `kept for the instant`, `kept 3 rows each`, `not stored`."""

    side: str
    time: str


class PlanStep(BaseModel):
    """An operator, fed by the steps whose places in the list are its `inputs`: `on` are the variables that key what it keeps, `checks` those that may be unbound."""

    operator: str
    detail: str
    on: list[str]
    checks: list[str]
    within: PlanLimit | None
    filters: list[PlanFilter]
    keeps: list[PlanStore]
    inputs: list[int]


class PlanPartition(BaseModel):
    """The variable by which the query could be spread over buckets; null: none, for the `reason`."""

    key: str | None
    reason: str


class PlanDocument(BaseModel):
    """How a query is evaluated: its canonical text, its algebra, the operators, and what of its state nothing bounds.

    `algebra` and `plan` are trees with their roots first. They are lists because plans are deeper than JSON parsers go, and a plan whose
    property path or rule goes round has a step that feeds several.
    """

    query: str
    algebra: list[AlgebraItem]
    plan: list[PlanStep]
    partition: PlanPartition
    unbounded: list[str]


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
    summary="How the query is evaluated",
    responses=described(HTTPStatus.NOT_FOUND, HTTPStatus.NOT_ACCEPTABLE, success=_PLAN),
    response_class=Response,
)
async def get_plan(name: Name, request: Request, service: Shared) -> Response:
    media_type = choose(request.headers.get("accept"), tuple(PLAN_FORMATS))
    registration = service.query(name)
    found = await asyncio.to_thread(explained, registration.text, PLAN_FORMATS[media_type], registration.default_graph, registration.policy)
    return Response(found, media_type=media_type)

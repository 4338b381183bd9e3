"""Shows how a query is evaluated, as JSON, text or a mermaid flowchart, and the partial matches that it keeps."""

import asyncio
from http import HTTPStatus
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from engine.runtime.introspection import PartialMatch, Side, SideName
from pipeline.formats.batches.timestamps import iso
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import Observed, explain_query, name_operands
from server.dependencies import READ, Shared
from server.http.content_negotiation import choose_media_type
from server.http.path_names import Name
from server.http.problem_details import describe_responses
from server.routes.queries import find_standing
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
    """Says until when a step keeps one side: `kept until PT10S after its end`, `kept for ever`, `kept for the
    instant`, `kept for ever (of a local node, for its entry)`, `kept 3 rows each` or `not stored`.
    """

    side: str
    time: str


class PlanSide(BaseModel):
    """Counts the rows that came in at one side of a step, and the partial matches (`goals`) that wait there now."""

    side: SideName
    rows: int
    goals: int


class PlanLive(BaseModel):
    """Counts the rows of a step since the query was registered. `refused` ones did not pass its filters;
    `state_bytes` is what groups and windows hold.

    For `type_errors` of the refused ones, a filter had no value: the datatypes do not fit, or a variable is unbound.

    `out` is null for the outermost step, whose rows are the query's solutions. Sides without rows are left out.
    """

    sides: list[PlanSide]
    out: int | None
    refused: int
    type_errors: int
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


class PlanSlices(BaseModel):
    """Says how partitions share a query by time, in turns: each reads slices of this `length`, and events that end so
    long `before` them.
    """

    length: str
    before: str


class PlanPartition(BaseModel):
    """Names the variable by which the query could be partitioned; null if there is none, for the `reason`.

    `message_key` is what its stream may declare, so that the query has a key; null if it has one already, or none is
    known. `slices` says how partitions share a query without a key by time; null if they do not.
    """

    key: str | None
    reason: str
    message_key: PlanMessageKey | None
    slices: PlanSlices | None


class PlanRead(BaseModel):
    """Describes how the query uses the triples of the background that match a triple pattern.

    `copied` triples are kept by the query, with what they join. `looked up` means a lookup for each solution, in a
    table that queries share. `waiting` means that a stream must bring a first link of a path, which then takes in all
    of it.
    """

    pattern: str
    triples: int
    use: Literal["copied", "looked up", "waiting"]


class PlanReach(BaseModel):
    """Tells how long before a solution's end events may end on which it depends.

    `duration` is null where nothing bounds that, and then there is a reason.
    """

    duration: str | None
    reason: str


class PlanDocument(BaseModel):
    """Describes how a query is evaluated.

    The members are its canonical text, its algebra, the operators, the parts of its state that nothing bounds, and
    what it reads of the background. `reach` is how far it reaches back by itself, over an empty background. It is
    null for a rule over the background.

    `algebra` and `plan` are trees with their roots first. They are lists because plans are deeper than JSON parsers
    go. In a plan whose property path or rule is recursive, a step may feed several others.
    """

    query: str
    algebra: list[AlgebraItem]
    plan: list[PlanStep]
    partition: PlanPartition
    unbounded: list[str]
    reach: PlanReach | None
    background: list[PlanRead]


class SideDocument(BaseModel):
    """Counts the partial matches (`goals`) that wait at one side of an operator for the other sides.

    `oldest` is the least end of them, null if all are timeless.
    """

    side: SideName
    goals: int
    oldest: str | None


class OperatorDocument(BaseModel):
    """Describes an operator that has state.

    `on` are the variables by which that state is found again. `state_bytes` is what groups and windows hold beside
    partial matches.
    """

    operator: str
    on: list[str]
    sides: list[SideDocument]
    state_bytes: int


class PartialMatchDocument(BaseModel):
    """Describes a partial match: `reached` of the `of` operands of the query's chain have matched, in the query's own
    words `operands`.

    `waits_for` are the others, none if only time is waited for. `binding` has a term in N-Triples for each bound
    variable.
    """

    reached: int
    of: int
    operands: list[str]
    waits_for: list[str]
    start: str
    end: str
    binding: dict[str, str]


class GoalsDocument(BaseModel):
    """Shows a query's partial matches (`goals`) by operator, outermost first, at a log position.

    `operands` are those of the query's chain, in its own words. `partial_matches` are those that may still be completed, by their ends: the oldest
    20. An ETALIS program has none here, and neither do the parts of a query whose operands are not joined, as under OPTIONAL.
    """

    offset: int
    goals: int
    state_bytes: int
    operators: list[OperatorDocument]
    operands: list[str]
    partial_matches: list[PartialMatchDocument]


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
    keys, instants = service.log.catalogue.message_keys, registration.instants
    observed = Observed((), None, keys, instants) if standing is None else Observed(standing.reads, standing.operators, keys, instants)
    return explain_query(registration.text, form, registration.default_graph, registration.policy, observed=observed)


@router.get(
    "/queries/{name}/goals", dependencies=[READ], summary="Show a query's partial matches", responses=describe_responses(HTTPStatus.NOT_FOUND)
)
async def get_goals(name: Name, service: Shared) -> GoalsDocument:
    return await asyncio.to_thread(_describe_goals, service, service.catalog.get_query(name))


def _describe_goals(service: Service, registration: Registration) -> GoalsDocument:
    report = service.read_report()
    standing = find_standing(report, registration)
    words = list(name_operands(registration.text, registration.default_graph, registration.policy))
    if report is None or standing is None:
        return GoalsDocument(
            offset=0 if report is None else report.position, goals=0, state_bytes=0, operators=[], operands=words, partial_matches=[]
        )
    operators = [
        OperatorDocument(
            operator=each.operator, on=list(each.on), sides=[_describe_side(side) for side in each.sides if side.goals], state_bytes=each.state_bytes
        )
        for each in standing.operators
        if each.keeps
    ]
    return GoalsDocument(
        offset=report.position,
        goals=standing.usage.goals,
        state_bytes=standing.usage.state_bytes,
        operators=operators,
        operands=words,
        partial_matches=[_describe_match(match, words) for match in standing.list_partial_matches()],
    )


def _describe_match(match: PartialMatch, words: list[str]) -> PartialMatchDocument:
    reached = slice(match.first, match.last + 1)
    return PartialMatchDocument(
        reached=match.last - match.first + 1,
        of=len(words),
        operands=words[reached],
        waits_for=words[: match.first] + words[match.last + 1 :],
        start=iso(match.start),
        end=iso(match.end),
        binding=match.binding,
    )


def _describe_side(side: Side) -> SideDocument:
    return SideDocument(side=side.side, goals=side.goals, oldest=None if side.oldest is None else iso(side.oldest))

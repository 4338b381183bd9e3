"""Shows how a query is evaluated, as JSON, text or a mermaid flowchart, and the partial matches that it keeps."""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from http import HTTPStatus
from itertools import accumulate
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

import epsparql
from engine.runtime.introspection import MOST_MATCHES, OLDEST, MatchOrder, MatchWish, PartialMatch, Side, SideName
from epsparql.etalis.header import is_program
from epsparql.etalis.parser.constants import written_term
from epsparql.ntriples import parse_term
from epsparql.terms import Variable
from epsparql.trees import walk_nodes
from pipeline.formats.batches.timestamps import iso
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import Observed, explain_query, name_operands
from pipeline.runners.engine_report import EngineReport
from server.dependencies import READ, Shared
from server.http.content_negotiation import choose_media_type
from server.http.path_names import Name
from server.http.problem_details import Fault, Problem, describe_responses
from server.http.query_parameters import check_names
from server.routes.queries import find_standing
from server.service import Service

router = APIRouter(tags=["queries"])
_PATIENCE_S, _POLL_S = 5.0, 0.02


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


class PlanWait(BaseModel):
    """Says which `event` of a program's rule is kept, and which one it waits for."""

    event: str
    waits_for: str


class PlanRule(BaseModel):
    """Describes a binary rule of a program: the `event` that it gives, and the `pattern` that this comes from.

    `rule` is the label or head of the program's rule. Events between the steps of a rule are named ie1, ie2 and so on.
    """

    rule: str
    event: str
    pattern: str
    waits: list[PlanWait]


class PlanDocument(BaseModel):
    """Describes how a query is evaluated.

    The members are its canonical text, its algebra, the operators, the parts of its state that nothing bounds, and
    what it reads of the background. A program also has its rules. `reach` is how far it reaches back by itself, over an
    empty background. It is null for a rule over the background.

    `algebra` and `plan` are trees with their roots first. They are lists because plans are deeper than JSON parsers
    go. In a plan whose property path or rule is recursive, a step may feed several others.
    """

    query: str
    rules: list[PlanRule]
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
    """Describes a partial match: `reached` of the `of` operands of a chain of the query have matched, in the query's own
    words `operands`.

    `waits_for` are the others, none if only time is waited for. `binding` has a term in N-Triples for each bound
    variable, and of a program a term as its text has it.
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

    `operands` are those of the query's chain, in its own words; of a UNION or a program, those of all chains that join
    some. `partial_matches` are those that may still be completed, by their ends: the oldest 20. Parts of a query whose
    operands are not joined, as under OPTIONAL, have none here.
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
    responses=describe_responses([404, 406], success=_PLAN),
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
    "/queries/{name}/goals",
    dependencies=[READ],
    summary="Show a query's partial matches",
    responses=describe_responses([400, 404, 503]),
)
async def get_goals(
    name: Name,
    request: Request,
    service: Shared,
    sort: Annotated[
        MatchOrder, Query(description="The oldest come first, or the newest, or those that most operands have reached and of these the newest.")
    ] = "oldest",
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many partial matches are listed.")] = MOST_MATCHES,
) -> GoalsDocument:
    """Show a query's partial matches.

    Each other parameter is a variable of the query: `?order=o77` lists those in which ?order is `o77`. The value is the
    last part of an IRI, the IRI, the text of a literal, or the term in N-Triples. A variable may have its question
    mark: `?%3Fsort=o77` is about ?sort.
    """
    registration = service.catalog.get_query(name)
    given = {parameter: value for parameter, value in request.query_params.items() if parameter not in ("sort", "limit")}
    if given:
        variables = sorted(await asyncio.to_thread(_list_variables, registration))
        check_names((each for each in given if not each.startswith("?")), ["sort", "limit", *variables], "variable")
        check_names((each for each in given if each.startswith("?")), [f"?{each}" for each in variables], "variable")
    wish = MatchWish(sort, limit, {parameter.removeprefix("?"): value for parameter, value in given.items()})
    report = await asyncio.to_thread(service.read_report)
    standing = find_standing(report, registration)
    matches = await _ask_matches(service, registration, wish) if standing is not None and wish != OLDEST else None
    return await asyncio.to_thread(_describe_goals, registration, report, matches)


def _list_variables(registration: Registration) -> set[str]:
    """Return the names of a query's variables."""
    return {node.name for node in walk_nodes(epsparql.parse(registration.text).query) if isinstance(node, Variable) and not node.hidden}


async def _ask_matches(service: Service, registration: Registration, wish: MatchWish) -> list[PartialMatch]:
    """Return the partial matches that are wanted, as the engines have them now. Whoever waits holds no thread.

    Raises: Fault 503.
    """
    try:
        async with asyncio.timeout(_PATIENCE_S), service.admission.one_question:
            question = await asyncio.to_thread(service.goals.put_question, registration.registered, wish)
            while (answer := await asyncio.to_thread(service.goals.find_answer, question)) is None:  # noqa: ASYNC110  # another process answers
                await asyncio.sleep(_POLL_S)
            return answer.matches
    except TimeoutError:
        detail = f"the runner gave no answer within {_PATIENCE_S:g} s; without parameters the last report is shown"
        raise Fault(Problem(HTTPStatus.SERVICE_UNAVAILABLE, "runner-busy", detail, query=registration.name)) from None


def _describe_goals(registration: Registration, report: EngineReport | None, asked: list[PartialMatch] | None) -> GoalsDocument:
    """Describe what a query keeps. Its partial matches are what the engines were `asked` for, or the report's."""
    standing = find_standing(report, registration)
    chains = name_operands(registration.text, registration.default_graph, registration.policy)
    words = [word for chain in _list_joined(chains) for word in chain]
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
    matches = standing.list_partial_matches() if asked is None else asked
    in_program = is_program(registration.text)
    return GoalsDocument(
        offset=report.position,
        goals=standing.usage.goals,
        state_bytes=standing.usage.state_bytes,
        operators=operators,
        operands=words,
        partial_matches=[_describe_match(match, chains, in_program=in_program) for match in matches],
    )


def _list_joined(chains: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return the chains that join operands; of a query whose chains all have one operand, all of them."""
    return [chain for chain in chains if len(chain) > 1] or chains


def _describe_match(match: PartialMatch, chains: Sequence[Sequence[str]], *, in_program: bool) -> PartialMatchDocument:
    ends = list(accumulate(map(len, chains)))
    number = bisect_right(ends, match.first)
    words = list(chains[number])
    first, after = (place - ends[number] + len(words) for place in (match.first, match.last + 1))
    return PartialMatchDocument(
        reached=after - first,
        of=len(words),
        operands=words[first:after],
        waits_for=words[:first] + words[after:],
        start=iso(match.start),
        end=iso(match.end),
        binding={name: written_term(parse_term(text)) for name, text in match.binding.items()} if in_program else match.binding,
    )


def _describe_side(side: Side) -> SideDocument:
    return SideDocument(side=side.side, goals=side.goals, oldest=None if side.oldest is None else iso(side.oldest))

"""Starts, shows and cancels trials: what a query would have found in the log's past, compared with one that is
registered.
"""

import asyncio
from dataclasses import asdict, replace
from http import HTTPStatus
from itertools import count
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from engine.messages import NODE_NAMES, Micros, Register
from epsparql.deferred_methods import dataclass
from epsparql.solutions.policies import UNRESTRICTED
from pipeline.formats.batches.timestamps import instant, iso
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import drop_shape, get_shape
from pipeline.slices.workers import count_cores
from pipeline.solutions.result_kinds import Bindings
from pipeline.trials.comparison import BOTH, KINDS
from pipeline.trials.execution import TrialStatus, describe_earliest
from pipeline.trials.plan import NEW, OLD, TrialPlan, TrialRange, find_earliest, plan_engines, streams_of
from server.dependencies import ADMIN, Reader, Shared, Tried, admit
from server.http.body_parsing import (
    PolicyText,
    describe_body,
    describe_content,
    format_duration,
    parse_json_object,
    read_body,
    read_choice_member,
    read_policy_member,
    read_text_member,
)
from server.http.problem_details import Fault, Problem, bad_request, describe_responses
from server.registrations.catch_up_rules import conflict_fault
from server.registrations.stream_promises import add_promises_together
from server.routes.queries import DEFAULT_GRAPHS, Wish, check_wish, list_bounds
from server.service import Service
from server.tokens import scopes
from server.trials.registry import Trial, TrialWish

router = APIRouter(tags=["trials"])
_MEMBERS = ("query", "policy", "default_graph", "compare_with", "from", "to")
_BEGINNING, _NOW = "beginning", "now"
_NONE = describe_responses([404])
_PLACE = "an offset of the log, an xsd:dateTime or date"


class TrialRequest(BaseModel):
    """Describes a trial to start. `policy` and `default_graph` are those of `compare_with` unless they are given.

    `from` and `to` are offsets of the log, or event times. With times, the solutions count that end at `from` or
    later, and before `to`.
    """

    query: str
    policy: PolicyText | None = None
    default_graph: Literal["all", "unnamed"] | None = None
    compare_with: str | None = None
    from_: int | str = Field(default=_BEGINNING, alias="from")
    to: int | str = _NOW


class TrialCounts(BaseModel):
    """Counts solutions: those of the new query alone, those of the old one alone, and those of both."""

    new: int
    old: int
    both: int


class ComparedQuery(TrialCounts):
    """Counts the solutions of one query: the one that is tried, or one that reads what it writes."""

    query: str


class TrialSlot(TrialCounts):
    """Counts the solutions that end from `at` on, for the timeline's width."""

    at: str


class TrialTimeline(BaseModel):
    width: str
    slots: list[TrialSlot]


class TrialProgress(BaseModel):
    """Tells the offsets at which the trial begins, which it has reached, and at which it ends, with the rows read so
    far.
    """

    from_: int = Field(alias="from")
    position: int
    to: int
    rows: int


class EndedQuery(BaseModel):
    """Tells of a query that failed or completed within the trial."""

    query: str
    side: Literal["new", "old"]
    state: str
    reason: str


class TrialDocument(BaseModel):
    """Describes a trial. `state` is waiting, running, completed or failed, with the reason. `old_query` is the text
    of `compare_with` at its start.

    `kept` counts the solutions that can be read at `/trials/{id}/solutions`; `counts` counts all. `unbounded` has the
    queries that look back without a bound, with the reason of each. Because of them, the trial works on one core.
    `warning` says why no solution of both sides can be equal: the texts have other columns or another query form.
    """

    id: str
    state: str
    reason: str | None
    created: str
    query: str
    policy: str
    default_graph: str
    compare_with: str | None
    old_query: str | None
    from_: str = Field(alias="from")
    to: str
    progress: TrialProgress | None
    counts: TrialCounts
    kept: TrialCounts
    queries: list[ComparedQuery]
    timeline: TrialTimeline
    ended: list[EndedQuery]
    unbounded: dict[str, str]
    warning: str | None


class TrialList(BaseModel):
    trials: list[TrialDocument]


class TrialPage(BaseModel):
    """Holds solutions of one kind, in the order in which they were compared.

    `next` is the value of `after` that leads on, null at the end.
    """

    solutions: list[dict[str, Any]]
    next: int | None


_BODY = describe_body({"application/json": describe_content("TrialRequest", {"query": "SELECT * WHERE { ?s ?p ?o }", "from": "2026-10-01"})})


@dataclass(frozen=True, slots=True)
class _Place:
    """Represents a bound: an offset, or an event time."""

    written: str
    offset: int | None = None
    time: Micros | None = None


def _list_scopes(trial: Trial) -> list[str]:
    """Return the scopes that reading a trial asks for: those of the queries that it compares, or admin where it is
    compared with none.
    """
    return [scopes.ADMIN] if trial.wish.compare_with is None else [scopes.read_scope(name) for name in trial.wish.names]


async def _find_readable(id: str, request: Request, service: Shared, tried: Tried, caller: Reader) -> Trial:
    """Return a trial that the token may read. Raises: Fault 403, 404."""
    trial = tried.get_trial(id)
    for scope in _list_scopes(trial):
        await admit(request, service, scope)
    return trial


Readable = Annotated[Trial, Depends(_find_readable)]


@router.post(
    "/trials",
    dependencies=[ADMIN],
    status_code=201,
    summary="Start a trial: what would this query have found?",
    responses=describe_responses([400, 404, 409, 413, 429]),
    openapi_extra=_BODY,
)
async def post_trial(request: Request, response: Response, service: Shared, tried: Tried) -> TrialDocument:
    found = parse_json_object(await read_body(request, service.settings.max_query), _MEMBERS)
    if "query" not in found:
        raise bad_request("no-query", "the body has no member 'query'", expected="query")
    old = service.catalog.get_query(read_text_member(found, "compare_with", "")) if found.get("compare_with") is not None else None
    wish = _read_wish(found, old)
    name = _choose_name(service, old)
    await check_wish(service, name, wish)
    if get_shape(wish.text).parameters:
        detail = "a query with PARAMETERS has solutions for its instances alone, and a trial has none"
        raise bad_request("parameters", detail, expected="a constant in place of each parameter")
    if get_shape(wish.text).graph is not None:
        detail = "a trial compares solutions, and a rule over the background has none"
        raise Fault(Problem(HTTPStatus.CONFLICT, "static-rule", detail, query=name))
    tried.check_room()
    warning = "" if old is None else _warn_of_forms(old, wish.text)
    start, end = _read_place(found, "from", _BEGINNING), _read_place(found, "to", _NOW)
    plan = await asyncio.to_thread(_plan_trial, service, name, wish, old, start, end)
    names = tuple(dict.fromkeys(watched.name for engine in plan.engines for watched in engine.watched))
    compared: tuple[str | None, str | None] = (None, None) if old is None else (old.name, old.text)
    asked = TrialWish(wish.text, wish.policy, wish.default_graph, *compared, start.written, end.written, names, warning)
    trial = tried.start_trial(asked, plan, service.clock())
    response.headers["Location"] = f"/trials/{trial.id}"
    return _describe_trial(trial)


@router.get("/trials", summary="List the trials that the token may read, the newest first")
async def list_trials(
    tried: Tried, caller: Reader, timeline: Annotated[bool, Query(description="With false, the slots of the timelines are left out.")] = True
) -> TrialList:
    return TrialList(trials=[_describe_trial(trial, slots=timeline) for trial in tried.list_trials() if all(map(caller.may, _list_scopes(trial)))])


@router.get("/trials/{id}", summary="Show a trial: its progress, its counts and its timeline", responses=_NONE)
async def get_trial(trial: Readable) -> TrialDocument:
    return _describe_trial(trial)


@router.get("/trials/{id}/solutions", summary="Read solutions that a trial found on the new side, the old side or both", responses=_NONE)
async def get_trial_solutions(
    trial: Readable,
    of: Annotated[
        Literal["new", "old", "both"], Query(description="These are the solutions of the new side alone, of the old side alone, or of both.")
    ] = "new",
    after: Annotated[int, Query(ge=0, le=2**40, description="This many solutions are left out.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> TrialPage:
    found = await asyncio.to_thread(trial.read_page, of, after, limit)
    return TrialPage(solutions=found, next=after + limit if len(found) == limit else None)


@router.delete("/trials/{id}", dependencies=[ADMIN], status_code=204, summary="Cancel a trial, and delete what it found", responses=_NONE)
async def delete_trial(id: str, tried: Tried) -> None:
    await tried.delete_trial(id)


# ---------------------------------------------------------------- what is asked for
def _read_wish(found: dict[str, Any], old: Registration | None) -> Wish:
    policy, default_graph = (UNRESTRICTED, DEFAULT_GRAPHS[0]) if old is None else (old.policy, old.default_graph)
    given = {member: value for member, value in found.items() if value is not None}
    return Wish(
        read_text_member(given, "query", ""),
        read_policy_member(given, policy),
        read_choice_member(given, "default_graph", DEFAULT_GRAPHS, default_graph),
    )


def _warn_of_forms(old: Registration, text: str) -> str:
    """Return why no solution of a text can equal one of a query, or an empty text."""
    before, after = get_shape(old.text).form, get_shape(text).form
    if before == after:
        return ""
    if isinstance(before, Bindings) and isinstance(after, Bindings):
        new_columns, columns = (" ".join(f"?{variable}" for variable in form.variables) for form in (after, before))
        reason = f"the new text has the columns {new_columns}, and {old.name!r} has {columns}"
    else:
        reason = f"the new text and {old.name!r} are of different query forms"
    return f"{reason}, so no solution is counted as found by both; give the variables the same names, in the same order"


def _choose_name(service: Service, old: Registration | None) -> str:
    """Return the name under which the query is tried: that of the one that it would replace, or a free one."""
    known = service.log.catalogue.queries
    return old.name if old is not None else next(name for k in count(1) if (name := f"trial {k}") not in known)


def _read_place(found: dict[str, Any], member: str, default: str) -> _Place:
    """Return a bound. Raises: Fault 400."""
    value = found.get(member, default)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value == default:
        return _Place(default)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return _Place(value, offset=int(value))
    try:
        return _Place(str(value), time=instant(value if "T" in value else f"{value}T00:00:00Z"))
    except (ValueError, TypeError):
        raise bad_request("bad-place", f"{member} cannot be {str(value)[:40]!r}", expected=f"{_PLACE}, or {default}") from None


def _plan_trial(service: Service, name: str, wish: Wish, old: Registration | None, start: _Place, end: _Place) -> TrialPlan:
    """Return the plan, without a directory yet. Raises: Fault 400, 409."""
    settings, head = service.settings, service.log.head()
    queries = service.catalog.list_queries()
    others = [query for query in queries if query.stands and (old is None or query.registered != old.registered)]
    free = max([head, *(query.registered + 1 for query in queries)])  # the head may not count the last registrations yet
    new = Register(
        free, name, wish.text, wish.policy, wish.default_graph, *list_bounds(settings), node_names=NODE_NAMES if old is None else old.node_names
    )
    bounds = _find_range(service, head, name, start, end)
    engines = tuple(
        replace(engine, registrations=add_promises_together(service.catalog, engine.registrations, bounds.first))
        for engine in plan_engines(new, old, others)
    )
    streams = streams_of(engines)
    if all(query.text != wish.text for query in service.log.catalogue.queries.values()):
        drop_shape(wish.text)
    cores = min(settings.trial_cores or count_cores(), count_cores())
    return TrialPlan(str(settings.data), "", bounds, engines, streams, settings.max_trial_solutions, settings.max_trial_memory, cores)


def _find_range(service: Service, head: int, name: str, start: _Place, end: _Place) -> TrialRange:
    """Return the part of the log that is read. Raises: Fault 400 where it is none; 409 where its beginning was removed."""
    oldest = service.log.oldest()
    for place in (start, end):
        if place.offset is not None and place.offset > head:
            raise bad_request("bad-offset", f"the log ends at {head}, before the offset {place.offset}", expected=_PLACE)
    until = head if end.offset is None else end.offset
    earliest = find_earliest(service.settings.data, oldest)
    first = start.offset if start.offset is not None else 0 if start.time is None or earliest is None else earliest
    if first > until or (start.time is not None and end.time is not None and start.time >= end.time):
        raise bad_request("bad-range", f"to, {end.written}, is not after from, {start.written}", expected="a later place in to")
    if earliest is None or first < earliest:
        raise conflict_fault("offset-gone", describe_earliest(oldest, earliest), name)
    return TrialRange(first, until, start.time, end.time)


# ---------------------------------------------------------------- what is shown


def _describe_trial(trial: Trial, *, slots: bool = True) -> TrialDocument:
    wish, status = trial.wish, trial.status or TrialStatus(0, 0, 0)
    shown = [ComparedQuery(query=name, **_name_counts(found)) for name, found in status.counts.items()]
    timeline = [TrialSlot(at=iso(slot * status.width), **_name_counts(found)) for slot, found in status.slots] if slots else []
    progress = None
    if trial.status is not None:
        progress = TrialProgress(position=status.position, to=status.until, rows=status.rows, **{"from": status.first})
    return TrialDocument(
        id=trial.id,
        state=trial.state,
        reason=trial.reason or None,
        created=iso(trial.created),
        query=wish.query,
        policy=wish.policy,
        default_graph=wish.default_graph,
        compare_with=wish.compare_with,
        old_query=wish.old_query,
        to=wish.end,
        progress=progress,
        counts=TrialCounts(**_name_counts([sum(found[kind] for found in status.counts.values()) for kind in range(len(KINDS))])),
        kept=TrialCounts(new=status.kept.get(NEW, 0), old=status.kept.get(OLD, 0), both=status.kept.get(BOTH, 0)),
        queries=shown,
        timeline=TrialTimeline(width=format_duration(status.width) or "", slots=timeline),
        ended=[EndedQuery.model_validate(asdict(each)) for each in status.ended],
        unbounded=status.unbounded,
        warning=wish.warning or None,
        **{"from": wish.start},
    )


def _name_counts(counts: list[int]) -> dict[str, int]:
    return dict(zip(KINDS, counts, strict=True))

"""Registers, describes and drops queries."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from dataclasses import replace as replace_fields
from http import HTTPStatus
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

import epsparql
from engine.messages import CERTAIN, EMITS, NODE_NAMES, REVISED, Drop, Promote, Register, Withdraw
from epsparql.deferred_methods import dataclass
from epsparql.errors import Warning_
from epsparql.etalis.translator import query_text
from epsparql.solutions.policies import UNRESTRICTED
from pipeline.formats.batches.timestamps import iso
from pipeline.log import Ack, Queueing
from pipeline.log.catalog import Registration, Version
from pipeline.registrations.query_cache import check_registration, get_shape, have_one_plan, keep_text
from pipeline.registrations.stream_dependencies import Written, find_alive, find_fed, find_sources, find_unfed, find_written, warn_of_silence
from pipeline.runners.engine_report import EngineReport, Standing
from server.dependencies import ADMIN, READ, Reader, Sent, Shared
from server.http import auth
from server.http.body_parsing import (
    PolicyText,
    decode_text,
    describe_body,
    describe_content,
    parse_json_object,
    read_body,
    read_choice_member,
    read_media_type,
    read_policy_member,
    read_text_member,
)
from server.http.path_names import Name, decode_name, encode_name
from server.http.problem_details import Fault, Problem, bad_request, describe_exception, describe_responses
from server.inspection.instant_offers import offer_instants
from server.inspection.unfit_values import warn_of_unfit
from server.inspection.unknown_sources import warn_of_sources
from server.inspection.unseen_names import warn_of_unseen
from server.query_output.promotion_notices import hash_text
from server.registrations.catch_up_rules import conflict_fault, refuse_revised, register_entry
from server.registrations.companions import find_companions, name_companion, write_companion
from server.registrations.instance_rules import check_parameters_wish, refuse_parameters
from server.registrations.promotion_rules import begin_late, check_new_text, find_reading_start, promote_entry
from server.registrations.revision_rules import check_revised_place, check_revised_text
from server.registrations.stream_promises import reads_instants
from server.service import Service
from server.settings import Settings
from server.tokens import scopes

router = APIRouter(tags=["queries"])
SPARQL, ETALIS = "application/sparql-query", "text/x-etalis-event"
NOW, BEGINNING, PROMOTE = "now", "beginning", "promote"
_MEMBERS = ("query", "policy", "default_graph", "from", "name", "emit", "notify_at")
DEFAULT_GRAPHS = ("all", "unnamed")
_AT_WORK = ("running", "paused")
_PROMPT_S = 1.0
"""The answer to a promotion waits for so long, since most take over within it."""
_NO_QUERY = describe_responses([404])


@dataclass(frozen=True, slots=True)
class Wish:
    """Holds a query as a client wants it registered; `notify_at` is how many of its first operands are to be a query
    of their own beside it.
    """

    text: str
    policy: str
    default_graph: str
    start: str | int | None = None
    emit: str = CERTAIN
    notify_at: int | None = None

    def is_met_by(self, registration: Registration) -> bool:
        """Return whether this registration is the wished one."""
        return self._starts_like(registration) and self.is_text_of(registration)

    def is_text_of(self, registration: Registration) -> bool:
        """Return whether the registration has the wished text and options.

        White space, comments and prefixes make no difference.
        """
        alike = (self.policy, self.default_graph, self.emit) == (registration.policy, registration.default_graph, registration.emit)
        return alike and _mean_the_same(self.text, registration.text)

    def _starts_like(self, registration: Registration) -> bool:
        """Return whether the registration reads from where the wish asks."""
        if self.start in (None, NOW):
            return registration.reads_from is None or len(registration.promoted) > 1  # a promotion says by itself where it begins
        offset = 0 if self.start == BEGINNING else self.start
        return offset == (registration.registered if registration.reads_from is None else registration.reads_from)


def _mean_the_same(text: str, registered: str) -> bool:
    """Return whether two texts are one query: their algebra holds names in full, and nothing of how they are written."""
    try:
        return text == registered or epsparql.parse(text).query == epsparql.parse(registered).query
    except epsparql.QueryError:  # another version took the registered text
        return False


class WarningDocument(BaseModel):
    code: str
    message: str
    line: int | None = None
    column: int | None = None


class QueryLinks(BaseModel):
    plan: str
    goals: str
    solutions: str
    events: str


class Memory(BaseModel):
    """Measures the state of a query at a log position: its partial matches, and the bytes of its whole state as the
    limits count them.
    """

    goals: int
    state_bytes: int
    offset: int


class QuerySummary(BaseModel):
    """Describes a query and how far it is.

    `state` is running, paused, completed (it has given all that it can give, and `reason` says why) or failed, with
    the reason.

    `registered` is the log offset of the registration. `lag` counts the log's entries that are not applied yet.
    `last` is the newest id. `from` is the offset from which it reads, if that is earlier.

    `reads` is the offset up to which a query that is behind the others has read the log; it is null for all others. A
    query is behind while it reads the past, while it is paused, or while it rests on a rule that is behind:
    `waits_for`.

    `unfed` are the streams for whose first event it waits. The query, or a rule on which it rests, reads them;
    nothing was ever sent to them, and no rule writes them.

    If `emit` is revised, `solutions` counts the changes of those that stand, and `last` is the `seq` of the newest.

    `memory` is null for a query that does not run, and until the runner has reported it.

    `graph` is the background graph that a static rule writes. `derived` counts the triples that follow there and have
    a predicate of its template. It is null until the runner has reported it. Both are null for all other queries.
    """

    name: str
    query: str
    policy: str
    default_graph: str
    emit: str
    state: str
    reason: str | None
    registered: int
    from_: int | None = Field(alias="from")
    reads: int | None
    waits_for: str | None
    unfed: list[str]
    solutions: int
    last: str | None
    lag: int
    memory: Memory | None
    graph: str | None
    derived: int | None
    links: QueryLinks


class VersionDocument(BaseModel):
    """Describes a text of a query, or one that was to take its place.

    `state` is promoted, waiting, or failed or withdrawn with the reason. A promoted one has a `version`, and its
    solutions are those of the log's entries from the offset `position` on. While it waits, `reads` is the offset up
    to which it has read the log. `from` is the offset from which it reads, null for the registration. `asked` is the
    offset of the entry that asked for it, `at` the time, and `by` the token, where they are known. It `keeps` the
    state of the text before, if one plan runs for both.
    """

    version: int | None
    state: str
    reason: str | None
    query: str
    sha256: str
    policy: str
    default_graph: str
    position: int | None
    asked: int
    from_: int | None = Field(alias="from")
    reads: int | None
    keeps: bool
    at: str | None
    by: str | None


class QueryDocument(QuerySummary):
    """Describes a query with its warnings; for those of its text it is planned anew.

    `version` is the number of its present text. `promotion` describes the last text that took its place, or was to.
    `companions` are the queries of its first operands (`notify_at`).
    """

    version: int
    promotion: VersionDocument | None
    companions: list[str]
    warnings: list[WarningDocument]


class EngineMemory(BaseModel):
    """Measures what serves all queries, at a log position: terms, cached answers, the bytes of all tables (used or in
    reserve), and networks.
    """

    terms: int
    answers: int
    reserved_bytes: int
    networks: int
    offset: int


class QueryList(BaseModel):
    """Lists queries without their warnings, which are in the document of each.

    `engine` is null without the scope admin, and until the runner has reported it.
    """

    queries: list[QuerySummary]
    engine: EngineMemory | None


class QueryWish(BaseModel):
    """Describes a query to register; `name` is for POST alone.

    With `emit` revised it gives a changelog of the solutions that stand as of the latest event, instead of those that
    are certain.
    """

    query: str
    policy: PolicyText = UNRESTRICTED
    default_graph: Literal["all", "unnamed"] = "all"
    from_: Literal["now", "beginning"] | int | None = Field(default=None, alias="from")
    name: str | None = None
    emit: Literal["certain", "revised"] = "certain"
    notify_at: int | None = Field(default=None, ge=1)


_REFUSED = (400, 409, 413, 415, 422)
_KNOWN = {"description": "The same query is registered already, or has just been promoted", "model": QueryDocument}
_WAITS = {"description": "The text reads the log, and takes over when it has caught up; Location shows how far it is", "model": QueryDocument}
_EXAMPLE = "PREFIX : <http://example.org/>\nSELECT ?s ?a ?b FROM STREAM <readings> WHERE { { { ?s :value ?a } SEQ { ?s :value ?b } } WITHIN 'PT10M' }"
_BODY = describe_body(
    {
        "application/json": describe_content("QueryWish", {"query": _EXAMPLE, "from": "beginning"}),
        SPARQL: describe_content(example=_EXAMPLE),
        ETALIS: describe_content(example="rise(X, Y) <- price(X) seq price(Y) where X < Y."),
    }
)


# ---------------------------------------------------------------- registering
@dataclass(frozen=True, slots=True)
class RegistrationOptions:
    """Holds the query parameters of a registration; members of a JSON body come first."""

    policy: str
    default_graph: str
    from_: str | None
    emit: str
    notify_at: int | None


async def _read_options(  # FastAPI would call the class in another thread
    policy: PolicyText = UNRESTRICTED,
    default_graph: str = DEFAULT_GRAPHS[0],
    from_: Annotated[
        str | None,
        Query(alias="from", description="This is now, beginning or an offset. A promotion reads from where the query began, unless it is given."),
    ] = None,
    emit: str = CERTAIN,
    notify_at: Annotated[
        int | None,
        Query(
            ge=1, description="So many first operands of the query's chain are registered as a query of their own, NAME~notify_at, which follows it."
        ),
    ] = None,
) -> RegistrationOptions:
    return RegistrationOptions(policy, default_graph, from_, emit, notify_at)


Options = Annotated[RegistrationOptions, Depends(_read_options)]


@router.put(
    "/queries/{name}",
    dependencies=[ADMIN],
    status_code=201,
    summary="Register a query under a name",
    responses=describe_responses(_REFUSED, success={200: _KNOWN, 202: _WAITS}),
    openapi_extra=_BODY,
)
async def put_query(
    name: Name,
    request: Request,
    response: Response,
    service: Shared,
    options: Options,
    replace: Annotated[
        bool | Literal["promote"],
        Query(
            description="With true, this drops a different or failed query of the same name, and starts a new solution log. "
            "With promote, the text takes the query's place at one entry of the log, and followers stay connected."
        ),
    ] = False,
    columns: Annotated[Literal["keep", "change"], Query(description="A promotion may change the columns only with change.")] = "keep",
) -> QueryDocument:
    wish, named = await _read_wish(request, service, options, name)
    if named is not None and named != name:
        raise bad_request("two-names", f"the body names the query {named!r}, the path {name!r}", query=name)
    if replace == PROMOTE and name in service.log.catalogue.queries:
        if wish.notify_at is not None:
            raise bad_request("notify-at", "a promotion has no notify_at; PUT the promoted text again with notify_at", query=name)
        return await promote_query(service, request, response, name, wish, may_change_columns=columns == "change")
    return await _register(service, response, name, wish, replace is not False)


@router.post(
    "/queries",
    dependencies=[ADMIN],
    status_code=201,
    summary="Register a query; without a name, it gets one from its text",
    responses=describe_responses(_REFUSED, success={200: _KNOWN}),
    openapi_extra=_BODY,
)
async def post_query(
    request: Request,
    response: Response,
    service: Shared,
    options: Options,
    name: str | None = None,
) -> QueryDocument:
    wish, named = await _read_wish(request, service, options, name)
    digest = hashlib.sha256("\0".join((wish.text, wish.policy, wish.default_graph)).encode()).hexdigest()
    chosen = decode_name(encode_name(name or named or f"q-{digest[:12]}"))
    return await _register(service, response, chosen, wish, replace=False)


async def _read_wish(request: Request, service: Service, options: RegistrationOptions, name: str | None) -> tuple[Wish, str | None]:
    """Read the wish from the body, and the name that the body gives. Raises: Fault 400, 413, 415 or 422."""
    body = await read_body(request, service.settings.max_query)
    match read_media_type(request):
        case "application/json":
            found = parse_json_object(body, _MEMBERS)
        case "application/sparql-query":
            found = {"query": decode_text(body)}
        case "text/x-etalis-event":
            found = read_program(decode_text(body), request.query_params.get("policy"), name)
        case other:
            raise Fault(
                Problem(
                    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                    "media-type",
                    f"a query is not {other or 'without a Content-Type'}",
                    expected=f"application/json, {SPARQL} or {ETALIS}",
                )
            )
    if "query" not in found:
        raise bad_request("no-query", "the body has no member 'query'", expected="query", query=name)
    policy = read_policy_member(found, options.policy, name)
    default_graph = read_choice_member(found, "default_graph", DEFAULT_GRAPHS, options.default_graph, name)
    asked = found.get("from", options.from_)
    start = None if asked is None else _read_start(asked, name)
    named = read_text_member(found, "name", "") or None
    emit = read_choice_member(found, "emit", EMITS, options.emit, name)
    return Wish(read_text_member(found, "query", ""), policy, default_graph, start, emit, _read_notify_at(found, options.notify_at)), named


def _read_notify_at(found: dict[str, Any], default: int | None) -> int | None:
    value = found.get("notify_at", default)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise bad_request("invalid-member", f"notify_at cannot be {str(value)[:40]!r}", expected="a number of operands")


def read_program(program: str, policy: str | None, name: str | None = None) -> dict[str, str]:
    """Return an ETALIS program as the members of a query, with the policy that is asked for, else its own.

    Raises: Fault 400.
    """
    if policy is not None:
        policy = read_policy_member({}, policy, name)
    try:
        text, chosen = query_text(program, policy)
    except epsparql.QueryError as error:
        raise Fault(describe_exception(error, query=name)) from None
    return {"query": text, "policy": chosen}


def _read_start(value: object, name: str | None) -> str | int:
    if value in (NOW, BEGINNING):
        return str(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise bad_request("invalid-member", f"from cannot be {str(value)[:40]!r}", expected="now, beginning or an offset of the log", query=name)


@dataclass(frozen=True, slots=True)
class _Place:
    """Holds a wish that can be met under a name. `known` is what is registered there, and whether it is the `same`."""

    name: str
    wish: Wish
    warnings: tuple[Warning_, ...]
    known: Registration | None
    same: bool


async def _register(service: Service, response: Response, name: str, wish: Wish, replace: bool) -> QueryDocument:
    async with service.catalog.changing:
        place = await _find_place(service, name, wish, replace)
        places, gone = [place], list[Registration]()
        if wish.notify_at is not None:
            text = await asyncio.to_thread(write_companion, name, place.wish.text, wish.notify_at)
            first = Wish(text, wish.policy, wish.default_graph, wish.start, wish.emit)
            places.append(await _find_place(service, name_companion(name, wish.notify_at), first, replace))
        if len(service.log.catalogue.queries) + sum(each.known is None for each in places) > service.settings.max_queries and not place.same:
            raise Fault(_too_many_problem(service.settings.max_queries))
        if not place.same and place.known is not None:
            companions = await asyncio.to_thread(find_companions, place.known, service.catalog)
            gone = [each for each in companions if each.name != places[-1].name]
        new = [each for each in places if not each.same]
        await asyncio.to_thread(_append_registrations, service, new, gone)
        for each in [*gone, *(each.known for each in new if each.known is not None)]:
            service.output.drop_query(each)
    service.notifier.wake_all()
    response.status_code = HTTPStatus.OK if place.same else HTTPStatus.CREATED
    response.headers["Location"] = f"/queries/{encode_name(name)}"
    registration = service.catalog.get_query(name)
    return await build_document(service, registration, place.warnings, is_reported=place.same)


async def _find_place(service: Service, name: str, wish: Wish, replace: bool) -> _Place:
    """Check that a wish can be met under a name. Raises: Fault 400, 409, 422."""
    warnings = await check_wish(service, name, wish)
    known = service.catalog.get_query(name) if name in service.log.catalogue.queries else None
    same = known is not None and wish.is_met_by(known) and not (replace and not known.stands)
    if known is not None and same and wish.text != known.text:  # the places of warnings are those in the text that is shown
        wish = replace_fields(wish, text=known.text)
        warnings = await check_wish(service, name, wish)
    if known is not None and not same and not replace:
        detail = (
            f"a different query is registered as {name!r}; take another name, or PUT with ?replace=promote, or with ?replace=true "
            f"to start a new solution log"
        )
        raise Fault(Problem(HTTPStatus.CONFLICT, "query-exists", detail, query=name))
    if not same and get_shape(wish.text).graph is not None:
        _check_options(name, wish)
        others = [rule for rule in service.catalog.list_rules() if rule.name != name]
        await asyncio.to_thread(service.background.check_rule, name, wish.text, wish.default_graph, others)
    return _Place(name, wish, warnings, known, same)


async def promote_query(
    service: Service, request: Request, response: Response, name: str, wish: Wish, *, may_change_columns: bool
) -> QueryDocument:  # fmt: skip
    """Let a text take a query's place.

    Return the query's document, with the status 200 if it has and 202 if it is to. Raises: Fault 400, 404, 409.
    """
    async with service.catalog.changing:
        warnings = await check_wish(service, name, wish)
        known = service.catalog.get_query(name)
        refuse_revised(known, "be promoted", "PUT with ?replace=true")
        refuse_parameters(known, "be promoted", "PUT with ?replace=true, and add the instances again")
        if get_shape(wish.text).parameters:
            raise conflict_fault("parameters", f"a query with PARAMETERS cannot take the place of {name!r}: register it under another name", name)
        if wish.emit == REVISED:
            raise conflict_fault("revised-query", f"a revised query cannot take the place of {name!r}: register it under another name", name)
        promotion = None
        if not wish.is_text_of(known):
            check_new_text(service.catalog, known, wish.text, may_change_columns=may_change_columns)
            promotion = await asyncio.to_thread(
                _append_promotion, service, known, wish, "" if request.state.who == auth.NOBODY else request.state.who
            )
    service.notifier.wake_all()
    waits = promotion is not None and not await _wait_for_promotion(service, known, promotion)
    response.status_code = HTTPStatus.ACCEPTED if waits else HTTPStatus.OK
    response.headers["Location"] = f"/queries/{encode_name(name)}/promotion" if waits else f"/queries/{encode_name(name)}"
    return await build_document(service, service.catalog.get_query(name), warnings)


def _append_promotion(service: Service, known: Registration, wish: Wish, by: str) -> int:
    """Append the entry that promotes a text, and return its offset. Raises: Fault 400, 404, 409."""
    keep_text(wish.text, service.texts)
    alike = (known.policy, known.default_graph) == (wish.policy, wish.default_graph) and wish.start is None
    keeps = alike and have_one_plan(known.text, wish.text, wish.policy, wish.default_graph)
    wanted = Promote(
        0, known.registered, known.name, wish.text, wish.policy, wish.default_graph, *list_bounds(service.settings), keeps=keeps, by=by
    )  # fmt: skip
    last = known.versions[-1] if known.versions else None
    if last is not None and last.state == "failed":  # the catalog is told, and forgets it
        service.log.append(lambda offset: Withdraw(offset, last.offset, known.name, last.reason))
    if not keeps and wish.start != NOW and not service.log.oldest():
        start, rules = find_reading_start(known, wish.start), service.catalog.list_rules()
        wanted = begin_late(service.catalog, service.settings.data, wanted, start, service.background.read_facts(rules))
    return service.log.append(lambda offset: promote_entry(service.catalog, offset, wanted, wish.start, known))


async def _wait_for_promotion(service: Service, known: Registration, promotion: int) -> bool:
    """Wait for a moment until a promotion has ended, and return whether it has."""
    deadline_s = asyncio.get_running_loop().time() + _PROMPT_S
    while True:
        seen = service.notifier.generation
        now = service.catalog.refresh(known)
        if now is None or now.waiting is None or now.waiting.offset != promotion:
            return True
        if not await service.notifier.wait_for_news(seen, deadline_s - asyncio.get_running_loop().time()):
            return False


def _check_options(name: str, wish: Wish) -> None:
    """Refuse what a static rule has no use for, since it reads no stream. Raises: Fault 409."""
    for option, value, usual in (("from", NOW if wish.start is None else wish.start, NOW), ("policy", wish.policy, UNRESTRICTED)):
        if value != usual:
            detail = f"{name!r} is a rule over the background, which reads no stream: it has no {option!r}"
            raise Fault(Problem(HTTPStatus.CONFLICT, "static-rule", detail, expected=f"the registration without {option!r}", query=name))


async def warn_of_data(service: Service, name: str, text: str) -> list[Warning_]:
    """Return the warnings about a query's text that the server's present data give.

    `name` is that of the query, which is no other rule.
    """
    parsed = await asyncio.to_thread(epsparql.parse, text)
    shapes = [get_shape(rule.text) for rule in service.catalog.list_rules() if rule.name != name]
    streams, written = dict(service.log.catalogue.streams), find_written(shapes)
    graphs = {*service.log.catalogue.graphs, *(shape.graph for shape in shapes if shape.graph is not None)}
    found = warn_of_sources(parsed, streams, written, graphs)
    found += await offer_instants(parsed, streams, written, service.inspector)
    found += await warn_of_unseen(parsed, streams, written, service.inspector, service.background)
    if not any(shape.graph is not None for shape in shapes):  # static rules derive triples that no stream carries
        found += await warn_of_unfit(parsed, streams, written, service.inspector, service.background)
    return found


def _append_registrations(service: Service, places: Sequence[_Place], gone: Sequence[Registration]) -> None:
    """Register at all places, one entry after the other, and drop what is gone. What is refused leaves everything as
    it is.

    Raises: Fault 400, 409.
    """
    for place in places:
        keep_text(place.wish.text, service.texts)
    entries = list[Future[Ack]]()
    for place in places:
        entries += _submit_registration(service, place, tuple(entries))
    for entry in entries:
        entry.result()
    for registration in gone:
        _submit_drop(service, registration).result()


def _submit_registration(service: Service, place: _Place, before: Sequence[Future[Ack]]) -> list[Future[Ack]]:
    """Queue the entries that register in place of what is known there, unless an entry before them is refused."""
    bounds, wish, known = list_bounds(service.settings), place.wish, place.known

    def register(offset: int) -> Register:
        for entry in before:
            if entry.done():  # it was refused just now, or written before
                entry.result()
        wanted = Register(
            offset,
            place.name,
            wish.text,
            wish.policy,
            wish.default_graph,
            *bounds,
            emit=wish.emit,
            by_time=not get_shape(wish.text).parameters,
            node_names=NODE_NAMES,
        )
        return register_entry(service.catalog, offset, wanted, NOW if wish.start is None else wish.start)

    if known is None:
        return [service.log.submit_entry(register, queueing=Queueing.WAIT)]

    def drop(offset: int) -> Drop:
        register(offset + 1)  # if the registration is refused, so is the drop
        return Drop(offset, known.registered, known.name)

    dropped = service.log.submit_entry(drop, queueing=Queueing.WAIT)

    def follow(offset: int) -> Register:
        if dropped.done():
            dropped.result()
        return register(offset)

    return [dropped, service.log.submit_entry(follow, queueing=Queueing.WAIT)]


def _too_many_problem(limit: int) -> Problem:
    return Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-queries", f"{limit} queries are registered already; drop one, or raise max_queries")


def list_bounds(settings: Settings) -> tuple[int, int, int]:
    """Return the query's limits.

    They go into the log with the query, so that every runner and every replay stops it at the same entry.
    """
    return settings.max_derivations, settings.max_partial_matches, settings.max_state_bytes


async def check_wish(service: Service, name: str, wish: Wish) -> tuple[Warning_, ...]:
    """Check that a query can stand under a name, in place of one of this name, and return the warnings of its text.

    Raises: Fault 400.
    """
    rules = [rule for rule in service.catalog.list_rules() if rule.name != name]  # what reads no rule's stream is checked by itself
    policies = {rule.name: rule.policy for rule in rules} | {name: wish.policy}
    try:
        instants = reads_instants(service.catalog, wish.text, service.log.head())
        texts = {rule.name: rule.text for rule in rules}
        warnings = await asyncio.to_thread(check_registration, wish.text, texts, name, policies, instants=instants)
    except epsparql.QueryError as error:
        raise Fault(describe_exception(error, query=name)) from None
    if wish.emit == REVISED:
        check_revised_text(name, wish.text, wish.policy)
        check_revised_place(service.settings.data, name)
    check_parameters_wish(service.catalog, name, wish.text, wish.emit, starts_now=wish.start in (None, NOW), notify_at=wish.notify_at)
    return warnings


def _submit_drop(service: Service, known: Registration) -> Future[Ack]:
    return service.log.submit_entry(lambda offset: Drop(offset, known.registered, known.name))


@dataclass(frozen=True, slots=True)
class _Context:
    """Holds what the documents of all queries share.

    `report` is the runner's. `leads` names the queries for which others wait. `written` are the streams that rules
    write, and `alive` those for which none needs to wait.
    """

    report: EngineReport | None
    leads: Mapping[int, str]
    written: Written
    alive: frozenset[str]


def _read_context(service: Service, report: EngineReport | None) -> _Context:
    catalogue = service.log.catalogue
    queries = list(catalogue.queries.values()) if catalogue.leads else []
    leads = {query.registered: query.name for query in queries if query.registered in catalogue.leads}
    written = find_written(get_shape(rule.text) for rule in service.catalog.list_rules())
    return _Context(report, leads, written, find_alive(written, find_fed(dict(catalogue.streams))))


def _list_unfed(registration: Registration, context: _Context) -> list[str]:
    if registration.state not in _AT_WORK:
        return []
    return find_unfed(get_shape(registration.text).streams, context.written, context.alive)


def _warn_of_unfed(registration: Registration, context: _Context) -> list[Warning_]:
    """Warn of the streams that were never fed, if the query also reads others, whose solutions wait too.

    A query that waits for its only stream gets no warning.
    """
    sources = find_sources(get_shape(registration.text).streams, context.written) - context.written.keys()
    return [
        Warning_("unfed-stream", f"nothing was sent to the stream {name!r} yet, and until then this query waits for it")
        for name in _list_unfed(registration, context)
        if sources - {name}
    ]


def _warn_of_silence(service: Service, registration: Registration, context: _Context) -> list[Warning_]:
    if registration.state not in _AT_WORK:
        return []
    return warn_of_silence(get_shape(registration.text), context.written, service.log.catalogue.streams)


def _build_summary(service: Service, registration: Registration, context: _Context) -> QuerySummary:
    path = f"/queries/{encode_name(registration.name)}"
    tally = service.solutions.tally(registration.registered)
    return QuerySummary(
        name=registration.name,
        query=registration.text,
        policy=registration.policy,
        default_graph=registration.default_graph,
        emit=registration.emit,
        state=registration.state,
        reason=registration.reason or None,
        registered=registration.registered,
        reads=registration.reads,
        waits_for=context.leads.get(registration.lead) if registration.lead not in (None, registration.registered) else None,
        unfed=_list_unfed(registration, context),
        solutions=tally.count,
        last=tally.last,
        lag=compute_lag(registration, service.log.head(), service.solutions.position),
        memory=_measure_memory(context.report, registration),
        graph=get_shape(registration.text).graph,
        derived=None if context.report is None else context.report.derived.get(registration.registered),
        links=QueryLinks(**{link: f"{path}/{link}" for link in QueryLinks.model_fields}),
        **{"from": registration.reads_from},
    )


def compute_lag(registration: Registration, head: int, position: int) -> int:
    """Return how many known entries are not applied to the query yet.

    The log's head may not yet count the entry that let the query join the others.
    """
    known = max(head, registration.registered + 1, registration.since + 1)
    return max(known - (position if registration.reads is None else registration.reads), 0)


def find_standing(report: EngineReport | None, registration: Registration) -> Standing | None:
    """Return what the runner reported of a query, if it still runs: its report may be from before the end."""
    return report.queries.get(registration.registered) if report is not None and registration.state in _AT_WORK else None


def _measure_memory(report: EngineReport | None, registration: Registration) -> Memory | None:
    standing = find_standing(report, registration)
    if report is None or standing is None:
        return None
    return Memory(goals=standing.usage.goals, state_bytes=standing.usage.state_bytes, offset=report.position)


async def build_document(
    service: Service, registration: Registration, warnings: tuple[Warning_, ...], *, is_reported: bool = True
) -> QueryDocument:  # fmt: skip
    """Return the query's document, with the warnings of its text, and those that the data give now.

    The runner's report is long, so it is not read where it has nothing about the query (`is_reported`).
    """
    told = is_reported and registration.registered < service.solutions.position
    context = _read_context(service, await asyncio.to_thread(service.read_report) if told else None)
    found = await warn_of_data(service, registration.name, registration.text) if registration.state in _AT_WORK else []
    shown = [
        _warning_document(warning, registration.text)
        for warning in (*warnings, *found, *_warn_of_unfed(registration, context), *_warn_of_silence(service, registration, context))
    ]
    promotion = None if not registration.versions else describe_version(registration.versions[-1])
    summary = _build_summary(service, registration, context).model_dump(by_alias=True)
    companions = [each.name for each in find_companions(registration, service.catalog)]
    return QueryDocument(**summary, version=registration.promoted[-1].number, promotion=promotion, companions=companions, warnings=shown)


def describe_version(version: Version) -> VersionDocument:
    return VersionDocument(
        version=version.number or None,
        state=version.state,
        reason=version.reason or None,
        query=version.text,
        sha256=hash_text(version.text),
        policy=version.policy,
        default_graph=version.default_graph,
        position=version.position if version.number else None,
        asked=version.offset,
        reads=version.reads,
        keeps=version.keeps,
        at=iso(version.at) if version.at else None,
        by=version.by or None,
        **{"from": version.reads_from},
    )


def _warning_document(warning: Warning_, text: str) -> WarningDocument:
    line, column = warning.span.place(text) if warning.span else (None, None)
    return WarningDocument(code=warning.code, message=warning.message, line=line, column=column)


# ---------------------------------------------------------------- what is registered
@router.get(
    "/queries",
    response_model=QueryList,
    summary="List the queries that the token may read; with a limit, the Link header leads to the next page",
)
async def list_queries(
    service: Shared,
    caller: Reader,
    after: Annotated[int, Query(ge=-1, description="Queries that were registered after this offset are listed, in that order.")] = -1,
    limit: Annotated[int | None, Query(ge=1, le=100_000, description="A page has this many queries. Without it, all are listed.")] = None,
) -> Response:
    content, last = await asyncio.to_thread(_write_list, service, caller, after, limit)
    link = {} if last is None else {"Link": f'</queries?{urlencode({"after": last, "limit": limit})}>; rel="next"'}
    return Response(content, media_type="application/json", headers=link)


def _write_list(service: Service, caller: auth.Caller, after: int, limit: int | None) -> tuple[str, int | None]:
    """Return a page as JSON, and the registration after which the next page begins; None for the last page."""
    report = service.read_report()
    own, context = None if report is None else EngineMemory(**asdict(report.own), offset=report.position), _read_context(service, report)
    readable = service.catalog.list_page(after, None if limit is None else limit + 1, lambda name: caller.may(scopes.read_scope(name)))
    shown = [_build_summary(service, registration, context) for registration in readable[:limit]]
    found = QueryList(queries=shown, engine=own if caller.may(scopes.ADMIN) else None)
    return found.model_dump_json(by_alias=True), shown[-1].registered if len(shown) < len(readable) else None


@router.get("/queries/{name}", dependencies=[READ], summary="Show a query's state and counts", responses=_NO_QUERY)
async def get_query(name: Name, service: Shared) -> QueryDocument:
    registration = service.catalog.get_query(name)
    warnings: tuple[Warning_, ...] = ()
    if registration.state == "running":
        policies, instants = {name: registration.policy}, registration.instants
        warnings = await asyncio.to_thread(check_registration, registration.text, {}, name, policies, instants=instants)
    return await build_document(service, registration, warnings)


@router.delete(
    "/queries/{name}",
    dependencies=[ADMIN],
    status_code=204,
    summary="Drop a query with its state, and the queries of its first operands",
    responses=_NO_QUERY,
)
async def delete_query(name: Name, service: Shared, deliveries: Sent) -> None:
    async with service.catalog.changing:
        registration = service.catalog.get_query(name)
        for each in (registration, *await asyncio.to_thread(find_companions, registration, service.catalog)):
            observers = [observer.id for observer in deliveries.list_webhooks(each.name)]
            await asyncio.wrap_future(_submit_drop(service, each))
            try:
                await deliveries.delete_webhooks(each.name, observers)
            finally:
                service.output.drop_query(each)
                service.notifier.wake_all()

"""Creates, shows and deletes webhooks, which the API calls the observers of a query."""

import asyncio
import json
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Annotated, Any, Literal, assert_never
from uuid import uuid4

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel

from engine.messages import CERTAIN
from epsparql.solutions.once_per import EXAMPLE, OncePer, SentKeys, check_variables, read_once_per
from pipeline.formats.batches.timestamps import iso
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import find_form
from pipeline.solutions.result_kinds import Bindings, Changes, Triples, Verdict
from server.dependencies import ADMIN, Sent, Shared
from server.http.body_parsing import describe_body, describe_content, parse_json_object, read_body, read_text_member
from server.http.path_names import Name, decode_name, encode_name
from server.http.problem_details import Fault, bad_request, describe_responses, unknown_fault
from server.query_output.page_cache import SolutionLine
from server.registrations.catch_up_rules import refuse_revised, refuse_static_rule
from server.service import Service
from server.webhook_delivery.delivery import Deliveries, ReceiverAnswer, list_variables, too_many_webhooks
from server.webhook_delivery.registrations import Webhook
from server.webhook_delivery.signing import create_secret, decode_secret
from server.webhook_delivery.target_policy import TargetRefused, parse_target, refusal_fault
from server.webhook_delivery.template_parser import parse_template
from server.webhook_delivery.templates import CUSTOM, JSON, Template

router = APIRouter(tags=["webhooks"])
_MEMBERS = ("url", "secret", "after", "template", "routing_key", "once_per")
_NONE = describe_responses([404])


class TemplateWish(BaseModel):
    """Describes the request that is posted for each solution.

    `body` and the values of `headers` may contain `{variable}`, `{query}`, `{id}`, `{start}` and `{end}`; `{{id}}`
    writes `{id}`.
    """

    content_type: str = JSON
    body: str | dict[str, Any] | list[Any]
    headers: dict[str, str] = {}


class OncePerWish(BaseModel):
    """Keeps alerts from repeating: of the solutions with equal terms of `variables`, one is delivered within a
    duration.

    A solution is left out if a delivered one of its key ended later than its end minus `within`. `within` is
    xsd:duration text or a number of seconds.
    """

    variables: list[str]
    within: str | float


Kind = Literal["slack", "teams", "pagerduty", "cloudevents"]


class ObserverWish(BaseModel):
    """Describes a webhook to create.

    `secret` is `whsec_` and base64; one is made where none is given. Solutions after the id `after` are delivered;
    without it, new ones only.

    `template` says for which kind of receiver requests are made, or how; `routing_key` is PagerDuty's integration
    key. `once_per` leaves repeats out.
    """

    url: str
    secret: str | None = None
    after: str | None = None
    template: Kind | TemplateWish | None = None
    routing_key: str | None = None
    once_per: OncePerWish | None = None


class OncePerDocument(BaseModel):
    """Says by which variables a webhook's solutions are told apart, and within which duration one of each key is
    delivered.
    """

    variables: list[str]
    within: str


class TemplateDocument(BaseModel):
    """Describes a template. Of its headers, only the names are shown."""

    content_type: str
    body: str
    headers: list[str]


class GivenUpDocument(BaseModel):
    """Describes a solution that the receiver did not take.

    The query's solutions still contain it, and a PUT with `after` has it delivered again.
    """

    id: str
    attempts: int
    error: str
    at: str


class ObserverDocument(BaseModel):
    """Describes a webhook.

    `state` is active or disabled (the receiver answered 410). `attempts`, `error` and `next_try` are those of the
    present delivery.

    `last` is the newest solution delivered, left out or given up, `dead` the newest that were given up. `secret` is
    shown only where the server made it.

    `suppressed` counts the solutions that `once_per` left out. It keeps at most 10,000 keys; `forgotten` counts those
    that this bound let go too soon, so that they may be delivered again.
    """

    query: str
    id: str
    url: str
    state: str
    created: str
    last: str | None
    delivered: int
    attempts: int
    error: str | None
    next_try: str | None
    given_up: int
    dead: list[GivenUpDocument]
    template: Kind | TemplateDocument | None = None
    once_per: OncePerDocument | None = None
    suppressed: int = 0
    forgotten: int = 0
    secret: str | None = None


class TestDocument(BaseModel):
    """Describes the answer to a test message: the receiver's status and the first 500 characters that it said, or the
    error without an answer.
    """

    id: str
    delivered: bool
    status: int | None
    answer: str | None
    error: str | None


class ObserverList(BaseModel):
    observers: list[ObserverDocument]


async def _id(id: Annotated[str, Path(description="Percent-encoded as one path segment")]) -> str:
    return decode_name(id)


Id = Annotated[str, Depends(_id)]


def _document(webhook: Webhook, secret: str | None = None) -> ObserverDocument:
    shown = {name: value for name, value in asdict(webhook).items() if name in ObserverDocument.model_fields}
    once_per = webhook.once_per.to_setting() if webhook.once_per else None
    made = {"secret": secret, "template": _describe_template(webhook.template), "once_per": once_per, "forgotten": webhook.sent.forgotten}
    return ObserverDocument.model_validate(shown | made)


def _describe_template(template: Template | None) -> str | TemplateDocument | None:
    if template is None:
        return None
    if template.kind != CUSTOM:
        return template.kind
    return TemplateDocument(content_type=template.content_type, body=template.body, headers=list(template.headers))


def _find_webhook(deliveries: Deliveries, query: str, id_: str) -> Webhook:
    """Return the query's webhook. Raises: Fault 404."""
    webhook = deliveries.find_webhook(query, id_)
    if webhook is None:
        raise _unknown_fault(deliveries, query, id_)
    return webhook


def _unknown_fault(deliveries: Deliveries, query: str, id_: str) -> Fault:
    return unknown_fault("observer", id_, [each.id for each in deliveries.list_webhooks(query)], query=query)


_BODY = describe_body({"application/json": describe_content("ObserverWish", {"url": "https://example.org/hook"})})


@router.put(
    "/queries/{name}/observers/{id}",
    dependencies=[ADMIN],
    status_code=201,
    summary="Create a webhook, which delivers a query's solutions to a URL",
    responses=describe_responses(
        [400, 404, 413, 422, 429], success={200: {"description": "The webhook existed already; its deliveries continue", "model": ObserverDocument}}
    ),
    openapi_extra=_BODY,
)
async def put_observer(name: Name, id: Id, request: Request, response: Response, service: Shared, deliveries: Sent) -> ObserverDocument:
    found = parse_json_object(await read_body(request, service.settings.max_query), _MEMBERS)
    url, wished, after = read_text_member(found, "url", ""), read_text_member(found, "secret", ""), read_text_member(found, "after", "")
    asked = service.catalog.get_query(name)
    if found.get("once_per") is not None:
        refuse_revised(asked, "leave repeated alerts out, since a change may withdraw an alert", "leave once_per out")
    if found.get("template") is not None:
        refuse_revised(asked, "fill a template, which is for a solution that stays", "leave the template out, and changes are posted as JSON")
    if wished:
        decode_secret(wished)
    try:
        await deliveries.targets.resolve_target(parse_target(url))
    except TargetRefused as refused:
        raise refusal_fault(refused) from None
    async with service.catalog.changing:
        registration = service.catalog.get_query(name)
        refuse_static_rule(registration)
        await _check_solution_id(service, registration, after)
        known = deliveries.find_webhook(name, id)
        template = parse_template(found, list_variables(registration), known.template if known else None)
        if known is None and len(deliveries) >= service.settings.max_webhooks:
            raise too_many_webhooks(service.settings.max_webhooks)
        made = "" if wished or known else create_secret()
        once_per = _parse_once_per(found.get("once_per"), registration)
        before = known or _create_webhook(service, registration, id, made)
        position: dict[str, Any] = {"registered": registration.registered, "last": after} if after else {}
        if after or once_per != before.once_per:
            position["sent"] = SentKeys()
        afresh = {"state": "active", "attempts": 0, "error": None, "next_try": None}
        changed = {"url": url, "secret": wished or before.secret, "template": template, "once_per": once_per}
        webhook = await deliveries.put_webhook(before, **changed, **afresh, **position)
    response.status_code = HTTPStatus.OK if known else HTTPStatus.CREATED
    response.headers["Location"] = f"/queries/{encode_name(name)}/observers/{encode_name(id)}"
    return _document(webhook, made or None)


def _parse_once_per(given: object, registration: Registration) -> OncePer | None:
    """Return which solutions are left out; None if all are delivered. Raises: Fault 400."""
    if given is None:
        return None
    try:
        once_per = read_once_per(given)
        check_variables(once_per, list_variables(registration))
    except ValueError as fault:
        raise bad_request("bad-once-per", str(fault), expected=EXAMPLE, query=registration.name) from None
    return once_per


def _create_webhook(service: Service, registration: Registration, id_: str, secret: str) -> Webhook:
    last = service.solutions.tally(registration.registered).last
    return Webhook(registration.name, id_, "", secret, registration.registered, last, iso(service.clock()))


async def _check_solution_id(service: Service, registration: Registration, after: str) -> None:
    """Check the id of a solution. Raises: Fault 400 for what is no such id."""
    try:
        await asyncio.to_thread(service.solutions.read, registration.registered, after or None, 1)
    except ValueError as error:
        raise bad_request("bad-id", f"after: {error}", expected="the id of a solution", query=registration.name) from None


@router.get("/queries/{name}/observers", dependencies=[ADMIN], summary="List a query's webhooks", responses=_NONE)
async def list_observers(name: Name, service: Shared, deliveries: Sent) -> ObserverList:
    service.catalog.get_query(name)
    return ObserverList(observers=[_document(webhook) for webhook in deliveries.list_webhooks(name)])


@router.get(
    "/queries/{name}/observers/{id}", dependencies=[ADMIN], summary="Show a webhook's deliveries, and those that were given up", responses=_NONE
)
async def get_observer(name: Name, id: Id, service: Shared, deliveries: Sent) -> ObserverDocument:
    service.catalog.get_query(name)
    return _document(_find_webhook(deliveries, name, id))


@router.delete("/queries/{name}/observers/{id}", dependencies=[ADMIN], status_code=204, summary="Delete a webhook", responses=_NONE)
async def delete_observer(name: Name, id: Id, service: Shared, deliveries: Sent) -> None:
    async with service.catalog.changing:
        service.catalog.get_query(name)
        known = deliveries.find_webhook(name, id) is not None
        await deliveries.delete_webhooks(name, [id])
        if not known:
            raise _unknown_fault(deliveries, name, id)


@router.post(
    "/queries/{name}/observers/{id}/test",
    dependencies=[ADMIN],
    summary="Send one message that is marked as a test, and return what the receiver said",
    responses=describe_responses([404, 422]),
)
async def test_observer(name: Name, id: Id, service: Shared, deliveries: Sent) -> TestDocument:
    registration = service.catalog.get_query(name)
    webhook = _find_webhook(deliveries, name, id)
    try:
        await deliveries.targets.resolve_target(parse_target(webhook.url))
    except TargetRefused as refused:
        raise refusal_fault(refused) from None
    line = _make_test_line(registration, iso(service.clock()))
    match await deliveries.send_test(webhook, line):
        case ReceiverAnswer() as answer:
            failure = answer.describe_failure()
            error = failure.reason if failure else None
            return TestDocument(id=line.id, delivered=failure is None, status=answer.status, answer=answer.words, error=error)
        case failure:
            return TestDocument(id=line.id, delivered=False, status=None, answer=None, error=failure.reason)


def _make_test_line(registration: Registration, now: str) -> SolutionLine:
    """Return a made-up solution of a query, in which each variable is the text `test`."""
    id_, form = f"test-{uuid4().hex}", find_form(registration.text, registration.emit)
    solution: dict[str, Any] = {"query": registration.name, "id": id_, "start": now, "end": now}
    if isinstance(form, Changes):
        made = json.loads(_make_test_line(replace(registration, emit=CERTAIN), now).text)
        change = {"query": made.pop("query"), "seq": id_, "added": [made], "withdrawn": [], "settled": now}
        return SolutionLine(id_, json.dumps(change, ensure_ascii=False))
    match form:
        case Bindings(events=True):
            solution |= {"event": "test", "args": []}
        case Bindings(variables, instances=instances):
            solution |= {"instance": "test"} if instances else {}
            solution["binding"] = {variable: {"type": "literal", "value": "test"} for variable in variables}
        case Triples():
            solution["triples"] = '<urn:epsparql:test> <urn:epsparql:test> "test" .'
        case Verdict():
            solution["boolean"] = True
        case _:
            assert_never(form)
    return SolutionLine(id_, json.dumps(solution, ensure_ascii=False))

"""Creates, shows and deletes webhooks, which the API calls the observers of a query."""

import asyncio
from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel

from pipeline.formats.batches.timestamps import iso
from pipeline.log.catalog import Registration
from server.dependencies import ADMIN, Sent, Shared
from server.http.body_parsing import json_object, read_body, text_member
from server.http.path_names import Name, decoded, encoded
from server.http.problem_details import Fault, Problem, bad_request, described
from server.service import Service
from server.webhook_delivery.delivery import Deliveries, too_many
from server.webhook_delivery.registrations import Observer
from server.webhook_delivery.signing import key_of, new_secret
from server.webhook_delivery.target_policy import Refused, refusal, target_of

router = APIRouter(tags=["webhooks"])
_MEMBERS = ("url", "secret", "after")
_NONE = described(HTTPStatus.NOT_FOUND)


class ObserverWish(BaseModel):
    """Describes a webhook to create.

    `secret` is `whsec_` and base64; one is made where none is given. Solutions after the id `after` are delivered; without it, new ones only.
    """

    url: str
    secret: str | None = None
    after: str | None = None


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

    `state` is active or disabled (the receiver answered 410). `attempts`, `error` and `next_try` are those of the present delivery.

    `last` is the newest solution delivered or given up, `dead` the newest that were given up. `secret` is shown only where the server made it.
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
    secret: str | None = None


class ObserverList(BaseModel):
    observers: list[ObserverDocument]


def _id(id: Annotated[str, Path(description="Percent-encoded as one path segment")]) -> str:
    return decoded(id)


Id = Annotated[str, Depends(_id)]


def _document(observer: Observer, secret: str | None = None) -> ObserverDocument:
    shown = {name: value for name, value in asdict(observer).items() if name in ObserverDocument.model_fields}
    return ObserverDocument.model_validate(shown | {"secret": secret})


def _found(deliveries: Deliveries, query: str, id_: str) -> Observer:
    """Return the query's observer. Raises: Fault 404."""
    observer = deliveries.find(query, id_)
    if observer is None:
        raise _unknown(deliveries, query, id_)
    return observer


def _unknown(deliveries: Deliveries, query: str, id_: str) -> Fault:
    known = ", ".join(repr(each.id) for each in deliveries.of(query)[:5]) or "none"
    return Fault(Problem(HTTPStatus.NOT_FOUND, "unknown-observer", f"the query has no observer {id_!r}; it has: {known}", query=query))


_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ObserverWish"}, "example": {"url": "https://example.org/hook"}}},
    },
}


@router.put(
    "/queries/{name}/observers/{id}",
    dependencies=[ADMIN],
    status_code=201,
    summary="Have a query's solutions delivered to a URL, as Standard Webhooks",
    responses=described(
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.TOO_MANY_REQUESTS,
        success={200: {"description": "It was there; its deliveries go on", "model": ObserverDocument}},
    ),
    openapi_extra=_BODY,
)
async def put_observer(name: Name, id: Id, request: Request, response: Response, service: Shared, deliveries: Sent) -> ObserverDocument:
    found = json_object(await read_body(request, service.settings.max_query), _MEMBERS)
    url, wished, after = text_member(found, "url", ""), text_member(found, "secret", ""), text_member(found, "after", "")
    service.catalog.get_query(name)
    if wished:
        key_of(wished)
    try:
        await deliveries.targets.addresses(target_of(url))
    except Refused as refused:
        raise refusal(refused) from None
    async with service.catalog.changing:
        registration = service.catalog.get_query(name)
        await _known(service, registration, after)
        known = deliveries.find(name, id)
        if known is None and len(deliveries) >= service.settings.max_observers:
            raise too_many(service.settings.max_observers)
        made = "" if wished or known else new_secret()
        observer = known or _new(service, registration, id, made)
        observer.url, observer.secret, observer.state = url, wished or observer.secret, "active"
        observer.attempts, observer.error, observer.next_try = 0, None, None
        if after:
            observer.registered, observer.last = registration.registered, after
        await deliveries.put(observer)
    response.status_code = HTTPStatus.OK if known else HTTPStatus.CREATED
    response.headers["Location"] = f"/queries/{encoded(name)}/observers/{encoded(id)}"
    return _document(observer, made or None)


def _new(service: Service, registration: Registration, id_: str, secret: str) -> Observer:
    last = service.solutions.tally(registration.registered).last
    return Observer(registration.name, id_, "", secret, registration.registered, last, iso(service.clock()))


async def _known(service: Service, registration: Registration, after: str) -> None:
    """Check the id of a solution. Raises: Fault 400 for what is no such id."""
    try:
        await asyncio.to_thread(service.solutions.read, registration.registered, after or None, 1)
    except ValueError as error:
        raise bad_request("bad-id", f"after: {error}", expected="the id of a solution", query=registration.name) from None


@router.get("/queries/{name}/observers", dependencies=[ADMIN], summary="A query's webhooks", responses=_NONE)
async def list_observers(name: Name, service: Shared, deliveries: Sent) -> ObserverList:
    service.catalog.get_query(name)
    return ObserverList(observers=[_document(observer) for observer in deliveries.of(name)])


@router.get("/queries/{name}/observers/{id}", dependencies=[ADMIN], summary="A webhook: what it was told, and what was given up", responses=_NONE)
async def get_observer(name: Name, id: Id, service: Shared, deliveries: Sent) -> ObserverDocument:
    service.catalog.get_query(name)
    return _document(_found(deliveries, name, id))


@router.delete("/queries/{name}/observers/{id}", dependencies=[ADMIN], status_code=204, summary="Deliver no more", responses=_NONE)
async def delete_observer(name: Name, id: Id, service: Shared, deliveries: Sent) -> None:
    async with service.catalog.changing:
        service.catalog.get_query(name)
        known = deliveries.find(name, id) is not None
        await deliveries.delete(name, [id])
        if not known:
            raise _unknown(deliveries, name, id)

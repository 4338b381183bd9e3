"""Adds, changes, lists and removes instances of queries with PARAMETERS, and serves the solutions of one."""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from heapq import nsmallest
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from engine.messages import ChangeInstances
from engine.state_size import instance_bytes
from pipeline.errors import FormatError
from pipeline.formats.body_parser import NDJSON
from pipeline.log import Queueing
from pipeline.log.catalog import Registration
from pipeline.partition_count import recorded
from pipeline.registrations.instance_values import InstanceReader, Values, check_id
from pipeline.registrations.query_cache import get_shape
from server.dependencies import INSTANCES, Shared
from server.http.body_parsing import read_body, read_media_type
from server.http.path_names import Instance, Name, encode_name
from server.http.problem_details import Fault, Problem, bad_request, describe_exception, describe_responses
from server.registrations.catch_up_rules import conflict_fault
from server.service import Service

router = APIRouter(tags=["instances"])
_NONE = describe_responses([404, 409])
_CHANGED = (400, 404, 409, 413, 415, 429)
_VALUES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "description": "A term for each parameter, by its name, written as in the events of ndjson"},
                "example": {"room": "<http://example.org/hall>", "limit": 25},
            }
        },
    }
}
_LINES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "description": "One instance"},
                "example": {"id": "ann", "values": {"room": "<http://example.org/hall>", "limit": 25}},
            },
            NDJSON: {
                "schema": {"type": "string", "description": "An instance a line; `values` null removes it"},
                "example": '{"id": "ann", "values": {"room": "<http://example.org/hall>", "limit": 25}}\n',
            },
        },
    }
}


class InstanceDocument(BaseModel):
    """Describes an instance: the term of each parameter, in N-Triples syntax."""

    id: str
    values: dict[str, str]


class InstanceList(BaseModel):
    """Lists a page of instances, in order of their ids; `count` is how many there are in all."""

    count: int
    instances: list[InstanceDocument]


class InstancesChanged(BaseModel):
    """Tells how many instances were set, and how many removed. Those that had these values already count, too.

    `offset` is the position of the log from which on they have solutions.
    """

    set: int
    removed: int
    offset: int


@router.put(
    "/queries/{name}/instances/{instance}",
    dependencies=[INSTANCES],
    status_code=201,
    summary="Add an instance of a query with PARAMETERS, or change its values",
    responses=describe_responses(_CHANGED, success={200: {"description": "The instance was there already", "model": InstanceDocument}}),
    openapi_extra=_VALUES,
)
async def put_instance(name: Name, instance: Instance, request: Request, response: Response, service: Shared) -> InstanceDocument:
    registration = service.catalog.get_query(name)
    known = service.catalog.get_instances(registration).get(instance)
    body = await read_body(request, service.settings.max_query)
    values = await asyncio.to_thread(_read_body, registration, lambda reader: {check_id(instance): reader.read_values(body)})
    await _write_change(service, registration, values)
    response.status_code = HTTPStatus.CREATED if known is None else HTTPStatus.OK
    response.headers["Location"] = f"/queries/{encode_name(name)}/instances/{encode_name(instance)}"
    return _describe_instance(registration, instance, json.dumps(values[instance]))


@router.post(
    "/queries/{name}/instances",
    dependencies=[INSTANCES],
    summary="Add, change and remove many instances by lines of ndjson, all of them or none",
    responses=describe_responses(_CHANGED),
    openapi_extra=_LINES,
)
async def post_instances(name: Name, request: Request, service: Shared) -> InstancesChanged:
    registration = service.catalog.get_query(name)
    service.catalog.get_instances(registration)
    if read_media_type(request) not in (NDJSON, "application/json"):
        raise Fault(Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", "instances are lines of ndjson", expected=NDJSON, query=name))
    body = await read_body(request, service.settings.max_body)
    values = await asyncio.to_thread(_read_body, registration, lambda reader: dict(reader.read_instances(body)))
    if not values:
        raise bad_request("empty", "the body has no instance", expected='a line such as {"id": "ann", "values": {"limit": 25}}', query=name)
    removed = sum(each is None for each in values.values())
    return InstancesChanged(set=len(values) - removed, removed=removed, offset=await _write_change(service, registration, values))


@router.get(
    "/queries/{name}/instances",
    dependencies=[INSTANCES],
    summary="List instances in pages; the Link header leads to the next page",
    responses=_NONE,
)
async def list_instances(
    name: Name,
    response: Response,
    service: Shared,
    after: Annotated[str, Query(description="Instances with ids after this one are listed.")] = "",
    prefix: Annotated[str, Query(description="Instances whose ids begin so are listed.")] = "",
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1000,
) -> InstanceList:
    registration = service.catalog.get_query(name)
    found = service.catalog.get_instances(registration)
    page = await asyncio.to_thread(lambda: nsmallest(limit, (each for each in list(found) if each > after and each.startswith(prefix))))
    if len(page) == limit:
        more = f"&prefix={encode_name(prefix)}" if prefix else ""
        response.headers["Link"] = f'</queries/{encode_name(name)}/instances?after={encode_name(page[-1])}&limit={limit}{more}>; rel="next"'
    documents = [_describe_instance(registration, each, known.terms) for each in page if (known := found.get(each)) is not None]
    return InstanceList(count=len(found), instances=documents)


@router.get("/queries/{name}/instances/{instance}", dependencies=[INSTANCES], summary="Show an instance", responses=_NONE)
async def get_instance(name: Name, instance: Instance, service: Shared) -> InstanceDocument:
    registration = service.catalog.get_query(name)
    return _describe_instance(registration, instance, service.catalog.get_instance(registration, instance).terms)


@router.delete(
    "/queries/{name}/instances/{instance}",
    dependencies=[INSTANCES],
    status_code=204,
    summary="Remove an instance; it has no solutions from then on",
    responses=_NONE,
)
async def delete_instance(name: Name, instance: Instance, service: Shared) -> None:
    registration = service.catalog.get_query(name)
    service.catalog.get_instance(registration, instance)
    await _write_change(service, registration, {instance: None})


def _read_body(registration: Registration, read: Any) -> dict[str, Values]:
    """Return what is read of a body. Raises: Fault 400."""
    try:
        found: dict[str, Values] = read(InstanceReader(get_shape(registration.text).parameters))
    except FormatError as fault:
        raise Fault(describe_exception(fault, query=registration.name)) from None
    return found


async def _write_change(service: Service, registration: Registration, values: Mapping[str, Values]) -> int:
    """Write a change of instances to the log, and return the position after it. Raises: Fault 409, 429."""
    changes = await asyncio.to_thread(json.dumps, values, ensure_ascii=False)
    entry = partial(_change_entry, service, registration, values, changes)
    written = await asyncio.to_thread(lambda: service.log.submit_entry(entry, queueing=Queueing.WAIT).result())
    service.notifier.wake_all()
    return written.offset


def _change_entry(service: Service, registration: Registration, values: Mapping[str, Values], changes: str, offset: int) -> ChangeInstances:
    """Return the entry that changes instances. Runs in the log's committer. Raises: Fault 409, 429."""
    name, now = registration.name, service.catalog.refresh(registration)
    if now is None or service.catalog.with_state(now).state not in ("running", "paused"):
        raise conflict_fault("query-ended", f"the query {name!r} no longer runs; register it again, and add its instances then", name)
    known = service.log.catalogue.instances.get(registration.registered, {})
    if added := sum(terms is not None and each not in known for each, terms in values.items()):
        _check_room(service, now, len(known) + added)
    return ChangeInstances(offset, registration.registered, name, changes)


def _check_room(service: Service, registration: Registration, count: int) -> None:
    """Check that a query may have so many instances; each partition has all of them. Raises: Fault 429."""
    name, most = registration.name, service.settings.max_instances
    if count > most:
        detail = f"the query {name!r} would have more than {most} instances; remove some, or raise max_instances"
        raise Fault(Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-instances", detail, query=name))
    needed = count * instance_bytes(len(get_shape(registration.text).parameters)) * (recorded(service.settings.data) or 1)
    if 0 < registration.max_state_bytes < needed:
        limit = f"more than its limit of {registration.max_state_bytes} (max_state_bytes)"
        detail = f"{count} instances of {name!r} would take {needed} bytes of state, {limit}; remove some, or register it with a higher limit"
        raise Fault(Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-much-state", detail, query=name))


def _describe_instance(registration: Registration, instance: str, terms: str) -> InstanceDocument:
    return InstanceDocument(id=instance, values=dict(zip(get_shape(registration.text).parameters, json.loads(terms), strict=True)))

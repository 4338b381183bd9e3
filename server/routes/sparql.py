"""Serves the SPARQL 1.1 Protocol: queries that are answered once, over the background."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request, Response

import epsparql
from epsparql.algebra import Ask, Select
from pipeline.formats.background import UNNAMED_ELEMENT, checked_name
from pipeline.formats.body_parser import RDF_XML
from server.background.answer_text import GRAPHS, TABLES
from server.background.query_pool import Answer, QueryPool
from server.background.query_protocol import Question
from server.background.service_description import describe_service
from server.dependencies import ADMIN, Shared
from server.http.body_parsing import decode_text, describe_body, describe_content, read_body, read_media_type
from server.http.content_negotiation import choose_media_type, versioned
from server.http.problem_details import Fault, Problem, bad_request, describe_responses, unsupported
from server.http.query_parameters import check_names
from server.service import Service

router = APIRouter(tags=["background"])
_FORM, _QUERY, _UPDATE = "application/x-www-form-urlencoded", "application/sparql-query", "application/sparql-update"
_ANSWERS = describe_responses(
    [400, 406, 413, 415, 422, 429],
    success={200: {"description": "The answer", "content": {media: {"schema": {"type": "string"}} for media in (*TABLES, *GRAPHS)}}},
)
_BODY = describe_body({media: describe_content() for media in (_QUERY, _FORM)})


@router.get(
    "/sparql",
    dependencies=[ADMIN],
    summary="Query the present background, with what it entails; without parameters, describe the service",
    responses=_ANSWERS,
    response_class=Response,
)
async def get_sparql(
    request: Request,
    service: Shared,
    query: Annotated[str | None, Query(description="This is a SPARQL 1.1 query. Without a dataset of its own, it looks in all graphs.")] = None,
    default_graph: Annotated[list[str] | None, Query(alias="default-graph-uri")] = None,
    named_graph: Annotated[list[str] | None, Query(alias="named-graph-uri")] = None,
    update: Annotated[str | None, Query(include_in_schema=False)] = None,
) -> Response:
    if update is not None:
        raise _no_update()
    if not request.query_params:
        chosen = choose_media_type(request.headers.get("accept"), tuple(GRAPHS))
        return Response(describe_service(str(request.url), chosen), media_type=chosen)
    if query is None or len(request.query_params.getlist("query")) > 1:
        raise bad_request("no-query", "the request needs the parameter 'query', once", expected="query")
    if len(query.encode()) > service.settings.max_query:
        raise _too_long(service)
    return await _answer_query(request, service, query, default_graph, named_graph)


@router.post(
    "/sparql",
    dependencies=[ADMIN],
    summary="Query the background, with the query as the body or all parameters as a form",
    responses=_ANSWERS,
    openapi_extra=_BODY,
    response_class=Response,
)
async def post_sparql(
    request: Request,
    service: Shared,
    default_graph: Annotated[list[str] | None, Query(alias="default-graph-uri")] = None,
    named_graph: Annotated[list[str] | None, Query(alias="named-graph-uri")] = None,
) -> Response:
    kind = read_media_type(request)
    if kind == _UPDATE:
        raise _no_update()
    if kind not in (_QUERY, _FORM):
        detail = f"a query is not {kind or 'without a Content-Type'}"
        raise Fault(Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", detail, expected=f"{_QUERY} or {_FORM}"))
    text = decode_text(await read_body(request, service.settings.max_query * (3 if kind == _FORM else 1)))  # a form may have three bytes for one
    if kind == _QUERY:
        return await _answer_query(request, service, text, default_graph, named_graph)
    try:
        form = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except ValueError as fault:
        raise bad_request("bad-form", f"the form cannot be read: {fault}", expected="UTF-8, percent-encoded") from None
    if "update" in form:
        raise _no_update()
    check_names(form, ("query", "default-graph-uri", "named-graph-uri"), "field")
    if len(form.get("query", ())) != 1:
        raise bad_request("no-query", "the form needs the field 'query', once", expected="query")
    return await _answer_query(request, service, form["query"][0], form.get("default-graph-uri"), form.get("named-graph-uri"))


async def _answer_query(request: Request, service: Service, text: str, default: Sequence[str] | None, named: Sequence[str] | None) -> Response:
    pool: QueryPool = request.app.state.query_pool
    parsed = epsparql.parse(text).query  # this parser gives the places of faults, and refuses SERVICE and updates
    offered = TABLES if isinstance(parsed, Select | Ask) else GRAPHS
    accept = request.headers.get("accept")
    chosen = choose_media_type(accept, tuple(offered))
    question = Question(
        query=text,
        default=None if default is None else [checked_name(name) for name in default],
        named=None if named is None else [checked_name(name) for name in named],
        media_type=chosen,
    )
    answer = await _await_answer(request, pool, question)
    if (held := choose_media_type(accept, tuple(offered), answer.version)) != chosen:  # the first choice cannot hold triple terms
        chosen = held
        answer = await _await_answer(request, pool, {**question, "media_type": chosen})
    if chosen == RDF_XML and UNNAMED_ELEMENT in answer.text:
        detail = "RDF/XML has no name for a predicate that does not end in an XML name"
        raise Fault(Problem(HTTPStatus.NOT_ACCEPTABLE, "not-acceptable", detail, expected=", ".join(GRAPHS)))
    content_type = chosen if chosen not in TABLES or "sparql" in chosen else f"{chosen}; charset=utf-8"
    return service.admission.answers.create_response(answer.text, versioned(content_type, answer.version))


async def _await_answer(request: Request, pool: QueryPool, question: Question) -> Answer:
    """Return the answer to a query. If the client hangs up meanwhile, the query ends.

    Raises: as `answer_query`; a Fault 400, which only the log shows, if the client hangs up.
    """
    answering = asyncio.ensure_future(pool.answer_query(question))
    leaving = asyncio.ensure_future(_wait_for_leaving(request))
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            return answering.result()
        raise bad_request("hung-up", "the client hung up before its query was answered")
    finally:
        answering.cancel()
        leaving.cancel()


async def _wait_for_leaving(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _no_update() -> Fault:
    return unsupported("updates are refused here; change the background with PUT, POST and DELETE of /ontologies/{name}")


def _too_long(service: Service) -> Fault:
    return Fault(Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", f"the query is larger than {service.settings.max_query} bytes"))

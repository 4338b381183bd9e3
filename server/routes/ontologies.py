"""Loads, extends, shows and drops graphs of the background."""

import asyncio
from http import HTTPStatus
from typing import Annotated

import pyoxigraph as ox
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from engine.messages import ADD, DROP, REPLACE
from pipeline.formats.background import NO_GRAPH, SYNTAXES, UNNAMED_ELEMENT, graph_of, read_graph
from pipeline.formats.body_parser import LD_JSON, N_QUADS, N_TRIPLES, RDF_XML, TRIG, TURTLE
from pipeline.formats.rdf.rdf_version import version_of_statements
from pipeline.formats.rdf.stored_statements import escape_stored
from pipeline.formats.reading_rules import is_blank
from pipeline.log.catalog import BackgroundGraph
from pipeline.registrations.query_cache import get_shape
from server.background.manager import Change
from server.background.shapes_protocol import ShapesVerdict
from server.dependencies import ADMIN, Shared
from server.http.body_parsing import describe_body, describe_content, read_body
from server.http.content_negotiation import choose_media_type, versioned
from server.http.path_names import Name, encode_name
from server.http.problem_details import Fault, Problem, bad_request, describe_responses, unknown_fault
from server.service import Service

router = APIRouter(tags=["background"])
_UNNAMED = "default"
_WRITTEN = {
    TURTLE: ox.RdfFormat.TURTLE,
    N_TRIPLES: ox.RdfFormat.N_TRIPLES,
    RDF_XML: ox.RdfFormat.RDF_XML,
    LD_JSON: ox.RdfFormat.JSON_LD,
    TRIG: ox.RdfFormat.TRIG,
    N_QUADS: ox.RdfFormat.N_QUADS,
}
_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_BODY = describe_body({media: describe_content() for media in SYNTAXES})


class OntologyDocument(BaseModel):
    """Describes a graph of the background.

    `size` is that of its triples' N-Triples text, `offset` that of its latest change in the log.
    """

    name: str
    triples: int
    size: int
    offset: int


class ValidationResultDocument(BaseModel):
    """Describes a validation result of SHACL.

    Terms are in the syntax of N-Triples; `path` and `value` are null if the result has none. `shape` is the nearest
    shape with a name; `constraint` and `severity` are names of SHACL.
    """

    focus: str
    path: str | None
    value: str | None
    shape: str
    constraint: str
    severity: str
    message: str


class ShapesReport(BaseModel):
    """Tells how many validation results the background has, and shows the first ones, violations first."""

    results: int
    violations: int
    shown: list[ValidationResultDocument]


class OntologyList(BaseModel):
    """Lists the graphs of the background.

    `entailment` says what the schema of all graphs entails: `rdfs` or `owl-rl`. `limited` says why RDFS alone is
    applied all the same; null if that is not so. `shapes` is null unless it is asked for.
    """

    entailment: str
    limited: str | None
    ontologies: list[OntologyDocument]
    shapes: ShapesReport | None


_CHANGED = describe_responses([400, 409, 413, 415, 422, 429], success={201: {"description": "The graph is new", "model": OntologyDocument}})


@router.put(
    "/ontologies/{name}",
    dependencies=[ADMIN],
    summary="Replace a graph of the background; `default` stands for triples in no graph, and `NAME` for `urn:epsparql:graph:NAME`",
    responses=_CHANGED,
    openapi_extra=_BODY,
)
async def put_ontology(name: Name, request: Request, response: Response, service: Shared) -> OntologyDocument:
    return await _load_graph(service, request, response, name, REPLACE)


@router.post(
    "/ontologies/{name}",
    dependencies=[ADMIN],
    summary="Add triples to a graph of the background",
    responses=_CHANGED,
    openapi_extra=_BODY,
)
async def post_ontology(name: Name, request: Request, response: Response, service: Shared) -> OntologyDocument:
    return await _load_graph(service, request, response, name, ADD)


async def _load_graph(service: Service, request: Request, response: Response, name: str, change: str) -> OntologyDocument:
    graph = _graph(name)
    media_type = request.headers.get("content-type", "")
    if not media_type:
        raise Fault(Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", "the body has no Content-Type", expected=", ".join(SYNTAXES)))
    body = await read_body(request, service.settings.max_background)
    if is_blank(body):
        raise bad_request("empty", "the body is empty", expected="triples; a comment alone is a graph without any, and DELETE removes a graph")
    triples = await asyncio.to_thread(read_graph, body, media_type, graph)
    async with service.catalog.changing:
        new = graph not in service.log.catalogue.graphs
        await asyncio.to_thread(service.background.change_graph, Change(graph, triples, change), service.catalog.list_rules())
    service.notifier.wake_all()
    response.status_code = HTTPStatus.CREATED if new else HTTPStatus.OK
    response.headers["Location"] = f"/ontologies/{encode_name(name)}"
    return await _document(service, _find_graph(service, name))


@router.get(
    "/ontologies",
    dependencies=[ADMIN],
    summary="List the graphs of the background; with `shapes`, also the violations of its shapes",
    responses=describe_responses([409, 422]),
)
async def list_ontologies(
    service: Shared,
    shapes: Annotated[bool, Query(description="The validation results of the background's shapes are added.")] = False,
) -> OntologyList:
    graphs = list(service.log.catalogue.graphs.values())
    report = await asyncio.to_thread(service.read_report)
    limited = report.limited if report is not None else ""
    documents = [await _document(service, graph) for graph in graphs]
    verdict = await asyncio.to_thread(service.background.find_violations) if shapes else None
    return OntologyList(
        entailment=service.log.catalogue.entailment,
        limited=limited or None,
        ontologies=documents,
        shapes=None if verdict is None else _describe_report(verdict),
    )


def _describe_report(verdict: ShapesVerdict) -> ShapesReport:
    shown = [ValidationResultDocument.model_validate({name: text or None for name, text in result.items()}) for result in verdict["shown"]]
    return ShapesReport(results=verdict["results"], violations=verdict["violations"], shown=shown)


@router.get(
    "/ontologies/{name}",
    dependencies=[ADMIN],
    summary="Read a graph's triples as they were loaded, without what they entail; with `derived`, also what static rules derive in it",
    responses=describe_responses(
        [404, 406, 429], success={200: {"description": "The triples", "content": {media: {"schema": {"type": "string"}} for media in _WRITTEN}}}
    ),
    response_class=Response,
)
async def get_ontology(
    name: Name,
    request: Request,
    service: Shared,
    derived: Annotated[bool, Query(description="The triples that static rules derive in the graph are added.")] = False,
) -> Response:
    rules = service.catalog.list_rules() if derived else []
    if any(get_shape(rule.text).graph == _graph(name) for rule in rules):
        graph = service.log.catalogue.graphs.get(_graph(name)) or BackgroundGraph(_graph(name))
        lines = await asyncio.to_thread(service.background.read_derived, graph.name, rules)
        text = await asyncio.to_thread(escape_stored, "".join(f"{line}\n" for line in lines))
    else:
        graph = _find_graph(service, name)
        text = await asyncio.to_thread(service.background.read_ntriples, graph)
    version = await asyncio.to_thread(version_of_statements, text.splitlines())
    media_type = choose_media_type(request.headers.get("accept"), tuple(_WRITTEN), version)
    written = await asyncio.to_thread(_write_graph, graph, text, media_type)
    return service.admission.answers.create_response(written, versioned(media_type, version))


def _write_graph(graph: BackgroundGraph, text: str, media_type: str) -> bytes:
    if media_type == N_TRIPLES:
        return text.encode()
    place = ox.NamedNode(graph.name) if graph.name and media_type in (TRIG, N_QUADS) else ox.DefaultGraph()
    quads = [ox.Quad(q.subject, q.predicate, q.object, place) for q in ox.parse(text, ox.RdfFormat.N_TRIPLES)]
    fmt = _WRITTEN[media_type]
    prefixes = _PREFIXES if media_type in (TURTLE, TRIG) else None
    written = ox.serialize(quads if fmt.supports_datasets else (quad.triple for quad in quads), format=fmt, prefixes=prefixes)
    assert written is not None, "no file was given to write to"
    if media_type == RDF_XML and UNNAMED_ELEMENT in written:
        detail = "RDF/XML has no name for a predicate that does not end in an XML name"
        raise Fault(Problem(HTTPStatus.NOT_ACCEPTABLE, "not-acceptable", detail, expected=TURTLE))
    return written


@router.delete(
    "/ontologies/{name}",
    dependencies=[ADMIN],
    status_code=204,
    summary="Drop a graph of the background; solutions found with it stay",
    responses=describe_responses([404, 409, 422]),
)
async def delete_ontology(name: Name, service: Shared) -> None:
    async with service.catalog.changing:
        graph = _find_graph(service, name)
        await asyncio.to_thread(service.background.change_graph, Change(graph.name, "", DROP), service.catalog.list_rules())
    service.notifier.wake_all()


def _graph(name: str) -> str:
    return NO_GRAPH if name == _UNNAMED else graph_of(name)


def _find_graph(service: Service, name: str) -> BackgroundGraph:
    """Return the graph of this name. Raises: Fault 404."""
    graphs = service.log.catalogue.graphs
    if _graph(name) not in graphs:
        raise unknown_fault("ontology", name, [graph or _UNNAMED for graph in graphs])
    return graphs[_graph(name)]


async def _document(service: Service, graph: BackgroundGraph) -> OntologyDocument:
    triples = await asyncio.to_thread(service.background.count_triples, graph)
    return OntologyDocument(name=graph.name or _UNNAMED, triples=triples, size=graph.size, offset=graph.offset)

"""Shows why a query gave a solution, as JSON and in the PROV ontology."""

import asyncio
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Literal, assert_never

import pyoxigraph as ox
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from engine.background.reasoning.rdfs_schema import Triple
from engine.provenance import Absence, BackgroundFact, Inference, Members, Occurrence, OwnEvent, Proof, Step, Used
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.rdf.stored_statements import parse_stored
from pipeline.registrations.query_cache import get_shape
from pipeline.solutions.formats import Bindings, Verdict
from pipeline.solutions.provenance import Justification, Justifier, find
from pipeline.solutions.solution_log import StoredSolution
from server.dependencies import READ, Shared
from server.http.content_negotiation import choose_media_type
from server.http.path_names import Name, encode_name
from server.http.problem_details import Fault, Problem, bad_request, describe_responses
from server.registrations.catch_up_rules import refuse_revised
from server.registrations.instance_rules import refuse_parameters

router = APIRouter(tags=["solutions"])
JSON, TURTLE, N_TRIPLES = "application/json", "text/turtle", "application/n-triples"
_FORMATS = {TURTLE: ox.RdfFormat.TURTLE, N_TRIPLES: ox.RdfFormat.N_TRIPLES}


class InferenceDocument(BaseModel):
    """Names an RDFS rule, or `reflexive`, with the statements that it was applied to, in N-Triples."""

    rule: str
    premises: list[str]
    conclusion: str


class StepDocument(BaseModel):
    """Describes one thing that a solution rests on; which members are present depends on `kind`.

    `occurrence` is a triple of `stream`, accepted at the log position `offset`. `derived` is a triple of a rule's
    solution (`rule`, `solution`), which is listed in `rules`. `background` is a triple of the background. For these
    three, `s`, `p` and `o` are the triple's terms. `inferences` make of it the `triple` that `pattern` matched.

    `absent` means that `patterns` have no solution that counts up to `until`. `members` means an aggregate over
    `count` solutions, of which the first are `shown`. `event` is an event of an ETALIS program, as programs write it,
    that the program's rule of the label `rule` derived `because` of other steps.
    """

    kind: Literal["occurrence", "derived", "background", "absent", "members", "event"]
    s: str | None = None
    p: str | None = None
    o: str | None = None
    pattern: str | None = None
    triple: str | None = None
    stream: str | None = None
    graph: str | None = None
    start: str | None = None
    end: str | None = None
    offset: int | None = None
    rule: str | None = None
    solution: str | None = None
    inferences: list[InferenceDocument] | None = None
    operator: str | None = None
    patterns: list[str] | None = None
    until: str | None = None
    count: int | None = None
    shown: "list[MemberDocument] | None" = None
    event: str | None = None
    because: "list[StepDocument] | None" = None


class MemberDocument(BaseModel):
    """Describes one of the solutions that an aggregate is over; a timeless one has no interval."""

    start: str | None
    end: str | None
    because: list[StepDocument]


class SolutionDocument(BaseModel):
    """Describes a solution and what it rests on.

    `binding` has a term in N-Triples for each bound variable of a SELECT, `triples` the triples that a rule gave.
    """

    query: str
    id: str
    start: str
    end: str
    binding: dict[str, str] | None = None
    triples: list[str] | None = None
    because: list[StepDocument]


class WhyDocument(SolutionDocument):
    """Adds to a solution the `rules`: the solutions of rules that it rests on, each once."""

    rules: list[SolutionDocument]


@router.get(
    "/queries/{name}/solutions/{id}/why",
    dependencies=[READ],
    summary="Explain a solution by occurrences, rules and inference steps",
    responses=describe_responses(
        [400, 404, 406, 409, 410, 503],
        success={200: {"description": "A derivation of the solution, as JSON or in PROV-O", "model": WhyDocument, "content": {TURTLE: {},
        N_TRIPLES: {}}}}
    ),
    response_class=Response,
)  # fmt: skip
async def get_why(name: Name, id: str, request: Request, service: Shared) -> Response:
    registration = service.catalog.get_query(name)
    refuse_revised(registration, "explain a change", "register the same text with emit certain, and ask for the reasons of its solutions")
    refuse_parameters(registration, "explain a solution", "register the text with the instance's values, and ask for the reasons of its solutions")
    media_type = choose_media_type(request.headers.get("accept"), (JSON, TURTLE, N_TRIPLES))
    try:
        solution = await asyncio.to_thread(find, service.solutions, registration.registered, id)
    except ValueError as error:
        raise bad_request("bad-id", str(error), expected="the id of a solution", query=name) from None
    if solution is None:
        raise Fault(Problem(HTTPStatus.NOT_FOUND, "unknown-solution", f"the query {name!r} has no solution {id}", query=name))
    justifier = Justifier(service.settings.data, service.solutions, service.catalog.list_queries())
    async with service.admission.one_derivation:
        found = await asyncio.to_thread(justifier.why, registration.as_of(solution.entry), solution)
    if media_type == JSON:
        return JSONResponse(_document(found).model_dump(exclude_none=True))
    base = str(request.base_url).rstrip("/")
    text = await asyncio.to_thread(_provenance, found, base, _FORMATS[media_type])
    return Response(text, media_type=media_type)


# ---------------------------------------------------------------- JSON
def _document(found: Justification) -> WhyDocument:
    rules = [SolutionDocument(**_solution(each)) for each in _rules(found)]
    return WhyDocument(**_solution(found), rules=rules)


def _rules(found: Justification) -> list[Justification]:
    """Return all solutions of rules that this one rests on, also through other rules, each once."""
    seen: dict[tuple[str, str], Justification] = {}
    pending = list(found.rules.values())
    while pending:
        each = pending.pop(0)
        if (key := (each.registration.name, each.solution.id)) not in seen:
            seen[key] = each
            pending += each.rules.values()
    return list(seen.values())


def _solution(found: Justification) -> dict[str, Any]:
    solution = found.solution
    shown = {"query": found.registration.name, "id": solution.id, "start": iso(solution.start), "end": iso(solution.end)}
    return shown | _values(found) | {"because": _steps(found.proof)}


def _values(found: Justification) -> dict[str, Any]:
    values = [value or "" for value in found.solution.values]
    match get_shape(found.registration.text).form:
        case Bindings(variables):
            return {"binding": {v: value for v, value in zip(variables, values, strict=True) if value}}
        case Verdict():
            return {}
        case _:
            return {"triples": values}


def _steps(proof: Proof) -> list[StepDocument]:
    return [_step(step) for step in dict.fromkeys(_hashable(proof.steps))]


def _hashable(steps: tuple[Step, ...]) -> Iterator[Any]:
    for step in steps:
        yield _StepOfProofs(step) if isinstance(step, Members | OwnEvent) else step


class _StepOfProofs:
    """Wraps a step that has proofs, so that each one is shown, even if an equal one was shown before."""

    def __init__(self, step: Members | OwnEvent) -> None:
        self.step = step


def _step(step: Any) -> StepDocument:
    match step:
        case Used(pattern, triple, given, inferences):
            return _used(pattern, triple, given, inferences)
        case Absence(operator, patterns, until):
            return StepDocument(kind="absent", operator=operator, patterns=list(patterns), until=None if until is None else iso(until))
        case _StepOfProofs(step=Members(count, shown)):
            members = [MemberDocument(**_show_times(x), because=_steps(x)) for x in shown]
            return StepDocument(kind="members", count=count, shown=members)
        case _StepOfProofs(step=OwnEvent(text, rule, proof)):
            return StepDocument(kind="event", event=text, rule=rule, **_show_times(proof), because=_steps(proof))
    raise AssertionError(step)


def _show_times(proof: Proof) -> dict[str, Any]:
    return {"start": None if proof.start is None else iso(proof.start), "end": None if proof.end is None else iso(proof.end)}


def _used(pattern: str, triple: Triple, given: Occurrence | BackgroundFact, inferences: tuple[Inference, ...]) -> StepDocument:
    told = [
        InferenceDocument(rule=each.rule, premises=[statement(t) for t in each.premises], conclusion=statement(each.conclusion))
        for each in inferences
    ]
    graph = None if given.graph is None else str(given.graph)
    s, p, o = map(str, given.triple)
    common: dict[str, Any] = {"s": s, "p": p, "o": o, "pattern": pattern, "triple": statement(triple), "graph": graph, "inferences": told or None}
    match given:
        case BackgroundFact():
            return StepDocument(kind="background", **common)
        case Occurrence():
            return StepDocument(
                kind="occurrence" if given.rule is None else "derived", stream=given.stream, start=iso(given.start), end=iso(given.end),
                offset=given.offset,
                rule=given.rule, solution=given.solution, **common,
            )  # fmt: skip
    assert_never(given)


def statement(triple: Triple) -> str:
    return "{} {} {} .".format(*triple)


# ---------------------------------------------------------------- PROV-O
PROV, OWN = "http://www.w3.org/ns/prov#", "urn:epsparql:why#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = {"prov": PROV, "why": OWN, "rdf": _RDF, "xsd": _XSD}


def _provenance(found: Justification, base: str, form: ox.RdfFormat) -> bytes:
    """Serialize the derivation in PROV-O.

    Each solution is an entity that an activity of its query derived from entities: reified triples, and solutions of
    rules.
    """
    graph = _ProvenanceGraph(base)
    for each in (found, *_rules(found)):
        graph.add_solution(each)
    written = ox.serialize(graph.triples, format=form, prefixes=PREFIXES if form == ox.RdfFormat.TURTLE else None)
    assert written is not None
    return written


class _ProvenanceGraph:
    def __init__(self, base: str) -> None:
        self._base, self.triples, self._entities = base, list[ox.Triple](), dict[object, ox.BlankNode]()

    def _path(self, *segments: str) -> ox.NamedNode:
        return ox.NamedNode(f"{self._base}/queries/{'/'.join(segments)}")

    def _add(self, subject: ox.NamedNode | ox.BlankNode, predicate: str, value: Any) -> None:
        self.triples.append(ox.Triple(subject, ox.NamedNode(predicate), value))

    def add_solution(self, found: Justification) -> None:
        name, solution = encode_name(found.registration.name), found.solution
        entity, activity, query = self._path(name, "solutions", solution.id), ox.BlankNode(), self._path(name)
        self._add(entity, _RDF + "type", ox.NamedNode(PROV + "Entity"))
        self._add_interval(entity, solution)
        for value in solution.values:
            if value:
                self._add(entity, PROV + "value", ox.Literal(value))
        self._add(entity, PROV + "wasGeneratedBy", activity)
        self._add(activity, _RDF + "type", ox.NamedNode(PROV + "Activity"))
        self._add(activity, PROV + "wasAssociatedWith", query)
        self._add(query, _RDF + "type", ox.NamedNode(PROV + "SoftwareAgent"))
        self._add_steps(entity, activity, found.proof)

    def _add_interval(self, entity: ox.NamedNode | ox.BlankNode, of: StoredSolution | Occurrence) -> None:
        date = ox.NamedNode(_XSD + "dateTime")
        self._add(entity, OWN + "start", ox.Literal(iso(of.start), datatype=date))
        self._add(entity, PROV + "generatedAtTime", ox.Literal(iso(of.end), datatype=date))

    def _add_steps(self, entity: ox.NamedNode, activity: ox.BlankNode, proof: Proof) -> None:
        for step in proof.steps:
            match step:
                case Used():
                    used = self._add_inferred(step)
                    self._add(entity, PROV + "wasDerivedFrom", used)
                    self._add(activity, PROV + "used", used)
                case Absence(operator, patterns, _):
                    absent = ox.BlankNode()
                    self._add(activity, OWN + "foundAbsent", absent)
                    self._add(absent, OWN + "operator", ox.Literal(operator))
                    for pattern in patterns:
                        self._add(absent, OWN + "pattern", ox.Literal(pattern))
                case Members(count, shown):
                    self._add(activity, OWN + "members", ox.Literal(count))
                    for member in shown:
                        self._add_steps(entity, activity, member)
                case OwnEvent(text, rule, because):
                    self._add(activity, OWN + "event", ox.Literal(text))
                    self._add(activity, OWN + "rule", ox.Literal(rule))
                    self._add_steps(entity, activity, because)
                case _:
                    assert_never(step)

    def _add_inferred(self, step: Used) -> ox.BlankNode:
        """Return the entity of the triple that was matched.

        If inference produced the triple, its entity is derived from that of the given triple.
        """
        if step.triple == step.given.triple and not step.steps:
            return self._add_given(step.given)
        last = self._add_given(step.given) if isinstance(step.given, Occurrence) else None
        for inference in step.steps:
            before = last
            last = self._add_entity((step.given, inference.conclusion), inference.conclusion)
            self._add(last, OWN + "rule", ox.Literal(inference.rule))
            if before is not None:
                self._add(last, PROV + "wasDerivedFrom", before)
            for premise in inference.premises:
                self._add(last, OWN + "premise", ox.Literal(statement(premise)))
        return last or self._add_given(step.given)

    def _add_given(self, given: Occurrence | BackgroundFact) -> ox.BlankNode:
        known = given in self._entities
        entity = self._add_entity(given, given.triple)
        if not known and isinstance(given, Occurrence):
            self._add_interval(entity, given)
            self._add(entity, OWN + "stream", ox.Literal(given.stream))
            if given.offset is not None:
                self._add(entity, OWN + "offset", ox.Literal(given.offset))
            if given.rule is not None and given.solution is not None:
                self._add(entity, PROV + "wasDerivedFrom", self._path(encode_name(given.rule), "solutions", given.solution))
        elif not known:
            self._add(entity, OWN + "background", ox.Literal(True))
        return entity

    def _add_entity(self, key: object, triple: Triple) -> ox.BlankNode:
        if key not in self._entities:
            node = self._entities[key] = ox.BlankNode()
            self._add(node, _RDF + "type", ox.NamedNode(PROV + "Entity"))
            (parsed,) = parse_stored(statement(triple))
            for part, term in zip(("subject", "predicate", "object"), (parsed.subject, parsed.predicate, parsed.object), strict=True):
                self._add(node, _RDF + part, term)
        return self._entities[key]

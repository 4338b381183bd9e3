"""Shows why a query has found nothing. Nothing is counted while nobody asks."""

import asyncio
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

import epsparql
from engine.messages import Register
from epsparql.algebra import BackgroundRule
from pipeline.diagnosis.model import Diagnosis
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import get_shape
from pipeline.registrations.stream_dependencies import find_sources, find_written
from server.dependencies import READ, Shared
from server.http.path_names import Name
from server.http.problem_details import describe_responses
from server.registrations.catch_up_rules import conflict_fault
from server.registrations.instance_rules import refuse_parameters
from server.routes.queries import compute_lag
from server.service import Service

router = APIRouter(tags=["queries"])


class ExaminedDocument(BaseModel):
    """Says which events were examined: the last `events` of the query's streams, which end between `from` and `to`.

    `bounded` if there are more.
    """

    events: int
    from_: str | None = Field(alias="from")
    to: str | None
    bounded: bool


class DiagnosisStep(BaseModel):
    """Counts what one step of the query lets through: the solutions of each input (`in`), and its own (`out`).

    `more` says that there are more of these: counting ends at some thousands. `line` and `column` are its place in
    the query's text.
    """

    operator: str
    text: str
    line: int | None
    column: int | None
    in_: list[int] = Field(alias="in")
    out: int
    more: bool


class DiagnosisReason(BaseModel):
    """Says why a query finds nothing. `code` is stable, and docs/diagnosis.md lists the codes.

    `nearest` is the nearest thing that would have passed, or nearly so: a name, a value or a time. It is null where
    nothing is near.
    """

    code: str
    message: str
    remedy: str
    nearest: str | None
    line: int | None
    column: int | None


class DiagnosisDocument(BaseModel):
    """Says why a query finds nothing.

    `state` is found if the query has found something, or finds something in the events that were examined. It is
    nothing if it has not, for the `reason`. It is unknown if no reason is known. `steps` are those of the query, each
    after its inputs.
    """

    query: str
    state: Literal["found", "nothing", "unknown"]
    examined: ExaminedDocument
    steps: list[DiagnosisStep]
    reason: DiagnosisReason | None


@router.get(
    "/queries/{name}/diagnosis",
    dependencies=[READ],
    summary="Say why the query finds nothing",
    responses=describe_responses([404, 409]),
)
async def get_diagnosis(name: Name, service: Shared) -> DiagnosisDocument:
    registration = service.catalog.get_query(name)
    parsed = await asyncio.to_thread(epsparql.parse, registration.text)
    if isinstance(parsed.query, BackgroundRule):
        raise conflict_fault("no-events", f"the query {name!r} is a rule over the background, which reads no events", name)
    refuse_parameters(registration, "be diagnosed", "register the text with an instance's values, and ask for the diagnosis of that query")
    async with service.inspector.diagnosing:
        found = await asyncio.to_thread(_diagnose, service, registration)
    return DiagnosisDocument.model_validate(found.list_members())


def _diagnose(service: Service, registration: Registration) -> Diagnosis:
    from pipeline.diagnosis.diagnosis import Question  # a start does without them
    from pipeline.diagnosis.evaluation.probing import Setting
    from pipeline.diagnosis.evaluation.sample import read_others, read_sample
    from pipeline.diagnosis.live import Live, diagnose_live

    data, catalogue, name = service.settings.data, service.log.catalogue, registration.name
    rules = [rule for rule in service.catalog.list_rules() if rule.name != name]
    written = find_written(get_shape(rule.text) for rule in rules)
    own = find_sources(get_shape(registration.text).streams, written)
    setting = Setting(_read_facts(service), catalogue.entailment, _select_rules(rules, own), registration.default_graph, registration.policy)
    sample = read_sample(data, {each: catalogue.streams[each].created for each in sorted(own) if each in catalogue.streams})
    others = {each: stream.created for each, stream in dict(catalogue.streams).items() if each not in own and stream.accepted}
    asked = Question(name, epsparql.parse(registration.text), setting, sample, lambda: read_others(data, others))
    live = Live(
        registration,
        service.solutions.tally(registration.registered).count,
        compute_lag(registration, service.log.head(), service.solutions.position),
        {each: catalogue.streams[each] for each in own if each in catalogue.streams},
        {each: service.log.find_awaited(each) for each in own},
        service.clock(),
    )
    return diagnose_live(asked, live)


def _select_rules(rules: list[Registration], own: frozenset[str]) -> list[Register]:
    """Return the static rules, and those that write streams on which the query rests."""
    wanted = [rule for rule in rules if get_shape(rule.text).graph is not None or get_shape(rule.text).into in own]
    return [Register(rule.registered, rule.name, rule.text, rule.policy, rule.default_graph, node_names=rule.node_names) for rule in wanted]


def _read_facts(service: Service) -> list[tuple[str, str]]:
    """Return the background by graph, until it is too large for a diagnosis."""
    from pipeline.diagnosis.live import MOST_FACTS  # as above

    found, count = list[tuple[str, str]](), 0
    for graph in list(service.log.catalogue.graphs.values()):
        found.append((graph.name, service.background.read_ntriples(graph)))
        count += found[-1][1].count("\n")
        if count > MOST_FACTS:
            break
    return found

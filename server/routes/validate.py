"""Checks a query without registering it: what an editor underlines, and the plan that the query would have."""

import asyncio
import json
from collections.abc import Sequence
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

import epsparql
from epsparql.errors import Span, Warning_
from epsparql.etalis.translator import query_text
from epsparql.solutions.policies import UNRESTRICTED
from pipeline.log.catalog import Registration
from pipeline.registrations.mending import mend_text
from pipeline.registrations.query_cache import Observed, check_registration, compute_shape, explain_query, get_shape
from pipeline.registrations.stream_dependencies import find_written, warn_of_silence
from server.dependencies import ADMIN, Shared
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
from server.http.problem_details import bad_request, describe_responses
from server.registrations.stream_promises import reads_instants
from server.routes.explain import PlanDocument
from server.routes.queries import DEFAULT_GRAPHS, ETALIS, warn_of_data
from server.service import Service

router = APIRouter(tags=["queries"])
_MEMBERS = ("query", "policy", "default_graph", "name")


class CheckWish(BaseModel):
    """Describes a query to check.

    `name` is the name under which it would be registered. The check for rules that feed themselves through a negative
    part leaves out a registered query of that name.
    """

    query: str
    policy: PolicyText = UNRESTRICTED
    default_graph: Literal["all", "unnamed"] = "all"
    name: str | None = None


class Mark(BaseModel):
    """Marks a fault or a doubt.

    Lines and columns (of code points) count from 1, and the end is exclusive. All four are null where the mark
    concerns no one place.
    """

    code: str
    message: str
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    expected: str | None = None


class RepairMark(Mark):
    """Marks a fault for which a repair is known: `found` is what stands there, and `remedy` what was probably meant;
    either may be empty.
    """

    found: str
    remedy: str


class CheckDocument(BaseModel):
    """Reports the `errors` for which the query would be refused; without any, `plan` is how it would be evaluated.

    `repairs` are those of the errors for which it is known what was probably meant. `mended` is the text with all of
    them; it is null where there are no errors, and where an error is left.
    """

    errors: list[Mark]
    warnings: list[Mark]
    plan: PlanDocument | None
    repairs: list[RepairMark]
    mended: str | None


_BODY = describe_body(
    {
        "application/json": describe_content("CheckWish", {"query": "SELECT * WHERE { ?s ?p ?o }"}),
        ETALIS: describe_content(example="rise(X, Y) <- price(X) seq price(Y) where X < Y."),
    }
)


@router.post(
    "/check",
    dependencies=[ADMIN],
    summary="Check a query without registering it: its faults, warnings and plan",
    responses=describe_responses([400, 413]),
    openapi_extra=_BODY,
)
async def check_query(request: Request, service: Shared) -> CheckDocument:
    body = await read_body(request, service.settings.max_query)
    found = {"query": decode_text(body)} if read_media_type(request) == ETALIS else parse_json_object(body, _MEMBERS)
    if "query" not in found:
        raise bad_request("no-query", "the body has no member 'query'", expected="query")
    policy = read_policy_member(found, UNRESTRICTED)
    default_graph = read_choice_member(found, "default_graph", DEFAULT_GRAPHS, DEFAULT_GRAPHS[0])
    name = read_text_member(found, "name", "") or "this query"
    text = read_text_member(found, "query", "")
    if read_media_type(request) == ETALIS:
        try:
            text, policy = query_text(text)
        except epsparql.QueryError as error:
            return CheckDocument(errors=[_fault(error)], warnings=[], plan=None, repairs=[], mended=None)
    checked = await asyncio.to_thread(_check_text, service, text, policy, default_graph, name)
    if not checked.errors:
        checked.warnings += [_doubt(warning, text) for warning in await warn_of_data(service, name, text)]
    return checked


def _check_text(service: Service, text: str, policy: str, default_graph: str, name: str) -> CheckDocument:
    rules = [rule for rule in service.catalog.list_rules() if rule.name != name]
    policies = {rule.name: rule.policy for rule in rules} | {name: policy}
    keys = service.log.catalogue.message_keys

    def check(text: str) -> tuple[tuple[Warning_, ...], str]:
        instants = reads_instants(service.catalog, text, service.log.head())
        warnings = check_registration(text, {rule.name: rule.text for rule in rules}, name, policies, instants=instants)
        return warnings, explain_query(text, "json", default_graph, policy, observed=Observed(message_keys=keys, instants=instants))

    mended = mend_text(text, check)
    if mended.all_faults:
        repairs = [RepairMark(**_fault(repair.fault).model_dump(), found=repair.found, remedy=repair.remedy) for repair in mended.repairs]
        return CheckDocument(errors=[_fault(fault) for fault in mended.all_faults], warnings=[], plan=None, repairs=repairs, mended=mended.text)
    assert mended.found is not None, "a text without faults was checked"
    found, plan = mended.found
    warnings = [_doubt(warning, text) for warning in (*found, *_warn_of_silence(service, text, rules))]
    return CheckDocument(errors=[], warnings=warnings, plan=PlanDocument.model_validate(json.loads(plan)), repairs=[], mended=None)


def _warn_of_silence(service: Service, text: str, rules: Sequence[Registration]) -> list[Warning_]:
    written = find_written(get_shape(rule.text) for rule in rules)
    return warn_of_silence(compute_shape(epsparql.parse(text)), written, service.log.catalogue.streams)


def _fault(error: epsparql.QueryError) -> Mark:
    return _mark(error.code, error.message, error.span, error.text).model_copy(update={"expected": error.expected or None})


def _doubt(warning: Warning_, text: str) -> Mark:
    return _mark(warning.code, warning.message, warning.span, text)


def _mark(code: str, message: str, span: Span | None, text: str) -> Mark:
    if span is None:
        return Mark(code=code, message=message, line=None, column=None, end_line=None, end_column=None)
    (line, column), (end_line, end_column) = span.place(text), Span(span.end, span.end).place(text)
    return Mark(code=code, message=message, line=line, column=column, end_line=end_line, end_column=end_column)

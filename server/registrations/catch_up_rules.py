"""Decides which queries may read the past or pause, and which queries wait for them.

All of it is decided where the log is written.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Literal

from engine.messages import REVISED, Pause, Register, Resume
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import Shape, get_shape
from pipeline.registrations.stream_dependencies import Written, find_sources, find_written
from server.http.problem_details import Fault, Problem, bad_request
from server.registrations.catalog_view import CatalogView
from server.registrations.stream_promises import add_promises, check_instants_written


def switch_entry(catalog: CatalogView, offset: int, name: str, state: Literal["paused", "running"]) -> Pause | Resume:
    """Return the entry that pauses a query or lets it read on; runs in the log's committer. Raises: Fault 409."""
    known = catalog.log.catalogue.queries[name]
    refuse_static_rule(known)
    refuse_revised(known, "be paused", "drop it, or stop reading it; changes wait in its changelog")
    if get_shape(known.text).parameters:
        raise conflict_fault("parameters", f"{name!r} has PARAMETERS, and cannot be paused: remove its instances, or stop reading it", name)
    if state == "running":
        return Resume(offset, known.registered, name)
    if catalog.with_state(known).waiting is not None:
        raise conflict_fault("promotion-under-way", f"another text is to take the place of {name!r}; DELETE its promotion first, or wait", name)
    if known.lead is None:
        return Pause(offset, known.registered, name, _find_held(catalog, known, "paused"))
    if known.lead != known.registered:
        raise conflict_fault(
            "query-waits", f"the query {name!r} already waits for {name_query(catalog, known.lead)}; resume or drop that query first", name
        )
    return Pause(offset, known.registered, name)


def register_entry(catalog: CatalogView, offset: int, wish: Register, start: str | int) -> Register:
    """Return the entry that registers a query which reads from `start`, in place of one of its name.

    Runs in the log's committer. Raises: Fault 400, 409.
    """
    reads_from, own = find_start(catalog, offset, wish.name, start), get_shape(wish.text)
    wish = add_promises(catalog, wish, offset + 1 if reads_from is None else reads_from)
    check_instants_written(catalog, wish.name, wish.text, instants=wish.instants)
    rules = [rule for rule in catalog.list_rules() if rule.name != wish.name]
    feeding = find_sources(own.streams, find_written_streams(rules))
    ahead = [query for query in rules if query.lead is not None and get_shape(query.text).into in feeding]
    leads = {query.lead for query in ahead if query.lead is not None}
    asks_others = reads_from is not None or wish.emit == REVISED
    standing = [query for query in list_standing(catalog) if query.name != wish.name] if asks_others else []
    if wish.emit == REVISED:
        _check_revised(wish.name, own, standing, reads_from, leads)
    if not leads:
        held = () if reads_from is None else _check_held(catalog, own, standing, wish.name, "read from the past")
        return _complete_entry(wish, offset, reads_from, held, None)
    waited = ", ".join(sorted(name_query(catalog, lead) for lead in leads))
    if own.into is not None or reads_from is not None or len(leads) > 1:
        detail = f"it depends on {waited}, which has not caught up; resume that query, wait until it has caught up, and register this one then"
        raise conflict_fault("query-waits", detail, wish.name)
    return _complete_entry(wish, offset, None, (), leads.pop())


def _complete_entry(wish: Register, offset: int, reads_from: int | None, holds: tuple[int, ...], waits_for: int | None) -> Register:
    return replace(wish, offset=offset, reads_from=reads_from, holds=holds, waits_for=waits_for)


def _check_revised(name: str, own: Shape, standing: Sequence[Registration], reads_from: int | None, leads: Collection[int]) -> None:
    """Check that a revised query reads from now on, and rests on nothing that is behind. Raises: Fault 409."""
    if reads_from is not None:
        raise conflict_fault("revised-query", "a revised query cannot read the past: register it from 'now'", name)
    if leads:
        raise conflict_fault("query-waits", "a revised query cannot wait for a rule that is behind: register it once that has caught up", name)
    if own.into is not None and own.into in find_sources(own.streams, find_written_streams(standing)):
        detail = "a rule that feeds itself through other rules cannot be emitted as revised: let a revised query read what the rules write"
        raise conflict_fault("rules-circle", detail, name)


def find_start(catalog: CatalogView, offset: int, name: str, start: str | int) -> int | None:
    oldest = catalog.log.oldest()
    match start:
        case "now":
            return None
        case _ if oldest > 0:
            detail = f"the log now begins at offset {oldest}, and the past needs the background and the watermarks before it; read from 'now'"
            raise conflict_fault("offset-gone", detail, name)
        case "beginning":
            return 0 if offset > 0 else None
        case int() if start > offset:
            raise bad_request("bad-offset", f"the log ends at {offset}, before the offset {start}", expected="an offset that the log has", query=name)
        case int() if start < offset:
            return start
        case _:
            return None


# ---------------------------------------------------------------- who waits for whom
def list_standing(catalog: CatalogView) -> list[Registration]:
    return [query for query in catalog.list_queries() if query.stands]


def find_written_streams(queries: Iterable[Registration]) -> Written:
    return find_written(get_shape(query.text) for query in queries)


def _find_held(catalog: CatalogView, known: Registration, how: str) -> tuple[int, ...]:
    standing = [query for query in list_standing(catalog) if query.registered != known.registered]
    return _check_held(catalog, get_shape(known.text), standing, known.name, how, circles=True)


def _check_held(catalog: CatalogView, own: Shape, standing: Sequence[Registration], name: str, how: str, *, circles: bool = False) -> tuple[int, ...]:
    """Return the queries that rest on what a rule writes; none if this query is no rule.

    Raises: Fault 409 where one of them is behind itself, or where the rule is among them and `circles` are not allowed.
    """
    if own.into is None:
        return ()
    written = find_written_streams(standing)
    held = [query for query in standing if own.into in find_sources(get_shape(query.text).streams, written)]
    for query in held:
        if query.emit == REVISED:
            detail = f"{name!r} cannot be {how}, because {query.name!r}, which is emitted as revised, rests on it: drop that query first"
            raise conflict_fault("revised-query", detail, name)
    behind = [query for query in held if query.lead is not None]
    if behind:
        detail = f"{name!r} cannot be {how}: {behind[0].name!r} depends on it and has not caught up; resume or drop that query first"
        raise conflict_fault("query-waits", detail, name)
    feeding = find_sources(own.streams, written)
    if not circles and any(get_shape(query.text).into in feeding for query in held):
        raise conflict_fault(
            "rules-circle", f"{name!r} cannot {how}: rules that run already feed it with what it derives; register it from 'now'", name
        )
    return tuple(query.registered for query in held)


def name_query(catalog: CatalogView, lead: int) -> str:
    names = [query.name for query in catalog.list_queries() if query.registered == lead]
    return repr(names[0]) if names else "a query that was dropped"


def refuse_static_rule(registration: Registration) -> None:
    """Refuse what only a query with solutions has. Raises: Fault 409."""
    graph = get_shape(registration.text).graph
    if graph is not None:
        detail = (
            f"{registration.name!r} is a rule over the background: it reads no stream and has no solutions; its triples are in the graph <{graph}>"
        )
        raise conflict_fault("static-rule", detail, registration.name)


def refuse_revised(registration: Registration, what: str, remedy: str) -> None:
    """Refuse what a revised query cannot do. Raises: Fault 409."""
    if registration.emit == REVISED:
        raise conflict_fault("revised-query", f"{registration.name!r} is emitted as revised, and cannot {what}: {remedy}", registration.name)


def conflict_fault(code: str, detail: str, name: str) -> Fault:
    return Fault(Problem(HTTPStatus.CONFLICT, code, detail, query=name))

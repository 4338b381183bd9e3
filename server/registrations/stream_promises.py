"""Decides what the stream settings `instants` and `local` mean for queries and rules. All of it is decided where the
log is written.

A plan rests on it that all events of the streams that it reads are instants. So a rule that may write an event which
lasts is refused there (docs/decisions/0133-passed-goals.md). Which subjects are local counts for when absence is
certain (docs/decisions/0132-local-nodes.md). Either setting stays as long as a query rests on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import TypeVar

from engine.messages import Promote, Register, SetStream
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import get_shape, may_write_intervals
from server.http.problem_details import Fault, Problem
from server.registrations.catalog_view import CatalogView

_Entry = TypeVar("_Entry", Register, Promote)
_REMEDY = 'add FILTER(getDURATION() = "PT0S"^^xsd:duration) to its pattern, or write another stream'


def add_promises(catalog: CatalogView, entry: _Entry, first: int) -> _Entry:
    """Return an entry for a text that reads from the entry `first` on, with what the settings of its streams promise."""
    return replace(entry, instants=reads_instants(catalog, entry.text, first), local=_find_local(catalog, entry.text, first))


def add_promises_together(catalog: CatalogView, entries: Sequence[Register], first: int) -> tuple[Register, ...]:
    """Return the entries of queries that run together over the log from the entry `first` on, as `add_promises` does.

    Where one of them may write events that last, its readers are promised no instants.
    """
    found = [add_promises(catalog, entry, first) for entry in entries]
    while True:
        lasting = {get_shape(entry.text).into for entry in found if may_write_intervals(entry.text, instants=entry.instants)}
        misled = [k for k, entry in enumerate(found) if entry.instants and not lasting.isdisjoint(get_shape(entry.text).streams)]
        if not misled:
            return tuple(found)
        for k in misled:
            found[k] = replace(found[k], instants=False)


def reads_instants(catalog: CatalogView, text: str, first: int) -> bool:
    """Return whether all events that a query reads from the entry `first` on are instants, by the settings of its
    streams.
    """
    known, read = catalog.log.catalogue.streams, get_shape(text).streams
    settings = [known[name].instants if name in known else None for name in read]
    return bool(settings) and all(since is not None and since < first for since in settings)


def _find_local(catalog: CatalogView, text: str, first: int) -> tuple[str, ...]:
    """Return the streams of a query whose subjects are local by their settings, from the entry `first` on."""
    known = catalog.log.catalogue.streams
    settings = {name: known[name].local for name in dict.fromkeys(get_shape(text).streams) if name in known}
    return tuple(name for name, since in settings.items() if since is not None and since < first)


def check_instants_written(catalog: CatalogView, name: str, text: str, *, instants: bool) -> None:
    """Check that a rule writes no events that last into a stream of instants; `instants` says whether it reads only
    such. Raises: Fault 409.
    """
    into = get_shape(text).into
    stream = None if into is None else catalog.log.catalogue.streams.get(into)
    if stream is not None and stream.instants is not None and may_write_intervals(text, instants=instants):
        raise _interval_fault(f"the rule {name!r} may write events that last into the stream {into!r}, which takes only instants; {_REMEDY}", name)


def set_entry(catalog: CatalogView, entry: SetStream) -> SetStream:
    """Return the entry that sets a stream; runs in the log's committer. Raises: Fault 409."""
    known = catalog.log.catalogue.streams.get(entry.stream)
    is_set = known is not None and known.instants is not None
    if entry.instants and not is_set:
        for rule in catalog.list_rules():
            if entry.stream in _list_written(rule) and any(may_write_intervals(text, instants=_rests(rule)) for text in _list_texts(rule)):
                detail = f"the rule {rule.name!r} may write events that last into the stream {entry.stream!r}; drop it, or {_REMEDY}"
                raise _interval_fault(detail, rule.name)
    if is_set and not entry.instants:
        _refuse_unsetting(catalog, entry.stream, lambda query: query.instants, "has only instants", "instants")
    if known is not None and known.local is not None and not entry.local:
        _refuse_unsetting(catalog, entry.stream, lambda query: entry.stream in query.local, "has local subjects", "local")
    return entry


def _refuse_unsetting(catalog: CatalogView, stream: str, rests: Callable[[Registration], bool], promise: str, setting: str) -> None:
    """Refuse to turn a setting off while a query `rests` on it. Raises: Fault 409."""
    for query in catalog.list_queries():
        reads = any(stream in get_shape(text).streams for text in _list_texts(query))
        if query.state in ("running", "paused") and reads and (rests(query) or query.versions):
            detail = f"the query {query.name!r} rests on it that the stream {stream!r} {promise}; drop it first, or leave `{setting}` on"
            raise Fault(Problem(HTTPStatus.CONFLICT, "stream-in-use", detail, query=query.name))


def _list_texts(query: Registration) -> list[str]:
    """Return a query's text, and the one that is to take its place."""
    return [query.text, *(() if query.waiting is None else (query.waiting.text,))]


def _list_written(rule: Registration) -> list[str | None]:
    return [get_shape(text).into for text in _list_texts(rule)]


def _rests(rule: Registration) -> bool:
    """Return whether a rule is known to have read nothing but instants, with whatever text."""
    return rule.instants and not rule.versions


def _interval_fault(detail: str, query: str) -> Fault:
    return Fault(Problem(HTTPStatus.CONFLICT, "writes-intervals", detail, query=query))

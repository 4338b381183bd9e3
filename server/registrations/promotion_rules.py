"""Decides which text may take the place of a query that runs (docs/decisions/0019-what-is-behind.md)."""

from dataclasses import replace
from pathlib import Path

from engine.background.fact_store import FactIndex
from engine.messages import Promote, Register, Withdraw
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import get_shape
from pipeline.registrations.stream_dependencies import find_fed, find_sources
from pipeline.slices.late_beginning import find_late_beginning
from pipeline.solutions.formats import Bindings
from server.http.problem_details import unknown_fault
from server.registrations.catalog_view import CatalogView
from server.registrations.catch_up_rules import (
    conflict_fault,
    find_start,
    find_written_streams,
    name_query,
)
from server.registrations.stream_promises import add_promises, check_instants_written

MOST_VERSIONS = 100
"""A query has at most this many texts, because its earlier solutions are read with the columns of theirs."""


def check_new_text(catalog: CatalogView, known: Registration, text: str, *, may_change_columns: bool) -> None:
    """Check that followers of a query can go on with the solutions of another text. Raises: Fault 409."""
    old, new, name = get_shape(known.text), get_shape(text), known.name
    if old.into is not None or new.into is not None:
        detail = (
            "a rule cannot be promoted, because what reads its stream keeps what the old text derived; "
            "register the new rule under another name INTO another stream, and promote the queries that read it"
        )
        raise conflict_fault("rule-promotion", detail, name)
    if type(old.form) is not type(new.form):
        raise conflict_fault("other-form", f"{name!r} and the new text are of different query forms; register the new text under another name", name)
    if isinstance(old.form, Bindings) and isinstance(new.form, Bindings) and old.form != new.form and not may_change_columns:
        before, after = (" ".join(f"?{variable}" for variable in form.variables) for form in (old.form, new.form))
        detail = f"the new text has the columns {after}, and {name!r} has {before}; add columns=change if what reads them can take that"
        raise conflict_fault("other-columns", detail, name)
    written = find_written_streams(catalog.list_rules())
    waits, waited = (find_sources(shape.streams, written) - written.keys() for shape in (new, old))
    if waits != waited:
        differing = ", ".join(f"<{stream}>" for stream in sorted(waits ^ waited))
        detail = f"only one of both texts waits for {differing}, so they do not share one time; register the new text under another name"
        raise conflict_fault("other-streams", detail, name)


def begin_late(catalog: CatalogView, data: Path, wish: Promote, start: int, known: FactIndex) -> Promote:
    """Return the wish with where the text may begin to read so late that it takes over with the same solutions.
    `known` is the background.

    The caller lets nothing change the background or the queries until the entry is written. Raises: Gone, Corrupt.
    """
    rules = [rule for rule in catalog.list_rules() if get_shape(rule.text).graph is None]
    queries = [Register(rule.registered, rule.name, rule.text, rule.policy, rule.default_graph) for rule in rules]
    query = Register(wish.registered, wish.name, wish.text, wish.policy, wish.default_graph)
    late = find_late_beginning(data, [*queries, query], known, find_fed(catalog.log.catalogue.streams).keys(), (start, catalog.log.head()))
    return wish if late is None else replace(wish, begins=late.begins, marks=late.marks)


def find_reading_start(known: Registration, start: str | int | None) -> int:
    """Return the offset from which a text that is to take a query's place reads.

    None stands for where the query began to read.
    """
    if start is None:
        return known.registered + 1 if known.reads_from is None else known.reads_from
    return start if isinstance(start, int) else 0


def promote_entry(catalog: CatalogView, offset: int, wish: Promote, start: str | int | None, judged: Registration) -> Promote:
    """Return the entry that puts a text in a query's place; runs in the log's committer.

    `start` is as for `find_reading_start`, or "now". The wish was judged beside the text that was the query's in
    `judged`. Raises: Fault 400, 404, 409.
    """
    known = _find_promotable(catalog, wish)
    if known.promoted[-1] != judged.promoted[-1]:
        raise conflict_fault("promotion-under-way", f"another text has just taken the place of {wish.name!r}; send this one again", wish.name)
    if wish.keeps:
        return replace(wish, offset=offset)
    begins = start if start == "now" else find_reading_start(known, start)
    reads_from = find_start(catalog, offset, wish.name, begins)
    wish = add_promises(catalog, wish, offset + 1 if reads_from is None else reads_from)
    check_instants_written(catalog, wish.name, wish.text, instants=wish.instants)
    return replace(wish, offset=offset, reads_from=reads_from)


def _find_promotable(catalog: CatalogView, wish: Promote) -> Registration:
    """Return the query if it runs with the others and no other promotion of it is under way. Raises: Fault 404, 409."""
    name, queries = wish.name, {query.name: query for query in catalog.list_queries()}
    known = queries.get(name)
    if known is None or known.registered != wish.registered:
        raise unknown_fault("query", name, queries)
    if known.state not in ("running", "paused"):
        raise conflict_fault("query-ended", f"the query {name!r} is {known.state}: nothing of it goes on; PUT with ?replace=true", name)
    feeding = find_sources(get_shape(wish.text).streams, find_written_streams(catalog.list_rules()))
    behind = [query for query in queries.values() if query.lead is not None and (query.name == name or get_shape(query.text).into in feeding)]
    if behind:
        assert behind[0].lead is not None
        detail = f"{name!r} waits for {name_query(catalog, behind[0].lead)}, which has not caught up; resume it, or wait, and promote then"
        raise conflict_fault("query-waits", detail, name)
    if known.waiting is not None:
        raise conflict_fault("promotion-under-way", f"another text is to take the place of {name!r}; DELETE its promotion first, or wait", name)
    if len(known.promoted) >= MOST_VERSIONS:
        detail = f"{name!r} has {MOST_VERSIONS} versions, the most that are kept; PUT with ?replace=true starts a new solution log"
        raise conflict_fault("too-many-versions", detail, name)
    return known


def withdraw_entry(catalog: CatalogView, offset: int, name: str, promotion: int) -> Withdraw:
    """Return the entry that ends a promotion on request; runs in the log's committer. Raises: Fault 404, 409."""
    version = catalog.get_query(name).waiting
    if version is None or version.offset != promotion or version.reads is None:
        raise conflict_fault("promotion-ended", f"the promotion of {name!r} has ended, or takes over just now; promote an earlier version", name)
    return Withdraw(offset, promotion, name, "it was withdrawn")

"""This module adds the sources of rows: scans of streams, copies of background triples, and look-ups of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.alpha.alpha_nodes import AS_SENT
from engine.kernel.state import layout as c
from engine.physical_plan.filter_compiler import add_slots
from engine.physical_plan.plan import COPIED, LOOKED_UP, Fact, Scan
from engine.planner.builder.plan_builder import PlanBuilder, Target
from engine.rewrite.resolve_datasets import BACKGROUND
from engine.triples.hash_index import Lookup
from epsparql import algebra as a
from epsparql.terms import Iri, TermOrVariable, Variable

Ints = NDArray[np.int64]
NOTHING = np.zeros((0, 4), np.int64)
NO_COLUMNS = (c.NONE, c.NONE, c.NONE)
FEW = 1000
"""So many background triples of a pattern are copied to each of its queries; more are looked up."""


def is_deep(builder: PlanBuilder, triple: a.TriplePattern, place: a.Place) -> bool:
    """Return whether the background has too much for a triple pattern to be copied to the query."""
    return len(builder.names.facts(triple, place)) > FEW


def add_lookup(
    builder: PlanBuilder, node: int, triple: a.TriplePattern, place: a.Place, deep: bool, *, via: int = c.NONE, use: str = LOOKED_UP
) -> None:
    """Let the solutions of a node look up a triple pattern in a table by the node's key, if the background is `deep`
    there.
    """
    bound = columns_of(builder, triple, place)
    keys = builder.fragment.columns_at(builder.node(node).key)
    free = [column for column in bound if column not in keys]
    builder.node(node).look, builder.node(node).look_via = add_slots(builder.fragment, free), via
    parts = tuple(bound[column] for column in (*keys, *free))
    builder.fragment.lookups[node] = Lookup(builder.names.facts(triple, place), parts, len(keys)) if deep else None
    if deep:
        note_read(builder, triple, builder.names.facts(triple, place), use)


def note_read(builder: PlanBuilder, triple: a.TriplePattern, rows: Ints, use: str) -> None:
    """Note what is read of the background, for people."""
    if len(rows):
        parts = ("[]" if isinstance(part, Variable) and part.hidden else str(part) for part in parts_of(triple))
        builder.fragment.reads[" ".join(parts), use] = len(rows)


def add_triples(builder: PlanBuilder, triple: a.TriplePattern, place: a.Place, target: Target, *, copied: bool = True) -> None:
    """Plan rows for what a stream brings, and for what there is of the background unless it is looked up."""
    s, p, o = (builder.column(part) if isinstance(part, Variable) else c.NONE for part in parts_of(triple))
    add_scans(builder, place, parts_of(triple), (s, p, o), target)
    bound = columns_of(builder, triple, place)
    rows = builder.names.facts(triple, place) if copied else NOTHING
    note_read(builder, triple, rows, COPIED)
    own = builder.names.own(rows)
    builder.fragment.facts.append(Fact(*target, True, tuple(bound), own[:, list(bound.values())], rows))


def add_scans(
    builder: PlanBuilder, place: a.Place, sought: Sequence[TermOrVariable], columns: tuple[int, int, int], target: Target, *, sent: bool = False
) -> None:
    """Plan scans of all streams and graphs of a place for the triple pattern `sought`. If `sent`, leave out what the
    sent triples entail.

    `columns` are where subject, predicate and object go, or NONE.
    """
    graph_column = c.NONE if place.graph is None else builder.column(place.graph)
    s, p, o = (c.NONE if isinstance(part, Variable) else builder.names.term(str(part)) for part in sought)
    predicate, moment = AS_SENT if sent else max(p, 0), c.NONE
    if builder.notes_moments:
        builder.moments.append(builder.add_variable("moment"))
        moment = builder.column(builder.moments[-1])
    for stream in streams_of(builder, place):
        number = builder.names.stream(stream)
        for graph in _graphs_of(builder, place):
            builder.fragment.scans.append(Scan(number, s, predicate, o, columns, *target, graph, graph_column, moment))


def streams_of(builder: PlanBuilder, place: a.Place) -> tuple[str, ...]:
    """Return the streams that the triple patterns of a place look at."""
    if place.window is not None:
        return () if place.window == BACKGROUND else (place.window,)
    return tuple(dict.fromkeys(builder.query.streams))


def _graphs_of(builder: PlanBuilder, place: a.Place) -> list[int]:
    """Return the graphs of the scans: there is one scan for each graph that is named."""
    if place.among is None:
        return [c.NONE if place.graph is None else c.NAMED]
    return [builder.names.term(str(Iri(name))) if name else c.UNBOUND for name in dict.fromkeys(place.among)]


def parts_of(triple: a.TriplePattern) -> tuple[TermOrVariable, TermOrVariable, TermOrVariable]:
    return triple.subject, triple.predicate, triple.object


def columns_of(builder: PlanBuilder, triple: a.TriplePattern, place: a.Place) -> dict[int, int]:
    """Return the columns that a triple pattern binds, each with the part of a triple and its graph that it takes."""
    parts = (*parts_of(triple), place.graph)
    return {builder.column(part): k for k, part in enumerate(parts) if isinstance(part, Variable)}


def graph_rows(builder: PlanBuilder, place: a.Place, target: Target, column: int) -> Fact:
    """Return a fact with a row for each graph of the background."""
    return Fact(*target, True, (column,), np.array(builder.names.graphs(place), np.int64).reshape(-1, 1))

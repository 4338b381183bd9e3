"""Warns of predicates and classes in a query that its streams have never carried: most often the name is misspelt."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from epsparql.algebra import Iri, Select, TriplePattern
from epsparql.algebra.paths import Link
from epsparql.algebra.patterns import Path
from epsparql.errors import Span, Warning_
from epsparql.etalis.parser.vocabulary import ARGUMENT, URN, name_of
from epsparql.terms import RDF
from epsparql.translate.translator import ParsedQuery
from epsparql.trees import walk_nodes
from pipeline.inspection.nearest_terms import find_nearest
from pipeline.inspection.stream_profile import StreamProfile
from pipeline.log.catalog import Stream
from pipeline.registrations.query_cache import compute_shape
from pipeline.registrations.stream_dependencies import Written
from server.background.manager import BackgroundManager
from server.inspection.stream_inspector import FRESH_S, STALE_S, StreamInspector

PREDICATE, CLASS = "predicate", "class"
MOST_WARNINGS, MOST_STREAMS = 20, 8
_VOCABULARIES = (RDF, "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#")
"""Names of these vocabularies may be entailed."""

Used = tuple[str, str, Span | None]
"""Tells whether a name is a PREDICATE or CLASS, the name's IRI, and where it stands."""


async def warn_of_unseen(
    parsed: ParsedQuery, streams: Mapping[str, Stream], written: Written, inspector: StreamInspector, background: BackgroundManager
) -> list[Warning_]:
    """Return a warning for each constant predicate and class that the query's streams have not carried and the
    background does not mention.

    There is none if a query reads no stream, a stream has no events, or a rule writes it. Nor is there one if a query
    reads more than `MOST_STREAMS`.
    """
    read = list_profiled(parsed, streams, written)
    if not read:
        return []
    unseen: list[Used] = []
    for oldest_s in (STALE_S, FRESH_S):  # a name that an older profile has need not be looked for in a new one
        profiles = [await inspector.profile(stream, oldest_s) for stream in read]
        unseen = _find_unseen(parsed, profiles)
        mentioned = await asyncio.to_thread(background.find_mentioned, {iri for _, iri, _ in unseen})
        unseen = [each for each in unseen if each[1] not in mentioned]
        if not unseen:
            return []
    return await asyncio.to_thread(_list_warnings, unseen, [stream.name for stream in read], profiles)


def list_profiled(parsed: ParsedQuery, streams: Mapping[str, Stream], written: Written) -> list[Stream]:
    """Return the streams that a query reads, if their events are all that it reads of them, and each has some."""
    shape = compute_shape(parsed)
    read = [streams[name] for name in shape.streams if name in streams and streams[name].accepted]
    if len(read) != len(shape.streams) or len(read) > MOST_STREAMS or shape.into in shape.streams or not written.keys().isdisjoint(shape.streams):
        return []
    return read


def _find_unseen(parsed: ParsedQuery, profiles: Sequence[StreamProfile]) -> list[Used]:
    """Return the constant predicates and classes of a query that none of these profiles has, each once."""
    seen = {
        PREDICATE: {each.name for profile in profiles for each in profile.predicates},
        CLASS: {each.name for profile in profiles for each in profile.classes},
    }
    found: dict[tuple[str, str], Span | None] = {}
    for kind, iri, span in _list_used(parsed):
        if iri.startswith(ARGUMENT) and span in found.values():
            continue  # of an event that was never seen
        if f"<{iri}>" not in seen[kind] and not iri.startswith(_VOCABULARIES):
            found.setdefault((kind, iri), span)
    return [(kind, iri, span) for (kind, iri), span in found.items()]


def _list_warnings(unseen: Sequence[Used], streams: Sequence[str], profiles: Sequence[StreamProfile]) -> list[Warning_]:
    """Return a warning for each name, with the nearest one that was seen."""
    count = sum(profile.events for profile in profiles)
    covered = "has never carried" if all(profile.is_complete for profile in profiles) else f"has not carried, in its last {count:,} events,"
    subject = " or ".join(f"the stream {stream!r}" for stream in streams)
    return [
        Warning_(
            "never-seen",
            f"{subject} {covered} {_name_kind(kind, f'<{iri}>')}{'' if iri.startswith(ARGUMENT) else _nearest(kind, iri, profiles)}",
            span,
        )
        for kind, iri, span in unseen[:MOST_WARNINGS]
    ]


def _name_kind(kind: str, name: str) -> str:
    """Return the words for a name of the kind; an event of a program has the program's own."""
    iri = name[1:-1]
    if iri.startswith(ARGUMENT):
        return f"an event with {iri.removeprefix(ARGUMENT)} arguments"
    return f"the event {name_of(iri)}" if kind == CLASS and iri.startswith(URN) else f"the {kind} {name}"


def _list_used(parsed: ParsedQuery) -> Iterator[Used]:
    program = isinstance(parsed.query, Select) and parsed.query.program
    for node in walk_nodes(parsed.query if program else parsed.query.pattern):
        match node:
            case TriplePattern(_, Iri(predicate), object_):
                span = parsed.places.find_span(node)
                if program and span is None:
                    continue  # it is on the program's own stream, or belongs to an atom whose type says what it is
                yield PREDICATE, predicate, span
                if predicate == RDF + "type" and isinstance(object_, Iri):
                    yield CLASS, object_.value, span
            case Path():
                span = parsed.places.find_span(node)
                yield from ((PREDICATE, link.predicate.value, span) for link in walk_nodes(node.path) if isinstance(link, Link))


def _nearest(kind: str, iri: str, profiles: Sequence[StreamProfile]) -> str:
    """Return the words that name the nearest seen name; empty where none is near."""
    seen = Counter[str]()
    for profile in profiles:
        seen.update({each.name: each.count for each in (profile.predicates if kind == PREDICATE else profile.classes)})
    nearest = find_nearest(f"<{iri}>", seen)
    return "" if nearest is None else f"; the nearest is {name_of(nearest[1:-1]) if nearest[1:-1].startswith(URN) else nearest}"

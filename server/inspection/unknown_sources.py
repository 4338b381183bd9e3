"""Warns of the FROM clauses of a query that name what the server does not have: a stream that nothing was sent to, a
graph that is none.
"""

from collections.abc import Collection, Iterator, Mapping

from epsparql.errors import Warning_
from epsparql.etalis.header import is_program
from epsparql.translate.translator import ParsedQuery
from pipeline.inspection.nearest_terms import find_nearest
from pipeline.log.catalog import Stream
from pipeline.registrations.query_cache import compute_shape
from pipeline.registrations.stream_dependencies import Written


def warn_of_sources(parsed: ParsedQuery, streams: Mapping[str, Stream], written: Written, graphs: Collection[str]) -> list[Warning_]:
    """Return the warnings about a query's FROM clauses.

    `written` are the streams that rules write, and `graphs` those of the background.
    """
    read = compute_shape(parsed).streams
    known = {name: stream.accepted for name, stream in streams.items()} | dict.fromkeys(written.keys() - streams.keys(), 0)
    return [*_warn_of_graphs(parsed, read, known, graphs), *_warn_of_streams(parsed, read, known)]


def _warn_of_graphs(parsed: ParsedQuery, read: Collection[str], streams: Mapping[str, int], graphs: Collection[str]) -> Iterator[Warning_]:
    dataset = parsed.query.sources.dataset
    for graph in () if dataset is None else dict.fromkeys((*dataset.default, *dataset.named)):
        span = parsed.places.sources.get(graph)
        if graph in streams and graph not in read:
            message = f"FROM <{graph}> reads a graph of the background; FROM STREAM <{graph}> reads the events of the stream {graph!r}"
            yield Warning_("from-stream", message, span)
        elif graph not in graphs:
            meant = _nearest(graph, dict.fromkeys(graphs, 0)) or _nearest(graph, streams, "stream, which FROM STREAM reads,")
            yield Warning_("from-stream", f"the background has no graph <{graph}>{meant}", span)


def _warn_of_streams(parsed: ParsedQuery, read: Collection[str], streams: Mapping[str, int]) -> Iterator[Warning_]:
    """Warn of streams that nobody made, if others have events: before the first event, all streams are unknown."""
    if any(streams.values()):
        for stream in read:
            if stream not in streams:
                span = parsed.places.sources.get(stream)
                chosen = f"there is no stream {stream!r}" if span else f"without {_clause(parsed)} reads the stream {stream!r}, which is none"
                yield Warning_("unknown-stream", f"{chosen}: nothing was sent to it, and no rule writes it{_nearest(stream, streams)}", span)


def _clause(parsed: ParsedQuery) -> str:
    """Return the words for the clause that names a stream, and for what has none."""
    return "from_stream the program" if is_program(parsed.text) else "FROM STREAM the query"


def _nearest(name: str, known: Mapping[str, int], kind: str = "") -> str:
    """Return the words that name the nearest of these names, which are of a kind; empty where none is near."""
    nearest = find_nearest(f"<{name}>", {f"<{each}>": count for each, count in known.items() if each})
    return "" if nearest is None else f"; the nearest {kind}{' ' * bool(kind)}is {nearest}"

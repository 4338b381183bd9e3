"""This module translates what a query reads and where it writes: FROM, FROM NAMED, FROM STREAM, FROM NAMED WINDOW,
REGISTER.
"""

from epsparql import algebra as a
from epsparql.errors import ScopeFault, SyntaxFault
from epsparql.parser import ast_queries as f
from epsparql.translate.context import Context
from epsparql.translate.durations import micros_of


def streams_of(context: Context, sources: tuple[f.Source, ...]) -> tuple[str, ...]:
    """Return the streams, each once; those of the windows where the query has any."""
    streams = [source for source in sources if isinstance(source, f.FromStream)]
    _note_places(context, sources)
    if streams and context.windows:
        message = "FROM STREAM and FROM NAMED WINDOW do not go together: outside of its windows such a query sees the background alone"
        context.fail(SyntaxFault, message, streams[0].span, "a window on this stream as well")
    names = [window.stream for window in context.windows] or [stream_name(context, source.name) for source in streams]
    return tuple(dict.fromkeys(names)) or (a.DEFAULT_STREAM,)


def _note_places(context: Context, sources: tuple[f.Source, ...]) -> None:
    for source in sources:
        match source:
            case f.FromGraph(name, _, span):
                context.places.sources.setdefault(context.names.iri(name), span)
            case f.Parameters():
                pass
            case f.FromStream(stream, span) | f.FromWindow(_, stream, _, _, span):
                context.places.sources.setdefault(stream_name(context, stream), span)


def stream_name(context: Context, stream: f.StreamName) -> str:
    name = context.names.resolve_stream(stream)
    if not name:
        context.fail(SyntaxFault, "a stream's name is not empty", stream.span, "the IRI of a stream")
    return name


def sources_of(context: Context, sources: tuple[f.Source, ...], registration: f.RegisterClause | None) -> a.Sources:
    """Return graphs and windows. All solutions of windows are reported where REGISTER does not say otherwise."""
    graphs = [source for source in sources if isinstance(source, f.FromGraph)]
    default, named = (tuple(dict.fromkeys(context.names.iri(graph.name) for graph in graphs if graph.named is named)) for named in (False, True))
    windows: dict[str, a.NamedWindow] = {}
    for source in sources:
        if isinstance(source, f.FromWindow):
            window = _window(context, source)
            if window.name in windows:
                context.fail(ScopeFault, f"there are two windows <{window.name}>", source.name.span, "another name for this one")
            windows[window.name] = window
    report = _translate_report(context, registration, bool(windows))
    return a.Sources(a.Dataset(default, named) if graphs else None, tuple(windows.values()), report)


def _window(context: Context, source: f.FromWindow) -> a.NamedWindow:
    name, stream = context.names.iri(source.name), stream_name(context, source.stream)
    return a.NamedWindow(name, stream, micros_of(context, source.length), micros_of(context, source.step))


def _translate_report(context: Context, registration: f.RegisterClause | None, windows: bool) -> a.Report | None:
    if registration is None:
        return a.Report.RSTREAM if windows else None
    if not windows:
        message = f"REGISTER {registration.operator} says what is reported of windows, and the query has none"
        expected = "FROM NAMED WINDOW <w> ON <stream> [RANGE ... STEP ...], or the query alone, a CONSTRUCT with INTO STREAM"
        context.fail(SyntaxFault, message, registration.span, expected)
    return a.Report(registration.operator)

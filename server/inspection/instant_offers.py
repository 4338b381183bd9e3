"""Offers the stream setting `instants` where it bounds what a query keeps, and no event of the query's streams has
lasted so far.
"""

import asyncio
from collections.abc import Mapping

from epsparql.errors import Span, Warning_
from epsparql.translate.translator import ParsedQuery
from pipeline.log.catalog import Stream
from pipeline.registrations.stream_dependencies import Written
from server.inspection.stream_inspector import FRESH_S, StreamInspector
from server.inspection.unseen_names import list_profiled


async def offer_instants(parsed: ParsedQuery, streams: Mapping[str, Stream], written: Written, inspector: StreamInspector) -> list[Warning_]:
    """Return a warning that offers the setting to streams which have carried nothing but instants; none where it
    bounds nothing.
    """
    unset = [stream for stream in list_profiled(parsed, streams, written) if stream.instants is None]
    span = await asyncio.to_thread(_find_bounded, parsed) if unset else None
    if span is None or any([(await inspector.profile(stream, FRESH_S)).lasting for stream in unset]):
        return []
    named = " and ".join(repr(stream.name) for stream in unset)
    subject = f"the stream {named} has" if len(unset) == 1 else f"the streams {named} have"
    return [Warning_("only-instants", f"{subject} carried no event that lasts: with the setting instants: true, this keeps less", span)]


def _find_bounded(parsed: ParsedQuery) -> Span | None:
    from engine.validation.state_warnings import find_bounded_by_instants  # loads the kernel, so only where it is asked for

    return find_bounded_by_instants(parsed, lambda *_: False)

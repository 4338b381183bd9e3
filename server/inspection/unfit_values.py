"""Warns of comparisons, arithmetic and functions over values whose datatypes on the query's streams never fit."""

import asyncio
from collections.abc import Mapping

from epsparql.errors import Warning_
from epsparql.translate.translator import ParsedQuery
from pipeline.inspection.comparability import find_incomparable
from pipeline.log.catalog import Stream
from pipeline.registrations.stream_dependencies import Written
from server.background.manager import BackgroundManager
from server.inspection.stream_inspector import FRESH_S, STALE_S, StreamInspector
from server.inspection.unseen_names import list_profiled


async def warn_of_unfit(
    parsed: ParsedQuery, streams: Mapping[str, Stream], written: Written, inspector: StreamInspector, background: BackgroundManager
) -> list[Warning_]:
    """Return the warnings about a query without rules that write what it reads.

    Values of predicates that the background mentions may be any.
    """
    read = list_profiled(parsed, streams, written)
    found: list[Warning_] = []
    for oldest_s in (STALE_S, FRESH_S) if read else ():  # what an older profile lets fit still fits
        profiles = [await inspector.profile(stream, oldest_s) for stream in read]
        predicates = {seen.name.partition(" ")[0][1:-1] for profile in profiles for seen in profile.objects}
        found = await asyncio.to_thread(find_incomparable, parsed.text, profiles, frozenset())
        if found:
            mentioned = await asyncio.to_thread(background.find_mentioned, predicates)
            found = await asyncio.to_thread(find_incomparable, parsed.text, profiles, frozenset(mentioned))
        if not found:
            return []
    return found

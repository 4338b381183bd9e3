"""Runs `epsparql trial`: asks a server what a query would have found in its log's past, and prints how that differs."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from epsparql.client import Client

_LOOK_S = 0.2
_PAGE = 1000


def try_query(client: Client, query: str, options: Mapping[str, Any], tell: Callable[[int, int], None]) -> dict[str, Any]:
    """Start a trial, print what only one side has, delete the trial, and return its last document.

    `options` are those of `Client.start_trial`. `tell` is told how much of the log was read, and how much there is.
    Raises: ApiError, Unreachable.
    """
    trial = client.start_trial(query, **options)["id"]
    try:
        while (document := client.trial(trial))["state"] in ("waiting", "running"):
            if (progress := document["progress"]) is not None:
                tell(progress["position"] - progress["from"], progress["to"] - progress["from"])
            time.sleep(_LOOK_S)
        for side in ("new", "old") if document["state"] == "completed" else ():
            for solution in _read_solutions(client, trial, side):
                sys.stdout.write(json.dumps({"only": side, **solution}, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return document
    finally:
        client.drop_trial(trial)


def describe_trial(document: Mapping[str, Any]) -> list[str]:
    """Return lines for people: why nothing can be equal, the counts of each query, and what ended early."""
    lines = [f"warning: {document['warning']}"] if document.get("warning") else []
    lines += [f"{each['query']}: {each['new']:,} only new, {each['old']:,} only old, {each['both']:,} both" for each in document["queries"]]
    lines += [f"{each['query']} ({each['side']}) {each['state']}: {each['reason']}" for each in document["ended"]]
    left = [side for side in ("new", "old") if document["kept"][side] < document["counts"][side]]
    return lines + [f"only the first {document['kept'][side]:,} solutions of the {side} side were kept (max_trial_solutions)" for side in left]


def _read_solutions(client: Client, trial: str, side: str) -> Iterator[dict[str, Any]]:
    after = 0
    while page := client.trial_solutions(trial, side, after=after, limit=_PAGE):
        yield from page
        after += len(page)

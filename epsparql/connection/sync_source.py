"""This module writes the blocking client, epsparql/client.py, from its one source, epsparql/async_client.py.

`make client` brings it up to date; a test compares.
"""

import re
import sys
from pathlib import Path

_SOURCE = Path(__file__).parents[1] / "async_client.py"
_WORDS = {
    "AsyncClient": "Client",
    "AsyncConnection": "Connection",
    "AsyncExitStack": "ExitStack",
    "AsyncFeed": "Feed",
    "AsyncIterator": "Iterator",
    "AsyncSubscription": "Subscription",
    "AsyncTail": "Tail",
    "AsyncTransport": "Transport",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "async_transport": "transport",
    "aclose": "close",
    "enter_async_context": "enter_context",
}
_MEANING = "for asyncio", "for programs without asyncio"
_AWAITABLE = re.compile(r"Awaitable\[(\w+)\]")
_KEYWORD = re.compile(r"\b(?:async|await) ")
_NOTE = "# Made of async_client.py by connection/sync_source.py: change that one.\n"


def write_sync(source: str) -> str:
    """Return the blocking client's text, whose imports and lines ruff has yet to put in order."""
    text = _KEYWORD.sub("", _AWAITABLE.sub(r"\1", source.replace(*_MEANING)))
    return _NOTE + re.sub(r"\w+", lambda found: _WORDS.get(found[0], found[0]), text)


if __name__ == "__main__":
    sys.stdout.write(write_sync(_SOURCE.read_text(encoding="utf-8")))

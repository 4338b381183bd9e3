"""This module holds bodies to the message key that their stream declares: each node of a message has one key, and keeps it.

A node that comes again with another key would be looked for in the wrong partition. Blank nodes are a message's own, so they cannot come again.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.messages import MessageKey
from engine.partitioning import NoSingleKey, find_message_keys
from pipeline.errors import MessageKeyRefused

REMEMBERED = 200_000
"""This many nodes of a stream are remembered at least, and at most twice as many."""


class KeyMemory:
    """Remembers the keys of the last nodes of each stream, since the writer was opened. One thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[MessageKey, dict[str, str], dict[str, str]]] = {}

    def take_in(self, stream: str, rows: pa.RecordBatch, key: MessageKey | None) -> None:
        """Take in the nodes of a body; `key` is what its stream declares. Raises: MessageKeyRefused, and nothing of the body is remembered."""
        if key is None:
            self._known.pop(stream, None)
            return
        if not rows.num_rows:
            return
        try:
            found = find_message_keys(rows, np.zeros(rows.num_rows, np.int64), key, strict=True)
        except NoSingleKey as fault:
            raise MessageKeyRefused(stream, str(fault)) from None
        texts = found.texts.take(pa.array(found.nodes))
        lasting = pc.starts_with(texts, "<")
        nodes, keys = texts.filter(lasting).to_pylist(), found.texts.take(pa.array(found.of_node)).filter(lasting).to_pylist()
        known = self._known.get(stream)
        if known is None or known[0] != key:
            known = key, {}, {}
        _, young, old = known
        before = list(map(young.get, nodes, map(old.get, nodes, keys)))
        if before != keys:
            node, was, now = next(each for each in zip(nodes, before, keys, strict=True) if each[1] != each[2])
            raise MessageKeyRefused(stream, f"{node} had the key {was} before, and has now {now}")
        young.update(zip(nodes, keys, strict=True))
        self._known[stream] = (key, {}, young) if len(young) >= REMEMBERED else (key, young, old)

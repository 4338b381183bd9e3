"""This module holds bodies to the message key that their stream declares: each node of a message has one key, and
keeps it.

A node that comes again with another key would be looked for in the wrong partition. Blank nodes are a message's own,
so they cannot come again.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable, longer
from engine.messages import MessageKey
from engine.partitioning import NodeKeys, NoSingleKey, find_message_keys
from pipeline.errors import MessageKeyRefused

Ints = NDArray[np.int64]
REMEMBERED = 200_000
"""This many nodes of a stream are remembered at least."""


class KeyMemory:
    """Remembers the keys of the last nodes of each stream, since the writer was opened. One thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, StreamKeys] = {}

    def take_in(self, stream: str, rows: pa.RecordBatch, key: MessageKey | None) -> None:
        """Take in the nodes of a body; `key` is what its stream declares.

        Raises: MessageKeyRefused, and nothing of the body is remembered.
        """
        if key is None:
            self._known.pop(stream, None)
            return
        if not rows.num_rows:
            return
        try:
            found = find_message_keys(rows, np.zeros(rows.num_rows, np.int64), key, strict=True)
        except NoSingleKey as several:
            raise MessageKeyRefused(stream, str(several)) from None
        known = self._known.get(stream)
        if known is None or known.key != key:
            known = self._known[stream] = StreamKeys(key)
        if (fault := known.take_in(found)) is not None:
            raise MessageKeyRefused(stream, fault)


class StreamKeys:
    """Remembers the keys of a stream's last nodes.

    Texts have numbers, by which arrays hold each node's key and when it came last.
    """

    def __init__(self, key: MessageKey) -> None:
        self.key = key
        self._terms = TermTable(REMEMBERED)
        self._key_of = np.zeros(len(self._terms.cells), np.int64)  # 0: no node
        self._came = np.zeros_like(self._key_of)
        self._bodies = 0

    def take_in(self, found: NodeKeys) -> str | None:
        """Remember the keys of a body's nodes.

        If a node has another key than before, remember nothing and return what is wrong.
        """
        if self._terms.due:  # bodies that are refused leave texts, too
            self._forget()
        nodes, keys = self._number_nodes(found)
        before = self._key_of[nodes]
        wrong = np.flatnonzero((before != 0) & (before != keys))
        if len(wrong):
            node, was, now = (self._terms.text(int(numbers[wrong[0]])) for numbers in (nodes, before, keys))
            return f"{node} had the key {was} before, and has now {now}"
        self._key_of[nodes], self._came[nodes] = keys, self._bodies
        self._bodies += 1
        return None

    def _number_nodes(self, found: NodeKeys) -> tuple[Ints, Ints]:
        """Return the numbers of the nodes that may come again, and those of their keys."""
        numbers = self._terms.intern_strings(found.texts)
        if len(self._key_of) < len(self._terms.cells):
            self._key_of, self._came = (longer(array, len(self._terms.cells)) for array in (self._key_of, self._came))
        lasting = pc.starts_with(found.texts, "<").to_numpy(zero_copy_only=False)[found.nodes]
        return numbers[found.nodes[lasting]], numbers[found.of_node[lasting]]

    def _forget(self) -> None:
        """Forget all but the last nodes, and texts that are out of use."""
        nodes = np.flatnonzero(self._key_of)
        if len(nodes) > REMEMBERED:
            self._key_of[nodes[np.argsort(self._came[nodes], kind="stable")[:-REMEMBERED]]] = 0
        kept = np.flatnonzero(self._key_of)
        self._terms.collect([kept, self._key_of[kept]])

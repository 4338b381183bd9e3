"""This module finds the key of each row of a stream that declares one: the object that the key's predicate gives the
nodes of a message.

Nodes of one body that predicates of `parts` link have one key. A node that nothing links has itself for its key if no
triple gives it another: so a sensor's own triples stand where its observations do.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.messages import Events, MessageKey
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
NO_KEYS: Mapping[str, MessageKey] = MappingProxyType({})
_ROUNDS = 64


class NoSingleKey(Exception):
    """Says which node of a body has no key, or several."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeKeys:
    """Holds the key of each row, and of each node that the rows name, as numbers of `texts`."""

    texts: pa.Array
    of_row: Ints
    nodes: Ints
    of_node: Ints


def find_message_keys(rows: pa.RecordBatch, entry: Ints, key: MessageKey, *, strict: bool = False) -> NodeKeys:
    """Find the keys of OCCURRENCES; `entry` numbers the body of each row from 0 on. Raises NoSingleKey if `strict`."""
    import pyarrow.compute as pc  # it takes 0.1 s to load, so only where rows come

    s, p, o = (rows.column(name) for name in "spo")
    roles = {f"<{part}>": 2 for part in key.parts} | {f"<{key.predicate}>": 1}
    role = np.array([roles.get(text, 0) for text in p.dictionary.to_pylist()], np.int8)[p.indices.to_numpy()]
    linking = np.flatnonzero(role)
    role = role[linking]
    objects = o.indices.to_numpy()[linking]
    used, place = _number_used(objects, len(o.dictionary))
    encoded = pa.concat_arrays([s.dictionary, o.dictionary.take(pa.array(used))]).dictionary_encode()
    texts, numbers = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
    subject, target = numbers[: len(s.dictionary)][s.indices.to_numpy()], numbers[len(s.dictionary) :][place]
    if len(entry) and entry[-1]:  # each body has nodes of its own
        nodes, which = np.unique(np.concatenate([entry * len(texts) + subject, entry[linking] * len(texts) + target]), return_inverse=True)
        at, goal, own = which[: len(subject)], which[len(subject) :], nodes % len(texts)
    else:
        at, goal, own = subject, target, np.arange(len(texts))
    parts = np.flatnonzero(role == 2)
    if strict and pc.any(pc.starts_with(found := texts.take(pa.array(target[parts])), '"')).as_py():
        literal = next(text for text in found.to_pylist() if text.startswith('"'))
        raise NoSingleKey(f"{literal} is a literal, so a predicate of `parts` cannot link it")
    label = _join_nodes(len(own), at[linking[parts]], goal[parts], strict)
    keyed = np.flatnonzero(role == 1)
    holder, value = label[at[linking[keyed]]], target[keyed]
    found = np.where(np.bincount(label, minlength=len(own)) > 1, -1, own)
    found[holder] = value
    if strict:
        _check_single(texts, own, found, label, holder, value, goal[keyed])
    found = np.where(found < 0, own, found)[label]
    named = _number_used(np.concatenate([at, goal]), len(own))[0]
    return NodeKeys(texts, found[at], own[named], found[named])


def _number_used(numbers: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the numbers below `size` that occur, in order, and the place of each one among them."""
    occurs = np.zeros(size, np.bool_)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _join_nodes(count: int, one: Ints, other: Ints, strict: bool) -> Ints:
    """Return the least node that each node is linked with. Raises NoSingleKey if `strict`."""
    label = np.arange(count)
    for _ in range(_ROUNDS):
        least = np.minimum(label[one], label[other])
        if (label[one] == least).all() and (label[other] == least).all():
            return label
        np.minimum.at(label, label[one], least)
        np.minimum.at(label, label[other], least)
        label = label[label]
    if strict:
        raise NoSingleKey(f"more than {_ROUNDS} links join the nodes of a message")
    return label


def _check_single(texts: pa.Array, own: Ints, found: Ints, label: Ints, holder: Ints, value: Ints, goal: Ints) -> None:
    def name(number: int) -> str:
        return str(texts[number])

    several = np.flatnonzero(found[holder] != value)
    if len(several):
        k = several[0]
        raise NoSingleKey(f"the message of {name(own[holder[k]])} has the keys {name(value[k])} and {name(found[holder[k]])}")
    without = np.flatnonzero(found[label] < 0)
    if len(without):
        raise NoSingleKey(f"the message of {name(own[without[0]])} has no key")
    strange = np.flatnonzero(found[label[goal]] != own[goal])
    if len(strange):
        k = goal[strange[0]]
        raise NoSingleKey(f"{name(own[k])} is the key of a message, and has itself the key {name(found[label[k]])}")


def number_bodies(events: Sequence[Events]) -> Ints:
    """Return, for each row of some entries, the number of its entry from 0 on."""
    return np.repeat(np.arange(len(events)), [event.rows for event in events])


def key_column(rows: pa.RecordBatch, entry: Ints, events: Sequence[Events], declared_by: Mapping[str, MessageKey]) -> pa.DictionaryArray:
    """Return the text by whose hash each row is dealt out: its message's key, or its subject where the stream
    declares none.

    `entry` numbers the body of each row among `events`.
    """
    subjects = rows.column("s")
    keys = [declared_by.get(event.stream) for event in events]
    declared = list(dict.fromkeys(key for key in keys if key is not None))
    if not declared or not rows.num_rows:
        return subjects
    index, texts = subjects.indices.to_numpy().astype(np.int64), [subjects.dictionary]
    begin = len(subjects.dictionary)
    for key in declared:
        own = np.flatnonzero(np.array([each == key for each in keys], np.bool_)[entry])
        if len(own):
            whole = len(own) == rows.num_rows
            found = find_message_keys(rows if whole else rows.take(pa.array(own)), np.cumsum(np.diff(entry[own], prepend=entry[own[0]]) != 0), key)
            index[own], begin = found.of_row + begin, begin + len(found.texts)
            texts.append(found.texts)
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), pa.concat_arrays(texts), safe=False)

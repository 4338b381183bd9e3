"""This bench measures a query with PARAMETERS and many instances: loading, changing, restarting, and events."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.measurement import WrongCount, line, median, one_core, rss_mb
from engine.engine import Engine
from engine.messages import OCCURRENCES, Block, ChangeInstances, Events, Register
from epsparql.terms import XSD

E = "http://example.org/"
_HEAD = f"PREFIX : <{E}> SELECT ?user ?v FROM STREAM <s> PARAMETERS (?user ?room ?limit) WHERE"
TEXTS = {
    "threshold": f"{_HEAD} {{ ?room :temp ?v FILTER (?v > ?limit) }}",
    "sequence": f"{_HEAD} {{ {{ ?room :temp ?before }} SEQ {{ ?room :temp ?v }} WITHIN PT1S FILTER (?v > ?limit) }}",
    "limit alone": f"{_HEAD} {{ ?any :temp ?v FILTER (?v > ?limit) }}",
}
SEARCHES = {
    "contains": "CONTAINS(?text, ?word)",
    "begins": "STRSTARTS(?text, ?word)",
    "contains in small letters": "CONTAINS(LCASE(?text), LCASE(?word))",
    "regular expression": "REGEX(?text, ?word)",
}
ONE_BY_ONE = "CONTAINS(?text, ?word) = true"
"""The search by text does not know this condition."""
_TEXT_BYTES, _FEW_INSTANCES, _FEW_EVENTS = 200, 3_000, 10
_BULK, _EVENTS, _SINGLES = 10_000, 100_000, 200
_NO_ROWS = pa.RecordBatch.from_pylist([], schema=OCCURRENCES)
_STEP_US = 2_000_000  # of time from one event to the next, so that no sequence spans two of `answered`


def measure(n: int) -> Iterator[str]:
    """Yield a line for each query: n instances, each with a room and a limit of its own.

    An event of `answered` has exactly one instance, one of `silent` has none: its room has an instance whose limit it
    does not reach.
    """
    one_core()
    yield from _measure_texts(n)
    for name, text in TEXTS.items():
        engine, base_mb = _register_query(text), rss_mb()
        loaded = _load_instances(engine, n)
        memory = rss_mb() - base_mb
        answered = _feed(engine, np.arange(_EVENTS) % n, _reached(name, n), name)
        silent = _feed(engine, np.arange(_EVENTS) % n, -1, name)
        singles = [_change_instances(engine, {f"u{k % n}": _list_values(k % n, n + 1 + k)}) for k in range(_SINGLES)]
        began = time.process_time()
        data = engine.snapshot()
        kept = time.process_time() - began
        began = time.process_time()
        Engine.restore(data)
        yield line(
            "instances",
            query=name,
            instances=n,
            load_cpu_s=round(loaded, 2),
            memory_mb=memory,
            answered_us=round(1e6 * answered / _EVENTS, 2),
            silent_us=round(1e6 * silent / _EVENTS, 2),
            change_ms=round(1000 * median(singles), 2),
            change_most_ms=round(1000 * max(singles), 2),
            snapshot_cpu_s=round(kept, 2),
            restart_cpu_s=round(time.process_time() - began, 2),
            snapshot_mb=round(len(data) / 2**20, 1),
        )


def _reached(name: str, n: int) -> int:
    """Return the value that the limit of one instance, and of no other, is below."""
    return 1 if name == "limit alone" else n + 1


def _register_query(text: str) -> Engine:
    engine = Engine()
    changes = engine.feed(Block((Register(0, "q", text),), _NO_ROWS)).changes
    assert not changes, changes
    return engine


def _list_values(k: int, limit: int) -> list[str]:
    return [f'"user {k}"', f"<{E}room{k}>", f'"{limit}"^^<{XSD}integer>']


def _change_instances(engine: Engine, changes: dict[str, list[str]]) -> float:
    """Return the CPU seconds of one entry."""
    entry = ChangeInstances(engine.position, 0, "q", json.dumps(changes))
    began = time.process_time()
    engine.feed(Block((entry,), _NO_ROWS))
    return time.process_time() - began


def _load_instances(engine: Engine, n: int) -> float:
    return sum(_change_instances(engine, {f"u{k}": _list_values(k, k) for k in range(first, min(first + _BULK, n))}) for first in range(0, n, _BULK))


def _feed(engine: Engine, rooms: Sequence[int] | np.ndarray, value: int, name: str) -> float:
    """Feed a block of readings, and return its CPU seconds."""
    n = len(rooms)
    if name == "limit alone":
        rooms = np.zeros(n, np.int64)
    pairs = 2 if name == "sequence" else 1  # the second reading of a room is answered
    ends = (np.arange(n) // pairs * _STEP_US + np.arange(n) % pairs) + engine.position * _STEP_US * n
    rooms = np.asarray(rooms) // pairs
    names, numbers = np.unique(rooms, return_inverse=True)
    subjects = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array([f"<{E}room{k}>" for k in names]))
    took, found = _feed_events(engine, subjects, f"<{E}temp>", _repeat(f'"{value}"^^<{XSD}integer>', n), ends)
    wanted = 0 if value < 0 else n // pairs
    if found != wanted:
        raise WrongCount(name, found, wanted)
    return took


# ---------------------------------------------------------------- conditions on texts
def _measure_texts(n: int) -> Iterator[str]:
    """Yield a line for each condition, with few instances and with n: events are parts of the documentation, each a text
    of its own, and instances have words of it, or two words.
    """
    prose = _read_prose()
    for instances in (_FEW_INSTANCES, n):
        words = _list_words(prose, instances)
        for name, condition in SEARCHES.items():
            yield _measure_search(name, condition, words, _list_texts(prose, _EVENTS // 10 if name == "regular expression" else _EVENTS))
    yield _measure_search("contains, one by one", ONE_BY_ONE, _list_words(prose, _FEW_INSTANCES), _list_texts(prose, _FEW_EVENTS))


def _measure_search(name: str, condition: str, words: Sequence[str], texts: Sequence[str]) -> str:
    text = f"PREFIX : <{E}> SELECT ?m FROM STREAM <s> PARAMETERS (?word) WHERE {{ ?m :text ?text FILTER ({condition}) }}"
    engine, base_mb = _register_query(text), rss_mb()
    added = [
        _change_instances(engine, {f"u{k}": [f'"{word}"'] for k, word in enumerate(words[first : first + _BULK], first)})
        for first in range(0, len(words), _BULK)
    ]
    memory = rss_mb() - base_mb
    _feed_texts(engine, texts[:1])
    took, found = _feed_texts(engine, texts)
    if condition in (SEARCHES["contains"], ONE_BY_ONE):
        _, some = _feed_texts(engine, texts[:_FEW_EVENTS])
        if some != (expected := sum(word in each for word in words for each in texts[:_FEW_EVENTS])):
            raise WrongCount(name, some, expected)
    return line(
        "instances",
        query=name,
        instances=len(words),
        load_cpu_s=round(sum(added), 2),
        memory_mb=memory,
        event_us=round(1e6 * took / len(texts), 2),
        found_an_event=round(found / len(texts), 2),
        change_ms=round(1000 * median([_change_instances(engine, {"u0": [f'"of its own {k}"']}) for k in range(_SINGLES)]), 2),
    )


def _read_prose() -> str:
    pages = sorted(Path(__file__).parents[2].glob("docs/**/*.md"))
    return re.sub(r"[^!#-\[\]-~]+", " ", " ".join(page.read_text(encoding="utf-8") for page in pages))


def _list_words(prose: str, n: int) -> list[str]:
    """Return n words: a tenth of them, or of the prose's words, stand in the prose, and the others are two words that may."""
    words = list(dict.fromkeys(re.findall("[A-Za-z]{4,}", prose)))
    order = np.random.default_rng(1).permutation(len(words)).tolist()
    single = [words[k] for k in order[: min(n, len(words)) // 10]]
    pairs = (f"{words[k]} {words[other]}" for step in range(1, len(words)) for k, other in zip(order, order[step:] + order[:step], strict=True))
    return [*single, *(pair for pair, _ in zip(pairs, range(n - len(single)), strict=False))]


def _list_texts(prose: str, n: int) -> list[str]:
    """Return n texts of _TEXT_BYTES, no two of which are alike."""
    places = np.random.default_rng(2).integers(0, len(prose) - _TEXT_BYTES, n).tolist()
    return [f"{k:<8}{prose[place : place + _TEXT_BYTES - 8]}" for k, place in enumerate(places)]


def _feed_texts(engine: Engine, texts: Sequence[str]) -> tuple[float, int]:
    """Feed a block of messages, and return its CPU seconds and how many solutions it has."""
    n, ends = len(texts), np.arange(len(texts)) + engine.position * _STEP_US * _EVENTS
    every = pa.array(np.arange(n), pa.int32())
    subjects = pa.DictionaryArray.from_arrays(every, pa.array([f"<{E}message{k}>" for k in range(n)]))
    objects = pa.DictionaryArray.from_arrays(every, pa.array([f'"{text}"' for text in texts]))
    return _feed_events(engine, subjects, f"<{E}text>", objects, ends)


# ---------------------------------------------------------------- events
def _repeat(term: str, n: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n), pa.int32()), pa.array([term]))


def _feed_events(engine: Engine, subjects: pa.DictionaryArray, predicate: str, objects: pa.DictionaryArray, ends: np.ndarray) -> tuple[float, int]:
    """Feed a block of events, and return its CPU seconds and how many solutions it has."""
    n = len(ends)
    rows = pa.RecordBatch.from_arrays(
        [
            subjects,
            _repeat(predicate, n),
            objects,
            pa.nulls(n, OCCURRENCES.field("g").type),
            pa.array(ends, OCCURRENCES.field("start").type),
            pa.array(ends, OCCURRENCES.field("end").type),
            pa.array(np.zeros(n, np.bool_)),
        ],
        schema=OCCURRENCES,
    )
    block = Block((Events(engine.position, "s", n, int(ends[-1])),), rows)
    began = time.process_time()
    outcome = engine.feed(block)
    assert not outcome.changes, outcome.changes
    return time.process_time() - began, outcome.solutions.num_rows

"""This bench runs many queries at once: what they cost beside one alone, and what registering one more takes."""

import time
from collections.abc import Iterator, Sequence

import epsparql
from bench.measurement import line, median, one_core, peak_rss_mb
from bench.workloads import PREFIXES, WITHIN, blocks, drawn, registration
from engine.engine import Engine
from engine.messages import Block

_IDS_A_PREDICATE = 10_000  # predicates x ids, so that an event meets one goal in each query that it completes, however many there are
_MORE = 20
_ROUNDS = 3


def measure(queries: int, n: int) -> Iterator[str]:
    """Yield a line: the rate with `queries` registered, and that of one query over two predicates.

    The many queries are over as many predicates, each of them in two queries. The line also has what registering
    further ones takes, all included and beside parsing.
    """
    one_core()
    names = [f"p{k}" for k in range(queries)]
    many_log = list(blocks(drawn(n, max(_IDS_A_PREDICATE // queries, 1), queries), names=names, first_offset=queries))
    one_log = list(blocks(drawn(n, _IDS_A_PREDICATE // 2, 2), names=names[:2]))
    texts = [text_of(k, queries) for k in range(queries)]
    many, one = [], []
    for _ in range(_ROUNDS):
        engine, matches = registered(texts), 0
        seconds, matches = _feed_log(engine, many_log)
        many.append(n / seconds)
        one_seconds, one_matches = _feed_log(registered(texts[:1]), one_log)
        one.append(n / one_seconds)
    parsing, rest = _more(engine, queries)
    took = [part + other for part, other in zip(parsing, rest, strict=True)]
    yield line(
        "queries",
        queries=queries,
        n=n,
        matches=matches,
        events_per_s=round(median(many)),
        one_query_matches=one_matches,
        one_query_events_per_s=round(median(one)),
        ratio=round(median(many) / median(one), 3),
        registering_ms=round(median(took), 2),
        registering_most_ms=round(max(took), 2),
        parsing_ms=round(median(parsing), 2),
        without_parsing_ms=round(median(rest), 2),
        peak_rss_mb=peak_rss_mb(),
    )


def text_of(k: int, predicates: int) -> str:
    """Return the k-th query: its predicate and then the next one."""
    return f"SELECT * WHERE {{ {{?s :p{k % predicates} ?x}} SEQ {{?s :p{(k + 1) % predicates} ?y}} {WITHIN} }}"


def registered(texts: Sequence[str]) -> Engine:
    engine = Engine()
    for k, text in enumerate(texts):
        changes = engine.feed(registration(text, k, f"q{k}")).changes
        assert not changes, changes
    return engine


def _feed_log(engine: Engine, log: Sequence[Block]) -> tuple[float, int]:
    """Feed a log. Return seconds and solutions."""
    began, matches = time.perf_counter(), 0
    for block in log:
        matches += engine.feed(block).solutions.num_rows
    return time.perf_counter() - began, matches


def _more(engine: Engine, queries: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds that parsing the texts of some further registrations takes, and those that the rest of
    each takes.
    """
    parsing, rest = [], []
    for k in range(queries, queries + _MORE):
        text = f"SELECT * WHERE {{ {{?s :p{k % queries} ?x}} SEQ {{?s :p{(k + 2) % queries} ?y}} {WITHIN} }}"
        began = time.perf_counter()
        epsparql.parse(PREFIXES + text)
        parsing.append((time.perf_counter() - began) * 1000)
        block = registration(text, engine.position, f"q{k}")
        began = time.perf_counter()
        changes = engine.feed(block).changes
        rest.append((time.perf_counter() - began) * 1000)  # the text is parsed once
        assert not changes, changes
    return parsing, rest

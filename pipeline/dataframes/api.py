"""This module evaluates EP-SPARQL queries over any DataFrame of occurrences, batch or streaming.

It serves Spark users without a server or a log (docs/spark.md). Events go to their partitions in the JVM, which sorts
a batch frame's events by end; an engine per partition takes them in as Arrow batches. For a stream,
transformWithState keeps the engines' states (`pipeline/dataframes/streaming.py`).
"""

import importlib.util
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType, LongType, StringType, TimestampType

from epsparql.solutions.policies import UNRESTRICTED, PolicyFault, read_policy
from pipeline.dataframes.asked import Asked, Share
from pipeline.errors import SolveFailed

SOLVED_COLUMNS = "query string, start timestamp, end timestamp, binding map<string,string>, triples array<string>, boolean boolean"
_TEXTS, _TIMES = ("s", "p", "o", "g", "stream"), ("start", "end")
_NEEDED = ("s", "p", "o", *_TIMES)
_MOST_PARTITIONS = 64
"""More than this many engines for each query is a mistake."""


def solve(
    events: DataFrame,
    queries: Mapping[str, str] | str,
    background: Mapping[str, str] | str = "",
    *,
    max_delay: timedelta = timedelta(0),
    partitions: int | None = None,
    policies: Mapping[str, str] | str = UNRESTRICTED,
    default_graph: str = "all",
    **former: int,
) -> DataFrame:
    """Return the solutions of queries over a DataFrame of occurrences, as the in-process engine gives them.

    `queries` is by name; a single text is called `q`. `events` has columns s, p, o (terms in N-Triples syntax), start
    and end (timestamps). It may have g (an event graph) and stream (its name, `default` if null); others are ignored.
    The frame returned has `query`, `start`, `end`, `binding` (of a SELECT: a map from variable to term), `triples`
    (of a CONSTRUCT or DESCRIBE) and `boolean` (of an ASK), in no particular order. `background` is Turtle, or Turtle
    by graph.

    A batch frame is taken as finished streams. On a streaming frame time passes with the events: it is the latest end
    of earlier micro-batches less `max_delay`, and what ends before it is dropped. `partitions` engines (default: one
    a core, at most 8) share the queries whose events can be told apart by subject or by object; it may not change
    while a stream's checkpoint is used. `buckets` is its deprecated name.

    Raises: SolveFailed, QueryError.
    """
    partitions = _partitions_by_former_name(former) if former else partitions
    _check_pandas()
    _check_columns(events)
    asked, shares = _asked(queries, background, policies, default_graph, _partitions(events, partitions), "stream" in events.columns)
    dealt = _dealt(events, shares)
    total = sum(share.partitions for share in shares)
    if events.isStreaming:
        from pipeline.dataframes.streaming import follow_stream

        return follow_stream(dealt, asked, total, max_delay, SOLVED_COLUMNS)
    return _finished(dealt, asked, total)


def _partitions_by_former_name(given: Mapping[str, int]) -> int:
    """Return the partitions given as `buckets`, with a warning. Raises: TypeError for any other name."""
    if {*given} != {"buckets"}:
        raise TypeError(f"solve() got an unexpected keyword argument {min(given.keys() - {'buckets'})!r}")
    warnings.warn("solve(buckets=...) is deprecated and goes with the next release; use partitions=...", DeprecationWarning, stacklevel=3)
    return given["buckets"]


# ---------------------------------------------------------------- what is asked
def _asked(
    queries: Mapping[str, str] | str,
    background: Mapping[str, str] | str,
    policies: Mapping[str, str] | str,
    default_graph: str,
    partitions: int,
    named: bool,
) -> tuple[tuple[Asked, ...], tuple[Share, ...]]:
    """Return what the engine of each partition is asked, and the shares. Raises: SolveFailed, QueryError."""
    import epsparql  # and below: the engine and its second of import only once a frame is asked for
    from engine.validation.validate import check
    from pipeline.dataframes.engine_task import STREAM
    from pipeline.dataframes.query_partitions import shares

    texts = {"q": queries} if isinstance(queries, str) else dict(queries)
    if not texts:
        raise SolveFailed("there is no query; give at least one")
    if default_graph not in ("all", "unnamed"):
        raise SolveFailed(f"default_graph is {default_graph!r}; expected 'all' or 'unnamed'")
    chosen = dict.fromkeys(texts, policies) if isinstance(policies, str) else dict(policies)
    for name, policy in chosen.items():
        try:
            chosen[name] = read_policy(policy)
        except PolicyFault as fault:
            raise SolveFailed(str(fault)) from None
        if name not in texts:
            raise SolveFailed(f"there is no query {name!r} to give a policy to; there is {', '.join(texts)}")
    parsed = {name: epsparql.parse(text) for name, text in texts.items()}
    for name, query in parsed.items():
        check(query, {other: each.query for other, each in parsed.items() if other < name}, name=name, policies=chosen)
    if not named and all(STREAM not in query.query.streams for query in parsed.values()):
        raise SolveFailed(
            "no query reads the stream 'default', and the events have no column 'stream' that names another; add one, or leave out FROM STREAM"
        )
    facts = _facts(background)
    found = shares({name: query.query for name, query in parsed.items()}, chosen, background=bool(facts), partitions=partitions)
    asked = [Asked(tuple((name, texts[name], chosen.get(name, UNRESTRICTED)) for name in share.queries), facts, default_graph) for share in found]
    return tuple(one for one, share in zip(asked, found, strict=True) for _ in range(share.partitions)), found


def _facts(background: Mapping[str, str] | str) -> tuple[tuple[str, str], ...]:
    import pyoxigraph as ox

    found = []
    for graph, text in ({"": background} if isinstance(background, str) else background).items():
        try:
            triples = [f"{quad.triple} .\n" for quad in ox.parse(text, ox.RdfFormat.TURTLE)]
        except SyntaxError as fault:
            raise SolveFailed(f"the background{f' graph {graph!r}' if graph else ''} is no Turtle: {fault}") from None
        if triples:
            found.append((graph, "".join(triples)))
    return tuple(found)


# ---------------------------------------------------------------- the events
def _check_pandas() -> None:
    if importlib.util.find_spec("pandas") is None:
        raise SolveFailed("Spark needs pandas for queries over DataFrames; run: pip install 'epsparql[dataframes]'")


def _check_columns(events: DataFrame) -> None:
    kinds = {field.name: field.dataType for field in events.schema}
    for name in _NEEDED:
        if name not in kinds:
            raise SolveFailed(f"the events have no column {name!r}, only {', '.join(kinds)}; name yours so with withColumnRenamed")
    for name in _TEXTS:
        if name in kinds and not isinstance(kinds[name], StringType):
            raise SolveFailed(
                f"the events' column {name!r} is of {kinds[name].simpleString()}; write its terms as text in N-Triples syntax, such as "
                f'<http://e/a> or "1"'
            )
    for name in _TIMES:
        if not isinstance(kinds[name], TimestampType):
            raise SolveFailed(
                f"the events' column {name!r} is of {kinds[name].simpleString()}; make it a timestamp, with to_timestamp or timestamp_micros"
            )


def _partitions(events: DataFrame, wish: int | None) -> int:
    if wish is None:
        return min(events.sparkSession.sparkContext.defaultParallelism, 8)
    if not 1 <= wish <= _MOST_PARTITIONS:
        raise SolveFailed(f"partitions is {wish}; expected 1 to {_MOST_PARTITIONS}")
    return wish


def _dealt(events: DataFrame, shares: Iterable[Share]) -> DataFrame:
    """Return the events with the number of their partition, once for each share; times are in µs."""
    texts = [f.col(name) if name in events.columns else f.lit(None).cast(StringType()).alias(name) for name in _TEXTS]
    chosen = [_partition(share) for share in shares]
    partition = chosen[0] if len(chosen) == 1 else f.explode(f.array(*chosen))
    return events.select(partition.alias("partition"), *texts, *(f.unix_micros(name).alias(name) for name in _TIMES))


def _partition(share: Share) -> Column:
    if share.column is None:
        return f.lit(share.first)
    return (f.lit(share.first) + f.pmod(f.hash(f.col(share.column)), f.lit(share.partitions))).cast(IntegerType())


# ---------------------------------------------------------------- batch
def _finished(dealt: DataFrame, asked: tuple[Asked, ...], total: int) -> DataFrame:
    """Solve a batch frame: each partition is one sorted partition, whose first row only names the partition, for it
    may hold no events.
    """
    nothing = [f.lit(None).cast(StringType()).alias(name) for name in _TEXTS] + [f.lit(None).cast(LongType()).alias(name) for name in _TIMES]
    names = dealt.sparkSession.range(total).select(f.col("id").cast(IntegerType()).alias("partition"), *nothing)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pipeline.dataframes.engine_task import Solver, occurrences, solved, streams_of

        solver: Solver | None = None
        for batch in batches:
            rows = batch
            if solver is None and batch.num_rows:
                solver, rows = Solver(asked[batch.column("partition")[0].as_py()]), batch.slice(1)
            if solver is not None and rows.num_rows:
                table = pa.Table.from_batches([rows])
                yield from solved(solver.feed(occurrences(table), streams_of(table), table.column("end")[-1].as_py()), solver.queries)
        if solver is not None:
            yield from solved(solver.finish(), solver.queries)

    ordered = dealt.unionByName(names).repartitionById(total, "partition").sortWithinPartitions("end")
    return ordered.mapInArrow(run, SOLVED_COLUMNS)

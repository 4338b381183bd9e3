"""Figure 5 of the Semantic Web journal article on ETALIS: the throughput of SEQ, AND, NOT and OR, by rules (8) to (10)."""

from collections.abc import Iterator, Mapping
from itertools import chain

import pyarrow as pa

from bench.measurement import WrongCount
from bench.papers.feeds import XSD, Event, batches, rate, run
from bench.papers.figures import Chart, Figure, Row, Size
from bench.workloads import MATCHES, WITHIN, Drawn, blocks, drawn, times_of
from epsparql.etalis.streams import SentEvent
from epsparql.etalis.translator import query_text
from epsparql.solutions.policies import RECENT, UNRESTRICTED
from epsparql.terms import Literal

FIGURES = {
    "002-5": Figure(
        "Throughput - comparison results",
        "Semantic Web journal article, Figure 5, test 1",
        "operator",
        "events/s",
        "Rules (8) with SEQ and with AND, (9) with NOT and (10) with OR, as printed. The stream of a, b and c is generated, with 1,000 ids.",
        "The size of the stream is not printed. The rules run as ETALIS programs under the policy recent, its default. "
        "The same patterns in EP-SPARQL find all matches within 10 s.",
        Chart.BARS,
        "not legible",
    ),
}
RULES = {
    "SEQ": "d(Id, X, Y) :- a(Id, X) SEQ b(Id, Y) SEQ c(Id, Z).",
    "AND": "d(Id, X, Y) :- a(Id, X) AND b(Id, Y) AND c(Id, Z).",
    "NOT": "d(Id, X, Y) :- NOT(c(Id, Z)).[a(Id, X), b(Id, Y)].",
    "OR": "d(Id, X, Y) :- a(Id, X) SEQ (b(Id, Y) OR c(Id, Y)).",
}
"""Rules (8) to (10) as printed, with the operators of (8) in place of BIN."""
QUERIES = {
    "SEQ": f"SELECT ?s ?x ?y WHERE {{ {{?s :a ?x}} SEQ {{?s :b ?y}} SEQ {{?s :c ?z}} {WITHIN} }}",
    "AND": f"SELECT ?s ?x ?y WHERE {{ {{?s :a ?x}} AND {{?s :b ?y}} AND {{?s :c ?z}} {WITHIN} }}",
    "NOT": f"SELECT ?s ?x ?y WHERE {{ {{?s :a ?x}} SEQ {{?s :b ?y}} WITHOUT {{?s :c ?z}} {WITHIN} }}",
    "OR": f"SELECT ?s ?x ?y WHERE {{ {{?s :a ?x}} SEQ {{ {{?s :b ?y}} UNION {{?s :c ?y}} }} {WITHIN} }}",
}
_WORKLOADS = {"SEQ": "W1", "NOT": "W2", "OR": "W4"}
_PEERS: Mapping[str, Mapping[str, int]] = {
    "Esper 9.0.0": {"SEQ": 273_000, "NOT": 735_000, "OR": 436_000},
    "ETALIS on SWI-Prolog 9": {"SEQ": 7_000, "NOT": 22_000, "OR": 13_000},
}
"""These were measured by us on another day, on the same kind of machine (docs/benchmarks.md)."""
_IDS, _WARM = 1_000, 300


def measure(size: Size) -> Iterator[Row]:
    """Yield a row for each operator and language. Raises: WrongCount."""
    for operator, rule in RULES.items():
        program, policy = query_text(f"print_trigger(d/3).\n{rule}", RECENT)
        run({"d": program}, program_feed(drawn(_WARM, 10)), policy=policy)  # compiled code is loaded
        n = size.of(20_000, 600)
        found = run({"d": program}, program_feed(drawn(n, _IDS)), policy=policy)
        more = {"n": n, "matches": found.counts["d"], "cpu_s": round(found.cpu_s, 3)}
        yield Row("002-5", "the rule as printed, recent", operator, rate(n, found.cpu_s), more=more)
        run({"d": QUERIES[operator]}, query_feed(drawn(_WARM, 10)), policy=UNRESTRICTED)
        n = size.of(200_000, 3_000)
        found = run({"d": QUERIES[operator]}, query_feed(drawn(n, _IDS)), policy=UNRESTRICTED)
        matches = found.counts["d"]
        expected = MATCHES.get((n, _IDS), {}).get(_WORKLOADS.get(operator, ""), matches)
        if matches != expected:
            raise WrongCount(f"papers: {operator}", matches, expected)
        more = {"n": n, "matches": matches, "cpu_s": round(found.cpu_s, 3)}
        yield Row("002-5", "EP-SPARQL, all matches within 10 s", operator, rate(n, found.cpu_s), None, more)
        for peer, rates in _PEERS.items():
            if operator in rates:
                yield Row("002-5", peer, operator, rates[operator], None, {"measured": "another day"})


def query_feed(events: Drawn) -> Iterator[pa.RecordBatch]:
    return (block.rows for block in blocks(events))


def program_feed(events: Drawn) -> Iterator[pa.RecordBatch]:
    """Yield the same events as a program's: an atom of id and a whole number each."""
    each = zip(
        events.types.tolist(), events.ids.tolist(), (events.values * 1_000).astype(int).tolist(), times_of(0, len(events)).tolist(), strict=True
    )
    sent = (SentEvent("abc"[kind], (_integer(key), _integer(value)), at, at) for kind, key, value, at in each)
    return batches(chain.from_iterable((Event(*triple, event.start) for triple in event.triples()) for event in sent))


def _integer(value: int) -> Literal:
    return Literal(str(value), XSD + "integer")

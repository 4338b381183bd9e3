"""Figure 1 of the EP-SPARQL paper: a sliding average by its rules (5) and (6), and a sum over a sequence in a window
of events.

The paper says neither how often a price came nor how many there were. Here a price comes every 0.9 s, so that no
window ends with a price.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.measurement import WrongCount
from bench.papers.feeds import BEGIN, SECOND, Event, Result, batches, iri, number_term, rate, run
from bench.papers.figures import Figure, Row, Size
from engine.messages import Micros
from epsparql.solutions.policies import RECENT

FIGURES = {
    "003-1a": Figure(
        "Throughput vs. Window size",
        "EP-SPARQL paper, Figure 1(a), test 1",
        "time window, s",
        "events/s",
        "Query (5) as printed and (6) with its misprints mended; windows of 1, 3, 10 and 30 s.",
        "A rule was added that starts a point at each price. Query (6) has no upper bound, and got one, 1 s longer than the window. "
        "The number of prices in a window is not printed. Here it is 2, 4, 12 and 34, and 10 in a window of 8.5 s.",
        axis="4000 to 10000 events/s",
    ),
    "003-1b": Figure(
        "Throughput vs. Window size (Sum over Sequence)",
        "EP-SPARQL paper, Figure 1(b), test 1",
        "count window, events",
        "events/s",
        "SUM over the matches of a sequence of two events, in the last 100, 500, 1000 and 50000 matches.",
        "The query is reconstructed from the prose, and runs under the policy recent, which was the default of ETALIS.",
        axis="0 to 30 thousand events/s",
    ),
}
WINDOWS_S, COUNTS = (1, 3, 10, 30), (100, 500, 1_000, 50_000)
_TEN_PRICES_S = 8.5
_EVERY: Micros = 900_000
_WARM = 40
_POINT = "?point :hasCount ?prevcount . ?point :hasSum ?prevsum ."
_PRICE, _BETWEEN = ":ACME :hasStockPrice ?price .", ":ACME :hasStockPrice ?inbetween ."


def _rules(window_s: float) -> dict[str, str]:
    return {
        "start": "CONSTRUCT { _:p :hasCount 1 ; :hasSum ?price } WHERE { :ACME :hasStockPrice ?price }",
        "points": f"""CONSTRUCT {{ _:aaa :hasCount ?count . _:aaa :hasSum ?sum . }}
{{ SELECT (?prevcount + 1 AS ?count) (?prevsum + ?price AS ?sum)
   WHERE {{{{ {_POINT} }} SEQ {{ {_PRICE} }}}}
     EQUALSOPTIONAL {{{{ {_POINT} }} SEQ {{ {_BETWEEN} }} SEQ {{ {_PRICE} }}}}
   FILTER ( !BOUND(?inbetween) && getDURATION() < "PT{window_s}S"^^xsd:duration )}}""",
        "average": f"""SELECT (?prevsum / ?prevcount AS ?average) WHERE {{{{ {_PRICE} }} SEQ {{ {_POINT} }}}}
  EQUALSOPTIONAL {{{{ {_PRICE} }} SEQ {{ {_BETWEEN} }} SEQ {{ {_POINT} }}}}
FILTER ( !BOUND(?inbetween) && getDURATION() > "PT{window_s}S"^^xsd:duration && getDURATION() < "PT{window_s + 1}S"^^xsd:duration )""",
    }


def _window(window_s: int) -> dict[str, str]:
    return {"average": f"SELECT (AVG(?price) AS ?average) WHERE {{ :ACME :hasStockPrice ?price }} WINDOW [RANGE PT{window_s}S]"}


def _sum(size: int) -> dict[str, str]:
    return {"sum": f"SELECT (SUM(?v) AS ?sum) WHERE {{ {{?a :A ?x}} SEQ {{?b :B ?v}} }} WINDOW [ROWS {size}]"}


def measure(size: Size) -> Iterator[Row]:
    """Yield the rows of both figures. Raises: WrongCount."""
    run(_rules(1), batches(_prices(_WARM)))  # compiled code is loaded
    run(_window(1), batches(_prices(_WARM)))
    for window_s in WINDOWS_S[:2] if size.quick else WINDOWS_S:
        held = -(-window_s * SECOND // _EVERY)
        prices = size.of(20_000 // held, 100)
        found = run(_rules(window_s), batches(_prices(prices)))
        _expect("averages", found, "average", prices - held)
        yield _row("003-1a", "rules (5) and (6)", window_s, prices, found, held=held, derived=prices * held)
        prices = size.of(100_000, 2_000)
        found = run(_window(window_s), batches(_prices(prices)))
        _expect("window averages", found, "average", prices)
        yield replace(_row("003-1a", "AVG with WINDOW [RANGE]", window_s, prices, found, held=held), paper=None)
    yield from _measure_ten_prices(size)
    run(_sum(100), batches(_pairs(_WARM)), policy=RECENT)
    for rows in COUNTS[:2] if size.quick else COUNTS:
        events = size.of(200_000, 2_000)
        found = run(_sum(rows), batches(_pairs(events)), policy=RECENT)
        _expect("sums", found, "sum", events // 2 + 1)  # the first event ends no sequence, so the sum is that of nothing
        yield _row("003-1b", "SUM with WINDOW [ROWS], recent", rows, events, found)


def _measure_ten_prices(size: Size) -> Iterator[Row]:
    """Yield rows of a window that holds ten prices, for few and for many prices: the work for a price is the same."""
    held, rules = 10, _rules(_TEN_PRICES_S)
    for prices in (size.of(10_000, 100), size.of(100_000, 200)):
        for series, names in (("rule (5), ten prices", ("start", "points")), ("rules (5) and (6), ten prices", tuple(rules))):
            found = run({name: rules[name] for name in names}, batches(_prices(prices)))
            points = (held - 1) * prices - held * (held - 1) // 2
            _expect("points", found, "points", points)
            _expect("averages", found, "average", prices - held if "average" in names else 0)
            row = _row("003-1a", f"{series}, {prices:,} in all", _TEN_PRICES_S, prices, found, held=held, derived=prices + points)
            yield replace(row, paper=None)


def _expect(what: str, found: Result, query: str, expected: int) -> None:
    if found.counts[query] != expected:
        raise WrongCount(f"papers: {what}", found.counts[query], expected)


def _row(figure: str, series: str, x: float, events: int, found: Result, **more: object) -> Row:
    more |= {"n": events, "cpu_s": round(found.cpu_s, 3), "state_kb": found.state_bytes // 1_000}
    return Row(figure, series, x, rate(events, found.cpu_s), more=more)


def _prices(n: int) -> Iterator[Event]:
    for k, price in enumerate(np.random.default_rng(42).integers(1, 1_000, n).tolist()):
        yield Event(iri("ACME"), iri("hasStockPrice"), number_term(price), BEGIN + k * _EVERY)


def _pairs(n: int) -> Iterator[Event]:
    for k, value in enumerate(np.random.default_rng(42).integers(1, 1_000, n).tolist()):
        yield Event(iri(f"id/{k // 2}"), iri("AB"[k % 2]), number_term(value), BEGIN + k * 1_000)

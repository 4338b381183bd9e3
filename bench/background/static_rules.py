"""This bench measures static rules: 1,000 of them over 100,000 facts that close to about a million.

The facts are 50 groups of ten properties, each with 200 pairs of the group's 100 nodes. A group has 20 rules, whose
properties later rules of the group read: chains and stars of two to four patterns; a tenth of them is recursive, and
a tenth says what is absent. 100 of the facts lie in graphs of their own, which come and go.

It also measures distances and routes over a grid of 10,000 places while a link closes and opens.
"""

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from bench.measurement import WrongCount, line, median, one_core, peak_rss_mb
from engine.engine import Engine
from engine.messages import ADD, DROP, OCCURRENCES, Block, Facts, Register
from epsparql.terms import XSD, Iri

GROUPS, PROPERTIES, PAIRS, NODES, RULES = 50, 10, 200, 100, 20
CHANGES = 100
_STEPS = """PREFIX : <http://example.org/> CONSTRUCT { ?x :far ?d } INTO BACKGROUND :distances WHERE { SELECT ?x (MIN(?n) AS ?d) WHERE {
  { ?x :start ?n } UNION { ?y :far ?k . ?y :to ?x BIND(?k + 1 AS ?n) } } GROUP BY ?x }"""
_PREFIX = "PREFIX : <http://example.org/> "
_NOTHING = pa.RecordBatch.from_pylist([], schema=OCCURRENCES)


def measure(n: int, side: int = 100) -> Iterator[str]:
    """Yield a line for a grid of `side` by `side` places, and one for the facts of `n` groups: seconds to register the
    rules and to close the facts, and ms for one fact more and one less.

    Raises: WrongCount.
    """
    one_core()
    yield _measure_grid(side)
    engine = Engine()
    began = time.perf_counter()
    texts = [text for group in range(n) for text in rules_of(group)]
    for text in texts:
        changed = engine.feed(Block((Register(engine.position, f"rule{engine.position}", text),), _NOTHING)).changes
        assert not changed, changed
    registering = time.perf_counter() - began
    facts = [fact for group in range(n) for fact in facts_of(group)]
    chosen = np.random.default_rng(7).choice(len(facts), CHANGES, replace=False).tolist()
    apart = set(chosen)
    for k in chosen:
        learn(engine, f"http://example.org/graph{k}", facts[k], ADD)
    rest = "".join(fact for k, fact in enumerate(facts) if k not in apart)
    began = time.perf_counter()
    learn(engine, "http://example.org/facts", rest, ADD)
    closing = time.perf_counter() - began
    closed = len(engine.registry.known.everything())
    removing, adding = [], []
    for k in chosen:
        began = time.perf_counter()
        learn(engine, f"http://example.org/graph{k}", "", DROP)
        removing.append(time.perf_counter() - began)
        began = time.perf_counter()
        learn(engine, f"http://example.org/graph{k}", facts[k], ADD)
        adding.append(time.perf_counter() - began)
    if len(engine.registry.known.everything()) != closed:
        raise WrongCount("static-rules", len(engine.registry.known.everything()), closed)
    yield line(
        "static-rules", rules=len(texts), facts=len(facts), closed=closed, registering_s=round(registering, 2), closing_s=round(closing, 2),
        adding_ms=round(median(adding) * 1000, 2), adding_most_ms=round(max(adding) * 1000, 1), removing_ms=round(median(removing) * 1000, 2),
        removing_most_ms=round(max(removing) * 1000, 1), peak_rss_mb=peak_rss_mb(),
    )  # fmt: skip


def _measure_grid(side: int) -> str:
    """Measure, in ms of CPU, how distances follow a random link, and how a route from corner to corner is found then.

    Raises: WrongCount.
    """
    engine, rows = Engine(), np.arange(side * side).reshape(side, side)
    pairs = np.concatenate([np.column_stack([x.ravel(), y.ravel()]) for x, y in ((rows[:, :-1], rows[:, 1:]), (rows[:-1], rows[1:]))])
    links = [*map(_write_link, np.concatenate([pairs, pairs[:, ::-1]]).tolist())]
    chosen = np.random.default_rng(7).choice(len(links), CHANGES, replace=False).tolist()
    engine.feed(Block((Register(engine.position, "distances", _STEPS),), _NOTHING))
    learn(engine, "urn:start", f'<http://example.org/n0> <http://example.org/start> "0"^^<{XSD}integer> .\n', ADD)
    learn(engine, "urn:links", "".join(link for k, link in enumerate(links) if k not in {*chosen}), ADD)
    for k in chosen:
        learn(engine, f"urn:graph:{k}", links[k], ADD)
    ends = [Iri("http://example.org/" + name) for name in ("n0", f"n{side * side - 1}", "to")]
    updating, finding = [], []
    for k in chosen:
        for triples, change in (("", DROP), (links[k], ADD)):
            began = time.process_time()
            learn(engine, f"urn:graph:{k}", triples, change)
            updated = time.process_time()
            route = engine.registry.known.find_route(ends)
            updating.append(updated - began)
            finding.append(time.process_time() - updated)
        if route is None or len(route.nodes) != 2 * side - 1:
            raise WrongCount("static-rules", 0 if route is None else len(route.nodes), 2 * side - 1)
    return line(
        "static-rules", workload="grid", places=side * side, links=len(links), updating_cpu_ms=round(median(updating) * 1000, 2),
        updating_most_cpu_ms=round(max(updating) * 1000, 1), route_cpu_ms=round(median(finding) * 1000, 2),
        route_most_cpu_ms=round(max(finding) * 1000, 1),
    )  # fmt: skip


def _write_link(link: list[int]) -> str:
    return "<http://example.org/n{}> <http://example.org/to> <http://example.org/n{}> .\n".format(*link)


def learn(engine: Engine, graph: str, triples: str, change: str) -> None:
    engine.feed(Block((Facts(engine.position, graph, triples, change),), _NOTHING))


def facts_of(group: int) -> list[str]:
    """Return the facts of a group as N-Triples, one a line."""
    random = np.random.default_rng(group)
    found = []
    for k in range(PROPERTIES):
        pairs = random.choice(NODES * NODES, PAIRS, replace=False)
        found += [
            f"<http://example.org/n{group}_{pair // NODES}> <http://example.org/p{group}_{k}> <http://example.org/n{group}_{pair % NODES}> .\n"
            for pair in pairs.tolist()
        ]
    return found


def rules_of(group: int) -> list[str]:
    """Return the rules of a group; each writes a property of its own, but for those that a recursive one goes on from."""
    random = np.random.default_rng(1000 + group)
    known = [f":p{group}_{k}" for k in range(PROPERTIES)]
    found = []
    for k in range(RULES):
        own = f":r{group}_{k}"
        properties = [known[j] for j in random.choice(len(known), 4)]
        length = 2 + k % 3
        if k in (8, 18):  # the recursive ones go on from what the rule before them has derived
            head, body = f"?x :r{group}_{k - 1} ?z", f"?x :r{group}_{k - 1} ?y . ?y :p{group}_{k % PROPERTIES} ?z"
            found.append(_rule(head, body))
            continue
        if k in (7, 17):
            found.append(_rule(f"?x {own} ?y", f"?x :p{group}_{k % PROPERTIES} ?y . ?y :p{group}_{(k + 3) % PROPERTIES} ?z"))
            continue
        if k % 2:
            body = " . ".join(f"?v{j} {properties[j]} ?v{j + 1}" for j in range(length))
            head = f"?v0 {own} ?v{length}"
        else:
            body = " . ".join(f"?v {properties[j]} ?v{j}" for j in range(length))
            head = f"?v0 {own} ?v{length - 1}"
        if k in (6, 16):
            body += f" FILTER NOT EXISTS {{ {head.replace(own, properties[3])} }}"
        found.append(_rule(head, body))
        if k % 4 == 0:
            known.append(own)
    return found


def _rule(head: str, body: str) -> str:
    return f"{_PREFIX}CONSTRUCT {{ {head} }} INTO BACKGROUND :derived WHERE {{ {body} }}"

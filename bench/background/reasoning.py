"""This bench measures types under a large hierarchy of classes.

It measures an event whose class is below the one that a query asks for, and a change of the hierarchy. Class k is below class (k
- 1) // 4, so 40,080 of them are 8 deep; half of the events are of these classes, half of others that are nowhere.
"""

import gc
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pyarrow as pa

from bench.measurement import WrongCount, line, median, one_core, peak_rss_mb, rss_mb
from bench.workloads import PREFIXES, TermColumn, make_block, times_of
from engine.background.fact_store import FactIndex
from engine.background.reasoning.owl_rl.rules import OWL
from engine.background.reasoning.rdfs_schema import RDFS
from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import OCCURRENCES, OWL_RL, Block, Entail, Facts, Register
from engine.messages import RDFS as RDFS_ONLY
from epsparql.terms import RDF

CLASSES, MANY = 40_080, 250_000
_QUERY = PREFIXES + "SELECT ?s WHERE { ?s a :C0 }"
_FANOUT, _SUBJECTS, _BATCH = 4, 1_000, 10_000
_ROUNDS, _CHANGES, _THINGS = 3, 5, 100_000
_NOTHING = pa.RecordBatch.from_pylist([], schema=OCCURRENCES)
Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def measure(n: int, classes: int = CLASSES, many: int = MANY) -> Iterator[str]:
    """Yield a line about an event, closing, registering and changes. Raises: WrongCount.

    It has µs an event of the kernel alone, events per CPU second from blocks to solutions, and seconds to close the
    hierarchy. It has ms to register the query, and to add a class and to take one away, with an event that shows it.
    It also has what OWL 2 RL and `many` classes take in processes of their own.
    """
    one_core()
    _load_code()
    began = time.perf_counter()
    engine = loaded(classes)
    closed = time.perf_counter() - began
    began = time.perf_counter()
    register_queries(engine)
    registering = time.perf_counter() - began
    events = typed(n, classes)
    kernel = [in_numbers(engine, events, classes) for _ in range(_ROUNDS + 1)][1:]  # compiled code is loaded
    blocks = [block_of(engine.position + k, events[first : first + _BATCH], classes, first) for k, first in enumerate(range(0, n, _BATCH))]
    began, matches = time.process_time(), 0
    for block in blocks:
        matches += engine.feed(block).solutions.num_rows
    whole = time.process_time() - began
    expect("the stream", matches, n // 2)
    adding, removing = changes(engine, classes, n)
    owl = apart(_under_owl, classes)
    yield line(
        "reasoning", classes=classes, n=n, matches=matches, kernel_us_an_event=round(median(kernel) / n * 1e6, 4), events_per_s=round(n / whole),
        closing_s=round(closed, 3), registering_ms=round(registering * 1000, 1), adding_ms=round(median(adding) * 1000, 2),
        adding_most_ms=round(max(adding) * 1000, 2), removing_ms=round(median(removing) * 1000, 2), peak_rss_mb=peak_rss_mb(),
        **apart(_many, many), **owl,
    )  # fmt: skip


def _load_code() -> None:
    """Evaluate a block with a small hierarchy: a process loads compiled code once, which is not an event's cost."""
    engine = loaded(_FANOUT)
    register_queries(engine)
    engine.feed(block_of(engine.position, typed(_BATCH, _FANOUT), _FANOUT, 0))


def expect(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise WrongCount(f"reasoning: {what}", found, expected)


def text_of(first: int, after: int) -> str:
    """Return the classes [first, after) with their superclasses."""
    return "".join(f"<http://example.org/C{k}> <{RDFS}subClassOf> <http://example.org/C{(k - 1) // _FANOUT}> .\n" for k in range(first, after))


def loaded(classes: int, regime: str = RDFS_ONLY) -> Engine:
    """Return an engine with the hierarchy, class 0 above all others."""
    engine = Engine()
    if regime != RDFS_ONLY:
        engine.feed(Block((Entail(0, regime),), _NOTHING))
    engine.feed(Block((Facts(engine.position, "", text_of(1, classes + 1)),), _NOTHING))
    return engine


def register_queries(engine: Engine) -> None:
    changed = engine.feed(Block((Register(engine.position, "q", _QUERY),), _NOTHING)).changes
    assert not changed, changed


def typed(n: int, classes: int) -> Ints:
    """Return the class of each event: every other one is none of the hierarchy's."""
    found = np.random.default_rng(42).integers(1, classes + 1, n)
    found[1::2] += classes
    return found


def block_of(offset: int, kinds: Ints, classes: int, first: int) -> Block:
    """Return typed events from the one numbered `first` on, as an entry of the log."""
    n = len(kinds)
    distinct, which = np.unique(kinds, return_inverse=True)
    subject = TermColumn(np.arange(first, first + n) % _SUBJECTS, [f"<http://example.org/id/{k}>" for k in range(_SUBJECTS)])
    type_ = TermColumn(np.zeros(n, np.int64), [f"<{RDF}type>"])
    return make_block(offset, (subject, type_, TermColumn(which, names_of(distinct, classes))), times_of(first, first + n))


def names_of(kinds: Ints, classes: int) -> list[str]:
    return [f"<http://example.org/C{k}>" if k <= classes else f"<http://example.org/other/C{k - classes}>" for k in kinds.tolist()]


def in_numbers(engine: Engine, events: Ints, classes: int) -> float:
    """Return the seconds of the kernel alone, for occurrences in numbers, in an engine of its own."""
    own = Engine()
    own.registry.known = FactIndex.from_quads(engine.registry.facts, own.registry.terms)
    register_queries(own)
    network, n = own.registry.members[0].network, len(events)
    feed = np.zeros((c.FEED_HEIGHT, n), np.int64)
    feed[c.IN_S] = own.registry.terms.intern_all([f"<http://example.org/id/{k}>" for k in range(_SUBJECTS)])[np.arange(n) % _SUBJECTS]
    feed[c.IN_P] = own.registry.terms.intern(f"<{RDF}type>")
    distinct, which = np.unique(events, return_inverse=True)
    feed[c.IN_O] = own.registry.terms.intern_all(names_of(distinct, classes))[which]
    feed[c.IN_START] = feed[c.IN_END] = times_of(0, n)
    feed[c.IN_ENTRY] = feed[c.IN_SINCE] = np.arange(n) // _BATCH + 1
    feeds = [np.ascontiguousarray(feed[:, first : first + _BATCH]) for first in range(0, n, _BATCH)]
    began, matches = time.perf_counter(), 0
    for part in feeds:
        matches += len(network.feed(part))
    seconds = time.perf_counter() - began
    expect("the stream in numbers", matches, n // 2)
    del own, network
    gc.collect()  # a command looks for garbage seldom, and this engine is not the one whose memory is told
    return seconds


def changes(engine: Engine, classes: int, first: int) -> tuple[list[float], list[float]]:
    """Return the seconds for adding a class at the bottom and for removing it with its graph.

    Each includes the event that shows the difference.
    """
    adding, removing = list[float](), list[float]()
    for k in range(_CHANGES):
        added = classes + 1 + k
        text = f"<http://example.org/other/C{added - classes}> <{RDFS}subClassOf> <http://example.org/C{classes}> .\n"
        for change, took, shown in (("add", adding, 1), ("drop", removing, 0)):
            began = time.perf_counter()
            engine.feed(Block((Facts(engine.position, "urn:more", text if change == "add" else "", change),), _NOTHING))
            found = engine.feed(block_of(engine.position, np.array([added]), classes, first)).solutions.num_rows
            took.append(time.perf_counter() - began)
            expect(f"a class after the change {change}", found, shown)
            first += 1
    return adding, removing


def apart(measured: Callable[[int], dict[str, float]], classes: int) -> dict[str, float]:
    """Return what a hierarchy of so many classes takes in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured, classes).result()


def _under_owl(classes: int) -> dict[str, float]:
    """Measure the same hierarchy and changes of it under OWL 2 RL.

    Then measure 100,000 triples of a property that has an inverse and is functional both ways.
    """
    one_core()
    before, began = rss_mb(), time.perf_counter()
    engine = loaded(classes, OWL_RL)
    closing = time.perf_counter() - began
    register_queries(engine)
    adding, removing = changes(engine, classes, 0)
    began, name = time.perf_counter(), "http://example.org/p"
    owl = f"<{name}> <{OWL}inverseOf> <{name}/of> .\n"
    owl += "".join(f"<{name}> <{RDF}type> <{OWL}{kind}Property> .\n" for kind in ("Functional", "InverseFunctional"))
    things = "".join(f"<http://example.org/s/{k}> <{name}> <http://example.org/o/{k}> .\n" for k in range(_THINGS))
    engine.feed(Block((Facts(engine.position, "urn:things", owl + things),), _NOTHING))
    expect("inverses", engine.registry.known.count(f"<{name}/of>"), _THINGS)
    things_s = time.perf_counter() - began
    began = time.perf_counter()
    engine.feed(Block((Facts(engine.position, "urn:one", f"<http://example.org/s/new> <{name}> <http://example.org/o/0> .\n"),), _NOTHING))
    one_s = time.perf_counter() - began
    expect("equal things", engine.registry.known.count(f"<{OWL}sameAs>"), 2)
    return {
        "owl_closing_s": round(closing, 3),
        "owl_adding_ms": round(median(adding) * 1000, 2),
        "owl_adding_most_ms": round(max(adding) * 1000, 2),
        "owl_removing_ms": round(median(removing) * 1000, 2),
        "owl_things": _THINGS,
        "owl_things_s": round(things_s, 3),
        "owl_equals_ms": round(one_s * 1000, 2),
        "owl_rss_mb": rss_mb() - before,
        "owl_peak_rss_mb": peak_rss_mb(),
    }


def _many(classes: int) -> dict[str, float]:
    one_core()
    before, began = rss_mb(), time.perf_counter()
    engine = loaded(classes)
    seconds = time.perf_counter() - began
    register_queries(engine)
    found = engine.feed(block_of(engine.position, np.array([classes]), classes, 0)).solutions.num_rows
    expect("many classes", found, 1)
    return {
        "many_classes": classes,
        "many_loading_s": round(seconds, 3),
        "many_rss_mb": rss_mb() - before,
        "many_peak_rss_mb": peak_rss_mb(),
    }

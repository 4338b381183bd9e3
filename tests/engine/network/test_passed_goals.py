"""A WITHOUT discards the goals that its blockers have passed (docs/decisions/0133-passed-goals.md): what it keeps,
and that its answers stay.
"""

import random

import pytest

from engine.engine import Engine
from engine.kernel.state import layout as c
from tests.engine.runtime.test_partitioning import shared_out
from tests.reference.evaluator import Fact, Occurrence
from tests.soak import examples
from tests.support.feeds import PREFIXES, parse_facts, parse_feed, show
from tests.support.run_both import blocks, entries, in_order, results, run, run_oracle

READINGS = " ".join(f"A(k{i % 3},{i})@{i}" for i in range(300))
RESETS = " ".join(f"A(k{i % 3},{i})@{i} B(z,1)@{i}" for i in range(300))
LASTING = " ".join(f"A(k{i % 3},{i})@{i}-{i + 1}" for i in range(300))
BRIEF = "FILTER(getDURATION() < 'PT2S'^^xsd:duration)"
KEPT = [
    pytest.param(
        "{?k :A ?v} SEQ {?k :A ?w} WITHOUT {?k :A ?u}", READINGS, True, 5, id="the latest reading of each key, and that which came last twice"
    ),
    pytest.param("{?k :A ?v} SEQ {?k :A ?w} WITHOUT {?k :A ?u}", READINGS, False, 600, id="a later reading may have started before"),
    pytest.param("{?k :A ?v} SEQ {?k :A ?w} WITHOUT {?k :A ?u} WITHIN 30", READINGS, True, 5, id="a window bounds less"),
    pytest.param(f"{{?k :A ?v}} SEQ {{?k :A ?w {BRIEF}}} WITHOUT {{?k :A ?u}}", LASTING, False, 9, id="durations that are bounded otherwise"),
    pytest.param("{?k :A ?v} AND {?k :A ?w} WITHOUT {?k :A ?u}", READINGS, True, 9, id="both sides of AND"),
    pytest.param("{?k :A ?v} SEQ {?k :A ?w} WITHOUT {?z :B ?u}", RESETS, True, 22, id="what is absent has another key, so sweeps wait"),
    pytest.param("{?k :A ?v} SEQ {?k :A ?w} WITHOUT {?k :A ?w}", READINGS, True, 600, id="the goal alone does not say what blocks it"),
    pytest.param(
        "{?k :A ?v} SEQ {{?k :A ?w} AND {?k :A ?x}} WITHOUT {?k :A ?u}", READINGS, True, 1200, id="the right side may have begun any time before"
    ),
]


@pytest.mark.parametrize(("pattern", "feed", "instants", "most"), KEPT)
def test_what_is_kept(pattern: str, feed: str, instants: bool, most: int) -> None:
    query, streams = {"q": f"{PREFIXES}SELECT * WHERE {{ {pattern} }}"}, {"default": parse_feed(feed)}
    log = entries(query, streams, in_order(streams), [], instants=instants)[:-1]
    engine = Engine()
    for part in blocks(log, range(1, len(log), 20)):
        engine.feed(part)
    kept = sum(int(member.network.net.stores[:, c.COUNT].sum()) for member in engine.registry.members)
    assert kept <= most
    assert kept >= most // 2


PATTERNS = [
    "{?s :A ?x} SEQ {?s :A ?y} WITHOUT {?s :A ?z}",
    "{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?s :C ?z}",
    "{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?t :C ?z}",
    "{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?s :C ?x}",
    "{?s :A ?x} SEQ {?s :B ?x} WITHOUT {?s :C ?z}",
    "{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?s :C ?y}",
    "{{?s :A ?x} SEQ {?s :C ?w}} SEQ {?s :B ?y} WITHOUT {?s :C ?z}",
    "{?s :A ?x} SEQ {{?s :B ?y} EQUALS {?s :A ?w}} WITHOUT {?s :C ?z}",
    "{?s :A ?x} SEQ {{?s :B ?y} UNION {?s :A ?y}} WITHOUT {?s :C ?z}",
    "{?s :A ?x} SEQ {?s :B ?y} WITHOUT {{?s :C ?z} SEQ {?s :A ?w}}",
    "{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?s :C ?z} WITHIN 3",
    "{?s :A ?x} AND {?s :B ?y} WITHOUT {?s :C ?z}",
    "{?s :A ?x} AND {?s :B ?y} WITHOUT {?t :C ?z}",
    "{?s :A ?x} AND {?s :B ?y} WITHOUT {?s :C ?x}",
    "{?s :A ?x OPTIONAL {?s :B ?w}} SEQ {?s :B ?y} WITHOUT {?s :C ?w}",
    "{{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?s :C ?z}} SEQ {?s :A ?q} WITHOUT {?s :B ?r}",
    "GRAPH ?g {{?s :A ?x} SEQ {?s :B ?y} WITHOUT {?s :C ?z}}",
    f"{{?s :A ?x}} SEQ {{?s :B ?y {BRIEF}}} WITHOUT {{?s :C ?z}}",
    f"{{?s :A ?x}} SEQ {{?s :B ?y {BRIEF}}} WITHOUT {{?t :C ?z}}",
    f"{{?s :A ?x {BRIEF}}} AND {{?s :B ?y {BRIEF}}} WITHOUT {{?s :C ?z}}",
    "{?s :A ?x} MEETS {?s :B ?y}",
    "{?s :A ?x} PAR {?s :B ?y}",
]


def draw_feed(chance: random.Random, *, instants: bool) -> list[Occurrence]:
    last, found = chance.choice([4, 10, 40]), []
    for _ in range(chance.choice([6, 12, 40])):
        end = chance.randint(0, last)
        start = end if instants else max(0, end - chance.choice([0, 0, 1, 2, 4]))
        found.append(f"{chance.choice(['', '', 'g/'])}{chance.choice('ABC')}({chance.choice('uvw')},{chance.randint(0, 2)})@{start}-{end}")
    return parse_feed(" ".join(found))


def draw_facts(chance: random.Random) -> list[Fact]:
    return parse_facts(f"{chance.choice('ABC')}({chance.choice('uvw')},{chance.randint(0, 2)})" if chance.random() < 0.25 else "")


@pytest.mark.parametrize("seed", range(examples(1000) // 20))
def test_answers_stay(seed: int) -> None:
    """They stay on instants and on events that last, with goals over a background, in a network that is restored, and
    in three partitions.
    """
    chance = random.Random(seed)
    for pattern in chance.sample(PATTERNS, 4):
        instants = chance.random() < 0.75
        queries, streams, facts = (
            {"q": f"{PREFIXES}SELECT * WHERE {{ {pattern} }}"},
            {"default": draw_feed(chance, instants=instants)},
            draw_facts(chance),
        )
        log = entries(queries, streams, in_order(streams), facts, instants=instants)
        expected = run_oracle(queries, streams, facts)
        parts = blocks(log, sorted(chance.sample(range(1, len(log)), min(len(log) - 1, chance.choice([0, 1, 3, 8])))))
        found = run(parts, restore_before=[k for k in range(1, len(parts)) if chance.random() < 0.4])
        divided, _, _ = shared_out(parts, 3)
        for emitted in (found.emitted, divided):
            assert results(queries, emitted) == expected, (pattern, show(streams["default"]), show(facts))

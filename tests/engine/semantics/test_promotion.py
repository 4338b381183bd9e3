"""Promotions: up to one entry of the log the old text's solutions, beyond it the new one's, whatever is cut and
restored.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from engine.engine import Engine
from engine.messages import CatchUp, Drop, Entry, Facts, Finish, Outcome, Pause, Promote, Register, StateChange, Withdraw
from tests.engine.runtime.test_catch_up import COUNT, KIND, MIXED, OPTIONAL, OVER, PATH, RULE, SEQ, STEPS, TIMER, CatchUpLog
from tests.soak import is_full
from tests.support.run_both import block

pytestmark = pytest.mark.slow

P = "SELECT ?a WHERE { ?x <http://e/p> ?a }"
NEAR = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?a ?b WHERE { ?x <http://e/p> ?a OPTIONAL { ?x <http://e/q> ?b FILTER(getDURATION() < 'PT0.000009S'^^xsd:duration) } }"
BLOCKED = SEQ.replace("WITHIN 0.00002", "WITHIN 0.00002 WITHOUT { ?y <http://e/next> ?x }")
PAIRS = [
    (P, SEQ),
    (SEQ, P),
    (P, OPTIONAL),
    (COUNT, STEPS),
    (TIMER, COUNT),
    (P, TIMER),
    (MIXED, OPTIONAL),
    (PATH, SEQ),
    (SEQ, SEQ.replace("0.00002", "0.00004")),
]
Row = tuple[int, object, object, tuple[str | None, ...]]


def rows(outcomes: Sequence[Outcome], name: str = "q") -> list[Row]:
    """A query's solutions in order of emission, each with its entry."""
    found = []
    for outcome in outcomes:
        for row in outcome.solutions.to_pylist():
            if row["query"] == name:
                found.append((row["entry"], row["start"], row["end"], tuple(row["values"])))
    return found


def told(outcomes: Sequence[Outcome]) -> list[StateChange]:
    return [change for outcome in outcomes for change in outcome.changes]


def run(log: CatchUpLog, random: Random | None = None) -> list[Outcome]:
    """Run a log as `CatchUpLog.run` does, failures included."""
    engine, outcomes, at = Engine(past=log.read), list[Outcome](), 0
    while at < len(log.parts):
        n = len(log.parts) if random is None else random.randrange(1, 12)
        if random is not None and random.random() < 0.3:
            engine = Engine.restore(engine.snapshot())
            engine.look_back_by(log.read)
        outcomes.append(engine.feed(block(log.parts[at : at + n])))
        at += n
    return outcomes


def alone(log: CatchUpLog, text: str, begins: int) -> list[Row]:
    """Return what a text finds that is registered under `q` where it begins to read; entries keep their offsets."""
    plain = CatchUpLog()
    for entry, occurrences in log.parts:
        if entry.offset == begins:
            plain.parts.append((Register(begins, "q", text), ()))
        elif isinstance(entry, Promote | CatchUp | Withdraw) or (isinstance(entry, Register) and entry.name == "q"):
            plain.parts.append((Facts(entry.offset, "http://e/nothing", "", "drop"), ()))  # it takes a place alone
        else:
            plain.parts.append((entry, occurrences))
    return rows(plain.run())


def check(log: CatchUpLog, random: Random, old: str, new: str, begins: tuple[int, int], at: int, is_whole: bool = False) -> None:
    """Compare a log with the texts alone. One that `is_whole` cannot be dealt out to partitions."""
    before, after = alone(log, old, begins[0]), alone(log, new, begins[1])
    expected = [row for row in before if row[0] < at] + [row for row in after if row[0] > at]
    assert [row for row in before if row[0] < at]
    assert [row for row in after if row[0] > at], "a test that finds nothing shows nothing"
    for outcomes in (run(log), run(log, random), *(() if is_whole else (log.run_shared(random, 2),))):
        assert [(change.state, change.entry) for change in told(outcomes)] == [("promoted", at)]
        assert rows(outcomes) == expected


@pytest.mark.parametrize("seed", range(2 if is_full() else 1))
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_text_takes_over_at_one_entry_with_what_it_would_know_there(old: str, new: str, seed: int) -> None:
    random, log = Random(seed), CatchUpLog()
    log.add(KIND)
    log.add(Register(0, "other", SEQ))
    place = log.add(Facts(0, "http://e/nothing", "", "drop"))
    registered = log.add(Register(0, "q", old))
    log.feed(random, 10, 60, delay=2)
    promotion = log.add(Promote(0, registered, "q", new, reads_from=place))
    log.feed(random, 60, 70, delay=2)
    log.catch_up(promotion, place, random)
    at = len(log.parts) - 1
    log.feed(random, 2000, 2040, delay=2)
    log.add(Finish(0, "default"))
    check(log, random, old, new, (registered, place), at)


def begin_late(log: CatchUpLog, text: str) -> tuple[int, tuple[tuple[str, int, int, bool], ...]]:
    """Return where a text may begin to read that is promoted now, as far back as it reaches and an event earlier, and
    the streams' times there.
    """
    engine = Engine()
    engine.feed(block(log.parts))
    micros, time = engine.registry.find_reaches([Register(0, "q", text)])[0].micros, engine.registry.streams["default"].watermark
    assert micros is not None
    first = next(k for k, (_, occurrences) in enumerate(log.parts) if any(each.end >= time - micros for each in occurrences))
    before = Engine()
    before.feed(block(log.parts[: first - 1]))
    return first - 1, tuple((name, each.watermark, each.latest, each.fed) for name, each in before.registry.streams.items())


@pytest.mark.parametrize("seed", range(3 if is_full() else 1))
@pytest.mark.parametrize(("old", "new"), [(P, SEQ), (SEQ, P), (P, COUNT), (COUNT, STEPS), (P, TIMER), (P, NEAR), (SEQ, BLOCKED)])
def test_it_begins_as_late_as_it_looks_back(old: str, new: str, seed: int) -> None:
    """A change of the background afterwards may let more decide than the text looked back to: then it reads the log
    from where the query began.
    """
    needs_past = new in (NEAR, BLOCKED)
    random, log = Random(seed), CatchUpLog()
    place = log.add(KIND)
    registered = log.add(Register(0, "q", old))
    log.feed(random, 10, 110, delay=2)
    begins, marks = begin_late(log, new)
    assert begins > 70
    promotion = log.add(Promote(0, registered, "q", new, reads_from=place, begins=begins, marks=marks))
    log.feed(random, 110, 120, delay=2)
    log.catch_up(promotion, begins, random)
    at = len(log.parts) - 1
    log.feed(random, 2000, 2040, delay=2)
    if needs_past:
        log.add(Facts(0, "", '<http://e/a> <http://e/p> "7" .\n<http://e/b> <http://e/q> "7" .\n'))
    log.feed(random, 2040, 2080, delay=2)
    log.add(Finish(0, "default"))
    check(log, random, old, new, (registered, place), at, is_whole=needs_past)


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_without_a_past_it_takes_over_at_once(old: str, new: str) -> None:
    random, log = Random(7), CatchUpLog()
    log.add(KIND)
    registered = log.add(Register(0, "q", old))
    log.feed(random, 10, 60, delay=2)
    promotion = log.add(Promote(0, registered, "q", new))
    log.feed(random, 60, 100, delay=2)
    log.add(Finish(0, "default"))
    check(log, random, old, new, (registered, promotion), promotion)


@pytest.mark.parametrize("seed", range(2 if is_full() else 1))
def test_it_rests_on_rules_as_they_run(seed: int) -> None:
    random, log = Random(seed), CatchUpLog()
    log.add(Register(0, "rule", RULE))
    place = log.add(Facts(0, "http://e/nothing", "", "drop"))
    old = OVER.replace("SEQ", "AND")
    registered = log.add(Register(0, "q", old))
    log.feed(random, 10, 90)
    promotion = log.add(Promote(0, registered, "q", OVER, reads_from=place))
    log.feed(random, 90, 100)
    log.catch_up(promotion, place, random)
    at = len(log.parts) - 1
    log.feed(random, 2000, 2080)
    log.add(Finish(0, "default"))
    check(log, random, old, OVER, (registered, place), at)


def test_one_follows_the_other() -> None:
    """A text may be promoted back, and then have solutions that it was not there to see begin."""
    random, log = Random(5), CatchUpLog()
    place = log.add(Facts(0, "http://e/nothing", "", "drop"))
    registered = log.add(Register(0, "q", P))
    log.feed(random, 10, 40)
    ends = []
    for text in (SEQ, P, SEQ):
        promotion = log.add(Promote(0, registered, "q", text, reads_from=place))
        log.catch_up(promotion, place, random)
        ends.append(len(log.parts) - 1)
        log.feed(random, 2000 + 100 * len(ends), 2030 + 100 * len(ends))
    first, second = alone(log, P, place), alone(log, SEQ, place)
    cuts = [0, *ends, len(log.parts)]
    expected = [row for k, found in enumerate((first, second, first, second)) for row in found if cuts[k] <= row[0] < cuts[k + 1]]
    for outcomes in (run(log), run(log, random), log.run_shared(random, 2)):
        assert rows(outcomes) == expected
        assert [change.entry for change in told(outcomes)] == ends


def test_equal_plans_go_on_with_what_they_keep() -> None:
    random, log = Random(6), CatchUpLog()
    registered = log.add(Register(0, "q", SEQ))
    log.feed(random, 10, 40)
    promotion = log.add(Promote(0, registered, "q", SEQ.replace("?x", "?y"), keeps=True))
    log.feed(random, 40, 60)
    for outcomes in (run(log), run(log, random), log.run_shared(random, 2)):
        assert rows(outcomes) == alone(log, SEQ, registered)
        assert [(change.registered, change.state, change.entry) for change in told(outcomes)] == [(promotion, "promoted", promotion)]


ENDINGS = [
    pytest.param(lambda promotion, _: Withdraw(0, promotion, "q", "asked"), [], True, id="it is withdrawn"),
    pytest.param(lambda _, registered: Drop(0, registered, "q"), [], False, id="the query is dropped"),
    pytest.param(lambda _, registered: Pause(0, registered, "q"), ["failed"], False, id="the query is paused"),
]


@pytest.mark.parametrize(("end", "states", "goes_on"), ENDINGS)
def test_a_promotion_may_end_before_it_takes_over(end: Callable[[int, int], Entry], states: list[str], goes_on: bool) -> None:
    random, log = Random(8), CatchUpLog()
    registered = log.add(Register(0, "q", P))
    log.feed(random, 10, 40)
    promotion = log.add(Promote(0, registered, "q", SEQ, reads_from=1))
    log.add(CatchUp(0, promotion, 20))
    at = log.add(end(promotion, registered))
    log.feed(random, 40, 50)
    log.catch_up(promotion, 20, random)
    log.feed(random, 2000, 2010)
    old = alone(log, P, registered)
    for outcomes in (run(log), run(log, random), log.run_shared(random, 2)):
        assert rows(outcomes) == [row for row in old if goes_on or row[0] < at]
        assert [change.state for change in told(outcomes)] == states


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        pytest.param(Promote(0, 0, "q", SEQ, max_goals=1, reads_from=1), "partial matches", id="beyond a limit"),
        pytest.param(Promote(0, 0, "q", "SELECT ?x WHERE { ?x <http://e/p> ?a } LIMIT 2", reads_from=1), "LIMIT", id="completed"),
        pytest.param(Promote(0, 0, "q", P.replace("WHERE", "FROM STREAM <http://e/s> WHERE"), reads_from=1), "time", id="of another time"),
        pytest.param(Promote(0, 0, "q", "SELECT"), "", id="no query at all"),
    ],
)
def test_a_text_that_cannot_go_on_takes_no_place(entry: Promote, reason: str) -> None:
    random, log = Random(9), CatchUpLog()
    registered = log.add(Register(0, "q", P))
    log.feed(random, 10, 40)
    promotion = log.add(replace(entry, registered=registered))
    if entry.reads_from is not None:
        log.catch_up(promotion, 1, random)
    log.feed(random, 2000, 2010)
    for outcomes in (run(log), run(log, random), log.run_shared(random, 2)):
        (change,) = told(outcomes)
        assert (change.registered, change.state) == (promotion, "failed")
        assert reason in change.reason
        assert rows(outcomes) == alone(log, P, registered)

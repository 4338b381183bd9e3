"""Each operator has the reach that it must have, and large logs in slices give what one engine gives."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from random import Random

import msgspec
import pytest

from engine.engine import Engine
from engine.messages import Facts, Register
from engine.planner.reach import Reach
from epsparql.etalis.translator import query_text
from pipeline.log import LogReader
from pipeline.slices import plan, workers
from pipeline.slices.execution import SliceWork
from tests.reference.evaluator import Occurrence
from tests.support.feeds import PREFIXES, SECOND, Body, select, term
from tests.support.run_both import block
from tests.support.slices import SliceSolution, by_one_engine, list_solutions, plan_of, written_log

pytestmark = pytest.mark.slow

NEAR = 'FILTER(getDURATION() < "PT5S"^^xsd:duration)'
DURATION = '"PT20S"^^xsd:duration'
KNOWN = "<http://example.org/x> <http://example.org/k> <http://example.org/y> ."


def grouped(window: str, keys: str = " GROUP BY ?s") -> str:
    return f"{PREFIXES}SELECT (COUNT(*) AS ?n) WHERE {{ ?s :A ?a }}{keys} WINDOW {window}"


def reach_of(*texts: str, policy: str = "unrestricted", background: str = "") -> Reach:
    """The reach of the last of some queries."""
    engine = Engine()
    engine.feed(block([(Facts(0, "", background), ())]))
    return engine.registry.find_reaches([Register(k, f"q{k}", text, policy) for k, text in enumerate(texts, 1)])[-1]


BOUNDED: dict[str, float] = {
    "A": 0,
    "A UNION B": 0,
    "A SEQ B WITHIN 7": 7,
    "A AND B WITHIN 7": 7,
    "{ A SEQ B } SEQ C WITHIN 7": 7,
    "{ ?s :A ?a . ?s :B ?b } WITHIN 7": 7,
    f"{{ ?s :A ?a . ?s :B ?b {NEAR} }}": 4.999999,
    "A EQUALS B": 0,
    "A FINISHES B": 0,
    "{ A WITHIN 2 } MEETS { B WITHIN 3 }": 5,
    "{ A WITHIN 2 } DURING { B WITHIN 3 }": 3,
    "A SEQ B WITHIN 7 WITHOUT C": 7,
    "A AND B WITHIN 7 WITHOUT C": 7,
    "A WITHOUT C FOR 9": 9,
    "{ A SEQ B WITHIN 7 } WITHOUT C FOR 9": 16,
    "A WITHOUT { C SEQ D } FOR 9": 9,
    f"{{ A OPTIONAL {{ ?s :B ?b {NEAR} }} }}": 4.999999,
    f"{{ {{ ?s :B ?b {NEAR} }} OPTIONALSEQ A }}": 4.999999,
    f"{{ A OPTIONAL {{ ?s :B ?b {NEAR} }} }} SEQ C WITHIN 7": 11.999999,
    "A EQUALSOPTIONAL B": 0,
    "{ A WITHIN 2 } EQUALSOPTIONAL { B SEQ C }": 2,
    "{ A VALUES ?a { 1 2 } }": 0,
    "{ A BIND(?a + 1 AS ?n) FILTER(?n > 1) }": 0,
    "{ ?s (:A|^:B) ?a }": 0,
    "{ ?s :A+ ?a } WITHIN 7": 7,
    "GRAPH ?g { ?s :A ?a }": 0,
    "{ { SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :A ?a } GROUP BY ?s WINDOW [RANGE PT10S] } SEQ B WITHIN 7 }": 17,
    "{ SELECT ?s WHERE { ?s :A ?a } ORDER BY ?s }": 0,
    "{ SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :A ?a } GROUP BY ?s WINDOW [RANGE PT10S] ORDER BY ?n LIMIT 1 }": 10,
}


@pytest.mark.parametrize("pattern", BOUNDED)
def test_operators_have_a_reach(pattern: str) -> None:
    assert reach_of(select(pattern)) == Reach(round(BOUNDED[pattern] * SECOND))


UNBOUNDED = {
    select("A SEQ B"): "a join, whose sides may lie any time apart",
    select("{ ?s :A ?a . ?s :B ?b }"): "a group's triples, which may lie any time apart",
    select("{ ?s :A+ ?a }"): "a path, whose steps may lie any time apart",
    select("{ A OPTIONAL B }"): "an optional part",
    select("{ A MINUS B } WITHIN 7"): "MINUS",
    select("{ A FILTER NOT EXISTS B } WITHIN 7"): "EXISTS",
    select("{ VALUES ?s { :x } } WITHOUT A FOR 9"): "a timer over what the background or VALUES gives",
    select("{ { SELECT (COUNT(*) AS ?n) WHERE { ?s :A ?a } WINDOW [RANGE PT10S] } SEQ B WITHIN 7 }"): "aggregates without GROUP BY",
    f"{select('A')} LIMIT 3": "LIMIT",
    select("{ SELECT ?s WHERE { ?s :A ?a } LIMIT 3 }"): "LIMIT",
    f"{PREFIXES}ASK {{ ?s :A ?a }}": "ASK",
    grouped("[ROWS 3]"): "aggregates without WINDOW [RANGE ...]",
    grouped("[SESSION PT3S]"): "aggregates without WINDOW [RANGE ...]",
    grouped("[RUN GAP PT3S CLOSED]"): "aggregates without WINDOW [RANGE ...]",
}


@pytest.mark.parametrize("text", UNBOUNDED)
def test_what_has_no_bound_is_named(text: str) -> None:
    found = reach_of(text)
    assert found.micros is None
    assert found.reason.startswith(UNBOUNDED[text]), found.reason


def test_windows_look_back_for_their_range() -> None:
    assert reach_of(grouped("[RANGE PT10S]")) == reach_of(f"{grouped('[RANGE PT10S]')} ORDER BY ?n LIMIT 1") == Reach(10 * SECOND)
    assert reach_of(grouped("[RANGE PT10S STEP PT5S]")) == Reach(10 * SECOND)
    assert reach_of(grouped("[RANGE PT10S]", "")) == Reach(10 * SECOND, opens=True)
    rsp = f"{PREFIXES}REGISTER ISTREAM <urn:o> AS SELECT * FROM NAMED WINDOW :w ON <default> [RANGE PT10S STEP PT2S] WHERE {{ WINDOW :w {{ ?s :A ?a . ?s :B ?b }} }}"
    assert reach_of(rsp) == Reach(14 * SECOND)


W = "WINDOW :w { ?s :A ?a }"
FOUND_IN_EMPTY_WINDOWS = {
    f"SELECT (SUM(?a) AS ?n)|{W}": True,
    f"SELECT (COUNT(*) AS ?n)|{{ {W} }} UNION {{ VALUES ?s {{ :x }} }}": True,
    f"SELECT *|VALUES ?s {{ :x }} OPTIONAL {{ {W} }}": True,
    f"SELECT *|VALUES ?s {{ :x }} {W}": False,
    f"SELECT ?s (SUM(?a) AS ?n)|{W} GROUP BY ?s": False,
    f"SELECT *|{W} OPTIONAL {{ WINDOW :w {{ ?s :B ?b }} }} FILTER(?a > 1) BIND(?a + 1 AS ?c)": False,
    f"SELECT *|{{ {W} }} UNION {{ WINDOW :w {{ ?s :B+ ?a }} }}": False,
    "SELECT *|WINDOW :w { ?s :B* :x }": True,
    "SELECT *|WINDOW :w { :x (^:B/:A)? ?s }": True,
    f"SELECT *|{{ {W} }} UNION {{ WINDOW :w {{ :x (:A|:B?) :x }} }}": True,
    "SELECT *|WINDOW :w { ?s :B* ?a }": False,
    "SELECT *|WINDOW :w { ?s :B*/:A? :x }": False,
    "SELECT *|WINDOW :w { ?s :B+ :x }": False,
    "SELECT *|WINDOW :w { ?s :A/:B* :x }": False,
    f"SELECT *|{W} WINDOW :w {{ ?s :B* :x }}": False,
}
"""Whether a query reports something over empty windows, so that the report before, with which the next one is
compared, may be of any time.
"""


@pytest.mark.parametrize("kind", ["RSTREAM", "ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("parts", FOUND_IN_EMPTY_WINDOWS)
def test_differences_from_reports_of_empty_windows_have_no_bound(parts: str, kind: str) -> None:
    head, _, pattern = parts.partition("|")
    where, by, keys = pattern.partition(" GROUP BY ")
    text = f"{PREFIXES}REGISTER {kind} <urn:o> AS {head} FROM NAMED WINDOW :w ON <default> [RANGE PT10S STEP PT2S] WHERE {{ {where} }}{by}{keys}"
    found = reach_of(text)
    if kind != "RSTREAM" and FOUND_IN_EMPTY_WINDOWS[parts]:
        assert found.micros is None
        assert found.reason.startswith("a report of differences that finds something in empty windows")
    else:
        assert found == Reach(14 * SECOND)


def test_a_policy_that_consumes_has_no_bound() -> None:
    assert reach_of(select("A SEQ B WITHIN 7"), policy="recent").reason == "the policy recent"
    assert reach_of(select("A EQUALS B"), policy="chronological") == Reach(0)


def test_what_the_background_gives_is_decided_at_the_first_instant() -> None:
    text = select(f"{{ ?x :k ?y OPTIONAL {{ ?x :B ?b {NEAR} }} }}")
    assert reach_of(text) == Reach(4_999_999)
    assert reach_of(text, background=KNOWN).micros is None
    engine, asked = Engine(), [Register(1, "q", text)]
    assert engine.registry.find_reaches(asked) == [Reach(4_999_999)]
    engine.feed(block([(Facts(0, "", KNOWN), ())]))
    assert engine.registry.find_reaches(asked)[0].micros is None, "it was found over another background"
    assert reach_of(select("{ ?x :k ?y }"), background=KNOWN) == reach_of(select("{ VALUES ?a { 1 } VALUES ?b { 2 } }")) == Reach(0, opens=True)


def test_rules_are_looked_through() -> None:
    """Triples that a rule derives have the interval of its solution, so a window bounds how far back both look."""
    rule = f"{PREFIXES}CONSTRUCT {{ ?s :D ?b }} INTO STREAM <d> WHERE {{ {{ ?s :A ?a }} SEQ {{ ?s :B ?b }} WITHIN 7 }}"
    single = f"{PREFIXES}SELECT * FROM STREAM <d> WHERE {{ ?s :D ?a }}"
    pair = f"{PREFIXES}SELECT * FROM STREAM <d> WHERE {{ {{ ?s :D ?a }} SEQ {{ ?s :D ?b }} WITHIN 5 }}"
    assert [reach_of(rule, reader) for reader in (single, pair)] == [Reach(7 * SECOND), Reach(5 * SECOND)]
    assert reach_of(rule.replace("WITHIN 7", ""), single).reason.startswith("a rule that writes")
    negative = rule.replace("WITHIN 7", f"WITHIN 7 OPTIONAL {{ ?s :C ?c FILTER(getDURATION() <= {DURATION}) }}")
    assert reach_of(negative, pair) == Reach(25 * SECOND)
    copies = f"{PREFIXES}CONSTRUCT {{ ?s :E ?b }} INTO STREAM <d> FROM STREAM <d> WHERE {{ ?s :D ?b }}"
    assert reach_of(rule, copies, single) == Reach(7 * SECOND)
    later = copies.replace("{ ?s :D ?b }", "{ { ?s :D ?b } WITHOUT { ?s :C ?c } FOR 3 }")
    assert reach_of(rule, later, single).micros is None, "each round reaches further back"
    timeless = f"{PREFIXES}CONSTRUCT {{ :x :D ?b }} INTO STREAM <d> WHERE {{ VALUES ?b {{ 1 }} }}"
    assert reach_of(timeless, single).micros is None, "it lies at the first instant"


def test_a_program_reaches_as_far_as_its_own_rules() -> None:
    def reach(program: str) -> Reach:
        return reach_of(query_text(program)[0])

    assert reach("x : d(X) <- a(X) seq b(X). event_rule_property(x, event_rule_window, 7).") == Reach(7 * SECOND)
    again = "d(X) <- a(X). x : d(X) <- d(X) seq b(X). event_rule_property(x, event_rule_window, 5)."
    assert reach(again) == Reach(5 * SECOND)
    grows = "d(X) <- a(X). d(X) <- d(X) seq b(X)."
    assert reach(grows).reason.startswith("a join, whose sides")


# ---------------------------------------------------------------- larger logs
RUNS = {
    "keyed SEQ": select("A SEQ B WITHIN 20"),
    "WITHOUT": select("A SEQ B WITHIN 20 WITHOUT C"),
    "a value without a key": f"{PREFIXES}SELECT * WHERE {{ {{ ?s :A ?v }} SEQ {{ ?t :B ?v }} WITHIN 20 }}",
    "all pairs": f"{PREFIXES}SELECT * WHERE {{ {{ ?s :A ?v }} SEQ {{ ?t :B ?w }} WITHIN 10 FILTER(?v > ?w) }}",
    "OPTIONAL": select(f"{{ A OPTIONAL {{ ?s :B ?b {NEAR} }} }}"),
    "RANGE and STEP": f"{PREFIXES}SELECT ?s (SUM(?v) AS ?n) WHERE {{ ?s :A ?v }} GROUP BY ?s WINDOW [RANGE PT30S STEP PT10S]",
}


def random_bodies(count: int) -> list[Body]:
    """Events of 20 subjects, one a second or two at once, three in a body."""
    random = Random(7)
    events = []
    for k in range(count):
        triple = term(f"s{random.randrange(20)}"), term(random.choice("ABC")), term(str(random.randrange(9)))
        events.append(Occurrence(triple, (k - k % 2) * SECOND, (k - k % 2) * SECOND))
    return [Body("default", tuple(events[k : k + 3])) for k in range(0, count, 3)]


@pytest.mark.parametrize("name", RUNS)
def test_the_twelve_runs(name: str) -> None:
    """Six queries on 4 and on 16 slices, by threads; each slice reads little more than its part."""
    with written_log({"q": RUNS[name]}, random_bodies(1200), ["default"]) as (data, registrations, first):
        expected, _ = by_one_engine(data)
        assert len(expected) > 100
        log, planner = plan_of(data, registrations, first)
        for count in (4, 16):
            works = log.list_work(planner.plan_exactly(count))
            assert len(works) == count
            assert by_threads(works, 3) == expected
            longest = max(work.part.until - work.part.first for work in works)
            assert longest < 1.3 * (planner.until - planner.first) / count + 20, "slices read little twice"


def by_threads(works: Sequence[SliceWork], threads: int, allowed: int | None = None) -> list[SliceSolution]:
    runner = workers.SliceThreads(threads, None if allowed is None else lambda: allowed)
    return [each for piece in runner.evaluate_slices(works) for outcome in piece.outcomes for each in list_solutions(outcome.solutions)]


def test_threads_are_held_back_and_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    with written_log({"q": RUNS["all pairs"]}, random_bodies(600), ["default"]) as (data, registrations, first):
        expected, _ = by_one_engine(data)
        log, planner = plan_of(data, registrations, first)
        works = log.list_work(planner.plan_exactly(8))
        assert by_threads(works, 4, allowed=1) == expected, "one thread may work at a time"
        monkeypatch.setattr(workers, "_AHEAD_BYTES", 1)
        assert by_threads(works, 4) == expected, "what is found ahead of its turn waits"
        with closing(workers.SliceThreads(2).evaluate_slices(works)) as pieces:
            next(pieces)

        def fail(_: object) -> Iterator[None]:
            raise OSError("no such disk")

        monkeypatch.setattr(workers, "run_slice", fail)
        with pytest.raises(OSError, match="no such disk"):
            list(workers.SliceThreads(2).evaluate_slices(works))


def test_few_events_are_one_slice_and_a_long_reach_makes_few(monkeypatch: pytest.MonkeyPatch) -> None:
    with written_log({"q": select("A SEQ B WITHIN 100")}, random_bodies(900), ["default"]) as (data, registrations, first):
        _, planner = plan_of(data, registrations, first)
        assert len(planner.plan_for(8)) == 1
        monkeypatch.setattr(plan, "SLICE_EVENTS", 10)
        assert len(planner.plan_for(1)) == 1
        assert 1 < len(planner.plan_for(2)) < 8, "each slice of a hundred events would read a hundred before it"


def test_a_change_of_the_background_is_not_cut_off() -> None:
    """Entries behind the last change alone are cut."""
    with written_log({"q": RUNS["keyed SEQ"]}, random_bodies(300), ["default"]) as (data, registrations, first):
        log, planner = plan_of(data, registrations, first)
        middle = (planner.first + planner.until) // 2
        log.outline.breaks.append(middle)
        slices = planner.plan_exactly(10)
        assert len(slices) > 3
        assert all(part.first > middle for part in slices[1:])


def test_logs_of_the_first_version_are_cut_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not say how late a stream's events are, so that is read from the rows."""
    with written_log({"q": RUNS["WITHOUT"]}, random_bodies(300), ["default"]) as (data, registrations, first):
        _, planner = plan_of(data, registrations, first)
        read = LogReader.records
        monkeypatch.setattr(LogReader, "records", lambda *given: (msgspec.structs.replace(record, latest=None) for record in read(*given)))
        _, other = plan_of(data, registrations, first)
        slices = other.plan_exactly(5)
        assert len(slices) == 5
        monkeypatch.undo()
        assert slices == planner.plan_exactly(5)

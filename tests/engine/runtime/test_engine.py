"""The engine beyond single queries: clocks of several streams, rules across them, failure, dropping, snapshots."""

import dataclasses
from collections.abc import Sequence

import pyarrow as pa
import pytest

import epsparql
from engine.engine import Engine
from engine.errors import LogGap
from engine.kernel.state import layout as c
from engine.messages import END_OF_TIME, INSTANT, SOLUTIONS, TIED, Drop, Entry, Events, Facts, Finish, Register, Tick, int64s
from engine.runtime.result_assembly import sort_by_emission
from engine.validation.validate import check
from epsparql import QueryError
from tests.reference.evaluator import Occurrence
from tests.support.feeds import EXAMPLE, PREFIXES, SECOND, parse_feed
from tests.support.run_both import block

Row = tuple[str, int, float, float]
"""A solution's query, entry, start and end in seconds."""


class Log:
    """Entries in the making: offsets and watermarks count themselves."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.marks: dict[str, int] = {}
        self.failed: dict[str, str] = {}

    def put(self, entry: Entry, occurrences: Sequence[Occurrence] = ()) -> list[Row]:
        outcome = self.engine.feed(block([(dataclasses.replace(entry, offset=self.engine.position), tuple(occurrences))]))
        self.failed |= {change.name: change.reason for change in outcome.changes}
        micros = [(row["query"], row["entry"], row["start"].timestamp(), row["end"].timestamp()) for row in outcome.solutions.to_pylist()]
        return [(query, entry_, start, end) for query, entry_, start, end in micros]

    def register(self, name: str, text: str) -> int:
        offset = self.engine.position
        assert self.put(Register(0, name, PREFIXES + text, max_derivations=1000)) == []
        return offset

    def send(self, feed: str, stream: str = "default", delay: int = 0) -> list[Row]:
        occurrences = parse_feed(feed)
        self.marks[stream] = max(self.marks.get(stream, -END_OF_TIME), *(o.end - delay * SECOND for o in occurrences))
        return self.put(Events(0, stream, len(occurrences), self.marks[stream]), occurrences)

    def finish(self, stream: str = "default") -> list[Row]:
        return self.put(Finish(0, stream))


@pytest.fixture
def log() -> Log:
    return Log(Engine())


def test_streams_do_not_delay_each_other(log: Log) -> None:
    log.register("a", "SELECT * FROM STREAM <a> WHERE { {?s :A ?x} OPTIONAL {?s :B ?x} }")
    log.register("b", "SELECT * FROM STREAM <b> WHERE { ?s :A ?x }")
    assert log.send("A@1", "a") == []
    assert log.send("A@5", "b") == [("b", 3, 5, 5)]
    assert log.send("A@2", "a") == [("a", 4, 1, 1)]


def test_a_query_of_two_streams_waits_for_both(log: Log) -> None:
    log.register("both", "SELECT * FROM STREAM <a> FROM STREAM <b> WHERE { {?s :A ?x} SEQ {?s :B ?y} }")
    assert log.send("A@1", "a") == []
    assert log.send("B@9", "b") == [], "the other stream's time has not come"
    assert log.send("A@8", "a") == []
    assert log.send("A@9", "a") == [("both", 4, 1, 9), ("both", 4, 8, 9)]


def test_rules_reach_across_networks(log: Log) -> None:
    log.register("rule", "CONSTRUCT { ?s :D ?x } INTO STREAM <derived> FROM STREAM <a> WHERE { ?s :A ?x }")
    log.register("query", "SELECT * FROM STREAM <derived> FROM STREAM <b> WHERE { {?s :D ?x} SEQ {?s :B ?y} }")
    assert len(log.engine.registry.members) == 2
    assert log.send("A@1", "a") == [("rule", 2, 1, 1)]
    assert log.send("B@3", "b") == []
    assert log.send("A@4", "a") == [("query", 4, 1, 3), ("rule", 4, 4, 4)]


def test_a_rule_that_never_ends_fails_alone(log: Log) -> None:
    log.register("endless", "CONSTRUCT { ?s :N ?m } WHERE { ?s :N ?n BIND(?n + 1 AS ?m) }")
    log.register("count", "SELECT ?s WHERE { ?s :A ?x }")
    found = log.send("A@1 N(0)@1")
    assert "without end" in log.failed["endless"]
    assert [row for row in found if row[0] == "count"] == [("count", 2, 1, 1)]
    assert [row[0] for row in log.send("A@2 N(5)@2")] == ["count"], "it is gone, the other goes on"


def test_long_texts_count_as_several_triples(log: Log) -> None:
    """Else a rule that lengthens a text takes gigabytes before it has derived as many triples as it may."""
    log.register("endless", f"CONSTRUCT {{ ?s :N ?m }} WHERE {{ ?s :N ?n BIND(CONCAT(STR(?n), '{'x' * 1024}') AS ?m) }}")
    log.register("others", "CONSTRUCT { ?s :M ?n } WHERE { ?s :N ?n FILTER(STRLEN(STR(?n)) < 4) }")
    found = log.send("N(0)@1")
    assert "each KiB of text counted as one" in log.failed["endless"]
    lengthened = sum(name == "endless" for name, *_ in found)
    assert 40 < lengthened < 50, "1 + 2 + 3 + ... is beyond 1000"
    assert ("others", 2, 1, 1) in found


@pytest.mark.parametrize("n", [1, 16, 17, 40])
def test_an_instant_that_comes_in_parts_gives_each_solution_once(log: Log, n: int) -> None:
    log.register("q", "SELECT * WHERE { { ?s :A ?x } UNION { ?s :B ?x } }")
    assert len(log.send(" ".join(f"A({k})@5" for k in range(n)))) == n
    assert log.send(" ".join(f"B({k})@5" for k in range(n))) == []
    assert len(log.send(f"A({n})@5 B({n})@5 B(0)@5")) == 1
    assert len(log.send("A(0)@6 B(0)@6")) == 1


def test_a_rule_that_fails_half_way_gives_its_rows_back_once(log: Log) -> None:
    """Rows of the rule's frames that no store holds are given back directly; its goals' rows are given back by their
    stores.
    """
    log.register("endless", "CONSTRUCT { ?s :A ?z } { { ?s :A ?x } AND { ?s :B ?y } BIND(?x + 1000 AS ?z) }")
    log.register("count", "SELECT ?s WHERE { { ?s :C ?x } SEQ { ?s :B ?y } }")
    log.send("C(1)@1 " + " ".join(f"A({k})@2" for k in range(400)))
    assert {row for row in log.send("B(1)@2 B(2)@2") if row[0] == "count"} == {("count", 3, 1, 2)}
    assert "without end" in log.failed["endless"]
    net = log.engine.registry.members[0].network.net
    given_back = net.free[: net.at[c.FREE]].tolist()
    assert len(set(given_back)) == len(given_back) == net.at[c.USED] - 1, "all but the goal of C"
    assert len(log.send("B@3")) == 1


def test_dropping_frees_its_goals_alone(log: Log) -> None:
    gone = log.register("gone", "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }")
    log.register("stays", "SELECT * WHERE { {?s :A ?x} SEQ {?s :C ?y} }")
    log.send("A@1 A(1)@2 A(2)@3")
    network = log.engine.registry.members[0].network
    live = int(network.net.at[c.USED] - network.net.at[c.FREE])
    log.put(Drop(0, gone, "gone"))
    assert live - int(network.net.at[c.USED] - network.net.at[c.FREE]) == 3
    assert [row[0] for row in log.send("B@4 C@4")] == ["stays"] * 3


def test_a_query_reads_from_its_registration_on(log: Log) -> None:
    log.register("early", "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }")
    log.send("A@1")
    log.register("late", "SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }")
    log.send("A@2")
    assert log.send("B@3") == [("early", 4, 1, 3), ("early", 4, 2, 3), ("late", 4, 2, 3)]


def test_what_waits_for_time_counts_by_when_it_was_accepted(log: Log) -> None:
    log.register("early", "SELECT * WHERE { ?s :A ?x }")
    assert log.send("A@1", delay=5) == []
    log.register("late", "SELECT * WHERE { ?s :A ?x }")
    assert log.send("A@9", delay=5) == [("early", 3, 1, 1)]


def test_a_tick_lets_time_pass(log: Log) -> None:
    log.register("missing", "SELECT * WHERE { {?s :A ?x} WITHOUT {?s :B ?y} FOR 'PT5S'^^xsd:duration }")
    assert log.send("A@1 A(2)@3 B(2)@4") == []
    assert log.put(Tick(0, "default", 6 * SECOND)) == [], "the instant itself has not passed"
    assert log.put(Tick(0, "default", 6 * SECOND + 1)) == []
    assert log.put(Tick(0, None, None)) == []
    assert log.send("A(3)@20") == []
    assert log.finish() == [("missing", 6, 20, 25)]


def test_facts_come_while_queries_run(log: Log) -> None:
    log.register("known", "SELECT * WHERE { ?s :A ?x . ?s :K ?k }")
    assert log.send("A@1") == []
    log.put(Facts(0, "", "<http://example.org/s> <http://example.org/K> <http://example.org/k> .\n"))
    assert log.send("A(7)@2") == [("known", 3, 2, 2)], "knowledge holds from the next instant on and changes none of the past"


def test_a_graph_is_replaced_and_dropped(log: Log) -> None:
    fact = "<http://example.org/{}> <http://example.org/K> <http://example.org/k> .\n"
    for graph, name in (("g", "s"), ("g", "t"), ("h", "u")):
        log.put(Facts(0, f"http://example.org/{graph}", fact.format(name)))
    log.put(Facts(0, "http://example.org/g", fact.format("v") * 2, "replace"))
    assert given(log) == [("h", "u"), ("g", "v")]
    log.register("known", "SELECT * WHERE { ?s :A ?x . ?s :K ?k }")
    log.put(Facts(0, "http://example.org/h", "", "drop"))
    log.put(Facts(0, "http://example.org/h", "", "drop"))
    log.engine = Engine.restore(log.engine.snapshot())
    assert given(log) == [("g", "v")]


def given(log: Log) -> list[tuple[str, ...]]:
    """Graph and subject of each fact, by the last part of their names."""
    return [tuple(str(part).rpartition("/")[2].rstrip(">") for part in (graph, subject)) for subject, _, _, graph in log.engine.registry.facts]


def test_a_gap_is_refused(log: Log) -> None:
    log.send("A@1")
    with pytest.raises(LogGap, match="stands at 1"):
        log.engine.feed(block([(Finish(5, "default"), ())]))


def test_a_text_that_does_not_compile_fails_alone(log: Log) -> None:
    log.register("wrong", "SELECT nonsense")
    assert "line 3" in log.failed["wrong"]
    log.register("right", "SELECT * WHERE { ?s :A ?x }")
    assert log.send("A@1") == [("right", 2, 1, 1)]


def test_a_snapshot_keeps_two_networks(log: Log) -> None:
    log.register("rule", "CONSTRUCT { ?s :D ?x } INTO STREAM <derived> FROM STREAM <a> WHERE { ?s :A ?x }")
    log.register("query", "SELECT * FROM STREAM <derived> FROM STREAM <b> WHERE { {?s :D ?x} SEQ {?s :B ?y} }")
    log.send("A@1", "a")
    log.send("B@3", "b")
    log.engine = Engine.restore(log.engine.snapshot())
    assert log.send("A@4", "a") == [("query", 4, 1, 3), ("rule", 4, 4, 4)]


def test_what_a_left_out_triple_would_show_distinguishes_nothing(log: Log) -> None:
    log.register("rule", "CONSTRUCT { ?x :r ?x . :a :p ?s } INTO STREAM <derived> WHERE { ?s :A ?x }")
    assert log.send("A(1)@1 A(2)@1 A(x)@1") == [("rule", 1, 1, 1), ("rule", 1, 1, 1)]


def test_a_query_without_triple_patterns(log: Log) -> None:
    log.register("one", "SELECT (1 AS ?x) WHERE {}")
    assert log.send("A@3") == [("one", 1, 3, 3)]
    assert log.send("A@4") == []


def test_a_rule_that_writes_an_input_stream_does_not_stop_it_from_holding_time_back(log: Log) -> None:
    log.register("q", "SELECT * FROM STREAM <default> FROM STREAM <other> WHERE { {?s :A ?x} SEQ {?s :B ?y} }")
    log.register("rule", "CONSTRUCT { ?s :X ?x } WHERE { ?s :Y ?x }")
    assert log.send("B@9", "other") == []
    assert log.send("A@1") == []
    assert log.send("A@12") == [("q", 4, 1, 9)]
    assert log.send("B@12", "other") == [("q", 5, 1, 12)]


def test_only_a_rule_that_feeds_itself_is_stopped(log: Log) -> None:
    log.register("endless", "CONSTRUCT { ?s :N ?m } WHERE { ?s :N ?n BIND(?n + 1 AS ?m) }")
    log.register("innocent", "CONSTRUCT { ?s :M ?n . ?s :L ?n } WHERE { ?s :N ?n }")
    log.send("N(0)@1 A@1")
    assert list(log.failed) == ["endless"]
    many = " ".join(f"N({k})@2" for k in range(1500))
    assert len(log.send(many)) == 1500, "a load is no recursion"
    assert list(log.failed) == ["endless"]


def test_what_waits_for_time_still_gives_the_first_instant(log: Log) -> None:
    log.put(Facts(0, "", "<http://example.org/s> <http://example.org/K> <http://example.org/k> .\n"))
    log.register("known", "SELECT * WHERE { ?s :K ?k }")
    assert log.send("A@10", delay=5) == []
    assert log.put(Tick(0, "default", 7 * SECOND)) == []
    assert log.finish() == [("known", 4, 10, 10)]


def test_recursion_over_separate_streams_is_refused_before_it_is_registered(log: Log) -> None:
    texts = [f"CONSTRUCT {{ ?s :A ?x }} INTO STREAM <{into}> FROM STREAM <{read}> WHERE {{ ?s :A ?x }}" for read, into in ("ab", "bc", "ca")]
    first, second, third = (epsparql.parse(PREFIXES + text) for text in texts)
    check(second, {"first": first.query})
    with pytest.raises(QueryError, match="one stream") as fault:
        check(third, {"first": first.query, "second": second.query})
    assert fault.value.line == 3


def test_an_unforeseen_fault_at_a_registration_fails_that_query_alone(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.register("right", "SELECT * WHERE { ?s :A ?x }")
    with monkeypatch.context() as patched:
        patched.setattr("engine.network.query_slots.place", lambda *_: 1 / 0)
        log.register("wrong", "SELECT * WHERE { ?s :A ?x }")
    assert "internal error" in log.failed["wrong"]
    assert log.send("A@1") == [("right", 2, 1, 1)]


def test_a_query_new_to_a_network_finds_the_time_that_it_would_find_alone(log: Log) -> None:
    alone = Log(Engine())
    log.register("other", "SELECT * WHERE { ?s :A ?a }")
    for each in (log, alone):
        each.send("A@1")
        each.finish()
        each.register("asks", "ASK { ?s :A ?a }")
    assert [row[0] for row in log.put(Tick(0, None, None))] == [row[0] for row in alone.put(Tick(0, None, None))] == ["asks"]
    assert log.failed["asks"] == "ASK is answered"


def test_a_rule_that_lets_time_pass_does_so_at_its_registration(log: Log) -> None:
    """No solution waits for the entry that comes next."""
    log.register("q", "SELECT * FROM STREAM <default> FROM STREAM <derived> WHERE { ?s :A ?a }")
    assert log.send("B@4", "other") == log.send("A@2") == [], "nobody has written the other stream yet"
    rule = Register(0, "rule", PREFIXES + "CONSTRUCT { ?s :D ?x } INTO STREAM <derived> FROM STREAM <other> WHERE { ?s :B ?x }")
    assert log.put(rule) == [("q", 3, 2, 2)]
    assert log.send("B@5", "other") == [("rule", 4, 5, 5)]
    assert log.send("A@5") == [("q", 5, 5, 5)]


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_queries_part_when_the_rule_goes_that_had_them_wait_for_the_same_streams(known: bool, restored: bool) -> None:
    others = ("SELECT * FROM STREAM <b> WHERE { ?s :B ?x }", "SELECT * FROM STREAM <b> WHERE { {?s :B ?x} MINUS {?s :C ?x} }")
    found = []
    for texts in (others, ("SELECT * FROM STREAM <c> WHERE { ?s :B ?x }",) * len(others)):
        log = Log(Engine())
        log.register("there", "CONSTRUCT { ?s :B ?x } INTO STREAM <b> FROM STREAM <a> WHERE { ?s :A ?x }")
        back = log.register("back", "CONSTRUCT { ?s :A ?x } INTO STREAM <a> FROM STREAM <b> WHERE { ?s :B ?x }")
        log.register("q", "SELECT * FROM STREAM <a> WHERE { {?s :A ?x} SEQ {?s :A ?y} }")
        for k, text in enumerate(texts):
            log.register(f"other{k}", text)
        rows = [*log.send("A(1)@1", "a"), *log.send("B(1)@1", "b")]
        if known:
            log.put(Facts(0, "", "<http://example.org/s> <http://example.org/A> <http://example.org/o> .\n"))
        rows += log.put(Drop(0, back, "back"))
        if restored:
            log.engine = Engine.restore(log.engine.snapshot())
        for feed, stream in (("A(3)@5", "a"), ("B(1)@5", "b"), ("A(4)@8", "a"), ("B(2)@9", "b")):
            rows += log.send(feed, stream)
        found.append([*rows, *log.finish("a"), *log.finish("b")])
    with_others, alone = ([row for row in rows if row[0] in {"there", "q"}] for rows in found)
    assert with_others == alone
    assert [end for name, _, _, end in found[0] if name == "other0"] == [end for name, _, _, end in found[0] if name == "other1"]


def test_a_background_graph_that_comes_while_graph_patterns_run(log: Log) -> None:
    log.register("graphs", "SELECT * WHERE { GRAPH ?g { ?s :A ?a } }")
    assert log.send("h/A(1)@1") == [("graphs", 1, 1, 1)]
    log.put(Facts(0, "http://example.org/g", "<http://example.org/s> <http://example.org/A> <http://example.org/o> .\n"))
    log.engine = Engine.restore(log.engine.snapshot())
    assert sorted(log.send("h/A(2)@2")) == [("graphs", 3, 2, 2), ("graphs", 3, 2, 2)]


def test_background_that_would_close_a_negative_cycle_is_not_taken_in(log: Log) -> None:
    log.register("rule", "CONSTRUCT { ?s :A ?a } WHERE { { ?s :C ?a FILTER NOT EXISTS { ?s :A ?z } } SEQ { ?s :B ?b } }")
    log.put(Facts(0, "", "<http://example.org/s> <http://example.org/B> <http://example.org/o> .\n"))
    log.send("C(2)@2")
    assert not log.engine.registry.facts
    assert [row[0] for row in log.send("B(3)@3")] == ["rule"], "the rule goes on"


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize(
    "text", ["SELECT * { {?s :A ?x} MINUS {?s :C ?x} }", "SELECT (COUNT(*) AS ?n) { ?s :A ?x } WINDOW [RANGE 'PT1S' STEP 'PT1S']"]
)
def test_an_instant_before_a_background_closes_at_the_entry_that_passes_it_however_the_log_is_cut(text: str, most: int) -> None:
    """The stream's end comes in the same block, and its last instant is no reason to let an earlier one wait for it."""
    first, waits = tuple(parse_feed("A(1)@3")), tuple(parse_feed("A(2)@9"))
    entries: list[tuple[Entry, tuple[Occurrence, ...]]] = [
        (Register(0, "q", PREFIXES + text), ()),
        (Events(1, "default", 1, 3 * SECOND), first),
        (Facts(2, "", "<http://example.org/s> <http://example.org/B> <http://example.org/o> .\n"), ()),
        (Events(3, "default", 1, 4 * SECOND), waits),
        (Finish(4, "default"), ()),
    ]
    engine, found = Engine(), []
    for at in range(0, len(entries), most):
        found += engine.feed(block(entries[at : at + most])).solutions.to_pylist()
    assert [(row["entry"], row["end"].timestamp()) for row in found] == [(3, 3), (4, 9)]


def test_limit_completes_a_query(log: Log) -> None:
    log.register("none", "SELECT * WHERE { ?s :A ?a } LIMIT 0")
    log.register("two", "SELECT * WHERE { ?s :A ?a } LIMIT 2")
    log.send("A(1)@1 A(2)@2 A(3)@3")
    assert log.finish() == []
    assert log.failed == {"none": "LIMIT is reached", "two": "LIMIT is reached"}
    assert not log.engine.registry.registered


def test_what_rests_on_a_failed_rule_goes_on_however_the_log_is_cut() -> None:
    endless = "CONSTRUCT { ?s :X ?b } INTO STREAM :x FROM STREAM :x FROM STREAM <default> WHERE { { ?s :A ?b } UNION { ?s :X ?a BIND(?a + 1 AS ?b) FILTER(?a >= 5) } }"
    reader = "SELECT * FROM STREAM :x FROM STREAM :y WHERE { ?s :X ?x FILTER NOT EXISTS { ?s :Y ?y } }"
    events = [
        ("A(1)@1", "default", 1),
        ("A(2)@2", "default", 2),
        ("A(6)@3", "default", 3),
        ("A(1)@4", "default", 4),
        ("Y(t,1)@8", ":y", 8),
        ("A(9)@5", "default", 5),
    ]
    entries: list[tuple[Entry, tuple[Occurrence, ...]]] = [
        (Register(0, "endless", PREFIXES + endless, max_derivations=20), ()),
        (Register(1, "reader", PREFIXES + reader), ()),
    ]
    for feed, stream, end in events:
        occurrences = tuple(parse_feed(feed))
        name = stream.replace(":", "http://example.org/")
        entries.append((Events(len(entries), name, len(occurrences), end * SECOND), occurrences))
    whole, cut = Engine(), Engine()
    found = whole.feed(block(entries)).solutions.to_pylist()
    pieces = [row for entry in entries for row in cut.feed(block([entry])).solutions.to_pylist()]
    assert [row["query"] for row in found] == [row["query"] for row in pieces]
    assert "reader" in {row["query"] for row in found}


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("others", [[], ["SELECT * { ?s :A ?a }"], ["SELECT * { ?s :B ?b }", "SELECT * { ?s :A ?a }"]])
def test_what_is_sent_again_after_a_query_came_is_new_to_it_alone(others: list[str], restored: bool) -> None:
    """Whichever queries it shares a network with, and whether or not the first time still waits."""
    for delay in (0, 3):
        log = Log(Engine())
        for number, text in enumerate(others):
            log.register(f"other{number}", text)
        found = log.send("A@1 B@1", delay=delay)
        log.register("one", "SELECT * { ?s :A ?a }")
        log.register("pair", "SELECT * { { ?s :A ?a } SEQ { ?s :C ?c } }")
        if restored:
            log.engine = Engine.restore(log.engine.snapshot())
        found += log.send("A@1", delay=delay)
        found += log.send("A@1", delay=delay)
        found += log.send("C@9", delay=delay)
        found += log.finish()
        assert sorted((name, start, end) for name, _, start, end in found) == sorted(
            [("one", 1, 1), ("pair", 1, 9), *((f"other{number}", 1, 1) for number in range(len(others)))]
        )


def test_chains_stay_short_where_entries_come_alone(log: Log) -> None:
    log.register("q", "SELECT * WHERE { {?x :A ?y} SEQ {?x :B ?z} }")
    for k in range(3000):
        log.send(f"A(s{k},o)@{k}")
    net = log.engine.registry.members[0].network.net
    assert log.engine.goals == 3000
    assert len(net.heads) >= 1500


def test_a_tick_opens_a_query_at_its_time(log: Log) -> None:
    log.register("q", "SELECT * WHERE { VALUES ?x { 1 } }")
    assert log.put(Tick(0, "default", 5 * SECOND)) == [("q", 1, 5, 5)]
    assert log.put(Tick(0, "default", 7 * SECOND)) == []


def test_a_stream_that_ends_opens_no_query_that_reads_another_one(log: Log) -> None:
    log.register("q", "SELECT * FROM STREAM <a> FROM STREAM <b> WHERE { VALUES ?x { 1 } }")
    assert log.put(Tick(0, "b", 5 * SECOND)) == []
    assert log.finish("a") == []
    assert log.finish("b") == [("q", 3, 5, 5)]


def test_what_waits_from_before_a_query_does_not_keep_a_tick_from_opening_it(log: Log) -> None:
    log.register("other", "SELECT * WHERE { ?s :A ?x }")
    assert log.send("A@5", delay=3) == []
    log.register("q", "SELECT * WHERE { VALUES ?x { 1 } }")
    assert log.put(Tick(0, "default", 6 * SECOND)) == [("other", 3, 5, 5), ("q", 3, 6, 6)]


def test_the_instants_of_a_program_open_it_unless_they_have_passed(log: Log) -> None:
    log.register("other", "SELECT * WHERE { ?s :B ?x }")
    log.send("A@1")
    for number in range(2):
        log.put(Register(0, f"program {number}", "#!etalis recent\nd <- 3 seq 4."))
        assert [(query, start, end) for query, _, start, end in log.send(f"A@{8 + number}")] == [("program 0", 3, 4)][number:]


def test_how_far_a_query_looks_back_follows_the_background(log: Log) -> None:
    entry = Register(0, "q", PREFIXES + "SELECT * WHERE { ?s :A ?x }")
    assert not log.engine.registry.find_reaches([entry])[0].opens
    log.put(Facts(0, "", f"<{EXAMPLE}s> <{EXAMPLE}A> <{EXAMPLE}x> .\n"))
    assert log.engine.registry.find_reaches([entry])[0].opens


# ---------------------------------------------------------------- order of emission
def emitted(*rows: tuple[str, int, int, int, int]) -> pa.RecordBatch:
    """Solutions of (query, registration, entry, start, end)."""
    queries, registered, entries, starts, ends = zip(*rows, strict=True) if rows else ((),) * 5
    return pa.RecordBatch.from_arrays(
        [
            pa.array(queries, pa.utf8()).dictionary_encode(),
            pa.array(registered, pa.int64()),
            pa.array(entries, pa.int64()),
            pa.array(starts, pa.int64()).cast(INSTANT),
            pa.array(ends, pa.int64()).cast(INSTANT),
            pa.array([[]] * len(rows), pa.list_(pa.utf8())),
        ],
        schema=SOLUTIONS,
    )


ONE, TWO = ("b", 1, 5, 3, 9), ("a", 2, 5, 3, 9)
ORDERS = [
    pytest.param([], [], id="nothing"),
    pytest.param([[], [ONE], []], [ONE], id="one part"),
    pytest.param([[ONE], [("a", 2, 6, 1, 2)]], [ONE, ("a", 2, 6, 1, 2)], id="one entry after the other"),
    pytest.param([[("a", 2, 6, 1, 2)], [ONE]], [ONE, ("a", 2, 6, 1, 2)], id="by entry"),
    pytest.param([[ONE], [TWO]], [TWO, ONE], id="by name"),
    pytest.param([[("a", 7, 5, 3, 9)], [TWO]], [TWO, ("a", 7, 5, 3, 9)], id="by registration"),
    pytest.param([[ONE], [("a", 2, 5, 4, 8)]], [("a", 2, 5, 4, 8), ONE], id="by end"),
    pytest.param([[ONE], [("c", 2, 5, 2, 9)]], [("c", 2, 5, 2, 9), ONE], id="by start"),
    pytest.param(
        [[("a", 2, 5, 8, 9), ("a", 2, 5, 1, 9)], [("b", 1, 5, 4, 9)]], [("b", 1, 5, 4, 9), ("a", 2, 5, 8, 9), ("a", 2, 5, 1, 9)], id="a query's own order"
    ),
    pytest.param(
        [[("a", 2, 5, 8, 9), ("a", 2, 6, 1, 9)], [("b", 1, 6, 4, 9)]], [("a", 2, 5, 8, 9), ("a", 2, 6, 1, 9), ("b", 1, 6, 4, 9)], id="of one entry alone"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "whole"), ORDERS)
def test_parts_come_in_order_of_emission(parts: list[list[tuple[str, int, int, int, int]]], whole: list[tuple[str, int, int, int, int]]) -> None:
    found = sort_by_emission([emitted(*part) for part in parts])
    assert found.select(["query", "registered", "entry"]).to_pylist() == emitted(*whole).select(["query", "registered", "entry"]).to_pylist()
    assert int64s(found.column("start")).tolist() == [row[3] for row in whole]
    assert sort_by_emission([], tied=True).schema == TIED


def test_descriptions_of_one_instant_are_in_order_of_what_they_describe() -> None:
    log = Log(Engine())
    log.put(Facts(0, "", "".join(f"<{EXAMPLE}{name}> <{EXAMPLE}K> <{EXAMPLE}k> .\n" for name in "xyz")))
    log.register("q", "DESCRIBE ?s { ?s :A ?a }")
    entry, occurrences = Events(log.engine.position, "default", 3, 2 * SECOND), parse_feed("A(z,1)@1 A(x,2)@1 A(y,3)@1")
    found = log.engine.feed(block([(entry, tuple(occurrences))])).solutions.column("values").to_pylist()
    assert [[text.split()[0] for text in values] for values in found] == [[f"<{EXAMPLE}{name}>"] for name in "xyz"]


@pytest.mark.parametrize("template", ["?s ?p ?x", "?p :D ?x"])
def test_a_triple_with_an_unbound_part_is_not_derived(log: Log, template: str) -> None:
    log.register("rule", f"CONSTRUCT {{ {template} }} INTO STREAM <d> WHERE {{ {{ ?s :P ?p }} UNION {{ ?s :A ?x }} }}")
    log.register("reader", "SELECT * FROM STREAM <d> WHERE { ?s ?p ?x }")
    found = log.send("A(1)@1 P(s,2)@2 A(3)@3")
    assert not [row for row in found if row[0] == "reader"]

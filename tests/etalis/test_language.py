"""Programs about what the conformance programs do not cover: terms, instants, alarms, aggregates, labels, static
rules, and what is not built.
"""

import json
import re
import time
from decimal import Decimal
from pathlib import Path

import pytest

import epsparql
from epsparql.etalis.parser.vocabulary import event_node, iri_of, number_literal
from epsparql.etalis.streams import read_stream
from epsparql.etalis.translator import query_text
from epsparql.ntriples import parse_term
from pipeline.formats.batches.ntriples import canonical
from pipeline.registrations.query_cache import get_shape
from tests.etalis.programs import Reported, reported, run_program

AT = "1970-01-01T00:00:{:02}Z"


def on(event: str, args: list[object], start: int, end: int | None = None) -> Reported:
    return Reported(event, json.dumps(args), AT.format(start), AT.format(start if end is None else end))


PROGRAMS = [
    pytest.param("d(X) <- a(f(X, g)) where X > 1.", "event(a(f(2,g)),1). event(a(f(1,g)),2). event(a(f(3,h)),3).", [on("d", [2], 1)], id="a struct is taken apart"),
    pytest.param("d(f(X), [X, b]) <- a(X).", "event(a(1),1).", [on("d", [{"functor": "f", "args": [1]}, [1, "b"]], 1)], id="structs and lists are built"),
    pytest.param("d(X) <- a([X, X]).", "event(a([1,1]),1). event(a([1,2]),2).", [on("d", [1], 1)], id="a variable twice in a list"),
    pytest.param("d(X) <- a([X]).", "event(a(['urn:50%']),1). event(a(['http://e/50%']),2).", [on("d", ["urn:50%"], 1), on("d", ["http://e/50%"], 2)], id="names that are no IRIs"),
    pytest.param('d <- a("x").', "event(a(x),1). event(a(\"x\"),2).", [on("d", [], 2)], id="strings are no names"),
    pytest.param("d(X) <- a(X).", "event(a(2.0),1). event(a('Größe x'),2).", [on("d", [2], 1), on("d", ["Größe x"], 2)], id="numbers and names"),
    pytest.param("d(H) <- a(datime(_,_,_,H,_,_)).", "event(a(datime(2026,1,2,3,4,5)),1).", [on("d", [3], 1)], id="an instant is taken apart"),
    pytest.param("d <- 3 seq a.", "event(a,4). event(a,9).", [on("d", [], 3, 4), on("d", [], 3, 9)], id="an instant before the first event"),
    pytest.param("d <- a seq 7.", "event(a,4).", [on("d", [], 4, 7)], id="an instant after the last event"),
    pytest.param("d <- a seq 7. e <- 2 seq 3.", "event(a,8).", [on("e", [], 2, 3)], id="instants alone"),
    pytest.param("p(1,2). p(3,5). exceptionAlarm(d(X), D) <- a(X) where p(X, D).", "event(a(1),1). event(a(3),2). event(b,20).",
                 [on("d", [1], 1, 3), on("d", [3], 2, 7)], id="alarms whose delay is bound"),
    pytest.param("exceptionAlarm(d, X) <- a(X).", "event(a(-1),1). event(a(0),2). event(a(x),3).", [], id="alarms that are not later set nothing"),
    pytest.param("d(V) <- a seq aggregate(avg(X), b(X), V).", "event(a,1). event(b(1),2). event(b(2),3). event(b(x),4).",
                 [on("d", [1], 1, 2), on("d", [1.5], 1, 3)], id="an average; what is no number leaves the report out"),
    pytest.param("d(V) <- a seq aggregate(sum(X), b(X), V).", "event(a,1). event(b(4),[2,3]). event(b(4),[3,3]).",
                 [on("d", [0], 1), on("d", [8], 1, 3)], id="equal events on two intervals count twice"),
    pytest.param("d(V) <- aggregate(sum(X), a(X), V, rows(2)).", "event(a(1),1). event(a(2),2). event(a(4),4).", [on("d", [1], 1), on("d", [3], 1, 2), on("d", [6], 2, 4)], id="the last two"),
    pytest.param("d(V) <- aggregate(sum(X), a(X), V, range(2)).", "event(a(1),1). event(a(2),2). event(a(4),4).", [on("d", [1], 1), on("d", [3], 1, 2), on("d", [4], 4)],
                 id="the last two seconds; what ended just two seconds ago is out"),
    pytest.param("d(X, V) <- aggregate(count, a(X, _), V, group_by(X), rows(2)).", "event(a(1,x),1). event(a(2,x),2). event(a(1,y),3). event(a(1,z),4).",
                 [on("d", [1, 1], 1), on("d", [2, 1], 2), on("d", [1, 2], 1, 3), on("d", [1, 2], 3, 4)], id="a group for each key"),
    pytest.param("d(V) <- aggregate(sum(Y), (a(X) seq b(X, Y)), V).", "event(a(1),1). event(b(1,4),2). event(b(2,8),3). event(b(1,16),4).", [on("d", [4], 1, 2), on("d", [20], 1, 4)],
                 id="the sum over a sequence"),
    pytest.param("d(V) <- aggregate(count, (a(_) or b(_)), V, range(1min)).", "event(a(1),1). event(b(1),1). event(b(2),[2,3]).", [on("d", [2], 1), on("d", [3], 1, 3)], id="any operator in an aggregate"),
    pytest.param("d(X, V) <- s(X) seq aggregate(max(Y), (a(X, Y) where Y < 9), V, rows(1)).", "event(s(1),1). event(a(1,3),2). event(a(1,9),3). event(a(2,4),4). event(a(1,2),5).",
                 [on("d", [1, 3], 1, 2), on("d", [1, 2], 1, 5)], id="a window after each event"),
    pytest.param("d(V) <- aggregate(list(f(X)), a(X), V, rows(2)).", "event(a(x),1). event(a('Y z'),2). event(a(\"3\"),3).",
                 [on("d", [[{"functor": "f", "args": [x]} for x in xs]], start, end)
                  for xs, start, end in ((["x"], 1, 1), (["x", "Y z"], 1, 2), (["Y z", {"string": "3"}], 2, 3))], id="a list of structs"),
    pytest.param("median(L, M) :- msort(L, S), length(L, N), K is N // 2, nth0(K, S, M). d(V) <- aggregate(median(X), a(X), V, rows(3)).", "event(a(1),1). event(a(9),2). event(a(5),3). event(a(6),4).",
                 [on("d", [1], 1), on("d", [9], 1, 2), on("d", [5], 1, 3), on("d", [6], 2, 4)], id="a function that static rules define"),
    pytest.param("big(L, X) :- member(X, [1,2,3]), member(X, [2,3]), p(L). p([9]). d(V) <- aggregate(big(X), a(X), V).", "event(a(9),1). event(a(8),2).", [on("d", [2], 1), on("d", [3], 1)],
                 id="a function with two answers, and with none"),
    pytest.param("d(X) <- a(X) where \\+ X < 3.", "event(a(1),1). event(a(x),2). event(a(4),3).", [on("d", ["x"], 2), on("d", [4], 3)], id="no number is not less"),
    pytest.param("d(Y) <- a(X) where (Y = X ; Y is X + 1).", "event(a(1),1).", [on("d", [1], 1), on("d", [2], 1)], id="two answers of a condition"),
    pytest.param("d(X // 2, X mod 2, 2 ** X) <- a(X).", "event(a(7),1).", [on("d", [3, 1, 128], 1)], id="arithmetic in a head"),
    pytest.param("d(X) <- a(X) where (X = f(1, Y), Y > 1 ; X = [_, f(Z)], Z == b ; X > 7).", "event(a(f(1,2)),1). event(a(f(2,2)),2). event(a([1,f(b)]),3). event(a(8),4). event(a(f(1,1)),5).",
                 [on("d", [{"functor": "f", "args": [1, 2]}], 1), on("d", [[1, {"functor": "f", "args": ["b"]}]], 3), on("d", [8], 4)], id="a struct is taken apart in an alternative"),
    pytest.param("d(X) <- a(X) where \\+ X = f(_).", "event(a(f(1)),1). event(a(2),2). event(a(g(1)),3).", [on("d", [2], 2), on("d", [{"functor": "g", "args": [1]}], 3)],
                 id="no struct of this name"),
    pytest.param("set_etalis_flag(event_consumption_policy, recent). d(X, Y) <- (a(X) forall_seq b(Y)) cnot c.", "event(a(1),1). event(c,2). event(a(2),3). event(a(3),4). event(b(5),5).",
                 [on("d", [2, 5], 3, 5), on("d", [3, 5], 4, 5)], id="no policy acts on forall_seq, cnot or not"),
    *(
        pytest.param(f"set_etalis_flag(event_consumption_policy, {policy}). d(X) <- a(X) seq b.", "event(a(1),[1,3]). event(a(2),[2,3]). event(b,[4,6]). event(a(3),[5,8]). event(a(4),[5,7]). event(b,[9,10]).",
                     [on("d", [first], start, 6), on("d", [3], 5, 10)], id=f"on intervals, {policy}")
        for policy, first, start in (("recent", 2, 2), ("'recent-longest'", 1, 1), ("'recent-by ?X'", 2, 2))
    ),
    *(
        pytest.param(f"set_etalis_flag(event_consumption_policy, {policy}). d(X, Y) <- a(X) and b(Y).", "event(a(1),1). event(a(2),2). event(b(3),3). event(b(4),4).",
                     [on("d", [x, y], x, y) for x, y in pairs], id=f"and, {policy}")
        for policy, pairs in (("unrestricted", [(1, 3), (1, 4), (2, 3), (2, 4)]), ("recent", [(2, 3), (2, 4)]), ("chronological", [(1, 3), (2, 4)]))
    ),
    pytest.param("d(X) <- a where X is sqrt(4).", "event(a,1).", [on("d", [2.0], 1)], id="a double"),
    pytest.param("n(1). n(Y) :- n(X), X < 5, Y is X + 1. d(X) <- a where n(X).", "event(a,1).", [on("d", [k], 1) for k in range(1, 6)], id="a recursive relation"),
    pytest.param("e(1,2). e(2,3). r(X,Y) :- e(X,Y). r(X,Z) :- r(X,Y), e(Y,Z). s(X) :- e(X,_), \\+ r(X,3). d(X) <- a where s(X).",
                 "event(a,1).", [], id="stratified negation"),
    pytest.param("x : d <- a seq b. event_rule_property(x, event_rule_window, 1).", "event(a,1). event(b,2). event(b,3).", [on("d", [], 1, 2)], id="a label's window"),
    pytest.param("s(X) :- X > 1, !. d(X) <- a(X) where s(X).", "event(a(1),1). event(a(2),2).", [on("d", [2], 2)], id="a condition, and a cut that ends it"),
    pytest.param("d :- a SEQ b.", "event(a,1). event(b,2).", [on("d", [], 1, 2)], id="the paper's event rule"),
    pytest.param("d(X) <- a(X) WHERE { X > 1 X < 5 }.", "event(a(1),1). event(a(2),2).", [on("d", [2], 2)], id="the paper's braces"),
    pytest.param("print_trigger(_/1). d <- a(_).", "event(a(1),1). event(b(2),2). event(c(1,2),3).", [on("a", [1], 1), on("b", [2], 2)], id="triggers by arity"),
    pytest.param("print_trigger(p(_)). d <- a(_).", "event(p,1). event(p(1,x),2). event(q,3).", [on("p", [], 1), on("p", [1, "x"], 2)], id="triggers by name"),
    pytest.param("d(X) <- a(X) fnot d2(X). d2(X) <- b(X).", "event(b(1),1). event(a(1),2). event(a(2),3).", [on("d", [2], 3), on("d2", [1], 1)], id="fnot is correlated"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "stream", "wanted"), PROGRAMS)
def test_programs(tmp_path: Path, program: str, stream: str, wanted: list[Reported]) -> None:
    found = run_program(tmp_path, program, stream)
    assert sorted(found) == sorted(wanted)


SPEED = '{"s":"<http://t/s1>","p":"<http://t/speed>","o":"\\"%d\\"^^<http://www.w3.org/2001/XMLSchema#integer>","at":"1970-01-01T00:00:0%dZ"}'
JAM = '{"s":"<http://t/s1>","p":"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>","o":"<http://t/Jam>","at":"1970-01-01T00:00:04Z"}'


def test_predicates_that_are_iris_are_triples(tmp_path: Path) -> None:
    """They match triples of streams, and what the program's own rules derive; a literal as a subject derives nothing."""
    program = """
        prefix(t, 'http://t/').
        t:slower(S, V) <- t:speed(S, U) seq t:speed(S, V) where V < U.
        jam(S, V) <- t:slower(S, V) seq t:Jam(S).
        jam2(S, V) <- t:slower(S, V) seq 'http://t/Jam'(S).
        jam3(S, V) <- t:'slower'(S, V) seq t:'Jam'(S) where S == t:'s1'.
        t:slow(V, S) <- t:speed(S, V).
    """
    found = run_program(tmp_path, program, "\n".join((SPEED % (40, 1), SPEED % (20, 3), JAM)), "application/x-ndjson")
    jams = [on(name, ["http://t/s1", 20], 1, 4) for name in ("jam", "jam2", "jam3")]
    assert sorted(found) == sorted([on("http://t/slower", ["http://t/s1", 20], 1, 3), *jams])


def test_conditions_read_the_background(tmp_path: Path) -> None:
    """A condition finds what the schema of the background entails, too."""
    facts = tmp_path / "facts.ttl"
    facts.write_text(
        "@prefix : <http://t/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :x :near :y , :z . :near rdfs:subPropertyOf :by ."
    )
    program = "prefix(t, 'http://t/'). d(X, Y) <- a(X) where t:by(X, Y)."
    sent = "event(a('http://t/x'),1). event(a('http://t/y'),2)."
    found = run_program(tmp_path, program, sent, background=[facts])
    assert sorted(found) == [on("d", ["http://t/x", f"http://t/{each}"], 1) for each in "yz"]


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ("near(X, Y) :- t:by(X, Y). d(X, Y) <- a(X) where near(X, Y).", [("x", "y", 1), ("x", "z", 1), ("y", "w", 2)]),
        ("two(X, Z) :- one(X, Y), t:by(Y, Z). one(X, Y) :- t:by(X, Y), \\+ X = Y. d(X, Z) <- a(X) where two(X, Z).", [("x", "w", 1)]),
        ("lone(X) :- t:by(Y, X), \\+ t:by(X, Z). d(X, X) <- a(X) where lone(X).", [("z", "z", 3)]),
        ("d(X, X) <- a(X) where \\+ t:by(X, 'http://t/w').", [("x", "x", 1), ("z", "z", 3)]),
        ("d(X, X) <- a(X) where (t:by(X, 'http://t/w') ; t:by(_, X), \\+ t:by(X, _)).", [("y", "y", 2), ("z", "z", 3)]),
        ("d(X, X) <- a(X) where (X = 'http://t/x' ; t:by(X, Y), t:by(_, X)).", [("x", "x", 1), ("y", "y", 2)]),
        ("d(X, X) <- a(X) where \\+ (t:by(X, Y), t:by(Y, _) ; t:by(_, X), X == 'http://t/y').", [("z", "z", 3)]),
        ("ends(X) :- t:by(X, 'http://t/w') ; X = 'http://t/z'. d(X, X) <- a(X) where ends(X).", [("y", "y", 2), ("z", "z", 3)]),
        (
            "far(X, Y) :- all(X), all(Y), \\+ (t:by(X, Y), t:by(Y, Z)). all(X) :- t:by(X, _). d(X, Y) <- a(X) where far(X, Y).",
            [("x", "x", 1), ("y", "x", 2), ("y", "y", 2)],
        ),
    ],
)
def test_static_rules_read_the_background(tmp_path: Path, rules: str, found: list[tuple[str, str, int]]) -> None:
    facts = tmp_path / "facts.ttl"
    facts.write_text("@prefix : <http://t/> . :x :by :y , :z . :y :by :w .")
    sent = " ".join(f"event(a('http://t/{each}'),{k})." for k, each in enumerate("xyz", 1))
    seen = run_program(tmp_path, f"prefix(t, 'http://t/'). {rules}", sent, background=[facts])
    assert sorted(seen) == [on("d", [f"http://t/{x}", f"http://t/{y}"], at) for x, y, at in found]


def test_the_page(tmp_path: Path) -> None:
    """The examples of the pages on this language run, and the first gives the line that the page shows."""
    page, other = ((Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8") for name in ("etalis.md", "etalis-lists.md"))
    program, stream, writer, routes, totals, averages = re.findall(r"^```prolog\n(.*?)^```$", page + other, re.MULTILINE | re.DOTALL)
    found = run_program(tmp_path, program, stream)
    assert len(found) == 6
    (shown,) = re.findall(r"`(\{.*\})`", page)
    assert reported(shown) in found
    assert get_shape(query_text(writer)[0]).into == "urn:rises"
    sent = "event(price(a,1),1). event(price(a,5),2). event(price(b,8),3). event(price(a,3),4). event(open,5). event(bid(x,7),6). event(accepted(x),7). event(price(a,2),62)."
    seen = [(line.event, line.args) for line in sorted(run_program(tmp_path, averages, sent), key=lambda line: line.end)]
    assert [args for event, args in seen if event == "average"] == ['["a", 1]', '["a", 3]', '["b", 8]', '["a", 3]', json.dumps(["a", 10 / 3])]
    assert [args for event, args in seen if event == "jitter"] == ["[0]", "[6]", "[1]"]
    assert [args for event, args in seen if event == "total"] == ["[0]", "[7]"]
    paid = "event(basket(ann, [item(tea, 70), item(rum, 40)]), 1). event(basket(bob, [item(tea, 70)]), 2). event(paid(ann), 3). event(paid(bob), 4)."
    assert run_program(tmp_path, totals, paid) == [Reported("order", '["ann", 110]', AT.format(1), AT.format(3))]
    closed = "event(at(7, a), 1). event(closed(b, d), 2). event(closed(c, e), 3). event(closed(a, d), 4)."
    found = run_program(tmp_path, routes, closed)
    wanted = [(["a", "c", "e", "d"], 2), (["a", "b", "d"], 3)]
    assert sorted(found) == sorted(Reported("reroute", json.dumps([7, path]), AT.format(1), AT.format(at)) for path, at in wanted)


REFUSED = [
    ("e(X) <- tr:a(X).", "prefix tr is not declared"),
    ("e(X) <- 'http://example.org/a'(X, Y, Z).", "3 arguments"),
    ("into_stream(s). into_stream(t). e <- a.", "writes the stream 's' already"),
    ("into_stream('urn:ele:own:1'). e <- a.", "a program's own"),
    ("into_stream(X). e <- a.", "without a name"),
    ("rdf:b(x, y). e(X) <- a(X).", "would change the background"),
    ("e <- a seq rev(b).", "takes no event back"),
    ("e(X) <- a(X) seq aggregate(count, b, N) where N > 1. e(X) <- e(X) seq aggregate(count, b, N).", "recursion through aggregate"),
    ("e(N) <- aggregate(count, e(_), N).", "recursion through aggregate"),
    ("e(N) <- aggregate(count, b, N, rows(0)).", "whole number from 1"),
    ("e(N) <- aggregate(count, b, N, range(0)).", "a window has a length"),
    ("e(N) <- aggregate(count, b, N, rows(2), range(2)).", "no option of aggregate"),
    ("e(N) <- aggregate(count, b(X), N, group_by(Y)).", "variable Y is not bound"),
    ("e(N) <- aggregate(median(X), b(X), N).", "the aggregate median/1 is not known"),
    ("e(X) <- aggregate(sum(X), b(X), N).", "variable X in the head"),
    ("e(N) <- aggregate(count, a or b, N, last(2)).", "no option of aggregate"),
    ("set_etalis_flag(event_consumption_policy, chronological). e(N) <- a seq aggregate(count, b, N).", "chronological"),
    ("e <- a. r2 : f <- b. event_rule_property(r3, window, 1).", "label"),
    ("p(1). p(X) :- p(Y), X is Y + 1. e <- a where p(1).", "grows beyond"),
    ("e <- a where 'x'.", "static predicate"),
    ("e <- (a) .3parsecs.", "unit"),
    ("/* open", "comment"),
    ("e(" + ",".join("ABCDEFGHIJKLMNOPQ") + ") <- a.", "arguments"),
]


@pytest.mark.parametrize(("program", "reason"), REFUSED)
def test_refusals(program: str, reason: str) -> None:
    with pytest.raises(epsparql.QueryError, match=reason) as refused:
        epsparql.parse(query_text(program)[0])
    assert refused.value.code == "ele-refused"


def test_rising_readings(tmp_path: Path) -> None:
    """Forty rising readings make n(n+1)/2 events; a rule with blank nodes would make 2^n - 1.

    The second run finds all code loaded.
    """
    program = "inc(X, X) <- temp(X). inc(X, Y) <- inc(X, Z) seq temp(Y) where Z < Y."
    stream = " ".join(f"event(temp({k}),{k})." for k in range(1, 41))
    run_program(tmp_path, program, stream)
    began = time.process_time()
    found = run_program(tmp_path, program, stream)
    assert len(found) == 820
    assert time.process_time() - began < 1


def test_the_node_of_an_event() -> None:
    """The contract's own example."""
    node = event_node("d", [number_literal(Decimal(1)), iri_of("x")], 1_000_000, 2_000_000)
    assert node.value == "urn:ele:event:a411dcbf446b5171c735e1ad9b170e87"


def test_times_of_a_stream() -> None:
    text = "event(a). sleep(2). event(b). event(c, 10). event(d). event(e, ['2026-01-01T00:00:00Z', datime(2026,1,1,0,0,1,5)]). halt. event(f)."
    found = [(event.name, event.start, event.end) for event in read_stream(text)]
    new_year = 1_767_225_600_000_000
    assert found == [
        ("a", 1, 1), ("b", 2_000_002, 2_000_002), ("c", 10_000_000, 10_000_000), ("d", 10_000_001, 10_000_001), ("e", new_year, new_year + 1_000_005),
    ]  # fmt: skip
    assert [event.start for event in read_stream("event(a). event(b).", 100)] == [100, 101]


@pytest.mark.parametrize("name", ["urn:50%", "http://e/[x]", "see http://e/", "kitchen"])
def test_events_have_iris_that_formats_can_write(name: str) -> None:
    (event,) = read_stream(f"event(a('{name}'), 1).")
    ((_, _, _), (_, _, argument)) = event.triples()
    assert canonical(argument) == argument
    assert iri_of(name) == parse_term(argument)


def test_a_prefix_is_an_absolute_iri() -> None:
    with pytest.raises(epsparql.QueryError, match="'t/' is no absolute IRI"):
        epsparql.parse(query_text("prefix(t, 't/'). d(X) <- a(X).")[0])


@pytest.mark.parametrize(
    ("body", "policy", "columns"),
    [
        ("a(X) seq b(X)", "unrestricted", [14]),
        ("(a(X) seq b(X)).30", "unrestricted", []),
        ("(a(X) seq b(X)) within 30", "unrestricted", []),
        ("((a(X) seq b(X)) seq c(X)).30", "unrestricted", []),
        ("(a(X) seq b(X)).30 seq c(X)", "unrestricted", [28]),
        ("(a(X) and b(X)) par c(X)", "unrestricted", [15, 25]),
        ("NOT(c(X)).[a(X), b(X)]", "unrestricted", [9]),
        ("a(X) equals b(X)", "unrestricted", []),
        ("a(X) or b(X) where X > 3", "unrestricted", []),
        ("aggregate(list(X), a(X), _)", "unrestricted", [9]),
        ("aggregate(list(X), a(X), _, rows(5))", "unrestricted", []),
        ("aggregate(sum(X), (a(X) seq b(X)), _)", "unrestricted", [33]),
        ("aggregate(sum(X), ((a(X) seq b(X)).5), _)", "unrestricted", []),
        ("a(X) seq b(Y)", "recent", []),
        ("a(X) and b(Y)", "recent-longest", []),
        ("a(X) seq b(X)", "recent", [14]),
        ("a(X) seq b(Y)", "chronological", [14]),
    ],
)
def test_operators_that_keep_events_for_ever_are_told(body: str, policy: str, columns: list[int]) -> None:
    """A rule's window bounds what its operators keep; `recent` without a shared variable keeps one event."""
    text, _ = query_text(f"e(1) <- {body}.", policy)
    found = [warning for warning in epsparql.parse(text).warnings if warning.code == "unbounded-state"]
    assert sorted(warning.span.place(text)[1] for warning in found if warning.span is not None) == columns

"""Programs that write derived events to a stream: what is written, who reads it, cycles through other queries, and a
run that goes on from a snapshot.
"""

import pytest

import epsparql
from epsparql.etalis.header import is_program, split_header
from epsparql.etalis.streams import read_stream
from epsparql.etalis.translator import query_text
from pipeline.registrations.query_cache import check_registration, get_shape
from tests.reference.evaluator import Settings
from tests.support.ntriples import parse_statement
from tests.support.run_both import Emitted, block, blocks, entries, in_order, run
from verification.definitions.model import Occurrence

ALL = "SELECT ?s ?p ?o FROM STREAM <urn:t:out> WHERE { ?s ?p ?o }"
FALSE = '"false"^^<http://www.w3.org/2001/XMLSchema#boolean>'
INTO = "into_stream('urn:t:out').\n"
Triples = set[tuple[str, str, str, int, int]]


def occurrences_of(events: str) -> list[Occurrence]:
    return [
        Occurrence(parse_statement(" ".join((*triple, "."))), event.start, event.end) for event in read_stream(events) for triple in event.triples()
    ]


def emitted(queries: dict[str, str], sent: dict[str, str], cuts: tuple[int, ...] = ()) -> list[Emitted]:
    streams = {name: occurrences_of(events) for name, events in sent.items()}
    policies = {name: Settings(split_header(text)[1]) for name, text in queries.items() if is_program(text)}
    log = blocks(entries(queries, streams, in_order(streams), (), settings=policies), cuts)
    found = run(log, restore_before=range(1, len(log)))
    assert not found.refused
    return found.emitted


def triples(found: list[Emitted], query: str = "reader") -> Triples:
    return {(s or "", p or "", o or "", start, end) for name, _, start, end, values in found if name == query for s, p, o in [values]}


def triples_of(events: str) -> Triples:
    return {(*triple, event.start, event.end) for event in read_stream(events) for triple in event.triples()}


def events_of(found: list[Emitted], query: str = "program") -> list[tuple[str | None, ...]]:
    return [(*values, str(start), str(end)) for name, _, start, end, values in found if name == query]


WRITTEN = [
    pytest.param("print_trigger(d/2). print_trigger(a/1). d(X, Y) <- a(X) seq a(Y).", "event(a(1),1). event(a(x),2).", "event(d(1,x),[1,2]).", id="derived events alone"),
    pytest.param("print_trigger(e/1). d(X) <- a(X). e(X) <- d(X) seq d(_).", "event(a(1),1). event(a(2),2).", "event(e(1),[1,2]).", id="those that a trigger chooses"),
    pytest.param("d(X) <- a(X). e(X) <- d(X) seq d(X).", "event(a(1),1). event(d(1),3). event(d(2),4).", "event(d(1),1). event(e(1),[1,3]).", id="not what was sent"),
    pytest.param("d(X) <- a(X). e(X) <- d(X) seq d(X).", "event(d(1),1). event(a(1),1).", "event(d(1),1).", id="what was sent and derived"),
    pytest.param("d(X, f(X), \"x\", 1.5) <- a(X). e <- d(_, _, _, _).", "event(a(1),1).", "event(d(1,f(1),\"x\",1.5),1). event(e,1).", id="many arguments, and none"),
    pytest.param("print_trigger(s/1). d(X) <- (s(X) <- a(X)) seq b(X).", "event(a(1),1).", "event(s(1),1).", id="a rule inside a pattern"),
    pytest.param("print_trigger(_). d(X) <- a(X).", "event(a(1),1). event(b(1,2),2).", "event(d(1),1).", id="all events"),
    pytest.param("set_etalis_flag(event_consumption_policy, recent). d(X,Y) <- a(X) seq b(Y).", "event(a(1),1). event(a(2),2). event(b(3),3).", "event(d(2,3),[2,3]).", id="under a policy"),
    pytest.param("print_trigger(a/1). d(X) <- a(X).", "event(a(1),1).", "", id="no derived event is chosen"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "sent", "wanted"), WRITTEN)
def test_what_is_written(program: str, sent: str, wanted: str) -> None:
    """A second query sees exactly the triples that `sent` events would have, on the same nodes; the program reports
    what it reports without the stream.
    """
    text = query_text(INTO + program)[0]
    found = emitted({"program": text, "reader": ALL}, {"default": sent})
    assert triples(found) == triples_of(wanted)
    assert sorted(events_of(found)) == sorted(events_of(emitted({"program": query_text(program)[0]}, {"default": sent})))
    assert get_shape(text).into == "urn:t:out"


def test_triples_are_written_as_they_are() -> None:
    program = "prefix(t, 'http://t/'). t:next(X, Y) <- a(X) seq a(Y). t:Seen(X) <- a(X)."
    found = emitted({"program": query_text(INTO + program)[0], "reader": ALL}, {"default": "event(a(x),1). event(a(2),2)."})
    x, two = "<urn:ele:x>", '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'
    seen = (x, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://t/Seen>", 1_000_000, 1_000_000)
    assert triples(found) == {(x, "<http://t/next>", two, 1_000_000, 2_000_000), seen}


@pytest.mark.parametrize("stream", ["default", "urn:t:out"])
def test_a_program_does_not_read_what_it_writes(stream: str) -> None:
    """Its events are its own already, so it may write a stream that it reads, even where it asks for what is absent
    there. Others read all of it.
    """
    program = "n(X) <- a(X). d(X) <- a(X) seq n(X). any(N) <- rdf:type(N, 'urn:ele:n')."
    sent = "event(a(1),1). event(a(1),2). event(n(1),3)."
    alone = query_text(f"from_stream('{stream}'). {program}")[0]
    both = query_text(f"from_stream('{stream}'). into_stream('{stream}'). {program}")[0]
    counts = f"SELECT ?k FROM STREAM <{stream}> WHERE {{ ?n a ?k }}"
    found = emitted({"program": both, "reader": counts}, {stream: sent})
    assert sorted(events_of(found)) == sorted(events_of(emitted({"program": alone}, {stream: sent})))
    kinds = [(values[0], end // 1_000_000) for name, _, _, end, values in found if name == "reader"]
    wanted = [("a", 1), ("a", 2), ("n", 1), ("n", 2), ("n", 3), ("d", 2), ("d", 3), ("d", 3), ("any", 3)]
    assert sorted(kinds) == sorted((f"<urn:ele:{kind}>", at) for kind, at in wanted)


SECOND = query_text("from_stream('urn:t:out'). e(X, Z) <- d(X, _) seq d(_, Z).")[0]


def test_programs_that_read_programs() -> None:
    """The second program finds the events of the first; the run is saved and restored before each entry."""
    sent = " ".join(f"event(a({k}),{k})." for k in range(1, 7))
    first = query_text(INTO + "d(X, Y) <- a(X) seq a(Y) where Y =:= X + 1.")[0]
    queries = {"program": first, "second": SECOND, "reader": "SELECT ?x FROM STREAM <urn:t:out> WHERE { ?n <urn:ele:arg1> ?x }"}
    whole = emitted(queries, {"default": sent})
    assert len(events_of(whole, "second")) == 6
    assert len(events_of(whole, "reader")) == 5
    assert emitted(queries, {"default": sent}, tuple(range(3, 10))) == whole


BACK = """CONSTRUCT { ?n a <urn:ele:a> ; <urn:ele:arg1> ?x } INTO STREAM <default> FROM STREAM <urn:t:out> WHERE { ?n a <urn:ele:d> ; <urn:ele:arg1> ?x }"""


def test_a_cycle_with_a_strict_step() -> None:
    """An alarm lies strictly later than what sets it, so it may feed itself through another query."""
    text = query_text(INTO + "exceptionAlarm(d(X), 5) <- a(X).")[0]
    check_registration(text, {"back": BACK}, "program")
    check_registration(BACK, {"program": text}, "back")
    found = emitted({"program": text, "back": BACK}, {"default": "event(a(1),1). event(c,12)."})
    assert sorted({(start // 1_000_000, end // 1_000_000) for name, _, start, end, _ in found if name == "program"}) == [(1, 6), (1, 11), (1, 16)]


def test_cycles_without_one_are_refused() -> None:
    """A node that is `a(X)` may have no other argument. That is absence, so the cycle would have no order."""
    text = query_text(INTO + "d(X) <- a(X).")[0]
    with pytest.raises(epsparql.QueryError, match=r"the triples that program writes to the stream urn:t:out") as refused:
        check_registration(text, {"back": BACK}, "program")
    assert refused.value.code == "ele-refused"
    with pytest.raises(epsparql.QueryError, match=r"back writes to the stream default"):
        check_registration(BACK, {"program": text}, "back")


def test_the_node_is_that_of_the_contract() -> None:
    found = emitted({"program": query_text(INTO + "d(X, Y) <- a(X) seq a(Y).")[0], "reader": ALL}, {"default": "event(a(1),1). event(a(x),2)."})
    assert {s for s, *_ in triples(found)} == {"<urn:ele:event:a411dcbf446b5171c735e1ad9b170e87>"}


def test_a_stream_to_which_nothing_is_written() -> None:
    """Its readers' time goes on, as that of a rule which finds nothing does."""
    queries = {"program": query_text(INTO + "print_trigger(a/1). d <- z.")[0], "reader": "ASK FROM STREAM <urn:t:out> WHERE { ?s ?p ?o }"}
    sent = {"default": occurrences_of("event(a(1),1).")}
    found = run([block(entries(queries, sent, in_order(sent), ()))])
    assert [values for name, *_, values in found.emitted if name == "reader"] == [(FALSE,)]

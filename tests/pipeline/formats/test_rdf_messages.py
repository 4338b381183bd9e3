"""RDF Messages and JSON-LD: what is told apart, when each message is, and where a fault is."""

import json
import subprocess
import sys

import pytest

from pipeline.formats.body_parser import LD_JSON, N_QUADS, N_TRIPLES, NDJSON, TRIG, TURTLE, FormatError, Interval, parse_body
from tests.pipeline.formats.test_formats import ARRIVED, AT1, AT2, PREFIXES, T1, T2, listed, parse, row

MESSAGES = "; version=1.2-messages"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
TIME1, TIME2 = (f'"{at}"^^<http://www.w3.org/2001/XMLSchema#dateTime>' for at in (T1, T2))
S = "<http://e/s> <http://e/p>"


def test_each_message_has_its_own_time_and_prefixes_go_on() -> None:
    body = f'VERSION "1.2-messages"\n{PREFIXES}:m {AT} {TIME1} . :s :p 1 .\nMESSAGE\n:s :p 2 . [] {AT} {TIME2} .\nmessage :s :p 3 .\nMESSAGE\n'
    found = parse(body, TURTLE + MESSAGES)
    assert [(each[2][1], each[4]) for each in found] == [("1", AT1), ("2", AT2), ("3", ARRIVED)]
    assert parse(body, TURTLE + MESSAGES, Interval(AT1, AT2))[2][4:] == (AT1, AT2)


@pytest.mark.parametrize("media_type", [N_TRIPLES, N_QUADS, TURTLE, TRIG])
def test_every_syntax(media_type: str) -> None:
    body = f'MESSAGE\n{S} <http://e/a> .\n# MESSAGE in a comment\nMESSAGE\nMESSAGE\n{S} <http://e/b> .\n{S} "MESSAGE" .\n'
    assert [each[2] for each in parse(body, media_type + MESSAGES)] == ["<http://e/a>", "<http://e/b>", '"MESSAGE"']


def test_the_other_spelling() -> None:
    body = f'@version "1.2-messages" .\n@message . {S} 1 . @message .\n{S} 2 , """\nMESSAGE """ .'
    assert len(parse(body, TURTLE + MESSAGES)) == 3
    assert len(parse("@prefix message: <http://e/> . message:s message:p message:MESSAGE , <http://MESSAGE/> .", TURTLE + MESSAGES)) == 2


def test_intervals_and_graphs() -> None:
    times = "http://streamreasoning.org/timeVocab#"
    body = f"{S} 1 . <http://e/m> <{times}startsAtTime> {TIME1} ; <{times}endsAtTime> {TIME2} .\nMESSAGE <http://e/g> {{ {S} 2 }} <http://e/g> {AT} {TIME2} ."
    first, second = parse(body, TRIG + MESSAGES)
    assert first[4:] == (AT1, AT2)
    assert second[3:] == ("<http://e/g>", AT2, AT2)


def test_blank_nodes_are_the_messages_own_and_the_same_again() -> None:
    body = f"_:b <http://e/p> 1 .\nMESSAGE\n_:b <http://e/p> 1 .\nMESSAGE _:b <http://e/p> 1 . {S} _:b ."
    found = parse(body, TURTLE + MESSAGES)
    assert len({each[0] for each in found[:3]}) == 3
    assert found[3][2] == found[2][0]
    assert parse(body, TURTLE + MESSAGES) == found


def test_a_time_may_be_said_twice() -> None:
    assert [each[4] for each in parse(f"<a:m> {AT} {TIME1} . <a:n> {AT} {TIME1} . {S} 1 .", TURTLE + MESSAGES)] == [AT1]


def test_a_property_of_ones_own_stays_an_occurrence() -> None:
    body = f"<http://e/o> <http://e/resultTime> {TIME1} ; <http://e/p> 1 .\nMESSAGE\n{S} 2 ."
    found = listed(parse_body(body.encode(), TURTLE + MESSAGES, default=None, arrived=ARRIVED, timing="http://e/resultTime"))
    assert [each[4] for each in found] == [AT1, AT1, ARRIVED]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        pytest.param(f"{S} 1 .\nMESSAGE\n{S} .\n", (3, 29), id="on a line of its own"),
        pytest.param(f"{S} 1 .\nMESSAGE {S} .\n", (2, 37), id="behind the delimiter"),
        pytest.param("PREFIX : <http://e/>\nMESSAGE\n\n  :s :p :o ; q:p 1 .", (4, 14), id="after prefixes"),
        pytest.param(f"<http://e/g> {{\nMESSAGE\n{S} 1 }}", (2, 1), id="in a graph"),
        pytest.param(f'VERSION "1.3"\n{S} 1 .', (1, 1), id="another version"),
        pytest.param(f'@message\n{S} 1 .', (1, 9), id="no full stop"),
        pytest.param(f'<http://e/m> {AT} "x" .', (1, 59), id="no time"),
        pytest.param(f"MESSAGE\n<http://e/m> {AT} {TIME1} , {TIME2} .", (2, 60), id="two times"),
    ],
)  # fmt: skip
def test_faults_have_their_place_in_the_body(body: str, place: tuple[int, int]) -> None:
    with pytest.raises(FormatError) as fault:
        parse(body, TRIG + MESSAGES)
    assert fault.value.line == place[0]
    assert fault.value.column is not None
    assert abs(fault.value.column - place[1]) <= 2, fault.value


def test_versions_that_are_not_known() -> None:
    for media_type in (f"{TURTLE}; version=1.3", LD_JSON + MESSAGES, f"{TURTLE}; version=1.3-messages"):
        with pytest.raises(FormatError) as fault:
            parse("", media_type)
        assert fault.value.code == "media-type"


def test_prefixes_that_would_go_on_without_end() -> None:
    body = "".join(f"PREFIX p{number}: <http://e/{number}>\n" for number in range(5_000)) + "MESSAGE <a:s> <a:p> 1 .\n" * 5_000
    with pytest.raises(FormatError, match="several bodies"):
        parse(body, TURTLE + MESSAGES)


class TestJsonLd:
    def test_timed_graphs(self) -> None:
        timed = {"@id": "http://e/g", AT.strip("<>"): {"@value": T1, "@type": "http://www.w3.org/2001/XMLSchema#dateTime"}}
        graph = {"@context": {"p": "http://e/p"}, "@graph": [{"@id": "http://e/s", "p": {"@id": "http://e/o"}}]}
        assert parse(json.dumps(timed | graph), LD_JSON) == [row(start=AT1, g="<http://e/g>")]

    def test_untimed(self) -> None:
        body = '{"@id":"http://e/s","http://e/p":{"@id":"http://e/o"}}'
        assert parse(body, LD_JSON) == [row()]
        assert parse(body, LD_JSON, Interval(AT1, AT2)) == [row(start=AT1, end=AT2)]

    @pytest.mark.parametrize(("context", "column"), [('"http://e/c"', 1), ('["http://e/c"]', 1), ('{"@import":"http://e/c"}', 13)])
    def test_remote_contexts_are_not_fetched(self, context: str, column: int) -> None:
        with pytest.raises(FormatError, match="nothing is fetched") as fault:
            parse(f'{{\n"@context":{context},"@id":"http://e/s"}}', LD_JSON)
        assert (fault.value.line, fault.value.column) == (2, column)

    def test_malformed(self) -> None:
        with pytest.raises(FormatError) as fault:
            parse('{"@id": }', LD_JSON)
        assert (fault.value.line, fault.value.column) == (1, 9)


DEEP = {
    LD_JSON: '{"http://e/p":' * 60_000,
    TURTLE: f"{S} " + "<<( <a:a> <a:a> " * 100_000,
    N_TRIPLES: f"{S} " + "<<( <a:a> <a:a> " * 100_000,
    NDJSON: json.dumps({"s": "<a:s>", "p": "<a:p>", "o": " " + "<<( <a:a> <a:a> " * 15_000}),
}


def test_bodies_that_would_end_the_parsers_stack() -> None:
    """The parser runs in a process of its own, which must not go down."""
    program = (
        "import json, sys; from pipeline.formats.body_parser import FormatError, parse_body\n"
        "for media_type, body in json.load(sys.stdin).items():\n"
        "    try: parse_body(body.encode(), media_type, default=None, arrived=1)\n"
        "    except FormatError as fault: print(fault.code, flush=True)"
    )
    found = subprocess.run([sys.executable, "-c", program], input=json.dumps(DEEP), text=True, capture_output=True, check=False)
    expected = ["term" if media_type == NDJSON else "too-deep" for media_type in DEEP]
    assert (found.returncode, found.stdout.split()) == (0, expected), found.stderr[-500:]

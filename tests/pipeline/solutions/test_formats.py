"""Solutions as clients read them."""

import csv
import io
import json

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.formats.batches.timestamps import instant
from pipeline.formats.body_parser import N_QUADS, TRIG, parse_body
from pipeline.solutions import formats
from pipeline.solutions.event_stream_pages import MEDIA_TYPES, EventStreamAddresses, write_event_page
from pipeline.solutions.formats import Bindings, Form, Triples, Verdict
from pipeline.solutions.solution_log import NONE_STORED, StoredSolution, solution_id
from tests.support.plain_json import stored

T1, T2 = instant("2026-01-01T00:00:01Z"), instant("2026-01-01T00:00:02.5Z")
FIVE = '"5"^^<http://e/t>'
TERMS = [
    pytest.param("<http://e/a>", {"type": "uri", "value": "http://e/a"}, "http://e/a", id="IRI"),
    pytest.param("_:b1", {"type": "bnode", "value": "b1"}, "_:b1", id="blank node"),
    pytest.param('"a\\"\\n\\u0001é"', {"type": "literal", "value": 'a"\n\u0001é'}, 'a"\n\u0001é', id="string"),
    pytest.param('"a"@en-us', {"type": "literal", "value": "a", "xml:lang": "en-us"}, "a", id="language"),
    pytest.param('"a"@ar--rtl', {"type": "literal", "value": "a", "xml:lang": "ar", "its:dir": "rtl"}, "a", id="base direction"),
    pytest.param(
        "<<( _:s <x:p> <<( <x:s> <x:p> 5 )>> )>>".replace("5", FIVE),
        {
            "type": "triple",
            "value": {
                "subject": {"type": "bnode", "value": "s"},
                "predicate": {"type": "uri", "value": "x:p"},
                "object": {
                    "type": "triple",
                    "value": {
                        "subject": {"type": "uri", "value": "x:s"},
                        "predicate": {"type": "uri", "value": "x:p"},
                        "object": {"type": "literal", "value": "5", "datatype": "http://e/t"},
                    },
                },
            },
        },
        f"<<( _:s <x:p> <<( <x:s> <x:p> {FIVE} )>> )>>",
        id="triple term",
    ),
    pytest.param('"01"^^<http://e/t>', {"type": "literal", "value": "01", "datatype": "http://e/t"}, "01", id="datatype"),
]


def solved(*values: str | None, start: int = T1, end: int = T2, query: str = "q") -> StoredSolution:
    return StoredSolution(solution_id(end, 0), query, 0, 0, start, end, values)


def line_of(solution: StoredSolution, form: Form) -> str:
    (line,) = formats.ndjson(stored([solution]), {solution.query: form}).each()
    return line


@pytest.mark.parametrize(("term", "binding", "plain"), TERMS)
def test_a_term_in_json_and_csv(term: str, binding: dict[str, object], plain: str) -> None:
    assert json.loads(line_of(solved(term), Bindings(("v",))))["binding"]["v"] == binding
    assert list(csv.reader(io.StringIO(formats.csv([solved(term)], Bindings(("v",))), newline="")))[1][3] == plain


def test_a_line_is_what_the_interface_says() -> None:
    line = line_of(solved('"1"', None, "<x:a>"), Bindings(("v", "w", 'x"y')))
    assert line == (
        f'{{"query":"q","id":"{solution_id(T2, 0)}","start":"2026-01-01T00:00:01Z","end":"2026-01-01T00:00:02.5Z",'
        '"binding":{"v":{"type":"literal","value":"1"},"x\\"y":{"type":"uri","value":"x:a"}}}'
    )
    constructed = line_of(solved("<x:a> <x:b> <x:c> .", '<x:a> <x:b> "\\n" .', query="ü\n"), Triples())
    assert json.loads(constructed)["triples"] == '<x:a> <x:b> <x:c> .\n<x:a> <x:b> "\\n" .'
    assert json.loads(constructed)["query"] == "ü\n"


def test_sparql_results_are_read_by_a_sparql_client() -> None:
    text = formats.sparql_json(stored([solved('"1"@en', None), solved("<x:a>", "_:b")]), Bindings(("v", "w")))
    parsed = ox.parse_query_results(text.encode(), ox.QueryResultsFormat.JSON)
    assert isinstance(parsed, ox.QuerySolutions)
    assert [(row["v"], row["w"]) for row in parsed] == [(ox.Literal("1", language="en"), None), (ox.NamedNode("x:a"), ox.BlankNode("b"))]
    beside = json.loads(text)["epsparql"]
    assert beside[0] == {"id": solution_id(T2, 0), "start": "2026-01-01T00:00:01Z", "end": "2026-01-01T00:00:02.5Z"}
    assert json.loads(formats.sparql_json(NONE_STORED, Bindings(()))) == {"head": {"vars": []}, "epsparql": [], "results": {"bindings": []}}


def test_csv_has_its_times_before_the_variables() -> None:
    assert formats.csv([solved('"a,b"', None)], Bindings(("v", "w"))).splitlines() == [
        "id,start,end,v,w",
        f'{solution_id(T2, 0)},2026-01-01T00:00:01Z,2026-01-01T00:00:02.5Z,"a,b",',
    ]
    assert formats.csv_constructed([solved('<x:a> <x:b> "c" .')]).splitlines()[1].endswith(",x:a,x:b,c")


@pytest.mark.parametrize("verdict", [True, False])
def test_a_verdict_in_every_format(verdict: bool) -> None:
    text = str(verdict).lower()
    answer = solved(f'"{text}"^^<http://www.w3.org/2001/XMLSchema#boolean>')
    line = json.loads(line_of(answer, Verdict()))
    assert line == {"query": "q", "id": answer.id, "start": "2026-01-01T00:00:01Z", "end": "2026-01-01T00:00:02.5Z", "boolean": verdict}
    document = formats.sparql_json_verdict(stored([answer]))
    parsed = ox.parse_query_results(document.encode(), ox.QueryResultsFormat.JSON)
    assert isinstance(parsed, ox.QueryBoolean)
    assert bool(parsed) is verdict
    assert json.loads(document)["epsparql"] == [{"id": answer.id, "start": "2026-01-01T00:00:01Z", "end": "2026-01-01T00:00:02.5Z"}]
    assert formats.csv_verdict([answer]).splitlines() == ["id,start,end,boolean", f"{answer.id},2026-01-01T00:00:01Z,2026-01-01T00:00:02.5Z,{text}"]


def test_what_is_not_answered_yet_has_no_verdict() -> None:
    assert json.loads(formats.sparql_json_verdict(NONE_STORED)) == {"head": {}, "epsparql": []}
    assert formats.csv_verdict([]).splitlines() == ["id,start,end,boolean"]


@pytest.mark.parametrize("fmt", ["trig", "n-quads"])
def test_a_description_without_triples_has_no_graph(fmt: str) -> None:
    assert formats.quads([solved()], fmt).strip() == ""


def test_constructed_triples_come_once() -> None:
    found = [solved("<x:a> <x:b> <x:c> ."), solved("<x:a> <x:b> <x:c> .", "<x:a> <x:b> <x:d> .")]
    assert formats.n_triples(found) == "<x:a> <x:b> <x:c> .\n<x:a> <x:b> <x:d> .\n"
    assert len(list(ox.parse(formats.turtle(found), ox.RdfFormat.TURTLE))) == 2


@pytest.mark.parametrize(("fmt", "media_type"), [("trig", TRIG), ("n-quads", N_QUADS)])
def test_timed_graphs_can_be_fed_back(fmt: str, media_type: str) -> None:
    found = [solved('<x:a> <x:b> "é\\n" .', "<x:a> <x:b> _:c ."), solved("<x:a> <x:b> <x:d> .", end=T1, query="a/b c")]
    batch = parse_body(formats.quads(found, fmt).encode(), media_type, default=None, arrived=0)
    rows = {(row["p"], row["g"], int(row["start"].timestamp() * 1e6), int(row["end"].timestamp() * 1e6)) for row in batch.to_pylist()}
    assert rows == {
        ("<x:b>", f"<urn:epsparql:q:{solution_id(T2, 0)}>", T1, T2),
        ("<x:b>", f"<urn:epsparql:a%2Fb%20c:{solution_id(T1, 0)}>", T1, T1),
    }
    assert batch.num_rows == 3


@given(st.builds(ox.Literal, st.text(st.characters(exclude_categories=["Cs"]))))
def test_any_text_survives_json(literal: ox.Literal) -> None:
    assert json.loads(line_of(solved(str(literal)), Bindings(("v",))))["binding"]["v"] == {"type": "literal", "value": literal.value}


class TestTermsThatNoFormatCanWrite:
    """Earlier versions stored what IRI() made of data, as it was."""

    POISON = solved(
        '<http://e/50%> <http://e/p> "1" .',
        "<kitchen> <http://e/p> <http://ex:abc/> .",
        '_:b <http://e/p> "x"^^<dt> .',
        '<http://e/a> <http://e/p> "y"@en-a .',
    )
    SHOWN = (
        "http://e/50%25",
        "urn:epsparql:invalid-iri:kitchen",
        "urn:epsparql:invalid-iri:http%3A%2F%2Fex%3Aabc%2F",
        "urn:epsparql:invalid-iri:dt",
        "x-en-a",
    )

    @pytest.mark.parametrize("media_type", [formats.TURTLE, formats.TRIG, formats.N_QUADS, formats.LD_JSON])
    def test_they_are_shown_escaped(self, media_type: str) -> None:
        text = formats.write_page(media_type, stored([self.POISON]), Triples()).decode()
        assert all(shown in text for shown in self.SHOWN)
        if media_type != formats.LD_JSON:  # with what a document says of itself, so that it is read again
            assert list(
                ox.parse(
                    text, {formats.TURTLE: ox.RdfFormat.TURTLE, formats.TRIG: ox.RdfFormat.TRIG, formats.N_QUADS: ox.RdfFormat.N_QUADS}[media_type]
                )
            )

    @pytest.mark.parametrize("media_type", MEDIA_TYPES)
    def test_event_streams_show_them_escaped(self, media_type: str) -> None:
        text = write_event_page(EventStreamAddresses("http://e/q", 1), 0, [self.POISON], media_type).decode()
        assert all(shown in text for shown in self.SHOWN)

    def test_rows_show_them_escaped(self) -> None:
        assert all(shown in formats.csv_constructed([self.POISON]) for shown in self.SHOWN[:3])

"""Triple terms and base directions (RDF 1.2) in events of every format: the same rows, with the blank nodes of one
message.
"""

import re

import pyarrow as pa
import pytest

from epsparql.terms import MAX_TRIPLE_DEPTH
from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.batches.ntriples import MAX_TERM
from pipeline.formats.body_parser import ARROW, LD_JSON, N_QUADS, N_TRIPLES, NDJSON, RDF_XML, TRIG, TURTLE, parse_body
from tests.support.logs import stream_of

XSD = "http://www.w3.org/2001/XMLSchema#"
REIFIES = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>"
SAID = [
    f'_:r {REIFIES} <<( <x:s> <x:p> _:n )>> .',
    f'_:n <x:q> <<( _:n <x:p> <<( <x:s> <x:p> "5"^^<{XSD}integer> )>> )>> .',
    '_:r <x:name> "a"@ar--rtl .',
]  # fmt: skip
TURTLE_TEXT = 'PREFIX : <x:> VERSION "1.2" << :s :p _:n ~ _:r >> :name "a"@ar--rtl . _:n :q <<( _:n :p <<( :s :p 5 )>> )>> .'
NDJSON_MESSAGE = '{"triples": "PREFIX : <x:> << :s :p _:n ~ _:r >> :name \\"a\\"@ar--rtl . _:n :q <<( _:n :p <<( :s :p 5 )>> )>> ."}'
XML = f"""<r:RDF xmlns:r="{REIFIES[1:-8]}" xmlns="x:" xmlns:its="http://www.w3.org/2005/11/its" r:version="1.2" its:version="2.0">
  <r:Description r:nodeID="r">
    <r:reifies r:parseType="Triple"><r:Description r:about="x:s"><p r:nodeID="n"/></r:Description></r:reifies>
    <name xml:lang="ar" its:dir="rtl">a</name>
  </r:Description>
  <r:Description r:nodeID="n"><q r:parseType="Triple"><r:Description r:nodeID="n"><p r:parseType="Triple">
    <r:Description r:about="x:s"><p r:datatype="{XSD}integer">5</p></r:Description>
  </p></r:Description></q></r:Description>
</r:RDF>"""
BODIES = [
    pytest.param("\n".join(SAID), N_TRIPLES, id="N-Triples"),
    pytest.param("\n".join(SAID), N_QUADS, id="N-Quads"),
    pytest.param(TURTLE_TEXT, TURTLE, id="Turtle"),
    pytest.param(TURTLE_TEXT, f"{TURTLE}; version=1.2", id="Turtle that tells its version"),
    pytest.param(TURTLE_TEXT, TRIG, id="TriG"),
    pytest.param(TURTLE_TEXT.replace("1.2", "1.2-messages"), f"{TURTLE};version=1.2-messages", id="RDF Messages"),
    pytest.param(NDJSON_MESSAGE, NDJSON, id="ndjson"),
    pytest.param(XML, RDF_XML, id="RDF/XML"),
]
HASH = re.compile(r"_:m[0-9a-f]{32}")


def read(body: str | bytes, media_type: str) -> list[tuple[str, str, str]]:
    batch = parse_body(body if isinstance(body, bytes) else body.encode(), media_type, default=Interval(5, 7), arrived=0)
    batch.validate(full=True)
    return [(row["s"], row["p"], row["o"]) for row in batch.to_pylist()]


def plain(rows: list[tuple[str, str, str]]) -> set[str]:
    """The rows with the labels of the text, once it is sure that all blank nodes are of one message.

    Those of RDF/XML have numbers.
    """
    scopes = {found for row in rows for part in row for found in HASH.findall(part)}
    assert len(scopes) == 1, rows
    return {HASH.sub("_:", f"{' '.join(row)} .").replace("_:-0", "_:r").replace("_:-1", "_:n") for row in rows}


@pytest.mark.parametrize(("body", "media_type"), BODIES)
def test_every_format_says_the_same(body: str, media_type: str) -> None:
    assert plain(read(body, media_type)) == set(SAID)
    assert read(body, media_type) == read(body, media_type), "the same message, sent again, is the same"


def test_columns_of_arrow() -> None:
    columns = [line.removesuffix(" .").split(" ", 2) for line in SAID]
    assert plain(read(stream_of({name: pa.array([row[k] for row in columns]) for k, name in enumerate("spo")}), ARROW)) == set(SAID)


def test_terms_of_an_ndjson_line() -> None:
    (row,) = read('{"s": "_:n", "p": "<x:q>", "o": "<<(<x:s>   <x:p>\\t_:n)>>"}', NDJSON)
    assert HASH.sub("_:", " ".join(row)) == "_:n <x:q> <<( <x:s> <x:p> _:n )>>"
    assert len(set(HASH.findall(" ".join(row)))) == 1


def test_a_base_direction_of_json_ld_is_left_out_as_json_ld_says() -> None:
    assert read('{"@id": "x:s", "x:p": {"@value": "a", "@language": "ar", "@direction": "rtl"}}', LD_JSON) == [("<x:s>", "<x:p>", '"a"@ar--rtl')]


def nested(depth: int) -> str:
    return "<<( <x:s> <x:p> " * depth + "<x:o>" + " )>>" * depth


@pytest.mark.parametrize("media_type", [N_TRIPLES, TURTLE, NDJSON])
def test_depth_is_bounded(media_type: str) -> None:
    def body(depth: int) -> str:
        return f'{{"s": "<x:s>", "p": "<x:p>", "o": "{nested(depth)}"}}' if media_type == NDJSON else f"<x:s> <x:p> {nested(depth)} ."

    assert read(body(MAX_TRIPLE_DEPTH), media_type)[0][2] == nested(MAX_TRIPLE_DEPTH)
    for depth in (MAX_TRIPLE_DEPTH + 1, 10_000):
        with pytest.raises(FormatError, match="deep"):
            read(body(depth), media_type)


BAD = [
    pytest.param("s", "<<( <x:s> <x:p> <x:o> )>>", "a triple term cannot be the subject", id="as subject"),
    pytest.param("p", "<<( <x:s> <x:p> <x:o> )>>", "a triple term cannot be the predicate", id="as predicate"),
    pytest.param("g", "<<( <x:s> <x:p> <x:o> )>>", "a triple term cannot be the graph", id="as graph"),
    pytest.param("o", "<<( <x:s> <x:p> <x:o> ", "no triple term", id="unfinished"),
    pytest.param("o", "<<( <x:s> <x:p> <x:o> )>> <x:q>", "no triple term", id="with more behind it"),
    pytest.param("o", "<<( <x:s> _:p <x:o> )>>", "no triple term", id="a blank node as its predicate"),
    pytest.param("o", "<<( <s> <x:p> <x:o> )>>", "No scheme", id="a relative IRI"),
    pytest.param("o", f"<<( <x:s> <x:p> <x:{'o' * MAX_TERM}> )>>", "the limit", id="too long"),
    pytest.param("o", "'a'@ar--up", "may be the text", id="a direction that there is not"),
]


@pytest.mark.parametrize(("place", "term", "message"), BAD)
def test_faults_are_told(place: str, term: str, message: str) -> None:
    fields = {"s": "<x:s>", "p": "<x:p>", "o": "<x:o>"} | {place: term}
    line = "{" + ", ".join(f'"{name}": "{value}"' for name, value in fields.items()) + "}"
    with pytest.raises(FormatError, match=message) as caught:
        read('{"s": "<x:s>", "p": "<x:p>", "o": "<x:o>"}\n' + line, NDJSON)
    assert (caught.value.line, caught.value.code) == (2, "term")

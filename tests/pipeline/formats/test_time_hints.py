"""Names that look like the time of events which were given the time of arrival."""

import pytest

from pipeline.formats.body_parser import LD_JSON, N_TRIPLES, NDJSON, RDF_XML, TURTLE, parse_body
from pipeline.formats.time_hints import time_hint

AT, DATE = "2026-01-01T00:00:00Z", "http://www.w3.org/2001/XMLSchema#dateTime"
LD = '{"@context":{"@vocab":"http://e/"},"@id":"x:s","v":1,%s}'
RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"'
ROWS = [
    pytest.param(LD_JSON, LD % f'"at":"{AT}"', "at", id="a member"),
    pytest.param(LD_JSON, '{"@id":"x:s","x:v":1,"time":1767225600}', "time", id="a member that the context does not know"),
    pytest.param(LD_JSON, LD % '"Timestamp" : "1767225600"', "Timestamp", id="seconds"),
    pytest.param(LD_JSON, LD % f'"seen":{{"@value":"{AT}"}}', "seen", id="a value object"),
    pytest.param(LD_JSON, LD % f'"prov:generatedAtTime":"{AT}"', "prov:generatedAtTime", id="a prefix"),
    pytest.param(LD_JSON, LD % '"at":"home"', None, id="another at"),
    pytest.param(LD_JSON, f'{{"@id":"x:g","http://www.w3.org/ns/prov#generatedAtTime":{{"@value":"{AT}","@type":"{DATE}"}},"@graph":{{"@id":"x:s","x:v":1}}}}', None, id="a timed graph"),
    pytest.param(TURTLE, f'<x:s> <http://e/seen> "{AT}"^^<{DATE}> .', "<http://e/seen>", id="a dateTime"),
    pytest.param(TURTLE, '<x:s> <http://e/v> 1 ; <http://e/timestamp> 1767225600 .', "<http://e/timestamp>", id="a name"),
    pytest.param(TURTLE, "<x:s> <http://e/at> <http://e/home> .", None, id="a place"),
    pytest.param(N_TRIPLES, f'<x:s> <http://e/p> "1" .\n<x:s> <http://e/seen> "{AT}"^^<{DATE}> .', "<http://e/seen>", id="lines"),
    pytest.param(NDJSON, f'{{"s":"<x:s>","p":"<http://e/at>","o":"\\"1\\"","at":"{AT}"}}', None, id="a time that is read"),
    pytest.param(RDF_XML, f'<rdf:RDF {RDF}><rdf:Description rdf:about="x:s" e:time="{AT}"/></rdf:RDF>', "<http://e/time>", id="XML"),
    pytest.param(TURTLE, "", None, id="nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("media_type", "body", "found"), ROWS)
def test_hints(media_type: str, body: str, found: str | None) -> None:
    batch = parse_body(body.encode(), media_type, default=None, arrived=7)
    assert time_hint(body.encode(), media_type, batch, 7) == found

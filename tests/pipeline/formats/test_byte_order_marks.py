"""Bodies, files and texts that begin with a byte order mark bring what they bring without it, and empty ones are
refused.
"""

import json
from codecs import BOM_UTF8
from pathlib import Path

import pytest

import epsparql
from pipeline.errors import FormatError
from pipeline.formats.background import read_graphs
from pipeline.mapping.stream_body import BodySettings, read_body, read_frame
from pipeline.replay.input_files import occurrences_of, read_mapping_file
from pipeline.replay.query_files import NamedFile, SourceFault, read_asked

OUTSIDE = Path(__file__).resolve().parents[4] / "shared/conformance/outside"
MAPPING = json.dumps({"base": "http://e/", "subject": "s", "properties": {"a": ":a"}})
EVENT = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t", "data": {"a": 1}}
BODIES = {
    "application/x-ndjson": '{"s":"<http://e/s>","p":"<http://e/p>","o":"_:b"}',
    "text/turtle": "@prefix : <http://e/> . :s :p [] .",
    "application/trig": "@prefix : <http://e/> . :g { :s :p 1 }",
    "application/n-triples": "<http://e/s> <http://e/p> _:b .",
    "application/n-quads": "<http://e/s> <http://e/p> <http://e/o> <http://e/g> .",
    "application/ld+json": '{"@id": "http://e/s", "http://e/p": 1}',
    "application/x-ld+ndjson": '{"@id": "http://e/s", "http://e/p": 1}',
    "application/rdf+xml": '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><e:T/></r:RDF>',
    "text/x-etalis-stream": "event(a(1),1).",
    "text/csv": "a,b\n1,2\n",
    "application/json": '[{"a": 1}]',
    "application/cloudevents+json": json.dumps(EVENT),
    "application/cloudevents-batch+json": json.dumps([EVENT]),
}
GRAPHS = ("text/turtle", "application/trig", "application/n-triples", "application/n-quads", "application/ld+json", "application/rdf+xml")


def rows_of(body: bytes, media_type: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = read_body(body, media_type, BodySettings("", MAPPING), default=None, arrived=7).mapped.batch.to_pylist()
    return found


@pytest.mark.parametrize("media_type", BODIES)
def test_the_mark_is_passed_over(media_type: str) -> None:
    body = BODIES[media_type].encode()
    assert rows_of(body, media_type)
    assert rows_of(BOM_UTF8 + body, media_type) == rows_of(body, media_type)
    if media_type in GRAPHS:
        assert read_graphs(BOM_UTF8 + body, media_type) == read_graphs(body, media_type)


@pytest.mark.parametrize("frame", ['{"id":"7"}\n' + BODIES["application/x-ndjson"], '{"format":"csv"}\na\n1\n'])
def test_the_mark_of_a_frame_is_passed_over(frame: str) -> None:
    marked, plain = (read_frame(mark + frame.encode(), BodySettings("", MAPPING), arrived=7, binary=False) for mark in (BOM_UTF8, b""))
    assert (marked.key, marked.mapped.batch) == (plain.key, plain.mapped.batch)


@pytest.mark.parametrize("body", [b"", b" \r\n", BOM_UTF8, BOM_UTF8 + b"\n"])
def test_an_empty_body_is_refused(body: bytes) -> None:
    for media_type in BODIES:
        with pytest.raises(FormatError, match="the body is empty"):
            rows_of(body, media_type)
    with pytest.raises(FormatError, match="the body is empty"):
        read_frame(body, BodySettings(), arrived=7, binary=False)


def test_files(tmp_path: Path) -> None:
    """Queries, programs, mappings, streams and background with a mark are read; an empty stream is refused with the
    file's name.
    """
    texts = {"q.rq": "SELECT * { ?s ?p ?o }", "q.event": "b(X) <- a(X).", "m.json": MAPPING}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(BOM_UTF8 + text.encode())
    assert read_asked(tmp_path / "q.rq")[0].text == texts["q.rq"]
    assert "\ufeff" not in read_asked(tmp_path / "q.event")[0].text
    assert read_mapping_file(tmp_path / "m.json").properties
    for suffix in ("ndjson", "ttl", "csv"):
        for content in (b"", BOM_UTF8 + b"\n"):
            (tmp_path / f"empty.{suffix}").write_bytes(content)
            with pytest.raises(SourceFault, match=rf"empty\.{suffix}: the file is empty"):
                occurrences_of(NamedFile("", tmp_path / f"empty.{suffix}"), read_mapping_file(tmp_path / "m.json") if suffix == "csv" else None)


def test_samples_from_outside() -> None:
    found = epsparql.run(OUTSIDE / "14-all.rq", OUTSIDE / "14-bom.ndjson", background=OUTSIDE / "14-bom.ttl")
    sent = [each for each in found["14-all"] if str(each["p"]) == "http://example.org/v"]
    assert [str(each["s"]) for each in sent] == ["http://example.org/a"], "the event and the background are one triple"
    found = epsparql.run(OUTSIDE / "13-digits.rq", OUTSIDE / "13-digits.ndjson")
    assert sorted((str(each["s"])[-2:], str(each["y"])) for each in found["13-digits"]) == [("i1", "2022"), ("i2", "2022")]

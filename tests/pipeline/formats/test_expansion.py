"""Small bodies whose terms, written out, are large: refused before they are built, in every format, with little
memory; what is shared costs once.
"""

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.formats.background import read_graphs
from pipeline.formats.body_parser import ARROW, LD_JSON, N_QUADS, N_TRIPLES, NDJSON, RDF_XML, TRIG, TURTLE, FormatError, parse_body
from tests.soak import is_full

pytestmark = pytest.mark.slow

LONG = "http://e/" + "x" * 200_000
MANY = range(3_000)
RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
SPENT_MB = 250
"""Which such a body of 300 KB may take at most; before there were bounds it took thousands."""


def views(encoded: bool) -> bytes:
    """An Arrow body of 10,000 views of one text."""
    text = f"<{LONG}>".encode()
    view = struct.pack("<i4sii", len(text), text[:4], 0, 0)
    subjects = pa.Array.from_buffers(pa.string_view(), 10_000, [None, pa.py_buffer(view * 10_000), pa.py_buffer(text)])
    others = [pa.array([term] * 10_000).dictionary_encode() for term in ("<x:p>", "<x:o>")]
    column = pa.DictionaryArray.from_arrays(pa.array(range(10_000), pa.int32()), subjects) if encoded else subjects
    return stream_of([pa.RecordBatch.from_arrays([column, *others], list("spo"))])


def stream_of(batches: list[pa.RecordBatch], **options: bool) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def deltas() -> bytes:
    """An Arrow body whose dictionary of 200 KB is added to 2,000 times, each of which makes it anew."""
    batches, terms = [], [f"<{LONG}>"]
    for number in range(2_000):
        terms.append(f"<x:{number}>")
        column = pa.DictionaryArray.from_arrays(pa.array([len(terms) - 1], pa.int32()), pa.array(terms))
        batches.append(pa.RecordBatch.from_arrays([column, pa.array(["<x:p>"]), pa.array(["<x:o>"])], list("spo")))
    return stream_of(batches, emit_dictionary_deltas=True)


def ld(context: dict[str, object], *nodes: object, **members: object) -> str:
    return json.dumps({"@context": context, **({"@graph": nodes} if nodes else {}), **members})


def xml(attributes: str, inner: str) -> str:
    return f"<rdf:RDF {RDF} {attributes}>{inner}</rdf:RDF>"


TURTLE_NAMES = f"@prefix p: <{LONG}> .\n" + "".join(f"p:a{k} p:b p:c .\n" for k in MANY)
TEXTS = [
    pytest.param(TURTLE, TURTLE_NAMES, id="a prefix"),
    pytest.param(TURTLE, f"@prefix p: <{LONG}> .\n" + "p:a p:a p:a .\n" * 2_500, id="the same long names again and again"),
    pytest.param(TURTLE, f"@base <{LONG}/> .\n" + "".join(f"<a{k}> <x:b> <x:c> .\n" for k in MANY), id="a base"),
    pytest.param(TURTLE, f"@prefix p: <{LONG}> .\n<x:a> <x:b> " + ",".join(f'"{k}"^^p:d' for k in MANY) + " .", id="datatypes"),
    pytest.param(TURTLE, f"@base <{LONG}/> .\n" + "".join(f"@prefix p{k}: <a> .\n" for k in MANY), id="prefixes upon a base, and no triple"),
    pytest.param(TURTLE, "base # why\n<x:/>\n" + "".join(f"@base <yyyy/> . @prefix p{k}: <a> .\n" for k in range(20_000)), id="bases upon bases"),
    pytest.param(TURTLE, f"@prefix p: <{LONG}> .\n<x:a> p:a " + "[ p:b " * 3_000, id="predicates of open brackets"),
    pytest.param(TRIG, f"@prefix p: <{LONG}> .\n" + "".join(f"p:a{k} {{ <x:a> <x:b> <x:c> }}\n" for k in MANY), id="graphs"),
    pytest.param(LD_JSON, ld({"@vocab": LONG}, **{f"m{k}": k for k in MANY}), id="a vocabulary"),
    pytest.param(LD_JSON, ld({"@vocab": LONG}, **{f"m{k}": k for k in MANY}).replace("/e/x", r"/e/\u0078"), id="a vocabulary with an escape"),
    pytest.param(LD_JSON, ld({"@base": LONG + "/", "p": "x:p"}, *({"@id": f"s{k}", "p": 1} for k in MANY)), id="a base in JSON"),
    pytest.param(LD_JSON, ld({"p": {"@id": "x:p", "@type": LONG}}, p=[str(k) for k in MANY]), id="a datatype in JSON"),
    pytest.param(LD_JSON, ld({"q": {"@id": "x:p", "@context": {"@vocab": LONG}}}, *({"q": {"a": 1}} for _ in MANY)), id="a context within a context"),
    pytest.param(LD_JSON, ld({"p0": "x:", **{f"p{k}": f"p{k - 1}:{'x' * 400}/" for k in range(1, 400)}}, *({f"p399:{k}": 1} for k in MANY)), id="a chain"),
    pytest.param(LD_JSON, json.dumps({"@id": LONG, "x:p": list(MANY)}), id="one long subject in JSON"),
    pytest.param(RDF_XML, xml(f'xmlns:a="{LONG}"', "<rdf:Description>" + "".join(f"<a:p{k}/>" for k in MANY) + "</rdf:Description>"), id="a namespace"),
    pytest.param(RDF_XML, xml(f'xml:base="{LONG}/"', "".join(f'<rdf:Description rdf:about="s{k}" {RDF} rdf:value="1"/>' for k in MANY)), id="a base in XML"),
    pytest.param(RDF_XML, f'<!DOCTYPE r [<!ENTITY e "{LONG}">]>' + xml("", "<rdf:Description rdf:value='&e;'/>" * 3_000), id="an entity"),
    pytest.param(RDF_XML, f'<rdf:RDF {RDF} xmlns:a="{LONG}">' + "<rdf:Description><a:p>" * 200, id="names of open elements"),
    pytest.param(NDJSON, json.dumps({"triples": TURTLE_NAMES}), id="triples in a line"),
    pytest.param(NDJSON, "".join(json.dumps({"triples": f"@prefix p: <{LONG[:20_000]}{k}> ." + "".join(f"p:{n} p:b p:c ." for n in range(100))}) + "\n" for k in range(40)), id="triples in many lines"),
    pytest.param(f"{TURTLE}; version=1.2-messages", f"@prefix p: <{LONG[:5_000]}> .\n" + "MESSAGE\n".join(f"p:a{k} p:b{k} p:c{k} .\n" for k in MANY), id="messages"),
]  # fmt: skip


@pytest.mark.parametrize(("media_type", "body"), TEXTS)
def test_what_expands_too_far_is_refused(media_type: str, body: str) -> None:
    with pytest.raises(FormatError, match=r"written out, the terms of the body take more than|too many prefixes") as caught:
        parse_body(body.encode(), media_type, default=None, arrived=7)
    assert caught.value.code in ("expansion", "messages")


@pytest.mark.parametrize(
    "make_body", [lambda: views(encoded=True), lambda: views(encoded=False), deltas], ids=["views of a dictionary", "views", "dictionaries made anew"]
)
def test_what_expands_too_far_in_arrow_is_refused(make_body: Callable[[], bytes]) -> None:
    body = make_body()
    with pytest.raises(FormatError, match="written out, the terms of the body take more than"):
        parse_body(body, ARROW, default=None, arrived=7)


GRAPHS = [row for row in TEXTS if str(row.values[0]) != NDJSON and "version" not in str(row.values[0])]
SOME_GRAPHS = [*GRAPHS[:2], *(next(row for row in GRAPHS if row.values[0] == kind) for kind in (TRIG, LD_JSON, RDF_XML))]


@pytest.mark.parametrize(("media_type", "body"), GRAPHS if is_full() else SOME_GRAPHS)
def test_a_graph_that_expands_too_far_is_refused(media_type: str, body: str) -> None:
    """Events and the background share a reader: a row of each format shows that its bound holds here, too, and one
    that repetition counts.
    """
    with pytest.raises(FormatError) as caught:
        read_graphs(body.encode(), media_type)
    assert caught.value.code == "expansion"


PROBE = """
import resource, sys
from pipeline.formats.body_parser import FormatError, parse_body
from pipeline.formats.background import read_graphs
from tests.pipeline.formats import test_expansion
from tests.soak import is_full
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for row in test_expansion.TEXTS[:: 1 if is_full() else 3]:
    media_type, body = row.values
    for read in (lambda: parse_body(body.encode(), media_type, default=None, arrived=7), lambda: read_graphs(body.encode(), media_type)):
        try:
            read()
        except FormatError:
            pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_refusing_takes_little_memory() -> None:
    found = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert int(found.stdout) < SPENT_MB


LONG_TOKENS = (
    """
import resource
from pipeline.formats.body_parser import FormatError, parse_body
from tests.pipeline.formats.test_expansion import LD_JSON, TURTLE
size = 3_000_000
parse_body(b"<x:a> <x:b> 1 .", TURTLE, default=None, arrived=7)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for media_type, body in (
    (TURTLE, b"\\n" * size + b"<x:a> <x:b> 1 ."),
    (TURTLE, b'VERSION "1.2-messages" <x:a> <x:b> """
    ' + b"x" * size + b'
    """ .'),
    (TURTLE, b'VERSION "1.2-messages" <x:a> <x:b> ' + b"a." * (size // 2)),
    (LD_JSON, b'{"@id": "x:a", "x:b": "' + b"x" * size + b'"}'),
    (LD_JSON, b'{"@id": "x:a", "x:b": "' + b"\\\\n" * (size // 2) + b'"}'),
):
    try:
        parse_body(body, media_type, default=None, arrived=7)
    except FormatError:
        pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""
)


def test_long_tokens_take_memory_in_proportion() -> None:
    """A regular expression that notes a place to return to for each character took 120 bytes for each."""
    found = subprocess.run([sys.executable, "-c", LONG_TOKENS], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert int(found.stdout) < 60


def test_what_rows_share_costs_once() -> None:
    """One subject of 200 KB, or one dictionary for many batches, is no expansion."""
    assert parse_body(f"<{LONG}> <x:p> {','.join(map(str, MANY))} .".encode(), TURTLE, default=None, arrived=7).num_rows == len(MANY)
    column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array([f"<{LONG}>"]))
    batch = pa.RecordBatch.from_arrays([column, pa.array(["<x:p>"]), pa.array(["<x:o>"])], list("spo"))
    assert parse_body(stream_of([batch] * 1_000), ARROW, default=None, arrived=7).num_rows == 1_000


def test_usual_bodies_of_every_format_pass() -> None:
    prefixes = "".join(f"@prefix p{k}: <http://example.org/vocabulary/{k}#> .\n" for k in range(40))
    turtle = prefixes + "".join(f"p1:sensor{k} p2:value [ p3:of {k}.5 ; p3:list ( 1 2 3 ) ] .\n" for k in range(5_000))
    assert parse_body(turtle.encode(), TURTLE, default=None, arrived=7).num_rows == 45_000
    nodes = ({"@id": f"ex:s{k}", "@type": "Reading", "temp": k, "note": "many words in a row " * 5, "data": "QUJD" * 200} for k in range(2_000))
    linked = ld({"@vocab": "http://example.org/vocabulary/", "ex": "http://example.org/station/", "temp": "ex:temp"}, *nodes)
    assert parse_body(linked.encode(), LD_JSON, default=None, arrived=7).num_rows == 8_000
    lines = "".join(f'_:b{k} <http://e/p> "{k}" .\n' for k in range(5_000))
    assert {parse_body(lines.encode(), kind, default=None, arrived=7).num_rows for kind in (N_TRIPLES, N_QUADS)} == {5_000}


# ---------------------------------------------------------------- declarations and depth of XML
ENTITIES = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10 if k else "haha"}">' for k in range(10))
USED = f"<rdf:RDF {RDF}><rdf:Description rdf:about='x:s'><rdf:value>&e9;</rdf:value></rdf:Description></rdf:RDF>"
DECLARED = [
    pytest.param(f"<!DOCTYPE r [{ENTITIES}]>{USED}", "entity", "'e1' stands for more than text", id="entities of entities"),
    pytest.param(f"<!doctype r [{ENTITIES}]>{USED}", "rdf", "not well-formed", id="in small letters"),
    pytest.param(f"<!DOCTYPE r [<!-- {ENTITIES} -->]>{USED}", "rdf", "undefined entity", id="in a comment of the DTD"),
    pytest.param(f"<!DOCTYPE r SYSTEM 'http://127.0.0.1/x'>{USED}", "entity", "nothing is fetched", id="a DTD elsewhere"),
    pytest.param(f"<!DOCTYPE r [<!ENTITY e9 SYSTEM 'file:///etc/passwd'>]>{USED}", "entity", "nothing is fetched", id="a file"),
    pytest.param(f"<!DOCTYPE r [<!ENTITY % e9 'x'> %e9;]>{USED}", "entity", "nothing is fetched", id="a part of the DTD"),
    pytest.param(f"<!DOCTYPE r [<!ENTITY e9 '&#38;e8;'>]>{USED}", "entity", "more than text", id="an entity of an escaped one"),
    pytest.param(f"<!DOCTYPE r [<!ENTITY e9 '<rdf:li/>'>]>{USED}", "entity", "more than text", id="elements"),
    pytest.param(f"<rdf:RDF {RDF}>" + "<rdf:Description><rdf:value>" * 10_000, "too-deep", "deeper than 512", id="20,000 levels"),
    pytest.param(f"<!doctype r><rdf:RDF {RDF}>" + "<rdf:Description><rdf:value>" * 10_000, "rdf", "not well-formed", id="20,000 levels hidden"),
    pytest.param(
        USED.replace("&e9;", "x").replace("<rdf:RDF", "<?xml version='1.0' encoding='x-none'?><rdf:RDF"),
        "rdf",
        "unknown encoding",
        id="no such encoding",
    ),
]


@pytest.mark.parametrize(
    "read", [lambda body: parse_body(body, RDF_XML, default=None, arrived=7), lambda body: read_graphs(body, RDF_XML)], ids=["events", "background"]
)
@pytest.mark.parametrize(("body", "code", "message"), DECLARED)
def test_declarations_and_depth_of_xml_are_refused_with_their_place(read, body: str, code: str, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(FormatError, match=message) as caught:
        read(body.encode())
    assert caught.value.code == code
    assert caught.value.line is not None


def test_plain_entities_are_text_wherever_they_stand() -> None:
    body = f"""<!DOCTYPE r [<!ENTITY e "http://e/"><!ATTLIST r x CDATA "y">]>
        <rdf:RDF {RDF}><!-- &e; --><rdf:Description rdf:about="&e;s"><rdf:value>a &amp;lt; "&e;" <![CDATA[&e;<]]></rdf:value></rdf:Description></rdf:RDF>"""
    (line,) = read_graphs(body.encode(), RDF_XML)[""].splitlines()
    assert line == r"""<http://e/s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#value> "a &lt; \"http://e/\" &e;<" ."""

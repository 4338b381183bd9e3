"""Bodies to occurrences: what each format says, and how each fault is placed."""

import json
import re
import time
from hashlib import sha1
from pathlib import Path

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.expressions.literals import parse_term
from engine.messages import OCCURRENCES, Micros
from epsparql.terms import Literal
from pipeline.formats.batches import ntriples
from pipeline.formats.batches.timestamps import instant, iso
from pipeline.formats.body_parser import (
    ARROW,
    MEDIA_TYPES,
    N_QUADS,
    N_TRIPLES,
    NDJSON,
    NDJSON_LD,
    TRIG,
    TURTLE,
    FormatError,
    Interval,
    interval_of,
    media_type_of,
    parse_body,
    parse_frame,
)
from tests.soak import examples

T1, T2 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"
AT1, AT2 = instant(T1), instant(T2)
ARRIVED = 7
PREFIXES = (
    "@prefix : <http://e/> .\n@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n@prefix prov: <http://www.w3.org/ns/prov#> .\n"
    "@prefix time: <http://streamreasoning.org/timeVocab#> .\n"
)
Row = tuple[str, str, str, str | None, Micros, Micros]


def parse(body: str | bytes, media_type: str = NDJSON, default: Interval | None = None) -> list[Row]:
    return listed(parse_body(body if isinstance(body, bytes) else body.encode(), media_type, default=default, arrived=ARRIVED))


def listed(batch: pa.RecordBatch) -> list[Row]:
    assert batch.schema.equals(OCCURRENCES)
    batch.validate(full=True)
    assert not any(batch.column("late").to_pylist())
    times = (batch.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    return list(zip(*(batch.column(name).to_pylist() for name in "spog"), *times, strict=True))


def line(**fields: str | None) -> str:
    return json.dumps({"s": "<http://e/s>", "p": "<http://e/p>", "o": "<http://e/o>"} | fields, ensure_ascii=False)


def row(o: str = "<http://e/o>", start: Micros = ARRIVED, end: Micros | None = None, g: str | None = None) -> Row:
    return "<http://e/s>", "<http://e/p>", o, g, start, start if end is None else end


ACCEPTED = [
    pytest.param(line(at=T1), [row(start=AT1)], id="at"),
    pytest.param(line(start=T1, end=T2), [row(start=AT1, end=AT2)], id="start and end"),
    pytest.param(line(start=T1, end=T1), [row(start=AT1)], id="an instant as an interval"),
    pytest.param(line(), [row()], id="no time is the time of arrival"),
    pytest.param(line(at="2026-01-01T01:00:01+01:00"), [row(start=AT1)], id="a zone"),
    pytest.param(line(g="<http://e/g>", at=T1), [row(g="<http://e/g>", start=AT1)], id="an event graph"),
    pytest.param(line(g=None, at=T1), [row(start=AT1)], id="null is no graph"),
    pytest.param(f"\n{line(at=T1)}\r\n  \n{line(at=T2)}", [row(start=AT1), row(start=AT2)], id="blank lines and CRLF"),
    pytest.param(line(at=T1) + "\n" + line(start=T1, end=T2) + "\n" + line(), [row(start=AT1), row(start=AT1, end=AT2), row()], id="mixed times"),
    pytest.param("", [], id="nothing"),
    pytest.param(line(o='"a"'), [row('"a"')], id="a string"),
    pytest.param(line(o='"a"^^<http://www.w3.org/2001/XMLSchema#string>'), [row('"a"')], id="xsd:string is left out"),
    pytest.param(line(o='"a"@EN-us'), [row('"a"@en-us')], id="language tags are in small letters"),
    pytest.param(line(o='"\\u00e9\\t\\U0001F600"'), [row('"é\\t😀"')], id="escapes only where they must be"),
    pytest.param(line(o='"\u0001\t"'), [row('"\\u0001\\t"')], id="control characters are escaped"),
    pytest.param(
        line(o='"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'), [row('"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>')], id="as written"
    ),
    pytest.param(line(o="<http://e/\\u00e9>"), [row("<http://e/é>")], id="escapes in an IRI"),
    pytest.param(line(o="<urn:x:y>"), [row("<urn:x:y>")], id="a URN"),
    pytest.param(
        json.dumps({"triples": "@prefix e: <http://e/> . e:s e:p e:o, 1.50 .", "at": T1}),
        [row(start=AT1), row('"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>', AT1)],
        id="a message in Turtle",
    ),
    pytest.param(
        json.dumps({"triples": "<http://e/s> <http://e/p> <http://e/o> .", "g": "<http://e/g>", "start": T1, "end": T2}),
        [row(start=AT1, end=AT2, g="<http://e/g>")],
        id="a message in a graph",
    ),
    pytest.param(json.dumps({"triples": ""}), [], id="an empty message"),
]


@pytest.mark.parametrize(("body", "rows"), ACCEPTED)
def test_ndjson(body: str, rows: list[Row]) -> None:
    assert parse(body) == rows


GOOD = line(at=T1)
# Where the fault is, a mark stands, which is taken out before parsing.
REFUSED = [
    pytest.param('{"s":"<http://e/s>",§}', "json", "trailing comma", id="malformed JSON"),
    pytest.param(GOOD + '\n{"s" §"x"}', "json", "expected ':'", id="malformed in line 2"),
    pytest.param('{"s":"é","p":§x}', "json", "invalid character", id="columns are code points"),
    pytest.param('{"s":"<http://e/s>"§', "json", "truncated", id="cut off"),
    pytest.param("§[1]", "json", "Expected `object`", id="no object"),
    pytest.param(GOOD + " §" + GOOD, "json", "trailing characters", id="two on a line"),
    pytest.param('{"s":§1}', "term", "a literal cannot be the subject", id="a number"),
    pytest.param('{"p":"x", "s": §null}', "term", "null is no term", id="null is no term"),
    pytest.param('{"s":"x",§"q":1}', "field", "unknown field 'q'", id="unknown field"),
    pytest.param('{§"id":"x"}', "field", "unknown field 'id'", id="an id is for WebSocket frames"),
    pytest.param('§{"s":"<http://e/s>","p":"<http://e/p>"}', "field", "'o' is missing", id="missing object"),
    pytest.param('{§"q":1,"\\ud8":2}', "field", "unknown field 'q'", id="a malformed name after the fault"),
    pytest.param('{§"\\u0071":1}', "field", "unknown field 'q'", id="a name with escapes"),
    pytest.param("§{}", "field", "'s' is missing", id="empty object"),
    pytest.param(line(at=T1, end="§" + T2), "field", "'at' and 'end'", id="at excludes end"),
    pytest.param(line(start="§" + T1), "field", "'start' comes with 'end'", id="start alone"),
    pytest.param(line(end="§" + T1), "field", "'end' comes with 'start'", id="end alone"),
    pytest.param(line(start="§" + T2, end=T1), "interval", "starts at .* is after its end", id="start after end"),
    pytest.param(line(at="§2026-01-01T00:00:01.1234567Z"), "time", '"round": "microsecond"', id="seven digits"),
    pytest.param(line(at="§yesterday"), "time", "no xsd:dateTime", id="no time"),
    pytest.param(line(at="§"), "time", "no xsd:dateTime", id="an empty time"),
    pytest.param(f"{GOOD}\n{GOOD}\n" + line(o="§<http//e/o>") + f"\n{GOOD}", "term", "No scheme", id="a bad term in line 3"),
    pytest.param(line(o='§"\\"'), "term", "no term", id="an unfinished string"),
    pytest.param(line(o='"abc§\\q"'), "term", "escape", id="the place within a term, JSON escapes counted"),
    pytest.param(line(o='"').replace('\\"', '\\"\\u00e9\\ud83d\\ude00§\\\\q\\"'), "term", "escape", id="a surrogate pair is one code point"),
    pytest.param(line(o='§"a" . #'), "term", "not one term", id="a comment smuggled in"),
    pytest.param(line(o="§<http://e/o> .\n<http://e/s> <http://e/p> <http://e/o>"), "term", "not one term", id="a statement smuggled in"),
    pytest.param(GOOD.replace('"<http://e/o>"', '§" <http://e/o>"'), "term", "may be the text", id="space around a term"),
    pytest.param(
        GOOD.replace('"<http://e/o>"', '§"e:o"'), "term", 'may be the text .* or the IRI "<e:o>" or a name whose prefix', id="an undeclared prefix"
    ),
    pytest.param('{§"prefixes":{"a":"b"}}', "field", "'a' stands for 'b', which is no absolute IRI", id="a prefix of no IRI"),
    pytest.param('{§"prefixes":{"1":"http://e/"}}', "field", "'1' is no prefix", id="no prefix"),
    pytest.param('{"prefixes":{}}\n{§"prefixes":{}}', "field", "only the first line declares prefixes", id="prefixes twice"),
    pytest.param('{§"prefixes":{},"s":"<x:s>"}', "field", "only the first line declares prefixes, and it has no event", id="prefixes in an event"),
    pytest.param('{"prefixes":§{"a":1}}', "json", "Expected `str`", id="a prefix that is no string"),
    pytest.param(line(o="§<o>"), "term", "No scheme", id="a relative IRI"),
    pytest.param(line(o="§<http://e/ o>"), "term", "no term", id="a space in an IRI"),
    pytest.param(line(o="§<<( <x:a> <x:b> <x:c> )"), "term", "no triple term", id="an unfinished triple term"),
    pytest.param(line(o='"a"@§e_n'), "term", "no term", id="a bad language tag"),
    pytest.param(line(s='§"a"'), "term", "a literal cannot be the subject", id="a literal as subject"),
    pytest.param(line(p="§_:b"), "term", "a blank node cannot be the predicate", id="a blank node as predicate"),
    pytest.param(line(g='§"a"'), "term", "a literal cannot be the graph", id="a literal as graph"),
    pytest.param('{"triples":"", "s":"§<x:s>"}', "field", "'triples' and 's'", id="triples exclude terms"),
    pytest.param('{"triples":"<x:s> <x:p> 1 .\\n\\t§e:s <x:p> 1 ."}', "rdf", "prefix", id="the place within a message"),
    pytest.param(line(o='§"' + "a" * ntriples.MAX_TERM + '"'), "term", "the limit", id="a term too long"),
    pytest.param('{"s":' + "[" * 100_000 + "§", "json", "recursion", id="deep nesting"),
]


def unmarked(text: str) -> tuple[str, int, int]:
    """The text without its mark, and the mark's line and column."""
    before, _, after = text.partition("§")
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.mark.parametrize(("marked", "code", "message"), REFUSED)
def test_a_fault_of_ndjson_is_placed(marked: str, code: str, message: str) -> None:
    body, number, column = unmarked(marked)
    with pytest.raises(FormatError, match=message) as caught:
        parse(body)
    assert (caught.value.code, caught.value.line, caught.value.column) == (code, number, column), str(caught.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [('[{"s":"<a>"}]', "one JSON object per line"), ('{"s":"<urn:a>","p":"<urn:p>","o":null}', "a prefixed name, a number"), ('{"at":1}', "")],
)
def test_what_ndjson_wants_instead_is_told(body: str, expected: str) -> None:
    with pytest.raises(FormatError) as fault:
        parse(body, NDJSON)
    assert expected in fault.value.expected if expected else fault.value.expected == ""


def test_bytes_that_are_no_text_are_placed() -> None:
    with pytest.raises(FormatError, match="not UTF-8") as caught:
        parse(GOOD.encode() + b'\n{"s":"\xc3\xa9\xff"}')
    assert (caught.value.line, caught.value.column) == (2, 8)


def test_forgotten_terms_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ntriples, "CACHED", 2)
    terms = ntriples.CanonicalTerms("<", "predicate")
    assert [terms[f"<x:{n % 3}>"] for n in range(9)] == [f"<x:{n % 3}>" for n in range(9)]
    assert len(terms) <= 2


def test_blank_nodes_belong_to_their_message_and_a_resent_message_is_the_same() -> None:
    first, other = line(s="_:x", o="_:y", at=T1), line(s="_:x", o="_:y", at=T2)
    (a, b) = parse(first + "\n" + other)
    assert a[0] != b[0]
    assert a[0] != a[2]
    assert a[0].endswith("x")
    assert parse(other + "\n" + first + "\n" + GOOD)[1] == a


def test_blank_nodes_of_an_untimed_message_depend_on_its_time() -> None:
    body = "_:x <http://e/p> [] ."
    one, two = (parse(body, TURTLE, Interval(n, n)) for n in (1, 2))
    assert {row[0] for row in one}.isdisjoint({row[0] for row in two})
    assert one == parse(body, TURTLE, Interval(1, 1))


def test_nameless_blank_nodes_are_numbered_apart_from_named_ones() -> None:
    body = json.dumps({"triples": "_:b0 <x:p> [ <x:q> (1 2) ] .", "at": T1})
    found = parse(body)
    nodes = {term for s, _, o, *_ in found for term in (s, o) if term.startswith("_:")}
    assert len(nodes) == 4
    assert parse(body) == found
    for node in nodes:
        assert ntriples.canonical(node) == node


@pytest.mark.parametrize("written", [":s{0} :p [] .", ":s{0} :p _:b{0} ."])
def test_many_blank_nodes_cost_in_proportion(written: str) -> None:
    def took(n: int) -> float:
        body = "@prefix : <http://e/> .\n" + "\n".join(written.format(k) for k in range(n))
        began = time.process_time()
        assert len({o for _, _, o, *_ in parse(body, TURTLE, Interval(1, 1))}) == n
        return time.process_time() - began

    took(100)
    assert took(40_000) < 30 * took(4_000)  # by the square it would be a hundred times as long


TRIG_BODY = (
    PREFIXES + ':g1 prov:generatedAtTime "2026-01-01T00:00:01Z"^^xsd:dateTime .\n:g1 { :a :b 1 }\n'
    ':g2 time:startsAtTime "2026-01-01T00:00:01Z"^^xsd:dateTime ; time:endsAtTime "2026-01-01T00:00:02"^^xsd:dateTime ; :about :x .\n'
    ":g2 { :c :d :e } :g3 { :f :g :h } :i :j :k ."
)


def test_timed_graphs() -> None:
    expected = {
        ("<http://e/a>", "<http://e/b>", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', "<http://e/g1>", AT1, AT1),
        ("<http://e/c>", "<http://e/d>", "<http://e/e>", "<http://e/g2>", AT1, AT2),
        ("<http://e/g2>", "<http://e/about>", "<http://e/x>", None, 3, 4),
        ("<http://e/f>", "<http://e/g>", "<http://e/h>", "<http://e/g3>", 3, 4),
        ("<http://e/i>", "<http://e/j>", "<http://e/k>", None, 3, 4),
    }
    assert set(parse(TRIG_BODY, TRIG, Interval(3, 4))) == expected
    n_quads = ox.serialize(ox.parse(TRIG_BODY.encode(), ox.RdfFormat.TRIG), format=ox.RdfFormat.N_QUADS)
    assert n_quads is not None
    assert set(parse(n_quads, N_QUADS, Interval(3, 4))) == expected
    assert {row[4] for row in parse(n_quads, N_QUADS)} == {AT1, ARRIVED}


def test_a_time_for_a_graph_that_is_not_there_is_a_triple_like_others() -> None:
    assert len(parse(PREFIXES + f':g prov:generatedAtTime "{T1}"^^xsd:dateTime . :a :b :c .', TRIG)) == 2


def test_a_blank_node_may_name_a_timed_graph() -> None:
    body = PREFIXES + f'_:g prov:generatedAtTime "{T1}"^^xsd:dateTime . _:g {{ :a :b _:g }}'
    ((_, _, o, g, start, _),) = parse(body, TRIG)
    assert (o, start) == (g, AT1)
    assert parse(body, TRIG, Interval(1, 2)) == parse(body, TRIG)


BAD_TRIG = [
    pytest.param(f':g prov:generatedAtTime "{T1}"^^xsd:dateTime, "§{T2}"^^xsd:dateTime . :g {{ :a :b :c }}', "two times", id="two times"),
    pytest.param(
        f':g prov:generatedAtTime "§{T1}"^^xsd:dateTime ; time:endsAtTime "{T2}"^^xsd:dateTime . :g {{ :a :b :c }}', "both", id="both kinds"
    ),
    pytest.param(f':g time:endsAtTime "§{T2}"^^xsd:dateTime . :g {{ :a :b :c }}', "only one of", id="an end without a start"),
    pytest.param(
        f':g time:endsAtTime "{T1}"^^xsd:dateTime ; time:startsAtTime "§{T2}"^^xsd:dateTime . :g {{ :a :b :c }}', "starts after", id="start after end"
    ),
    pytest.param(':g prov:generatedAtTime "§noon" . :g { :a :b :c }', "no time", id="a string"),
    pytest.param(":g prov:generatedAtTime <§http://e/noon> . :g { :a :b :c }", "no time", id="an IRI"),
    pytest.param(
        ':g prov:generatedAtTime "§2026-01-01T00:00:00.1234567Z"^^xsd:dateTime . :g { :a :b :c }', '"round": "microsecond"', id="seven digits"
    ),
    pytest.param(":a :b :c .\n:é §x:b :c .", "prefix", id="unknown prefix"),
    pytest.param(':g prov:generatedAtTime §"" . :g { :a :b :c }', "no time", id="an empty string"),
    pytest.param(":a :b '§" + "x" * 300_000 + "' .", "the limit", id="a term too long"),
    pytest.param("§'a' :b :c .", "not a valid subject", id="a literal as subject"),
    pytest.param(":a §_:b :c .", "predicate", id="a blank node as predicate"),
    pytest.param(":g { :a :b :c §", "end", id="cut off"),
]


@pytest.mark.parametrize(("marked", "message"), BAD_TRIG)
def test_a_fault_of_trig_is_placed(marked: str, message: str) -> None:
    body, number, column = unmarked(PREFIXES + marked)
    with pytest.raises(FormatError, match=message) as caught:
        parse(body, TRIG)
    assert (caught.value.line, caught.value.column) == (number, column), str(caught.value)


def test_a_fault_of_n_triples_and_of_turtle_is_placed() -> None:
    with pytest.raises(FormatError) as caught:
        parse("<x:a> <x:b> <x:c> .\n<x:a> <x:b> <c> .", N_TRIPLES)
    assert (caught.value.line, caught.value.column) == (2, 13)
    with pytest.raises(FormatError) as caught:
        parse("<x:a> <x:b> <x:c> .\n<x:g> { <x:a> <x:b> <x:c> }", TURTLE)
    assert caught.value.line == 2
    with pytest.raises(FormatError, match="UTF-8"):
        parse(b"<x:a> <x:b> '\xff' .", TURTLE)


def test_deep_turtle_neither_overflows_nor_stalls() -> None:
    assert len(parse("<x:a> <x:b> " + "(" * 20_000 + ")" * 20_000 + " .", TURTLE)) > 20_000


def test_media_types() -> None:
    assert [media_type_of(f"dir/a.{suffix}") for suffix in ("ndjson", "nt", "TTL", "trig", "nq", "arrows")] == [
        NDJSON,
        N_TRIPLES,
        TURTLE,
        TRIG,
        N_QUADS,
        ARROW,
    ]
    assert parse("<x:a> <x:b> <x:c> .", "Text/Turtle; charset=utf-8") == [("<x:a>", "<x:b>", "<x:c>", None, ARRIVED, ARRIVED)]
    for refuse in (lambda: media_type_of("a.csv"), lambda: parse("", "text/csv")):
        with pytest.raises(FormatError) as caught:
            refuse()
        assert caught.value.code == "media-type"


def test_the_interval_of_a_request() -> None:
    assert interval_of(None, None, None) is None
    assert interval_of(T1, None, None) == Interval(AT1, AT1)
    assert interval_of(None, T1, T2) == Interval(AT1, AT2)
    for given_ in ((T1, T1, None), (None, T1, None), (None, None, T1), ("now", None, None), (None, T2, T1)):
        with pytest.raises(FormatError):
            interval_of(*given_)


def test_a_frame_may_carry_an_id() -> None:
    batch, identity, _ = parse_frame(f'{{"id":"7"}}\n{GOOD}'.encode(), arrived=ARRIVED)
    assert (listed(batch), identity) == ([row(start=AT1)], "7")
    batch, identity, _ = parse_frame(line(id="8").encode(), arrived=ARRIVED)
    assert (listed(batch), identity) == ([row()], "8")
    assert parse_frame(GOOD.encode(), arrived=ARRIVED)[1] is None
    with pytest.raises(FormatError):
        parse_frame(b'{"id":7}', arrived=ARRIVED)
    assert parse_frame(line(id="x" * 255).encode(), arrived=ARRIVED)[1] == "x" * 255
    for long in (f'\n{{"id":"{"x" * 256}"}}\n{GOOD}', f"\n {line(id='x' * 256)}"):
        with pytest.raises(FormatError, match="more than 255 characters") as fault:
            parse_frame(long.encode(), arrived=ARRIVED)
        assert (fault.value.line, fault.value.column) == (2, long.index('"xx'))


# ---------------------------------------------------------------- round trips
IRIS = st.sampled_from(
    ["http://e/a", "http://e/é", "urn:x:1", "http://e:80/a?b=c#d", "http://[::1]/", "mailto:a@b", "http://e/%C3%A9", "http://e/a'b"]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LITERALS = (
    st.builds(ox.Literal, TEXTS)
    | st.builds(lambda text, tag: ox.Literal(text, language=tag), TEXTS, st.sampled_from(["en", "de-AT", "zh-Hant"]))
    | st.builds(lambda text, iri: ox.Literal(text, datatype=ox.NamedNode(iri)), TEXTS, IRIS)
)
NODES = st.builds(ox.NamedNode, IRIS)
INSTANTS = st.integers(-(10**17), 10**17)
EVENTS = st.lists(st.tuples(NODES, NODES, NODES | LITERALS, st.none() | NODES, st.tuples(INSTANTS, INSTANTS).map(sorted)), max_size=6)
Event = tuple[ox.NamedNode, ox.NamedNode, ox.NamedNode | ox.Literal, ox.NamedNode | None, list[int]]


@settings(max_examples=examples(150))
@given(EVENTS, st.booleans())
def test_ndjson_gives_back_what_was_written(events: list[Event], ascii_only: bool) -> None:
    fields = [
        {"s": str(s), "p": str(p), "o": str(o), "start": iso(start), "end": iso(end)} | ({"g": str(g)} if g else {})
        for s, p, o, g, (start, end) in events
    ]
    body = "\n".join(json.dumps(each, ensure_ascii=ascii_only) for each in fields)
    assert parse(body) == [(str(s), str(p), str(o), str(g) if g else None, start, end) for s, p, o, g, (start, end) in events]


@given(LITERALS)
def test_one_literal_has_one_text_in_the_pipeline_and_in_the_language(literal: ox.Literal) -> None:
    canonical = ntriples.canonical(str(literal))
    assert canonical == str(Literal(literal.value, literal.datatype.value, literal.language))
    assert ntriples.canonical(canonical) == canonical


TAGS = st.sampled_from(
    ["en", "DE-at", "x-private", "abcdefgh-12345678", "abcdefghi", "en-abcdefghi", "e1", "en-", "en--ltr", "ar--rtl", "en" + "-a" * 999]
)
LEXICALS = st.text(alphabet='ab\\"\t\x7f\x85\u2028\ufffe\U0001f600u0041', max_size=6)
TERMS = (
    st.text(alphabet='<>"\\^@_:.#- abuU0{}é\n', max_size=14)
    | st.builds('"{}"@{}'.format, LEXICALS, TAGS)
    | st.builds('"{}"^^<x:{}>'.format, LEXICALS, st.text(alphabet="a/é%[]: \\u0041\ue000", max_size=6))
)


@given(TERMS)
def test_what_is_no_term_is_refused_and_what_is_one_is_canonical(text: str) -> None:
    try:
        canonical = ntriples.canonical(text)
    except FormatError:
        return
    (quad,) = ox.parse(f"<x:s> <x:p> {text} .", ox.RdfFormat.N_TRIPLES)
    assert canonical == str(quad.object)
    assert ntriples.canonical(canonical) == canonical
    assert str(parse_term(canonical)) == canonical  # the engine knows every term that gets into the log


@given(st.lists(st.binary(max_size=40) | st.sampled_from([GOOD.encode(), b"\n", b'{"s":', b'"', b"}"]), max_size=4))
def test_no_bytes_bring_anything_but_rows_or_a_placed_fault(parts: list[bytes]) -> None:
    for media_type in (NDJSON, TURTLE, TRIG, N_QUADS, N_TRIPLES):
        try:
            parse(b"".join(parts), media_type)
        except FormatError as fault:
            if fault.line is None or fault.column is None:
                raise AssertionError("a fault without a place") from fault


DOCUMENTED = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_the_examples_of_the_page() -> None:
    """Each block is read, and all its events have a time of their own."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENTED, re.MULTILINE | re.DOTALL)
    found = [(kind, [row[4] for row in parse(text, {"ndjson": NDJSON, "trig": TRIG, "ndjsonld": NDJSON_LD}[kind])]) for kind, text in blocks]
    assert [(kind, len(times)) for kind, times in found] == [("ndjson", 5), ("ndjson", 2), ("trig", 2), ("trig", 2), ("ndjsonld", 2)]
    assert all(time != ARRIVED for _, times in found for time in times)


def test_the_page_names_every_media_type_and_suffix() -> None:
    assert [
        each
        for each in (*MEDIA_TYPES, ".ndjson", ".jsonl", ".ttl", ".nt", ".trig", ".nq", ".jsonld", ".ndjsonld", ".rdf", ".arrows")
        if f"`{each}`" not in DOCUMENTED
    ] == []


def test_messages_whose_names_could_be_made_equal_have_different_nodes() -> None:
    """The first 48 bits of SHA-1 of these two are equal."""
    lines = [
        json.dumps({"s": "_:x", "p": "<http://e/p>", "o": f'"{k}"', "at": "2026-01-01T00:00:01Z"}, separators=(",", ":")) for k in (1004614, 22630595)
    ]
    assert len({sha1(line.encode(), usedforsecurity=False).hexdigest()[:12] for line in lines}) == 1
    first, second = (parse_body(line.encode(), NDJSON, default=None, arrived=7).column("s")[0].as_py() for line in lines)
    assert first != second
    assert len(first) == len(second) == len("_:m") + 32 + len("x")

"""Bodies as the compiled scanners read them, and as the exact path does: the same rows, or the same fault at the same
place.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline.errors import FormatError
from pipeline.formats import ndjson
from pipeline.formats.batches import fast_path
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.batches.ntriples import MAX_TERM
from pipeline.formats.body_parser import N_QUADS, N_TRIPLES, NDJSON, parse_body, parse_frame, read_statements
from pipeline.formats.namespaces import Namespaces
from pipeline.formats.ndjson import read_lines
from pipeline.formats.reading_rules import PLAIN_RULES, ReadingRules
from pipeline.formats.short_terms import ShortTerms
from tests.soak import examples

DEFAULT = Interval(5, 7)
XSD = "http://www.w3.org/2001/XMLSchema#"
IRIS = [
    "<http://e/a>", "<http://e/b>", "<urn:g:1>", "<urn:g:2>", "<http://e:80/x#y>", "<x:a:b/c>", "<http://e/?q=1&r>", "<http://e/\\u0061>", "<http://e/é>",
    "<http://e/%41>", "<a>", "<http://e/ >", "<http://e", "<>", "<http://e:123456/>", "<http:///a>", "<:a>", "<1:a>", "<http://[::1]/>", "<http://e/\\u00zz>",
    "<http://e/a#b#c>", "<http://e//a>", "<x:>", "<x:#a>", "<http://e/a\n>", "<<( <x:a> <x:b> <x:c> )>>", "<<( <x:a> <x:b> _:a )>>", '<<(<x:a>\t<x:b> "c" )>>',
    "<<( <x:a> <x:b> <<( _:a <x:b> _:c )>> )>>", "<<( <x:a> <x:b> )>>", "<<( <x:a>", "<<(", ")>>",
]  # fmt: skip
TEXTS = [
    '""', '"a"', '"é😀"', '"a b"', '"\\u00e9"', '"\\""', '"\\\\"', '"tab\t"', '"\x7f"', '"\ufffe"', '"\uffff"', '"\U0001fffe"', '"a', '"\\q"', "'a'", '"\u0085"', '"a\nb"',
]  # fmt: skip
SUFFIXES = [
    "", "", f"^^<{XSD}double>", f"^^<{XSD}string>", f"^^<{XSD}stringy>", f"^^<{XSD}>", f"^^<{XSD}dateTime>", "^^<http://e/t>", "@en", "@eng", "@EN", "@e", "@en-at",
    "@en--ltr", "@abcd", "^^", "^^<", "^", "@", " ^^<x:t>", f"^^<{XSD}double", "^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
]  # fmt: skip
LABELS = ["_:a", "_:b1", "_:a-b", "_:é", "_:a.b", "_:a.", "_:-", "_:", "_:0", "_: a", "_:00000000000000000000000000000001", "_:a:b"]
TIMES = [
    "2026-01-01T00:00:01Z", "2026-01-01T00:00:01", "2026-01-01T01:00:01+01:00", "2026-01-01T00:00:01.5Z", "2026-01-01T00:00:01.000Z", "2026-01-01T24:00:00Z",
    "2026-02-29T00:00:00Z", "2024-02-29T23:59:59.999999Z", "2026-01-01T00:00:00.1234567Z", "2026-01-01T00:00:00.12345600Z", "2026-01-01T00:00:59.9999995+01:00", "-0001-01-01T00:00:00Z", "12026-01-01T00:00:00Z", "2026-01-01", "",
    "0000-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:01+14:01", "2026-01-01T00:00:01-14:00", "2026-01-01T00:00:01.Z",
    "2026-01-01T00:00:01z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "99999999-01-01T00:00:00Z",
]  # fmt: skip
TIMING = [
    "<http://www.w3.org/ns/prov#generatedAtTime>", "<http://streamreasoning.org/timeVocab#startsAtTime>", "<http://streamreasoning.org/timeVocab#endsAtTime>",
    "<http://www.w3.org/ns/prov#generatedAtTim\\u0065>", "<http://www.w3.org/ns/prov#generatedAtTimes>",
]  # fmt: skip
Outcome = list[dict[str, object]] | tuple[str, str, int | None, int | None, str]


def usual(items: list[str], share: int = 3) -> st.SearchStrategy[str]:
    """The first `share` of them as often as all others together: most bodies are to be accepted."""
    return st.sampled_from(items[:share]) | st.sampled_from(items)


iris, labels = usual(IRIS, 6), usual(LABELS)
literals = st.builds("{}{}".format, usual(TEXTS, 4), usual(SUFFIXES, 4))
times = st.builds('"{}"^^<{}{}>'.format, usual(TIMES, 5), st.just(XSD), usual(["dateTime", "dateTimeStamp", "date"], 2))
nodes = iris | iris | labels
graphs = st.sampled_from(["<urn:g:1>", "<urn:g:2>", "<urn:g:\\u0031>", "_:a"])
gaps = usual([" ", " ", " ", "\t", "  ", ""])
ends = usual([" .\n", " .\n", ".\n", " . \n", " .\r\n", " . # é\n", " . # c\n", "\n", " . .\n", " .\r", " .\x0c\n", " ."])
quads = st.builds("{3}{4}{0}{4}{1}{4}{2}{5}".format, iris, literals | nodes, st.just("") | graphs | iris, nodes, gaps, ends)
timings = st.builds("{} {} {} .\n".format, graphs, usual(TIMING), times | literals)
extra = st.sampled_from(
    [
        "\n",
        "# a comment\n",
        " \t\n",
        "#\u00e9\n",
        "\r\n",
        "\ufeff",
        "@prefix : <x:> .\n",
        'VERSION "1.2"\n',
        "<< <x:a> <x:b> <x:c> >> <x:d> <x:e> .\n",
    ]
)


@st.composite
def mutated(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> bytes:
    """A body with up to two bytes taken out, put in or changed."""
    body = draw(texts).encode("utf-8", "surrogatepass")
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(body)))
        body = (
            body[:at]
            + draw(st.sampled_from([b"", b"<", b">", b'"', b"\\", b" ", b"\n", b".", b"\xff", b"\xc3", b"\x00", b"_", b"@", b"^", b"#", b",", b"}"]))
            + body[at + draw(st.integers(0, 1)) :]
        )
    return body


def outcome(read: Callable[[], pa.RecordBatch]) -> Outcome:
    try:
        batch = read()
    except FormatError as fault:
        return fault.code, fault.message, fault.line, fault.column, fault.expected
    return listed(batch)


def listed(batch: pa.RecordBatch) -> list[dict[str, object]]:
    batch.validate(full=True)
    for k, name in ((4, "start"), (5, "end")):  # years that Python's datetime does not reach
        batch = batch.set_column(k, name, batch.column(k).cast(pa.int64()))
    found: list[dict[str, object]] = batch.to_pylist()
    return found


rdf_bodies = mutated(st.lists(quads | quads | quads | timings | timings | extra, max_size=8).map("".join))


@settings(max_examples=examples(1000), suppress_health_check=[HealthCheck.too_slow])
@given(rdf_bodies, st.booleans(), st.booleans())
def test_statements_are_what_the_exact_path_finds(body: bytes, graphs: bool, rounds: bool) -> None:
    media, fmt = (N_QUADS, ox.RdfFormat.N_QUADS) if graphs else (N_TRIPLES, ox.RdfFormat.N_TRIPLES)
    found = outcome(lambda: parse_body(body, media, default=DEFAULT, arrived=0, rules=ReadingRules(rounds=rounds)))
    assert found == outcome(lambda: read_statements(body.removeprefix(BOM_UTF8), fmt, DEFAULT, rounds=rounds))


NUMBERS = [
    "21.5", "1", "-0", "1e5", "-1.50", "1E-5", "true", "false", "0", "01", "1.", ".5", "+1", "-", "1e", "NaN", "null", "[1]", "9" * 70, "0.10", "1.0e+05", "tru", "--1",
]  # fmt: skip
NAMES = [
    ":a", "ex:b", "xsd:int", "a", "2026-01-01T00:00:00Z", "ex:", "ex:a/b", "urn:g:1", "foo:x", "http://e/a", "kitchen", "21.5", "true", "2026-01-01T25:00:00Z", "ex:a b", "ex:<", "",
    "ex:é", ":a\\", ":a\n", "-0001-01-01T00:00:00Z", "1:a", "ex:\\u0061",
]  # fmt: skip
PARTS = {
    "type": ["uri", "literal", "literal", "typed-literal", "bnode", "triple", "iri", ""],
    "value": [
        "http://e/a",
        "21.5",
        "a",
        "é",
        'a"b',
        "a\\b",
        "",
        "b0",
        "ex:a",
        "xsd:int",
        "http://e/ >",
        "a\u0001",
        "urn:g:1",
        "\ufffe",
        "x:a",
        "//a",
        "http:/a",
    ],
    "datatype": [XSD + "decimal", XSD + "string", XSD + "stringy", "xsd:int", XSD, "http://e/t", "", "a", XSD + "int1"],
    "xml:lang": ["en", "EN", "eng", "en-at", "", "e n", "abcd"],
    "its:dir": ["ltr", "up"],
}
_objects = st.fixed_dictionaries(
    {"type": usual(PARTS["type"], 3), "value": usual(PARTS["value"], 4)},
    optional={
        "datatype": usual(PARTS["datatype"], 2),
        "xml:lang": usual(PARTS["xml:lang"], 2),
        "its:dir": st.sampled_from(PARTS["its:dir"]),
        "x": st.just("y"),
    },
)
objects = (
    _objects
    | st.fixed_dictionaries({"type": usual(["literal", "uri"], 1), "value": usual(PARTS["value"], 4)})
    | st.fixed_dictionaries(
        {"value": usual(PARTS["value"], 4)}, optional={"datatype": usual(PARTS["datatype"], 2), "xml:lang": usual(PARTS["xml:lang"], 2)}
    )
    | st.fixed_dictionaries(
        {"type": st.just("triple"), "value": st.fixed_dictionaries({"subject": _objects, "predicate": _objects, "object": _objects})}
    )
    | st.sampled_from([{}, {"value": 5}, {"value": None}, {"value": {"value": "a"}}])
)
names = usual(NAMES, 6)


class Token(str):
    """A JSON value that stands in a line as it is."""


tokens = usual(NUMBERS, 8).map(Token)
HEADERS = [
    "",
    "",
    '{"prefixes":{"ex":"http://x/","":"http://y/"}}\n',
    '{"prefixes":{}}\r\n',
    '\n{"prefixes":{"ex":"x"}}\n',
    '{"prefixes":{"ex":"x:y"},"id":"7"}\n',
    '{"prefixes":1}\n',
]
BASED = ReadingRules(ShortTerms(Namespaces("http://base/", {"ex": "http://ex/"})))
values = st.fixed_dictionaries(
    {"s": iris | names | objects, "p": iris | names | objects, "o": literals | iris | labels | tokens | names | objects},
    optional={
        "g": st.none() | iris | names | objects | tokens, "at": usual(TIMES, 5), "start": usual(TIMES, 5), "end": usual(TIMES, 5), "id": st.sampled_from(["7", "\u00e9", '"']),
        "triples": st.just("<x:a> <x:b> 1 ."), "q": st.none(),
    },
)  # fmt: skip
plain_values = st.fixed_dictionaries({"s": iris, "p": iris, "o": literals | iris | tokens, "at": usual(TIMES, 5)}, optional={"g": st.none() | iris})
short_values = st.fixed_dictionaries(
    {"s": iris | usual(NAMES, 4), "p": iris | usual(NAMES, 4), "o": usual(NUMBERS, 8).map(Token) | usual(NAMES, 6) | objects, "at": usual(TIMES, 5)},
    optional={"g": st.none() | usual(NAMES, 2)},
)
ids = st.just({"id": "8"})


@st.composite
def json_lines(draw: st.DrawFn) -> str:
    found: dict[str, Any] = draw(st.one_of(plain_values, plain_values, short_values, short_values, values, ids))
    order = draw(st.permutations(list(found)))
    separators = draw(usual([",|:", ", |: ", ",\t|\t:", " , | : "])).split("|")
    marked = {name: f"\ue000{found[name]}\ue000" if isinstance(found[name], Token) else found[name] for name in order}
    text = json.dumps(marked, ensure_ascii=False, separators=(separators[0], separators[1]))
    text = text.replace('"\ue000', "").replace('\ue000"', "")
    if draw(st.booleans()):
        text = re.sub("[\x7f-\U0010ffff]", lambda each: json.dumps(each[0])[1:-1], text)
    return text + draw(usual(["\n", "\n", "\r\n", " \n", "\n\n", "", "\n \t\n", "\x0b\n", "\r"]))


events = mutated(st.builds("{}{}".format, usual(HEADERS, 3), st.lists(json_lines(), max_size=4).map("".join)))


@settings(max_examples=examples(1000), suppress_health_check=[HealthCheck.too_slow])
@given(events, st.booleans(), st.booleans())
def test_events_are_what_the_exact_path_finds(body: bytes, rounds: bool, based: bool) -> None:
    rules = replace(BASED if based else ReadingRules(), rounds=rounds)
    assert outcome(lambda: parse_body(body, NDJSON, default=DEFAULT, arrived=0, rules=rules)) == outcome(
        lambda: read_lines(body.removeprefix(BOM_UTF8), DEFAULT, rules=rules)[0]
    )
    at = Interval(9, 9)
    framed: list[str | None] = []

    def read(way: Callable[[], tuple[pa.RecordBatch, str | None]]) -> pa.RecordBatch:
        batch, name = way()
        framed.append(name)
        return batch

    fast, exact = (
        outcome(lambda: read(lambda: parse_frame(body, arrived=9, rules=rules)[:2])),
        outcome(lambda: read(lambda: read_lines(body.removeprefix(BOM_UTF8), at, ndjson._FRAME_LINE, rules))),
    )
    assert fast == exact
    assert framed[:1] == framed[1:]


# ---------------------------------------------------------------- what is usual stays off the exact path
QUAD = '<http://e/s> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <urn:g:1> .\n'
TIMED = QUAD + f'<urn:g:1> {TIMING[0]} "2026-01-01T00:00:01Z"^^<{XSD}dateTime> .\n'
USUAL = [
    pytest.param(TIMED, 1, id="a timed graph"),
    pytest.param("# a comment\n\n" + TIMED.replace("\n", "\r\n"), 1, id="comments, blank lines, CRLF"),
    pytest.param('<http://e/s?a=%41> <http://e/p> "\\u00e9\\n"@en-AT .\n', 1, id="terms that are not plain"),
    pytest.param("_:a <http://e/p> _:b .\n_:a <http://e/p> _:c .\n", 2, id="blank nodes"),
    pytest.param(f'{QUAD}<urn:g:\\u0031> {TIMING[1]} "2026-01-01T00:00:01Z"^^<{XSD}dateTime> .\n<urn:g:1> {TIMING[2]} "2026-01-01T00:00:02Z"^^<{XSD}dateTime> .\n', 1, id="a name with an escape"),
    pytest.param("", 0, id="nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "rows"), USUAL)
def test_the_usual_statements_take_the_compiled_path(body: str, rows: int) -> None:
    batch = fast_path.quads_batch(body.encode(), DEFAULT, graphs=True)
    assert batch is not None
    assert batch.num_rows == rows
    assert listed(batch) == listed(read_statements(body.encode(), ox.RdfFormat.N_QUADS, DEFAULT))


USUAL_EVENTS = [
    pytest.param({"s": "<x:a>", "p": "<x:b>", "o": '"a"@en', "at": TIMES[0]}, id="an instant"),
    pytest.param({"s": "<x:a>", "p": "<x:b>", "o": "<x:c>", "g": "<x:g>", "start": TIMES[0], "end": TIMES[3]}, id="an interval in a graph"),
    pytest.param({"s": "<x:é>", "p": "<x:b>", "o": '"é"', "g": None}, id="characters beyond ASCII"),
    pytest.param({"s": "<x:a>", "p": "<x:b>", "o": '"a\\"\\n"'}, id="escapes"),
    pytest.param({"s": "<x:a>", "p": "<x:b>", "o": '<<( <x:a> <x:b> <<(<x:a> <x:b> "c" )>> )>>'}, id="a triple term"),
    pytest.param({"s": "<x:a>", "p": "<x:b>", "o": 21.5}, id="a number"),
    pytest.param({"s": "<x:a>", "p": "<x:b>", "o": True}, id="a boolean"),
    pytest.param({"s": "xsd:a", "p": "a", "o": "rdf:é"}, id="names"),
    pytest.param({"s": "<x:a>", "p": "<x:b>", "o": {"type": "literal", "value": "2", "datatype": XSD + "int"}}, id="a typed literal"),
    pytest.param(
        {"s": {"type": "uri", "value": "x:a"}, "p": {"type": "uri", "value": "http://e/p"}, "o": {"value": '"é', "xml:lang": "en"}}, id="objects"
    ),
]


@pytest.mark.parametrize("event", USUAL_EVENTS)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_usual_events_take_the_compiled_path(event: dict[str, object], ascii_only: bool) -> None:
    body = json.dumps(event, ensure_ascii=ascii_only).encode()
    found = fast_path.events_batch(body, DEFAULT, frame=False, read_term=PLAIN_RULES.short.write_found)
    assert found is not None
    assert listed(found[0]) == listed(read_lines(body, DEFAULT)[0])


@pytest.mark.parametrize("term", ["<<(\t<x:a> <x:b> <x:c> )>>", '\\"a\tb\\"'])
def test_a_control_character_in_a_string_is_no_json(term: str) -> None:
    body = f'{{"s":"<x:p>","p":"<x:q>","o":"{term}","at":"2026-01-01T00:00:01Z"}}'.encode()
    assert fast_path.events_batch(body, DEFAULT, frame=False, read_term=PLAIN_RULES.short.write_found) is None
    with pytest.raises(FormatError, match="invalid character"):
        parse_body(body, NDJSON, default=DEFAULT, arrived=0)


def test_a_term_beyond_the_limit_is_refused_on_either_path() -> None:
    body = f'<x:a> <x:b> "{"a" * (MAX_TERM + 1)}" .'.encode()
    assert fast_path.quads_batch(body, DEFAULT, graphs=False) is None
    assert fast_path.quads_batch(f'<x:a> <x:b> "{"a" * (MAX_TERM - 2)}" .'.encode(), DEFAULT, graphs=False) is not None
    with pytest.raises(FormatError, match="the limit"):
        parse_body(body, N_TRIPLES, default=DEFAULT, arrived=0)


def test_many_distinct_terms_are_each_found_again() -> None:
    statements = [f'<x:{k}> <x:p> "{k % 7000}" <x:{k % 5000}> .\n' for k in range(20_000)]
    body = "".join(statements).encode()
    batch = fast_path.quads_batch(body, DEFAULT, graphs=True)
    assert batch is not None
    assert [len(batch.column(name).dictionary) for name in "spog"] == [20_000, 1, 7000, 5000]
    assert [f"{row['s']} {row['p']} {row['o']} {row['g']} .\n" for row in batch.to_pylist()] == statements


def test_terms_whose_hashes_are_made_to_collide_are_left_to_the_exact_path() -> None:
    letters = np.random.default_rng(1).integers(ord("a"), ord("z") + 1, (6_000_000, 8)).astype(np.uint8)
    key = mixed(mixed(mixed(np.uint64(fast_path._SEED), np.uint64(ord('"'))), letters.view(np.uint64)[:, 0]), np.uint64(ord('"')))
    chosen = letters[key & np.uint64(4095) == 0][:1200]
    body = b"".join(b'<x:s> <x:p> "%b" .\n' % each.tobytes() for each in chosen)
    assert fast_path.quads_batch(body, DEFAULT, graphs=False) is None
    others = b"".join(b'<x:s> <x:p> "%b" .\n' % each.tobytes() for each in letters[:1200])
    assert fast_path.quads_batch(others, DEFAULT, graphs=False) is not None
    assert parse_body(body, N_TRIPLES, default=DEFAULT, arrived=0).num_rows == 1200


Words = NDArray[np.uint64] | np.uint64


def mixed(key: Words, word: Words) -> Words:
    """Mix a word into a key as engine/native/source/formats/text.c does."""
    with np.errstate(over="ignore"):
        found = (key ^ word) * np.uint64(0x9E37_79B9_7F4A_7C15)
    return found ^ (found >> np.uint64(32))


TOGETHER = [
    b'{"s":"<x:a>","p":"<x:p>","o":"\\"1\\"","at":"2026-01-01T00:00:01Z"}', b'{"s":"<x:b>","p":"<x:p>","o":"<x:a>","g":"<x:g>","start":"2026-01-01T00:00:01Z","end":"2026-01-01T00:00:02Z"}',
    b"", b" ", b'{"s":"<x:a>","p":"<x:p>","o":"\\"\\u00e9\\"","at":"2026-01-01T00:00:03Z"}', b'{"s":"_:a","p":"<x:p>","o":"<x:a>","at":"2026-01-01T00:00:01Z"}',
    b'{"s":"<x:a>","p":"<x:p>","o":"<x:a>"}', b'{"id":"k"}', b'{"source":{"id":"a","after":null,"position":"1"}}', b"{", b'"at":"2026-01-01T00:00:01Z"}',
]  # fmt: skip


@settings(max_examples=examples(200))
@given(st.lists(st.lists(st.sampled_from(TOGETHER) | st.sampled_from(TOGETHER[:3]), max_size=3).map(b"\n".join), min_size=1, max_size=5))
def test_frames_read_together_bring_what_each_brings(frames: list[bytes]) -> None:
    found = ndjson.parse_event_frames(frames, 5)
    if found is not None:
        alone = [parse_frame(frame, arrived=5) for frame in frames]
        assert [(batch.to_pylist(), None, None) for batch in found] == [(batch.to_pylist(), key, source) for batch, key, source in alone]


def test_frames_of_timed_events_are_read_together() -> None:
    found = ndjson.parse_event_frames([TOGETHER[0], b"\n".join(TOGETHER[:3]), TOGETHER[4]], 5)
    assert found is not None
    assert [batch.num_rows for batch in found] == [1, 2, 1]
    assert ndjson.parse_event_frames([TOGETHER[0], TOGETHER[6]], 5) is None, "a warning may be due"

"""Solutions as the compiled writers give them: byte for byte what `plain_json` gives one by one."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from engine.messages import END_OF_TIME
from engine.runtime.watermarks import NO_TIME
from epsparql.terms import XSD, BlankNode, Iri, Literal, TripleTerm
from epsparql.trees import replace_fields
from pipeline.formats.batches.timestamps import iso
from pipeline.solutions import formats, json_encoder
from pipeline.solutions.formats import TRUE, Bindings, Changes, Form, Triples, Verdict
from pipeline.solutions.json_encoder import Envelope
from pipeline.solutions.solution_log import StoredSolution, solution_id
from tests.soak import examples
from tests.support import plain_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.text('a"\\\n\r\t\b\f\x00\x1f\x7f\x80é\u2028\ufffe\uffff😀', max_size=20)
IRIS = st.sampled_from(
    ["http://e/a", "http://e/é", "urn:x", "x:12345678", "http://example.org/averylongname/and/more#part", XSD + "string", XSD + "double"]
)
literals = (
    st.builds(Literal, TEXTS, IRIS)
    | st.builds(Literal, TEXTS)
    | st.builds(Literal.from_tag, TEXTS, st.sampled_from(["en", "EN-at", "zh-hant", "ar--rtl", "en-at--ltr"]))
)
nodes = st.builds(Iri, IRIS) | st.builds(BlankNode, st.sampled_from(["a", "b1", "m0123-4"]))
triple_terms = st.recursive(
    st.builds(TripleTerm, nodes, st.builds(Iri, IRIS), nodes | literals),
    lambda inner: st.builds(TripleTerm, nodes, st.builds(Iri, IRIS), inner),
    max_leaves=3,
)
terms = (nodes | literals | triple_terms).map(str)
micros = st.integers(-(1 << 61) + 1, (1 << 61) - 1) | st.integers(0, 4 * 10**15) | st.builds(lambda s: s * 10**6, st.integers(-(10**10), 10**10))
names = st.sampled_from(["v", "w", "é", 'a"b', "a_long_name_of_a_variable", "\\"])
statements = st.lists(st.builds("<x:a> <http://e/p> {} .".format, terms), max_size=3)


@st.composite
def pages(draw: st.DrawFn) -> tuple[list[StoredSolution], dict[str, Form]]:
    """Solutions of up to three queries of all forms."""
    queries = draw(st.lists(st.text(min_size=1, max_size=8).filter(lambda q: q.isprintable()), min_size=1, max_size=3, unique=True))
    forms: dict[str, Form] = {
        query: draw(st.builds(Bindings, st.lists(names, unique=True, max_size=4).map(tuple)) | st.just(Triples()) | st.just(Verdict()))
        for query in queries
    }
    found = []
    for query in draw(st.lists(st.sampled_from(queries), max_size=8)):
        start, end = sorted((draw(micros), draw(micros)))
        found.append(StoredSolution(solution_id(end, draw(st.integers(0, 0xFFFF_FFFF))), query, 0, 0, start, end, draw(_values(forms[query]))))
    return found, forms


def _values(form: Form) -> st.SearchStrategy[tuple[str | None, ...]]:
    match form:
        case Bindings(variables):
            return st.tuples(*[st.none() | terms for _ in variables])
        case Triples():
            return statements.map(tuple)
        case Verdict():
            return st.sampled_from([(TRUE,), (str(Literal("false", XSD + "boolean")),)])
        case Changes():
            raise AssertionError("changes are written by themselves")


@settings(max_examples=examples(500))
@given(pages())
def test_lines_are_what_plain_code_writes(page: tuple[list[StoredSolution], dict[str, Form]]) -> None:
    solutions, forms = page
    assert formats.ndjson(plain_json.stored(solutions), forms).each() == [plain_json.json_line(s, forms[s.query]) for s in solutions]


@settings(max_examples=examples(200))
@given(pages())
def test_envelopes_hold_the_lines(page: tuple[list[StoredSolution], dict[str, Form]]) -> None:
    solutions, forms = page
    stored, lines = plain_json.stored(solutions), [plain_json.json_line(s, forms[s.query]) for s in solutions]
    messages = [f'{{"solution":{line}}}' for line in lines]
    written = {envelope: formats.ndjson(stored, forms, envelope) for envelope in Envelope}
    assert written[Envelope.MESSAGE].each() == messages
    assert written[Envelope.FRAME].text == b"".join(Frame(Opcode.TEXT, text.encode()).serialize(mask=False, extensions=[]) for text in messages)
    assert written[Envelope.EVENT].text.decode() == "".join(f"id: {s.id}\ndata: {line}\n\n" for s, line in zip(solutions, lines, strict=True))
    assert all(each.ends.tolist() == sorted(each.ends.tolist()) and each.ends[-1:].tolist() in ([], [len(each.text)]) for each in written.values())


@settings(max_examples=examples(100))
@given(
    pages(),
    st.booleans(),
    st.booleans(),
    st.just(NO_TIME) | st.just(END_OF_TIME) | micros,
    micros,
    st.text("0123456789abcdef", min_size=32, max_size=32),
)
def test_changes_are_what_plain_code_writes(
    page: tuple[list[StoredSolution], dict[str, Form]], added: bool, more: bool, settled: int, end: int, identifier: str
) -> None:
    solutions, given = page
    solutions = [each for each in solutions if given[each.query] != Verdict()]
    header = f"{'+' if added else '-'} {more:d} {settled:20} {end:20} {identifier}"
    stored = plain_json.stored([replace_fields(each, values=(header, *each.values)) for each in solutions])
    forms: dict[str, Form] = {query: form if isinstance(form, Verdict | Changes) else Changes(form) for query, form in given.items()}
    ends = {NO_TIME: None, END_OF_TIME: "finished"}
    lines = []
    for each in solutions:
        line = json.loads(plain_json.json_line(replace_fields(each, end=end), given[each.query]))
        line["id"] = identifier
        sets = {"added": [line] if added else [], "withdrawn": [] if added else [line]}
        del line["query"]
        instant = ends[settled] if settled in ends else iso(settled)
        lines.append({"query": each.query, "seq": each.id, **sets, "settled": instant} | ({"more": True} if more else {}))
    written = {envelope: formats.ndjson(stored, forms, envelope) for envelope in Envelope}
    texts = written[Envelope.LINE].each()
    assert [json.loads(text) for text in texts] == lines
    assert written[Envelope.MESSAGE].each() == [f'{{"change":{text}}}' for text in texts]
    frames = (Frame(Opcode.TEXT, f'{{"change":{text}}}'.encode()) for text in texts)
    assert written[Envelope.FRAME].text == b"".join(frame.serialize(mask=False, extensions=[]) for frame in frames)
    assert written[Envelope.EVENT].text.decode() == "".join(f"id: {each.id}\ndata: {text}\n\n" for each, text in zip(solutions, texts, strict=True))


@pytest.mark.parametrize("size", [100, 60_000, 70_000])
def test_frames_of_any_length(size: int) -> None:
    solutions, form = page_of(3, "é" * (size // 2)), Bindings(("v", "w"))
    messages = [f'{{"solution":{plain_json.json_line(s, form)}}}'.encode() for s in solutions]
    found = formats.ndjson(plain_json.stored(solutions), {"q": form}, Envelope.FRAME)
    assert found.text == b"".join(Frame(Opcode.TEXT, text).serialize(mask=False, extensions=[]) for text in messages)


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(micros, st.none() | terms, st.none() | terms), max_size=6))
def test_results_are_what_plain_code_writes(rows: list[tuple[int, str | None, str | None]]) -> None:
    solutions = [StoredSolution(solution_id(at, 1), "q", 0, 0, at, at, (v, w)) for at, v, w in rows]
    assert formats.sparql_json(plain_json.stored(solutions), Bindings(("v", "w"))) == plain_json.sparql_json(solutions, ("v", "w"))


def page_of(rows: int, text: str = "a") -> list[StoredSolution]:
    return [StoredSolution(solution_id(k, 0), "q", 0, 0, k, k, ("<x:a>" if k % 3 else None, f'"{text}{k}"')) for k in range(rows)]


@pytest.mark.parametrize(("first", "count"), [(0, 20), (7, 9), (19, 1), (20, 0)])
def test_a_slice_is_written_like_what_it_holds(first: int, count: int) -> None:
    solutions, form = page_of(20), Bindings(("v", "w"))
    twice = plain_json.stored(solutions).slice(first, count).slice(0, count)
    assert formats.ndjson(twice, {"q": form}).each() == [plain_json.json_line(s, form) for s in solutions[first : first + count]]


def test_what_is_longer_than_it_looked_gets_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_encoder, "_FEWEST_BYTES", 16)
    solutions, form = [*page_of(3), *page_of(5, "\\u0001" * 500)], Bindings(("v", "w"))
    assert formats.ndjson(plain_json.stored(solutions), {"q": form}).each() == [plain_json.json_line(s, form) for s in solutions]


def test_columns_without_buffers() -> None:
    nothing = plain_json.stored([StoredSolution(solution_id(1, 0), "q", 0, 0, 1, 1, ())])
    assert formats.ndjson(nothing, {"q": Bindings(())}).text.endswith(b'"binding":{}}\n')
    unbound = plain_json.stored([StoredSolution(solution_id(1, 0), "q", 0, 0, 1, 1, (None,))])
    assert formats.ndjson(pa.concat_batches([unbound, nothing]), {"q": Bindings(("v",))}).text.count(b'"binding":{}}\n') == 2

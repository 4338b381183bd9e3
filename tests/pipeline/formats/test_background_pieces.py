"""Bodies of background read in pieces give the graphs that the parser's statements give, one after the other."""

import io
from unittest.mock import patch

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.background.fact_store import FactIndex, numbers_of
from engine.dictionary.term_dictionary import TermTable
from engine.messages import ADD
from engine.triples.quads import written
from engine.triples.relation import LEAST_ROOM, distinct, united
from pipeline.errors import FormatError
from pipeline.formats import background
from pipeline.formats.background import NO_GRAPH, read_graphs, read_parts
from pipeline.formats.batches.batch_builder import Labels
from pipeline.formats.batches.ntriples import labelled
from pipeline.formats.body_parser import N_QUADS, N_TRIPLES, TRIG, TURTLE
from tests.soak import examples

FORMATS = {
    N_TRIPLES: ox.RdfFormat.N_TRIPLES,
    N_QUADS: ox.RdfFormat.N_QUADS,
    TURTLE: ox.RdfFormat.TURTLE,
    TRIG: ox.RdfFormat.TRIG,
}
XSD = "http://www.w3.org/2001/XMLSchema#"
IRIS = st.sampled_from(["urn:a", "urn:b", "http://e/x?y=1&z#é", "http://e/%41", "urn:c\\u00e9"]).map(lambda iri: f"<{iri}>")
BLANKS = st.sampled_from(["_:b", "_:b1", "_:x-y", "_:b.c", "_:é"])
TEXTS = st.text(st.sampled_from("ab é\t\x7f\U0001f600\u0301"), max_size=6) | st.sampled_from(
    [r"\"", r"\\", r"\n\r\t", r"\b\f", r"\u00e9", r"\U0001F600", r"a\\\"b", "x" * 300]
)
SUFFIXES = st.sampled_from(["", "@de", "@EN", "@en-GB", "@ar--rtl", f"^^<{XSD}string>", f"^^<{XSD}integer>", "^^<urn:t>"])
LITERALS = st.builds(lambda text, suffix: f'"{text}"{suffix}', TEXTS, SUFFIXES) | st.sampled_from(
    [f'"{number}"^^<{XSD}{kind}>' for number, kind in (("01", "integer"), ("-0", "decimal"), ("1e5", "double"), ("INF", "float"))]
)
TRIPLES = st.builds(lambda s, o: f"<<( {s} <urn:p> {o} )>>", IRIS | BLANKS, LITERALS | BLANKS)
STATEMENTS = st.tuples(IRIS | BLANKS, IRIS, IRIS | BLANKS | LITERALS | TRIPLES, st.just("") | IRIS | BLANKS)


def read_one_by_one(body: bytes, media_type: str, name: str) -> dict[str, list[str]]:
    """Read a body in the plain way: the parser's statements, one after the other."""
    labels, graphs = Labels(body, None), dict[str, dict[str, None]]()
    for s, p, o, g in ox.parse(body, FORMATS[media_type], base_iri=name or None):
        graph = name if isinstance(g, ox.DefaultGraph) else labelled(str(g), labels.blank_node).removeprefix("<").removesuffix(">")
        graphs.setdefault(graph, {})[" ".join(labelled(written(term), labels.blank_node) for term in (s, p, o)) + " ."] = None
    return {graph: [*lines] for graph, lines in graphs.items()} or {name: []}


def read_in_pieces(body: bytes, media_type: str, name: str) -> dict[str, list[str]]:
    graphs = dict[str, dict[str, None]]()
    for graph, lines in read_parts(io.BytesIO(body), media_type, name):
        graphs.setdefault(graph, {}).update(dict.fromkeys(lines.splitlines()))
    return {graph: [*lines] for graph, lines in graphs.items()}


def make_body(statements: list[tuple[str, str, str, str]], media_type: str, ends: str) -> bytes:
    """Write statements as lines, which N-Triples, N-Quads and Turtle share; Turtle and TriG also with brackets."""
    lines = []
    for s, p, o, g in statements:
        graph = g if media_type in (N_QUADS, TRIG) else ""
        if media_type == TRIG:
            lines.append(f"{graph} {{ {s} {p} {o} , [ <urn:q> 1.50 ] . }}" if graph else f"{s} {p} {o} .")
        elif media_type == TURTLE:
            lines.append(f"{s} {p} {o} ; <urn:q> 01, 1e0, true .")
        else:
            lines.append(f"{s} {p} {o} {graph} .")
    return "".join(line + ends for line in lines).encode()


@given(
    st.lists(STATEMENTS, max_size=12),
    st.sampled_from([*FORMATS]),
    st.sampled_from(["\n", "\r\n", " # a comment\n", "\n\n"]),
    st.sampled_from([1, 200, 1 << 20]),
)
@settings(max_examples=examples(400))
def test_pieces_are_what_the_statements_are(statements: list[tuple[str, str, str, str]], media_type: str, ends: str, size: int) -> None:
    body = make_body(statements, media_type, ends)
    with patch.object(background, "PIECE", size):
        for name in (NO_GRAPH, "http://e/g"):
            assert read_in_pieces(body, media_type, name) == read_one_by_one(body, media_type, name)


@given(st.lists(STATEMENTS, max_size=12), st.integers(0, 12))
@settings(max_examples=examples(100))
def test_numbers_of_pieces_are_those_of_the_whole(statements: list[tuple[str, str, str, str]], cut: int) -> None:
    """A graph that comes in two changes is the graph that comes in one, with the terms that the parser reads."""
    body, terms = make_body(statements, N_TRIPLES, "\n"), TermTable()
    text = read_graphs(body, N_TRIPLES)[""]
    lines = text.splitlines(keepends=True)
    known = FactIndex(terms)
    for part in (lines[:cut], lines[cut:]):
        known = known.with_change("", numbers_of("".join(part), terms), ADD)
    assert sorted(" ".join(map(str, quad[:3])) + " ." for quad in known.quads) == sorted(read_one_by_one(body, N_TRIPLES, "")[""])


@pytest.mark.parametrize(
    "bad", ["<urn:a> <urn:b> .", '<urn:a> "b" <urn:c> .', "<urn:a> <urn:b> <urn:c>", "<urn:a> <urn:b> <urn:c d> .", '<urn:a> <urn:b> "x .']
)
@pytest.mark.parametrize("line", [1, 2, 500, 1000])
def test_a_damaged_line_is_named(bad: str, line: int) -> None:
    lines = [f'<urn:s{k}> <urn:p> "{k}" .' for k in range(1000)]
    lines[line - 1] = bad
    body = "\n".join(lines).encode()
    for size in (100, 1 << 20):
        with patch.object(background, "PIECE", size), pytest.raises(FormatError) as caught:
            read_graphs(body, N_TRIPLES)
        assert caught.value.line in (line, line + 1)  # the parser names the next line where the point is missing


@given(st.lists(st.integers(0, 40), max_size=60), st.lists(st.integers(0, 40), max_size=60), st.booleans())
@settings(max_examples=examples(100))
def test_united_rows_are_distinct_rows(first: list[int], second: list[int], is_long: bool) -> None:
    """Rows that are united are those that stand first of their kind, whether few are compared or many are hashed."""
    repeated = LEAST_ROOM if is_long else 1
    one, other = (np.array([(k // 7, k % 7, 0) for k in part * repeated], np.int64).reshape(-1, 3) for part in (first, second))
    there = united(one[:0], one)
    both = united(there, other)
    assert both.tolist() == distinct(np.concatenate([one, other])).tolist()
    assert there.tolist() == distinct(one).tolist(), "a version does not change when the next is made"
    assert united(there, other[::-1]).tolist() == distinct(np.concatenate([one, other[::-1]])).tolist(), "two versions may grow from one"

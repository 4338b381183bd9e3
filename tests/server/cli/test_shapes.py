"""Queries written from SHACL's shapes: their solutions are the results of pyshacl on generated shapes and events, and
what is not covered is named.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyshacl
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

import epsparql
from epsparql.shapes import ShapesFault, read_shapes, write_violation_query
from epsparql.shapes.shapes_graph import MOST_COUNT, SH
from server.cli.commands import main

EX = "http://example.org/"
PREFIXES = f"""@prefix sh: <{SH}> . @prefix : <{EX}> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
AT = "2026-01-01T00:00:01Z"

VALUES = [
    "1", "2", "2.5", "1.0e0", '"1"', '"abc"', '"ab"@en', '"ab"@de-ch', ":a", ":b", '"2026-01-01T00:00:00Z"^^xsd:dateTime',
    '"x"^^xsd:integer', '""',
]  # fmt: skip
ON_VALUES = [
    *(f"sh:datatype xsd:{each}" for each in ("integer", "decimal", "string", "dateTime", "boolean")), "sh:datatype rdf:langString",
    "sh:minInclusive 2", "sh:maxExclusive 2.5", "sh:minExclusive 1", "sh:maxInclusive 1", "sh:minLength 2", "sh:maxLength 1", "sh:minLength 0",
    'sh:pattern "^[a-b]"', 'sh:pattern "^A" ; sh:flags "i"', "sh:class :D", "sh:in ( 1 :a \"ab\"@en )", "sh:in ()", 'sh:languageIn ( "de" "fr" )',
    *(f"sh:nodeKind sh:{each}" for each in ("IRI", "Literal", "BlankNode", "BlankNodeOrIRI", "BlankNodeOrLiteral", "IRIOrLiteral")),
]  # fmt: skip
ON_PATHS = [
    "sh:minCount 1", "sh:minCount 2", "sh:minCount 3", "sh:minCount 0", "sh:maxCount 0", "sh:maxCount 1", "sh:maxCount 2", "sh:hasValue 2",
    "sh:hasValue :a", "sh:equals :q", "sh:disjoint :q", "sh:lessThan :q", "sh:lessThanOrEquals :q",
]  # fmt: skip
TARGETS = ["sh:targetClass :C", "sh:targetSubjectsOf :p", "sh:targetObjectsOf :r"]

node_shapes = st.builds(
    lambda target, on_node, paths, closed: f"[] {' ; '.join([target, *on_node, *closed, *paths])} .",
    st.sampled_from(TARGETS),
    st.lists(st.sampled_from(ON_VALUES), max_size=1),
    st.lists(
        st.builds(
            lambda path, parts: f"sh:property [ sh:path {path} ; {' ; '.join(parts)} ]",
            st.sampled_from([":p", ":q"]),
            st.lists(st.sampled_from(ON_VALUES + ON_PATHS), min_size=1, max_size=2, unique_by=lambda each: each.split()[0]),
        ),
        max_size=2,
    ),
    st.sampled_from([[], [], ["sh:closed true ; sh:ignoredProperties ( rdf:type :r )"]]),
)
events = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([":n1", ":n2"]), st.sampled_from([":p", ":q"]), st.sampled_from(VALUES)),
        st.tuples(st.sampled_from([":n1", ":n2", ":a"]), st.just("a"), st.sampled_from([":C", ":D"])),
        st.tuples(st.just(":n1"), st.just(":r"), st.sampled_from([":n1", ":n2"])),
    ),
    max_size=8,
    unique=True,
)


def find_violations(texts: Sequence[str], data: str) -> list[set[tuple[str | None, ...]]]:
    """Return focus, path, value and constraint of the solutions of the queries that are written from shapes."""
    queries = {}
    for number, text in enumerate(texts):
        found, left_out = read_shapes((PREFIXES + text).encode(), "shapes")
        assert not left_out
        queries[f"q{number}"] = write_violation_query(found)
    written = {name: query for name, query in queries.items() if query}
    solutions = epsparql.run(written, [(*triple, AT) for triple in as_graph(data)]) if written else {}
    rows = {name: [each.binding for each in solutions.get(name, ()) if each.binding is not None] for name in queries}
    return [{tuple(as_text(row.get(name)) for name in ("focus", "path", "value", "constraint")) for row in each} for each in rows.values()]


def as_text(term: Mapping[str, Any] | None) -> str | None:
    return None if term is None else "".join(term.get(part, "") + "|" for part in ("value", "xml:lang"))


def as_graph(data: str) -> rdflib.Graph:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rdflib, "NORMALIZE_LITERALS", False)
        return rdflib.Graph().parse(data=PREFIXES + data, format="turtle")


def find_expected(shapes: str, data: str) -> set[tuple[str | None, ...]]:
    """Return the same of pyshacl's report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rdflib, "NORMALIZE_LITERALS", False)  # pyshacl sets it
        _, report, _ = pyshacl.validate(as_graph(data), shacl_graph=as_graph(shapes), advanced=False)
    sh = rdflib.Namespace(SH)
    rows = set()
    for result in report.objects(None, sh.result):
        terms = [report.value(result, predicate) for predicate in (sh.focusNode, sh.resultPath, sh.value, sh.sourceConstraintComponent)]
        texts = [None if term is None else f"{term}|{getattr(term, 'language', None) or ''}|" for term in terms]
        if str(terms[3]).endswith("HasValueConstraintComponent"):
            texts[2] = None
        rows.add(tuple(texts))
    return rows


def test_each_constraint_alone_finds_what_pyshacl_finds() -> None:
    data = "".join(f":n{number} a :C ; :p {value} . " for number, value in enumerate(VALUES)) + ":a a :D . :m a :C ; :p 1, 2, 3 ; :q 2 . :o a :C ."
    texts = [f"[] sh:targetClass :C ; sh:property [ sh:path :p ; {constraint} ] ." for constraint in ON_VALUES + ON_PATHS]
    texts += [f"[] {target} ; {constraint} ." for constraint, target in product(ON_VALUES, TARGETS)]
    wrong = [
        (text, found ^ expected)
        for text, found in zip(texts, find_violations(texts, data), strict=True)
        if found != (expected := find_expected(text, data))
    ]
    assert wrong == []


@settings(max_examples=30)
@given(st.lists(node_shapes, min_size=1, max_size=2), events)
def test_generated_shapes_find_what_pyshacl_finds(shapes: list[str], triples: list[tuple[str, str, str]]) -> None:
    data = "".join(f"{' '.join(triple)} . " for triple in triples)
    assert find_violations(["\n".join(shapes)], data) == [find_expected("\n".join(shapes), data)]


def test_what_is_written() -> None:
    text = PREFIXES + ':S a sh:NodeShape, rdfs:Class ; sh:property [ sh:path :p ; sh:maxCount 1 ; sh:message "one \\"p\\"" ] .'
    found, _ = read_shapes(text.encode(), "shapes")
    query = write_violation_query(found, "readings")
    assert query.startswith("SELECT DISTINCT ?focus ?path ?value ?constraint ?message FROM STREAM <readings> WHERE {\n")
    assert f"?focus <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}S> ." in query
    assert 'BIND("one \\"p\\"" AS ?message)' in query
    epsparql.parse(query)


NOT_COVERED = [
    pytest.param("sh:or ( [ sh:datatype xsd:string ] )", "sh:or", id="or"),
    pytest.param("sh:property [ sh:path [ sh:inversePath :p ] ; sh:minCount 1 ]", "a path that is not one property", id="a path"),
    pytest.param("sh:property [ sh:path :p ; sh:node :T ]", "sh:node", id="another shape"),
    pytest.param("sh:property [ sh:path :p ; sh:property [ sh:path :q ; sh:minCount 1 ] ]", "sh:property", id="a property of a property"),
    pytest.param(f"sh:property [ sh:path :p ; sh:maxCount {MOST_COUNT + 1} ]", "sh:maxCount of other values than 0 to 8", id="a large count"),
    pytest.param("sh:property [ sh:path :p ; sh:in ( 1 [] ) ]", "sh:in with a blank node", id="a blank node"),
    pytest.param("sh:property [ sh:path :p ; sh:minLength :x ]", "sh:minLength with a value that is no literal", id="no literal"),
    pytest.param("sh:property [ sh:path :p ; sh:uniqueLang true ]", "sh:uniqueLang", id="languages"),
]


@pytest.mark.parametrize(("part", "what"), NOT_COVERED)
def test_what_is_not_covered_is_named(part: str, what: str) -> None:
    _, left_out = read_shapes(f"{PREFIXES} :S sh:targetClass :C ; {part} .".encode(), "shapes")
    assert [each.what for each in left_out] == [what]
    assert re.match(rf"<{EX}S>|_:", left_out[0].shape)


def test_other_targets_and_lists_without_an_end() -> None:
    _, left_out = read_shapes(f"{PREFIXES} :S sh:targetNode :n ; sh:nodeKind sh:IRI .".encode(), "shapes")
    assert [str(each) for each in left_out] == [f"<{EX}S>: sh:targetNode and targets of SPARQL"]
    text = f"{PREFIXES} :S sh:targetClass :C ; sh:property [ sh:path :p ; sh:in :l ] . :l rdf:first 1 ; rdf:rest :l ."
    ((_, shape), _) = read_shapes(text.encode(), "shapes")
    assert len(shape.constraints[0].arguments) == 1
    assert not read_shapes(f"{PREFIXES} :S sh:targetClass :C ; sh:deactivated true ; sh:or () . :T sh:targetClass :C .".encode(), "s")[1]


@pytest.mark.parametrize(
    ("text", "message"), [("x", "shapes.ttl: .*; shapes are written in Turtle"), ("", "shapes.ttl: no shape has a target; give")]
)
def test_faults_name_the_file_and_the_remedy(text: str, message: str) -> None:
    with pytest.raises(ShapesFault, match=message):
        read_shapes(text.encode(), "shapes.ttl")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "shapes.ttl"
    path.write_text(PREFIXES + ":S sh:targetClass :C ; sh:or () ; sh:property [ sh:path :p ; sh:minCount 1 ] .")
    assert main(["shapes", str(path)]) == 2
    out, told = capsys.readouterr()
    assert (out, told.splitlines()[1:]) == ("", [f"  <{EX}S>: sh:or"])
    assert main(["shapes", str(path), "--partial", "--stream", "readings"]) == 0
    out, told = capsys.readouterr()
    assert "these parts are left out:\n" in told
    assert "FROM STREAM <readings>" in out
    for text, message in ((":S sh:targetClass :C .", "no part is left"), ("x", "shapes are written in Turtle")):
        path.write_text(PREFIXES + text)
        assert main(["shapes", str(path)]) == 2
        assert message in capsys.readouterr().err
    assert main(["shapes", str(tmp_path / "none.ttl")]) == 2

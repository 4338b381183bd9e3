"""These tests find expressions that never fit what a stream has carried, and keep quiet where some value may fit."""

from itertools import product

import pytest

from engine.expressions.evaluator import truth
from epsparql import parse
from epsparql.algebra import Filter, Select
from epsparql.ntriples import parse_term
from epsparql.terms import XSD, Variable
from epsparql.trees import walk_nodes
from pipeline.inspection.comparability import find_incomparable
from pipeline.inspection.stream_profile import SeenName, StreamProfile

_OBJECTS = {
    "text": ['"35"', '"40"'],
    "note": ['"hot"'],
    "temp": [f'"35"^^<{XSD}integer>', f'"3.5"^^<{XSD}decimal>'],
    "mixed": ['"35"', f'"35"^^<{XSD}int>'],
    "at": [f'"2026-01-01T00:00:00Z"^^<{XSD}dateTime>'],
    "room": ["<http://e/r1>"],
    "label": ['"warm"@en'],
    "odd": ['"1"^^<http://e/type>'],
}


def _name_kind(term: str) -> str:
    if term[0] == "<":
        return "IRI"
    return f"<{XSD}string>" if term[-1] == '"' else term.partition("^^")[2] or "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"


_PROFILE = StreamProfile(
    9, 0, 0, True, 0.0,
    objects=tuple(
        SeenName(f"<http://e/{name}> {_name_kind(term)}", 602, 0, 0, 0.0, f"<http://e/s> <http://e/{name}> {term} .") for name, terms in _OBJECTS.items() for term in terms
        if name not in ("text",) or term == '"35"'
    ),
)  # fmt: skip
_QUERY = f"PREFIX : <http://e/> PREFIX xsd: <{XSD}> "


def warnings(text: str, *mentioned: str) -> list[str]:
    return [warning.message for warning in find_incomparable(_QUERY + text, [_PROFILE], frozenset(f"http://e/{name}" for name in mentioned))]


@pytest.mark.parametrize(("condition", "said"), [
    ("?text > 30", '?text > 30 has no value: ?text has, on the stream, so far, 602 values, all xsd:string, for example "35"; xsd:decimal(?text) reads numbers'),
    ("?note > 30", '?note > 30 has no value: ?note has, on the stream, so far, 602 values, all xsd:string, for example "hot"'),
    ("30 <= ?text && ?temp > 1", "30 <= ?text has no value"),
    ("?text = 35", "?text = 35 is never true"),
    ("?text IN (35, 36)", "?text IN (35, 36) is never true"),
    ('?temp = "35"', '?temp = "35" is never true: ?temp has, on the stream, so far, 1,204 values, 602 xsd:integer, 602 xsd:decimal, for example "35"'),
    ("?text + 1 > 30", "?text + 1 has no value"),
    ("?text * ?temp > 30", "?text * ?temp has no value"),
    ("ABS(?text) > 30", "ABS(?text) has no value"),
    ('REGEX(?temp, "3")', 'REGEX(?temp, "3") has no value'),
    ('CONTAINS(?room, "r")', 'CONTAINS(?room, "r") has no value'),
    ("?temp > ?at", "?temp > ?at has no value"),
    ('?room = "r1"', '?room = "r1" is never true'),
    ("?label = 'warm'", "?label = 'warm' is never true"),
    ("?at > '2026-01-01'", "?at > '2026-01-01' has no value"),
    ("?at > 5 || ?temp = 1", "?at > 5 has no value"),
    ("isIRI(?temp)", "isIRI(?temp) is never true"),
    ("?odd > 5", "?odd > 5 has no value"),
])  # fmt: skip
def test_never_fits(condition: str, said: str) -> None:
    group = " ; ".join(f":{name} ?{name}" for name in _OBJECTS)
    (found,) = warnings(f"SELECT * {{ ?s {group} FILTER({condition}) }}")
    assert found.startswith(said)


_FITTING = [
    "?temp > 30", "?mixed > 30", '?mixed = "35"', "xsd:decimal(?text) > 30", "STRLEN(?text) > 1", "?text != 35", "!(?text = 35)", "?s = ?room", "COALESCE(?text + 1, 0) = 0",
    "IF(isIRI(?room), true, ?text > 5)", "?at > '2026-01-01T00:00:00Z'^^xsd:dateTime", "STR(?room) = 'r1'", "?other > 5", "bound(?text)",
    "EXISTS { ?s :text ?w FILTER(?w > 5) }",
]  # fmt: skip


@pytest.mark.parametrize("condition", _FITTING)
def test_may_fit(condition: str) -> None:
    group = " ; ".join(f":{name} ?{name}" for name in [*_OBJECTS, "other"])
    assert warnings(f"SELECT * {{ ?s {group} FILTER({condition}) }}") == []


@pytest.mark.parametrize(("group", "count"), [
    ("{ ?s :text ?v } SEQ { ?s :temp ?w } FILTER(?v > 5)", 1),
    ("{ ?s :text ?v } SEQ { ?s :temp ?w FILTER(?w = 'x') }", 1),
    ("{ ?s :text ?v } UNION { ?s :note ?v } FILTER(?v > 5)", 1),
    ("{ ?s :text ?v } UNION { ?s :temp ?v } FILTER(?v > 5)", 0),
    ("{ ?s :text ?v } UNION { ?v :temp ?s } FILTER(?v > 5)", 0),
    ("?s :temp ?w OPTIONAL { ?s :text ?v } FILTER(?v > 5)", 1),
    ("?s :temp ?v OPTIONAL { ?s :text ?w FILTER(?v > ?w) }", 0),
    ("?s :temp ?v OPTIONAL { ?s :text ?w FILTER(?w > 5) }", 1),
    ("OPTIONAL { ?s :text ?v } OPTIONAL { ?s :temp ?v } FILTER(?v > 5)", 0),
    ("?s :text ?v BIND(?v * 2 AS ?w) FILTER(?w > 5)", 1),
    ("?s :text ?v BIND(xsd:decimal(?v) AS ?w) FILTER(?w > 5)", 0),
    ("?s :text ?v BIND(STRLEN(?v) AS ?w) FILTER(?w = 'x')", 1),
    ("?s :text+ ?v FILTER(?v > 5)", 0),
    ("?s ?p ?v FILTER(?v > 5)", 0),
    ("?s :has [ :text ?v ] FILTER(?v > 5)", 1),
    ("VALUES ?v { 1 } FILTER(?v = 'x')", 0),
    ("{ SELECT ?v { ?s :text ?v } } FILTER(?v > 5)", 1),
    ("{ SELECT (STRLEN(?w) AS ?v) { ?s :text ?w } } FILTER(?v > 5)", 0),
    ("?s :temp ?v MINUS { ?s :text ?w FILTER(?w > 5) }", 1),
])  # fmt: skip
def test_variables_are_followed(group: str, count: int) -> None:
    assert len(warnings(f"SELECT * {{ {group} }}")) == count


def test_sums_and_having() -> None:
    assert warnings("SELECT (SUM(?v) AS ?n) { ?s :text ?v } WINDOW [RANGE PT1H]")[0].startswith("SUM(?v) has no value: ?v has,")
    assert warnings("SELECT ?s (MAX(?v) AS ?n) { ?s :text ?v } GROUP BY ?s HAVING (MAX(?v) > 5) WINDOW [RANGE PT1H]")[0].startswith(
        "MAX(?v) > 5 has no value"
    )
    assert warnings("SELECT (SUM(?v) AS ?n) (COUNT(?w) AS ?m) { ?s :temp ?v ; :text ?w } HAVING (COUNT(?w) > 5) WINDOW [RANGE PT1H]") == []


def test_what_the_background_mentions_may_be_anything() -> None:
    assert warnings("SELECT * { ?s :text ?v FILTER(?v > 5) }", "text") == []


def test_no_value_that_was_carried_passes_what_never_fits() -> None:
    operations = ["{0} > {1}", "{0} = {1}", "{0} + 1 < {1}", "REGEX({0}, 'a')", "STRLEN({0}) = {1}", "YEAR({0}) = {1}", "!({0} >= {1})"]
    constants = ["5", "'a'", "<http://e/r1>", "'2025-01-01T00:00:00Z'^^xsd:dateTime", "true", "'1'^^<http://e/type>"]
    for name, operation, constant in product(_OBJECTS, operations, constants):
        text = f"SELECT * {{ ?s :{name} ?v FILTER({operation.format('?v', constant)}) }}"
        if warnings(text):
            query = parse(_QUERY + text).query
            assert isinstance(query, Select)
            (condition,) = [node.condition for node in walk_nodes(query.pattern) if isinstance(node, Filter)]
            for term in _OBJECTS[name]:
                assert truth(condition, {Variable("v"): parse_term(term)}.get, 0, 0) is not True, (text, term)

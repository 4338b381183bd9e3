"""These tests check where the nodes of the algebra stand.

In each text the first `|` begins the place of the node, and a second one ends it. Both are no part of the query.
"""

import pickle

import pytest

from epsparql import algebra as a
from epsparql import parse
from epsparql.translate.source_map import SourceMap
from epsparql.trees import walk_nodes

PLACES = [
    pytest.param("{?s :p ?o} |SEQ| {?s :q ?r} SEQ {?s :r ?t}", a.SeqJoin, id="the inner of two SEQ"),
    pytest.param("{?s :p ?o} |AND| {?s :q ?r}", a.Join, id="AND"),
    pytest.param("{} AND {?s :q ?r} |OVERLAPS| {}", a.RelationJoin, id="a relation after an AND that joins nothing"),
    pytest.param("?s :p ?o |{ ?s :q ?r }|", a.Join, id="a group beside triples"),
    pytest.param("{ ?s :q ?r } |?s :p ?o| ; :q 1", a.Join, id="triples beside a group"),
    pytest.param("?s :p ?o |GRAPH :g {?s :p ?o}|", a.Join, id="GRAPH"),
    pytest.param("?s :p ?o |{ SELECT * {?s :p ?o} LIMIT 1 }|", a.Join, id="a sub-SELECT"),
    pytest.param("?s :p ?o |VALUES ?s {1}|", a.Join, id="VALUES"),
    pytest.param("?s :q 1 . ?o :q 1 . |?s :p+ ?o|", a.Join, id="a path beside triples"),
    pytest.param("|?s :p+ ?o|", a.Path, id="a path"),
    pytest.param("{?s :p ?o} |OPTIONALSEQ| {?s :q ?r}", a.SeqRightJoin, id="OPTIONALSEQ"),
    pytest.param("{?s :p ?o} |EQUALOPTIONAL| {?s :q ?r}", a.EqLeftJoin, id="EQUALOPTIONAL"),
    pytest.param("?s :p ?o |OPTIONAL| {?s :q ?r}", a.LeftJoin, id="OPTIONAL"),
    pytest.param("?s :p ?o |MINUS| {?s :q ?r}", a.Minus, id="MINUS"),
    pytest.param("?s :p ?o FILTER(?o && |EXISTS| {?s :q ?r})", a.Exists, id="EXISTS"),
    pytest.param("?s :p ?o FILTER |NOT EXISTS| {?s :q ?r}", a.Exists, id="NOT EXISTS"),
    pytest.param("{?s :p ?o} SEQ {?s :q ?r} |WITHOUT| {?s :r ?t}", a.SeqWithout, id="SEQ ... WITHOUT"),
    pytest.param("{?s :p ?o} AND {?s :q ?r} |WITHOUT| {?s :r ?t}", a.JoinWithout, id="AND ... WITHOUT"),
    pytest.param("{?s :p ?o} |WITHOUT| {?s :r ?t} FOR 10", a.WithoutFor, id="WITHOUT ... FOR"),
    pytest.param("{SELECT ?s {{?s :p ?o} |DURING| {?s :q ?r}}}", a.RelationJoin, id="in a sub-SELECT"),
    pytest.param("{SELECT (SUM(?o) AS ?n) {?s :p ?o} GROUP BY |?s (?o + 1 AS ?k)| HAVING(COUNT(*) > 1)}", a.Group, id="GROUP BY"),
    pytest.param("{SELECT (SUM(?o) AS ?n) {?s :p ?o} |WINDOW [RANGE PT1H]|}", a.RangeWindow, id="WINDOW"),
    pytest.param("BIND(|:f|(1) AS ?x)", a.Call, id="a function"),
    pytest.param("|?s :p 1 , 2 ; :q [ :r ?x ]| FILTER(?x) . ", a.Bgp, id="triples"),
    pytest.param("?s :p ?o FILTER(?o) # EXISTS SEQ\n |MINUS| {?s :q 'MINUS'}", a.Minus, id="words in comments and strings"),
]  # fmt: skip
TRIPLES = "|?s :p 1| , |2| ; |:q [ :r ?x ]| . |?s a ( 3 )|"


def split(marked: str, form: str = "SELECT *") -> tuple[str, list[str]]:
    pieces = f"PREFIX : <http://e/> {form} {{ {marked} }}".split("|")
    return "".join(pieces), pieces[1::2]


def stretches(text: str, kind: type) -> list[str]:
    parsed = parse(text)
    spans = [parsed.places.find_span(node) for node in walk_nodes(parsed.query) if type(node) is kind]
    return [text[span.start : span.end] for span in spans if span is not None]


@pytest.mark.parametrize(("marked", "kind"), PLACES)
def test_the_place_of_a_node(marked: str, kind: type) -> None:
    text, (stretch,) = split(marked)
    found = stretches(text, kind)
    assert stretch in found
    assert text.index(stretch) == min(text.index(one) for one in found) or kind is a.SeqJoin


def test_the_places_of_triples() -> None:
    text, expected = split(TRIPLES)
    assert stretches(text, a.TriplePattern) == [*expected[:3], ":r ?x", expected[3], "3", "3"]


def test_the_place_of_a_rule() -> None:
    text, _ = split("?s :p ?o", "CONSTRUCT WHERE")
    assert stretches(text, a.Construct) == ["CONSTRUCT"]


def test_equal_nodes_have_places_of_their_own() -> None:
    parsed = parse("SELECT * { {?s ?p ?o} SEQ {?s ?p ?o} SEQ {?s ?p ?o} MINUS {?s ?p ?o} }")
    found = [parsed.places.find_span(node) for node in walk_nodes(parsed.query) if isinstance(node, a.Bgp)]
    assert len(set(found)) == 4


def test_a_copy_keeps_its_places() -> None:
    parsed = parse("SELECT * { {?s ?p ?o} SEQ {?s ?p ?o} }")
    copy = pickle.loads(pickle.dumps(parsed))
    assert copy == parsed
    assert copy.places.find_span(copy.query.pattern) == parsed.places.find_span(parsed.query.pattern) is not None


def test_a_node_that_was_not_noted_has_no_place() -> None:
    assert SourceMap().find_span(a.Bgp(())) is None

"""Texts as papers and web pages print them: all their faults are told, and the mended text can be registered."""

from pathlib import Path

import pytest

import epsparql
from epsparql.errors import Edit, Span, SyntaxFault
from epsparql.terms import RDF
from pipeline.registrations.mending import MAX_REPAIRS, mend_text
from pipeline.registrations.query_cache import check_registration

PRINTED = Path(__file__).parents[2].parent / "shared" / "conformance" / "papers-2" / "pasted"
PAIR = "{ ?a :p ?b } SEQ { ?a :p ?c }"
KINDS = [
    ("SELECT ?a { ?a price ?b . ACME rated ?a }", "SELECT ?a { ?a :price ?b . :ACME :rated ?a }"),
    ("SELECT ?a { ?a a Company ; partOf/locatedIn Room1 }", "SELECT ?a { ?a a :Company ; :partOf/:locatedIn :Room1 }"),
    ("SELECT ?a { ?a count ?b ; starts ?c ; is-a Firm }", "SELECT ?a { ?a :count ?b ; :starts ?c ; :is-a :Firm }"),
    ("SELECT ?a { ?a t: p ?b . ?a t :q t : R ; t s ?d ; t.u ?e }", "SELECT ?a { ?a t:p ?b . ?a t:q t:R ; t:s ?d ; t:u ?e }"),
    ("SELECT ?a { ?a :p ?b ; r ?c . ?b t:r 5 }", "SELECT ?a { ?a :p ?b ; t:r ?c . ?b t:r 5 }"),
    ("SELECT a { ?a :p ? b }", "SELECT ?a { ?a :p ?b }"),
    ("SELECT ?a { ?a hasStock-\nPrice ?b }", "SELECT ?a { ?a :hasStockPrice ?b }"),
    ("SELECT ?a { ?a \ufb01rst ?b ; :pro\ufb01t ?c }", "SELECT ?a { ?a :first ?b ; :profit ?c }"),
    ("SELECT ?a, ?b / ?c AS ?d { ?a :p ?b ; :q ?c }", "SELECT ?a (?b / ?c AS ?d) { ?a :p ?b ; :q ?c }"),
    ("SELECT ?d AS ?b + 1 ?a { ?a :p ?b }", "SELECT (?b + 1 AS ?d) ?a { ?a :p ?b }"),
    ("SELECT MAX(?b) - 1 AS ?d { ?a :p ?b } WINDOW [RANGE 10 days]", "SELECT (MAX(?b) - 1 AS ?d) { ?a :p ?b } WINDOW [RANGE P10D]"),
    ("SELECT (SUM(?b)) { ?a :p ?b } WINDOW [RANGE PT1H]", "SELECT (SUM(?b) AS ?sum) { ?a :p ?b } WINDOW [RANGE PT1H]"),
    ("CONSTRUCT ?a near ?b . ?b near ?a FROM STREAM gps { ?a :p ?b }", "CONSTRUCT { ?a :near ?b . ?b :near ?a } FROM STREAM <gps> { ?a :p ?b }"),
    ("CONSTRUCT { ?a :q ?b WHERE { ?a :p ?b }", "CONSTRUCT { ?a :q ?b } WHERE { ?a :p ?b }"),
    ("SELECT ?a WHERE ?a :p ?b SEQ ?a :p ?c FILTER ?c < ?b", f"SELECT ?a WHERE {PAIR} FILTER (?c < ?b)"),
    ("SELECT ?a WHERE { ?a :p ?b SEQ ?a :p ?c }", f"SELECT ?a WHERE {{ {PAIR} }}"),
    (f"SELECT ?a {PAIR}", f"SELECT ?a WHERE {PAIR}"),
    (f"CONSTRUCT {{ ?a :q 1 }} {PAIR}", f"CONSTRUCT {{ ?a :q 1 }} WHERE {PAIR}"),
    ("SELECT ?a WHERE (?a :p ?b) SEQ (?a :p ?c)", "SELECT ?a WHERE {?a :p ?b} SEQ {?a :p ?c}"),
    ("SELECT ?a { ?a :p ?b FILTER (?b > 3 }", "SELECT ?a { ?a :p ?b FILTER (?b > 3 ) }"),
    ("SELECT ?a { ?a :p ?b FILTER ((?b > 3", "SELECT ?a { ?a :p ?b FILTER ((?b > 3 ) ) }"),
    ("SELECT ?a { ?a :p ?b FILTER (?b > 3)) }", "SELECT ?a { ?a :p ?b FILTER (?b > 3) }"),
    ("SELECT ?a { ?a :p ?b ?a :q ?c , }", "SELECT ?a { ?a :p ?b . ?a :q ?c  }"),
    (f"SELECT ?a WHERE {PAIR.replace('SEQ', 'THEN')} FOR 5 min", f"SELECT ?a WHERE {PAIR} WITHIN PT5M"),
    (f"SELECT ?a WHERE {PAIR.replace('SEQ', 'OPTIONAL SEQ')}", f"SELECT ?a WHERE {PAIR.replace('SEQ', 'OPTIONALSEQ')}"),
    (f"SELECT ?a WHERE {PAIR.replace('SEQ', 'EQUALS-OPTIONAL')}", f"SELECT ?a WHERE {PAIR.replace('SEQ', 'EQUALSOPTIONAL')}"),
    (f"SELECT ?a WHERE {PAIR.replace('SEQ', 'FOLLOWED BY')} WITHIN '1 hour'", f"SELECT ?a WHERE {PAIR} WITHIN 'PT1H'"),
    (f"SELECT ?a WHERE {PAIR.replace('SEQ', chr(0x2192))} WITHIN P1H", f"SELECT ?a WHERE {PAIR} WITHIN PT1H"),
    (f"SELECT ?a WHERE {PAIR} FILTER (getDURATION < 30 days)", f'SELECT ?a WHERE {PAIR} FILTER (getDURATION() < "P30D"^^xsd:duration)'),
    (f"SELECT ?a WHERE {PAIR} FILTER getDURATION() < P30D", f'SELECT ?a WHERE {PAIR} FILTER (getDURATION() < "P30D"^^xsd:duration)'),
    (f"SELECT ?a WHERE {PAIR} FILTER (getDURATION() < \u201cP30D\u201d\u02c6\u02c6xsd : duration)",
     f'SELECT ?a WHERE {PAIR} FILTER (getDURATION() < "P30D"^^xsd:duration)'),
    (f"SELECT ?a WHERE {PAIR} FILTER (getDURATION() < ``P30D''^duration)", f'SELECT ?a WHERE {PAIR} FILTER (getDURATION() < "P30D"^^xsd:duration)'),
    ("SELECT ?a { ?a :p ?b FILTER (?b \u2264 1,5 \u00d7 2 \u2227 ?b \u2260 \u22123 AND NOT BOUND ?c) }",
     "SELECT ?a { ?a :p ?b FILTER (?b <= 1.5 * 2 && ?b != -3 && ! BOUND (?c)) }"),
    ("SELECT ?a\u00a0{ ?a :p \u2018x\u2019 FILTER (?a &gt; 1) }", "SELECT ?a { ?a :p 'x' FILTER (?a > 1) }"),
    ("SELECT ?a\nWHERE { ?a :p ?b }     (12)\n5 SEQ { ?a :p ?c }", "SELECT ?a\nWHERE { ?a :p ?b }\nSEQ { ?a :p ?c }"),
    ("SELECT ?a WERE { ?a :p ?b } LIMT 5", "SELECT ?a WHERE { ?a :p ?b } LIMIT 5"),
]  # fmt: skip
"""Texts as they are pasted, and as they are mended; the prefixes are declared."""
PREFIXES = "PREFIX : <http://e/> PREFIX t: <http://t/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
BEGINNINGS = [
    ("SELECT ?a { ?a price ?b }", "PREFIX : <http://example.org/>\nSELECT ?a { ?a :price ?b }"),
    ("PREFIX t http://t/\nSELECT ?a { ?a t:p ?b }", "PREFIX t: <http://t/>\nSELECT ?a { ?a t:p ?b }"),
    ("@prefix t: <http://t/\ndata#> .\nSELECT ?a { ?a t:p ?b }", "PREFIX t: <http://t/data#> \nSELECT ?a { ?a t:p ?b }"),
    ('PREFIX t: "http://t/" SELECT ?a { ?a p ?b }', "PREFIX t: <http://t/> SELECT ?a { ?a t:p ?b }"),
    ("SELECT ?a { ?a rdf:type <http://e/C> }", f"PREFIX rdf: <{RDF}>\nSELECT ?a {{ ?a rdf:type <http://e/C> }}"),
    ("SELECT ?a { ?a t:p ?b }", "PREFIX t: <http://example.org/t#>\nSELECT ?a { ?a t:p ?b }"),
    ("1 SELECT ?a\n2 WHERE\n3 { ?a <p> ?b }", "SELECT ?a\nWHERE\n{ ?a <p> ?b }"),
    ("01: PREFIX t: <http://t/>\n02: SELECT ?a { ?a t:p ?b }", "PREFIX t: <http://t/>\nSELECT ?a { ?a t:p ?b }"),
    ("```sparql\nSELECT ?a { ?a <p> ?b }\n```", "SELECT ?a { ?a <p> ?b }\n"),
    ("Query (3): SELECT ?a { ?a <p> ?b } .", "SELECT ?a { ?a <p> ?b } "),
]
"""Whole texts, as they are pasted and as they are mended."""
UNCHANGED = [
    "SELECT ?a { ?a <p> ?b FILTER(?b > 3) }  # \u201cas it is\u201d \ufb01 (3)",
    "1 SELECT", "a(X) <- b(X).", "SELECT ?a { ?a <p> ?b } GROUP BY ?b HAVING ?a > 3", "SELECT (STR(?a, 1) AS ?b) { ?a <p> 1 }",
    "SELECT ?a { ?a <p> ?b . SERVICE <x> { ?a <q> ?c } }",
]  # fmt: skip
"""Texts that have no fault, or one for which nothing is likely."""


def mend(text: str) -> str | None:
    return mend_text(text, check_registration).text


@pytest.mark.parametrize(("pasted", "mended"), KINDS)
def test_kinds(pasted: str, mended: str) -> None:
    assert mend(PREFIXES + pasted) == PREFIXES + mended


@pytest.mark.parametrize(("pasted", "mended"), BEGINNINGS)
def test_beginnings(pasted: str, mended: str) -> None:
    assert mend(pasted) == mended


@pytest.mark.parametrize("text", UNCHANGED)
def test_what_has_no_fault_or_cannot_be_mended(text: str) -> None:
    assert mend(text) in (None, text)


@pytest.mark.parametrize("path", sorted(PRINTED.glob("*.rq")), ids=lambda path: path.stem)
def test_texts_of_the_papers(path: Path) -> None:
    found = mend_text(path.read_text(encoding="utf-8"), check_registration)
    assert found.text is not None
    assert len(found.all_faults) == len(found.repairs) >= 3
    check_registration(found.text)


def test_all_faults_are_told_at_their_places_in_the_text_as_written() -> None:
    text = "SELECT ?a / 2 AS ?b\nWHERE ?a price ?c ;\n  rated ?d FILTER (getDURATION() < \u201cP1H\u201d^^xsd:duration)"
    found = mend_text(text, check_registration)
    assert found.text is not None
    assert [(fault.line, fault.column) for fault in found.all_faults] == [(1, 11), (2, 7), (2, 10), (2, 10), (3, 3), (3, 36), (3, 36), (3, 43)]
    assert [(repair.found, repair.remedy) for repair in found.repairs][:2] == [
        ("?a / 2 AS ?b", "(?a / 2 AS ?b)"),
        ("?a price ?c ;\n  rated ?d", "{ ?a price ?c ;\n  rated ?d }"),
    ]


def test_a_fault_that_is_left_is_told_with_those_that_were_mended() -> None:
    found = mend_text("SELECT ?a { ?a price ?b } GROUP BY ?b", check_registration)
    assert found.text is None
    assert [fault.code for fault in found.all_faults] == ["scope", "syntax", "unknown-prefix"]


def test_repairs_are_limited() -> None:
    many = " . ".join(f"?a p{number} ?b" for number in range(MAX_REPAIRS + 5))
    assert len(mend_text(f"SELECT ?a {{ {many} }}", epsparql.parse).repairs) == MAX_REPAIRS
    long = "SELECT ?a { ?a p ?b . ?a q ?b }" + " " * 200_000
    assert len(mend_text(long, epsparql.parse).repairs) == 1


def test_a_repair_that_leads_nowhere_ends() -> None:
    def check(text: str) -> None:
        raise SyntaxFault("x", Span(0, 0), text, "", (Edit(0, 0, "y"),))

    found = mend_text("text", check)
    assert found.text is None
    assert len(found.repairs) == 5

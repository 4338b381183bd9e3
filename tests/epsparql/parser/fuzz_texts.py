"""Mutates valid queries, and nests productions with a fault inside.

Whatever the text, parse answers soon, with a query that its canonical text gives back, or with a QueryError.
"""

import random
import re
import time
from dataclasses import dataclass

from epsparql import ParsedQuery, QueryError, parse, render
from epsparql.literals import MAX_LENGTH, word_beyond

PATIENCE_S = 1.0
"""One text may take this much processor time."""
_PROLOGUE = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
VALID = [
    "SELECT ?s ?o (?o * 1.1 + -2 AS ?n) FROM STREAM <a> FROM STREAM default WHERE { ?s :p ?o ; a :C , [ :q 'x'@en ] . FILTER(?o > 3 && BOUND(?s)) }",
    'SELECT DISTINCT * { {?s :p ?o} SEQ {?s :q ?r} WITHIN "PT1H30M"^^xsd:duration WITHOUT {?s :r 1} FILTER(getDURATION() < "PT10S"^^xsd:duration) }',
    "SELECT ?a { {?s :p ?a} EQUALS {?s :q ?b} OPTIONALSEQ {?s :q ?r} EQUALSOPTIONAL {?s :q ?c FILTER(?c = 1)} MEETS {} DURING {} STARTS {} PAR {} }",
    "SELECT ?a { {?s :p ?a} FINISHES {?s :q ?b} OVERLAPS {?s :q ?r} AND {?s ?p ?o} UNION {} WITHOUT {?s :z ?o} FOR PT6H WITHIN 10.5 }",
    "SELECT * { ?s :p ?o OPTIONAL { ?s :q ?r FILTER(?r > ?o) } MINUS { ?s :x [] } BIND(STRLEN(STR(?o)) AS ?l) FILTER NOT EXISTS { ?s :z (1 2 3) } }",
    "SELECT REDUCED ?s { GRAPH ?g { ?s :p ?o } GRAPH :g { ?s (:p|^:q)+/!(:r|^a)* ?t ; :p/:q? [ :r* ?u ] } }",
    "BASE <http://b/> SELECT * FROM <g> FROM NAMED <h> { VALUES (?x ?y) { (1 UNDEF) (<i> 'z') } VALUES ?z { true } FILTER(IRI('a') IN (?x, ?y)) }",
    "SELECT ?k (COUNT(DISTINCT *) AS ?n) (GROUP_CONCAT(?o ; SEPARATOR=', ') AS ?l) { ?s :p ?o } GROUP BY ?k (?o + 1 AS ?m) STR(?s) "
    "HAVING (AVG(?o) > 3) (MIN(?s) != :a) WINDOW [RANGE \"PT1H\" STEP PT10M] ORDER BY DESC(SUM(?o)) ?k ASC(?m) LIMIT 10 OFFSET 2",
    "SELECT (SAMPLE(?o) AS ?x) (MAX(DISTINCT ?o) AS ?y) { ?s :p ?o } WINDOW [ROWS 100]",
    "SELECT * { ?s :p ?o { SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :q ?r } GROUP BY ?s WINDOW [RANGE PT1H] ORDER BY ?n LIMIT 3 VALUES ?s { :a } } }",
    "SELECT ?s { ?s ?p ?o } ORDER BY ?s DESC(?o) :f(?o) (?o + 1) OFFSET 1 LIMIT 2 VALUES (?s ?o) { (:a 1) (UNDEF 2.5e3) }",
    "CONSTRUCT { ?s :q _:b . _:b :v ?o } INTO STREAM <out> FROM STREAM <in> WHERE { ?s :p ?o } ORDER BY ?o LIMIT 5",
    "CONSTRUCT WHERE { ?s :p ?o ; :q 'a\\tb', \"\"\"long\"\"\"@de-AT }",
    "ASK FROM STREAM :s { ?s :p ?o FILTER REGEX(?o, '^a', 'i') }",
    "DESCRIBE :a ?s WHERE { ?s :p ?o } GROUP BY ?s HAVING (COUNT(*) > 1)",
    "DESCRIBE * { ?s :p ?o }",
    "REGISTER RSTREAM <out> AS SELECT ?s FROM NAMED WINDOW :w ON <in> [RANGE PT10S STEP PT5S] FROM NAMED WINDOW :v ON :s [RANGE \"PT1H\" STEP \"PT1H\"] "
    "WHERE { WINDOW :w { ?s :p ?o } WINDOW :v { ?s :q ?o } ?s a :C }",
    "REGISTER ISTREAM :o AS CONSTRUCT { ?s :n ?o } FROM NAMED WINDOW <w> ON :s [RANGE PT1M STEP PT1M] WHERE { WINDOW <w> { ?s :p ?o } }",
    "SELECT * { ?s :p ?o FILTER(IF(?o = 1, 'a', COALESCE(?o, 1/0)) NOT IN ('b', xsd:string(2)) || !EXISTS { ?s :q ?r } && sameTerm(?s, :a) = ISIRI(?s)) }",
    "SELECT ?s WHERE { ?s :p ?o } SEQ { ?s :q ?r } FILTER(?o < ?r) # a comment\nBIND(getENDTIME() - getSTARTTIME() AS ?d)",
    "SELECT * { ?s :\\u0070 'h\\u00e9\\U0001F600' . SERVICE <http://x/> { ?s ?p ?o } }",
]  # fmt: skip
"""Every construct stands here at least once; SERVICE is refused, after it was read."""
PIECES = [
    "{", "}", "(", ")", "[", "]", ".", ";", ",", "<", ">", '"', "'", '"""', "\\", "\\u0041", "\\uD800", "^^", "@en", "?x", "$", "_:a", ":", "a", "-", "+",
    "!", "&&", "||", "*", "/", "|", "^", "?", "SEQ", "WITHIN", "WITHOUT", "FOR", "FILTER", "OPTIONAL", "MINUS", "BIND", "AS", "EXISTS", "NOT", "IN",
    "SELECT", "CONSTRUCT", "ASK", "DESCRIBE", "WHERE", "PREFIX", "BASE", "FROM", "NAMED", "STREAM", "GRAPH", "VALUES", "UNDEF", "GROUP BY", "HAVING",
    "ORDER BY", "LIMIT 1", "OFFSET 1", "WINDOW", "RANGE", "STEP", "ROWS", "REGISTER", "ON", "COUNT(*)", "SUM(?x)", "DISTINCT", "SERVICE", "1", "1e9",
    "1e99999999999999999999", "FILTER(getDURATION() < 1e-99999999999999999999)", "WITHIN 1e99999999999999999999", "PT1S", '"P1H"^^xsd:duration', "#", "\n", "\x00", "\u00a0", "\U0001f600", "\ud800", " ",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Nest:
    """Describes a production that may stand in itself: `opening` and `closing` as often as wanted, around `inner`."""

    before: str
    opening: str
    inner: str
    closing: str
    after: str

    def text(self, depth: int, inner: str) -> str:
        return f"{_PROLOGUE}{self.before}{self.opening * depth}{inner}{self.closing * depth}{self.after}"


NESTS = [
    *(Nest("SELECT (", f"{name}(", "?x", ")", " AS ?n) {}") for name in ("COUNT", "SUM", "GROUP_CONCAT", "COUNT(DISTINCT ?y) + MIN")),
    *(Nest("SELECT * { ?s :p ?x } ORDER BY ", opening, "?x", ")", "") for opening in ("SUM(", "(", "STR(", ":f(")),
    *(Nest("SELECT * { ?s :p ?x FILTER(", opening, "?x", ")", ") }") for opening in ("STR(", ":f(", "(", "!(", "-(", "?y + (", "?y IN (", "COALESCE(1, ")),
    Nest("SELECT * { ?s :p ?x FILTER(", "IF(", "?x", ", 1, 2)", ") }"),
    Nest("SELECT * { BIND(", "CONCAT(", "?x", ", 'a')", " AS ?y) }"),
    *(Nest("SELECT * { FILTER ", f"{name} {{ ?s :p ?x FILTER ", "(?x)", " }", " }") for name in ("EXISTS", "NOT EXISTS")),
    *(Nest("SELECT * { ?s :p ", opening, "?x", closing, " }") for opening, closing in (("[ :q ", " ]"), ("( ", " )"), ("( [ :q ", " ; a 1 ] 2 )"))),
    *(Nest("CONSTRUCT { ?s :p ", opening, "?x", closing, " } {}") for opening, closing in (("[ :q ", " ]"), ("( ", " )"))),
    *(
        Nest("SELECT * ", f"{{ {opening}", "{ ?s :p ?x }", " }", "")
        for opening in ("", "{} SEQ ", "{} UNION ", "{} WITHOUT ", "?s :q ?y OPTIONAL ", "?s :q ?y MINUS ", "GRAPH ?g ", "SELECT * ", "SELECT (COUNT(*) AS ?n) ")
    ),
    *(Nest("SELECT * { ?s ", opening, ":p", closing, " ?x }") for opening, closing in (("(", ")"), ("^(", ")*"), ("(:q|", "/:r)+"), (":q/(", ")?"))),
]  # fmt: skip
"""Every production in brackets stands here: a parser that tries alternatives one after the other may try all of them
at every level.
"""


def corpus() -> list[str]:
    return [_PROLOGUE + text for text in VALID]


def outcome(text: str, patience_s: float = PATIENCE_S) -> str:
    """Parse a text, and return the fault's text or `query`.

    Raises AssertionError where the answer is late, has no place in the text, or is a query that its own text does not
    give back.
    """
    started = time.process_time()
    answer = _answer(text)
    seconds = time.process_time() - started
    assert seconds < patience_s, f"{seconds:.2f} s for {text!r}"
    if isinstance(answer, QueryError):
        assert answer.message, text
        assert 0 <= answer.span.start <= answer.span.end <= len(text), text
        return str(answer)
    for doubt in answer.warnings:
        assert doubt.span is None or 0 <= doubt.span.start < doubt.span.end <= len(text), (doubt, text)
    again = render(answer.query)
    assert len(again) > MAX_LENGTH or word_beyond(again) is not None or parse(again).query == answer.query, f"{text!r} is rendered as {again!r}"
    return "query"


def _answer(text: str) -> ParsedQuery | QueryError:
    try:
        return parse(text)
    except QueryError as fault:
        return fault


def mutated(text: str, chance: random.Random) -> str:
    """Return the text with some words exchanged, or one to four stretches replaced, doubled or left out; one in a
    hundred is made long.
    """
    if chance.random() < 0.3:
        return _exchanged(text, chance)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        at = chance.randrange(len(text) + 1)
        length = chance.choice([0, 0, 1, 1, 3, 10])
        piece = chance.choice([chance.choice(PIECES), "", f" {chance.choice(PIECES)} ", text[at : at + 20] * chance.randint(1, 3)])
        text = text[:at] + piece + text[at + length :]
    return _lengthened(text, chance) if chance.random() < 0.01 else text


def deep(nest: Nest, chance: random.Random) -> str:
    """Return the production nested 5 to 40 deep, with a token inside broken: left out, exchanged, or one too many."""
    inner = chance.choice([nest.inner, nest.inner, "", f"{nest.inner} {nest.inner}", chance.choice(PIECES)])
    depth = chance.randint(5, 40)
    text = nest.text(depth, inner)
    if inner != nest.inner:
        return text
    start = len(_PROLOGUE) + len(nest.before)
    tokens = list(re.finditer(r"[?$:]?\w+|[^\s\w]", text[start : len(text) - len(nest.after)]))
    token = chance.choice(tokens)
    return text[: start + token.start()] + chance.choice(["", token[0] * 2, chance.choice(PIECES)]) + text[start + token.end() :]


def _exchanged(text: str, chance: random.Random) -> str:
    """Put one to three words of the text in the place of others, which often makes a query of another meaning."""
    for _ in range(chance.randint(1, 3)):
        words = list(re.finditer(r"[?$:]?\w+", text))
        place, word = chance.choice(words), chance.choice(words)
        text = text[: place.start()] + word[0] + text[place.end() :]
    return text


def _lengthened(text: str, chance: random.Random) -> str:
    """Repeat one stretch of the text, often enough to reach the longest text that is read."""
    at = chance.randrange(len(text))
    piece = text[at : at + chance.randint(1, 60)]
    return text[:at] + piece * max(1, (MAX_LENGTH - len(text)) // len(piece)) + text[at:]

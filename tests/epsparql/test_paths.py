"""Property paths and the patterns they mean (SPARQL 1.1, 18.2.2.3 and 18.2.2.4)."""

import pytest

from epsparql import parse
from epsparql.algebra import (
    Alternative,
    Bgp,
    Inverse,
    Join,
    LeftJoin,
    Link,
    Negated,
    OneOrMore,
    Path,
    Pattern,
    PropertyPath,
    Sequence,
    TriplePattern,
    ZeroOrMore,
    ZeroOrOne,
)
from epsparql.terms import RDF, XSD, Iri, Literal, Variable
from tests.epsparql.builders import NAMESPACE, PROLOGUE, bgp

P, Q, R = (Link(Iri(NAMESPACE + name)) for name in "pqr")
TYPE = Iri(RDF + "type")
S, END = Variable("s"), Variable("o")
HIDDEN = Variable("_:b0")


def pattern_of(text: str) -> Pattern:
    return parse(f"{PROLOGUE}SELECT * {{ {text} }}").query.pattern


PATHS: list[tuple[str, PropertyPath]] = [
    (":p*", ZeroOrMore(P)),
    (":p +", OneOrMore(P)),
    (":p?", ZeroOrOne(P)),
    ("(:p)*", ZeroOrMore(P)),
    ("(:p*)*", ZeroOrMore(ZeroOrMore(P))),
    ("a*", ZeroOrMore(Link(TYPE))),
    (":p|:q", Alternative(P, Q)),
    (":p | :q | :r", Alternative(Alternative(P, Q), R)),
    (":p|(:q|:r)", Alternative(P, Alternative(Q, R))),
    (":p|:q/:r", Alternative(P, Sequence(Q, R))),
    ("(:p|:q/:r/:p)", Alternative(P, Sequence(Sequence(Q, R), P))),
    (":p|^:q*", Alternative(P, Inverse(ZeroOrMore(Q)))),
    ("(^:p)*", ZeroOrMore(Inverse(P))),
    ("(:p/^:q)+", OneOrMore(Sequence(P, Inverse(Q)))),
    ("!:p", Negated((P.predicate,), None)),
    ("!a", Negated((TYPE,), None)),
    ("!^:p", Negated(None, (P.predicate,))),
    ("!(:p|:q)", Negated((P.predicate, Q.predicate), None)),
    ("!(^:p | :q | ^a)", Negated((Q.predicate,), (P.predicate, TYPE))),
    ("!()", Negated((), None)),
    ("(!:p)?", ZeroOrOne(Negated((P.predicate,), None))),
    ("<http://e/p>*", ZeroOrMore(P)),
]


@pytest.mark.parametrize(("text", "path"), PATHS)
def test_path(text: str, path: PropertyPath) -> None:
    assert pattern_of(f"?s {text} ?o") == Path(S, path, END)


@pytest.mark.parametrize(("text", "path"), PATHS)
def test_inverse_path_is_the_path_from_the_other_end(text: str, path: PropertyPath) -> None:
    assert pattern_of(f"?s ^({text}) ?o") == Path(END, path, S)


PATTERNS = [
    pytest.param("?s (:p) ?o", bgp("?s p ?o"), id="a path of one link is a triple"),
    pytest.param("?s ^:p ?o", bgp("?o p ?s"), id="an inverse link is a triple"),
    pytest.param("?s ^(^:p) ?o", bgp("?s p ?o"), id="twice inverse"),
    pytest.param("?s :p/:q ?o", bgp("?s p _:b0", "_:b0 q ?o"), id="a sequence has a hidden node between"),
    pytest.param("?s :p / :q/:r ?o", bgp("?s p _:b0", "_:b0 q _:b1", "_:b1 r ?o"), id="a longer sequence"),
    pytest.param("?s :p/(:q/:r) ?o", bgp("?s p _:b0", "_:b0 q _:b1", "_:b1 r ?o"), id="brackets in a sequence"),
    pytest.param("?s ^(:p/:q) ?o", bgp("?o p _:b0", "_:b0 q ?s"), id="an inverse sequence"),
    pytest.param("?s :p/^:q ?o", bgp("?s p _:b0", "?o q _:b0"), id="an inverse link in a sequence"),
    pytest.param("?s a/:q ?o", Bgp((TriplePattern(S, TYPE, HIDDEN), *bgp("_:b0 q ?o").triples)), id="a in a sequence"),
    pytest.param("?s :p/:q* ?o", Join(bgp("?s p _:b0"), Path(HIDDEN, ZeroOrMore(Q), END)), id="what is no triple is a path"),
    pytest.param("?s :p* ?o . ?s :q ?o", Join(bgp("?s q ?o"), Path(S, ZeroOrMore(P), END)), id="triples come before paths"),
    pytest.param(
        "?s :p* ?o ; :q ?o , ?s . ?s :r? ?o",
        Join(Join(bgp("?s q ?o", "?s q ?s"), Path(S, ZeroOrMore(P), END)), Path(S, ZeroOrOne(R), END)),
        id="paths in the order of the text",
    ),
    pytest.param("{ ?s :q ?o } ?s :p* ?o", Join(bgp("?s q ?o"), Path(S, ZeroOrMore(P), END)), id="a path after a group"),
    pytest.param(
        "OPTIONAL { ?s :q ?o } ?s :r ?o ; :p* ?o",
        Join(LeftJoin(Bgp(()), bgp("?s q ?o")), Join(bgp("?s r ?o"), Path(S, ZeroOrMore(P), END))),
        id="the triples and paths of one block belong together",
    ),
    pytest.param("?s :p* _:x . _:x :q ?o", Join(bgp("_:x q ?o"), Path(S, ZeroOrMore(P), Variable("_:x"))), id="a label in a triple and in a path"),
    pytest.param("?s ?p [ :p+ ?o ]", Join(bgp("?s ?p _:b0"), Path(HIDDEN, OneOrMore(P), END)), id="a path in brackets"),
    pytest.param("[ :p|:q ?o ]", Path(HIDDEN, Alternative(P, Q), END), id="a path in brackets alone"),
    pytest.param("?s :p+5", Bgp((TriplePattern(S, P.predicate, Literal("+5", XSD + "integer")),)), id="a sign before a number is the number's"),
    pytest.param("?s :p?o", bgp("?s p ?o"), id="a question mark before a name is the variable's"),
    pytest.param("?s :p# comment\n/ # comment\n:q ?o", bgp("?s p _:b0", "_:b0 q ?o"), id="comments in a path"),
]


@pytest.mark.parametrize(("text", "pattern"), PATTERNS)
def test_pattern(text: str, pattern: Pattern) -> None:
    assert pattern_of(text) == pattern


def test_a_path_in_a_collection() -> None:
    first, rest = Iri(RDF + "first"), Iri(RDF + "rest")
    cell, node = Variable("_:b0"), Variable("_:b1")
    triples = (
        TriplePattern(S, Iri(NAMESPACE + "p"), cell),
        TriplePattern(cell, first, node),
        TriplePattern(cell, rest, Iri(RDF + "nil")),
    )
    assert pattern_of("?s :p ([ :q* ?o ])") == Join(Bgp(triples), Path(node, ZeroOrMore(Q), END))

"""OWL 2 RL in the reference evaluator: the tables of OWL 2 Profiles, section 4.3, applied to all triples until
nothing new comes.

`T(s p o)` of the tables is `s p o` here. Left out, as docs/background.md says: what holds of everything, what only
says a hierarchy again, datatypes, contradictions. `<=` is what a hierarchy says, and everything is below itself. A
collection is what its given cells say.
"""

from collections.abc import Iterable, Iterator

from epsparql.terms import RDF, Iri, Literal, Term
from verification.definitions import rdfs
from verification.definitions.model import Fact, Triple

OWL, RDFS = "http://www.w3.org/2002/07/owl#", rdfs.RDFS
TYPE, SAME, THING = Iri(RDF + "type"), Iri(OWL + "sameAs"), Iri(OWL + "Thing")
BELOW = Iri("<=")
TABLES = """
eq-sym: ?x sameAs ?y => ?y sameAs ?x
eq-trans: ?x sameAs ?y, ?y sameAs ?z => ?x sameAs ?z
eq-rep-s: ?s sameAs ?t, ?s ?p ?o => ?t ?p ?o
eq-rep-p: ?p sameAs ?q, ?s ?p ?o => ?s ?q ?o
eq-rep-o: ?o sameAs ?u, ?s ?p ?o => ?s ?p ?u
prp-fp: ?p type FunctionalProperty, ?x ?p ?y, ?x ?p ?z => ?y sameAs ?z
prp-ifp: ?p type InverseFunctionalProperty, ?x ?p ?z, ?y ?p ?z => ?x sameAs ?y
prp-symp: ?p type SymmetricProperty, ?x ?p ?y => ?y ?p ?x
prp-trp: ?p type TransitiveProperty, ?x ?p ?y, ?y ?p ?z => ?x ?p ?z
prp-eqp1: ?p equivalentProperty ?q, ?x ?p ?y => ?x ?q ?y
prp-eqp2: ?p equivalentProperty ?q, ?x ?q ?y => ?x ?p ?y
prp-inv1: ?p inverseOf ?q, ?x ?p ?y => ?y ?q ?x
prp-inv2: ?p inverseOf ?q, ?x ?q ?y => ?y ?p ?x
cls-svf1: ?r someValuesFrom ?k, ?r onProperty ?p, ?x ?p ?y, ?y type ?k => ?x type ?r
cls-svf2: ?r someValuesFrom Thing, ?r onProperty ?p, ?x ?p ?y => ?x type ?r
cls-avf: ?r allValuesFrom ?k, ?r onProperty ?p, ?x type ?r, ?x ?p ?y => ?y type ?k
cls-hv1: ?r hasValue ?v, ?r onProperty ?p, ?x type ?r => ?x ?p ?v
cls-hv2: ?r hasValue ?v, ?r onProperty ?p, ?x ?p ?v => ?x type ?r
cls-maxc2: ?r maxCardinality 1, ?r onProperty ?p, ?x type ?r, ?x ?p ?y, ?x ?p ?z => ?y sameAs ?z
cls-maxqc3: ?r maxQualifiedCardinality 1, ?r onProperty ?p, ?r onClass ?k, ?x type ?r, ?x ?p ?y, ?y type ?k, ?x ?p ?z, ?z type ?k => ?y sameAs ?z
cls-maxqc4: ?r maxQualifiedCardinality 1, ?r onProperty ?p, ?r onClass Thing, ?x type ?r, ?x ?p ?y, ?x ?p ?z => ?y sameAs ?z
cax-eqc1: ?c equivalentClass ?d, ?x type ?c => ?x type ?d
cax-eqc2: ?c equivalentClass ?d, ?x type ?d => ?x type ?c
scm-eqc1: ?c equivalentClass ?d => ?c subClassOf ?d
scm-eqc1: ?c equivalentClass ?d => ?d subClassOf ?c
scm-eqp1: ?p equivalentProperty ?q => ?p subPropertyOf ?q
scm-eqp1: ?p equivalentProperty ?q => ?q subPropertyOf ?p
scm-hv: ?c hasValue ?v, ?c onProperty ?p, ?d hasValue ?v, ?d onProperty ?q, ?p <= ?q => ?c subClassOf ?d
scm-svf1: ?c someValuesFrom ?k, ?c onProperty ?p, ?d someValuesFrom ?l, ?d onProperty ?p, ?k <= ?l => ?c subClassOf ?d
scm-svf2: ?c someValuesFrom ?k, ?c onProperty ?p, ?d someValuesFrom ?k, ?d onProperty ?q, ?p <= ?q => ?c subClassOf ?d
scm-avf1: ?c allValuesFrom ?k, ?c onProperty ?p, ?d allValuesFrom ?l, ?d onProperty ?p, ?k <= ?l => ?c subClassOf ?d
scm-avf2: ?c allValuesFrom ?k, ?c onProperty ?p, ?d allValuesFrom ?k, ?d onProperty ?q, ?p <= ?q => ?d subClassOf ?c
for streams: ?p type SymmetricProperty => ?p inverseOf ?p
for streams: ?p inverseOf ?q => ?q inverseOf ?p
for streams: ?r someValuesFrom Thing, ?r onProperty ?p => ?p domain ?r
for streams: ?r someValuesFrom ?k, ?r onProperty ?p, ?p <= ?q, ?q range ?l, ?l <= ?k => ?p domain ?r
"""
RULES = []


def _term(word: str) -> Term | str:
    if word[0] == "?":
        return word
    if word == "1":
        return Literal("1")
    if word == "<=":
        return BELOW
    space = RDF if word == "type" else RDFS if word in ("subClassOf", "subPropertyOf", "domain", "range") else OWL
    return Iri(space + word)


for _line in TABLES.strip().splitlines():
    _premises, _, _conclusion = _line.partition(": ")[2].partition(" => ")
    RULES.append(([tuple(map(_term, part.split())) for part in _premises.split(", ")], tuple(map(_term, _conclusion.split()))))


def closed(given: Iterable[Triple]) -> set[Triple]:
    """The triples with what they entail by RDFS and OWL, graphs aside."""
    cells = [*given]
    known = set(cells)
    while True:
        by_rdfs = {fact.triple for fact in rdfs.closed(Fact(triple) for triple in known)}
        below = {(s, BELOW, o) for s, p, o in by_rdfs if p in (rdfs.SUBCLASS, rdfs.SUBPROPERTY)}
        below |= {(part, BELOW, part) for triple in by_rdfs for part in triple}
        found = by_rdfs | {triple for triple in _concluded(by_rdfs | below, cells) if _counts(*triple)}
        if found <= known:
            return known
        known |= found


def _counts(s: Term, p: Term, o: Term) -> bool:
    if isinstance(s, Literal) or not isinstance(p, Iri) or (p == SAME and (s == o or isinstance(o, Literal))):
        return False
    return not (p in (rdfs.SUBCLASS, rdfs.SUBPROPERTY) and s == o) and (p, o) != (TYPE, THING) and s not in (THING, Iri(OWL + "Nothing"))


def _concluded(known: set[Triple], cells: list[Triple]) -> Iterator[Triple]:
    by_predicate: dict[Term, list[Triple]] = {}
    for triple in known:
        by_predicate.setdefault(triple[1], []).append(triple)
    for premises, conclusion in RULES:
        for values in _matched(premises, {}, by_predicate):
            yield tuple(values.get(part, part) for part in conclusion)
    for c, p, head in known:
        members = _members(head, cells) if isinstance(p, Iri) and p.value.startswith(OWL) else []
        if members:
            yield from _of_list(p.value.removeprefix(OWL), c, members, by_predicate)  # type: ignore[union-attr]


def _matched(premises: list, values: dict, known: dict[Term, list[Triple]]) -> Iterator[dict]:  # type: ignore[type-arg]
    if not premises:
        yield values
        return
    wanted = [values.get(part, part) for part in premises[0]]
    of = (
        [triple for triples in known.values() for triple in triples if triple[1] != BELOW] if isinstance(wanted[1], str) else known.get(wanted[1], ())
    )
    for triple in of:
        found = dict(values)
        if all(
            found.setdefault(part, there) == there if isinstance(part, str) else part == there for part, there in zip(wanted, triple, strict=True)
        ):
            yield from _matched(premises[1:], found, known)


def _members(head: Term, cells: list[Triple]) -> list[Term]:
    found: dict[Term, Term] = {}
    while head not in found:
        first, rest = (sorted((o for s, p, o in cells if (s, p) == (head, Iri(RDF + name))), key=str) for name in ("first", "rest"))
        if not first:
            break
        found[head] = first[0]
        head = rest[0] if rest else Iri(RDF + "nil")
    return [*found.values()]


def _of_list(name: str, c: Term, members: list[Term], known: dict[Term, list[Triple]]) -> Iterator[Triple]:
    """prp-spo2, prp-key, cls-int1, cls-int2, cls-uni, cls-oo, scm-int, scm-uni."""
    types = {(s, o) for s, _, o in known.get(TYPE, ())}
    match name:
        case "intersectionOf":
            yield from ((c, rdfs.SUBCLASS, each) for each in members)
            yield from ((x, TYPE, c) for x, _ in types if all((x, each) in types for each in members))
            yield from ((x, TYPE, each) for x, kind in types if kind == c for each in members)
        case "unionOf":
            yield from ((each, rdfs.SUBCLASS, c) for each in members)
            yield from ((x, TYPE, c) for x, kind in types if kind in members)
        case "oneOf":
            yield from ((each, TYPE, c) for each in members)
        case "propertyChainAxiom":
            ends = {(s, o) for s, _, o in known.get(members[0], ())}
            for each in members[1:]:
                ends = {(s, end) for s, o in ends for start, _, end in known.get(each, ()) if start == o}
            yield from ((s, c, o) for s, o in ends)
        case "hasKey":
            values = [{(s, o) for s, _, o in known.get(each, ())} for each in members]
            things = [x for x, kind in types if kind == c]
            alike = ((x, y) for x in things for y in things if all(any((y, o) in pairs for s, o in pairs if s == x) for pairs in values))
            yield from ((x, SAME, y) for x, y in alike)

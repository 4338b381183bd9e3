"""The rules of OWL 2 RL beyond RDFS are data.

Source: OWL 2 Profiles, section 4.3, tables 4 to 9; a line has the name that a rule has there. What stands before `|`
is of the schema: its triples make a rule of which only the rest is joined with data. `up:p` is the closed form of p:
its object is what is stated or something above that, and of a number of values it is `1`, however that is written.

What is left out: that everything is the same as itself and an owl:Thing; what only says again what a hierarchy says
(scm-eqc2, scm-eqp2, scm-dom, scm-rng); datatypes; contradictions. RDFS has rules of its own. Where some are others in
a different form: prp-symp is an inverse, cls-svf2 a domain, cls-int2 and cls-uni are superclasses by scm-int and
scm-uni. `range` is not there: who has a value whose class the range already tells has some value of the class.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.background.reasoning.rdfs_schema import RDFS
from epsparql.deferred_methods import dataclass
from epsparql.terms import RDF

OWL = "http://www.w3.org/2002/07/owl#"
Atom = tuple[int, int, int]
"""An atom is subject, predicate and object: numbers of terms, or ~k for the variable k."""
RULES = """
eq-sym    ?x owl:sameAs ?y => ?y owl:sameAs ?x
prp-fp    ?p a owl:FunctionalProperty | ?x ?p ?y . ?x ?p ?z => ?y owl:sameAs ?z
prp-ifp   ?p a owl:InverseFunctionalProperty | ?x ?p ?z . ?y ?p ?z => ?x owl:sameAs ?y
prp-trp   ?p a owl:TransitiveProperty | ?x ?p ?y . ?y ?p ?z => ?x ?p ?z
prp-symp  ?p a owl:SymmetricProperty => ?p owl:inverseOf ?p
prp-inv   ?p owl:inverseOf ?q => ?q owl:inverseOf ?p
prp-inv   ?p owl:inverseOf ?q | ?x ?p ?y => ?y ?q ?x
cls-svf1  ?r owl:someValuesFrom ?k . ?r owl:onProperty ?p | ?x ?p ?y . ?y a ?k => ?x a ?r
cls-svf2  ?r owl:someValuesFrom owl:Thing . ?r owl:onProperty ?p => ?p rdfs:domain ?r
range     ?r owl:someValuesFrom ?k . ?r owl:onProperty ?p . ?r up:onProperty ?q | ?q up:range ?k => ?p rdfs:domain ?r
cls-avf   ?r owl:allValuesFrom ?k . ?r owl:onProperty ?p | ?x a ?r . ?x ?p ?y => ?y a ?k
cls-hv1   ?r owl:hasValue ?v . ?r owl:onProperty ?p | ?x a ?r => ?x ?p ?v
cls-hv2   ?r owl:hasValue ?v . ?r owl:onProperty ?p | ?x ?p ?v => ?x a ?r
cls-maxc2 ?r up:maxCardinality 1 . ?r owl:onProperty ?p | ?x a ?r . ?x ?p ?y . ?x ?p ?z => ?y owl:sameAs ?z
cls-maxqc3 ?r up:maxQualifiedCardinality 1 . ?r owl:onProperty ?p . ?r owl:onClass ?k | ?x a ?r . ?x ?p ?y . ?y a ?k . ?x ?p ?z . ?z a ?k => ?y owl:sameAs ?z
cls-maxqc4 ?r up:maxQualifiedCardinality 1 . ?r owl:onProperty ?p . ?r owl:onClass owl:Thing | ?x a ?r . ?x ?p ?y . ?x ?p ?z => ?y owl:sameAs ?z
scm-eqc1  ?c owl:equivalentClass ?d => ?c rdfs:subClassOf ?d
scm-eqc1  ?c owl:equivalentClass ?d => ?d rdfs:subClassOf ?c
scm-eqp1  ?p owl:equivalentProperty ?q => ?p rdfs:subPropertyOf ?q
scm-eqp1  ?p owl:equivalentProperty ?q => ?q rdfs:subPropertyOf ?p
scm-hv    ?c owl:hasValue ?v . ?c up:onProperty ?p . ?d owl:hasValue ?v . ?d owl:onProperty ?p => ?c rdfs:subClassOf ?d
scm-svf1  ?d owl:someValuesFrom ?k . ?d owl:onProperty ?p | ?c up:someValuesFrom ?k . ?c owl:onProperty ?p => ?c rdfs:subClassOf ?d
scm-svf2  ?c owl:someValuesFrom ?k . ?c up:onProperty ?p . ?d owl:someValuesFrom ?k . ?d owl:onProperty ?p => ?c rdfs:subClassOf ?d
scm-avf1  ?d owl:allValuesFrom ?k . ?d owl:onProperty ?p | ?c up:allValuesFrom ?k . ?c owl:onProperty ?p => ?c rdfs:subClassOf ?d
scm-avf2  ?c owl:allValuesFrom ?k . ?c up:onProperty ?p . ?d owl:allValuesFrom ?k . ?d owl:onProperty ?p => ?d rdfs:subClassOf ?c
"""
UP = 1 << 40
"""UP added to a property's number gives the number of its closed form."""


@dataclass(frozen=True, eq=False, slots=True)
class EntailmentRule:
    """Holds premises of the schema, premises among data, and a conclusion; with how many variables."""

    schema: tuple[Atom, ...]
    data: tuple[Atom, ...]
    head: Atom
    variables: int


class Instance(NamedTuple):
    """Represents a rule whose schema is known, with the values of its variables, 0 for those of data."""

    rule: EntailmentRule
    values: tuple[int, ...]


class RuleVocabulary:
    """Holds the numbers of the words that the rules are about."""

    def __init__(self, intern: Callable[[str], int]) -> None:
        self._intern = intern
        self.numbers = set[int]()
        """These are the numbers of all the words."""
        self.type, self.same = self("a"), self("owl:sameAs")
        self.subclass, self.subproperty, self.domain, self.range = (
            self(f"rdfs:{name}") for name in ("subClassOf", "subPropertyOf", "domain", "range")
        )
        self.thing, self.nothing, self.one = self("owl:Thing"), self("owl:Nothing"), self("1")
        self.on_property = self("owl:onProperty")
        self.of_classes = {self(name) for name in ("owl:someValuesFrom", "owl:allValuesFrom", "rdfs:range")}
        self.most = {self("owl:maxCardinality"), self("owl:maxQualifiedCardinality")}
        self.lists = {self(f"owl:{name}"): name for name in ("intersectionOf", "unionOf", "oneOf", "propertyChainAxiom", "hasKey")}
        self.first, self.rest = self("rdf:first"), self("rdf:rest")
        self.kinds = {self(f"owl:{name}Property") for name in ("Functional", "InverseFunctional", "Transitive", "Symmetric")}
        self.schema = {self(word) for word in RULES.split() if word.startswith("owl:") and word != "owl:Thing"} - self.kinds
        """Triples of these properties of OWL are premises."""
        self.typing = {self.type, *(UP + each for each in self.of_classes)}
        """Triples of these predicates count only with certain objects, which are classes."""

    def __call__(self, word: str) -> int:
        prefix, _, name = word.partition(":")
        if prefix == "up":
            return UP + self("rdfs:range" if name == "range" else f"owl:{name}")
        found = self._intern({"a": f"<{RDF}type>", "1": '"1"'}.get(word) or f"<{_SPACES[prefix]}{name}>")
        self.numbers.add(found)
        return found


_SPACES = {"owl": OWL, "rdf": RDF, "rdfs": RDFS}


def rules(names: RuleVocabulary) -> list[EntailmentRule]:
    return [rule_of(line.split(maxsplit=1)[1], names) for line in RULES.strip().splitlines()]


def rule_of(text: str, names: RuleVocabulary) -> EntailmentRule:
    variables: dict[str, int] = {}

    def atoms(part: str) -> tuple[Atom, ...]:
        words = [triple.split() for triple in part.split(" . ")] if part else []
        return tuple((number(s), number(p), number(o)) for s, p, o in words)

    def number(word: str) -> int:
        return ~variables.setdefault(word, len(variables)) if word[0] == "?" else names(word)

    body, _, head = text.partition(" => ")
    schema, _, data = body.partition("|") if "|" in body else (body, "", "")
    premises, (conclusion,) = (atoms(schema.strip()), atoms(data.strip())), atoms(head)
    return EntailmentRule(*premises, conclusion, len(variables))


class Axioms:
    """Makes rules about collections: one for each number of members."""

    def __init__(self, names: RuleVocabulary) -> None:
        self._names = names
        self._rules: dict[tuple[str, int], EntailmentRule] = {}
        self._made: Mapping[str, Callable[[int], str]] = {
            "below": lambda n: " => ?m1 rdfs:subClassOf ?m0",
            "member": lambda n: " => ?m1 a ?m0",
            "intersectionOf": lambda n: " . ".join(f"?x a ?m{k}" for k in range(1, n + 1)) + " => ?x a ?m0",
            "propertyChainAxiom": lambda n: " . ".join(f"?x{k} ?m{k} ?x{k + 1}" for k in range(1, n + 1)) + f" => ?x1 ?m0 ?x{n + 1}",
            "hasKey": lambda n: (
                "?x a ?m0 . ?y a ?m0 . " + " . ".join(f"?x ?m{k} ?z{k} . ?y ?m{k} ?z{k}" for k in range(1, n + 1)) + " => ?x owl:sameAs ?y"
            ),
        }

    def list_instances(self, name: str, about: int, members: Sequence[int]) -> Iterator[Instance]:
        """Yield what follows where `about` has these members by a property of OWL."""
        match name:
            case "intersectionOf":
                yield from (self._instance("below", (each, about)) for each in members)
                yield self._instance(name, (about, *members))
            case "unionOf":
                yield from (self._instance("below", (about, each)) for each in members)
            case "oneOf":
                yield from (self._instance("member", (about, each)) for each in members)
            case _:
                yield self._instance(name, (about, *members))

    def _instance(self, name: str, values: tuple[int, ...]) -> Instance:
        n = len(values) - 1
        if (name, n) not in self._rules:
            known = " . ".join(f"?m{k} a ?m{k}" for k in range(n + 1))  # gives the members the first numbers
            body, _, head = self._made[name](n).partition(" => ")
            rule = rule_of(f"{known} | {body} => {head}", self._names)
            self._rules[name, n] = EntailmentRule((), rule.data, rule.head, rule.variables)
        rule = self._rules[name, n]
        return Instance(rule, values + (0,) * (rule.variables - n - 1))

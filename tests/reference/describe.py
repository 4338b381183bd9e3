"""Concise bounded descriptions of the reference evaluator (DESCRIBE, semantics.md section 7)."""

from collections.abc import Iterable

from epsparql.terms import RDF, BlankNode, Iri, Term
from verification.definitions.model import Triple

SUBJECT, PREDICATE, OBJECT = (Iri(RDF + name) for name in ("subject", "predicate", "object"))


def description(targets: Iterable[Term], facts: frozenset[Triple]) -> frozenset[Triple]:
    """The statements about the targets, about blank nodes that those lead to, and about the reifications of all of
    these.
    """
    described = set(targets)
    while True:
        stated = frozenset(fact for fact in facts if fact[0] in described)
        blank = {object_ for _, _, object_ in stated if isinstance(object_, BlankNode)}
        reified = {subject for subject, _, _ in facts if any(_reifies(subject, statement, facts) for statement in stated)}
        if blank | reified <= described:
            return stated
        described |= blank | reified


def _reifies(node: Term, statement: Triple, facts: frozenset[Triple]) -> bool:
    return all((node, part, term) in facts for part, term in zip((SUBJECT, PREDICATE, OBJECT), statement, strict=True))

"""This module finds the derivation of a solution as it was reported."""

from collections.abc import Iterator, Sequence

from engine.background.reasoning.rdfs_schema import Triple
from engine.expressions.literals import parse_term
from engine.messages import Micros
from engine.provenance.derivation import NOTHING, Derivation
from engine.provenance.model import Bindings, Proof, TimeBounds, World
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import BlankNode, Iri, Literal, Term, TermOrVariable, Variable
from epsparql.trees import walk_nodes


@dataclass(frozen=True, slots=True)
class Target:
    """Represents a solution: for a SELECT a term per variable, None if unbound; for a CONSTRUCT `triples`; of other
    forms the interval says all.
    """

    values: tuple[str | None, ...]
    triples: tuple[Triple, ...]
    start: Micros
    end: Micros


def looks_back(query: a.Query) -> bool:
    """Return whether what lies outside a solution's interval may be needed to say why it is one."""
    past = a.LeftJoin | a.EqLeftJoin | a.SeqRightJoin | a.Minus | a.SeqWithout | a.JoinWithout | a.WithoutFor | a.Exists | a.Group | a.InWindow
    return bool(query.sources.windows) or any(isinstance(node, past) for node in walk_nodes(query))


def justified(query: a.Query, target: Target, world: World) -> Proof | None:
    """Return a derivation of the solution of a rewritten query; None where there is none in `world`. Raises TooMuch."""
    t0 = world.first if world.first is not None and looks_back(query) else target.end
    derivation = Derivation(world, t0, target.end)
    for wanted in _wanted(query, target):
        for proof in derivation.proofs(query.pattern, wanted, TimeBounds(target.start, target.end)):
            if _stands(query, proof, target) and _shows(query, proof, target):
                return proof
    return None


def windows_of(query: a.Query, end: Micros) -> dict[str, tuple[str, Micros, Micros]]:
    """Return the contents of a query's named windows at a report: stream, and from after when until when."""
    return {window.name: (window.stream, end - window.length, end) for window in query.sources.windows}


def _wanted(query: a.Query, target: Target) -> Iterator[Bindings]:
    match query:
        case a.Select(_, projection):
            yield {v: parse_term(text) for v, text in zip(projection, target.values, strict=True) if text is not None}
        case a.Construct(template):
            for pattern in template:
                for triple in target.triples:
                    if (bound := unify_triple(pattern, triple)) is not None:
                        yield bound
        case _:
            yield NOTHING


def unify_triple(pattern: a.TriplePattern, triple: Triple) -> Bindings | None:
    """Return the terms of a template triple's variables by which it is a triple; None if it is not by any."""
    bound: dict[Variable, Term] = {}
    for part, term in zip((pattern.subject, pattern.predicate, pattern.object), triple, strict=True):
        if isinstance(part, BlankNode):
            if not isinstance(term, BlankNode):
                return None
        elif isinstance(part, Variable):
            if bound.setdefault(part, term) != term:
                return None
        elif part != term:
            return None
    return bound


def _stands(query: a.Query, proof: Proof, target: Target) -> bool:
    """Return whether the proof's interval is the solution's. Plain SPARQL over windows has that of the report."""
    if query.sources.windows:
        return True
    if proof.start is None or proof.end is None:
        return target.start == target.end
    return (proof.start, proof.end) == (target.start, target.end)


def _shows(query: a.Query, proof: Proof, target: Target) -> bool:
    match query:
        case a.Select(_, projection):
            return all(_same(proof.bindings.get(v), text) for v, text in zip(projection, target.values, strict=True))
        case a.Construct(template):
            return _alike([triple for pattern in template if (triple := _instance(pattern, proof)) is not None], target.triples)
        case _:
            return True


def _same(term: Term | None, text: str | None) -> bool:
    return (None if term is None else str(term)) == text


def _instance(pattern: a.TriplePattern, proof: Proof) -> Triple | None:
    def term(part: TermOrVariable) -> Term | None:
        return proof.bindings.get(part) if isinstance(part, Variable) else part

    s, p, o = term(pattern.subject), term(pattern.predicate), term(pattern.object)
    return (s, p, o) if s is not None and not isinstance(s, Literal) and isinstance(p, Iri) and o is not None else None


def _alike(made: Sequence[Triple], target: Sequence[Triple]) -> bool:
    """Return whether these are the same triples; a template's blank nodes have new names in each solution."""

    def masked(triples: Sequence[Triple]) -> set[tuple[str, ...]]:
        return {tuple("_:" if isinstance(part, BlankNode) else str(part) for part in triple) for triple in triples}

    return masked(made) == masked(target)


__all__ = ["Target", "justified", "looks_back", "unify_triple", "windows_of"]

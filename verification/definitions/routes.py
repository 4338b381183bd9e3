"""Routes by the sentence of their definition: of all paths from a node to another, the least by weight, steps and
texts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from epsparql.terms import RDF, BlankNode, Iri, Literal, Term, TripleTerm
from verification.definitions.model import Fact

Numeric = Callable[[Term], Fraction | None]
REIFIES = Iri(RDF + "reifies")


@dataclass(frozen=True, slots=True)
class Link:
    """A link with the weights of its facts: the least counts."""

    source: Term
    target: Term
    weight: Fraction
    written: Literal | None = None


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """A path, in the order in which paths are chosen."""

    weight: Fraction
    steps: int
    nodes: tuple[str, ...]


def links_of(facts: Iterable[Fact], predicate: Term, weight: Term | None, value_of: Numeric) -> list[Link]:
    """The links of a predicate; with `weight`, those that have one which is not negative."""
    triples = {fact.triple for fact in facts}
    pairs = [(s, o) for s, p, o in triples if p == predicate]
    if weight is None:
        return [Link(s, o, Fraction(1)) for s, o in pairs]
    found = []
    for s, o in pairs:
        statement = TripleTerm(s, predicate, o) if isinstance(s, Iri | BlankNode) and isinstance(predicate, Iri) else None
        reifiers = {r for r, p, t in triples if p == REIFIES and t == statement}
        weights = [(value, n) for r, p, n in triples if p == weight and r in reifiers and (value := value_of(n)) is not None and value >= 0]
        if weights:
            value, written = min(weights, key=lambda each: each[0])
            assert isinstance(written, Literal)
            found.append(Link(s, o, value, written))
    return found


def best_path(links: Iterable[Link], source: Term, target: Term) -> tuple[Path, tuple[Link, ...]] | None:
    """The least path, with its links. Paths grow by links until no node has a better one."""
    links = list(links)
    best: dict[Term, tuple[Path, tuple[Link, ...]]] = {source: (Path(Fraction(0), 0, (str(source),)), ())}
    grown = True
    while grown:
        grown = False
        for link in links:
            if link.source in best:
                path, way = best[link.source]
                longer = Path(path.weight + link.weight, path.steps + 1, (*path.nodes, str(link.target)))
                if link.target not in best or longer < best[link.target][0]:
                    best[link.target], grown = (longer, (*way, link)), True
    return best.get(target)

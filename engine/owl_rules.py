"""Rules of OWL 2 RL that the reasoner lacks, applied to all facts once: property chains, keys, enumerations, and at most one value.

Source: OWL 2 Profiles, section 4.3; the rules are called prp-spo2, prp-key, cls-oo, cls-maxc2, cls-maxqc3 and cls-maxqc4 there.
"""

from collections.abc import Iterable, Iterator

from epsparql.terms import RDF

OWL = "http://www.w3.org/2002/07/owl#"
Triple = tuple[str, str, str]
"""N-Triples texts of terms: of all that one is, they are the quickest to compare, and there are many."""
Pairs = dict[str, list[tuple[str, str]]]
"""Subject and object by predicate."""
TYPE, SAME, THING = f"<{RDF}type>", f"<{OWL}sameAs>", f"<{OWL}Thing>"
_FIRST, _REST = f"<{RDF}first>", f"<{RDF}rest>"


def is_literal(text: str) -> bool:
    return text.startswith('"')


def by_predicate(facts: Iterable[Triple]) -> Pairs:
    found: Pairs = {}
    for s, p, o in facts:
        found.setdefault(p, []).append((s, o))
    return found


def beyond(facts: Iterable[Triple]) -> set[Triple]:
    """What these rules conclude, be it known or not."""
    pairs = by_predicate(facts)
    found: set[Triple] = set()
    for rule in (_chains, _keys, _enumerations, _at_most_one):
        found.update(rule(pairs))
    return found


def _chains(pairs: Pairs) -> Iterator[Triple]:
    for property_, head in pairs.get(f"<{OWL}propertyChainAxiom>", ()):
        properties = listed(head, pairs)
        ends = set(pairs.get(properties[0], ())) if properties else set()
        for following in properties[1:]:
            after = _by_subject(pairs.get(following, ()))
            ends = {(s, end) for s, o in ends for end in after.get(o, ())}
        yield from ((s, property_, o) for s, o in ends)


def _keys(pairs: Pairs) -> Iterator[Triple]:
    for kind, head in pairs.get(f"<{OWL}hasKey>", ()):
        instances = {s for s, o in pairs.get(TYPE, ()) if o == kind}
        alike: set[tuple[str, str]] | None = None
        for property_ in listed(head, pairs):
            by_value: dict[str, set[str]] = {}
            for s, o in pairs.get(property_, ()):
                if s in instances:
                    by_value.setdefault(o, set()).add(s)
            here = {(x, y) for group in by_value.values() for x in group for y in group if x != y}
            alike = here if alike is None else alike & here
        yield from ((x, SAME, y) for x, y in alike or ())


def _enumerations(pairs: Pairs) -> Iterator[Triple]:
    for kind, head in pairs.get(f"<{OWL}oneOf>", ()):
        yield from ((member, TYPE, kind) for member in listed(head, pairs) if not is_literal(member))


def _at_most_one(pairs: Pairs) -> Iterator[Triple]:
    types = set(pairs.get(TYPE, ()))
    properties, classes = (_by_subject(pairs.get(f"<{OWL}{name}>", ())) for name in ("onProperty", "onClass"))
    for name in ("maxCardinality", "maxQualifiedCardinality"):
        for restriction, most in pairs.get(f"<{OWL}{name}>", ()):
            if most.partition('"^^')[0].strip('"').lstrip("+0") != "1":
                continue
            wanted = classes.get(restriction, []) if name == "maxQualifiedCardinality" else [THING]
            for property_ in properties.get(restriction, ()):
                for s, values in _by_subject(pairs.get(property_, ())).items():
                    if (s, restriction) in types:
                        counted = [v for v in values if not is_literal(v) and any(k == THING or (v, k) in types for k in wanted)]
                        yield from ((x, SAME, y) for x in counted for y in counted if x != y)


def _by_subject(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for s, o in pairs:
        found.setdefault(s, []).append(o)
    return found


def listed(head: str, pairs: Pairs) -> list[str]:
    """The members of a collection; of one that runs in a circle, each once."""
    first, rest = dict(pairs.get(_FIRST, ())), dict(pairs.get(_REST, ()))
    found, seen = list[str](), set[str]()
    while head in first and head not in seen:
        seen.add(head)
        found.append(first[head])
        head = rest.get(head, "")
    return found

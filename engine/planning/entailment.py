"""Which other triples of a stream entail one that a triple pattern matches, by the background's schema (semantics.md section 10).

The rules are schema.py's own, applied to triples with placeholders for the subject and object that a stream may bring.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.schema import Schema, entailed
from epsparql.terms import RDF, Iri, Term, Variable

TYPE = Iri(RDF + "type")
_SUBJECT, _OBJECT = Iri("\0subject"), Iri("\0object")
Constants = tuple[Term | None, Term | None, Term | None]
"""Subject, predicate and object of a pattern; None is a variable."""


@dataclass(frozen=True, slots=True)
class Premise:
    """What is to be scanned for, and how the triple that it stands for comes of it.

    `subject`, `predicate`, `object`: the terms that the stream's triple must have, None for any. The conclusion has the object as its subject if it
    is `swapped`; its predicate and object are `as_predicate` and `as_object`, or the stream's own where these are None.
    """

    subject: Term | None
    predicate: Term | None
    object: Term | None
    swapped: bool = False
    as_predicate: Term | None = None
    as_object: Term | None = None


def premises(schema: Schema[Term], pattern: Constants) -> list[Premise]:
    """The pattern itself, and every other triple that entails an instance of it."""
    found = {Premise(*pattern): None}
    for predicate, object_ in _triples(schema, pattern):
        for s, p, o in entailed((_SUBJECT, predicate, object_ or _OBJECT), schema):
            premise = _premise(pattern, predicate, object_, (s, p, o))
            if premise is not None:
                found[premise] = None
    return list(found)


def _triples(schema: Schema[Term], pattern: Constants) -> Iterator[tuple[Term, Term | None]]:
    """Predicate and object (None for any) of the triples that may entail one of the pattern, in a fixed order."""
    speaking = sorted({*schema.predicates, *schema.subjects, *schema.objects}, key=str)
    yield from ((predicate, None) for predicate in speaking)
    if pattern[1] not in (None, TYPE):
        return
    typing = [TYPE, *(p for p in speaking if TYPE in schema.predicates.get(p, ()))]
    for kind, above in schema.classes.items():
        if pattern[2] is None or pattern[2] in above:
            yield from ((predicate, kind) for predicate in typing)


def _premise(pattern: Constants, predicate: Term, object_: Term | None, conclusion: tuple[Term, Term, Term]) -> Premise | None:
    """The premise of one conclusion, if that is an instance of the pattern."""
    s, p, o = conclusion
    if pattern[1] not in (None, p):
        return None
    wanted: dict[Term, Term | None] = {_SUBJECT: None, _OBJECT: object_}
    if pattern[0] is not None:
        if s == _OBJECT and object_ not in (None, pattern[0]):
            return None
        wanted[s] = pattern[0]
    if o != _OBJECT and pattern[2] not in (None, o):
        return None
    if o == _OBJECT and pattern[2] is not None:
        wanted[_OBJECT] = pattern[2]
    as_object = None if o == _OBJECT and s == _SUBJECT else o
    return Premise(wanted[_SUBJECT], predicate, wanted[_OBJECT], s == _OBJECT, None if p == predicate else p, as_object)


def constants(parts: tuple[Term | Variable, Term | Variable, Term | Variable]) -> Constants:
    s, p, o = (None if isinstance(part, Variable) else part for part in parts)
    return s, p, o

"""This module finds which nodes have one message key in all solutions of a pattern: those that the key's predicate or
a part's links.
"""

from collections.abc import Collection

from engine.messages import MessageKey
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import TermOrVariable, Variable


@dataclass(frozen=True, slots=True)
class OneKey:
    """Holds sets of terms and variables that have one key, none of which is in two sets; `keys` are those that are a
    key themselves.
    """

    sets: frozenset[frozenset[TermOrVariable]] = frozenset()
    keys: frozenset[TermOrVariable] = frozenset()

    def alike(self, term: TermOrVariable) -> frozenset[TermOrVariable]:
        return next((each for each in self.sets if term in each), frozenset({term}))

    def joined(self, other: "OneKey") -> "OneKey":
        found = self.sets
        for each in other.sets:
            whole = each.union(*(own for own in found if own & each))
            found = frozenset({whole, *(own for own in found if not own & each)})
        return OneKey(found, self.keys | other.keys)

    def covers(self, other: "OneKey") -> bool:
        return other.keys <= self.keys and all(any(each <= own for own in self.sets) for each in other.sets)

    def among(self, names: Collection[TermOrVariable]) -> "OneKey":
        """Return what is known of some variables and of constants."""
        kept = [frozenset(term for term in each if not isinstance(term, Variable) or term in names) for each in (*self.sets, self.keys)]
        return OneKey(frozenset(each for each in kept[:-1] if len(each) > 1), kept[-1])


NOTHING_ALIKE = OneKey()


def is_key_triple(triple: a.TriplePattern, message: MessageKey) -> bool:
    return str(triple.predicate) == f"<{message.predicate}>"


def is_link(triple: a.TriplePattern, message: MessageKey) -> bool:
    """Return whether a triple says that its nodes have one key."""
    return is_key_triple(triple, message) or str(triple.predicate)[1:-1] in message.parts


def find_one_key(pattern: a.Pattern, message: MessageKey) -> OneKey:
    """Return what holds in every solution of a pattern."""
    match pattern:
        case a.Bgp(triples):
            found = NOTHING_ALIKE
            for triple in triples:
                if is_link(triple, message):
                    keys = frozenset({triple.object}) if is_key_triple(triple, message) else frozenset()
                    found = found.joined(OneKey(frozenset({frozenset({triple.subject, triple.object})}), keys))
            return found
        case a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right):
            return find_one_key(left, message).joined(find_one_key(right, message))
        case a.SeqWithout(left, right, _, _) | a.JoinWithout(left, right, _, _):
            return find_one_key(left, message).joined(find_one_key(right, message))
        case a.Filter(_, inner) | a.Extend(inner, _, _) | a.Within(inner, _) | a.Graph(_, inner):
            return find_one_key(inner, message)
        case a.LeftJoin(kept, _, _) | a.EqLeftJoin(kept, _, _) | a.SeqRightJoin(_, kept, _) | a.Minus(kept, _) | a.WithoutFor(kept, _, _):
            return find_one_key(kept, message)
        case a.SubSelect(inner, projection, _, _):
            return find_one_key(inner, message).among(projection)
        case a.Group():
            return find_one_key(pattern.pattern, message).among(pattern.keys)
        case _:
            return NOTHING_ALIKE

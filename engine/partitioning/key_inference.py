"""This module finds the variables by which a query's solutions can be sought apart, in partitions of its streams.

Each solution must rest on occurrences and background triples of one value of the key alone, its negative parts too.
Solutions must also be told apart by the key wherever they are compared. So every triple pattern has the key at the
same part. Events are dealt out by that part, and what a schema makes of an event keeps the key there.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import assert_never

from engine.background.fact_store import FactIndex
from engine.background.reasoning.rdfs_schema import Triple
from engine.background.reasoning.stream_entailment import OBJECT, SUBJECT, Entailment, is_of
from engine.messages import MOST_PARTS, MessageKey, Micros
from engine.partitioning.hash_partitioner import Part
from engine.partitioning.message_keys import NO_KEYS
from engine.partitioning.one_key import NOTHING_ALIKE, OneKey, find_one_key, is_key_triple, is_link
from engine.partitioning.time_slices import NoSlices, TimeSlices, cut_time
from engine.pattern_scope import find_scope, list_subexpressions
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.recursion import deep_stack
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import TermOrVariable, Variable
from epsparql.trees import replace_fields, walk_nodes

NOTHING_KNOWN = FactIndex()
MOST_NODES, MOST_PROPOSED = 400, 16
"""A query of more nodes has no message key; so many of its predicates are tried as one."""
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@dataclass(frozen=True, slots=True)
class Key:
    """Represents a variable that every triple pattern has at the same part."""

    variable: Variable
    part: Part
    message: MessageKey | None = None  # what the stream declares, if the part is the message


class NoKey(Exception):
    """Says why a variable is no key; `specific` if the variable is a key to each triple pattern."""

    def __init__(self, why: str, *, specific: bool = True) -> None:
        super().__init__(why)
        self.why, self.specific = why, specific


@dataclass(frozen=True, slots=True)
class Partition:
    """Holds the partition key, or none, and the reason, which names the part where it stands.

    Without a key there may be slices of time.
    """

    key: Variable | None
    reason: str
    proposal: MessageKey | None = None
    """If the stream declared this message key, the query would have a key."""
    slices: TimeSlices | None = None


def partition(
    query: a.Query, policy: str = UNRESTRICTED, declared: Mapping[str, MessageKey] = NO_KEYS, reach: Micros | None = None
) -> Partition:  # fmt: skip
    """Return the key, or the slices of time, that a query alone would have over an empty background.

    `declared` are the message keys of streams, and `reach` says how far back the query looks, as for `cut_time`.
    """
    assert not isinstance(query, a.BackgroundRule), "that is part of the background"
    try:
        key = next(iter(keys_of(query, policy, declared=declared)))
    except NoKey as none:
        slices, where = _describe_slices(query, reach)
        found = propose_message_key(query, policy)
        if found is None:
            return Partition(None, f"{none.why}; {where}", None, slices)
        message, key = found
        parts = f" and the parts {' '.join(f'<{part}>' for part in message.parts)}" if message.parts else ""
        return Partition(
            None,
            f"{none.why}; {where}. If its stream declares the message key <{message.predicate}>{parts}, the key is {key.variable}",
            message,
            slices,
        )
    if key.message is not None:
        return Partition(key.variable, f"its stream declares the message key <{key.message.predicate}>")
    return Partition(key.variable, f"every triple pattern has it as its {key.part.value}")


def _describe_slices(query: a.StreamQuery, reach: Micros | None) -> tuple[TimeSlices | None, str]:
    """Return the slices of time for a query without a key, and where it is evaluated, in words."""
    try:
        slices = cut_time(query, reach)
    except NoSlices as none:
        return None, f"one partition, because {none}"
    return slices, f"partitions take turns, each with {slices.length / 1e6:g} s of time and the {slices.reach / 1e6:g} s before"


def keys_of(query: a.Query, policy: str = UNRESTRICTED, known: FactIndex = NOTHING_KNOWN, declared: Mapping[str, MessageKey] = NO_KEYS) -> list[Key]:
    """Return a key for each part that has one, the best first; `declared` are the message keys of streams.

    Raises NoKey.
    """
    assert not isinstance(query, a.BackgroundRule), "that is part of the background"
    with deep_stack():
        _one_by_one(query)
        found: dict[Part, Key] = {}
        why: NoKey | None = None
        message = declared.get(query.streams[0]) if len(query.streams) == 1 and _is_small(query) else None
        for key in _candidates(query, message):
            try:
                if key.part not in found:
                    _KeyCheck(key, policy != UNRESTRICTED, known).check_query(query)
                    found[key.part] = key
            except NoKey as none:
                why = none if why is None or (none.specific and not why.specific) else why
    if found:
        return list(found.values())
    raise why or NoKey("no triple pattern reads the streams")


def _one_by_one(query: a.StreamQuery) -> None:
    """Refuse a query that looks at all solutions together, whatever they have in common. Raises NoKey."""
    if isinstance(query, a.Ask):
        raise NoKey("ASK looks for a first solution of all")
    if query.sources.windows:
        raise NoKey("named windows report together")
    if isinstance(query, a.Select) and query.program:
        raise NoKey("its own rules derive events of any key")
    if isinstance(query, a.Select) and query.modifiers.gathers:
        raise NoKey("ORDER BY, LIMIT and OFFSET put all solutions into one order")
    for node in walk_nodes(query.pattern):
        if isinstance(node, a.Path):
            raise NoKey("a property path goes through triples of any key")
        if isinstance(node, a.SubSelect) and node.modifiers.gathers:
            raise NoKey("ORDER BY, LIMIT and OFFSET put all solutions into one order")
        if isinstance(node, a.Group) and not node.keys:
            raise NoKey("there is one group of all")


def propose_message_key(query: a.Query, policy: str = UNRESTRICTED) -> tuple[MessageKey, Key] | None:
    """Return a message key by which a query without a key would be dealt out if its stream declared it; None if there
    is none.
    """
    if isinstance(query, a.BackgroundRule) or len(query.streams) != 1 or not _is_small(query):
        return None
    triples = [node for node in walk_nodes(query.pattern) if isinstance(node, a.TriplePattern)]
    subjects = {triple.subject for triple in triples}
    predicates = dict.fromkeys(triple.predicate for triple in triples if not isinstance(triple.predicate, Variable))
    for predicate in [each for each in predicates if str(each) != _TYPE][:MOST_PROPOSED]:
        links = {str(triple.predicate)[1:-1] for triple in triples if triple.object in subjects and triple.predicate in predicates}
        message = MessageKey(str(predicate)[1:-1], tuple(sorted(links - {str(predicate)[1:-1]}))[:MOST_PARTS])
        try:
            found = keys_of(query, policy, declared={query.streams[0]: message})[0]
        except NoKey:
            continue
        if found.part is Part.MESSAGE:
            return message, found
    return None


def _is_small(query: a.StreamQuery) -> bool:
    """Return whether it takes little time to see what has one message key."""
    return sum(1 for _ in islice(walk_nodes(query.pattern), MOST_NODES + 1)) <= MOST_NODES


def _candidates(query: a.StreamQuery, message: MessageKey | None) -> Iterator[Key]:
    """Return the variables at each part of a triple pattern, by part and then by name."""
    found: dict[Part, set[Variable]] = {part: set() for part in Part if part is not Part.MESSAGE}
    for node in walk_nodes(query.pattern):
        if isinstance(node, a.TriplePattern):
            for part, term in ((Part.SUBJECT, node.subject), (Part.OBJECT, node.object)):
                found[part] |= {term} if isinstance(term, Variable) else set()
        elif isinstance(node, a.Graph) and isinstance(node.name, Variable):
            found[Part.GRAPH].add(node.name)
    if message is not None:
        keys = {triple.object for triple in walk_nodes(query.pattern) if isinstance(triple, a.TriplePattern) and is_key_triple(triple, message)}
        for variable in sorted(found[Part.SUBJECT] | found[Part.OBJECT] & keys, key=lambda v: (v not in keys, v.name)):
            yield Key(variable, Part.MESSAGE, message)
    for part, variables in found.items():
        yield from (Key(variable, part) for variable in sorted(variables, key=lambda v: v.name))


@dataclass(frozen=True, slots=True)
class _KeyCheck:
    """Checks whether all that a query compares or combines agrees on a key.

    A pattern is keyed, or constant: the same in every partition.
    """

    key: Key
    policed: bool
    known: FactIndex
    inside: bool = False  # GRAPH with the key for its name
    one_key: OneKey = NOTHING_ALIKE  # what is known where a pattern stands

    def check_query(self, query: a.StreamQuery) -> None:
        """Check a whole query. Raises NoKey."""
        shown: set[TermOrVariable] | None = None
        match query:
            case a.Select(projection=projection, distinct=distinct):
                shown, what = (set(projection) if distinct else None), "DISTINCT compares solutions"
            case a.Construct(template=template):
                shown, what = (
                    {t for triple in template for t in (triple.subject, triple.object)},
                    "CONSTRUCT gives each set of triples once, those of solutions",
                )
            case a.Describe(targets=targets):
                shown, what = set(targets), "DESCRIBE gives each description once, those of solutions"
            case a.Ask():
                raise AssertionError(query)
            case _:
                assert_never(query)
        once = query.modifiers.once if isinstance(query, a.Select) else None
        if not self.once(once, self.keyed(query.pattern)):
            raise NoKey("no triple pattern reads the streams")
        if shown is not None and self.key.variable not in shown:
            raise NoKey(f"{what} that differ in {self.key.variable}")

    def keyed(self, pattern: a.Pattern) -> bool:
        """Return whether a pattern is keyed; False means that it is constant. Raises NoKey."""
        if self.key.message is not None:
            held = find_one_key(pattern, self.key.message)
            if not self.one_key.covers(held):
                return replace_fields(self, one_key=self.one_key.joined(held)).keyed(pattern)
        match pattern:
            case a.Bgp(triples):
                for triple in triples:
                    self.triple(triple)
                return bool(triples)
            case a.Values():
                return False
            case a.Join(left, right, True):
                return self.keyed(left) | self.keyed(right)
            case a.Join(left, right) | a.SeqJoin(left, right) | a.EqJoin(left, right) | a.RelationJoin(_, left, right):
                return self.policy_keyed(left, right)
            case a.SeqWithout(left, right, absent, _) | a.JoinWithout(left, right, absent, _):
                return self.decided(self.policy_keyed(left, right), lambda: self.keyed(absent))
            case a.Union(left, right):
                return self.alike(left, right)
            case a.Filter(condition, inner) | a.Extend(inner, _, condition):
                return self.with_exists(self.keyed(inner), condition)
            case a.LeftJoin(kept, other, condition) | a.EqLeftJoin(kept, other, condition) | a.SeqRightJoin(other, kept, condition):
                return self.with_exists(self.decided(self.keyed(kept), lambda: self.keyed(other)), condition)
            case a.Minus(kept, other) | a.WithoutFor(kept, other, _):
                return self.decided(self.keyed(kept), lambda: self.keyed(other))
            case a.Within(inner, _):
                return self.keyed(inner)
            case a.Graph(name, inner):
                return self.graph(name, inner)
            case a.Group():
                return self.group(pattern)
            case a.SubSelect(inner, projection, _, modifiers):
                check = self._seen_by(projection)
                keyed = check.once(modifiers.once, check.keyed(inner))
                if keyed and self.key.variable not in projection:
                    raise NoKey(f"a sub-SELECT hides {self.key.variable}")
                return keyed
            case a.Path() | a.InWindow() | a.Alarm() | a.Instant():
                raise AssertionError(pattern)  # `_one_by_one` was asked before
            case _:
                assert_never(pattern)

    def triple(self, triple: a.TriplePattern) -> None:
        if isinstance(triple.predicate, Variable):
            raise NoKey(f"a triple pattern has a variable, {triple.predicate}, for its predicate")
        if self.inside:
            return
        if self.key.part is Part.GRAPH:
            raise NoKey(f"not all triple patterns lie in GRAPH {self.key.variable}", specific=False)
        if self.key.message is not None:
            self.message_triple(triple, self.key.message)
        elif (triple.subject if self.key.part is Part.SUBJECT else triple.object) != self.key.variable:
            raise NoKey("no variable stands at the same part of every triple pattern", specific=False)
        for conclusion in _conclusions(self.known.entailment, triple):
            if conclusion[2 if self.key.part is Part.OBJECT else 0] != (OBJECT if self.key.part is Part.OBJECT else SUBJECT):
                raise NoKey(f"by the background's schema triples that have it elsewhere entail those of {triple.predicate}")

    def message_triple(self, triple: a.TriplePattern, message: MessageKey) -> None:
        """Check that a triple comes with a message that has the key. Raises NoKey."""
        if self.one_key.alike(triple.subject) != self.one_key.alike(self.key.variable):
            raise NoKey(f"nothing says that {triple.subject} has the message key {self.key.variable}", specific=False)
        if (is_link(triple, message) or triple.subject not in self.one_key.keys) and len(self.known.matching(triple, a.ANYWHERE)):
            raise NoKey(f"the background has triples of {triple.predicate}, which come with no message")
        if is_link(triple, message) and any(True for _ in _conclusions(self.known.entailment, triple)):
            raise NoKey(f"by the background's schema triples entail those of {triple.predicate}, which say what belongs to a message")

    def _seen_by(self, names: Collection[Variable]) -> "_KeyCheck":
        """Return the check for a part that shares only these variables with the rest."""
        return replace_fields(self, one_key=self.one_key.among(names))

    def policy_keyed(self, left: a.Pattern, right: a.Pattern) -> bool:
        """Return whether two patterns joined under a policy are keyed. Raises NoKey.

        A policy chooses among the goals of one join key, which both sides must bind for the partition key to be part
        of it.
        """
        check = replace_fields(self, one_key=NOTHING_ALIKE) if self.policed else self
        both = check.keyed(left), check.keyed(right)
        if self.policed and not all(both):
            raise NoKey("a policy chooses among solutions that do not agree on it")
        return any(both)

    def alike(self, left: a.Pattern, right: a.Pattern) -> bool:
        keyed = self.keyed(left)
        if self.keyed(right) != keyed:
            raise NoKey(f"a branch of UNION leaves {self.key.variable} open")
        return keyed

    def decided(self, kept: bool, other: Callable[[], bool]) -> bool:
        """Check a pattern that is decided by what is absent, and return whether it is keyed.

        All that could matter must be in its partition. Raises NoKey.
        """
        if other() and not kept:
            raise NoKey(f"what is decided on does not bind {self.key.variable}")
        return kept

    def with_exists(self, kept: bool, condition: a.Expression | None) -> bool:
        for part in [] if condition is None else list_subexpressions(condition):
            if isinstance(part, a.Exists):
                self.decided(kept, partial(self.keyed, part.pattern))
        return kept

    def group(self, group: a.Group) -> bool:
        keyed = self._seen_by(group.keys).keyed(group.pattern)
        if not keyed or self.key.variable not in group.keys:
            raise NoKey("a group gathers solutions that need not agree on more than its keys")
        for _, aggregate in group.aggregates:
            self.with_exists(keyed, aggregate.argument)
        if isinstance(group.window, a.RunWindow) and group.window.until is not None:
            self.decided(keyed, partial(self._seen_by(group.keys).keyed, group.window.until))
        return keyed

    def once(self, once: a.Once | None, keyed: bool) -> bool:
        """Check a ONCE PER over solutions, and return whether they are keyed. Raises NoKey."""
        if once is None:
            return keyed
        if not keyed or self.key.variable not in once.keys:
            raise NoKey("ONCE PER compares solutions that need not agree on more than its keys")
        if once.until is not None:
            self.decided(keyed, partial(self._seen_by(once.keys).keyed, once.until))
        return keyed

    def graph(self, name: TermOrVariable, inner: a.Pattern) -> bool:
        """Check a pattern inside GRAPH. Raises NoKey.

        If the key is the graph's name, the patterns in it need nothing else in common. By another part, a timeless
        solution would take intervals from the graph's other triples.
        """
        if self.key.part is Part.GRAPH:
            if self.inside or name != self.key.variable:
                raise NoKey(f"not all triple patterns lie in GRAPH {self.key.variable}", specific=False)
            if not replace_fields(self, inside=True).keyed(inner):
                raise NoKey(f"GRAPH {self.key.variable} has no triple pattern")
            return True
        if not self.keyed(inner):
            raise NoKey("GRAPH gives what is the same everywhere the intervals of all triples of a graph")
        if find_scope(inner, lambda triple, place: len(self.known.matching(triple, a.ANYWHERE)) > 0).timeless:
            raise NoKey("GRAPH gives what the background holds the intervals of all triples of a graph")
        return True


def _conclusions(entailment: Entailment, triple: a.TriplePattern) -> Iterator[Triple]:
    """Return what triples of streams may entail that belongs to a pattern, with placeholders for their terms."""
    assert not isinstance(triple.predicate, Variable)
    pattern = triple.predicate, None if isinstance(triple.object, Variable) else triple.object
    found = [each for predicate in entailment.concluding(pattern) for each in entailment.of_predicate[predicate]]
    found += [each for pair in entailment.told(pattern) for each in entailment.of_pair[pair]]
    yield from (each.triple for each in found if is_of(each.triple, pattern))
    yield from (each.triple for each in entailment.of_class if each.triple[1] == triple.predicate)


__all__ = ["Key", "NoKey", "Partition", "keys_of", "partition", "propose_message_key"]

"""Lists of postings say which wants an occurrence concerns, by the schema and by its object, so that no other wants
are tried.

A list of postings says which wants are given which triples. There is a list for each predicate whose triples entail
something that is wanted, and for each predicate and object with more; those that say the same are one list. So a
class that is wanted costs each of its subclasses a place in a hash table, however many queries want the class.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.alpha.alpha_nodes import AS_SENT, Want
from engine.alpha.free_rows import Ranges, by_predicate, with_predicate, with_rows
from engine.background.reasoning.stream_entailment import OBJECT, SUBJECT, Conclusion, Entailment, Pair, Pattern, is_of
from engine.dictionary.term_dictionary import Held, TermTable
from engine.kernel.state import layout as c
from engine.kernel.state.arrays import Net
from engine.native.entries import enter_lists, find_lists
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term

Ints = NDArray[np.int64]
Posting = tuple[int, ...]
"""A posting has POSTING_WIDTH columns."""
_FEWEST = 16


@dataclass(slots=True, eq=False)
class Postings:
    """Holds the lists of one network under its schema."""

    terms: TermTable
    entailment: Entailment
    _wants: dict[Pattern, int] = field(default_factory=dict)
    _as_sent: int = c.NONE  # the want of whatever streams bring
    _numbers: dict[bytes, int] = field(default_factory=dict)  # of lists, by their postings
    _users: Counter[int] = field(default_factory=Counter)  # pairs and predicates that have a list
    _lists: Ranges = field(default_factory=lambda: Ranges(1))
    _ranges: Ranges = field(default_factory=Ranges)  # of `postings`
    _predicates: set[int] = field(default_factory=set)  # that have a list, by number
    _placed: int = 0  # places of `posted` that are taken
    _posted: int = 0  # those of them with a list

    # ------------------------------------------------------------ wants
    def add(self, net: Net, wants: Mapping[Want, int]) -> Net:
        """Return the network with lists for more wants, which are given with their numbers."""
        for want, number in wants.items():
            if want[0] == AS_SENT:
                self._as_sent = number
                net = self._list_predicates(net, [None])
            else:
                pattern = self._pattern(want)
                self._wants[pattern] = number
                net = self._list_predicates(net, self._concluding(pattern))
                net = self._list_pairs(net, self._pairs(pattern))
                net = self._list_classes(net, pattern, number)
        return net

    def remove(self, net: Net, wants: Mapping[Want, int]) -> Net:
        """Return the network without lists for some wants, whose numbers may be given to others."""
        for want, number in wants.items():
            if want[0] == AS_SENT:
                self._as_sent = c.NONE
                net = self._list_predicates(net, [None])
            else:
                pattern = self._pattern(want)
                del self._wants[pattern]
                net = self._list_predicates(net, self._concluding(pattern))
                net = self._list_pairs(net, self._pairs(pattern))
                net = self._relist(net, self._class_pairs(pattern), partial(_drop_want, number))
        return net

    def _pattern(self, want: Want) -> Pattern:
        predicate, object_ = (self.terms.term(number) for number in want)
        return predicate, object_

    def _concluding(self, pattern: Pattern) -> Iterable[Term | None]:
        """Return the predicates whose triples, whatever their objects, may entail one of a pattern."""
        return self.entailment.concluding(pattern)

    def _pairs(self, pattern: Pattern) -> list[Pair]:
        """Return predicates and objects of triples that match a pattern, or entail a match with the same object or
        because of their object.
        """
        predicate, object_ = pattern
        told = self.entailment.told(pattern)
        if object_ is None:
            return told
        return [(predicate, object_), *((p, object_) for p in self.entailment.concluding((predicate, OBJECT))), *told]

    def _class_pairs(self, pattern: Pattern) -> list[Pair]:
        """Return predicates and objects of triples that entail one of a pattern because their objects have
        superclasses.
        """
        entailment, object_ = self.entailment, pattern[1]
        if not entailment.concludes_by_class(pattern):
            return []
        classes = entailment.schema.classes
        below = classes.all_below([object_]) if object_ is not None and entailment.only_types(pattern) else classes
        return [(p, kind) for p in entailment.typing for kind in below]

    # ------------------------------------------------------------ the schema
    def change(self, net: Net, after: Entailment) -> Net:
        """Return the network under another schema; only lists that differ are made anew."""
        before, self.entailment = self.entailment, after
        if (after.typing, after.of_class, after.of_pair) != (before.typing, before.of_class, before.of_pair):
            return self._anew(net)
        predicates = [p for p in {*before.of_predicate, *after.of_predicate} if before.of_predicate.get(p) != after.of_predicate.get(p)]
        net = self._list_predicates(net, predicates)
        wanted = {object_ for _, object_ in self._wants if object_ is not None} if predicates else set()
        net = self._list_pairs(net, [(p, object_) for p in predicates for object_ in wanted])
        if any(after.concludes_by_class(pattern) for pattern in self._wants):
            classes, _ = before.schema.differing(after.schema)
            net = self._list_pairs(net, [(p, kind) for p in after.typing for kind in classes])
        return net

    def _anew(self, net: Net) -> Net:
        wants = {(self.terms.intern(str(p)) if p else 0, self.terms.intern(str(o)) if o else 0): number for (p, o), number in self._wants.items()}
        if self._as_sent != c.NONE:
            wants[AS_SENT, 0] = self._as_sent
        by_predicate(net)[:, [c.ALPHA_LIST, c.ALPHA_KEYED]] = 0
        self._wants, self._numbers, self._users, self._predicates, self._placed, self._posted = {}, {}, Counter(), set(), 0, 0
        self._lists, self._ranges = Ranges(1), Ranges()
        empty = np.full((_FEWEST, c.POSTED_WIDTH), c.NONE, np.int64)
        return self.add(net._replace(posted=empty), wants)

    # ------------------------------------------------------------ what is listed
    def _of_predicate(self, predicate: Term | None, numbers: "_Numbers") -> set[Posting]:
        """Return the postings for triples of a predicate, whatever their objects; None stands for any predicate."""
        if predicate is None:
            return set() if self._as_sent == c.NONE else {_as_it_is(self._as_sent)}
        conclusions = self.entailment.of_predicate.get(predicate, ())
        return {posting for each in conclusions for posting in self._list_postings(each, numbers)}

    def _of_pair(self, predicate: Term | None, object_: Term, numbers: "_Numbers") -> set[Posting]:
        """Return the postings that triples of a predicate and object have beside those of their predicate."""
        found = {_as_it_is(want) for want in [self._wants.get((predicate, object_))] if want is not None}
        if predicate is None:
            return found
        for each in self.entailment.of_predicate.get(predicate, ()):
            if each.triple[2] == OBJECT:
                found |= {(want, *numbers.number_conclusion(each)) for want in self._wanting(each.triple[1], (object_,))}
        for each in self.entailment.of_pair.get((predicate, object_), ()):
            found.update(self._list_postings(each, numbers, object_))
        if predicate in self.entailment.typing:
            found.update(*(self._by_class(above, numbers) for above in self.entailment.schema.classes.get(object_)))
        return found

    def _by_class(self, above: Term, numbers: "_Numbers") -> set[Posting]:
        """Return the postings that triples have because this class is above their object."""
        found = numbers.by_class.get(above)
        if found is None:
            conclusions = self.entailment.of_class_above(above)
            found = numbers.by_class[above] = {posting for each in conclusions for posting in self._list_postings(each, numbers)}
        return found

    def _list_postings(self, conclusion: Conclusion, numbers: "_Numbers", object_: Term | None = None) -> list[Posting]:
        """Return the postings of a conclusion for the wants that it may match; `object_` is the triple's object, if
        that is known.
        """
        _, p, o = conclusion.triple
        objects: Iterable[Term | None] = {None, object_ if o == OBJECT else o}
        if o == SUBJECT:
            objects = {None, *(object_ for _, object_ in self._wants)}
        return [(want, *numbers.number_conclusion(conclusion)) for want in self._wanting(p, objects)]

    def _wanting(self, predicate: Term, objects: Iterable[Term | None]) -> list[int]:
        """Return the wants for triples with any of these objects, and with this predicate or any."""
        found = (self._wants.get((p, o)) for o in objects for p in (predicate, None))
        return [want for want in found if want is not None]

    # ------------------------------------------------------------ lists
    def _list_predicates(self, net: Net, predicates: Iterable[Term | None]) -> Net:
        numbers = _Numbers(self.terms)
        for predicate in predicates:
            number = 0 if predicate is None else numbers[predicate]
            net = with_predicate(net, number)
            net, listed = self._listed(net, self._of_predicate(predicate, numbers))
            cell = by_predicate(net)[number]
            self._use(net, [int(cell[c.ALPHA_LIST])], [listed])
            cell[c.ALPHA_LIST] = listed
            (self._predicates.add if listed else self._predicates.discard)(number)
        return net

    def _list_pairs(self, net: Net, pairs: Sequence[Pair]) -> Net:
        numbers, lists = _Numbers(self.terms), np.zeros(len(pairs), np.int64)
        for k, (predicate, object_) in enumerate(pairs):
            net, lists[k] = self._listed(net, self._of_pair(predicate, object_, numbers))
        predicates, objects = self._numbered(pairs)
        return self._give(net, predicates, objects, lists)

    def _list_classes(self, net: Net, pattern: Pattern, want: int) -> Net:
        """List for a new want what triples entail by superclasses of their objects.

        A want of one class adds the same postings for all its subclasses.
        """
        pairs = self._class_pairs(pattern)
        if not pairs or pattern[1] is None or not self.entailment.only_types(pattern):
            return self._list_pairs(net, pairs)
        numbers = _Numbers(self.terms)
        more = [(want, *numbers.number_conclusion(each)) for each in self.entailment.of_class_above(pattern[1]) if is_of(each.triple, pattern)]
        return self._relist(net, pairs, lambda listed: [*listed, *more])

    def _relist(self, net: Net, pairs: Sequence[Pair], change: Callable[[list[Posting]], list[Posting]]) -> Net:
        """Give pairs what `change` makes of their lists; the pairs have few different ones."""
        if not pairs:
            return net
        predicates, objects = self._numbered(pairs)
        before = np.zeros(len(pairs), np.int64)
        find_lists(net.posted, predicates, objects, before)
        distinct, which = np.unique(before, return_inverse=True)
        new = np.zeros(len(distinct), np.int64)
        for k, listed in enumerate(distinct.tolist()):
            net, new[k] = self._listed(net, change(_postings(net, listed)))
        return self._give(net, predicates, objects, new[which])

    def _numbered(self, pairs: Sequence[Pair]) -> tuple[Ints, Ints]:
        numbers = _Numbers(self.terms)
        predicates = np.array([0 if p is None else numbers[p] for p, _ in pairs], np.int64)
        return predicates, self.terms.intern_all([str(o) for _, o in pairs])

    def _listed(self, net: Net, postings: Iterable[Posting]) -> tuple[Net, int]:
        """Return the network and the number of the list of these postings, 0 for none; a new list is entered."""
        content = np.array(sorted({*postings}), np.int64).reshape(-1, c.POSTING_WIDTH)
        if not len(content):
            return net, 0
        key = content.tobytes()
        if key in self._numbers:
            return net, self._numbers[key]
        number, first = self._lists.take(1), self._ranges.take(len(content))
        net = with_rows(net, {"lists": self._lists.end, "postings": self._ranges.end})
        net.lists[number] = first, len(content)
        net.postings[first : first + len(content)] = content
        self._numbers[key] = number
        return net, number

    def _give(self, net: Net, predicates: Ints, objects: Ints, lists: Ints) -> Net:
        """Give lists to pairs."""
        if not len(lists):
            return net
        net = self._with_places(net, len(lists))
        before = np.zeros(len(lists), np.int64)
        find_lists(net.posted, predicates, objects, before)
        self._placed += enter_lists(net.posted, predicates, objects, lists)
        more = (lists != 0).astype(np.int64) - (before != 0)
        self._posted += int(more.sum())
        net = with_predicate(net, int(predicates.max()))
        np.add.at(by_predicate(net)[:, c.ALPHA_KEYED], predicates, more)
        self._use(net, before.tolist(), lists.tolist())
        return self._with_places(net, 0)

    def _with_places(self, net: Net, more: int) -> Net:
        """Return the network with room for more pairs in the table, at most half of which is taken.

        Pairs without a list lose their places before they are most of the pairs.
        """
        if 2 * (self._placed + more) <= len(net.posted) and self._placed <= 2 * self._posted + _FEWEST:
            return net
        kept = net.posted[(net.posted[:, c.POSTED_P] != c.NONE) & (net.posted[:, c.POSTED_LIST] != 0)]
        posted = np.full((1 << max(4 * (len(kept) + more), _FEWEST).bit_length(), c.POSTED_WIDTH), c.NONE, np.int64)
        predicates, objects, lists = (np.ascontiguousarray(kept[:, k]) for k in (c.POSTED_P, c.POSTED_O, c.POSTED_LIST))
        self._placed = enter_lists(posted, predicates, objects, lists)
        return net._replace(posted=posted)

    def _use(self, net: Net, before: Iterable[int], after: Iterable[int]) -> None:
        """Count who has a list, and free a list that nobody has any more."""
        gone = Counter(before)
        self._users.update(after)
        self._users.subtract(gone)
        for number in gone:
            if number and not self._users[number]:
                del self._users[number]
                first, n = net.lists[number].tolist()
                del self._numbers[net.postings[first : first + n].tobytes()]
                net.lists[number] = 0
                self._lists.give(number, 1)
                self._ranges.give(first, n)

    # ------------------------------------------------------------ about it
    def widest(self, net: Net) -> int:
        """Return how many scans one occurrence may concern at most by lists, of which it finds up to four."""
        scans = net.wants[net.postings[: self._ranges.end, c.P_WANT], c.WANT_N]
        before = np.concatenate([[0], np.cumsum(scans)])
        first, n = net.lists[: self._lists.end].T
        return 4 * int((before[first + n] - before[first]).max())

    def describes_others(self, net: Net) -> bool:
        """Return whether an occurrence may be taken as a triple of another subject."""
        return bool((net.postings[: self._ranges.end, c.P_AS_S] != c.NONE).any())

    def tells_kinds(self, net: Net) -> bool:
        """Return whether it matters which kind of term an occurrence's object is."""
        return bool(net.postings[: self._ranges.end, c.P_RESOURCE].any())

    def hold(self, net: Net, held: Held) -> None:
        """Mark the terms of lists, and those of the pairs and predicates that have them."""
        held.add(net.posted[:, : c.POSTED_LIST])
        held.add(net.postings[:, c.P_AS_S :])
        held.add(np.array(list(self._predicates), np.int64))


class _Numbers(dict[Term, int]):
    """Maps terms to their numbers, and asks for each of them once."""

    def __init__(self, terms: TermTable) -> None:
        self._terms = terms
        self.by_class: dict[Term, set[Posting]] = {}  # what has been made of classes meanwhile

    def __missing__(self, term: Term) -> int:
        number = self[term] = self._terms.intern(str(term))
        return number

    def number_conclusion(self, conclusion: Conclusion) -> Posting:
        """Return a conclusion as a posting has it, without the want."""
        s, p, o = conclusion.triple
        return (
            int(conclusion.resource),
            c.NONE if s == SUBJECT else c.OTHER_END if s == OBJECT else self[s],
            self[p],
            c.NONE if o == OBJECT else c.OTHER_END if o == SUBJECT else self[o],
            c.NONE if conclusion.of is None else self[conclusion.of],
        )


def _as_it_is(want: int) -> Posting:
    """Return the posting by which the triple itself is wanted."""
    return want, 0, c.NONE, c.NONE, c.NONE, c.NONE


def _drop_want(want: int, listed: list[Posting]) -> list[Posting]:
    return [posting for posting in listed if posting[c.P_WANT] != want]


def _postings(net: Net, number: int) -> list[Posting]:
    first, n = net.lists[number].tolist()
    return [tuple(posting) for posting in net.postings[first : first + n].tolist()]

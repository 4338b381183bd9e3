"""Static rules' conclusions are kept up to date, stratum by stratum, by delete and rederive.

What may rest on something that is gone is taken back first, by the state from before the change; what has another
reason comes again; then what is new goes through the rules (semi-naive). Counting derivations would not do: in a
recursive rule facts may support each other in a circle (Gupta, Mumick, Subrahmanian, *Maintaining views
incrementally*, SIGMOD 1993).

Where a relation keeps the best value of each group, a value that has another reason by a better one stays. Worse
values that were derived meanwhile are taken back at the end, with what was copied of them.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.background.static_rules.best_values import choose_best, find_candidates, find_supported
from engine.background.static_rules.groups import find_groups, fold_groups, list_results
from engine.background.static_rules.joins import Joins, rows_before, rows_now
from engine.background.static_rules.program import PART, WRITTEN, Atom, DatalogRule, Program, Relation, Stratum
from engine.background.static_rules.sorted_rows import NO_INTS, NO_ROWS, SortedRows, is_among, unite
from engine.errors import EntailmentLimit
from epsparql.deferred_methods import dataclass

Ints = NDArray[np.int64]
MOST_DERIVED = 4_000_000
"""Static rules may derive so many triples."""
MOST_GROWN = 25_000
"""Rules that feed themselves with new values may derive so many triples: they may have no end."""


class Delta(NamedTuple):
    """Holds the tuples, sorted, that a relation has more and fewer than before a change."""

    more: Ints
    fewer: Ints


NO_DELTA = Delta(NO_INTS, NO_INTS)


@dataclass(slots=True)
class Change:
    """Says what changes: the program, rules of the old one and the new one, and what is given of relations (more and
    fewer).
    """

    program: Program
    dropped: list[DatalogRule]
    fresh: list[DatalogRule]
    given: Mapping[Relation, Delta]


@dataclass(slots=True, eq=False)
class _Pending:
    """Collects tuples by relation until somebody takes them."""

    parts: dict[Relation, list[Ints]] = field(default_factory=dict)

    def put(self, relation: Relation, packed: Ints) -> None:
        if len(packed):
            self.parts.setdefault(relation, []).append(packed)

    def take_all(self, relation: Relation) -> Ints:
        return unite(self.parts.pop(relation, ()))


class Maintenance:
    """Applies one change. `deltas` says afterwards what has become of relations."""

    def __init__(self, joins: Joins, change: Change) -> None:
        self._joins, self._change, self._program = joins, change, change.program
        self.deltas: dict[Relation, Delta] = {}
        self._fresh = set(change.fresh)
        self._suspects, self._coming = _Pending(), _Pending()
        self._agenda: list[int] = []
        self._listed: set[int] = set()

    def run(self) -> None:
        """Bring all relations of the program up to date. Raises EntailmentLimit; then they are of no use."""
        for rule in self._change.dropped:
            if rule.head.relation in self._program.place:
                derived = self._joins.heads(rule, rows_now) if rule.fold is None else np.sort(rule.head.relation.rows.packed())
                self._suspects.put(rule.head.relation, derived)
                self._list(self._program.place[rule.head.relation])
        for relation, delta in self._change.given.items():
            relation.given = relation.given.without(delta.fewer).with_more(delta.more)
            self._suspects.put(relation, delta.fewer)
            self._coming.put(relation, delta.more)
            self._list(self._program.place[relation])
        for rule in self._fresh:
            self._list(self._program.place[rule.head.relation])
        while self._agenda:
            number = heapq.heappop(self._agenda)
            self._settle(self._program.strata[number])
        for relation in self.deltas:
            relation.before = None
        _check_number(
            sum(len(relation.rows) for relation in self._program.relations if relation.key.role == WRITTEN), MOST_DERIVED, "the static rules"
        )

    def _list(self, number: int) -> None:
        if number not in self._listed:
            self._listed.add(number)
            heapq.heappush(self._agenda, number)

    def _settle(self, stratum: Stratum) -> None:
        for relation in stratum.relations:
            relation.before = relation.rows
        folding = next((rule for rule in stratum.rules if rule.fold is not None), None)
        if folding is not None:
            gone, come = self._fold_anew(folding)
        else:
            feeding = [(rule, atoms) for rule in stratum.rules if rule not in self._fresh and (atoms := self._changed_atoms(rule))]
            gone = self._take_back(stratum, feeding)
            come = self._derive(stratum, feeding, gone)
        for relation in stratum.relations:
            fewer, more = gone.get(relation, NO_ROWS).packed(), come.get(relation, NO_ROWS).packed()
            fewer, more = np.sort(fewer), np.sort(more)
            delta = Delta(more[~is_among(more, fewer)], fewer[~is_among(fewer, more)])
            if len(delta.more) or len(delta.fewer):
                self.deltas[relation] = delta
                for number in self._program.readers[relation]:
                    if number != self._program.place[relation]:
                        self._list(number)
            else:
                relation.before = None

    def _changed_atoms(self, rule: DatalogRule) -> list[tuple[Atom, int | None, Delta]]:
        """Return the atoms of relations that have changed, those that are absent without a place; what is more of
        these is fewer of the rule's.
        """
        found: list[tuple[Atom, int | None, Delta]] = [
            (atom, k, self.deltas[atom.relation]) for k, atom in enumerate(rule.atoms) if atom.relation in self.deltas
        ]
        absent = [(atom, self.deltas[atom.relation]) for atom in rule.absent if atom.relation in self.deltas]
        return [*found, *((atom, None, Delta(delta.fewer, delta.more)) for atom, delta in absent)]

    def _fold_anew(self, rule: DatalogRule) -> tuple[dict[Relation, SortedRows], dict[Relation, SortedRows]]:
        """Fold the groups anew of which a tuple came or went, and return what goes and what comes.

        The rule alone derives its relation.
        """
        relation, delta = rule.head.relation, self.deltas.get(rule.source_atom.relation, NO_DELTA)
        self._suspects.take_all(relation)
        groups = None if rule in self._fresh else find_groups(self._joins, rule, unite(delta))
        there = np.sort(relation.rows.packed()) if groups is None else list_results(self._joins, rule, groups)
        now = fold_groups(self._joins, rule, groups)
        gone, come = there[~is_among(there, now)], now[~is_among(now, there)]
        relation.rows = relation.rows.without(gone).with_more(come)
        return {relation: SortedRows.from_sorted(gone)}, {relation: SortedRows.from_sorted(come)}

    # ------------------------------------------------------------ what goes
    def _take_back(self, stratum: Stratum, feeding: list[tuple[DatalogRule, list[tuple[Atom, int | None, Delta]]]]) -> dict[Relation, SortedRows]:
        """Take back what may rest on something that is gone, and return it."""
        suspects, gone = self._suspects, dict[Relation, SortedRows]()
        for rule, atoms in feeding:
            for atom, place, delta in atoms:
                if len(delta.fewer) and len(rule.head.relation.rows):
                    suspects.put(rule.head.relation, self._joins.heads(rule, rows_before, atom, delta.fewer, place))
        for relation, packed in _rounds(stratum, suspects):
            there = gone.get(relation, NO_ROWS)
            new = packed[relation.old.contains(packed) & ~relation.given.contains(packed) & ~there.contains(packed)]
            if len(new) and relation in stratum.best:
                new = new[~is_among(new, find_supported(self._joins, self._program.by_head[relation], new))]
            if len(new):
                gone[relation] = there.with_more(new)
                if stratum.best:  # so that no value has a reason in one that is gone
                    relation.rows = relation.rows.without(new)
                for rule, place in stratum.inner.get(relation, ()):
                    suspects.put(rule.head.relation, self._joins.heads(rule, rows_before, rule.atoms[place], new, place))
        for relation, rows in gone.items():
            relation.rows = relation.rows.without(np.sort(rows.packed()))
        return gone

    # ------------------------------------------------------------ what comes
    def _derive(
        self, stratum: Stratum, feeding: list[tuple[DatalogRule, list[tuple[Atom, int | None, Delta]]]], gone: dict[Relation, SortedRows]
    ) -> dict[Relation, SortedRows]:
        """Let come what stands for another reason, and what is new, and return it."""
        coming, come = self._coming, dict[Relation, SortedRows]()
        for relation, rows in gone.items():
            self._put_again(stratum, relation, np.sort(rows.packed()))
        for rule in stratum.rules:
            if rule in self._fresh:
                coming.put(rule.head.relation, self._joins.heads(rule, rows_now))
        for rule, atoms in feeding:
            if any(place is not None and not len(atom.relation.old) for atom, place, _ in atoms):  # so it has derived nothing yet
                coming.put(rule.head.relation, self._joins.heads(rule, rows_now))
                continue
            for atom, place, delta in atoms:
                if len(delta.more):
                    coming.put(rule.head.relation, self._joins.heads(rule, rows_now, atom, delta.more, place))
        replaced = self._spread(stratum, come)
        while replaced:
            for relation, packed in self._take_back_worse(stratum, replaced, _Outcome(gone, come)).items():
                self._put_again(stratum, relation, packed)
            replaced = self._spread(stratum, come)
        return come

    def _put_again(self, stratum: Stratum, relation: Relation, packed: Ints) -> None:
        """Let come what rules derive of tuples that are gone; of a relation that keeps the best, of their groups."""
        for rule in self._program.by_head.get(relation, ()):
            found = find_candidates(self._joins, rule, packed) if relation in stratum.best else self._joins.heads(rule, rows_now, rule.head, packed)
            self._coming.put(relation, found)

    def _spread(self, stratum: Stratum, come: dict[Relation, SortedRows]) -> dict[Relation, Ints]:
        """Take in what comes and what follows from it, and return the values that better ones replaced."""
        coming, replaced = self._coming, dict[Relation, Ints]()
        most, rules = (MOST_GROWN, "rules that feed themselves with new values") if stratum.grows else (MOST_DERIVED, "the static rules")
        for relation, packed in _rounds(stratum, coming):
            new = packed[~relation.rows.contains(packed)]
            if len(new) and relation in stratum.best:
                new, worse, later = choose_best(self._joins, relation, stratum.best[relation], new)
                coming.put(relation, later)
                if len(worse):
                    replaced[relation] = unite([replaced.get(relation, NO_INTS), worse])
                    relation.rows = relation.rows.without(worse)
            if len(new):
                relation.rows = relation.rows.with_more(new)
                there = come.get(relation, NO_ROWS)
                come[relation] = there.with_more(new[~there.contains(new)] if stratum.best else new)
                _check_number(sum(len(each.rows) for each in stratum.relations if each.key.role in (WRITTEN, PART)), most, rules)
                for rule, place in stratum.inner.get(relation, ()):
                    coming.put(rule.head.relation, self._joins.heads(rule, rows_now, rule.atoms[place], new, place))
        return replaced

    def _take_back_worse(self, stratum: Stratum, replaced: dict[Relation, Ints], outcome: "_Outcome") -> dict[Relation, Ints]:
        """Take back what is not the best, with what was copied of it, and return the copies: they may have another
        reason.
        """
        pending, copies = _Pending(), dict[Relation, Ints]()
        for relation, packed in replaced.items():
            worse = packed[~relation.rows.contains(packed)]
            outcome.take_back(relation, worse)
            self._put_copies(stratum, relation, worse, pending)
        for relation, packed in _rounds(stratum, pending):
            worse = packed[relation.rows.contains(packed) & ~relation.given.contains(packed)]
            if relation not in stratum.best and len(worse):
                relation.rows = relation.rows.without(worse)
                outcome.take_back(relation, worse)
                copies[relation] = unite([copies.get(relation, NO_INTS), worse])
                self._put_copies(stratum, relation, worse, pending)
        return copies

    def _put_copies(self, stratum: Stratum, relation: Relation, packed: Ints, pending: _Pending) -> None:
        for rule, place in stratum.inner.get(relation, ()):
            if rule.head.relation not in stratum.best and len(packed):
                pending.put(rule.head.relation, self._joins.heads(rule, rows_now, rule.atoms[place], packed, place))


class _Outcome(NamedTuple):
    """Holds what goes and what comes of a stratum's relations."""

    gone: dict[Relation, SortedRows]
    come: dict[Relation, SortedRows]

    def take_back(self, relation: Relation, packed: Ints) -> None:
        """Let tuples go: those from before the change, and those that came in it."""
        there = self.gone.get(relation, NO_ROWS)
        self.gone[relation] = there.with_more(packed[relation.old.contains(packed) & ~there.contains(packed)])
        if relation in self.come:
            self.come[relation] = self.come[relation].without(packed)


def _rounds(stratum: Stratum, pending: _Pending) -> Iterable[tuple[Relation, Ints]]:
    """Yield what is pending of a stratum's relations until nothing is left."""
    going = True
    while going:
        going = False
        for relation in stratum.relations:
            packed = pending.take_all(relation)
            if len(packed):
                going = True
                yield relation, packed


def _check_number(number: int, most: int, whose: str) -> None:
    if number > most:
        raise EntailmentLimit(f"{whose} derive more than {most:,} triples")

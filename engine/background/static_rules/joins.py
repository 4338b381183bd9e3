"""A rule's body is joined set by set: from what is new, or from the tuples in question, atom by atom along what is
bound.

A join whose rows would be many is done in pieces, so that memory is bounded whatever the rule says.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from engine.background.static_rules.program import ERROR, TRUE, Argument, Atom, Condition, DatalogRule, Relation
from engine.background.static_rules.sorted_rows import NO_INTS, SortedRows, Tuples, pack_pairs, unite
from engine.dictionary.term_dictionary import LITERAL, TermTable
from engine.errors import EntailmentLimit
from engine.expressions.evaluator import evaluate, truth
from engine.expressions.values import ExpressionError
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term, Variable

Ints = NDArray[np.int64]
Columns = dict[Argument, Ints]
"""The values of each variable that is bound, row by row."""
RowsOf = Callable[[Relation], SortedRows]
PIECE = 1 << 20
"""A join brings at most about so many rows at a time."""
_A_CHARACTER = 2
"""So much work is each character of a computed value, which takes memory."""
_APART = 1000
"""An atom that shares no variable with what is bound costs so many times more."""


def rows_now(relation: Relation) -> SortedRows:
    return relation.rows


def rows_before(relation: Relation) -> SortedRows:
    return relation.old


@dataclass(slots=True)
class _Rest:
    """Holds what of a rule's body has not been applied yet."""

    atoms: list[Atom]
    absent: list[Atom]
    conditions: list[Condition]


@dataclass(slots=True, eq=False)
class Joins:
    """Solves the bodies of rules.

    `work` counts the rows that joins brought, and the characters of computed values, which take memory. Beyond
    `most_work` (0 for no limit) EntailmentLimit is raised.
    """

    terms: TermTable
    tuples: Tuples = field(default_factory=Tuples)
    most_work: int = 0
    work: int = 0

    def heads(self, rule: DatalogRule, rows_of: RowsOf, start: Atom | None = None, tuples: Ints = NO_INTS, skipped: int | None = None) -> Ints:
        """Return what a rule derives, packed, sorted and each once.

        With `start` its body begins with these tuples of that atom. The atom at the place `skipped` has been taken
        care of by that.
        """
        parts = []
        for columns, n in self.solve(rule, rows_of, start, tuples, skipped):
            arguments = [self.column_of(columns, argument, n) for argument in rule.head.arguments]
            if rule.resource:
                good = self.terms.kinds[arguments[0]] < LITERAL
                arguments = arguments if good.all() else [column[good] for column in arguments]
            parts.append(self.tuples.pack(arguments))
        return unite(parts)

    def solve(
        self, rule: DatalogRule, rows_of: RowsOf, start: Atom | None = None, tuples: Ints = NO_INTS, skipped: int | None = None
    ) -> Iterator[tuple[Columns, int]]:
        """Yield the solutions of a rule's body in pieces: the columns of its variables, and how many rows they have."""
        columns: Columns = {}
        n = 1
        if start is not None:
            columns, n = self._unified(start.arguments, self.tuples.unpack(tuples, start.relation.arity))
        rest = _Rest([atom for k, atom in enumerate(rule.atoms) if k != skipped], list(rule.absent), list(rule.conditions))
        yield from self._go_on(rest, columns, n, rows_of)

    def _go_on(self, rest: _Rest, columns: Columns, n: int, rows_of: RowsOf) -> Iterator[tuple[Columns, int]]:
        while n:
            columns, n = self._check(rest, columns, n, rows_of)
            if not n:
                return
            if not rest.atoms:
                assert not rest.absent
                assert not rest.conditions, "the variables of every condition are bound by atoms"
                yield columns, n
                return
            atom = min(rest.atoms, key=lambda each: self._cost(each, columns, rows_of))
            rest.atoms.remove(atom)
            pieces = self._join_atom(atom, columns, n, rows_of(atom.relation))
            if len(pieces) != 1:
                for piece, rows in pieces:
                    yield from self._go_on(_Rest([*rest.atoms], [*rest.absent], [*rest.conditions]), piece, rows, rows_of)
                return
            ((columns, n),) = pieces

    def _cost(self, atom: Atom, columns: Columns, rows_of: RowsOf) -> float:
        """Estimate how many rows an atom brings for each that there is."""
        unbound = sum(argument < 0 and argument not in columns for argument in atom.arguments)
        n = len(rows_of(atom.relation))
        if not unbound:
            return 0.0
        if unbound < len(atom.arguments):
            return math.sqrt(n)
        return float(n) * (_APART if columns else 1)

    # ------------------------------------------------------------ conditions
    def _check(self, rest: _Rest, columns: Columns, n: int, rows_of: RowsOf) -> tuple[Columns, int]:
        """Apply all conditions and absences whose variables are bound."""
        going = True
        while going and n:
            going = False
            for condition in [each for each in rest.conditions if all(argument in columns for _, argument in each.scope)]:
                rest.conditions.remove(condition)
                columns, n = self._apply_condition(condition, columns, n)
                going = True
        for atom in [each for each in rest.absent if all(argument >= 0 or argument in columns for argument in each.arguments)]:
            rest.absent.remove(atom)
            if n:
                columns, n = _keep_rows(columns, ~self._contains(atom, columns, n, rows_of(atom.relation)))
        return columns, n

    def _apply_condition(self, condition: Condition, columns: Columns, n: int) -> tuple[Columns, int]:
        scope = condition.scope
        place, combinations = combine_columns([columns[argument] for _, argument in scope], n)
        found = np.zeros(len(combinations), np.int64)
        for k, numbers in enumerate(combinations.tolist()):
            values = {variable: self.terms.term(number) for (variable, _), number in zip(scope, numbers, strict=True)}
            found[k] = self._value(condition, values)
        each = found[place]
        if condition.wants in (TRUE, ERROR):
            return _keep_rows(columns, each != 0)
        there = columns.get(condition.target)
        if there is not None:
            return _keep_rows(columns, each == there)
        return _keep_rows(columns | {condition.target: each}, each != 0)

    def _value(self, condition: Condition, values: dict[Variable, Term | None]) -> int:
        """Return a number other than 0 if the condition is met: that of the value, if it is the value that is wanted."""
        if condition.wants == TRUE:
            return int(truth(condition.expression, values.get, None, None) is True)
        try:
            value = evaluate(condition.expression, values.get, None, None)
        except ExpressionError:
            return int(condition.wants == ERROR)
        if condition.wants == ERROR:
            return 0
        return self.number_value(str(value))

    def number_value(self, text: str) -> int:
        """Return the number of a computed value, in N-Triples. Raises EntailmentLimit."""
        self.count_work(_A_CHARACTER * len(text))
        return self.terms.intern(text)

    # ------------------------------------------------------------ atoms
    def _contains(self, atom: Atom, columns: Columns, n: int, rows: SortedRows) -> NDArray[np.bool_]:
        return rows.contains(self.tuples.find([self.column_of(columns, argument, n) for argument in atom.arguments]))

    def column_of(self, columns: Columns, argument: Argument, n: int) -> Ints:
        return np.full(n, argument) if argument >= 0 else columns[argument]

    def _join_atom(self, atom: Atom, columns: Columns, n: int, rows: SortedRows) -> list[tuple[Columns, int]]:
        arguments = atom.arguments
        bound = [argument >= 0 or argument in columns for argument in arguments]
        if all(bound):
            return [_keep_rows(columns, self._contains(atom, columns, n, rows))]
        if len(arguments) == 2 and any(bound):
            return self._looked_up(atom, columns, n, rows, second=bound[1])
        others, m = self._unified(arguments, self.tuples.unpack(rows.packed(), len(arguments)))
        return self._crossed(columns, n, others, m)

    def _looked_up(self, atom: Atom, columns: Columns, n: int, rows: SortedRows, *, second: bool) -> list[tuple[Columns, int]]:
        """Join rows with the pairs that have their second term (or their first)."""
        key, free = atom.arguments[::-1] if second else atom.arguments
        pieces: list[tuple[Columns, int]] = []
        for order, begin, end in rows.ranges(self.column_of(columns, key, n), second=second):
            counts = end - begin
            ends = np.cumsum(counts)
            total = int(ends[-1])
            self.count_work(total)
            first = 0
            while first < n:
                before = int(ends[first - 1]) if first else 0
                after = n if total - before <= PIECE else max(int(np.searchsorted(ends, before + PIECE, side="right")), first + 1)
                times = counts[first:after]
                m = int(ends[after - 1]) - before
                if m:
                    row = np.repeat(np.arange(first, after), times)
                    at = np.repeat(begin[first:after] - (ends[first:after] - times - before), times) + np.arange(m)
                    piece = {argument: column[row] for argument, column in columns.items()}
                    piece[free] = order[at] & 0xFFFFFFFF
                    pieces.append((piece, m))
                first = after
        if len(pieces) > 1 and sum(m for _, m in pieces) <= PIECE:
            names = pieces[0][0].keys()
            return [({name: np.concatenate([piece[name] for piece, _ in pieces]) for name in names}, sum(m for _, m in pieces))]
        return pieces

    def _crossed(self, columns: Columns, n: int, others: Columns, m: int) -> list[tuple[Columns, int]]:
        """Join each row with each of others; variables that both have are equal."""
        self.count_work(n * m)
        pieces = []
        step = max(1, PIECE // max(m, 1))
        for first in range(0, n if m else 0, step):
            here = min(step, n - first)
            piece = {argument: np.repeat(column[first : first + here], m) for argument, column in columns.items()}
            more = {argument: np.tile(column, here) for argument, column in others.items()}
            same = np.ones(here * m, np.bool_)
            for argument in piece.keys() & more.keys():
                same &= piece[argument] == more[argument]
            pieces.append(_keep_rows(more | piece, same))
        return [piece for piece in pieces if piece[1]]

    def _unified(self, arguments: Sequence[Argument], values: Sequence[Ints]) -> tuple[Columns, int]:
        """Return what variables are for tuples to fit an atom's arguments, and how many tuples do."""
        fits = np.ones(len(values[0]), np.bool_)
        columns: Columns = {}
        for argument, column in zip(arguments, values, strict=True):
            if argument >= 0:
                fits &= column == argument
            elif argument in columns:
                fits &= column == columns[argument]
            else:
                columns[argument] = column
        if fits.all():
            return columns, len(fits)
        return {argument: column[fits] for argument, column in columns.items()}, int(fits.sum())

    def count_work(self, steps: int) -> None:
        """Count rows of joins and characters of computed values as work. Raises EntailmentLimit."""
        self.work += steps
        if self.most_work and self.work > self.most_work:
            reason = f"need more than {self.most_work:,} steps for this change: rows of joins, and {_A_CHARACTER} for each computed character"
            raise EntailmentLimit(f"the static rules {reason}")


def _keep_rows(columns: Columns, good: NDArray[np.bool_]) -> tuple[Columns, int]:
    n = int(np.count_nonzero(good))
    if n == len(good):
        return columns, n
    return {argument: column[good] for argument, column in columns.items()}, n


def combine_columns(columns: Sequence[Ints], n: int) -> tuple[Ints, Ints]:
    """Return which combination of values each row has, and the combinations."""
    if not columns:
        return np.zeros(n, np.int64), np.zeros((1, 0), np.int64)
    values, place = np.unique(columns[0], return_inverse=True)
    combinations = values[:, None]
    for column in columns[1:]:
        kinds, which = np.unique(column, return_inverse=True)
        pairs, place = np.unique(pack_pairs(place, which), return_inverse=True)
        combinations = np.column_stack([combinations[pairs >> 32], kinds[pairs & 0xFFFFFFFF]])
    return place, combinations

"""Answers as tables of terms in N-Triples text, and when two tables are the same up to the names of blank nodes."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from epsparql.terms import XSD, Literal

Row = tuple[str | None, ...]
Colours = Mapping[str, int]

INTEGERS = frozenset(
    XSD + name
    for name in (
        "integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger", "unsignedLong",
        "unsignedInt", "unsignedShort", "unsignedByte",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """An answer: a SELECT's solutions, a graph's triples, or the one truth value of ASK.

    `ordered` says that the order of rows counts.
    """

    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    ordered: bool = False

    def columns(self, variables: Sequence[str]) -> "Table":
        """The table with these columns; those that it lacks are unbound."""
        places = [self.variables.index(name) if name in self.variables else None for name in variables]
        return Table(tuple(variables), tuple(tuple(None if place is None else row[place] for place in places) for row in self.rows), self.ordered)


def same(found: Table, expected: Table) -> bool:
    """Return whether one renaming of blank nodes makes the rows the same: as a multiset, or in their order where the
    expected table has one.
    """
    variables = sorted({*found.variables, *expected.variables})
    left, right = (_ranked(table.columns(variables), expected.ordered) for table in (found, expected))
    return len(left) == len(right) and _match(left, right, {}, {})


def _ranked(table: Table, ordered: bool) -> list[Row]:
    return [(str(rank) if ordered else None, *row) for rank, row in enumerate(table.rows)]


def _match(left: Sequence[Row], right: Sequence[Row], left_marks: Colours, right_marks: Colours) -> bool:
    """Colour refinement, and trial where it leaves a choice. The marked blank nodes are already paired."""
    ours, theirs = _refined(left, left_marks), _refined(right, right_marks)
    classes = Counter(ours.values())
    if classes != Counter(theirs.values()) or Counter(_painted(left, ours)) != Counter(_painted(right, theirs)):
        return False
    doubtful = [node for node, colour in ours.items() if classes[colour] > 1]
    if not doubtful:
        return True
    node, mark = doubtful[0], len(left_marks) + 1
    rivals = [rival for rival, colour in theirs.items() if colour == ours[node]]
    return any(_match(left, right, {**left_marks, node: mark}, {**right_marks, rival: mark}) for rival in rivals)


def _refined(rows: Sequence[Row], marks: Colours) -> dict[str, int]:
    """A colour for each blank node, from where it stands and beside what, until no more can be told apart."""
    colours = {label: marks.get(label, 0) for row in rows for cell in row for label in _labels(cell)}
    while True:
        seen: dict[str, Counter[object]] = {node: Counter() for node in colours}
        for row, painted in zip(rows, _painted(rows, colours), strict=True):
            for place, cell in enumerate(row):
                for order, label in enumerate(_labels(cell)):
                    seen[label][place, order, painted] += 1
        finer = {node: hash((colours[node], frozenset(seen[node].items()))) for node in colours}
        if len(set(finer.values())) == len(set(colours.values())):
            return finer
        colours = finer


def _painted(rows: Sequence[Row], colours: Colours) -> list[tuple[object, ...]]:
    return [tuple(_repainted(cell, colours) for cell in row) for row in rows]


def _repainted(cell: str | None, colours: Colours) -> object:
    """Return a cell with colours for its blank nodes, those in a triple term too."""
    labels = _labels(cell)
    if not labels:
        return cell
    return _BLANK.sub(lambda found: "_:" if found[1] else found[0], cell or ""), *(colours[label] for label in labels)


_BLANK = re.compile(r'"(?:[^"\\]|\\.)*"|<[^<>()]*>|(_:[^\s]+)')
"""A blank node of an N-Triples text, in its group; strings and IRIs, which may look like one, have none."""


def _labels(cell: str | None) -> list[str]:
    return [label for label in _BLANK.findall(cell or "") if label]


def by_value(table: Table) -> Table:
    """The table with each number in one spelling of its value and datatype."""
    return Table(table.variables, tuple(tuple(None if cell is None else _spelled(cell) for cell in row) for row in table.rows), table.ordered)


def _spelled(cell: str) -> str:
    lexical, mark, datatype = cell.rpartition("^^<")
    kind = datatype.removesuffix(">")
    number = lexical.strip('"')
    if not mark:
        return cell
    if kind in INTEGERS or kind == XSD + "decimal":
        return str(Literal(format(Decimal(number).normalize(), "f"), kind))
    if kind in (XSD + "double", XSD + "float"):
        return str(Literal(repr(float(number)), kind))
    return cell

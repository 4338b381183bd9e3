"""This module describes the orders in which a chain of SEQs is joined, and the cost of each order
(docs/decisions/0013-shapes.md).

Operands are numbered from 0. Beside these orders, `Pairing` is a shape that a plan may have.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from math import prod
from typing import Any


class Linear(Enum):
    """Names the shapes that join one operand at a time."""

    WRITTEN = "written"  # {{A SEQ B} SEQ C} SEQ D
    FROM_END = "from its end"  # A SEQ {B SEQ {C SEQ D}}


class Pairing(Enum):
    """Names plans that make fewer matches than there are: an EQUALSOPTIONAL that asks for pairs with nothing between
    them (docs/decisions/0053-bounds-on-durations.md), and aggregates over a chain
    (docs/decisions/0136-sums-over-chains.md).
    """

    NEAREST = "nearest"
    SUMMED = "summed"


Tree = int | tuple["Tree", "Tree"]
"""A tree is an operand, or the join of two trees."""
Shape = Linear | tuple[Tree, Tree]
PlanShape = Shape | Pairing
"""A plan keeps its shape while its query runs, unless the background makes an operand timeless: then it becomes the
one as written.
"""
Segment = tuple[int, int]
"""A segment is the first and the last of operands that stand one after the other."""
Sizes = Callable[[Segment], float]
"""The function returns how many solutions the operands of a segment have together."""

MOST_BUSHY = 10
"""All trees are compared up to this many operands; of longer chains, only the two linear ones."""


def tree_of(shape: Shape, n: int) -> Tree:
    """Return the shape of a chain of `n` operands as a tree."""
    match shape:
        case Linear.WRITTEN:
            whole: Tree = 0
            for k in range(1, n):
                whole = whole, k
        case Linear.FROM_END:
            whole = n - 1
            for k in range(n - 2, -1, -1):
                whole = k, whole
        case _:
            whole = shape
    return whole


def ends_of(tree: Tree) -> Segment:
    """Return the operands that a tree joins."""
    first = last = tree
    while not isinstance(first, int):
        first, _ = first
    while not isinstance(last, int):
        _, last = last
    return first, last


def shape_of(tree: Tree, n: int) -> Shape:
    """Return a tree's name if it is a linear shape, else the tree."""
    linear = next((shape for shape in Linear if tree_of(shape, n) == tree), None)
    assert linear is not None or isinstance(tree, tuple)
    return tree if linear is None and isinstance(tree, tuple) else linear or Linear.WRITTEN


def kept_shape(shape: PlanShape) -> Any:
    """Return a shape in a form that is fit for JSON."""
    return shape.value if isinstance(shape, Enum) else shape


def shape_again(kept: Any) -> PlanShape:
    """Return the shape from what `kept_shape` gave."""
    if isinstance(kept, str):
        return Pairing(kept) if kept in {each.value for each in Pairing} else Linear(kept)
    left, right = (part if isinstance(part, int) else shape_again(part) for part in kept)
    assert not isinstance(left, Enum)
    assert not isinstance(right, Enum)
    return left, right


# ---------------------------------------------------------------- costs
def work(tree: Tree, sizes: Sizes) -> float:
    """Return the work of a tree: goals that joins keep, which are those of their left sides, and solutions that all
    joins but the outermost make.
    """

    def below(tree: Tree) -> tuple[Segment, float]:
        if isinstance(tree, int):
            return (tree, tree), 0
        (left, on_left), (right, on_right) = below(tree[0]), below(tree[1])
        whole = left[0], right[1]
        return whole, sizes(whole) + sizes(left) + on_left + on_right

    whole, found = below(tree)
    return found - sizes(whole)


def least(n: int, sizes: Sizes) -> Tree:
    """Return the tree of least work over a chain of `n` operands.

    The least tree of a whole is made of least trees of its parts.
    """

    @cache
    def of(segment: Segment) -> tuple[float, Tree]:
        first, last = segment
        if first == last:
            return 0, first
        found = []
        for middle in range(last - 1, first - 1, -1):  # among equal trees the one nearest to the text wins
            left, right = (first, middle), (middle + 1, last)
            found.append((sizes(segment) + sizes(left) + of(left)[0] + of(right)[0], (of(left)[1], of(right)[1])))
        return min(found, key=lambda each: each[0])

    return of((0, n - 1))[1]


def cheapest(n: int, scenarios: Sequence[Sizes], every: float, worthwhile: float) -> Shape:
    """Return the shape that saves most over all scenarios; it is as written unless work is less by a factor.

    `every` is the work that each shape has.
    """
    candidates = {tree_of(shape, n) for shape in Linear}
    if n <= MOST_BUSHY:
        candidates |= {least(n, sizes) for sizes in scenarios}
    written = tree_of(Linear.WRITTEN, n)
    costs = [every + work(written, sizes) for sizes in scenarios]

    def relative(tree: Tree) -> float:
        return prod((every + work(tree, sizes)) / cost for sizes, cost in zip(scenarios, costs, strict=True)) ** (1 / len(scenarios))

    best = min(sorted(candidates, key=repr), key=relative)
    return shape_of(best, n) if relative(best) * worthwhile < 1 else Linear.WRITTEN


# ---------------------------------------------------------------- back to the text
def straighter(shape: Shape, n: int) -> Shape:
    """Take a step towards the chain as written.

    What its joins keep follows from what those of `shape` keep, which are the solutions of their left sides.

    X SEQ {Y SEQ {Z SEQ w}} keeps the solutions of X, Y and Z. {{X SEQ Y} SEQ Z} SEQ w keeps those of X, XY and XYZ.
    Where Y and Z are chains, the next step goes into them.
    """
    return shape_of(_unrolled(tree_of(shape, n)), n)


def _unrolled(tree: Tree) -> Tree:
    if isinstance(tree, int):
        return tree
    left, right = tree
    whole = _unrolled(left)
    while not isinstance(right, int):
        first, right = right
        whole = whole, first
    return whole, right

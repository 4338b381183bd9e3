"""This module names a plan by what a snapshot's goals rest on.

So another version of the engine can tell whether it plans a query alike.
"""

import hashlib

from engine.kernel.state import layout as c
from engine.physical_plan.operator_names import OPERATORS, RELATION_WORDS
from engine.physical_plan.plan import Fragment, Node

COLLECTOR_STATES = "75b9ccf9c18d20cffbb049b10b7e3c66"
"""The value names the meaning of what collectors keep in snapshots.

Replace it with every change after which they would read older states wrongly.
"""


def sign_plan(fragment: Fragment) -> str:
    """Name the nodes, what they keep and for how long, and how they are linked. Two plans of one text that are named
    alike keep the same goals.

    Terms stay out: they are the text's. FINDs keep nothing. Sets of timeless solutions stay out too, since older
    snapshots have none, but for those behind optional joins.
    """
    digest = hashlib.blake2b(digest_size=16)
    names = {column: variable.name for variable, column in fragment.columns.items()}
    digest.update(repr(sorted((name, column - c.VAR) for column, name in names.items())).encode())
    for number, node in enumerate(fragment.nodes):
        if node.kind != c.FIND and number not in fragment.sets:
            digest.update(repr(_described(fragment, number, node, names)).encode())
    if fragment.paired:
        digest.update(b"pairs")  # without what these sets have kept, they would not tell old pairs from new ones
    return digest.hexdigest()


def _described(fragment: Fragment, number: int, node: Node, names: dict[int, str]) -> list[object]:
    """Return what the signature has of a node. Snapshots have signatures, so the words and their order must stay."""
    sets = {"key": node.key, "rest": node.rest, "key2": node.key2, "rest2": node.rest2}
    compared = {name: sorted(names[column] for column in fragment.columns_at(rows)) for name, rows in sets.items()}
    plain = {
        "span": node.span, "left": node.life_left, "right": node.life_right, "blocker": node.life_blocker, "timeless": node.timeless,
        "by_right": node.by_right, "keep": node.keep, "once": node.once, "moves": node.moves.n, "templates": node.templates.n,
    }  # fmt: skip
    edges = [fragment.find_reader(target) for target in fragment.edges_of(number)]
    marks = [(mark, c.RIGHT) for mark in fragment.marks_of(number)]
    found: list[object] = [
        OPERATORS[node.kind], RELATION_WORDS[node.relation], compared, plain, edges, marks, names.get(node.column)
    ]  # fmt: skip
    for filter_ in (node.filter, node.condition):
        found.append(filter_ if filter_ < 0 else fragment.find_inquiry(filter_).condition)
    if node.kind == c.EXTEND:
        found.append(fragment.inquiries[node.ask].expression)
    if number in fragment.collectors:
        found += [type(fragment.collectors[number]).__name__, COLLECTOR_STATES]
    return found

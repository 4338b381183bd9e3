"""This module names a plan by what a snapshot's goals rest on. So another version of the engine can tell whether it plans a query alike."""

import hashlib

from engine.kernel.state import layout as c
from engine.physical_plan.operator_names import OPERATORS, RELATIONS
from engine.physical_plan.plan import Fragment

SETS = {"key": (c.KEY_AT, c.KEY_N), "rest": (c.REST_AT, c.REST_N), "key2": (c.KEY2_AT, c.KEY2_N), "rest2": (c.REST2_AT, c.REST2_N)}
"""A node compares by these columns."""
PLAIN = {
    "span": c.SPAN,
    "left": c.LIFE_LEFT,
    "right": c.LIFE_RIGHT,
    "blocker": c.LIFE_BLOCKER,
    "timeless": c.TIMELESS,
    "by_right": c.BY_RIGHT,
    "keep": c.KEEP,
    "once": c.ONCE_ONLY,
    "moves": c.MOVE_N,
    "templates": c.TEMPLATE_N,
}


COLLECTOR_STATES = "75b9ccf9c18d20cffbb049b10b7e3c66"
"""The value names the meaning of what collectors keep in snapshots. Replace it with every change after which they would read older states wrongly."""


def form_of(fragment: Fragment) -> str:
    """Name the nodes, what they keep and for how long, and how they are linked. Two plans of one text that are named alike keep the same goals.

    Terms stay out: they are the text's.
    """
    digest = hashlib.blake2b(digest_size=16)
    names = {column: variable.name for variable, column in fragment.columns.items()}
    digest.update(repr(sorted((name, column - c.VAR) for column, name in names.items())).encode())
    for node, row in enumerate(fragment.nodes):
        if row[c.KIND] == c.FIND:
            continue  # it keeps nothing
        digest.update(repr(_described(fragment, node, row, names)).encode())
    return digest.hexdigest()


def _described(fragment: Fragment, node: int, row: list[int], names: dict[int, str]) -> list[object]:
    compared = {name: sorted(names[k] for k in fragment.slots[row[at] : row[at] + row[n]]) for name, (at, n) in SETS.items()}
    plain = {name: row[column] for name, column in PLAIN.items()}
    edges, marks = (fragment.edges[row[at] : row[at] + row[n]] for at, n in ((c.EDGE_AT, c.EDGE_N), (c.MARK_AT, c.MARK_N)))
    found: list[object] = [OPERATORS[row[c.KIND]], RELATIONS[row[c.RELATION]], compared, plain, edges, marks, names.get(row[c.COLUMN])]
    for filter_ in (row[c.FILTER], row[c.CONDITION]):
        found.append(filter_ if filter_ < 0 else fragment.inquiries[fragment.code[filter_][0]].condition)
    if row[c.KIND] == c.EXTEND:
        found.append(fragment.inquiries[row[c.ASK]].expression)
    if node in fragment.collectors:
        found += [type(fragment.collectors[node]).__name__, COLLECTOR_STATES]
    return found

"""Tables of instances change by what enters and leaves, in any numbers, and have the chains that all rows give at once."""

from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dictionary.term_dictionary import TermTable
from engine.instances.instance_table import InstanceTable
from engine.instances.relation import ADDED, ID, TERMS, InstanceRelation
from engine.kernel.state import layout as c
from engine.physical_plan.plan import InstanceLookup
from epsparql.terms import XSD
from tests.soak import examples

LOOKUPS = [
    InstanceLookup((TERMS, TERMS + 1), 1),
    InstanceLookup((TERMS, TERMS + 1), 1, TERMS + 1, rises=True),
    InstanceLookup((TERMS, TERMS + 1), 1, TERMS + 1, rises=False),
    InstanceLookup((TERMS, TERMS + 1), 0, TERMS + 1, rises=True),
    InstanceLookup((TERMS, TERMS + 1), 2),
]
"""By the room, in the order of the limit or in none; all in one chain; by both."""
limits = st.one_of(st.integers(0, 6).map(lambda k: f'"{k}"^^<{XSD}integer>'), st.sampled_from(['"2.5"^^<' + XSD + "decimal>", '"none"']))
values = st.tuples(st.sampled_from(["<x:hall>", "<x:attic>", "<x:cellar>"]), limits)
entries = st.lists(st.dictionaries(st.integers(0, 40).map(str), st.one_of(st.none(), values, values)), min_size=1, max_size=6)


def chains(table: InstanceTable, keys: int) -> Iterator[tuple[tuple[int, ...], list[int], list[float]]]:
    """The key, the rows (the place of each) and their bounds, of each chain and key."""
    for head in table._heads.tolist():
        found: dict[tuple[int, ...], list[int]] = {}
        while head != c.NONE:
            found.setdefault(tuple(table._cells[head, c.L_KEY : c.L_KEY + keys].tolist()), []).append(head)
            head = int(table._cells[head, c.L_OLDER])
        for key, places in found.items():
            yield key, places, table._cells[places, -1].view(np.float64).tolist()


@settings(max_examples=examples(300), deadline=None)
@given(entries, st.sampled_from(LOOKUPS))
def test_chains_follow_entries_of_any_size(changed: list[dict[str, tuple[str, str] | None]], lookup: InstanceLookup) -> None:
    terms = TermTable()
    relation = InstanceRelation.without_rows(terms, 2)
    table = relation.get_table(lookup)
    for offset, changes in enumerate(changed, 1):
        relation.change(offset, changes)
        rows = relation._rows
        found = {(key, place) for key, places, _ in chains(table, lookup.keys) for place in places}
        assert found == {(tuple(rows[place, lookup.parts[: lookup.keys]].tolist()), place) for place in relation._places.values()}
        for _, _, bounds in chains(table, lookup.keys) if lookup.order is not None else ():
            assert bounds == sorted(bounds, reverse=not lookup.rises)
        for number, place in relation._places.items():
            assert rows[place, ID] == number
            assert 0 < int(terms.text(int(rows[place, ADDED])).split('"')[1]) <= offset

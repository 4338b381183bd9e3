"""A schema that changes: what is read of it is what one made anew of the same statements says."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.background.reasoning.rdfs_schema import DOMAIN, RANGE, SUBCLASS, SUBPROPERTY, Schema

Statement = tuple[str, int, str]
NODES = st.sampled_from("ABCDpq")
STATEMENTS = st.frozensets(st.tuples(NODES, st.sampled_from((DOMAIN, RANGE, SUBCLASS, SUBCLASS, SUBPROPERTY)), NODES), max_size=8)


def is_property(node: str) -> bool:
    return node != "D"


@dataclass(frozen=True)
class Read:
    """All that a schema says of a node."""

    classes: tuple[str, ...]
    properties: tuple[str, ...]
    predicates: tuple[str, ...]
    subjects: tuple[str, ...]
    objects: tuple[str, ...]


def read(schema: Schema[str], node: str) -> Read:
    return Read(
        schema.classes.get(node), schema.properties.get(node), schema.predicates.get(node), schema.subjects.get(node), schema.objects.get(node)
    )


def reads(schema: Schema[str]) -> dict[str, Read]:
    return {node: read(schema, node) for node in "ABCDpq"}


@given(st.lists(STATEMENTS, min_size=2, max_size=4))
def test_changes_give_what_is_stated_in_the_end(stages: list[frozenset[Statement]]) -> None:
    schema = Schema(stages[0], is_property)
    for before, after in pairwise(stages):
        untouched = reads(schema)
        new = schema.with_statements(after - before, before - after)
        assert reads(schema) == untouched, "a schema never changes"
        assert reads(new) == reads(Schema(after, is_property))
        assert {*new.classes} == {*Schema(after, is_property).classes}
        assert {*new.subjects} == {*Schema(after, is_property).subjects}
        schema = new


@given(STATEMENTS, STATEMENTS, st.booleans())
def test_what_differs_is_named(before: frozenset[Statement], after: frozenset[Statement], derived: bool) -> None:
    schema = Schema(before, is_property)
    other = schema.with_statements(after - before, before - after) if derived else Schema(after, is_property)
    classes, properties = schema.differing(other)
    for node in "ABCDpq":
        one, two = read(schema, node), read(other, node)
        assert one.classes == two.classes or node in classes
        assert (one.predicates, one.subjects, one.objects) == (two.predicates, two.subjects, two.objects) or node in properties


def test_a_long_chain_is_read_without_all_of_its_pairs() -> None:
    chain = Schema(((f"c{k}", SUBCLASS, f"c{k + 1}") for k in range(20_000)), is_property)
    assert len(chain.classes.get("c0")) == 20_000
    assert len(chain.with_statements((), [("c10000", SUBCLASS, "c10001")]).classes.get("c0")) == 10_000

"""When two answers are the same."""

import pytest

from tests.w3c.tables import Row, Table, by_value, same

SAME = [
    pytest.param([("1",)], [("1",)], True, id="equal"),
    pytest.param([("1",), ("1",)], [("1",)], False, id="a multiset"),
    pytest.param([("1",), ("2",)], [("2",), ("1",)], True, id="in any order"),
    pytest.param([("_:a",)], [("_:b",)], True, id="blank nodes are renamed"),
    pytest.param([("_:a",)], [("<b>",)], False, id="a blank node is no IRI"),
    pytest.param([(None,)], [("_:b",)], False, id="unbound is no blank node"),
    pytest.param([("_:a", "_:a")], [("_:b", "_:c")], False, id="one node is not two"),
    pytest.param([("_:a", "1"), ("_:a", "2")], [("_:b", "1"), ("_:c", "2")], False, id="one renaming for all rows"),
    pytest.param([("_:a", "1"), ("_:b", "2")], [("_:b", "1"), ("_:a", "2")], True, id="names say nothing"),
    pytest.param(
        [("_:a", "_:b"), ("_:b", "_:c"), ("_:c", "_:a"), ("_:d", "_:e"), ("_:e", "_:f"), ("_:f", "_:d")],
        [("_:a", "_:b"), ("_:b", "_:c"), ("_:c", "_:d"), ("_:d", "_:e"), ("_:e", "_:f"), ("_:f", "_:a")],
        False,
        id="two rings of three are no ring of six, though every node looks alike",
    ),
    pytest.param(
        [("_:a", "_:b"), ("_:b", "_:c"), ("_:c", "_:a"), ("_:d", "_:e"), ("_:e", "_:f"), ("_:f", "_:d")],
        [("_:a", "_:d"), ("_:d", "_:c"), ("_:c", "_:a"), ("_:b", "_:e"), ("_:e", "_:f"), ("_:f", "_:b")],
        True,
        id="two rings of three are two rings of three",
    ),
]


@pytest.mark.parametrize(("found", "expected", "answer"), SAME)
def test_same(found: list[Row], expected: list[Row], answer: bool) -> None:
    variables = ("x", "y")[: len(found[0])]
    assert same(Table(variables, tuple(found)), Table(variables, tuple(expected))) is answer


def test_order_counts_where_the_expected_answer_has_one() -> None:
    found = Table(("x",), (("1",), ("2",)))
    assert not same(found, Table(("x",), (("2",), ("1",)), ordered=True))
    assert same(found, Table(("x",), (("1",), ("2",)), ordered=True))


def test_a_column_that_is_not_there_is_unbound() -> None:
    assert same(Table(("x", "y"), (("1", None),)), Table(("x",), (("1",),)))
    assert not same(Table(("x", "y"), (("1", "2"),)), Table(("x",), (("1",),)))


NUMBERS = [
    ('"6.0"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"6"^^<http://www.w3.org/2001/XMLSchema#decimal>', True),
    ('"6.0E0"^^<http://www.w3.org/2001/XMLSchema#double>', '"6"^^<http://www.w3.org/2001/XMLSchema#double>', True),
    ('"6"^^<http://www.w3.org/2001/XMLSchema#integer>', '"6"^^<http://www.w3.org/2001/XMLSchema#decimal>', False),
    ('"100"^^<http://www.w3.org/2001/XMLSchema#integer>', '"10"^^<http://www.w3.org/2001/XMLSchema#integer>', False),
    ('"6.0"', '"6"', False),
]


@pytest.mark.parametrize(("left", "right", "answer"), NUMBERS)
def test_by_value(left: str, right: str, answer: bool) -> None:
    assert same(by_value(Table(("x",), ((left,),))), by_value(Table(("x",), ((right,),)))) is answer

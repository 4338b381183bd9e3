"""Native sums and texts of groups against their definitions."""

import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.aggregation.group_tables import layout as g
from engine.aggregation.group_tables.numeric_columns import plain_of, ranks
from engine.aggregation.group_tables.results import results
from engine.dictionary.sort_keys import sort_key
from engine.dictionary.term_dictionary import TermTable
from engine.expressions import numeric
from engine.expressions.values import Number, NumericType
from engine.native.entries import sum_exactly
from epsparql.algebra import AggregateFunction
from epsparql.terms import XSD, Literal

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WIDE = st.one_of(FINITE, st.sampled_from([5e-324, -5e-324, 2.0**-1022, 1.7976931348623157e308, -1.7976931348623157e308, 1e16, 1.0, 2.0**-53]))
SMALL = st.integers(-(1 << 62), (1 << 62) - 1)


def integer(value: int) -> Literal:
    return Literal(str(value), XSD + "integer")


def limbs() -> np.ndarray:
    made = np.zeros((1, g.LIMBS_WIDTH), np.int64)
    made[0, g.LOWEST] = g.LIMB_COUNT - 1
    return made


def bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))


def add(table: np.ndarray, values: list[float], by: int = 1, integer: int = 0) -> float:
    """Add or take away doubles, then add an integer, and return the rounded sum."""
    found = sum_exactly(table, np.array([bits(one) for one in values], np.int64), by, integer >> 32, integer & 0xFFFFFFFF)
    return float(np.int64(found).view(np.float64))


def nearest(exact: Fraction) -> float:
    return numeric.to_float(exact)


@given(st.lists(WIDE, min_size=1, max_size=30), st.integers(-(1 << 90), 1 << 90), st.randoms())
def test_doubles_add_up_exactly(values: list[float], integer: int, order: random.Random) -> None:
    """Whatever their order, and with as many that came and left again."""
    table = limbs()
    add(table, values)
    for one in order.sample(values, len(values)):
        add(table, [one])
        add(table, [one], -1)
    exact = sum(map(Fraction, values), Fraction(0))
    assert add(table, []) == nearest(exact)
    assert add(table, [], integer=integer) == nearest(exact + integer)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0**-53],
        [1.0, 2.0**-53, 2.0**-105],
        [1.0 + 2.0**-52, 2.0**-53],
        [-1.0, -(2.0**-53)],
        [0.1, -0.1],
        [5e-324, -1.0, 1.0],
        [1.7e308, 1.7e308],
        [-1e308] * 40,
    ],
)
def test_ties_go_to_the_even_one(values: list[float]) -> None:
    table = limbs()
    assert add(table, values) == nearest(sum(map(Fraction, values), Fraction(0)))


def shown(function: AggregateFunction, code: int, units: int, n: int, scale: int) -> str:
    terms = TermTable()
    given_ = np.array([[code, units & ((1 << 62) - 1), units >> 62, n]], np.int64)
    (number,) = results(function, given_, scale, terms).tolist()
    return str(terms.term(number))


@given(
    st.one_of(SMALL, st.integers(-(1 << 90), 1 << 90)),
    st.integers(0, 18),
    st.integers(0, 1 << 30),
    st.sampled_from([AggregateFunction.SUM, AggregateFunction.AVG]),
)
def test_texts_of_exact_sums(units: int, scale: int, n: int, function: AggregateFunction) -> None:
    total = Number(NumericType.DECIMAL, Decimal(units).scaleb(-scale, numeric.WHOLE))
    expected = numeric.divide(total, Number(NumericType.INTEGER, n)) if n and function is AggregateFunction.AVG else total
    assert shown(function, g.A_DECIMAL, units, n, scale) == str(numeric.literal(expected))


@pytest.mark.parametrize("units", [0, 1, -1, 9, 10, -(1 << 62), (1 << 62) - 1, 1 << 62, 1 << 80])
def test_texts_of_integers(units: int) -> None:
    assert shown(AggregateFunction.COUNT, g.AN_INTEGER, units, 3, 0) == str(numeric.literal(Number(NumericType.INTEGER, units)))
    assert shown(AggregateFunction.AVG, g.AN_INTEGER, units, 3, 0) == str(
        numeric.literal(numeric.divide(Number(NumericType.INTEGER, units), Number(NumericType.INTEGER, 3)))
    )


@given(st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1e22, 1e21, 123456789.0, 1e-7, 5e-324, 100.0])), st.integers(1, 7))
def test_texts_of_doubles(double: float, n: int) -> None:
    terms = TermTable()
    for function in (AggregateFunction.SUM, AggregateFunction.AVG):
        given_ = np.array([[g.A_DOUBLE, bits(double), 0, n]], np.int64)
        (number,) = results(function, given_, 0, terms).tolist()
        total = Number(NumericType.DOUBLE, double)
        expected = numeric.divide(total, Number(NumericType.INTEGER, n)) if function is AggregateFunction.AVG else total
        assert str(terms.term(number)) == str(numeric.literal(expected))


LEXICAL = st.from_regex(r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})", fullmatch=True)
NUMERALS = st.one_of(
    LEXICAL.map(lambda text: Literal(text, XSD + "decimal")), FINITE.map(lambda x: Literal(repr(x), XSD + "double")), st.integers().map(integer)
)


@given(
    st.lists(
        st.one_of(NUMERALS, st.sampled_from([integer(1), Literal("1.0", XSD + "decimal"), Literal("x", XSD + "decimal")])), min_size=1, max_size=20
    )
)
def test_extremes_have_the_order_of_values(literals: list[Literal]) -> None:
    terms = TermTable()
    ids = np.array([terms.intern(str(literal)) for literal in literals], np.int64)
    found = ranks(ids, plain_of(ids, terms), terms)
    assume(not found.foreign)
    native = list(zip(found.class_.tolist(), found.value.tolist(), found.low.tolist(), strict=True))
    keys = [sort_key(literal) for literal in literals]
    for one, (here, key) in enumerate(zip(native, keys, strict=True)):
        for there, other in zip(native[:one], keys[:one], strict=True):
            assert ((here < there), (here == there)) == ((key < other), (key == other))


@given(st.lists(LEXICAL, min_size=1, max_size=20))
def test_decimals_are_read_as_they_are_written(lexical: list[str]) -> None:
    terms = TermTable()
    ids = np.array([terms.intern(str(Literal(text, XSD + "decimal"))) for text in lexical], np.int64)
    plain = plain_of(ids, terms)
    for k, text in enumerate(lexical):
        if plain.decimal[k]:
            assert Fraction(text) == Fraction(int(plain.mantissa[k]), 10 ** int(plain.scale[k]))
        else:
            assert sum(character.isdigit() for character in text) > 18

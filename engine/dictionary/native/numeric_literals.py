"""Numeric literals become a double and an error bound, as engine/dictionary/float_bounds.py defines them.

The nearest double is found by Clinger's exact cases and the algorithm of Eisel and Lemire (D. Lemire, Number Parsing at a Gigabyte per
Second, Software: Practice and Experience 51(8), 2021). The few that these leave open are the host's.
"""

import math

import numpy as np

from engine.dictionary.native import inlined, jit
from engine.dictionary.native.memory import address_of, as_double, byte, leading_zeros, product, same, word
from epsparql.terms import XSD

NO_NUMERAL = -1
INTEGER, DECIMAL, DOUBLE = range(3)
MOST_DIGITS = 19  # that surely fit into a word
LEAST_POWER, MOST_POWER = -342, 308  # of ten, of finite doubles with one word of digits
LARGE = 1 << 20  # an exponent beyond all doubles
LONGEST = 4000  # lexical form of an integer or decimal: engine.expressions.numeric.DIGITS
INTEGERS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(1 << 63), (1 << 63) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "byte": (-128, 127),
    "unsignedLong": (0, (1 << 64) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedByte": (0, 255),
}
"""The values of each integer type lie between these bounds, None for no bound (XML Schema 2, 3.4.13 to 3.4.25)."""
EXACT = np.uint64(1 << 53)

_MARK = f'"^^<{XSD}'.encode()
MARK_LENGTH = len(_MARK)
MARK_WORDS = np.array([int.from_bytes(_MARK[k : k + 8], "little") for k in (*range(0, MARK_LENGTH - 8, 8), MARK_LENGTH - 8)], np.uint64)
MARK_PLACES = np.array([*range(0, MARK_LENGTH - 8, 8), MARK_LENGTH - 8], np.int64)

_TYPES = {"double": DOUBLE, "decimal": DECIMAL} | dict.fromkeys(INTEGERS, INTEGER)
LONGEST_NAME = max(map(len, _TYPES))
NAMES = np.array([list(name.encode().ljust(LONGEST_NAME)) for name in _TYPES], np.uint8)
NAME_LENGTHS = np.array([len(name) for name in _TYPES], np.int64)
NAME_TYPES = np.array(list(_TYPES.values()), np.int64)
_WORD = (1 << 64) - 1  # more than a mantissa that fits


def _magnitudes(least: int | None, most: int | None) -> tuple[int, int, int]:
    """Return the largest magnitude of a value below zero and of one above, and whether zero is a value."""
    return _WORD if least is None else max(-least, 0), _WORD if most is None else max(most, 0), (least or 0) <= 0 <= (most or 0)


NAME_RANGES = np.array([_magnitudes(*INTEGERS.get(name, (None, None))) for name in _TYPES], np.uint64)

TENS = np.array([10.0**k for k in range(23)])  # exactly
FIVES = np.array([5**k for k in range(28)], np.uint64)  # all that fit into a word


def _power_of_five(q: int) -> int:
    """Return the leading 128 bits of 5 ** q, rounded down; up where a power of ten divides words of digits exactly (Lemire, appendix B)."""
    power: int = 5 ** abs(q)
    bits = power.bit_length()
    if q < 0:
        return (1 << bits + 127) // power + (q >= -27)
    return power << 128 - bits if bits <= 128 else power >> bits - 128


_POWERS = [_power_of_five(q) for q in range(LEAST_POWER, MOST_POWER + 1)]
POWERS = np.array([[power >> 64, power & (1 << 64) - 1] for power in _POWERS], np.uint64)


@jit
def numeral(at, n):
    """Return which of the named types the n bytes of a term's text have, NO_NUMERAL if none, and the length of the lexical form."""
    if n < MARK_LENGTH + 5 or byte(at) != ord('"') or byte(at + n - 1) != ord(">"):
        return NO_NUMERAL, 0
    length = 0
    while length < LONGEST_NAME and byte(at + n - 2 - length) != ord("#") and length < n - MARK_LENGTH - 2:
        length += 1
    mark = at + n - 1 - length - MARK_LENGTH
    if mark <= at:
        return NO_NUMERAL, 0
    for k in range(len(MARK_WORDS)):
        if word(mark + MARK_PLACES[k]) != MARK_WORDS[k]:
            return NO_NUMERAL, 0
    name = mark + MARK_LENGTH
    for k in range(len(NAME_LENGTHS)):
        if length == NAME_LENGTHS[k] and same(name, address_of(NAMES) + k * LONGEST_NAME, length):
            return k, mark - at - 1
    return NO_NUMERAL, 0


@inlined
def is_digit(character):
    return 48 <= character <= 57


@jit
def digits(at, end, kind):
    """Read the digits of a numeral: (well formed, digits as a word, power of ten, whether they all fit)."""
    mantissa, power, significant, any_, fits = np.uint64(0), 0, 0, False, True
    point = False
    while at < end:
        character = byte(at)
        if is_digit(character):
            any_ = True
            if significant > 0 or character != 48:
                significant += 1
            if significant > MOST_DIGITS:
                fits = False
            else:
                mantissa = mantissa * np.uint64(10) + np.uint64(character - 48)
            if point:
                power -= 1
        elif character == 46 and not point and kind != INTEGER:
            point = True
        else:
            break
        at += 1
    if not any_ or (at < end and (kind != DOUBLE or (byte(at) | 32) != ord("e"))):
        return False, mantissa, power, fits
    if at < end:
        well, exponent = exponent_of(at + 1, end)
        return well, mantissa, power + exponent, fits
    return True, mantissa, power, fits


@jit
def exponent_of(at, end):
    """Read an exponent, which stops at LARGE: (well formed, exponent)."""
    negative = at < end and byte(at) == ord("-")
    if at < end and (byte(at) == ord("-") or byte(at) == ord("+")):
        at += 1
    well, exponent = at < end, 0
    while at < end:
        character = byte(at)
        well = well and is_digit(character)
        exponent = min(10 * exponent + character - 48, LARGE)
        at += 1
    return well, -exponent if negative else exponent


@jit
def nearest(mantissa, power):
    """Return the double nearest to mantissa * 10 ** power, and whether it is sure; mantissa > 0."""
    if mantissa <= EXACT and -22 <= power <= 22:
        return (float(mantissa) / TENS[-power], True) if power < 0 else (float(mantissa) * TENS[power], True)
    if power < LEAST_POWER or power > MOST_POWER:
        return 0.0, False
    zeros = leading_zeros(mantissa)
    scaled = mantissa << zeros
    high, low = product(scaled, POWERS[power - LEAST_POWER, 0])
    if (high & np.uint64(0x1FF)) == np.uint64(0x1FF):
        more, _ = product(scaled, POWERS[power - LEAST_POWER, 1])
        low += more
        if low < more:
            high += np.uint64(1)
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and not -27 <= power <= 55:
        return 0.0, False
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(9)
    bits = high >> shift
    exponent = ((217706 * power) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    if exponent <= 0:  # less than the least normal double
        return 0.0, False
    if low <= np.uint64(1) and -4 <= power <= 23 and (bits & np.uint64(3)) == np.uint64(1) and (bits << shift) == high:
        bits &= ~np.uint64(1)  # half-way: to the even one
    bits = (bits + (bits & np.uint64(1))) >> np.uint64(1)
    if bits >= np.uint64(1 << 53):
        bits = np.uint64(1 << 52)
        exponent += 1
    if exponent >= 2047:
        return 0.0, False
    return as_double((bits & ~np.uint64(1 << 52)) | (np.uint64(exponent) << np.uint64(52))), True


@jit
def is_exact(mantissa, power):
    """Return whether a double is mantissa * 10 ** power, with power <= 0, itself."""
    while power < 0 and mantissa % np.uint64(10) == np.uint64(0):
        mantissa //= np.uint64(10)
        power += 1
    if -power >= len(FIVES) or mantissa % FIVES[-power] != np.uint64(0):
        return False
    mantissa //= FIVES[-power]
    while mantissa & np.uint64(1) == np.uint64(0):
        mantissa >>= np.uint64(1)
    return mantissa < EXACT


@inlined
def is_within(name, mantissa, negative):
    """Return whether a value lies within the range of its type."""
    if mantissa == np.uint64(0):
        return NAME_RANGES[name, 2] != np.uint64(0)
    return mantissa <= NAME_RANGES[name, 0 if negative else 1]


@jit
def approximate(at, n):
    """Return (value, error bound, whether these are sure) of a term's text; (0, inf) where it is no number."""
    name, length = numeral(at, n)
    if name == NO_NUMERAL:
        return 0.0, math.inf, True
    kind = NAME_TYPES[name]
    if kind != DOUBLE and length > LONGEST:
        return 0.0, math.inf, True
    first, end = at + 1, at + 1 + length
    negative = length > 0 and byte(first) == ord("-")
    if length > 0 and (negative or byte(first) == ord("+")):
        first += 1
    well, mantissa, power, fits = digits(first, end, kind)
    if not well:
        return 0.0, math.inf, True
    if not fits:
        return 0.0, math.inf, False
    if not is_within(name, mantissa, negative):
        return 0.0, math.inf, True
    if mantissa == np.uint64(0):
        return -0.0 if negative and kind != INTEGER else 0.0, 0.0, True
    value, sure = nearest(mantissa, power)
    slack = 0.0 if kind == DOUBLE or is_exact(mantissa, power) else value * 2.0**-52 + 2.0**-1000
    return -value if negative else value, slack, sure

"""N-Triples texts of numbers are written as `numeric.lexical` writes them, one after the other into one array of bytes."""

import numpy as np

from engine.dictionary.native import borrowing, entry_point, inlined, jit
from engine.dictionary.native.memory import address_of, copy
from epsparql.terms import XSD

LONGEST = 160
"""One text has at most so many bytes.

That is a quotient of 34 digits after as many zeros as a sum of MOST_SCALE places and its count can bring, and its type.
"""
_TYPES = [f'"^^<{XSD}{name}>'.encode() for name in ("integer", "decimal", "double")]
INTEGER, DECIMAL, DOUBLE = range(3)
ENDS = np.array([list(end.ljust(max(map(len, _TYPES)))) for end in _TYPES], np.uint8)
END_LENGTHS = np.array([len(end) for end in _TYPES])
QUOTE, MINUS, PLUS, POINT, EXPONENT, ZERO, NINE = (ord(character) for character in '"-+.E09')


@inlined
def finish(data, at, kind):
    """Write the closing quote and the type, and return the place behind."""
    copy(address_of(data) + at, address_of(ENDS) + kind * ENDS.shape[1], END_LENGTHS[kind])
    return at + END_LENGTHS[kind]


@inlined
def begin(data, at, negative):
    data[at] = QUOTE
    if negative:
        data[at + 1] = MINUS
        return at + 2
    return at + 1


@borrowing
def digits_of(value, digits):
    """Write the decimal digits of a positive value (none of 0) to the front of `digits`, and return how many."""
    n, rest = 0, value
    while rest > 0:
        rest, digit = rest // 10, rest % 10
        digits[n] = digit
        n += 1
    for k in range(n >> 1):
        digits[k], digits[n - 1 - k] = digits[n - 1 - k], digits[k]
    return n


@entry_point
def write_integers(values, data, offsets):
    """Write texts of xsd:integer."""
    at, digits = 0, np.empty(64, np.int64)
    for i in range(len(values)):
        at = begin(data, at, values[i] < 0)
        n = digits_of(abs(values[i]), digits)
        for k in range(n):
            data[at + k] = ZERO + digits[k]
        if n == 0:
            data[at], n = ZERO, 1
        at = finish(data, at + n, INTEGER)
        offsets[i + 1] = at


@entry_point
def write_quotients(values, divisors, scale, most, data, offsets):
    """Write texts of xsd:decimal: value / divisor / 10**scale to `most` significant digits, half to even."""
    at, digits = 0, np.empty(64, np.int64)
    for i in range(len(values)):
        n, point = quotient(abs(values[i]), divisors[i], most, digits)
        at = begin(data, at, values[i] < 0)
        at = finish(data, write_digits(data, at, digits, n, point - scale), DECIMAL)
        offsets[i + 1] = at


@borrowing
def quotient(value, divisor, most, digits):
    """Find the significant digits of value / divisor, and return how many, and before which of them the point stands."""
    n = digits_of(value // divisor, digits)
    point, rest = n, value % divisor
    while rest > 0 and n < most:
        digit, rest = rest * 10 // divisor, rest * 10 % divisor
        if n > 0 or digit > 0:
            digits[n] = digit
            n += 1
        else:
            point -= 1
    if rest > divisor - rest or (rest == divisor - rest and digits[n - 1] & 1):
        return rounded_up(digits, n, point)
    return n, point


@borrowing
def rounded_up(digits, n, point):
    """Add one in the last place, and return how many digits there are and where the point stands."""
    k = n - 1
    while k >= 0 and digits[k] == 9:
        k -= 1
    if k < 0:
        digits[0] = 1
        return 1, point + 1
    digits[k] += 1
    return k + 1, point


@borrowing
def write_digits(data, at, digits, n, point):
    """Write a decimal with at least one digit on both sides of its point, and return the place behind."""
    while n > 0 and digits[n - 1] == 0:
        n -= 1
    if n == 0:
        point = 0
    for k in range(min(point, 0), max(n, point + 1, 1)):
        if k == min(point, 0) and point <= 0:
            data[at] = ZERO
            at += 1
        if k == point:
            data[at] = POINT
            at += 1
        data[at] = ZERO + digits[k] if 0 <= k < n else ZERO
        at += 1
    return at


@entry_point
def write_doubles(source, source_offsets, data, offsets):
    """Write texts of xsd:double, from the shortest forms (such as -12.5, 1e-07, inf) that stand in `source`."""
    at, digits = 0, np.empty(64, np.int64)
    for i in range(len(offsets) - 1):
        first, after = source_offsets[i], source_offsets[i + 1]
        negative = source[first] == MINUS
        first += negative
        at = begin(data, at, negative)
        if source[first] > NINE:
            at = write_special(data, at - (negative and source[first] == ord("n")), source[first])
        else:
            at = write_double(source, first, after, data, at, digits)
        at = finish(data, at, DOUBLE)
        offsets[i + 1] = at


@jit
def write_special(data, at, letter):
    """Write NaN, or INF."""
    infinite = letter == ord("i")
    data[at] = ord("I") if infinite else ord("N")
    data[at + 1] = ord("N") if infinite else ord("a")
    data[at + 2] = ord("F") if infinite else ord("N")
    return at + 3


@jit
def write_double(source, first, after, data, at, digits):
    """Write mantissa and exponent: 1.5E0."""
    n, point, k, seen = 0, 0, first, False
    while k < after and source[k] <= NINE:
        if source[k] == POINT:
            seen = True
        else:
            if n > 0 or source[k] != ZERO:
                digits[n] = source[k] - ZERO
                n += 1
                point += not seen
            elif seen:
                point -= 1
        k += 1
    if k < after:
        point += exponent(source, k + 1, after)
    while n > 0 and digits[n - 1] == 0:
        n -= 1
    if n == 0:
        digits[0], n, point = 0, 1, 1
    at = write_digits(data, at, digits, n, 1)
    data[at] = EXPONENT
    return write_exponent(data, at + 1, point - 1)


@jit
def exponent(source, first, after):
    negative, value = source[first] == MINUS, 0
    for k in range(first + (source[first] == MINUS or source[first] == PLUS), after):
        value = 10 * value + source[k] - ZERO
    return -value if negative else value


@jit
def write_exponent(data, at, value):
    if value < 0:
        data[at] = MINUS
        at, value = at + 1, -value
    if value >= 100:
        data[at] = ZERO + value // 100
        at += 1
    if value >= 10:
        data[at] = ZERO + value // 10 % 10
        at += 1
    data[at] = ZERO + value % 10
    return at + 1

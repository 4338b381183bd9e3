"""Exact numbers are a kind, a mantissa and a scale: mantissa / 10**scale. What a word does not hold is left to the host."""

from engine.dictionary.native import borrowing, inlined
from engine.dictionary.native.answers.layout import (
    ADD,
    ARGUMENT,
    CANONICAL,
    CONSTANT,
    DEEPEST,
    DIVIDE,
    FIRST,
    MULTIPLY,
    NEGATE,
    NO_ANSWER,
    OPERATION,
    SECOND,
    STEP_WIDTH,
    STEPS,
    THIRD,
)
from engine.dictionary.native.answers.number_writer import (
    DECIMAL,
    END_LENGTHS,
    ENDS,
    INTEGER,
    NINE,
    QUOTE,
    ZERO,
    begin,
    digits_of,
    finish,
    quotient,
    write_digits,
)
from engine.dictionary.native.handle import length_of, text_at
from engine.dictionary.native.intern import intern_bytes
from engine.dictionary.native.layout import CELL_WIDTH, MOST_SMALL
from engine.dictionary.native.memory import address_of, byte, prefetch, same
from engine.dictionary.native.numeric_literals import DOUBLE, NAME_TYPES, NO_NUMERAL, digits, is_within, numeral

MOST = 10**17
"""A mantissa is at most so large, so that ten times a remainder by it fits into a word too."""
MOST_SCALE = 17
QUOTIENT_DIGITS = 34  # as engine.expressions.numeric has it
MANTISSA, SCALE, VALUE_WIDTH = range(1, 4)
KIND = 0
FEW_DIGITS = 17
"""A literal with so few digits fits."""
INTEGER_END = END_LENGTHS[INTEGER]
TENS = tuple(10**k for k in range(MOST_SCALE + 1))
NUMERAL_DIGITS = DEEPEST * VALUE_WIDTH
"""Where the digits of a number stand among the words: behind the values."""


@borrowing
def calculate(terms, recipe, arguments, values, text):
    """Return the number of the term that is the value of an expression, or NO_ANSWER where the host has to say it."""
    depth = 0
    for k in range(recipe[STEPS]):
        step = STEPS + 1 + STEP_WIDTH * k
        operation = recipe[step + OPERATION]
        if operation == ARGUMENT or operation == CONSTANT:
            if depth == DEEPEST:
                return NO_ANSWER
            if operation == CONSTANT:
                set_value(values, depth, recipe[step + FIRST], recipe[step + SECOND], recipe[step + THIRD])
            elif not read_value(terms, arguments[recipe[step + FIRST]], values, depth):
                return NO_ANSWER
            depth += 1
        elif operation == NEGATE:
            values[VALUE_WIDTH * depth - VALUE_WIDTH + MANTISSA] *= -1
        elif operation == CANONICAL:
            make_canonical(values, depth - 1)
        elif operation == DIVIDE:  # it stands last
            return intern_written(terms, text, write_quotient(values, text))
        else:
            depth -= 1
            if not combine(operation, values, depth - 1):
                return NO_ANSWER
    value = values[MANTISSA]
    if values[KIND] != INTEGER or value < 0 or value >= MOST_SMALL:
        return intern_written(terms, text, write_value(values, text))
    if terms.small[value] == 0:
        terms.small[value] = max(intern_written(terms, text, write_value(values, text)), 0)
    prefetch(address_of(terms.cells) + 8 * CELL_WIDTH * terms.small[value])  # for a name, which has its text
    return terms.small[value] if terms.small[value] != 0 else NO_ANSWER


@inlined
def intern_written(terms, text, n):
    """Return the number of the first n bytes of a text, or NO_ANSWER if there are none or no room is there for them."""
    return intern_bytes(terms, address_of(text), n) if n > 0 else NO_ANSWER


@inlined
def set_value(values, place, kind, mantissa, scale):
    at = VALUE_WIDTH * place
    values[at + KIND], values[at + MANTISSA], values[at + SCALE] = kind, mantissa, scale


@borrowing
def read_value(terms, number, values, place):
    """Read a term's value; return whether it is an integer or a decimal that fits."""
    at, n = text_at(terms.cells, terms.text, number), length_of(terms.cells, number)
    if number == 0:
        return False
    if read_integer(at, n, values, place):
        return True
    name, length = numeral(at, n)
    if name == NO_NUMERAL or NAME_TYPES[name] == DOUBLE or length == 0:
        return False
    first, end = at + 1, at + 1 + length
    negative = byte(first) == ord("-")
    if negative or byte(first) == ord("+"):
        first += 1
    well, mantissa, power, fits = digits(first, end, NAME_TYPES[name])
    if not well or not fits or mantissa > MOST or -power > MOST_SCALE or not is_within(name, mantissa, negative):
        return False
    kind = INTEGER if NAME_TYPES[name] == INTEGER else DECIMAL
    set_value(values, place, kind, -int(mantissa) if negative else int(mantissa), -power)
    return True


@inlined
def read_integer(at, n, values, place):
    """Read the value of a literal of xsd:integer that has a few digits and no sign, and return whether the n bytes at an address are one."""
    after = n - INTEGER_END
    if after < 2 or after > 1 + FEW_DIGITS or byte(at) != QUOTE or not same(at + after, address_of(ENDS) + INTEGER * ENDS.shape[1], INTEGER_END):
        return False
    value = 0
    for k in range(1, after):
        digit = byte(at + k)
        if digit < ZERO or digit > NINE:
            return False
        value = 10 * value + digit - ZERO
    set_value(values, place, INTEGER, value, 0)
    return True


@borrowing
def make_canonical(values, place):
    at = VALUE_WIDTH * place
    while values[at + SCALE] > 0 and values[at + MANTISSA] % 10 == 0:
        values[at + MANTISSA] //= 10
        values[at + SCALE] -= 1
    if values[at + SCALE] == 0:
        values[at + KIND] = INTEGER


@borrowing
def combine(operation, values, place):
    """Leave the sum, difference or product of two values in the place of the first; return whether it fits."""
    left, right = VALUE_WIDTH * place, VALUE_WIDTH * (place + 1)
    a, b, scale = values[left + MANTISSA], values[right + MANTISSA], values[left + SCALE]
    kind = max(values[left + KIND], values[right + KIND])
    if operation == MULTIPLY:
        if abs(float(a) * float(b)) > MOST:
            return False
        a, scale = a * b, scale + values[right + SCALE]
    else:
        more = values[right + SCALE] - scale
        if abs(a if more > 0 else b) > MOST // TENS[abs(more)]:
            return False
        a, b, scale = (a * TENS[more], b, scale + more) if more > 0 else (a, b * TENS[-more], scale)
        a = a + b if operation == ADD else a - b
    set_value(values, place, kind, a, scale)
    return abs(a) <= MOST and scale <= MOST_SCALE


@borrowing
def write_value(values, text):
    """Write the first value, and return the length of its text."""
    kind, mantissa, numerals = values[KIND], values[MANTISSA], values[NUMERAL_DIGITS:]
    at, n = begin(text, 0, mantissa < 0), digits_of(abs(mantissa), numerals)
    if kind == DECIMAL:
        return finish(text, write_digits(text, at, numerals, n, n - values[SCALE]), DECIMAL)
    for k in range(n):
        text[at + k] = ZERO + numerals[k]
    if n == 0:
        text[at], n = ZERO, 1
    return finish(text, at + n, INTEGER)


@borrowing
def write_quotient(values, text):
    """Write the quotient of the first two values, a decimal, and return the length of its text; 0 for a division by zero."""
    a, b, numerals = values[MANTISSA], values[VALUE_WIDTH + MANTISSA], values[NUMERAL_DIGITS:]
    if b == 0:
        return 0
    n, point = quotient(abs(a), abs(b), QUOTIENT_DIGITS, numerals)
    at = begin(text, 0, a != 0 and (a < 0) != (b < 0))
    return finish(text, write_digits(text, at, numerals, n, point + values[VALUE_WIDTH + SCALE] - values[SCALE]), DECIMAL)

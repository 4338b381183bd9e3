"""Decimal literals become mantissa and scale, where a word holds them."""

import numpy as np

from engine.aggregation.native import native
from epsparql.terms import XSD

MOST_DIGITS = 18
END = np.frombuffer(f'"^^<{XSD}decimal>'.encode(), np.uint8)
PLUS, MINUS, POINT, ZERO, NINE = (ord(character) for character in "+-.09")


@native.entry_point
def decimals(data, offsets, found, mantissas, scales):
    """Find which of N-Triples texts one after the other are an xsd:decimal of at most MOST_DIGITS digits, and its value, at the least scale."""
    for i in range(len(found)):
        first, after = offsets[i] + 1, offsets[i + 1] - len(END)
        found[i] = first < after and ends(data, after) and value(data, first, after, i, mantissas, scales)


@native.jit
def ends(data, at):
    for k in range(len(END)):
        if data[at + k] != END[k]:
            return False
    return True


@native.jit
def value(data, first, after, i, mantissas, scales):
    """Return whether the lexical form is one; its value goes to place i."""
    negative = data[first] == MINUS
    if negative or data[first] == PLUS:
        first += 1
    mantissa, scale, digits, point = 0, 0, 0, False
    for k in range(first, after):
        if data[k] == POINT and not point:
            point = True
        elif ZERO <= data[k] <= NINE and digits < MOST_DIGITS:
            mantissa = 10 * mantissa + data[k] - ZERO
            digits += 1
            scale += point
        else:
            return False
    while scale > 0 and mantissa % 10 == 0:
        mantissa //= 10
        scale -= 1
    mantissas[i], scales[i] = -mantissa if negative else mantissa, scale
    return digits > 0

"""Doubles add up exactly in limbs of 32 bits that values are added to and taken from; the sum is rounded once when it is asked for.

Every finite double is a multiple of 2**-1074 below 2**1024, so 66 limbs hold it and two more what many of them add up to. Neal, Fast
Exact Summation Using Small and Large Superaccumulators, arXiv:1505.05571.
"""

from engine.aggregation.native import native
from engine.aggregation.native.layout import HIGHEST, LIMB_COUNT, LOWEST, UNIT

MASK = (1 << 32) - 1
FRACTION = (1 << 52) - 1
INFINITY = 0x7FF << 52
SIGN = -(1 << 63)


@native.inlined
def put(limbs, row, limb, low, middle, high):
    """Add to three neighbouring limbs."""
    limbs[row, limb] += low
    limbs[row, limb + 1] += middle
    limbs[row, limb + 2] += high
    limbs[row, LOWEST] = min(limbs[row, LOWEST], limb)
    limbs[row, HIGHEST] = max(limbs[row, HIGHEST], limb + 2)


@native.jit
def add_double(limbs, row, bits, by):
    """Add (`by` 1) or take away (-1) the finite double of these bits."""
    exponent, mantissa = (bits >> 52) & 0x7FF, bits & FRACTION
    if exponent > 0:
        mantissa |= 1 << 52
        exponent -= 1
    sign = -by if bits < 0 else by
    shift = exponent & 31
    low, high = (mantissa & MASK) << shift, (mantissa >> 32) << shift
    put(limbs, row, exponent >> 5, sign * (low & MASK), sign * ((low >> 32) + (high & MASK)), sign * (high >> 32))


@native.jit
def add_integer(limbs, row, high, rest):
    """Add high * 2**32 + rest, where 0 <= rest < 2**32."""
    limb, shift = UNIT >> 5, UNIT & 31
    rest <<= shift
    low, top = (high & MASK) << shift, (high >> 32) << shift
    put(limbs, row, limb, rest & MASK, (rest >> 32) + (low & MASK), low >> 32)
    put(limbs, row, limb + 2, top & MASK, top >> 32, 0)


@native.jit
def carry(limbs, row):
    """Carry, so that all limbs are in [0, 2**32) but the highest in use, which has the sign and stays below 2**32.

    The sum is the same.
    """
    k = limbs[row, LOWEST]
    while k < limbs[row, HIGHEST] or (k < LIMB_COUNT - 1 and not -MASK <= limbs[row, k] <= MASK):
        over = limbs[row, k] >> 32
        limbs[row, k] -= over << 32
        limbs[row, k + 1] += over
        k += 1
        limbs[row, HIGHEST] = max(limbs[row, HIGHEST], k)


@native.jit
def negate(limbs, row):
    for k in range(limbs[row, LOWEST], limbs[row, HIGHEST] + 1):
        limbs[row, k] = -limbs[row, k]
    carry(limbs, row)


@native.jit
def rounded(limbs, row):
    """Return the bits of the double nearest to the sum, ties to even.

    The row is changed, its sum up to the sign is not.
    """
    carry(limbs, row)
    negative = limbs[row, limbs[row, HIGHEST]] < 0
    if negative:
        negate(limbs, row)
    top, lowest = limbs[row, HIGHEST], limbs[row, LOWEST]
    while top > lowest and limbs[row, top] == 0:
        top -= 1
    if limbs[row, top] == 0:
        return 0
    leading, word = 32 * top - 1, limbs[row, top]
    while word > 0:
        word >>= 1
        leading += 1
    bits = nearest(limbs, row, lowest, leading)
    return bits | SIGN if negative else bits


@native.jit
def bits_from(limbs, row, shift):
    """Return the sum divided by 2**shift units, rounded down; it has less than 54 bits."""
    word, off = shift >> 5, shift & 31
    found = limbs[row, word] >> off
    found |= limbs[row, word + 1] << (32 - off)
    if off > 11:  # else 53 bits end before
        found |= limbs[row, word + 2] << (64 - off)
    return found


@native.jit
def nearest(limbs, row, lowest, leading):
    """Return the bits of the double nearest to a positive sum whose leading bit is this one."""
    shift = leading - 52
    if shift <= 0:
        return bits_from(limbs, row, 0)
    if shift >= 0x7FE:
        return INFINITY
    found = bits_from(limbs, row, shift)
    word, off = (shift - 1) >> 5, (shift - 1) & 31
    if (limbs[row, word] >> off) & 1:
        beyond = limbs[row, word] & ((1 << off) - 1)
        for k in range(lowest, word):
            beyond |= limbs[row, k]
        if beyond != 0 or found & 1:
            found += 1
    return (shift << 52) + found

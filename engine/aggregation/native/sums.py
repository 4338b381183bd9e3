"""COUNT, SUM and AVG of a group add values when they come and take them away when they leave."""

from engine.aggregation.native import native
from engine.aggregation.native.exact_double_sum import MASK, add_double, add_integer, carry, rounded
from engine.aggregation.native.layout import (
    A_DECIMAL,
    A_DOUBLE,
    A_TERM,
    AN_INTEGER,
    CODE,
    DECIMAL,
    DECIMALS,
    DOUBLE,
    DOUBLES,
    ERROR,
    ERRORS,
    FALLS,
    FREE_LIMBS,
    HIGH,
    HIGHEST,
    LIMB_COUNT,
    LIMBS,
    LIMBS_TOP,
    LOWEST,
    NAN,
    NANS,
    NONE,
    REST,
    RESULT,
    RESULT_HIGH,
    RISES,
)

SPARE = 0  # the row of `limbs` that a sum is rounded in


@native.jit
def add_value(t, g, at, class_, value, by):
    """Add (`by` 1) or take away (-1) a value of SUM, whose columns begin at `at`."""
    groups, limbs = t.groups, t.limbs
    if class_ == ERROR:
        groups[g, at + ERRORS] += by
    elif class_ <= DECIMAL:
        groups[g, at + DECIMALS] += by * (class_ == DECIMAL)
        value *= by
        groups[g, at + REST] += value & MASK
        groups[g, at + HIGH] += (value >> 32) + (groups[g, at + REST] >> 32)
        groups[g, at + REST] &= MASK
    else:
        groups[g, at + DOUBLES] += by
        if class_ == DOUBLE:
            if groups[g, at + LIMBS] == NONE:
                groups[g, at + LIMBS] = take_limbs(t.at, limbs)
            add_double(limbs, groups[g, at + LIMBS], value, by)
        else:
            groups[g, at + NANS + class_ - NAN] += by


@native.jit
def report_sum(groups, g, at, limbs, out, r, k):
    """Give the sum at columns k of report r."""
    out[r, k + CODE], out[r, k + RESULT], out[r, k + RESULT_HIGH] = A_TERM, 0, 0
    if groups[g, at + ERRORS] > 0:
        return
    if groups[g, at + DOUBLES] > 0:
        out[r, k + CODE], out[r, k + RESULT] = A_DOUBLE, total_double(groups, g, at, limbs)
        return
    high, rest = groups[g, at + HIGH], groups[g, at + REST]
    out[r, k + CODE] = A_DECIMAL if groups[g, at + DECIMALS] > 0 else AN_INTEGER
    out[r, k + RESULT], out[r, k + RESULT_HIGH] = ((high & (MASK >> 2)) << 32) + rest, high >> 30


@native.jit
def total_double(groups, g, at, limbs):
    """Return the bits of the exact sum, rounded once; NaN and infinities add as IEEE says."""
    rises, falls = groups[g, at + RISES] > 0, groups[g, at + FALLS] > 0
    if groups[g, at + NANS] > 0 or (rises and falls):
        return 0x7FF8 << 48
    if rises:
        return 0x7FF << 52
    if falls:
        return -(1 << 52)
    row = groups[g, at + LIMBS]
    carry(limbs, row)
    for k in range(limbs[row, LOWEST], limbs[row, HIGHEST] + 1):
        limbs[SPARE, k] = limbs[row, k]
    limbs[SPARE, LOWEST], limbs[SPARE, HIGHEST] = limbs[row, LOWEST], limbs[row, HIGHEST]
    if groups[g, at + HIGH] != 0 or groups[g, at + REST] != 0:
        add_integer(limbs, SPARE, groups[g, at + HIGH], groups[g, at + REST])
    bits = rounded(limbs, SPARE)
    clear_limbs(limbs, SPARE)
    return bits


@native.jit
def take_limbs(state, limbs):
    row = state[FREE_LIMBS]
    if row == NONE:
        row = state[LIMBS_TOP]
        state[LIMBS_TOP] += 1
    else:
        state[FREE_LIMBS] = limbs[row, 0]
        limbs[row, 0] = 0
    limbs[row, LOWEST], limbs[row, HIGHEST] = LIMB_COUNT - 1, 0
    return row


@native.jit
def free_limbs(state, limbs, row):
    if row != NONE:
        clear_limbs(limbs, row)
        limbs[row, 0] = state[FREE_LIMBS]
        state[FREE_LIMBS] = row


@native.jit
def clear_limbs(limbs, row):
    for k in range(min(limbs[row, LOWEST], limbs[row, HIGHEST]), limbs[row, HIGHEST] + 1):
        limbs[row, k] = 0
    limbs[row, LOWEST], limbs[row, HIGHEST] = LIMB_COUNT - 1, 0

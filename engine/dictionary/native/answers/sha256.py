"""SHA-256 (FIPS 180-4), where compiled code needs it: digests of the terms of a solution."""

from itertools import islice

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.dictionary.native import jit
from engine.dictionary.native.memory import big_end_first, bytes_at, word

BLOCK, LENGTH_BYTES = 64, 8
SCHEDULE, STATE = 64, 8
"""The words that a digest works with: the schedule of a block and then the state."""


def _primes() -> "islice[int]":
    return islice((n for n in range(2, 312) if all(n % k for k in range(2, n))), SCHEDULE)


def _root_fraction(n: int, degree: int) -> int:
    """Return the first 32 bits of the fraction of a root, exactly."""
    scaled, low, high = n << 32 * degree, 0, 1 << 40
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= scaled else (low, middle - 1)
    return low & 0xFFFFFFFF


ROUNDS = np.array([_root_fraction(prime, 3) for prime in _primes()], np.uint64)
BEGIN = np.array([_root_fraction(prime, 2) for prime in _primes()][:STATE], np.uint64)
LOW = np.uint64(0xFFFFFFFF)


@intrinsic
def turned(typingctx, value, by):
    """Return 32 bits rotated to the right."""

    def build(context, builder, sig, args):
        narrow = ir.IntType(32)
        low, count = builder.trunc(args[0], narrow), builder.trunc(args[1], narrow)
        rotate = builder.module.declare_intrinsic("llvm.fshr", [narrow], ir.FunctionType(narrow, [narrow] * 3))
        return builder.zext(builder.call(rotate, [low, low, count]), ir.IntType(64))

    return types.uint64(types.uint64, types.int64), build


@jit
def digest(at, n, words):
    """Leave the digest of the n bytes at an address in the words from SCHEDULE on. Behind the bytes there is room for BLOCK + LENGTH_BYTES more."""
    padded = (n + LENGTH_BYTES) // BLOCK * BLOCK + BLOCK
    data = bytes_at(at, padded)
    data[n] = 0x80
    for k in range(n + 1, padded):
        data[k] = 0
    for k in range(LENGTH_BYTES):
        data[padded - 1 - k] = 8 * n >> 8 * k & 0xFF
    for k in range(STATE):
        words[SCHEDULE + k] = BEGIN[k]
    for block in range(0, padded, BLOCK):
        fill_schedule(at + block, words)
        mix_block(words)


@jit
def fill_schedule(at, words):
    for k in range(0, 16, 2):
        both = big_end_first(word(at + 4 * k))
        words[k], words[k + 1] = both >> np.uint64(32), both & LOW
    for k in range(16, SCHEDULE):
        early, late = words[k - 15], words[k - 2]
        small = turned(early, 7) ^ turned(early, 18) ^ (early >> np.uint64(3))
        large = turned(late, 17) ^ turned(late, 19) ^ (late >> np.uint64(10))
        words[k] = (words[k - 16] + small + words[k - 7] + large) & LOW


@jit
def mix_block(words):
    a, b, c, d = words[SCHEDULE], words[SCHEDULE + 1], words[SCHEDULE + 2], words[SCHEDULE + 3]
    e, f, g, h = words[SCHEDULE + 4], words[SCHEDULE + 5], words[SCHEDULE + 6], words[SCHEDULE + 7]
    for k in range(SCHEDULE):
        choice = (e & f) ^ (~e & g)
        first = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + choice + ROUNDS[k] + words[k]) & LOW
        second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        h, g, f, e, d, c, b, a = g, f, e, (d + first) & LOW, c, b, a, (first + second) & LOW
    for k, value in enumerate((a, b, c, d, e, f, g, h)):
        words[SCHEDULE + k] = (words[SCHEDULE + k] + value) & LOW

"""SHA-256 (FIPS 180-4), where compiled code needs it: digests of the terms of a solution.

OpenSSL computes them, which Python's hashlib has loaded, by the processor's own instructions. Where Python is linked otherwise, this module does.
"""

from functools import reduce
from itertools import islice

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.dictionary.native import borrowing
from engine.dictionary.native.memory import address_of, bytes_at

BLOCK, LENGTH_BYTES = 64, 8
STATE, DIGEST_AT, CONTEXT_AT = 8, 8, 16
"""The state has so many words. Among the words, the bytes of a digest stand behind it, and then what OpenSSL works with."""


def _primes() -> "islice[int]":
    return islice((n for n in range(2, 312) if all(n % k for k in range(2, n))), 64)


def _root_fraction(n: int, degree: int) -> int:
    """Return the first 32 bits of the fraction of a root, exactly."""
    scaled, low, high = n << 32 * degree, 0, 1 << 40
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= scaled else (low, middle - 1)
    return low & 0xFFFFFFFF


ROUNDS = tuple(_root_fraction(prime, 3) for prime in _primes())
BEGIN = np.array([_root_fraction(prime, 2) for prime in _primes()][:STATE], np.uint64)


@intrinsic
def mix_block(typingctx, state, block):
    """Mix the BLOCK bytes at an address into the state at another, whose words are the low halves of eight words of 8 bytes.

    All rounds are written out over values of 32 bits, which stay in registers.
    """

    def build(context, builder, sig, args):
        narrow, wide = ir.IntType(32), ir.IntType(64)
        rotate = builder.module.declare_intrinsic("llvm.fshr", [narrow], ir.FunctionType(narrow, [narrow] * 3))

        def turned(value, *by):
            return reduce(builder.xor, (builder.call(rotate, [value, value, ir.Constant(narrow, count)]) for count in by))

        def total(*values):
            return reduce(builder.add, values)

        def place(base, offset, kind):
            return builder.inttoptr(builder.add(base, ir.Constant(wide, offset)), kind.as_pointer())

        words = []
        for k in range(16):
            words.append(builder.load(place(args[1], 4 * k, narrow)))
            words[k].align = 1
            words[k] = builder.bswap(words[k])
        state = [place(args[0], 8 * k, wide) for k in range(STATE)]
        before = [builder.trunc(builder.load(each), narrow) for each in state]
        a, b, c, d, e, f, g, h = before
        for k, constant in enumerate(ROUNDS):
            if k >= 16:
                early, late = words[(k - 15) % 16], words[(k - 2) % 16]
                small = builder.xor(turned(early, 7, 18), builder.lshr(early, ir.Constant(narrow, 3)))
                large = builder.xor(turned(late, 17, 19), builder.lshr(late, ir.Constant(narrow, 10)))
                words[k % 16] = total(words[k % 16], small, words[(k - 7) % 16], large)
            choice = builder.xor(g, builder.and_(e, builder.xor(f, g)))
            first = total(h, turned(e, 6, 11, 25), choice, ir.Constant(narrow, constant), words[k % 16])
            majority = builder.or_(builder.and_(a, b), builder.and_(c, builder.or_(a, b)))
            h, g, f, e, d, c, b, a = g, f, e, builder.add(d, first), c, b, a, total(first, turned(a, 2, 13, 22), majority)
        for each, old, new in zip(state, before, (a, b, c, d, e, f, g, h), strict=True):
            builder.store(builder.zext(builder.add(old, new), wide), each)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), build


@borrowing
def digest(at, n, words):
    """Leave the digest of the n bytes at an address in its place. Behind the bytes there is room for BLOCK + LENGTH_BYTES more."""
    padded = (n + LENGTH_BYTES) // BLOCK * BLOCK + BLOCK
    data = bytes_at(at, padded)
    data[n] = 0x80
    for k in range(n + 1, padded):
        data[k] = 0
    for k in range(LENGTH_BYTES):
        data[padded - 1 - k] = 8 * n >> 8 * k & 0xFF
    for k in range(STATE):
        words[k] = BEGIN[k]
    for block in range(0, padded, BLOCK):
        mix_block(address_of(words), at + block)
    found = bytes_at(address_of(words) + 8 * DIGEST_AT, 4 * STATE)
    for k in range(4 * STATE):
        found[k] = words[k >> 2] >> 24 - 8 * (k & 3) & 0xFF


@intrinsic
def call_at(typingctx, function, a, b, c):
    """Call a function of C at an address, which takes three words or fewer."""

    def build(context, builder, sig, args):
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(64)] * 3)
        return builder.sext(builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:]), ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64, types.int64), build


@borrowing
def digest_by_openssl(functions, at, n, words):
    """Do as `digest` does, by SHA256_Init, SHA256_Update and SHA256_Final, whose addresses are given."""
    state = address_of(words) + 8 * CONTEXT_AT
    call_at(functions[0], state, 0, 0)
    call_at(functions[1], state, at, n)
    call_at(functions[2], address_of(words) + 8 * DIGEST_AT, state, 0)

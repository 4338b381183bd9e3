"""This module handles text eight bytes at a time. Words are uint64 in the machine's (little-endian) order, so the first byte is the lowest one."""

from pathlib import Path

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from engine.jit import Native

native = Native.of(Path(__file__).parent)

NONE = -1
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_ONES = np.uint64(0x0101_0101_0101_0101)
_TOPS = np.uint64(0x8080_8080_8080_8080)
_SPACES = np.uint64(0x2020_2020_2020_2020)
_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF = np.uint64(32)
_EIGHT = np.uint64(8)
_TOP_BYTE = np.uint64(56)


def _place(context, builder, array_type, array, i):
    data = make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [i]), ir.IntType(64).as_pointer())


@intrinsic
def _load(typingctx, text, i):
    """Load the eight bytes from `i` on, wherever they stand in memory. The caller knows that they are there."""

    def build(context, builder, sig, args):
        word = builder.load(_place(context, builder, sig.args[0], args[0], args[1]))
        word.align = 1
        return word

    return types.uint64(text, types.int64), build


@intrinsic
def _store(typingctx, out, i, word):
    def build(context, builder, sig, args):
        builder.store(args[2], _place(context, builder, sig.args[0], args[0], args[1])).align = 1
        return context.get_dummy_value()

    return types.void(out, types.int64, types.uint64), build


@intrinsic
def borrowed(typingctx, array):
    """The same array, whose owner the caller keeps: without this, references to it are counted at each call, in memory shared with other cores."""

    def build(context, builder, sig, args):
        view = make_array(sig.return_type)(context, builder, args[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        return view._getvalue()

    return array(array), build


@intrinsic
def _zeros_below(typingctx, word):
    """Return how many bits stand below the lowest one that is set."""

    def build(context, builder, sig, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), build


@native.inlined
def word_at(text, i):
    """Return the eight bytes from `i` on; beyond the end of the text they are 0."""
    if i + 8 <= len(text):
        return _load(text, i)
    word = np.uint64(0)
    for k in range(len(text) - i):
        word |= np.uint64(text[i + k]) << (np.uint64(k) * _EIGHT)
    return word


@native.inlined
def put_word(out, at, word):
    """Write eight bytes; whoever makes `out` leaves room for as many beyond what is meant to be there."""
    assert at + 8 <= len(out)
    _store(out, at, word)


@native.inlined
def marks(word, byte):
    """Return a word that is non-zero where the word has the byte. The lowest mark is the first such byte; those above it may be mistaken."""
    other = word ^ (np.uint64(byte) * _ONES)
    return (other - _ONES) & ~other & _TOPS


@native.inlined
def marks_of_controls(word):
    """Return a word that marks the bytes below 0x20, as `marks` does for one byte."""
    return (word - _SPACES) & ~word & _TOPS


@native.inlined
def beyond_ascii(word):
    return word & _TOPS


@native.inlined
def first_of(found):
    """Return the number of the byte in the word that the lowest mark stands for."""
    return np.int64(_zeros_below(found)) >> 3


@native.inlined
def leading(word, count):
    """Return the word with its first `count` bytes (1 to 8) alone."""
    return word & (ALL >> (_TOP_BYTE - np.uint64(count - 1) * _EIGHT))


@native.inlined
def mixed(key, word):
    """Return a hash of what was hashed to `key`, followed by `word`."""
    found = (key ^ word) * _FACTOR
    return found ^ (found >> _HALF)


@native.inlined
def same(text, i, j, size):
    """Return whether two pieces of the text are equal."""
    k = 0
    while k + 8 <= size:
        if word_at(text, i + k) != word_at(text, j + k):
            return False
        k += 8
    return k == size or leading(word_at(text, i + k), size - k) == leading(word_at(text, j + k), size - k)


@native.inlined
def starts(text, i, other):
    """Return whether `other` stands at `i`."""
    size = len(other)
    if i + size > len(text):
        return False
    k = 0
    while k + 8 <= size:
        if word_at(text, i + k) != word_at(other, k):
            return False
        k += 8
    return k == size or leading(word_at(text, i + k), size - k) == leading(word_at(other, k), size - k)


@native.inlined
def copied(out, at, text, i, size):
    """Copy a piece and return the place after it."""
    k = 0
    while k < size:
        put_word(out, at + k, word_at(text, i + k))
        k += 8
    return at + size

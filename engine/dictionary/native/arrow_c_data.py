"""Structs of Arrow's C data interface are read and made by address.

Each array made here stands in one allocation, structs and data alike, which goes when Arrow lets go of the outermost struct. So children and
dictionaries have nothing of their own to free. Source: Arrow C data interface, struct ArrowArray.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from engine.dictionary.native import inlined
from engine.dictionary.native.memory import byte, int64s_at, word

ROWS, NULLS, OFFSET, N_BUFFERS, N_CHILDREN, BUFFERS, CHILDREN, DICTIONARY, RELEASE, PRIVATE, STRUCT_WORDS = range(11)
WORD = 8  # bytes

_WORD, _POINTER = ir.IntType(64), ir.IntType(8).as_pointer()
_RELEASING = ir.FunctionType(ir.VoidType(), [_POINTER])
_RELEASED = "epsparql_released"


def _called(builder, name, result, arguments):
    """Build a call of a function of C's library, and return its result."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _releasing(module):
    """Return the release callback of the structs made here.

    The callback frees the allocation that the private data name, if any, and marks the struct as released.
    """
    known = module.globals.get(_RELEASED)
    if known is not None:
        return known
    function = ir.Function(module, _RELEASING, _RELEASED)
    function.linkage = "linkonce_odr"
    builder = ir.IRBuilder(function.append_basic_block())
    words = builder.bitcast(function.args[0], _WORD.as_pointer())
    block = builder.load(builder.gep(words, [ir.Constant(_WORD, PRIVATE)]))
    builder.store(ir.Constant(_WORD, 0), builder.gep(words, [ir.Constant(_WORD, RELEASE)]))
    _called(builder, "free", ir.VoidType(), [builder.inttoptr(block, _POINTER)])
    builder.ret_void()
    return function


@intrinsic
def released(typingctx):
    """Return the address of the release callback."""
    return types.int64(), lambda context, builder, sig, args: builder.ptrtoint(_releasing(builder.module), _WORD)


@intrinsic
def allocated(typingctx, size):
    """Allocate so many bytes, which `free` takes back, and return their address; 0 if there are none."""
    return types.int64(types.int64), lambda context, builder, sig, args: builder.ptrtoint(_called(builder, "malloc", _POINTER, [args[0]]), _WORD)


@intrinsic
def let_go(typingctx, struct):
    """Release an array that was exported to us."""

    def build(context, builder, sig, args):
        words = builder.inttoptr(args[0], _WORD.as_pointer())
        callback = builder.load(builder.gep(words, [ir.Constant(_WORD, RELEASE)]))
        builder.call(builder.inttoptr(callback, _RELEASING.as_pointer()), [builder.inttoptr(args[0], _POINTER)])
        return context.get_dummy_value()

    return types.void(types.int64), build


@inlined
def at_word(address, k):
    """Return the k-th word of a struct or of an array of addresses."""
    return np.int64(word(address + WORD * k))


@inlined
def bit(bits, k):
    return (byte(bits + (k >> 3)) >> (k & 7)) & 1


@inlined
def padded(size):
    """Return a size in bytes, rounded up to whole words."""
    return (size + WORD - 1) // WORD * WORD


@inlined
def fill_struct(struct, length, nulls, buffers, children, dictionary):
    """Fill a struct; `buffers` and `children` say how many there are, and where their addresses stand."""
    words = int64s_at(struct, STRUCT_WORDS)
    words[ROWS], words[NULLS], words[OFFSET] = length, nulls, 0
    words[N_BUFFERS], words[BUFFERS] = buffers
    words[N_CHILDREN], words[CHILDREN] = children
    words[DICTIONARY], words[RELEASE], words[PRIVATE] = dictionary, released(), 0

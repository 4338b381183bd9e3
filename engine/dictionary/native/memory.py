"""Memory is read by address: texts stand anywhere, and words of 8 bytes are read from them whatever their alignment.

Nothing here is bounds-checked. Callers stay inside of what Arrow's offsets and the table's cells span.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from engine.dictionary.native import inlined
from engine.dictionary.native.layout import CELL_WIDTH
from engine.jit import build_prefetch

_WORD, _BYTE = ir.IntType(64), ir.IntType(8)


def _loaded(builder, address, bits):
    kind = ir.IntType(bits)
    load = builder.load(builder.inttoptr(address, kind.as_pointer()))
    load.align = 1
    return load


@intrinsic
def word(typingctx, address):
    """Return the 8 bytes at an address, little end first."""
    return types.uint64(types.int64), lambda context, builder, sig, args: _loaded(builder, args[0], 64)


@intrinsic
def byte(typingctx, address):
    return types.int64(types.int64), lambda context, builder, sig, args: builder.zext(_loaded(builder, args[0], 8), _WORD)


@intrinsic
def short_word(typingctx, address):
    """Return the signed 4 bytes at an address, as Arrow's offsets and indices are."""
    return types.int64(types.int64), lambda context, builder, sig, args: builder.sext(_loaded(builder, args[0], 32), _WORD)


def viewing(item, width=0):
    """Make a function that views an address as an array of these items, with rows of `width` if it has two dimensions.

    The owner of the memory keeps it alive.
    """
    kind = types.Array(item, 2 if width else 1, "C")

    @intrinsic
    def array_at(typingctx, address, length):
        def build(context, builder, sig, args):
            array = make_array(kind)(context, builder)
            size = context.get_abi_sizeof(context.get_data_type(item))
            shape = [args[1], *([ir.Constant(_WORD, width)] if width else [])]
            strides = [ir.Constant(_WORD, size * (width or 1)), *([ir.Constant(_WORD, size)] if width else [])]
            populate_array(
                array,
                data=builder.inttoptr(args[0], context.get_data_type(item).as_pointer()),
                shape=cgutils.pack_array(builder, shape),
                strides=cgutils.pack_array(builder, strides),
                itemsize=ir.Constant(_WORD, size),
                meminfo=None,
            )
            return array._getvalue()

        return kind(types.int64, types.int64), build

    return array_at


int64s_at, int32s_at, int8s_at, bytes_at = viewing(types.int64), viewing(types.int32), viewing(types.int8), viewing(types.uint8)
uint64s_at = viewing(types.uint64)
cells_at, values_at = viewing(types.int64, CELL_WIDTH), viewing(types.float64, 2)


@intrinsic
def address_of(typingctx, array):
    """Return where an array's data begins; the caller keeps it alive."""

    def build(context, builder, sig, args):
        return builder.ptrtoint(make_array(sig.args[0])(context, builder, args[0]).data, _WORD)

    return types.int64(array), build


@intrinsic
def prefetch(typingctx, address):
    """Let the cache fetch what stands at an address, which may be any, while the caller goes on."""

    def build(context, builder, sig, args):
        build_prefetch(builder, builder.inttoptr(args[0], _BYTE.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64), build


@intrinsic
def copy(typingctx, target, source, n):
    """Copy n bytes that do not overlap."""

    def build(context, builder, sig, args):
        into, out_of = (builder.inttoptr(address, _BYTE.as_pointer()) for address in args[:2])
        cgutils.raw_memcpy(builder, into, out_of, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), build


@intrinsic
def product(typingctx, a, b):
    """Return the 128 bits of a * b: high and low word."""

    def build(context, builder, sig, args):
        wide = ir.IntType(128)
        whole = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        high, low = builder.trunc(builder.lshr(whole, ir.Constant(wide, 64)), _WORD), builder.trunc(whole, _WORD)
        return context.make_tuple(builder, sig.return_type, [high, low])

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), build


@intrinsic
def leading_zeros(typingctx, a):
    return types.uint64(types.uint64), lambda context, builder, sig, args: builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))


@intrinsic
def big_end_first(typingctx, a):
    """Return the word with its bytes the other way round."""
    return types.uint64(types.uint64), lambda context, builder, sig, args: builder.bswap(args[0])


@intrinsic
def as_double(typingctx, bits):
    """Return the IEEE double of these bits."""
    return types.float64(types.uint64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.DoubleType())


@inlined
def same(a, b, n):
    """Return whether the n bytes at two addresses are equal."""
    if n < 8:
        for k in range(n):
            if byte(a + k) != byte(b + k):
                return False
        return True
    k = 0
    while k + 8 <= n:
        if word(a + k) != word(b + k):
            return False
        k += 8
    return word(a + n - 8) == word(b + n - 8)  # the last word, which may overlap the one before

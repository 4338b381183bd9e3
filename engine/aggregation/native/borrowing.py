"""Arrays that compiled functions hand on are borrowed from the caller of the outermost one. Their rows can be fetched before they are needed."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

LINE, LINES = 64, 3  # bytes of a line of the cache, and lines that are fetched of a row


@intrinsic
def borrowed(typingctx, arrays):
    """Return the same tuple of arrays, whose owner the caller keeps.

    Without this, references to each are counted at every call, in memory that cores share; that took longer than the rest of a sweep.
    """

    def build(context, builder, sig, args):
        views = []
        for kind, part in zip(sig.return_type.types, cgutils.unpack_tuple(builder, args[0], len(sig.return_type.types)), strict=True):
            view = make_array(kind)(context, builder, part)
            view.meminfo = cgutils.get_null_value(view.meminfo.type)
            views.append(view._getvalue())
        return context.make_tuple(builder, sig.return_type, views)

    return arrays(arrays), build


@intrinsic
def prefetch_row(typingctx, array, row):
    """Let the cache fetch a row of a table, or an element of a flat array, while the caller goes on.

    A row may begin anywhere in a line of the cache; of rows longer than LINES lines, only these are fetched.
    """

    def build(context, builder, sig, args):
        view = make_array(sig.args[0])(context, builder, args[0])
        pointer, number, word = ir.IntType(8).as_pointer(), ir.IntType(32), ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        called = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        stride = builder.extract_value(view.strides, 0)
        begin = builder.gep(builder.bitcast(view.data, pointer), [builder.mul(args[1], stride)])
        for k in range(LINES if array.ndim > 1 else 1):
            here = builder.gep(begin, [ir.Constant(word, LINE * k)])
            builder.call(called, [here, *(ir.Constant(number, each) for each in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64), build

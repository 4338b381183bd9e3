"""Arrays that compiled functions hand on are borrowed from the caller of the outermost one. Their rows can be fetched before they are needed."""

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from engine.aggregation.native import native
from engine.jit import build_prefetch

LINE = 8  # words of a line of the cache


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
def prefetch(typingctx, array, k):
    """Let the cache fetch the k-th item of a contiguous array, which may be any, while the caller goes on."""

    def build(context, builder, sig, args):
        build_prefetch(builder, builder.gep(make_array(sig.args[0])(context, builder, args[0]).data, [args[1]]))
        return context.get_dummy_value()

    return types.void(array, types.int64), build


@native.inlined
def prefetch_row(table, row):
    """Let the cache fetch a row of a table, wherever in a line of the cache it begins."""
    width = table.shape[1]
    for column in range(0, width, LINE):
        prefetch(table, row * width + column)
    prefetch(table, row * width + width - 1)

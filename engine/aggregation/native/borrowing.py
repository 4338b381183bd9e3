"""Arrays that compiled functions hand on are borrowed from the caller of the outermost one."""

from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


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

"""The kernel's handle: the address of a table of (address, length, width); `net.rows` is an array view, built where it is used.

A namedtuple of arrays would be passed as seven words an array at every call and keep numba's reference counting alive; a handle
is one word and counts nothing. The table never changes while the kernel runs, so its loads are invariant and LLVM may hoist them.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numba.np.arrayobj import make_array, populate_array

from engine.kernel.state import FLAT, FLOATS, WORDS, Net

FIELDS = {
    name: (k, types.Array(types.float64 if name in FLOATS else types.int64, 1 if name in FLAT else 2, "C")) for k, name in enumerate(Net._fields)
}


class NetType(types.Type):
    def __init__(self):
        super().__init__("Net")


net_type = NetType()


@register_model(NetType)
class NetModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.IntType(64).as_pointer())


@intrinsic
def as_net(typingctx, address):
    """The table at `address`; its owner keeps it alive."""

    def build(context, builder, sig, args):
        return builder.inttoptr(args[0], ir.IntType(64).as_pointer())

    return net_type(types.int64), build


@infer_getattr
class NetAttributes(AttributeTemplate):
    key = NetType

    def generic_resolve(self, typ, attr):
        return FIELDS[attr][1] if attr in FIELDS else None


@lower_getattr_generic(NetType)
def get_field(context, builder, typ, value, attr):
    k, array_type = FIELDS[attr]

    def word(i):
        load = builder.load(builder.gep(value, [ir.Constant(ir.IntType(64), WORDS * k + i)]))
        load.set_metadata("invariant.load", builder.module.add_metadata([]))
        return load

    array = make_array(array_type)(context, builder)
    item = ir.Constant(ir.IntType(64), 8)
    shape = [word(1)] if array_type.ndim == 1 else [word(1), word(2)]
    strides = [item] if array_type.ndim == 1 else [builder.mul(shape[1], item), item]
    data = builder.inttoptr(word(0), context.get_data_type(array_type.dtype).as_pointer())
    populate_array(
        array, data=data, shape=cgutils.pack_array(builder, shape), strides=cgutils.pack_array(builder, strides), itemsize=item, meminfo=None
    )
    return array._getvalue()


@intrinsic
def table_at(typingctx, address, height, width):
    """The int64 table of this shape at an address; its owner keeps it alive, and nothing changes it while the kernel runs."""
    kind = types.Array(types.int64, 2, "C")

    def build(context, builder, sig, args):
        start, rows, columns = args
        array = make_array(kind)(context, builder)
        item = ir.Constant(ir.IntType(64), 8)
        data = builder.inttoptr(start, context.get_data_type(types.int64).as_pointer())
        populate_array(
            array,
            data=data,
            shape=cgutils.pack_array(builder, [rows, columns]),
            strides=cgutils.pack_array(builder, [builder.mul(columns, item), item]),
            itemsize=item,
            meminfo=None,
        )
        return array._getvalue()

    return kind(types.int64, types.int64, types.int64), build

"""The kernel's handle: the address of a table of (address, length, width); `net.rows` is an array view, built where it is used.

A namedtuple of arrays would be passed as seven words an array at every call and keep numba's reference counting alive; a handle
is one word and counts nothing. The table never changes while the kernel runs, so its loads are invariant and LLVM may hoist them.

The views are arrays of a type of their own (`TableType`), which says three things that numba cannot know of an array: an index is never below
zero, so nothing is added to it; the width is a constant of most tables; and no two tables share memory, so what was read of one still stands after
another was written. They are plain arrays where bounds are to be checked.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import ArrayModel
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_builtin, lower_getattr_generic, models, register_model
from numba.np.arrayobj import make_array, populate_array

from engine.jit import config
from engine.kernel.state.arrays import FLAT, FLOATS, VARYING, WORDS, Net, new_net
from engine.kernel.state.layout import LEAST_WIDTH


class TableType(types.Array):
    """Represents a table of this name; `width` is set where all networks have the same, else None."""

    def __init__(self, name: str, dtype: types.Type, ndim: int, width: int | None) -> None:
        self.table, self.width = name, width
        super().__init__(dtype, ndim, "C", name=f"{name} table")

    @property
    def key(self) -> tuple[Any, ...]:
        return (*super().key, self.table)


register_model(TableType)(ArrayModel)


def _type_of(name: str, example: Any) -> types.Array:
    dtype, ndim = types.float64 if name in FLOATS else types.int64, 1 if name in FLAT else 2
    if config.BOUNDSCHECK:
        return types.Array(dtype, ndim, "C")
    return TableType(name, dtype, ndim, example.shape[1] if ndim == 2 and name not in VARYING else None)


FIELDS = {name: (k, _type_of(name, example)) for k, (name, example) in enumerate(new_net(LEAST_WIDTH)._asdict().items())}
assert tuple(FIELDS) == Net._fields


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
    """Return the table at `address`; its owner keeps it alive."""

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


# ---------------------------------------------------------------- cells of tables
def _cell(context, builder, table_type, table, index_type, index):
    """Return the address of one cell."""
    kinds = index_type.types if isinstance(index_type, types.BaseTuple) else (index_type,)
    assert len(kinds) == table_type.ndim, f"{table_type} has cells only, no rows"
    values = cgutils.unpack_tuple(builder, index, len(kinds)) if isinstance(index_type, types.BaseTuple) else [index]
    places = [context.cast(builder, value, kind, types.int64) for value, kind in zip(values, kinds, strict=True)]
    array = make_array(table_type)(context, builder, table)
    if table_type.ndim == 2:
        width = cgutils.unpack_tuple(builder, array.shape, 2)[1] if table_type.width is None else ir.Constant(ir.IntType(64), table_type.width)
        places = [builder.add(builder.mul(places[0], width, flags=["nsw"]), places[1], flags=["nsw"])]
    return builder.gep(array.data, places, inbounds=True)


def _of_table(builder, table_type, access):
    """Tell LLVM to which table an access belongs, and that it has nothing to do with the others."""
    module = builder.module
    domain = module.add_metadata([ir.MetaDataString(module, "epsparql tables")])
    scopes = {name: module.add_metadata([ir.MetaDataString(module, f"epsparql {name}"), domain]) for name in Net._fields}
    access.set_metadata("alias.scope", module.add_metadata([scopes.pop(table_type.table)]))
    access.set_metadata("noalias", module.add_metadata(list(scopes.values())))
    return access


@lower_builtin(operator.getitem, TableType, types.Integer)
@lower_builtin(operator.getitem, TableType, types.BaseTuple)
def get_cell(context, builder, sig, args):
    cell = _cell(context, builder, sig.args[0], args[0], sig.args[1], args[1])
    return _of_table(builder, sig.args[0], builder.load(cell))


@lower_builtin(operator.setitem, TableType, types.Integer, types.Any)
@lower_builtin(operator.setitem, TableType, types.BaseTuple, types.Any)
def set_cell(context, builder, sig, args):
    cell = _cell(context, builder, sig.args[0], args[0], sig.args[1], args[1])
    _of_table(builder, sig.args[0], builder.store(context.cast(builder, args[2], sig.args[2], sig.args[0].dtype), cell))
    return context.get_dummy_value()


@intrinsic
def table_at(typingctx, address, height, width):
    """Return the int64 table of this shape at an address; its owner keeps it alive, and nothing changes it while the kernel runs."""
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

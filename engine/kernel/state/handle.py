"""The kernel's handle: the address of a table of (address, length, width); `net.rows` is an array view, built where it is used.

A namedtuple of arrays would be passed as seven words an array at every call and keep numba's reference counting alive; a handle
is one word and counts nothing. The table never changes while the kernel runs, so its loads are invariant and LLVM may hoist them.

The views are arrays of a type of their own (`TableType`), which says three things that numba cannot know of an array: an index is never below
zero, so nothing is added to it; the width is a constant of most tables; and no two tables share memory, so what was read of one still stands after
another was written. A row of a table is a record (`RecordType`): `net.rows[goal].end` is one load, of the column that has this name.

Cells have 8 bytes, or as many as CELL_BYTES says, and are 64-bit integers where they are used. Goals are many, so most cells of `rows` have 4 bytes.
The first ones of each row have 8 (WIDE); these are read as fields of records alone.
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import ArrayModel
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_builtin, lower_getattr_generic, lower_setattr_generic, models, register_model
from numba.np.arrayobj import make_array, populate_array

from engine.jit import build_prefetch, config
from engine.kernel.state.arrays import CELL_BYTES, FLAT, FLOATS, VARYING, WIDE, WORDS, Net, new_net
from engine.kernel.state.layout import ASK_ARG, LEAST_WIDTH, RECORDS

_WORD = ir.IntType(64)


class TableType(types.Array):
    """Represents a table of this name; `width` is set where all networks have the same, else None."""

    def __init__(self, name: str, dtype: types.Type, ndim: int, width: int | None) -> None:
        self.table, self.width = name, width
        super().__init__(dtype, ndim, "C", name=f"{name} table")

    @property
    def key(self) -> tuple[Any, ...]:
        return (*super().key, self.table)

    def copy(self, dtype: Any = None, ndim: Any = None, layout: Any = None, readonly: Any = None) -> Any:
        """Return the type of a part of the table, for which numba asks here: a row is a record."""
        return RecordType(self.table) if ndim == 1 and self.ndim == 2 else super().copy(dtype, ndim, layout, readonly)


register_model(TableType)(ArrayModel)


class RecordType(types.Type):
    """Represents one row of a table, by its address; its attributes are the columns of RECORDS."""

    def __init__(self, table: str) -> None:
        self.table = table
        super().__init__(f"{table} record")


def _kind_of(table: str) -> types.Type:
    return types.float64 if table in FLOATS else types.int64


@register_model(RecordType)
class RecordModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, (ir.DoubleType() if fe_type.table in FLOATS else _WORD).as_pointer())


def _type_of(name: str, example: Any) -> types.Type:
    if name == "at":
        return RecordType(name)
    ndim = 1 if name in FLAT else 2
    return TableType(name, _kind_of(name), ndim, example.shape[1] if ndim == 2 and name not in VARYING else None)


TABLES = {name: (k, _type_of(name, example)) for k, (name, example) in enumerate(new_net(LEAST_WIDTH)._asdict().items())}
assert tuple(TABLES) == Net._fields


class NetType(types.Type):
    def __init__(self):
        super().__init__("Net")


net_type = NetType()


@register_model(NetType)
class NetModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _WORD.as_pointer())


@intrinsic
def as_net(typingctx, address):
    """Return the table at `address`; its owner keeps it alive."""

    def build(context, builder, sig, args):
        return builder.inttoptr(args[0], _WORD.as_pointer())

    return net_type(types.int64), build


@infer_getattr
class NetAttributes(AttributeTemplate):
    key = NetType

    def generic_resolve(self, typ, attr):
        return TABLES[attr][1] if attr in TABLES else None


@lower_getattr_generic(NetType)
def get_field(context, builder, typ, value, attr):
    k, array_type = TABLES[attr]

    def word(i):
        load = builder.load(builder.gep(value, [ir.Constant(_WORD, WORDS * k + i)]))
        load.set_metadata("invariant.load", builder.module.add_metadata([]))
        return load

    if isinstance(array_type, RecordType):
        return builder.inttoptr(word(0), context.get_value_type(array_type))
    array = make_array(array_type)(context, builder)
    item = ir.Constant(_WORD, 8)
    shape = [word(1)] if array_type.ndim == 1 else [word(1), word(2)]
    strides = [item] if array_type.ndim == 1 else [builder.mul(shape[1], item), item]
    data = builder.inttoptr(word(0), context.get_data_type(array_type.dtype).as_pointer())
    populate_array(
        array, data=data, shape=cgutils.pack_array(builder, shape), strides=cgutils.pack_array(builder, strides), itemsize=item, meminfo=None
    )
    return array._getvalue()


# ---------------------------------------------------------------- cells of tables
def _place(context, builder, table_type, table, index_type, index):
    """Return the address of one cell, or that of a row of a table with two dimensions."""
    kinds = index_type.types if isinstance(index_type, types.BaseTuple) else (index_type,)
    values = cgutils.unpack_tuple(builder, index, len(kinds)) if isinstance(index_type, types.BaseTuple) else [index]
    places = [context.cast(builder, value, kind, types.int64) for value, kind in zip(values, kinds, strict=True)]
    array = make_array(table_type)(context, builder, table)
    shape = cgutils.unpack_tuple(builder, array.shape, table_type.ndim)
    if config.BOUNDSCHECK:
        for axis, place in enumerate(places):
            cgutils.do_boundscheck(context, builder, place, shape[axis], axis)
    place, is_cell = places[0], len(places) == table_type.ndim
    size, wide = CELL_BYTES.get(table_type.table, 8), ir.Constant(_WORD, WIDE.get(table_type.table, 0))  # a wide column has room for two cells
    if table_type.ndim == 2:
        width = shape[1] if table_type.width is None else ir.Constant(_WORD, table_type.width)
        place = builder.mul(place, builder.add(width, wide, flags=["nsw"]), flags=["nsw"])
        if is_cell:
            place = builder.add(place, builder.add(places[1], wide, flags=["nsw"]), flags=["nsw"])
    data = array.data if size == 8 else builder.bitcast(array.data, ir.IntType(8 * size).as_pointer())
    place = builder.gep(data, [place], inbounds=True)
    return place if is_cell else builder.bitcast(place, array.data.type)


def _load_cell(builder, table, place):
    """Load a cell. A short one is widened, for it is a number like any other."""
    load = _of_table(builder, table, builder.load(place))
    load.align = CELL_BYTES.get(table, 8)
    return builder.sext(load, _WORD) if _is_short(place) else load


def _store_cell(builder, table, value, place):
    """Store a cell. A number fits into a short one: there are fewer than 2 ** 31 terms and rows."""
    store = _of_table(builder, table, builder.store(builder.trunc(value, place.type.pointee) if _is_short(place) else value, place))
    store.align = CELL_BYTES.get(table, 8)


def _is_short(place):
    return isinstance(place.type.pointee, ir.IntType) and place.type.pointee.width < _WORD.width


def _of_table(builder, table, access):
    """Tell LLVM to which table an access belongs, and that it has nothing to do with the others."""
    module = builder.module
    if not hasattr(module, "epsparql_tables"):
        domain = module.add_metadata([ir.MetaDataString(module, "epsparql tables")])
        scopes = {name: module.add_metadata([ir.MetaDataString(module, f"epsparql {name}"), domain]) for name in Net._fields}
        module.epsparql_tables = {
            name: (module.add_metadata([scope]), module.add_metadata([scopes[other] for other in Net._fields if other != name]))
            for name, scope in scopes.items()
        }
    scope, others = module.epsparql_tables[table]
    access.set_metadata("alias.scope", scope)
    access.set_metadata("noalias", others)
    return access


@lower_builtin(operator.getitem, TableType, types.Integer)
@lower_builtin(operator.getitem, TableType, types.BaseTuple)
def get_cell(context, builder, sig, args):
    """Load a cell, or give the record of a row."""
    place = _place(context, builder, sig.args[0], args[0], sig.args[1], args[1])
    return place if isinstance(sig.return_type, RecordType) else _load_cell(builder, sig.args[0].table, place)


@lower_builtin(operator.setitem, TableType, types.Integer, types.Any)
@lower_builtin(operator.setitem, TableType, types.BaseTuple, types.Any)
def set_cell(context, builder, sig, args):
    place = _place(context, builder, sig.args[0], args[0], sig.args[1], args[1])
    _store_cell(builder, sig.args[0].table, context.cast(builder, args[2], sig.args[2], sig.args[0].dtype), place)
    return context.get_dummy_value()


@intrinsic
def prefetch(typingctx, table, place):
    """Let the cache fetch a cell of a flat table or the begin of a row of another, while the caller goes on."""

    def build(context, builder, sig, args):
        build_prefetch(builder, _place(context, builder, sig.args[0], args[0], sig.args[1], args[1]))
        return context.get_dummy_value()

    return types.void(table, types.int64), build


# ---------------------------------------------------------------- fields of records
@infer_getattr
class RecordAttributes(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, record, field):
        return _kind_of(record.table) if field in RECORDS[record.table] else None


def _column(builder, table, record, field):
    column, size, wide = RECORDS[table][field], CELL_BYTES.get(table, 8), WIDE.get(table, 0)
    if size == 8 or column < wide:
        return builder.gep(record, [ir.Constant(_WORD, column)], inbounds=True)
    return builder.gep(builder.bitcast(record, ir.IntType(8 * size).as_pointer()), [ir.Constant(_WORD, column + wide)], inbounds=True)


@lower_getattr_generic(RecordType)
def get_column(context, builder, record_type, record, field):
    return _load_cell(builder, record_type.table, _column(builder, record_type.table, record, field))


@lower_setattr_generic(RecordType)
def set_column(context, builder, sig, args, field):
    table = sig.args[0].table
    _store_cell(builder, table, args[1], _column(builder, table, args[0], field))


@intrinsic
def table_at(typingctx, address, height, width):
    """Return the int64 table of this shape at an address; its owner keeps it alive, and nothing changes it while the kernel runs."""
    kind = types.Array(types.int64, 2, "C")

    def build(context, builder, sig, args):
        start, rows, columns = args
        array = make_array(kind)(context, builder)
        item = ir.Constant(_WORD, 8)
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


@intrinsic
def answer_compiled(typingctx, function, context, who, question):
    """Call the function at an address with a context, the question's number and the address of its arguments, which stand in its record."""

    def build(context, builder, sig, args):
        callee = builder.inttoptr(args[0], ir.FunctionType(_WORD, [_WORD] * 3).as_pointer())
        arguments = builder.gep(args[3], [ir.Constant(_WORD, ASK_ARG)], inbounds=True)
        return builder.call(callee, [args[1], args[2], builder.ptrtoint(arguments, _WORD)])

    return types.int64(types.int64, types.int64, types.int64, question), build

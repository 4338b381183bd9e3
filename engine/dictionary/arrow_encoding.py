"""Arrow keeps the values of many solutions small: each text once, in a dictionary, and lists of places in it.

Few solutions have their texts as they are. Joining and unpacking never hash a text: a dictionary may have one twice.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.messages import SOLUTIONS, TERM, TIED

_VALUES = SOLUTIONS.get_field_index("values")
_PACKED = {schema: schema.set(_VALUES, pa.field("values", pa.list_(TERM), nullable=False)) for schema in (SOLUTIONS, TIED)}


def schema_of(values: pa.ListArray, schema: pa.Schema = SOLUTIONS) -> pa.Schema:
    """Return SOLUTIONS or TIED as it is with such values."""
    return packed_schema(schema) if is_packed(values) else schema


def packed_schema(schema: pa.Schema) -> pa.Schema:
    """Return SOLUTIONS or TIED as it is with packed values."""
    return _PACKED[schema]


def is_packed(values: pa.ListArray) -> bool:
    found: bool = pa.types.is_dictionary(values.type.value_type)
    return found


def packed(values: pa.ListArray) -> pa.ListArray:
    """Return the same lists over a dictionary."""
    if is_packed(values):
        return values
    texts = values.flatten()
    places = pa.array(np.arange(len(texts), dtype=np.int32), mask=texts.is_null().to_numpy(zero_copy_only=False) if texts.null_count else None)
    return pa.ListArray.from_arrays(_from_zero(values), pa.DictionaryArray.from_arrays(places, texts.fill_null("") if texts.null_count else texts))


def unpacked(values: pa.ListArray) -> pa.ListArray:
    """Return the same lists of texts without a dictionary."""
    return pa.ListArray.from_arrays(_from_zero(values), values.flatten().dictionary_decode()) if is_packed(values) else values


def plain(solutions: pa.RecordBatch) -> pa.RecordBatch:
    """Return solutions with their texts as they are."""
    values = solutions.column(_VALUES)
    return solutions.set_column(_VALUES, SOLUTIONS.field(_VALUES), unpacked(values)) if is_packed(values) else solutions


def one_after_another(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Join the solutions of several batches, of which some may be packed, into SOLUTIONS or TIED as the first is.

    Their metadata are joined, too.
    """
    values = concat_lists([part.column(_VALUES) for part in parts])
    rest = [pa.concat_arrays([part.column(k) for part in parts]) for k in range(parts[0].num_columns) if k != _VALUES]
    schema = schema_of(values, SOLUTIONS if parts[0].num_columns == len(SOLUTIONS) else TIED)
    metadata = {key: value for part in parts for key, value in (part.schema.metadata or {}).items()}
    return pa.RecordBatch.from_arrays([*rest[:_VALUES], values, *rest[_VALUES:]], schema=schema.with_metadata(metadata) if metadata else schema)


def concat_lists(parts: Sequence[pa.ListArray]) -> pa.ListArray:
    """Join lists one after the other; the result is packed if one of them is."""
    if len(parts) == 1:
        return parts[0]
    if not any(is_packed(part) for part in parts):
        return pa.concat_arrays(parts)
    lists = [packed(part) for part in parts]
    texts = [part.flatten() for part in lists]
    begins = np.cumsum([0, *(len(part) for part in texts)])
    offsets = np.concatenate(
        [np.zeros(1, np.int32), *(_from_zero(part).to_numpy()[1:] + begin for part, begin in zip(lists, begins.tolist(), strict=False))]
    )
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), joined_terms(texts))


def joined_terms(parts: Sequence[pa.DictionaryArray]) -> pa.DictionaryArray:
    """Join several columns into one, over their dictionaries one after the other."""
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *(len(part.dictionary) for part in parts[:-1])], dtype=np.int32)
    indices = pa.concat_arrays([part.indices for part in parts])
    valid, numbers = indices.buffers()
    raised = np.frombuffer(numbers, np.int32, len(indices)) + np.repeat(begins, [len(part) for part in parts])
    moved = pa.Array.from_buffers(pa.int32(), len(indices), [valid, pa.py_buffer(raised)])
    return pa.DictionaryArray.from_arrays(moved, pa.concat_arrays([part.dictionary for part in parts]), safe=False)


def _from_zero(values: pa.ListArray) -> pa.Int32Array:
    """Return the offsets of lists that may be a part of others, counted from zero."""
    offsets = values.offsets
    first = offsets[0].as_py() if len(offsets) else 0
    return offsets if not first else pa.array(offsets.to_numpy() - np.int32(first))

"""This module cuts the dictionaries of rows to the terms that the rows have."""

import pyarrow as pa


def with_own_terms(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with only their own terms in the dictionaries: otherwise each block would carry all terms of
    the files.
    """
    columns = []
    for column in rows.columns:
        if isinstance(column, pa.DictionaryArray):
            own = column.indices.dictionary_encode()
            column = pa.DictionaryArray.from_arrays(own.indices, column.dictionary.take(own.dictionary))
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

"""This module reads frames of pandas and polars row by row, as triples or as documents for a mapping."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any

_TRIPLE = ("s", "p", "o")
_TIMES = (("at",), ("start", "end"))
_MISSING = ("NaTType", "NAType")  # what pandas has for a value that is not there, beside None and NaN


def is_frame(found: object) -> bool:
    """Return whether an object is a frame of pandas or polars, which is then loaded already."""
    return any(each.__name__ == "DataFrame" and each.__module__.partition(".")[0] in ("pandas", "polars") for each in type(found).__mro__)


def triples_of(frame: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a frame with the columns s, p, o, and at, or start and end.

    Raises: ValueError for other columns.
    """
    columns = {str(name) for name in frame.columns}
    times = next((each for each in _TIMES if columns == {*_TRIPLE, *each}), None)
    if times is None:
        raise ValueError(f"the frame has the columns {', '.join(map(str, frame.columns))}; expected s, p, o, and at, or start and end")
    return rows_of(frame, (*_TRIPLE, *times))


def rows_of(frame: Any, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of these columns, row by row, as Python has them."""
    chosen = frame[list(columns)]
    yield from chosen.iter_rows() if hasattr(chosen, "iter_rows") else chosen.itertuples(index=False, name=None)


def documents_of(frame: Any) -> Iterator[str]:
    """Yield each row as a JSON object without its missing values. Decimals are numbers with all their digits, times
    are ISO texts.

    Raises: TypeError for a value that JSON has no form for, with the row, from 1, and the column.
    """
    return documents_of_rows([str(name) for name in frame.columns], rows_of(frame, tuple(frame.columns)))


def documents_of_rows(names: Sequence[str], rows: Iterable[tuple[Any, ...]], first: int = 1) -> Iterator[str]:
    """Yield rows of these columns as `documents_of` does those of a frame; messages count rows from `first` on.

    Raises: TypeError.
    """
    heads = [f"{json.dumps(name)}:" for name in names]
    for number, row in enumerate(rows, first):
        members = []
        for name, head, value in zip(names, heads, row, strict=True):
            try:
                members += [] if _is_missing(value) else [head + _json_text(value)]
            except (TypeError, ValueError) as fault:
                raise TypeError(f"row {number}, column {name}: {fault}") from None
        yield f"{{{','.join(members)}}}"


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ in _MISSING


def _json_text(value: Any) -> str:
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, date | time):
        return json.dumps(value.isoformat())
    return json.dumps(value.item() if hasattr(value, "item") else value, allow_nan=False)

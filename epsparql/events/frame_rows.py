"""This module reads frames of pandas and polars row by row."""

from collections.abc import Iterator
from typing import Any

_TRIPLE = ("s", "p", "o")
_TIMES = (("at",), ("start", "end"))


def is_frame(found: object) -> bool:
    """Return whether an object is a frame of pandas or polars, which is then loaded already."""
    return any(each.__name__ == "DataFrame" and each.__module__.partition(".")[0] in ("pandas", "polars") for each in type(found).__mro__)


def triples_of(frame: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a frame with the columns s, p, o, and at, or start and end. Raises: ValueError for other columns."""
    columns = {str(name) for name in frame.columns}
    times = next((each for each in _TIMES if columns == {*_TRIPLE, *each}), None)
    if times is None:
        raise ValueError(f"the frame has the columns {', '.join(map(str, frame.columns))}; expected s, p, o, and at, or start and end")
    return rows_of(frame, (*_TRIPLE, *times))


def rows_of(frame: Any, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the values of these columns, row by row, as Python has them."""
    chosen = frame[list(columns)]
    yield from chosen.iter_rows() if hasattr(chosen, "iter_rows") else chosen.itertuples(index=False, name=None)

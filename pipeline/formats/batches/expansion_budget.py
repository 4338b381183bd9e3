"""This module bounds how far a body may expand: prefixes, contexts and entities make long terms of short names."""

from pipeline.errors import FormatError

ROW_BYTES = 32
"""Each row takes this many bytes, besides those of its terms."""
_MOST = (1 << 31) - 1  # the offsets of a column reach so far
_WRITTEN, _WRITTEN_FACTOR = 1 << 30, 64
"""So many bytes of terms are made, and so many more for each byte of the body, before equal ones are found to be one.

A gigabyte takes seconds.
"""


class ExpansionBudget:
    """Bounds the bytes of one body's terms and rows when they are written out, and those of intermediate terms.

    Any body is granted some bytes, and more for each of its own bytes.
    """

    def __init__(self, size: int, granted: int = 16 << 20, factor: int = 8) -> None:
        self.most = self.left = min(granted + factor * size, _MOST)
        self._unwritten = _WRITTEN + _WRITTEN_FACTOR * size

    def spend(self, size: int) -> None:
        """Spend so many bytes, before they are kept. Raises: FormatError where they are not left."""
        self.left -= size
        if self.left < 0:
            raise self.fault()

    def count_written(self, size: int) -> None:
        """Count the bytes of a term or statement that is made once more, whether it is kept or not.

        Raises: FormatError where it is too much work.
        """
        self._unwritten -= size
        if self._unwritten < 0:
            raise self.fault()

    def fault(self, line: int | None = None, column: int | None = None) -> FormatError:
        """Return the error for a body that expands too far."""
        reason = f"written out, the terms of the body take more than {self.most / 1e6:.0f} MB; shorten its prefixes or context, or send it in parts"
        return FormatError("expansion", reason, line, column)


def size_of(text: str) -> int:
    """Return the text's bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode())

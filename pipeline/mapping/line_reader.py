"""This module reads lines of text, such as those of logs, by a pattern whose named groups are the fields.

Arrow matches all lines at once by RE2, whose time is linear in the text, whatever the pattern is.
"""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import FormatError
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.mapping.columns import RowFault, Table, column_of_cells
from pipeline.mapping.mapping import Mapping

MOST_LINES = 10_000_000
_LINE_BYTES = 64


def read_lines(body: bytes, mapping: Mapping, budget: ExpansionBudget) -> Table:
    """Return the lines of a body; a group that is empty or does not take part is an absent value. Raises: FormatError
    where there is no pattern.

    Rows are counted as lines, so that a message names the line. Empty lines, those of `skip` and those that begin
    with `comment` are none.
    """
    dialect, fields = mapping.dialect, list(mapping.fields)
    if not dialect.pattern:
        raise FormatError(
            "mapping",
            "text is read by a pattern, and the mapping has none",
            expected='pattern, such as "combined"; or a body of text/csv or application/json',
        )
    count = body.count(b"\n") + 1
    if count > MOST_LINES:
        raise FormatError("mapping", f"the body has more than {MOST_LINES:,} lines; send it in parts")
    budget.spend(_LINE_BYTES * (len(fields) + 1) * count)
    texts = body.split(b"\n")
    comment = dialect.comment.encode()
    numbers = [number for number, text in enumerate(texts) if number >= dialect.skip and text.strip() and not (comment and text.startswith(comment))]
    kept, faults = _decode_lines(texts, numbers)
    found = pc.extract_regex(pa.array(list(kept.values()), pa.utf8()), pattern=dialect.pattern)
    matched = found.is_valid().to_numpy(zero_copy_only=False)
    own = np.fromiter(kept, np.int64, len(kept))
    faults += [RowFault(number, "", "the line does not match the pattern") for number in own[~matched].tolist()]
    rows = found.filter(pa.array(matched))
    columns = {field: column_of_cells(pc.struct_field(rows, field).cast(pa.binary())) for field in fields}
    return Table(len(rows), columns, own[matched], lambda wanted: _show_lines(texts, wanted), tuple(faults), has_header=True)


def _decode_lines(texts: Sequence[bytes], numbers: Sequence[int]) -> tuple[dict[int, str], list[RowFault]]:
    """Return the text of each line by its number, and the lines that are no UTF-8."""
    kept, faults = dict[int, str](), list[RowFault]()
    for number in numbers:
        try:
            kept[number] = texts[number].rstrip(b"\r").decode()
        except UnicodeDecodeError:
            faults.append(RowFault(number, "", "the line is no UTF-8; encoding names another one"))
    return kept, faults


def _show_lines(texts: Sequence[bytes], wanted: Sequence[int]) -> list[str]:
    return [re.sub(r"\r$", "", texts[number].decode(errors="backslashreplace")) for number in wanted]


__all__ = ["read_lines"]

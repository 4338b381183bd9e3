"""The partition of a text follows from its CRC-32, whose numbers are zlib's; compiled code finds that of each row of
a column.
"""

import numpy as np
from numpy.typing import NDArray

from engine.native import entries

MIX = 0x9E3779B1
"""The sum of bits that a CRC is would deal texts that differ in a digit or two unevenly, hence this multiplication."""
NO_PARTITION = -1


def mark_partitions(offsets: NDArray[np.int32], data: NDArray[np.uint8], indices: NDArray[np.int32], partitions: int) -> NDArray[np.int16]:
    """Return the partition of each row's text.

    `indices` names it among those between `offsets`; a row below 0 has none, and NO_PARTITION.
    """
    found = np.empty(len(indices), np.int16)
    entries.mark_partitions(offsets, data, indices, partitions, found)
    return found

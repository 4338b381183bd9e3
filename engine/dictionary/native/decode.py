"""Texts of numbers are written as Arrow has strings: offsets, and the bytes one after the other."""

from engine.dictionary.native import entry_point
from engine.dictionary.native.handle import length_of, text_at
from engine.dictionary.native.layout import NONE
from engine.dictionary.native.memory import address_of, copy


@entry_point
def measure(cells, numbers, offsets):
    """Fill the offsets of a flat array's texts, and return their bytes in all and how many numbers are 0.

    The offsets are good if the bytes fit into them.
    """
    size, unbound = 0, 0
    for k in range(len(numbers)):
        offsets[k] = size
        size += length_of(cells, numbers[k])
        unbound += numbers[k] == NONE
    offsets[len(numbers)] = size
    return size, unbound


@entry_point
def gather(cells, text, numbers, offsets, data):
    for k in range(len(numbers)):
        copy(address_of(data) + offsets[k], text_at(cells, text, numbers[k]), length_of(cells, numbers[k]))


@entry_point
def mark_bound(numbers, bits):
    """Set the bits, the least of a byte first, of the numbers that are not 0."""
    for k in range(len(numbers)):
        if numbers[k] != NONE:
            bits[k >> 3] |= 1 << (k & 7)

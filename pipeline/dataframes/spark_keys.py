"""This module makes keys by which Spark spreads groups evenly.

Spark deals groups out by a hash, which may send all of a few groups to one task while other tasks have none.
"""

_WORD = 1 << 32
_SEED, _BYTES = 42, 8
_FIRST, _SECOND, _ADDED = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_LAST_BUT_ONE, _LAST = 0x85EBCA6B, 0xC2B2AE35


def key_of(partition: int) -> int:
    """Return the number from 0 to 2^32 whose hash, as a long of Spark's, is `partition`.

    Partitions then go to tasks in turn, however many tasks there are. Source: MurmurHash3, x86, 32 bits, as
    `org.apache.spark.unsafe.hash.Murmur3_x86_32.hashLong` has it; each of its steps can be undone.
    """
    state = _unshifted(partition, 16)
    state = _unshifted(_divided(state, _LAST), 13)
    state = _unshifted(_divided(state, _LAST_BUT_ONE), 16) ^ _BYTES
    mixed = _before(_before(state)) ^ _SEED  # the long's upper half is 0, and mixes nothing in
    return _divided(_turned(_divided(mixed, _SECOND), 15), _FIRST)


def _before(state: int) -> int:
    """Return the hash state before the step that follows each half of the long, where the half is already mixed in."""
    return _turned(_divided(state - _ADDED, 5), 13)


def _divided(product: int, factor: int) -> int:
    """Return the word that, multiplied by the odd `factor`, gives the product."""
    return product * pow(factor, -1, _WORD) % _WORD


def _turned(word: int, bits: int) -> int:
    """Rotate a word to the right."""
    return (word >> bits | word << 32 - bits) % _WORD


def _unshifted(word: int, bits: int) -> int:
    """Undo an xor-shift: return the word that gives this one when its own upper bits, shifted down by `bits`, are
    added without carry.
    """
    return word ^ word >> bits ^ word >> 2 * bits

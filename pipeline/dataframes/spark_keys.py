"""Keys by which Spark spreads groups evenly: it deals them out by a hash, which may send all of a few to one task while the others have none."""

_WORD = 1 << 32
_SEED, _BYTES = 42, 8
_FIRST, _SECOND, _ADDED = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_LAST_BUT_ONE, _LAST = 0x85EBCA6B, 0xC2B2AE35


def key_of(bucket: int) -> int:
    """The number from 0 to 2^32 whose hash as a long of Spark's is `bucket`: so buckets go to tasks in turn, however many tasks there are.

    Source: MurmurHash3, x86, 32 bits, as `org.apache.spark.unsafe.hash.Murmur3_x86_32.hashLong` has it; each of its steps can be undone.
    """
    state = _unshifted(bucket, 16)
    state = _unshifted(_divided(state, _LAST), 13)
    state = _unshifted(_divided(state, _LAST_BUT_ONE), 16) ^ _BYTES
    mixed = _before(_before(state)) ^ _SEED  # the long's upper half is 0, and mixes nothing in
    return _divided(_turned(_divided(mixed, _SECOND), 15), _FIRST)


def _before(state: int) -> int:
    """The state before a half of the long, already mixed in, was followed by the step that follows each."""
    return _turned(_divided(state - _ADDED, 5), 13)


def _divided(product: int, factor: int) -> int:
    """Of words: what times the odd `factor` gives the product."""
    return product * pow(factor, -1, _WORD) % _WORD


def _turned(word: int, bits: int) -> int:
    """To the right."""
    return (word >> bits | word << 32 - bits) % _WORD


def _unshifted(word: int, bits: int) -> int:
    """What gives the word when its own upper bits, so far down, are added to it without carry."""
    return word ^ word >> bits ^ word >> 2 * bits

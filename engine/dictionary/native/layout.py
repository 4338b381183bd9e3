"""The columns of the term table's arrays have names."""

NONE = 0
"""NONE ends a chain: number 0 is no term."""

# cells, by number of term: PLACE has where its text begins in the arena, and above these bits the first ones of its hash. LINK has what follows it in its
# chain of equal hashes, or among the free numbers, and above that its length in bytes (0: the number is free)
PLACE, LINK, CELL_WIDTH = range(3)
PLACE_BITS, LINK_BITS = 40, 32
MOST_PLACES, MOST_NUMBERS = 1 << PLACE_BITS, 1 << LINK_BITS - 1

# at: numbers ever given out (0 is one), the first that is free again, terms, bytes of the arena, the hash's seed, whether literals' values are
# wanted, and how many of the literals in `hard` only the host can approximate
USED, FREE, LIVE, BYTES, SEED, VALUED, HARD, AT_WIDTH = range(8)

# arrays: the address and length of each, in a table that has their owner's
AT, CELLS, HEADS, TEXT, KINDS, VALUES, HARDS, SMALL, N_ARRAYS = range(9)

MOST_SMALL = 1 << 14
"""The canonical literals of xsd:integer from 0 up to this are found by their values: `small` has their numbers, or NONE."""

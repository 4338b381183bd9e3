"""The columns of the term table's arrays have names. Compiled code has the same ones (engine/native/headers.py)."""

NONE = 0
"""NONE ends a chain: number 0 is no term."""

# cells, by number of term: PLACE has where its text begins in the arena, and above these bits the first ones of its
# hash. LINK has what follows it in its chain of equal hashes, or among the free numbers, and above that its length in
# bytes (0: the number is free)
PLACE, LINK, CELL_WIDTH = range(3)
PLACE_BITS, LINK_BITS = 40, 32
MOST_PLACES, MOST_NUMBERS = 1 << PLACE_BITS, 1 << LINK_BITS - 1

# at: numbers ever given out (0 is one), the first that is free again, terms, bytes of the arena, the hash's seed, whether literals' values are
# wanted, and how many of the literals in `hard` only the host can approximate
USED, FREE, LIVE, BYTES, SEED, VALUED, HARD, AT_WIDTH = range(8)

N_ARRAYS = 8
"""So many arrays make a table: at, cells, heads, text, kinds, values, hard, small (`Terms` in
engine/native/source/dictionary/terms.c).
"""

MOST_SMALL = 1 << 14
"""The canonical literals of xsd:integer from 0 up to this are found by their values: `small` has their numbers, or
NONE.
"""
NAME_DIGITS, OLD_NAME_DIGITS = 32, 24
"""Names of nodes that are made of a digest have so many digits, those of templates at least so many as they once had."""
LONGEST_NUMERAL = 4000
"""The lexical form of an integer or decimal has at most so many bytes, as `engine.expressions.numeric.DIGITS` says."""

RECORDS = {
    "term": {"place": PLACE, "link": LINK},
    "term_counts": {"used": USED, "free": FREE, "live": LIVE, "bytes": BYTES, "seed": SEED, "valued": VALUED, "hard": HARD},
}
"""These tables' columns are fields in C."""

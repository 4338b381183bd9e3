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

# needles: the term whose text is sought, the value that it stands for, the next needle of the same text, or NO_NEEDLE, and the last search that has
# found it
N_TEXT, N_VALUE, N_NEXT, N_FOUND, NEEDLE_WIDTH = range(5)
NO_NEEDLE = -1
# edges of the trie of needles: the parent node and a byte, 0 for a free place; a node, or minus 1 minus the needle that alone goes on here
E_KEY, E_CHILD, EDGE_WIDTH = range(3)
# nodes of that trie: the first of the needles that end there, or NO_NEEDLE; a needle whose first bytes lead there, and how many bytes these are
B_ENDS, B_NEEDLE, B_DEPTH, BRANCH_WIDTH = range(4)
# search: the term table's address and where a text may have a needle; the addresses of needles, edges, nodes, of the memo and of
# what it names, with how many rows these have; how many needles, edges and nodes there are, how many searches there were, and how
# many values these have found
(
    S_TERMS, S_MODE, S_NEEDLES, S_EDGES, S_BRANCHES, S_MEMO, S_VALUES, S_NEEDLES_ROOM, S_EDGES_ROOM, S_BRANCHES_ROOM, S_MEMO_ROOM, S_VALUES_ROOM,
    S_NEEDLES_N, S_EDGES_N, S_BRANCHES_N, S_SEARCHES, S_FOUND, SEARCH_WIDTH,
) = range(18)  # fmt: skip
ANYWHERE, TEXT_START, TEXT_END = range(3)
# memo, by number of a text's term: the term, and the place and number of the values that it has; places count on, around the table of values
MEMO_TERM, MEMO_FIRST, MEMO_N, MEMO_WIDTH = range(4)

RECORDS = {
    "term": {"place": PLACE, "link": LINK},
    "term_counts": {"used": USED, "free": FREE, "live": LIVE, "bytes": BYTES, "seed": SEED, "valued": VALUED, "hard": HARD},
    "needle": {"text": N_TEXT, "value": N_VALUE, "next": N_NEXT, "found": N_FOUND},
    "edge": {"key": E_KEY, "child": E_CHILD},
    "branch": {"ends": B_ENDS, "needle": B_NEEDLE, "depth": B_DEPTH},
    "search": {"terms": S_TERMS, "mode": S_MODE, "needles": S_NEEDLES, "edges": S_EDGES, "branches": S_BRANCHES, "memo": S_MEMO, "values": S_VALUES}
    | {"needles_room": S_NEEDLES_ROOM, "edges_room": S_EDGES_ROOM, "branches_room": S_BRANCHES_ROOM}
    | {"memo_room": S_MEMO_ROOM, "values_room": S_VALUES_ROOM}
    | {"needles_n": S_NEEDLES_N, "edges_n": S_EDGES_N, "branches_n": S_BRANCHES_N, "searches": S_SEARCHES, "found": S_FOUND},
    "memo": {"term": MEMO_TERM, "first": MEMO_FIRST, "n": MEMO_N},
}
"""These tables' columns are fields in C."""

"""The tables with which batches of occurrences come in and batches of solutions go out have names for their columns."""

ARROW_WORDS = 10
"""A struct of Arrow's C data interface has so many words."""

# what `taken` gives, in rows of its table: the s, p, o and g, from the first on; start and end; which row each was; and where it came from
TERMS, FIRST_TERM, ROW, SINCE, HEIGHT = 4, 2, 8, 9, 10
WHOLE_SUBJECT = 4
"""The first row has this where all rows of the subject are side by side and on one interval; else 0."""

# rows: the first columns of what the kernel found
BEGIN, END, NODE, ENTRY = range(4)
# queries, in order of their names: the columns of a row that each wants stand from FIRST on, first that of the rank,
# then of the terms by which its solutions are sorted, in order of their variables, as many as are SHOWN. Then come
# these as they are shown; ALIKE: those tell the order, too. Where a query makes TRIPLES, their parts come instead: a
# column, -1 for what is never bound, or a constant
NAME, NAME_SIZE, REGISTERED, SHOWN, FIRST, ALIKE, TRIPLES, QUERY_WIDTH = range(8)
FIRST_CONSTANT = -2
"""The constants are FIRST_CONSTANT and below, in order."""

# forms: the query of each node; queries; the columns wanted; the text in which names stand; marks, one a query, which
# are 0 between calls; and the numbers of the constants in triples
PLACES, QUERIES, WANTED, NAMES, MARKS, CONSTANTS, N_FORMS = range(7)

MOST_BYTES = 2**31 - 1
"""Arrow's offsets say no more."""
MANY = 1 << 10
"""So many terms are shown over a dictionary, where that looks at no more than some cells for each."""

RECORDS = {
    "solution": {"begin": BEGIN, "end": END, "node": NODE, "entry": ENTRY},
    "query": {name: k for k, name in enumerate(["name", "name_size", "registered", "shown", "first", "alike", "triples"])},
}
"""These tables' columns are fields in C."""

"""The columns of the tables of runs have names; all are int64.

A group's open run stands in its row of `groups`, where N counts the elements.
"""

FOREVER = 1 << 61

# links, a row a group: the end of the run's last element; the runs before and after it by last elements; when WITHIN ends it, and its place in the
# heap; how many of the group's moments are yet to come; the stamp of its last report; then the values of PREV
LAST_END, OLDER_RUN, NEWER_RUN, DUE_AT, PLACE, COMING, REPORTED, PREVIOUS = range(8)

# clock: the ends of the list of runs; how many are in the heap; the parts of a link, FOREVER for none; whether CLOSED reports, and elements bind all
# keys; all deadlines before LIMIT have passed; whether a group has reported twice at an instant
OLDEST_RUN, NEWEST_RUN, HEAPED, GAP, WITHIN, CLOSING, CERTAIN, LIMIT, REPEATED, CLOCK_WIDTH = range(10)

# begun, of the instant that is being taken in: its first moment, NONE between instants, and how many groups it has brought elements to so far
FIRST_MOMENT, GAINED, BEGUN_WIDTH = range(3)

# code of WHILE, an operation and a place a row: a number, a term with its kind, or a verdict from a column of `row`; a set function, or its mean;
# then what takes one or two of these
NUMBER, IDENTITY, VERDICT, GROWN, MEAN, NOT = range(6)
AND, OR, SAME, ELSE, ADD, SUBTRACT, MULTIPLY, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, EQUAL, UNEQUAL = range(6, 19)
DEPTH = 64  # of what waits for its operator

# verdicts, kinds of terms and what error bounds are made of, as the kernel has them
FALSE, TRUE, FAILED, UNSURE = range(4)
LITERAL_KIND = 3
ULP, TINY, EXACT = 2.0**-52, 2.0**-1000, 2.0**53

# why `sweep_runs` returned, beside DONE and ROOM: the host has to say in `linked` whether the moment at hand continues a run
UNDECIDED = 2

RECORDS = {
    "links": {
        "last_end": LAST_END, "older_run": OLDER_RUN, "newer_run": NEWER_RUN, "due_at": DUE_AT, "place": PLACE, "coming": COMING,
        "reported": REPORTED,
    },
    "clock": {
        "oldest_run": OLDEST_RUN, "newest_run": NEWEST_RUN, "heaped": HEAPED, "gap": GAP, "within": WITHIN, "closing": CLOSING, "certain": CERTAIN,
        "limit": LIMIT, "repeated": REPEATED,
    },
    "begun": {"first_moment": FIRST_MOMENT, "gained": GAINED},
}  # fmt: skip

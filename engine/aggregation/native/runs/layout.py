"""The columns of the tables of runs have names; all are int64. A group's open run stands in its row of `groups`, where N counts the elements."""

FOREVER = 1 << 61

# links, a row a group: the end of the run's last element; the runs before and after it by last elements; when WITHIN ends it, and its place in the
# heap; how many of the group's moments are yet to come; the stamp of its last report; then the values of PREV
LAST_END, OLDER_RUN, NEWER_RUN, DUE_AT, PLACE, COMING, REPORTED, PREVIOUS = range(8)

# clock: the ends of the list of runs; how many are in the heap; the parts of a link, FOREVER for none; whether CLOSED reports, and elements bind all
# keys; all deadlines before LIMIT have passed; whether a group has reported twice at an instant
OLDEST_RUN, NEWEST_RUN, HEAPED, GAP, WITHIN, CLOSING, CERTAIN, LIMIT, REPEATED, CLOCK_WIDTH = range(10)

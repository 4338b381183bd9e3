"""The columns of the tables of groups have names; all are int64.

A value that is a float64 stands there as its bits, or as a number that sorts like it.
"""

NONE = -1

# what is held of each set function: its kind, and where its columns begin in `solutions` and in `groups`
OP, IN_SOLUTION, IN_GROUP, PROGRAM_WIDTH = range(4)
COUNT, SUM, MIN, MAX, FIRST_VALUE, LAST_VALUE, COUNT_TOTAL, SUM_TOTAL, DOUBLE_TOTAL = range(9)
# the totals take what many solutions have together; those of SUM differ in whether decimals or doubles are among the addends

# moments: what comes, in order
M_NOW, M_ENTRY, M_SIDE, M_START, M_END, MOMENT_WIDTH = range(6)
SOLUTION, DUE, WAKE = range(3)  # sides, as the kernel has them

# values: of each set function, what it takes of a solution; for MIN and MAX, VALUE and LOW are the two parts of the number that sorts
TERM, CLASS, VALUE, LOW, VALUE_WIDTH = range(5)
TOTAL_N, TOTAL_WIDE, TOTAL_LOW, TOTAL_HIGH = range(4)  # of a total instead: how many solutions, how many decimals or doubles, the sum in 128 bits
ERROR, INTEGER, DECIMAL, DOUBLE, NAN, RISE, FALL = range(7)  # classes of SUM; those of MIN and MAX are the order's

# solutions: what a window holds, with the one that leaves after it, and its neighbours among those that may yet have the least start
NEXT, START, END, GROUP, S_OLDER, S_NEWER, SOLUTION_WIDTH = range(7)
# then, for each set function, TERM, CLASS, VALUE, LOW, and from MIN on the neighbours among those that may yet be the answer
OLDER, NEWER, EXTREME_WIDTH = range(4, 7)

# groups: the next of the chain of its key's hash, how many solutions it has, the ends of its chains
CHAINED, N, OLDEST, NEWEST, S_FIRST, S_LAST, LEAST, STAMP, KEY = range(9)
# then the key, and for each set function: how many it counts
COUNTED = 0
# of SUM: how many of each class, the exact sum in units of its scale (HIGH * 2**32 + REST), and the row of `limbs`
# with that of doubles, once there is one
ERRORS, DECIMALS, DOUBLES, NANS, RISES, FALLS, HIGH, REST, LIMBS, SUM_WIDTH = range(10)
# of a total of SUM: how many solutions and decimals or doubles it has, and the sum in 192 bits
ADDED, ADDED_WIDE, SUM_LOW, SUM_MIDDLE, SUM_HIGH, TOTAL_WIDTH = range(6)
DOUBLE_SHIFT = 80  # a total with doubles is in units of 2**-80
# of MIN, MAX, FIRST_VALUE and LAST_VALUE, in a window: the ends of the chain of those that may yet be the answer;
# without, TERM, CLASS, VALUE, LOW of the answer
FIRST, LAST = range(2)

# limbs: the sum of doubles, limb k in units of 2**(32 * k - 1074), and the limbs in use
LIMB_COUNT = 70
LOWEST, HIGHEST, LIMBS_WIDTH = range(LIMB_COUNT, LIMB_COUNT + 3)
UNIT = 1074

# reports: entry, start, end, then the key, and for each set function what it gives
R_ENTRY, R_START, R_END, R_KEY = range(4)
CODE, RESULT, RESULT_HIGH, OF, RESULT_WIDTH = range(5)
A_TERM, AN_INTEGER, A_DECIMAL, A_DOUBLE = range(4)  # codes: RESULT is a term, a number in units of the scale (+ RESULT_HIGH * 2**62), or bits

# at: where it stands
(
    WINDOW, LENGTH, STEP, HORIZON, LATEST, STAMPED, FOUND, MOMENT, FREE_SOLUTION, SOLUTIONS_TOP, FREE_GROUP, GROUPS_TOP, LIVE, FREE_LIMBS,
    LIMBS_TOP, FIRST_OUT, LAST_IN, NEED, EXCESS, AT_WIDTH,
) = range(20)  # fmt: skip
EVER, ROWS, RANGE = range(3)

# why it returned
DONE, ROOM = range(2)

_VALUE = {"term": TERM, "kind": CLASS, "value": VALUE, "low": LOW}
RECORDS = {
    "program": {"op": OP, "in_solution": IN_SOLUTION, "in_group": IN_GROUP},
    "moment": {"now": M_NOW, "entry": M_ENTRY, "side": M_SIDE, "start": M_START, "end": M_END},
    "value": _VALUE,
    "extreme": _VALUE | {"older": OLDER, "newer": NEWER},
    "solution": {"next": NEXT, "start": START, "end": END, "group": GROUP, "start_older": S_OLDER, "start_newer": S_NEWER},
    "group": {
        "chained": CHAINED, "n": N, "oldest": OLDEST, "newest": NEWEST, "start_first": S_FIRST, "start_last": S_LAST, "least": LEAST, "stamp": STAMP,
    },
    "sum": {
        "errors": ERRORS, "decimals": DECIMALS, "doubles": DOUBLES, "nans": NANS, "rises": RISES, "falls": FALLS, "high": HIGH,
        "rest": REST, "limbs": LIMBS,
    },
    "total": {"n": TOTAL_N, "wide": TOTAL_WIDE, "low": TOTAL_LOW, "high": TOTAL_HIGH},
    "total_sum": {"n": ADDED, "wide": ADDED_WIDE, "low": SUM_LOW, "middle": SUM_MIDDLE, "high": SUM_HIGH},
    "chain": {"first": FIRST, "last": LAST},
    "report": {"entry": R_ENTRY, "start": R_START, "end": R_END},
    "result": {"code": CODE, "result": RESULT, "high": RESULT_HIGH, "of": OF},
    "at": {
        "window": WINDOW, "length": LENGTH, "step": STEP, "horizon": HORIZON, "latest": LATEST, "stamped": STAMPED, "found": FOUND, "moment": MOMENT,
        "free_solution": FREE_SOLUTION, "solutions_top": SOLUTIONS_TOP, "free_group": FREE_GROUP, "groups_top": GROUPS_TOP, "live": LIVE,
        "free_limbs": FREE_LIMBS, "limbs_top": LIMBS_TOP, "first_out": FIRST_OUT, "last_in": LAST_IN, "need": NEED, "excess": EXCESS,
    },
}  # fmt: skip
"""The fields by which compiled code names the columns, which all tables of a kind have (engine/native/headers.py)."""

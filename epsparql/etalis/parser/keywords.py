"""This module has the words of the ETALIS Language for Events: operators with their precedences (a higher number
binds more weakly), units, output.
"""

MOST_OPERATORS = 200
"""One pattern or condition has at most so many operators in a row."""
CONDITIONS = ("where", "check", "timestamp", "event_multiply")
AMOUNTS = ("within", "ntimes")
EVENTS = {
    "seq": 1025, "*": 1025, "forall_seq": 1025, "equals": 1025, "meets": 1025, "during": 1025, "starts": 1025, "finishes": 1025, "ntimes": 1025,
    "cnot": 1031, "fnot": 1031, "and": 1040, "/\\": 1040, "par": 1045, "#": 1045, "check": 1050, "timestamp": 1050, "event_multiply": 1050,
    "or": 1053, "\\/": 1053, "within": 1055, "where": 1060,
}  # fmt: skip
"""Operators between events associate to the left."""
SYNONYMS = {"*": "seq", "/\\": "and", "#": "par", "\\/": "or"}
COMPARISONS = ("<", ">", "=<", ">=", "=:=", "=\\=", "=", "\\=", "==", "\\==", "=..", "is")
GOALS = {
    "->": (1050, 1049, 1050), ";": (1100, 1099, 1100), ",": (1000, 999, 1000), **dict.fromkeys(COMPARISONS, (700, 699, 699)),
    "+": (500, 500, 499), "-": (500, 500, 499), "*": (400, 400, 399), "/": (400, 400, 399), "//": (400, 400, 399), "mod": (400, 400, 399),
    "rem": (400, 400, 399), "**": (200, 199, 199), "^": (200, 199, 200),
}  # fmt: skip
"""Operators in arguments and conditions: precedence, and the greatest precedence of the left and of the right operand."""
CONNECTIVES = ("->", ";", ",")
"""These join goals; they stand in arguments only inside parentheses."""
EVENT_WORDS = frozenset(word for word in EVENTS if word.replace("_", "").isalpha()) | {"star_times"}
GOAL_NAMES = frozenset({"check", "starts", "meets"})
"""These operators between events may be names of goals, too."""
OUTPUT = frozenset({"write", "nl", "print", "writeln", "format", "tab"})
"""These goals write text; they are ignored with a warning."""
UNITS = {
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1_000_000), "ms": 1_000, **dict.fromkeys(("min", "mins", "minute",
    "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000), **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
}  # fmt: skip
"""Microseconds of each unit."""

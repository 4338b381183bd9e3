"""Named columns and codes: every index into a table of the kernel is one of these.

The kernel in C has them too (engine/native/headers.py): numbers as constants, and columns as fields of a record.
Q_MADE_AT of `queries` is `made_at`.
"""

from keyword import iskeyword

NONE = -1
UNBOUND = 0  # term id 0
BIG = 1 << 62  # a timeless solution is [BIG, -BIG]: the neutral element of min and max
MIX, SALT = -7046029254386353131, -4417276706812531889  # of hashes
FOREVER = 1 << 61  # a span or life without bound; also the watermark of a finished stream
NEVER = -1  # the life of a side that is not stored

# rows: one solution, stored (a goal) or on its way. Cells of the columns up to HASH have 8 bytes, and those from OLDER on 4
START, END, HASH, OLDER, NEWER, QUEUE, VAR = range(7)
LEAST_WIDTH = 4  # variables that each row has room for
MOST_ROWS = 1 << 31

# stores: the goals of one side of a node, oldest first, and the timeless ones; how many rows the side has TAKEN in. In the store of its left side,
# also how many rows a node has GIVEN, and how many its filter has REFUSED; that of its right side has those REFUSED for which the filter was an error
# STAR_HEAD: the newest row of the open star at the side; STAR_NEXT: the next store that has some
HEAD, TAIL, COUNT, TIMELESS_HEAD, TAKEN, GIVEN, REFUSED, STAR_HEAD, STAR_NEXT, STORE_WIDTH = range(10)

# nodes
(
    KIND, RELATION, SPAN, KEY_AT, KEY_N, REST_AT, REST_N, FILTER, LIFE_LEFT, LIFE_RIGHT, LIFE_BLOCKER, TIMELESS, STRATUM, EDGE_AT, EDGE_N,
    KEY2_AT, KEY2_N, REST2_AT, REST2_N, BY_RIGHT, HIDE_AT, HIDE_N, TEMPLATE_AT, TEMPLATE_N, CONDITION, QUERY, ASK, COLUMN,
    MARK_AT, MARK_N, MOVE_AT, MOVE_N, KEEP, ONCE_ONLY, TIMER, LOOK, LOOK_AT, LOOK_N, LOOK_VIA, GATE, SUBJECT, SOURCE, LOCAL, STAR, NODE_WIDTH,
) = range(45)  # fmt: skip
# LOOK: the table of `lookups` that holds what the right side of a JOIN, or a FIND, matches of the background, or NONE; the slots of the columns that
# it fills. LOOK_VIA: the node that joins pass before a JOIN's own filter, or NONE; of a node that decides on absence the first of its FINDs, or NONE
# GATE: the SEQ on whose right side a JOIN stands, without whose left goals it keeps nothing (docs/decisions/0054-suppressing-joins.md), or NONE
# SUBJECT: of a node that decides on absence, the column of the node that all of what is absent describes, or 0; SOURCE: the stream that has all of
# what is absent, and a triple that binds this column, or NONE; LOCAL: whether all subjects of this stream are
# local for the query (docs/decisions/0132-local-nodes.md)
# STAR: whether both sides describe this node alone; a JOIN with a star has SUBJECT, SOURCE and LOCAL, too
(
    JOIN, OUT, PASS, EXTEND, OPTIONAL, OPTIONALSEQ, EQUALSOPTIONAL, MINUS, EXISTS, NOTEXISTS, WITHOUT, WITHOUTFOR, DROPPED,
    MOVE, FIRST, MARK, COLLECT, RECENT, CHRONOLOGICAL, FIND, EARLIEST, LATEST, ONCE, INSTANCES,
) = range(24)  # fmt: skip
# FIND: a triple pattern that a node which decides on absence looks up for what it decides; it goes on to the next one, or to EMIT of that node
MOST_FINDS = 8  # of one node
# INSTANCES: joins solutions with the rows of LOOK, a table of instances. COLUMN: the variable that a condition compares with the parameter by which
# the chains of that table are ordered, or 0; BY_RIGHT: whether greater values pass more rows; SEARCHED: the variable whose text has the rows' values
SEARCHED = KEEP
# EARLIEST, LATEST: of rows that differ in their ends alone, or in their starts alone, it hands on the one that ends first, or starts last
# of a COLLECT that is deferred: its length, its step (0 for none, NONE where its collector says when it is due), and that it is
WINDOW, STEP, DEFERRED = LIFE_LEFT, LIFE_RIGHT, ONCE_ONLY
AWAITING = KEEP  # of a ONCE: how many rows wait for the end of their entry; below zero, how many of them are yet to be gathered
# of a WITHOUT: how it finds the goals that blockers have passed, and how many goals its last sweep has spared (docs/decisions/0133-passed-goals.md)
PASSING, SPARED = KEEP, COLUMN
NOT_PASSING, PASSING_BY_KEY, PASSING_BY_SWEEP = range(3)
CHOICE = KEEP  # of a RECENT: which goal of several with one end is the latest; by COLUMN, the one whose term there is the greatest
SHORTEST, LONGEST, GREATEST = range(3)
APART = ONCE_ONLY  # of an OUT: no two of its solutions are equal, so duplicates need not be looked for
ANY, SEQ, EQUALS, MEETS, DURING, STARTS, FINISHES, OVERLAPS, PAR = range(9)

TIMED_ONLY, TIMELESS_ONLY = -2, -3  # in FILTER: what it lets pass, whatever is bound

# tasks: what a node is to do with a row. First: take it in on a side (edges name these tasks too), emit it, copy it for all readers
LEFT, RIGHT, BLOCKER, EMIT, FAN = range(5)
SIDES = 3  # stores of a node
# then: go on at the frame's goal with a row that came from a side, which is the frame's own or a stored one
GO_ON_LEFT, GO_ON_RIGHT, GO_ON_STORED_LEFT, GO_ON_STORED_RIGHT = range(5, 9)
# then: decide on a row that has waited for the close of the instant, by the side that it came from; or, of a policy's node, do what its phases are
# there for, in this order. YOUNGEST is the host's answer to ORDER
DECIDE_LEFT, DECIDE_RIGHT, DECIDE_BLOCKER, ORDER, LEFT_CHOICE, SERVE, RIGHT_CHOICE, SETTLE, SETTLE_RIGHT, YOUNGEST, TASKS_OF_CLOSE = range(9, 20)
LOOK_ON, LOOK_ON_STORED = 32, 33  # at a triple of the background: the frame's goal is its place in the table, or NONE for the first
FIND_ON = 34  # at triples of the background: the frame's goal is the row joined with them, or NONE for the first
# links: what a policy needs of a goal besides the row's own: its predecessor in the queue, the oldest goal of the key (of the youngest), an instant
BEFORE, OLDEST, MARKED, LINK_WIDTH = range(4)

# frames: work on the stack, waiting for the close of the instant, or parked for the host; the goal at which a task goes on
FRAME_NODE, FRAME_TASK, FRAME_ROW, FRAME_GOAL, FRAME_WIDTH = range(5)
FRAME_SIDE = FRAME_TASK  # the side, where a frame's task is to take in a row on one
MOST_FEW = 16  # solutions of an instant that are compared one by one
CHUNK = 128  # results of one step at most; what goes on after it finds its place in a frame
# deferred: a frame with its instant and entry
D_NOW, D_ENTRY, DEFERRED_WIDTH = range(FRAME_GOAL, FRAME_GOAL + 3)
# edges: the node that reads another one's output, and its task
READER_NODE, READER_TASK, READER_WIDTH = range(3)
# reports: what deferred nodes give
G_NODE, G_ENTRY, G_START, G_END, G_VAR = range(5)

# alpha: which triples a scan reads: S, O a term or NONE; columns of the row or NONE. Scans of one predicate and object are a want
# MOMENT: the column of the last change of instances before the occurrence's entry, or NONE
A_STREAM, A_S, A_O, A_SVAR, A_PVAR, A_OVAR, A_QUERY, A_NODE, A_SIDE, A_GRAPH, A_GVAR, A_MOMENT, ALPHA_WIDTH = range(13)
A_PLAIN = ALPHA_WIDTH  # of a placed scan: any triple of its stream and predicate will do, and its terms go to columns of their own
# alpha_at: for each predicate, which rows of alpha are its scans of any object, how many occurrences there were of it, the list of what these are
# taken as (0 for none), and how many objects have lists
ALPHA_FIRST, ALPHA_N, ALPHA_SEEN, ALPHA_LIST, ALPHA_KEYED, ALPHA_AT_WIDTH = range(6)
# wants: which rows of alpha are its scans
WANT_FIRST, WANT_N, WANT_WIDTH = range(3)
# posted: a hash table from predicate (0 for any; NONE: the place is free) and object to a list; lists: which postings
# are its own; postings: a want and the triple that it is given: the occurrence's own terms (NONE), its subject as
# object or object as subject (OTHER_END), or another term; whether its object must be a resource for that, and what
# its subject must be, or NONE
POSTED_P, POSTED_O, POSTED_LIST, POSTED_WIDTH = range(4)
LIST_FIRST, LIST_N, LIST_WIDTH = range(3)
P_WANT, P_RESOURCE, P_AS_S, P_AS_P, P_AS_O, P_OF, POSTING_WIDTH = range(7)
OTHER_END = -2
NAMED = -2  # in A_GRAPH: any graph that has a name; NONE is any or none, UNBOUND those in no graph

# moves: what a MOVE node does with columns, one after the other: source and target column; -term as source, or as what the source must be
M_SOURCE, M_TARGET, MOVE_WIDTH = range(3)

ANY_SUBJECT = KEEP  # of an OUT: its triples may have literals as subjects
OUTWARD = BY_RIGHT  # of an OUT: its query does not read the triples that it writes
# templates: a CONSTRUCT triple; a term where >= 0, else -column of the row; and the stream it goes to
T_S, T_P, T_O, T_STREAM, TEMPLATE_WIDTH = range(5)

# queries: where a query stands; facts are timeless rows that it takes in at its next instant; what it has derived at INSTANT; its stored GOALS,
# and their LIMIT; how much it has MADE at MADE_AT
Q_OPEN, Q_FROM, Q_AFTER, Q_FACTS_AT, Q_FACTS_N, Q_BOUND, Q_INSTANT, Q_DERIVED, Q_T0, Q_GOALS, Q_LIMIT, Q_MADE, Q_MADE_AT, QUERY_WIDTH = range(14)
# reads: which query reads which stream, chained by stream
R_QUERY, R_NEXT, READ_WIDTH = range(3)
# streams: how many readers have facts to take in, the first of the stream's reads, and whether no
# later entry describes the nodes of a message
S_PENDING, S_READS, S_LOCAL, STREAM_WIDTH = range(4)
MOST_STREAMS = 1 << 24  # of a network
# facts: a timeless row for a side of a node, cell by cell; one that is no triple of the background comes only when the query opens
F_NODE, F_SIDE, F_TRIPLE, F_VAR = range(4)
# lookups: tables of the background's triples, chained by hash of the node's key: the address of the chains' newest
# rows and how many chains there are, a power of two; the address of the rows, how many there is room for and how many
# count, and of how many columns: the next older row, the key's terms, and then those of the node's other columns
L_HEADS, L_BUCKETS, L_CELLS, L_ROOM, L_N, L_WIDTH, L_SEARCH, LOOKUP_WIDTH = range(8)
L_OLDER, L_KEY = range(2)
L_NEWEST = 0  # the one column of the heads
# of a table of instances: behind the terms the bound that ORDER compares, a float64. L_SEARCH: the address of the search by text
# (engine/native/source/needle_trie.h), or 0; the value that the text has stands behind the node's key, and is hashed with it
# moments: the entries that changed instances, in order, each with its offset as a term; the first is before all entries
M_ENTRY, M_TERM, MOMENT_WIDTH = range(3)
# timers: nodes that act at instants of their own; when each is due, the last solution of one that is deferred, its place in the heap; and the heap
T_NODE, T_DUE, T_LATEST, T_PLACE, T_HEAP, TIMER_WIDTH = range(6)
AT_END = FOREVER - 1  # due when finished streams have ended and no other timer is left

# feed (column-wise): what the kernel is to take in, in order
IN_KIND, IN_STREAM, IN_S, IN_P, IN_O, IN_G, IN_START, IN_END, IN_ENTRY, IN_SINCE, FEED_HEIGHT = range(11)
# LAST: the last instant of the streams, which have finished; WHOLE: an occurrence whose subject has all that its entry says of it in columns side by
# side, on one interval
OCCURRENCE, TICK, OPENING, LAST, WHOLE = range(5)

# out
OUT_START, OUT_END, OUT_NODE, OUT_ENTRY, OUT_VAR = range(5)

# seen: what this instant has met, and of reports of deferred nodes, the instants of these have; SEEN_REPORT is theirs, -BIG of all else
SEEN_NEXT, SEEN_HASH, SEEN_TAG, SEEN_START, SEEN_REPORT, SEEN_VAR = range(6)
RIGHT_TAG = 1 << 32  # sets right goals apart from left ones, in the tags of what an instant has met at a node with a policy

# questions: what the host is asked, and its answers
ASK_NEXT, ASK_HASH, ASK_WHO, ASK_ANSWER, ASK_ARG = range(5)
OPEN_QUESTION = -1
# asks: the slots of a question's arguments
ASK_SLOT, ASK_SLOTS, ASK_WIDTH = range(3)

# at: where the run stands
(
    NOW, USED, FREE, DEPTH, FOUND, EVENT, EVENTS, ENTRY, SEEN_FIRST, SEEN_N, SEEN_MOST, PARKED, WAITING, ASKED, ANSWERED, ENDLESS, MARGIN,
    CREDIT, FED_ALONE, TIMER_NODES, MEMO_LIMIT, LATE, GATHERED, HORIZON, TRUE_TERM, FALSE_TERM, TIMELESS_GOALS,
    DEFERRED_N, REPORTED, REPORTS, STOOD, TIMERS_DUE, SWEPT, FEW_FROM, LATEST_FROM, MOST_MADE, MOST_EACH, MOST_NOW, SPENT, CHOICES, FOREIGN,
    STARS, STAR_SUBJECT, STAR_STREAM, STAR_NAMED, STAR_WAITING, STAR_STORE, AT_WIDTH,
) = range(48)  # fmt: skip
# USED: rows ever taken, those above are untouched; FREE: rows of them that were given back. MARGIN: what one step adds to a pool at most.
# CREDIT: steps that are sure to fit. SEEN_MOST: what an instant has met at most. ENDLESS: a query that is beyond a bound of its own. SWEPT: the
# store that was swept last. FEW_FROM: this instant's rows of `out` from here on are not in `seen`; NONE: all are. LATEST_FROM: the greatest Q_FROM
# that there has been. MOST_MADE: what a query may make at one instant, MOST_EACH: more for each occurrence that comes at it, MOST_NOW: both for this
# instant. SPENT: what a step has looked at and been answered, in parts of what is made, until it is counted. CHOICES: whether rows may wait for the
# end of their entry. FOREIGN: whether an occurrence may be taken as a triple with another subject.
# STARS: whether any node has a star. STAR_SUBJECT, STAR_STREAM: those of the open star, or UNBOUND; STAR_NAMED: whether the
# subject's name tells that it is local; STAR_WAITING: how many rows waited before; STAR_STORE: a store that has rows of it, or NONE

# what is counted as made: a goal or a solution is one; joins that go on elsewhere, rows looked at, and answers of the host are this many LOOKS
LOOKS = 128  # at rows of a key, in the time of one made
JOIN_COST, ANSWER_COST = 8, 16 * LOOKS
MOST_OPEN = 1 << 13  # questions that wait for the host before it answers them, so that a query that asks too much is found out

# nests: where the search of an EXISTS inside an EXISTS stands, a level a row; levels are bounded by the brackets of a query's text
N_NODE, N_ROW, N_UNTIL, N_HASH, N_GOAL, N_TIMELESS, N_MARK, N_PENDING, N_JOINED, N_UNMARKED, NEST_WIDTH = range(11)
TIMED, TIMELESS_TOO, LOOKED_UP = range(3)  # in N_TIMELESS: of which kind N_GOAL is; what is looked up is a row joined with it
NEST_LEVELS = 128

# why the kernel returned
DONE, GROW, HOST, EXCEEDED, COLLECTION, DECISION = range(6)
ONWARD = -1  # it does not

# verdicts
FALSE, TRUE, ERROR, UNSURE, PENDING = range(5)
# bytecode: STOP and NOT, what pushes, and from LT on what takes two
(
    STOP, NOT, PUSH_VAR, PUSH_CONST, PUSH_DURATION, PUSH_TERM, PUSH_KNOWN, BOUND_VAR, ASK_HOST,
    LT, LE, GT, GE, EQ, NE, ADD, SUB, MUL, AND, OR, SAME, IDENTICAL, ELSE, OPERATIONS,
) = range(24)  # fmt: skip
CODE_OP, CODE_ARGUMENT, CODE_WIDTH = range(3)
ULP = 2.0**-52  # twice the unit roundoff, which covers the rounding of error bounds themselves
TINY = 2.0**-1000  # covers underflow
EXACT = 2.0**53  # integers below are exact
# numbers that filters compute with: a value and its error bound
NUMBER_VALUE, NUMBER_SLACK, NUMBER_WIDTH = range(3)
WITH_VAR, WITH_CONST = OPERATIONS, 2 * OPERATIONS  # added to what compares or calculates: its right operand is the number of a variable or constant
# what the host keeps of a term beside its text: only the length in bytes is the kernel's concern, the cell TERM_LINK above so many bits
TERM_LINK, TERM_WIDTH = 1, 2
TERM_LINK_BITS = 32
LONG = 1 << 10  # bytes of a derived triple that count as another
# kinds of terms; a STRING is a literal without language and of no other datatype. Nodes that one message alone describes have kinds of their own:
# blank nodes of a message or a template, and the IRIs of ETALIS's events
IRI_KIND, BLANK_KIND, LITERAL_KIND, STRING_KIND = 1, 2, 3, 4
EVENT_KIND, MESSAGE_BLANK_KIND = -IRI_KIND, -BLANK_KIND


def _columns(first: str, after: str, prefix: str = "") -> dict[str, int]:
    """Return the columns from `first` up to `after`, as they stand above, by the names of fields: without the prefix,
    in small letters.
    """
    names = list(globals())
    columns = {name.removeprefix(prefix).lower(): globals()[name] for name in names[names.index(first) : names.index(after)]}
    return {f"{field}_" if iskeyword(field) else field: column for field, column in columns.items()}


RECORDS = {
    "rows": _columns("START", "VAR"),
    "stores": _columns("HEAD", "STORE_WIDTH"),
    "nodes": _columns("KIND", "NODE_WIDTH")
    | {"window": WINDOW, "step": STEP, "deferred": DEFERRED, "apart": APART, "awaiting": AWAITING, "any_subject": ANY_SUBJECT, "outward": OUTWARD}
    | {"passing": PASSING, "spared": SPARED, "choice": CHOICE, "searched": SEARCHED},
    "edges": _columns("READER_NODE", "READER_WIDTH", "READER_"),
    "links": _columns("BEFORE", "LINK_WIDTH"),
    "frame": _columns("FRAME_NODE", "FRAME_WIDTH", "FRAME_"),
    "deferred": _columns("FRAME_NODE", "FRAME_GOAL", "FRAME_") | _columns("D_NOW", "DEFERRED_WIDTH", "D_"),
    "reports": _columns("G_NODE", "G_VAR", "G_"),
    "alpha_at": _columns("ALPHA_FIRST", "ALPHA_AT_WIDTH", "ALPHA_"),
    "posted": _columns("POSTED_P", "POSTED_WIDTH", "POSTED_"),
    "alpha": _columns("A_STREAM", "ALPHA_WIDTH", "A_") | {"plain": A_PLAIN},
    "wants": _columns("WANT_FIRST", "WANT_WIDTH", "WANT_"),
    "lists": _columns("LIST_FIRST", "LIST_WIDTH", "LIST_"),
    "postings": _columns("P_WANT", "POSTING_WIDTH", "P_"),
    "moves": _columns("M_SOURCE", "MOVE_WIDTH", "M_"),
    "templates": _columns("T_S", "TEMPLATE_WIDTH", "T_"),
    "queries": _columns("Q_OPEN", "QUERY_WIDTH", "Q_"),
    "reads": _columns("R_QUERY", "READ_WIDTH", "R_"),
    "streams": _columns("S_PENDING", "STREAM_WIDTH", "S_"),
    "facts": _columns("F_NODE", "F_VAR", "F_"),
    "lookups": _columns("L_HEADS", "LOOKUP_WIDTH", "L_"),
    "moments": _columns("M_ENTRY", "MOMENT_WIDTH", "M_"),
    "timers": _columns("T_NODE", "TIMER_WIDTH", "T_"),
    "out": _columns("OUT_START", "OUT_VAR", "OUT_"),
    "seen": _columns("SEEN_NEXT", "SEEN_VAR", "SEEN_"),
    "questions": _columns("ASK_NEXT", "ASK_ARG", "ASK_"),
    "asks": _columns("ASK_SLOT", "ASK_WIDTH", "ASK_"),
    "nests": _columns("N_NODE", "NEST_WIDTH", "N_"),
    "terms": {"link": TERM_LINK},
    "code": _columns("CODE_OP", "CODE_WIDTH", "CODE_"),
    "at": _columns("NOW", "AT_WIDTH"),
}
"""The fields of a row of each table that has named columns, with the column of each; `at` is one row, and several
tables have rows that are a frame.
"""

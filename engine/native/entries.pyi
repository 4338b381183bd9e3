"""The functions of the compiled code. Arrays are contiguous; those that are written are said to be filled or changed."""

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | bytearray | memoryview | NDArray[np.uint8] | NDArray[np.int8]
Shorts = NDArray[np.int16]
Ints32 = NDArray[np.int32]
Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]
Table = Ints | Doubles | NDArray[np.int8]

def has_avx2() -> int:
    """Return whether this processor runs the build `avx2`."""

# ---------------------------------------------------------------- checksums of partitions
def mark_partitions(offsets: Ints32, data: Bytes, indices: Ints32, partitions: int, found: Shorts, /) -> None:
    """Fill `found` with the partition of each row's text, which `indices` names among those between `offsets`; a row below 0 has NO_PARTITION."""

def join_crcs(first: int, second: int, length: int, /) -> int:
    """Return the CRC-32 of bytes followed by `length` others, from the CRCs of both."""

# ---------------------------------------------------------------- the heap of occurrences that wait for their time
def add_to_heap(rows: Ints, n: int, columns: Ints, end: int, number: int, came: int, /) -> None:
    """Take in the columns of a feed, the first as number `came`, beside the n rows that are there; `rows` has room."""

def count_due(rows: Ints, n: int, time: int, end: int, /) -> int:
    """Return how many of n rows end at `time` or before."""

def take_from_heap(rows: Ints, n: int, columns: Ints, end: int, number: int, /) -> None:
    """Fill the columns of a feed with the first of n rows, in order; these rows leave."""

# ---------------------------------------------------------------- numbers of terms by slice
def renumber_slices(indices: Ints32, order: Ints, bounds: Ints, size: int, numbers: Ints32, used: Ints32, begins: Ints, /) -> None:
    """Number the terms of the rows in `order` anew in each slice between `bounds`. `indices` are below `size`; those below 0 are no terms.

    Fill the rows' `numbers` (0 for no term), the terms that these number, slice after slice (`used`), and where those of each slice begin.
    """

# ---------------------------------------------------------------- sets of rows
def spread_rows(table: Ints, slots: Ints32, n: int, seed: int, /) -> None:
    """Fill `slots`, a power of two and more than n, with the first n rows of a table (columns x room), which are distinct."""

def unite_rows(table: Ints, slots: Ints32, n: int, seed: int, more: Ints, /) -> int:
    """Put those of more rows that are not among the first n behind these, each once, and into `slots`. Return how many there are then."""

# ---------------------------------------------------------------- bodies and solutions (formats.c)
def events_of(
    text: Bytes, seed: int, frame: bool, rounds: bool, start: int, end: int, columns: Ints32, starts: Ints, ends: Ints, spans: Ints, flags: Bytes, /
) -> tuple[int, int, int, int]:
    """Read events of ndjson, a line each. `frame` says that lines may have an id, `rounds` that times are rounded to microseconds; an event
    without time has the default `start` and `end`.

    Fill `columns` with term numbers (a row a place), `starts`, `ends`, `spans` and `flags` of the terms. Return the number of events,
    or OTHERWISE, and
    the number of terms, and where in the text the first line's id begins and ends, both -1 if there is none.
    """

def clauses_of(
    text: Bytes,
    seed: int,
    now: int,
    is_file: bool,
    names: Ints32,
    firsts: Ints32,
    arguments: Ints32,
    starts: Ints,
    ends: Ints,
    spans: Ints,
    flags: Bytes,
    /,
) -> tuple[int, int, int]:
    """Read clauses of a stream of ETALIS's events. `now` (µs) is the time before the first one, `is_file` says that a file has them.

    Fill the events' `names`, `starts` and `ends`, where their `arguments` begin (`firsts`), and `spans` and `flags` of the terms. Return
    the number of events, or OTHERWISE, and the numbers of arguments and terms.
    """

def rows_of_events(
    text: Bytes, nodes: int, spans: Ints, count: int, names: Ints32, firsts: Ints32, arguments: Ints32, starts: Ints, ends: Ints,
    predicates: int, openssl: Ints, columns: Ints32, row_starts: Ints, row_ends: Ints, /,
) -> int:  # fmt: skip
    """Name the events by digests, and write their rows to `columns` (a row a place), `row_starts` and `row_ends`.

    `text` has room for the nodes from `nodes` on, and `spans` behind its `count` terms. `predicates` is the number of the type's
    predicate, before those of arguments. `openssl` has the addresses of three functions, or nothing. Return the number of terms.
    """

def cells_of(text: Bytes, places: int, seed: int, cells: Ints32, spans: Ints, flags: Bytes, /) -> tuple[int, int]:
    """Read statements of N-Quads of up to `places` (3 or 4) terms as rows of term numbers, -1 for no graph. Fill `cells`, `spans` and `flags`.

    Return the number of statements, or OTHERWISE, and the number of terms. There is room for as many statements as lines, and four terms for each.
    """

def renamed(text: Bytes, seed: int, numbers: Ints, places: Ints, spans: Ints, count: int, cells: Ints32, /) -> int:
    """Make terms (their numbers) what stands at their places (start, size) of the text. Return 0 if that fails.

    Two of the `count` terms that become one get one number.
    """

def lines_of(text: Bytes, spans: Ints, count: int, cells: Ints32, seed: int, lines: Bytes, /) -> int:
    """Fill `lines` with the statements in `cells`, each once and without its graph, as N-Triples. Return how many bytes they have.

    There is room for the terms of all statements, and 16 bytes more for each place and statement.
    """

def timed(
    text: Bytes, spans: Ints, count: int, cells: Ints32, rows: int, start: int, end: int, rounds: bool, columns: Ints32, starts: Ints, ends: Ints, /
) -> tuple[int, int]:
    """Fill the columns of term numbers (a row a place) and the times of what the statements say beside the times of their graphs,
    which are rounded to
    microseconds with `rounds`.

    Return how many occurrences these are,
    and how many of them are at the default `start` and `end`. The count is OTHERWISE where the times are not of the
    usual shape.
    """

def columns_of(text: Bytes, spans: Ints, cells: Ints32, rows: int, indices: Ints32, offsets: Ints32, texts: Bytes, sizes: Ints, /) -> None:
    """Fill a dictionary column for the first `rows` numbers in each row of `cells`; -1 is null. A term is a span of the text.

    `indices` has a row each. The offsets into the dictionaries' texts, from 0 each,
    and these texts stand one after another; `sizes` has the terms and the
    bytes of each. There are eight bytes of room behind the texts.
    """

def flags_of(text: Bytes, offsets: Ints32, flags: Bytes, /) -> None:
    """Fill a flag for each of the terms that stand one after another in the text: PLAIN if it is surely canonical, else ODD."""

def put_solutions(
    kind: int,
    out: Bytes,
    at: int,
    row: int,
    ends: Ints,
    lists: Ints32,
    offsets: Ints32,
    valid: Bytes,
    first: int,
    text: Bytes,
    start: Ints,
    end: Ints,
    ordinal: Ints,
    query: Ints32,
    fragments: Bytes,
    places: Ints,
    forms: Ints,
    /,
) -> tuple[int, int]:
    """Write solutions from `row` on, as `kind` says, from `at` on while there is room, and fill in `ends` the place after each.

    Values are lists of texts: offsets of the lists, offsets of the texts, validity bits (none: all are valid),
    and the bit of the first text. `forms` has a
    row for each query: its form, its first fragment (what a line begins with,
    up to the id) and the one after its last. The fragments between are the names
    of its variables, as members of JSON. Return the row after the last one written, and the place after its text.
    """

# ---------------------------------------------------------------- terms (dictionary.c); `terms` is the address of a table of terms
def intern_one(terms: int, text: Bytes, /) -> int:
    """Return the number of a text; -1 without room."""

def intern_strings(terms: int, offsets: int, data: int, first: int, numbers: Ints, /) -> int:
    """Number an Arrow array's strings, by addresses, from the one at `first` on; return how many have numbers. If not all, room is wanting."""

def value_from(terms: int, first: int, /) -> int:
    """Note the numeric values of terms from number `first` on; return the number from which to go on once the host has said its part."""

def spread_terms(terms: int, /) -> None:
    """Enter all terms into the table of heads, which is empty."""

def enter_terms(terms: int, ends: Ints, /) -> None:
    """Take in texts that stand in the arena one after the other,
    the one of each number up to its end. `spread_terms` enters them into the table of heads."""

def sweep_terms(terms: int, held: NDArray[np.bool_], moved: NDArray[np.uint8], /) -> None:
    """Free the numbers that are not `held`, and move the texts of the others to another arena. `spread_terms` enters them into the table of heads."""

def taken(terms: int, batch: int, wanted: int, since: int, table: Ints, /) -> int:
    """Fill `table` (HEIGHT x rows) with the rows of a batch that are not late, and let the batch go; the first `wanted` of s, p,
    o and g have numbers.

    Return how many rows these are, or `-1 - bytes` for which there was no room.
    """

def make_batch(indices: Ints32, offsets: Ints32, texts: Bytes, sizes: Ints, start: Ints, end: Ints, batch: int, /) -> None:
    """Make a struct a batch of occurrences that are not late. `indices` has a row for each of s, p, o and g, below 0 for null.

    The offsets into their dictionaries' texts, from 0 each, and these texts stand one after another; `sizes` has the terms and the bytes of each.
    """

def sort_places(terms: int, rows: Ints, entry: int, end: int, by: Ints, numbers: Ints, order: Ints, spare: Ints, /) -> None:
    """Fill `order` with rows of which those with equal columns `entry` and `end` stand together, sorted by `by` and then the texts of `numbers`."""

def sort_rows(terms: int, numbers: Ints, zeros: Ints, order: Ints, spare: Ints, /) -> None:
    """Fill `order` with the places of the numbers in the order of their texts."""

def emit(terms: int, rows: Ints, forms: int, tied: bool, batch: int, /) -> int:
    """Make a struct a batch of solutions in order of emission: SOLUTIONS, or TIED ones.

    Return 1 where the values stand over a dictionary, else 0; or `-1 - bytes` of texts that are more than Arrow's offsets can say.
    """

def measure(terms: int, numbers: Ints, offsets: Ints32, /) -> tuple[int, int]:
    """Fill the offsets of the numbers' texts; return their bytes in all and how many numbers are 0.

    The offsets are good if the bytes fit into them.
    """

def gather(terms: int, numbers: Ints, data: NDArray[np.uint8], /) -> None:
    """Fill `data` with the texts of the numbers, one after the other."""

def mark_bound(numbers: Ints, bits: NDArray[np.uint8], /) -> None:
    """Set the bits, the least of a byte first, of the numbers that are not 0."""

def mark_all(held: NDArray[np.bool_], numbers: Ints, /) -> None:
    """Mark the numbers, or their magnitudes, that are numbers of terms."""

def mark_rows(held: NDArray[np.bool_], rows: Ints32, free: NDArray[np.bool_], /) -> None:
    """Mark the numbers in all rows but the free ones, as `mark_all` does."""

def write_integers(values: Ints, data: NDArray[np.uint8], offsets: Ints32, /) -> None:
    """Fill `data` with texts of xsd:integer, and `offsets` with their ends, behind the first."""

def write_quotients(values: Ints, divisors: Ints, scale: int, digits: int, data: NDArray[np.uint8], offsets: Ints32, /) -> None:
    """Fill in texts of xsd:decimal: value / divisor / 10**scale to so many significant digits, half to even."""

def write_doubles(source: Bytes, source_offsets: Ints32, data: NDArray[np.uint8], offsets: Ints32, /) -> None:
    """Fill in texts of xsd:double, from the shortest forms (such as -12.5, 1e-07, inf) that stand in `source`."""

def answer_address() -> int:
    """Return the address of the function that answers the kernel's questions."""

# ---------------------------------------------------------------- groups and runs (aggregation.c)
# Tables (engine/aggregation/group_tables/tables.py), RunTables and ElementColumns (runs/run_tables.py) are handed
# over as their arrays, in their order.
def spread_groups(groups: Ints, top: int, keys: int, heads: Ints, /) -> None:
    """Enter the groups in the first `top` rows, whose keys have `keys` columns, into the larger table `heads`, which is changed as they are."""

def sweep(
    at: Ints,
    program: Ints,
    groups: Ints,
    heads: Ints,
    solutions: Ints,
    limbs: Ints,
    moments: Ints,
    keys: Ints,
    values: Ints,
    gained: Ints,
    out: Ints,
    /,
) -> int:
    """Take in `moments` from at[MOMENT] on, and return DONE,
    or ROOM where an instant may need more room than there is; at[NEED] is what tables need then.

    A moment has a row of `keys` and of `values`. `gained` is room for a group a moment; `out` gets reports after the first at[FOUND].
    """

def read_decimals(data: Bytes, offsets: Ints32, found: NDArray[np.bool_], mantissas: Ints, scales: Ints, /) -> None:
    """Find which of N-Triples texts one after the other are an xsd:decimal of at most 18 digits; fill its value, at the least scale."""

def sum_exactly(limbs: Ints, doubles: Ints, by: int, high: int, rest: int, /) -> int:
    """Add (`by` 1) or take away (-1) the bits of finite doubles, then add high * 2**32 + rest. Return the bits of the rounded sum.

    `limbs` is a row of the table of that name.
    """

def spread_chains(*tables: Table) -> None:
    """Take ChainTables. Enter keys and events into their tables of heads, which are empty."""

def scale_values(*tables_and_factor: Table | int) -> int:
    """Take ChainTables, a part of a weight, a shift and a factor. Multiply the values of this part by factor * 2**shift.

    Return 0, or TOO_LARGE. Products are made anew where they are asked for.
    """

def sweep_chains(*tables: Table) -> int:
    """Take ChainTables, then `moments`, the operand of each, its values and its row, then what is to be filled: moments, keys and values.

    Take in the instants from at[AT_MOMENT] on. Return DONE, or ROOM where at[WANTED] more rows are needed. at[GIVEN] rows have been filled.
    If values have no rows, keys are the rows of single matches. at[FAULT] says what went wrong.
    """

def find_deadline(at: Ints, clock: Ints, links: Ints, heap: Ints, /) -> int:
    """Return when time ends the first run, FOREVER if it ends none."""

def place_elements(*tables: Table) -> None:
    """Take Tables, RunTables and ElementColumns. Give each element its group, which is made if there is none, and what PREV is at it.

    There is room for a group an element.
    """

def judge_elements(*tables: Table) -> None:
    """Take Tables and ElementColumns. Say in `linked` what WHILE says of each element, where nothing in it depends on the run."""

def sweep_runs(*tables: Table) -> int:
    """Take Tables, RunTables and ElementColumns, `gained` (room for a group a moment), and `out`, which gets reports after the first at[FOUND].

    Take in the moments from at[MOMENT] on,
    then end all runs whose deadlines come before the clock's LIMIT. Return DONE; ROOM where at[NEED] more reports
    may be than there is room for; or UNDECIDED, where the host has to decide the link of at[MOMENT]. A report of a deadline has no entry (NONE).
    """

# ---------------------------------------------------------------- the kernel (kernel.c); `address` is that of its table of arrays (KernelArrays)
def run(address: int, /) -> int:
    """Work until the feed is done or the host is needed; return which of both, by a code of the layout."""

def sweep_stores(address: int, first: int, after: int, /) -> None:
    """Free what nothing needs any more in the stores `first` to `after` (exclusive)."""

def clear_stores(address: int, first: int, after: int, /) -> None:
    """Free all goals of the stores `first` to `after` (exclusive)."""

def free_timeless_goals(address: int, store: int, dead: Ints, /) -> None:
    """Free timeless goals of a store, the newest first, where `dead` says so."""

def read_goals(address: int, columns: Ints, first: int, after: int, stores: Ints, numbers: Ints, cells: Ints, /) -> None:
    """Fill `stores`, `numbers` and `cells` with the store, the row and these columns of each goal of the stores `first` to `after` (exclusive).

    They come store by store, the timed ones in order of end and then the timeless ones.
    """

def read_ages(address: int, ages: Ints, /) -> None:
    """Number timed goals by row so that those of one chain rise as the chain does, which a policy orders."""

def enter_rows(address: int, columns: Ints, cells: Ints, numbers: Ints, /) -> None:
    """Take a row for each of `numbers`, which is filled, with the `cells` of these columns; the others are zero. The room was made."""

def enter_goals(address: int, columns: Ints, cells: Ints, stores: Ints32, order: Ints, marked: Ints, numbers: Ints32, /) -> None:
    """Store `cells` (of these columns, the others zero) as goals, and fill `numbers` with their rows. The room was made.

    They are entered in `order`, which falls nowhere in end,
    since queues need that; an empty one is theirs. `marked` is for those of policies, and may
    be empty.
    """

def store_goals_in_order(address: int, stores: Ints, numbers: Ints, /) -> None:
    """Store rows as goals between feeds, though others of their chains may end later. Those of one store come in order of end."""

def restore_seen(address: int, tags: Ints, numbers: Ints, /) -> None:
    """Enter what the instant has met before, by rows, which are freed."""

def spread_goals(address: int, heads: Ints32, /) -> None:
    """Move the timed goals to the larger table `heads`."""

def spread_timeless_goals(address: int, heads: Ints32, /) -> None:
    """Move the timeless goals to the larger table `heads`."""

def spread_seen(address: int, heads: Ints, /) -> None:
    """Enter what this instant has met into the larger table `heads`."""

def spread_questions(address: int, heads: Ints, /) -> None:
    """Enter the memo's questions into the larger table `heads`."""

def link_instances(heads: Ints, cells: Ints, places: Ints, keys: int, direction: int, /) -> None:
    """Change a table of instances: rows at `places` enter their chains, which rise (1) or fall (-1) in their bounds, or have no order (0).

    The key is the first `keys` terms of a row.
    """

def unlink_instances(heads: Ints, cells: Ints, places: Ints, keys: int, /) -> None:
    """Change a table of instances: rows at `places` leave their chains."""

def add_needles(address: int, texts: Ints, values: Ints, done: int, /) -> int:
    """Add needles to the search at an address: terms that are sought, and what each stands for, from number `done` on. Terms that are no strings are
    passed over.

    Return how many have been added, fewer than all if room is wanting.
    """

def spread_edges(address: int, edges: Ints, /) -> None:
    """Enter edges into the larger table of the search at an address."""

def find_lists(posted: Ints, predicates: Ints, objects: Ints, found: Ints, /) -> None:
    """Fill `found` with the lists of some pairs in the alpha index, 0 for none."""

def enter_lists(posted: Ints, predicates: Ints, objects: Ints, lists: Ints, /) -> int:
    """Give lists to some pairs in the alpha index, which has room; return how many of the pairs had no place before."""

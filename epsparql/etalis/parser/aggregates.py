"""This module reads the aggregates of patterns: `aggregate(F, P, V)`, maybe with `group_by(K)` and a window."""

from epsparql.deferred_methods import dataclass
from epsparql.etalis.parser.program import duration_of
from epsparql.etalis.parser.syntax import Num, Struct, Term, VariableTerm, as_struct, refuse

COUNT, LIST = "count", "list"
NUMERIC = ("sum", "avg", "min", "max")
MOST_ROWS = 1_000_000
"""A window of the last rows has at most so many."""


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """Represents `aggregate(function, pattern, target, group_by(keys), window)`: a window is of the last `rows`, or of
    the last µs, its `length`; one of them at most.
    """

    function: Struct
    pattern: Term
    target: VariableTerm | Num
    keys: tuple[VariableTerm, ...]
    rows: int | None = None
    length: int | None = None


def read_aggregate(term: Struct, text: str) -> AggregateTerm:
    """Return the parts of an aggregate. Raises EleRefused."""
    args = term.args
    function = as_struct(args[0]) if len(args) >= 3 else None
    if function is None or not isinstance(args[2], VariableTerm | Num):
        refuse("aggregate takes a function, a pattern and a variable", term.span, text, "aggregate(sum(Y), b(Y), S)")
    keys, rows, length = list[VariableTerm](), None, None
    for option in args[3:]:
        match option:
            case Struct("group_by", names) if not keys:
                keys = [_read_key(name, text) for name in names]
            case Struct("rows", (size,)) if rows is None and length is None:
                rows = _read_count(size, text)
            case Struct("range", (size,)) if rows is None and length is None:
                length = _read_length(size, text)
            case _:
                refuse("this is no option of aggregate", option.span, text, "group_by(K), and one of rows(100) or range(5min)")
    return AggregateTerm(function, args[1], args[2], tuple(keys), rows, length)


def keeps_values(term: Struct) -> bool:
    """Return whether an aggregate makes a list of values in no window, so that it keeps them all."""
    function = as_struct(term.args[0])
    windowed = any(isinstance(option, Struct) and option.name in ("rows", "range") for option in term.args[3:])
    return function is not None and function.name not in (COUNT, *NUMERIC) and not windowed


def _read_key(term: Term, text: str) -> VariableTerm:
    if not isinstance(term, VariableTerm):
        refuse("group_by takes variables of the pattern", term.span, text, "group_by(Room)")
    return term


def _read_length(size: Term, text: str) -> int:
    length = duration_of(text, size)
    if length == 0:
        refuse("a window has a length", size.span, text, "a positive number of seconds, or with a unit, such as range(5min)")
    return length


def _read_count(size: Term, text: str) -> int:
    if not isinstance(size, Num) or size.unit or size.value != size.value.to_integral_value() or not 1 <= size.value <= MOST_ROWS:
        refuse(f"rows takes a whole number from 1 to {MOST_ROWS:,}", size.span, text, "rows(100)")
    return int(size.value)

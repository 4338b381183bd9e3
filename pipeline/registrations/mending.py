"""Mends the text of a query, such as one pasted from a paper: each fault that knows what was probably meant is
corrected, and the next one is looked for.

A text without faults stays as it is. A repair is a guess, so each one is reported with the place in the text as it
was written.
"""

from collections import Counter
from collections.abc import Callable
from typing import Generic, TypeVar

from epsparql.deferred_methods import dataclass
from epsparql.errors import Edit, QueryError, Span
from epsparql.literals import show_lexical

Found = TypeVar("Found")
MAX_REPAIRS = 100
MAX_READ = 1 << 18
"""At most this many characters are read in all the attempts at one text: a long text with many faults would take long."""

_MOST_AT_ONE_PLACE = 5
"""A place that needs more repairs is not understood."""
_EDITS_SHOWN = 2
"""A repair of more edits than those of a pair of brackets is shown at the place of its fault alone."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Reports a fault that was corrected: it has its place in the text as written.

    `remedy` is what the mended text has for `found`.
    """

    fault: QueryError
    found: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Mended(Generic[Found]):
    """Holds the repairs of a text. `text` is the mended text with what its check found, unless a fault is left."""

    repairs: tuple[Repair, ...]
    left: QueryError | None
    text: str | None = None
    found: Found | None = None

    @property
    def all_faults(self) -> list[QueryError]:
        """Return all faults at their places in the text as written, from its beginning to its end."""
        found = [repair.fault for repair in self.repairs] + ([] if self.left is None else [self.left])
        return sorted(found, key=lambda fault: fault.span.start)


def mend_text(text: str, check: Callable[[str], Found]) -> Mended[Found]:
    """Correct what `check` refuses with a QueryError, fault by fault, as long as a fault says what was probably meant."""
    mended, edits, repairs, seen, read, places = text, list[Edit](), list[Repair](), {text}, 0, Counter[int]()
    while True:
        try:
            return Mended(tuple(repairs), None, mended, check(mended))
        except QueryError as fault:
            placed = _place_fault(fault, edits, text)
            read += len(mended)
            places[placed.span.start] += 1
            following = apply_edits(mended, fault.edits)
            ends = len(repairs) == MAX_REPAIRS or read > MAX_READ or places[placed.span.start] > _MOST_AT_ONE_PLACE
            if ends or not fault.edits or following in seen:
                return Mended(tuple(repairs), placed)
            repairs.append(_describe_repair(placed, fault, mended))
            edits += reversed(fault.edits)
            mended = following
            seen.add(mended)


def apply_edits(text: str, edits: tuple[Edit, ...]) -> str:
    """Return the text with the edits, which are in order and do not overlap."""
    parts, at = [], 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _describe_repair(placed: QueryError, fault: QueryError, mended: str) -> Repair:
    shown = tuple(edit for edit in fault.edits if fault.span.start <= edit.start and edit.end <= fault.span.end)
    shown = fault.edits if len(fault.edits) <= _EDITS_SHOWN or not shown else shown
    start, end = shown[0].start, shown[-1].end
    moved = tuple(Edit(edit.start - start, edit.end - start, edit.text) for edit in shown)
    found = mended[start:end]
    return Repair(placed, show_lexical(found), show_lexical(apply_edits(found, moved).strip()))


def _place_fault(fault: QueryError, edits: list[Edit], text: str) -> QueryError:
    """Return a fault of the text after `edits` at its place in the text before them."""
    start = _find_origin(fault.span.start, edits)
    span = Span(start, max(start, _find_origin(fault.span.end, edits)))
    return type(fault)(fault.message, span, text, fault.expected)


def _find_origin(at: int, edits: list[Edit]) -> int:
    """Return where a place of the mended text was before the edits.

    Each edit was made in the text that those before it had left.
    """
    for edit in reversed(edits):
        if at >= edit.start + len(edit.text):
            at += edit.end - edit.start - len(edit.text)
        elif at > edit.start:
            at = min(edit.end, at)
    return at

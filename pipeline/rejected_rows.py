"""This module defines rows that their stream's mapping does not turn into triples."""

from epsparql.deferred_methods import dataclass


@dataclass(frozen=True, slots=True)
class Rejected:
    """Represents a row that did not map, with the beginning of its text; `row` counts the rows of its body from 1."""

    row: int
    field: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"row {self.row}{f', field {self.field}' if self.field else ''}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Holds the rows of a body that did not map: those that the log keeps for the dead-letter feed, and how many
    others are only counted.
    """

    kept: tuple[Rejected, ...] = ()
    skipped: int = 0


ALL_MAPPED = Unmapped()


def describe_rejected(rejected: tuple[Rejected, ...], beyond: int = 0) -> str:
    """Return the first row that did not map, and how many more there are, with those `beyond` the given ones."""
    more = len(rejected) - 1 + beyond
    return f"{rejected[0]}" + (f" ({more} more row{'s do' if more > 1 else ' does'} not map)" if more else "")

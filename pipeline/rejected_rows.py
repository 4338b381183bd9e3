"""This module defines rows that their stream's mapping does not turn into triples: they are kept in the log, for the dead-letter feed."""

from dataclasses import dataclass

ON_ERROR = REJECT, DEAD_LETTER = ("reject", "dead_letter")
"""A stream's setting says what becomes of a body with rows that do not map."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Represents a row that did not map, with the beginning of its text; `row` counts the rows of its body from 1."""

    row: int
    field: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"row {self.row}{f', field {self.field}' if self.field else ''}: {self.reason}"

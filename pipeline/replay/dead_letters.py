"""Keeps apart the rows and lines of a replay's files that cannot be read or do not map, and counts them."""

import json
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from epsparql.deferred_methods import dataclass
from epsparql.events.on_error import DEAD_LETTER, REFUSE, SKIP
from pipeline.rejected_rows import Rejected


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Says how many rows of a file were left out, and what is wrong with the first one.

    The file `kept_in` has them, if there is one.
    """

    path: Path
    count: int
    first: Rejected
    kept_in: Path | None

    def __str__(self) -> str:
        place = "left out" if self.kept_in is None else f"in {self.kept_in}"
        return f"{self.path}: {self.count} row{'s are' if self.count > 1 else ' is'} {place}, because of faults; the first is {self.first}"


@dataclass(slots=True)
class DeadLetters:
    """Does what `on_error` says with rows that cannot be read or do not map.

    With dead_letter, the file `path` has each in a line.
    """

    on_error: str = REFUSE
    path: Path = Path()
    left_out: dict[Path, LeftOut] = field(default_factory=dict)

    @property
    def refuses(self) -> bool:
        return self.on_error == REFUSE

    def add(self, source: Path, rows: Sequence[Rejected]) -> None:
        """Keep rows of a file apart. Raises: OSError where they cannot be written."""
        if not rows:
            return
        if self.on_error == DEAD_LETTER:
            self._write_rows(source, rows)
        known = self.left_out.get(source)
        count, first = (0, rows[0]) if known is None else (known.count, known.first)
        self.left_out[source] = LeftOut(source, count + len(rows), first, None if self.on_error == SKIP else self.path)

    def _write_rows(self, source: Path, rows: Sequence[Rejected]) -> None:
        lines = [{"file": str(source), "row": row.row, "field": row.field or None, "reason": row.reason, "text": row.text} for row in rows]
        with self.path.open("a" if self.left_out else "w", encoding="utf-8") as file:  # the first rows replace those of an earlier run
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

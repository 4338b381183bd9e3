"""This module defines the answer to the question why a query finds nothing: the steps that were counted, and the
reason.
"""

from typing import Any

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from pipeline.formats.batches.timestamps import iso

FOUND, NOTHING, UNKNOWN = "found", "nothing", "unknown"
"""The query finds something in the events that were examined, it finds nothing for a known reason, or no reason is
known.
"""


@dataclass(frozen=True, slots=True)
class Examined:
    """Says which events were examined: `events` of them, which end from `start` to `end`. `bounded` if there are more."""

    events: int
    start: Micros | None = None
    end: Micros | None = None
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Counts what one step of the query lets through: the solutions of each input, and its own. `more` if there are
    more of these.

    `line` and `column` are its place in the query's text, from 1, where it has one.
    """

    operator: str
    text: str
    line: int | None
    column: int | None
    inputs: tuple[int, ...]
    out: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """Says why a step lets nothing through.

    `code` is stable; `nearest` is what would have passed, or nearly so, where something is near.
    """

    code: str
    message: str
    remedy: str
    nearest: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Answers for one query. Without a reason, the query found something, or `state` says that nothing is known."""

    query: str
    state: str
    examined: Examined
    steps: tuple[Step, ...] = ()
    reason: Reason | None = None

    def list_members(self) -> dict[str, Any]:
        """Return the members of the JSON document."""
        examined, reason = self.examined, self.reason
        return {
            "query": self.query,
            "state": self.state,
            "examined": {"events": examined.events, "from": _iso(examined.start), "to": _iso(examined.end), "bounded": examined.bounded},
            "steps": [
                {"operator": each.operator, "text": each.text, "line": each.line, "column": each.column, "in": list(each.inputs), "out": each.out}
                | {"more": each.more}
                for each in self.steps
            ],
            "reason": None if reason is None else {name: getattr(reason, name) for name in reason.__slots__},
        }


def _iso(instant: Micros | None) -> str | None:
    return None if instant is None else iso(instant)

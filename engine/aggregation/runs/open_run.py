"""This module holds what is kept of an open run, and what a query says of its runs."""

from collections.abc import Sequence

from engine.aggregation.term_values import Value
from engine.aggregation.window_contents import Ever
from engine.kernel.state import layout as c
from epsparql.algebra import Aggregate, RunWindow
from epsparql.deferred_methods import dataclass
from epsparql.terms import Variable

Named = tuple[tuple[Variable, Aggregate], ...]
Row = tuple[list[int], int, int]
"""The terms of an element, and its start and end as expressions see them."""


@dataclass(frozen=True, slots=True)
class RunShape:
    """Holds what a query says of its runs.

    `broken` is the variable that is true where a timeless solution of UNTIL breaks the link to an element. `certain`
    says that each element binds all keys.
    """

    keys: tuple[Variable, ...]
    aggregates: Named
    window: RunWindow
    broken: Variable | None
    certain: bool

    @property
    def lasting(self) -> bool:
        """Return whether runs have no deadline."""
        return self.window.gap is None and self.window.within is None


@dataclass(slots=True)
class Run:
    """Holds an open run: what its reports are of (`held`), and what its next link looks at (`growing`, `previous`)."""

    held: Ever
    growing: Ever
    previous: tuple[int, ...] = ()
    last: int = -c.BIG
    elements: int = 0

    @property
    def least(self) -> int:
        return self.held.least


@dataclass(frozen=True, slots=True)
class Element:
    """Holds one solution of a group: as it stands, and its values for aggregates, links and PREV; `row` says what
    expressions see.
    """

    start: int
    end: int
    row: Row
    values: Sequence[Value]
    grown: Sequence[Value]
    previous: tuple[int, ...]

"""This module holds several solutions: a list that notebooks show as a table with a timeline, and that becomes a
frame or a graph.
"""

from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from epsparql.solutions.frames import frame_of
from epsparql.solutions.rdflib_graphs import graph_of
from epsparql.solutions.solution import Solution
from epsparql.solutions.timeline import html_of

if TYPE_CHECKING:
    import rdflib


class Solutions(list[Solution]):
    """Holds solutions in the order of their emission."""

    @overload
    def __getitem__(self, place: SupportsIndex) -> Solution: ...
    @overload
    def __getitem__(self, place: slice) -> "Solutions": ...
    def __getitem__(self, place: SupportsIndex | slice) -> "Solution | Solutions":
        return Solutions(super().__getitem__(place)) if isinstance(place, slice) else super().__getitem__(place)

    def to_frame(self, library: str = "pandas", *, exact: bool = True) -> Any:
        """Return a frame of `pandas` or `polars` with a row for each solution, and for each triple of a CONSTRUCT.

        The columns are `id`, `start` and `end` (timestamps in UTC, of microseconds), then the variables in the order
        in which they appear. A column of one kind of value has the library's type for it. Integers and decimals stay
        exact: decimals are Python objects in pandas. With `exact=False` every number is a float64. A variable that is
        not bound is missing. Raises: MissingExtra; ValueError for another library.
        """
        return frame_of(self, library, exact)

    def to_rdflib(self) -> "rdflib.Graph":
        """Return the triples of CONSTRUCT or DESCRIBE solutions as one graph. Raises: NotInRdflib for triple terms."""
        return graph_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)

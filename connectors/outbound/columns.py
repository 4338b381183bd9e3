"""Says what the columns of a table hold of each solution."""

from collections.abc import Mapping

from connectors.errors import WrongOption
from connectors.outbound.sink import SolutionMessage
from epsparql.solutions.solution import term_of

DEFAULT_COLUMNS: Mapping[str, str] = {"query": "query", "id": "id", "start_time": "start", "end_time": "end", "solution": "solution"}
MEMBERS = ("query", "id", "start", "end", "solution")
VARIABLE = "?"


def check_columns(columns: Mapping[str, str]) -> None:
    """Check what a table's columns are to hold. Raises: WrongOption."""
    for column, source in columns.items():
        if source not in MEMBERS and not source.startswith(VARIABLE):
            allowed = ", ".join(MEMBERS)
            raise WrongOption(f"columns: {column!r} must hold one of {allowed}, or a variable such as ?station, not {source!r}")
    if "id" not in columns.values():
        raise WrongOption("columns: one column must hold 'id', by which a solution is told from others")


def find_value(source: str, solution: SolutionMessage) -> str | None:
    """Return what a column holds of a solution, as text."""
    if source.startswith(VARIABLE):
        term = (solution.document.get("binding") or {}).get(source.removeprefix(VARIABLE))
        if term is None:
            return None
        return str(term_of(term) if term["type"] == "triple" else term["value"])
    if source == "solution":
        return solution.text.decode()
    return str(solution.document[source])

"""The server and its process for one-shot queries (`query_process.py`) talk in lines of JSON, one a message."""

from typing import TypedDict

DONE, TOO_LARGE, NO_MEMORY, NOT_WRITABLE, FAULT, INTERNAL = "done", "too-large", "memory", "not-writable", "fault", "internal"


class Setting(TypedDict):
    """Configures the process: the log, its graphs (name, entries), their entailment, the socket's path, and the
    limits of a query.

    `rules` are the static rules: registration, name, text and default graph.
    """

    data: str
    graphs: list[tuple[str, list[int]]]
    entailment: str
    rules: list[tuple[int, str, str, str]]
    socket: str
    seconds: float
    memory: int
    answer: int


class Question(TypedDict):
    """Holds a query and the graphs of the dataset by name, None where the request chose none: then the query's own
    dataset holds, or all graphs.
    """

    query: str
    default: list[str] | None
    named: list[str] | None
    media_type: str


class Place(TypedDict):
    """Tells of a fault in a query's text."""

    code: str
    detail: str
    line: int
    column: int
    expected: str

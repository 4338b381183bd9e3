"""The server and its process that validates shapes (`shapes_process.py`) talk in lines of JSON."""

from typing import TypedDict

DONE, INVALID, NOT_COVERED, NO_MEMORY = "done", "invalid", "not-covered", "memory"
MOST_SHOWN = 100
"""So many results are shown."""


class ShapesLimits(TypedDict):
    """Bounds the process, in seconds of processor time and in bytes."""

    seconds: float
    memory: int


class ValidationResult(TypedDict):
    """Holds a validation result; terms are in the notation of N-Triples, and "" for none.

    `shape` is the nearest shape with a name. `constraint` and `severity` are names of SHACL without their namespace.
    """

    focus: str
    path: str
    value: str
    shape: str
    constraint: str
    severity: str
    message: str


class ShapesVerdict(TypedDict):
    """Tells the outcome, with details if it is not DONE, and how many results there are.

    `violations` are results of another severity than Info and Warning. The first MOST_SHOWN results are shown,
    violations first.
    """

    outcome: str
    detail: str
    results: int
    violations: int
    shown: list[ValidationResult]

"""Reads the files of queries and ETALIS programs that a command names. A fault names file, line and column.

Commands that read nothing else start sooner without the formats of events.
"""

from collections.abc import Sequence
from pathlib import Path

import epsparql
from epsparql.deferred_methods import dataclass
from epsparql.solutions.policies import UNRESTRICTED
from pipeline.errors import locate_undecodable


class SourceFault(ValueError):
    """Describes a fault of the user's: what is wrong, where, and what would be right."""

    def __init__(self, path: Path | str, message: str, line: int | None = None, column: int | None = None, expected: str = "") -> None:
        super().__init__(path, message, line, column, expected)
        self.path, self.message, self.line, self.column, self.expected = path, message, line, column, expected

    def __str__(self) -> str:
        place = "".join(f":{number}" for number in (self.line, self.column) if number is not None)
        return f"{self.path}{place}: {self.message}" + (f"; expected {self.expected}" if self.expected else "")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """Holds `[NAME=]FILE` as given on the command line; an empty name stands for the default."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class QueryFile:
    """Holds a query. It is named by `label`, or by its file's stem where that is empty."""

    path: Path
    text: str
    label: str = ""
    parts: tuple[tuple[Path, str], ...] = ()  # the files of a program, with their texts

    def fault(self, error: epsparql.QueryError) -> SourceFault:
        """Return a fault of the query at its place in a file."""
        return place_fault(self.parts, error) if self.parts else query_fault(self.path, error)

    @property
    def name(self) -> str:
        return self.label or self.path.stem


def named_file(argument: str) -> NamedFile:
    """Parse `[NAME=]FILE`.

    An argument that is an existing file has no name. Otherwise the file is what follows the first `=` that leaves an
    existing file.
    """
    if not Path(argument).exists():
        parts = argument.split("=")
        for cut in range(1, len(parts)):
            path = Path("=".join(parts[cut:]))
            if path.exists():
                name = "=".join(parts[:cut])
                return NamedFile(name[1:-1] if name.startswith("<") and name.endswith(">") else name, path)
        if len(parts) > 1:
            return NamedFile(parts[0], Path("=".join(parts[1:])))
    return NamedFile("", Path(argument))


def read_query(path: Path) -> QueryFile:
    try:
        return QueryFile(path, read_file(path).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SourceFault(path, "the file is not UTF-8", *locate_undecodable(error), "UTF-8 text") from None


def read_asked(path: Path, policy: str | None = None) -> tuple[QueryFile, str]:
    """Return what a file asks, a query or an ETALIS program (`.event`), and its policy. Raises: SourceFault."""
    if path.suffix.lower() == ".event":
        return read_program([path], policy=policy)
    return read_query(path), policy or UNRESTRICTED


def read_program(paths: Sequence[Path], static: Sequence[Path] = (), policy: str | None = None) -> tuple[QueryFile, str]:
    """Return the ETALIS program that these files are together, named after the first, and its policy.

    Raises: SourceFault.
    """
    files = [read_query(path) for path in (*paths, *static)]
    try:
        from epsparql.etalis.translator import query_text  # it loads the grammar of programs, which other commands do not need

        text, chosen = query_text("\n".join(file.text for file in files), policy)
    except epsparql.QueryError as error:
        raise place_fault([(file.path, file.text) for file in files], error) from None
    return QueryFile(paths[0], text, paths[0].stem, tuple((file.path, file.text) for file in files)), chosen


def place_fault(parts: Sequence[tuple[Path, str]], error: epsparql.QueryError) -> SourceFault:
    """Return a fault of a program at its place in the file that has it."""
    line = error.line
    for path, text in parts:
        lines = text.count("\n") + 1
        if line <= lines:
            return SourceFault(path, error.message, line, error.column, error.expected)
        line -= lines
    return query_fault(parts[-1][0], error)


def query_fault(path: Path, error: epsparql.QueryError) -> SourceFault:
    return SourceFault(path, error.message, error.line, error.column, error.expected)


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceFault(path, error.strerror or str(error)) from None

"""Small changes of the compiled code's C, as mistakes are made: of an operator, a number, a condition or a statement
of one function.

The text is changed as it is formatted: a binary operator has a space on both sides, and a function begins and ends at
the margin.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FUNCTION = re.compile(r"^(?!typedef|enum|struct|extern)[A-Za-z_].*?\b(\w+)\(.*\) \{", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
OPERATORS = {
    " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ", " || ": " && ",
    " + ": " - ", " - ": " + ", " * ": " + ", " | ": " & ", " & ": " | ", " ^ ": " | ", " << ": " >> ", " >> ": " << ", " += ": " -= ", " -= ": " += ",
}  # fmt: skip
NAMES = {"lesser": "greater", "greater": "lesser"}
TOKEN = re.compile("|".join(map(re.escape, sorted(OPERATORS, key=len, reverse=True))) + r"|\b(?:lesser|greater)(?=\()|\b\d+\b(?!\.)|!(?=[\w(])")
CONDITION = re.compile(r"\b(if|while) \(")
STATEMENT = re.compile(r"(?:(?<=\n)|(?<=\) )|(?<=else )) *(?:[\w>.*()\[\]-]+(?:\+\+|--| [-+|^&]?= [^;]*)|\w+\([^;]*\)|break|continue);(?=\n)")


@dataclass(frozen=True, slots=True)
class TextChange:
    """Represents one change of a function: what stands in a file's text from `at` on becomes `new`."""

    function: str
    line: int
    at: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.old.strip()}  ->  {self.new.strip() or 'nothing'}"

    def made_in(self, text: str) -> str:
        return text[: self.at] + self.new + text[self.at + len(self.old) :]


def list_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each function of a file, and where its body begins, behind the brace, and ends."""
    for found in FUNCTION.finditer(text):
        rest = text[found.end() :]
        end = rest.index("\n") if not rest.startswith("\n") else rest.index("\n}") + 1
        yield found[1], found.end(), found.end() + end


def list_changes(text: str) -> Iterator[TextChange]:
    """Yield the changes of the functions of a file."""
    text = COMMENT.sub(lambda found: " " * len(found[0]), text)
    for name, first, after in list_functions(text):
        for at, old, new in _alternatives(text, first, after):
            yield TextChange(name, text.count("\n", 0, at) + 1, at, old, new)


def _alternatives(text: str, first: int, after: int) -> Iterator[tuple[int, str, str]]:
    """Yield what may be changed between two places: where, what stands there, and what may stand there."""
    for found in TOKEN.finditer(text, first, after):
        old = found[0]
        yield found.start(), old, str(int(old) + 1 if old != "1" else 0) if old.isdigit() else "" if old == "!" else NAMES.get(old) or OPERATORS[old]
    for found in CONDITION.finditer(text, first, after):
        end = _closing(text, found.end())
        for verdict in ("0", "1")[: 1 + (found[1] == "if")]:
            yield found.end(), text[found.end() : end], verdict
    for found in STATEMENT.finditer(text, first, after):
        if not re.match(r" *(?:return|const|i64|u64|int\w*|double|\w+ \*?\w+ =)\b", found[0]):
            yield found.start(), found[0], ";"


def _closing(text: str, at: int) -> int:
    """Return where the bracket closes that was opened before `at`."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at - 1

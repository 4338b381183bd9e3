"""Golden files: blocks of a query's text and what is said of it, word for word.

`python -m tests.epsparql.golden` writes all answers anew; read the difference before you keep it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.validation.validate import check
from epsparql import QueryError, parse
from epsparql.terms import XSD

FOLDER = Path(__file__).parents[1] / "golden"
PROLOGUE = f"PREFIX : <http://e/>\nPREFIX xsd: <{XSD}>\n"
_BLOCK = re.compile(r"^=== (.+)\n((?:.*\n)*?)^--- *\n((?:(?!===).*\n)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """`text` has two lines of prefixes before it, which are not shown, unless it starts with a declaration of its own."""

    title: str
    text: str
    answer: str

    @property
    def query(self) -> str:
        return self.text if re.match(r"PREFIX|BASE|#!etalis|\ufeff", self.text) else PROLOGUE + self.text


def blocks(name: str) -> list[Block]:
    return [Block(title, text.removesuffix("\n"), answer.strip("\n")) for title, text, answer in _BLOCK.findall((FOLDER / name).read_text())]


def error(query: str) -> str:
    """The code and the whole message; parse finds all but what only planning can."""
    try:
        check(parse(query))
    except QueryError as fault:
        return f"{fault.code}: {fault}"
    return "accepted"


def warnings(query: str) -> str:
    """A line for each doubt of parse: code, place, the stretch of the text, message."""
    lines = []
    for doubt in parse(query).warnings:
        assert doubt.span is not None, doubt
        line, column = doubt.span.place(query)
        lines.append(f"{doubt.code}: line {line}, column {column}, `{query[doubt.span.start : doubt.span.end]}`: {doubt.message}")
    return "\n".join(lines) or "none"


ANSWERS: dict[str, Callable[[str], str]] = {"errors.txt": error, "warnings.txt": warnings}


def write(name: str, answer: Callable[[str], str]) -> None:
    """Each block with the answer of today; what stands before the first block is kept."""
    path = FOLDER / name
    preface = path.read_text().partition("=== ")[0]
    parts = [f"=== {block.title}\n{block.text}\n---\n{answer(block.query)}\n\n" for block in blocks(name)]
    path.write_text(preface + "".join(parts).rstrip("\n") + "\n")


if __name__ == "__main__":
    for file, answer in ANSWERS.items():
        write(file, answer)

"""The tree of a regular expression of XPath (Functions and Operators 3.1, 5.6.1; XML Schema 1.1 part 2, appendix G).

Its character classes are concrete: the flags `i` and `s` are applied while the pattern is parsed.
"""

from collections.abc import Iterator
from enum import Enum
from typing import assert_never

from msgspec import Struct


class PatternFault(Exception):
    """Signals a pattern that XPath does not have, or that is beyond a limit. `place` is the character to blame,
    counted from 1.

    The remedy follows the first semicolon of the message.
    """

    def __init__(self, message: str, place: int | None = None) -> None:
        super().__init__(message, place)
        self.message, self.place = message, place

    def __str__(self) -> str:
        if self.place is None:
            return self.message
        what, colon, remedy = self.message.partition("; ")
        return f"{what} (at character {self.place}){colon}{remedy}"


class Range(Struct, frozen=True):
    """Holds the characters from `first` to `last`, both included."""

    first: int
    last: int


class CharacterProperty(Struct, frozen=True):
    """Holds the characters of a property, or all others: a category such as Lu, a block such as IsGreek, or one of
    the letters d, w, s, i and c.
    """

    name: str
    negated: bool = False


class CharacterClass(Struct, frozen=True):
    """Matches one character of any of the items, or of none if `negated`, that the `subtracted` class does not have."""

    items: tuple[Range | CharacterProperty, ...]
    negated: bool = False
    subtracted: "CharacterClass | None" = None


class Anchor(Enum):
    """Matches a place between characters."""

    START = "^"
    END = "$"
    LINE_START = "^ with m"
    LINE_END = "$ with m"


class Parentheses(Struct, frozen=True):
    """Holds a pattern in parentheses; `number` is None where it captures nothing."""

    inner: "Node"
    number: int | None


class Reference(Struct, frozen=True):
    """Matches what a group has captured; regardless of case if `folded`."""

    number: int
    folded: bool


class Concatenation(Struct, frozen=True):
    parts: "tuple[Node, ...]"


class Alternation(Struct, frozen=True):
    branches: "tuple[Node, ...]"


class Repeat(Struct, frozen=True):
    """Repeats a part; `most` is None where there is no limit. A lazy one prefers few repetitions."""

    inner: "Node"
    least: int
    most: int | None
    lazy: bool


Node = CharacterClass | Anchor | Parentheses | Reference | Concatenation | Alternation | Repeat


class Pattern(Struct, frozen=True):
    root: Node
    groups: int


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly in a node."""
    match node:
        case CharacterClass() | Anchor() | Reference():
            return ()
        case Parentheses(inner) | Repeat(inner):
            return (inner,)
        case Concatenation(parts):
            return parts
        case Alternation(branches):
            return branches
    assert_never(node)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all that is in it."""
    pending = [node]
    while pending:
        found = pending.pop()
        yield found
        pending += children(found)


def matches_empty(node: Node) -> bool | None:
    """Return whether a pattern matches the empty text; None where that depends on a back reference."""
    match node:
        case CharacterClass():
            return False
        case Anchor():
            return True
        case Reference():
            return None
        case Parentheses(inner):
            return matches_empty(inner)
        case Repeat(inner, least):
            return least == 0 or matches_empty(inner)
        case Concatenation(parts):
            found = [matches_empty(part) for part in parts]
            return False if False in found else None if None in found else True
        case Alternation(branches):
            found = [matches_empty(branch) for branch in branches]
            return True if True in found else None if None in found else False
    assert_never(node)

"""This module bounds patterns, since a matcher writes their repetitions out."""

from typing import assert_never

from epsparql.regex.syntax import (
    Alternation,
    Anchor,
    CharacterClass,
    CharacterProperty,
    Concatenation,
    Node,
    Parentheses,
    PatternFault,
    Reference,
    Repeat,
)

MOST_CHARACTERS, MOST_REPEATED = 4096, 1000
_PROPERTY = 12
"""A property costs as much as so many characters: it has hundreds of ranges."""


def check_size(root: Node) -> None:
    """Check that a pattern is not too large with its repetitions written out. Raises: PatternFault."""
    if (size := measure_pattern(root)) > MOST_CHARACTERS:
        raise PatternFault(f"with its repetitions written out, the pattern has {size:,} characters; a pattern has at most {MOST_CHARACTERS:,}")
    if _count_repeats(root) > MOST_REPEATED:
        raise PatternFault(f"repetitions in repetitions repeat a part at most {MOST_REPEATED:,} times by number")


def measure_pattern(node: Node) -> int:
    """Return the number of characters of a pattern, with its repetitions written out."""
    match node:
        case CharacterClass(items, _, subtracted):
            own = sum(_PROPERTY if isinstance(item, CharacterProperty) else 1 for item in items)
            return own + (0 if subtracted is None else measure_pattern(subtracted))
        case Anchor() | Reference():
            return 1
        case Parentheses(inner):
            return measure_pattern(inner)
        case Repeat(inner, least, most):
            return measure_pattern(inner) * max(least, most or 0, 1)
        case Concatenation(parts):
            return sum(map(measure_pattern, parts))
        case Alternation(branches):
            return sum(map(measure_pattern, branches)) + len(branches) - 1
    assert_never(node)


def _count_repeats(node: Node) -> int:
    """Return how often the part is repeated that is repeated most."""
    match node:
        case CharacterClass() | Anchor() | Reference():
            return 1
        case Parentheses(inner):
            return _count_repeats(inner)
        case Repeat(inner, least, most):
            return _count_repeats(inner) * max(least, most or 0, 1)
        case Concatenation(parts) | Alternation(parts):
            return max(map(_count_repeats, parts), default=1)
    assert_never(node)

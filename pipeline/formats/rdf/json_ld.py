"""This module tells which texts of JSON-LD can be parsed in this process.

The parser holds the statements of a whole document, each with its names written out. Contexts make names long:
`@vocab` and `@base` are resolved against those before them, prefixes against prefixes, and the context of a term is
applied wherever the term stands.
"""

import json
from typing import Any

from epsparql.deferred_methods import dataclass
from pipeline.formats.rdf.turtle_lexer import MAX_DEPTH

_MOST = 32 << 20
"""A text may make this many characters in this process."""
_LONGEST = 1 << 18
"""Bytes of a text that is looked at. With a longer one, the start of another process takes little beside the parsing."""


def is_small_when_expanded(text: bytes) -> bool:
    """Tell whether the statements of a text, and the work of its contexts, are surely small. A text that is no JSON
    is not.

    A name cannot be longer than all contexts together, once for each level of nesting, and its own text. Each string,
    number or empty object makes at most one statement of four names. Keys are compared as they are parsed, so their
    spelling does not matter.
    """
    if len(text) > _LONGEST:
        return False
    try:
        whole = _weigh(json.loads(text, object_pairs_hook=_weigh_object))
    except (ValueError, RecursionError):
        return False
    levels = MAX_DEPTH if whole.is_nested else 1
    longest = levels * whole.contexts + 2 * whole.longest
    return 4 * whole.values * longest <= _MOST


@dataclass(frozen=True, slots=True)
class _Weight:
    """Counts a part of a text: its values, the characters of its strings, of the longest one, and of those in contexts.

    `is_nested` says whether there are contexts in contexts.
    """

    values: int = 1
    size: int = 0
    longest: int = 0
    contexts: int = 0
    is_nested: bool = False


def _weigh(value: Any) -> _Weight:
    """Return the weight of a parsed value, in which objects are weighed already."""
    match value:
        case _Weight():
            return value
        case str():
            return _Weight(size=len(value) + 1, longest=len(value))
        case list():
            return _sum_weights([_weigh(each) for each in value])
    return _Weight(size=1)


def _weigh_object(pairs: list[tuple[str, Any]]) -> _Weight:
    parts = [_Weight(size=len(key) + 1, longest=len(key)) for key, _ in pairs]
    for key, value in pairs:
        part = _weigh(value)
        if key == "@context":
            part = _Weight(part.values, part.size, part.longest, part.size, is_nested=part.contexts > 0)
        parts.append(part)
    return _sum_weights(parts)


def _sum_weights(parts: list[_Weight]) -> _Weight:
    return _Weight(
        1 + sum(part.values for part in parts),
        sum(part.size for part in parts),
        max((part.longest for part in parts), default=0),
        sum(part.contexts for part in parts),
        any(part.is_nested for part in parts),
    )

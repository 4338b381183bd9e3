"""This module resolves character classes to ranges of code points: properties, complements, subtraction and variants
of case.
"""

import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import groupby

from epsparql.regex.blocks import list_blocks
from epsparql.regex.syntax import CharacterClass, CharacterProperty, Range

Ranges = tuple[tuple[int, int], ...]
"""Ranges of code points, ends included; in ascending order, with a gap between any two."""

LAST = 0x10FFFF
_LAST_CASED = 0x1FFFF
CATEGORIES = frozenset(
    [
        "L",
        "Lu",
        "Ll",
        "Lt",
        "Lm",
        "Lo",
        "M",
        "Mn",
        "Mc",
        "Me",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Ps",
        "Pe",
        "Pi",
        "Pf",
        "Po",
        "Z",
        "Zs",
        "Zl",
        "Zp",
        "S",
        "Sm",
        "Sc",
        "Sk",
        "So",
        "C",
        "Cc",
        "Cf",
        "Co",
        "Cn",
    ]
)
_NAME_START = (
    *((0x3A, 0x3A), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2FF), (0x370, 0x37D), (0x37F, 0x1FFF)),
    *((0x200C, 0x200D), (0x2070, 0x218F), (0x2C00, 0x2FEF), (0x3001, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF)),
)
_NAME = (*_NAME_START, (0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040))
_SPACE = ((9, 10), (13, 13), (32, 32))


def resolve_class(node: CharacterClass) -> Ranges:
    """Return the characters that a class matches."""
    found = unite(pair for item in node.items for pair in _resolve_item(item))
    found = complement(found) if node.negated else found
    # A without B is what is in neither B nor the complement of A.
    return found if node.subtracted is None else complement(unite((*complement(found), *resolve_class(node.subtracted))))


def _resolve_item(item: Range | CharacterProperty) -> Ranges:
    match item:
        case Range(first, last):
            return ((first, last),)
        case CharacterProperty(name, negated):
            return complement(_resolve_property(name)) if negated else _resolve_property(name)


@cache
def _resolve_property(name: str) -> Ranges:
    match name:
        case "s":
            return _SPACE
        case "i":
            return unite(_NAME_START)
        case "c":
            return unite(_NAME)
        case "d":
            return _resolve_property("Nd")
        case "w":
            return complement(unite((*_resolve_property("P"), *_resolve_property("Z"), *_resolve_property("C"))))
    if name.startswith("Is"):
        return (list_blocks()[name.removeprefix("Is")],)
    return unite(pair for category, pairs in _list_categories().items() if category.startswith(name) for pair in pairs)


@cache
def _list_categories() -> dict[str, list[tuple[int, int]]]:
    found = defaultdict[str, list[tuple[int, int]]](list)
    first = 0
    for category, codes in groupby(map(unicodedata.category, map(chr, range(LAST + 1)))):
        last = first + sum(1 for _ in codes) - 1
        found[category].append((first, last))
        first = last + 1
    return found


def unite(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Return ranges for pairs in any order, which may overlap."""
    found = list[tuple[int, int]]()
    for first, last in sorted(pairs):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    starts, ends = [0, *(last + 1 for _, last in ranges)], [*(first - 1 for first, _ in ranges), LAST]
    return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start <= end)


def list_variants(first: int, last: int) -> list[int]:
    """Return the characters that differ in case alone from one of a range: their lower or their upper case is that of
    one in it.
    """
    table = _list_cased()
    codes, variants = table
    at = bisect_left(codes, first)
    found = list[int]()
    while at < len(codes) and codes[at] <= last:
        found += variants[at]
        at += 1
    return found


@cache
def _list_cased() -> tuple[list[int], list[list[int]]]:
    """Return the characters that have variants of case, in ascending order, and the variants of each."""
    alike = defaultdict[tuple[str, str], list[int]](list)
    cased = list[tuple[int, str, str]]()
    for code in range(_LAST_CASED):
        lower, upper = chr(code).lower(), chr(code).upper()
        if lower != upper:
            cased.append((code, lower, upper))
            alike["lower", lower].append(code)
            alike["upper", upper].append(code)
    variants = [sorted({*alike["lower", lower], *alike["upper", upper]}) for _, lower, upper in cased]
    return [code for code, _, _ in cased], variants


def fold(char: str) -> frozenset[int]:
    """Return a character with its variants of case."""
    return frozenset((ord(char), *list_variants(ord(char), ord(char))))

"""This module writes patterns of XPath for RE2, which has neither back references nor subtraction, and knows no block."""

from typing import assert_never

from epsparql.regex.character_sets import Ranges, resolve_class
from epsparql.regex.syntax import Alternation, Anchor, CharacterClass, CharacterProperty, Concatenation, Node, Parentheses, Range, Reference, Repeat

_SPACE = r" \t\n\r"
_INSIDE = {"d": r"\p{Nd}", "w": r"\p{L}\p{M}\p{N}\p{S}", "s": _SPACE}
"""What a property is within a class. RE2's own \\d, \\w and \\s know ASCII only."""
_UNKNOWN = frozenset(("C", "Cn", "i", "c"))
"""RE2 has no category of what Unicode does not assign."""
_SURROGATES = (0xD800, 0xDFFF)
_ANCHORS = {Anchor.START: r"\A", Anchor.END: r"\z", Anchor.LINE_START: "(?m:^)", Anchor.LINE_END: "(?m:$)"}


def write_pattern(node: Node) -> str:
    """Return a pattern without references in RE2's syntax."""
    match node:
        case CharacterClass():
            return _write_class(node)
        case Anchor():
            return _ANCHORS[node]
        case Parentheses(inner, number):
            return f"({'?:' if number is None else ''}{write_pattern(inner)})"
        case Concatenation(parts):
            return "".join(map(_write_part, parts))
        case Alternation(branches):
            return "|".join(map(write_pattern, branches))
        case Repeat(inner, least, most, lazy):
            return f"{_write_part(inner)}{_write_quantifier(least, most)}{'?' if lazy else ''}"
        case Reference():
            raise AssertionError("RE2 has no references")
    assert_never(node)


def _write_part(node: Node) -> str:
    return f"(?:{write_pattern(node)})" if isinstance(node, Alternation | Concatenation | Repeat) else write_pattern(node)


def _write_quantifier(least: int, most: int | None) -> str:
    match least, most:
        case 0, 1:
            return "?"
        case 0, None:
            return "*"
        case 1, None:
            return "+"
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


def _write_class(node: CharacterClass) -> str:
    match node:
        case CharacterClass((Range(first, last),), False, None) if first == last:
            return _write_code(first)
        case CharacterClass((CharacterProperty(name, negated),), outer, None) if name not in _UNKNOWN and not name.startswith("Is"):
            return f"[{'^' if negated != outer else ''}{_write_property(name)}]"
        case CharacterClass(items, negated, None) if all(map(_is_known, items)):
            return f"[{'^' if negated else ''}{''.join(map(_write_item, items))}]"
    return _write_ranges(resolve_class(node))


def _is_known(item: Range | CharacterProperty) -> bool:
    """Return whether RE2 has an item beside others in a class."""
    if isinstance(item, Range):
        return True
    return item.name not in _UNKNOWN and not item.name.startswith("Is") and not (item.negated and item.name in _INSIDE)


def _write_item(item: Range | CharacterProperty) -> str:
    match item:
        case Range(first, last):
            return _write_code(first) if first == last else f"{_write_code(first)}-{_write_code(last)}"
        case CharacterProperty(name, negated):
            return f"\\P{{{name}}}" if negated else _write_property(name)
    assert_never(item)


def _write_property(name: str) -> str:
    return _INSIDE.get(name, f"\\p{{{name}}}")


def _write_ranges(ranges: Ranges) -> str:
    """Return a class of these ranges. Surrogates are in no text."""
    first, last = _SURROGATES
    kept = [pair for low, high in ranges for pair in ((low, min(high, first - 1)), (max(low, last + 1), high)) if pair[0] <= pair[1]]
    kept = [(low, high) for low, high in kept if not (low >= first and high <= last)]
    return f"[{''.join(_write_item(Range(low, high)) for low, high in sorted(set(kept)))}]" if kept else r"[^\x00-\x{10ffff}]"


def _write_code(code: int) -> str:
    return chr(code) if chr(code).isalnum() and code < 128 else f"\\x{{{code:x}}}"

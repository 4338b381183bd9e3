"""REGEX and REPLACE run on RE2, which takes time linear in the text and in the pattern written out: their product is bounded.

Back-references and character class subtraction, which XPath has and RE2 lacks, are errors. Source: XPath functions, 5.6.1; XML Schema 2, F.
"""

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from engine.expressions.values import MAX_TEXT, ExpressionError

MOST_STEPS, LEAST_TEXT = 1 << 25, 1 << 13
"""The text's characters times the pattern's size are at most MOST_STEPS, a few tenths of a second.

To compile a pattern costs as much as a text of LEAST_TEXT characters.
"""
MOST_SEARCHED = 1 << 14
"""A text has at most so many characters if `replaced` looks in it for what may go on without end.

Each search may go through all of the text, half a second in sum.
"""
_FLAGS = frozenset("smixq")
_GROUP = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\((?!\?))", re.DOTALL)
_SPACE = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\])|[\t\n\r ]+", re.DOTALL)
_PIECE = re.compile(r"\\(.)|(-?)(\[\^?\]?)|(\])", re.DOTALL)
_NAME_START = (
    r":A-Z_a-z\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{2ff}\x{370}-\x{37d}\x{37f}-\x{1fff}\x{200c}-\x{200d}\x{2070}-\x{218f}\x{2c00}-\x{2fef}"
    r"\x{3001}-\x{d7ff}\x{f900}-\x{fdcf}\x{fdf0}-\x{fffd}\x{10000}-\x{effff}"
)
_CLASSES = {
    "d": r"\p{Nd}",
    "w": r"\p{L}\p{M}\p{N}\p{S}",
    "s": r" \t\n\r",
    "i": _NAME_START,
    "c": _NAME_START + r"\-.0-9\x{b7}\x{300}-\x{36f}\x{203f}-\x{2040}",
}
"""The multi-character escapes of XML Schema stand here as the inside of a character class; RE2's own know ASCII only."""
_OPPOSITES = {"D": r"\P{Nd}", "W": r"\p{P}\p{Z}\p{C}", "S": r"\x00-\x08\x0b\x0c\x0e-\x1f!-\x{10ffff}"}
"""These stand inside a class, where ^ cannot help."""
_ATOM = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\.|\{([0-9]+)(?:,([0-9]*))?\}|.", re.DOTALL)
_REPLACEMENT = re.compile(r"\\[\\$]|\$[0-9]+|[^\\$]", re.DOTALL)


@lru_cache(maxsize=1 << 12)
def matches(text: str, pattern: str, flags: str) -> bool:
    """Return whether the pattern is found anywhere in the text, as XPath's fn:matches.

    Raises: ExpressionError.
    """
    return _matches(text, _pattern(pattern, flags, len(text)))


@lru_cache(maxsize=1 << 12)
def replaced(text: str, pattern: str, replacement: str, flags: str) -> str:
    """Replace what the pattern matches, as XPath's fn:replace.

    Raises: ExpressionError, also for a pattern that matches the empty string.
    """
    compiled = _pattern(pattern, flags, len(text))
    if _matches("", compiled) or (len(text) > MOST_SEARCHED and "q" not in flags and _has_no_end(compiled)):
        raise ExpressionError
    groups = 0 if "q" in flags else sum(1 for found in _GROUP.finditer(pattern) if found[1])
    rewrite = replacement.replace("\\", "\\\\") if "q" in flags else _rewrite(replacement, groups)
    try:
        count = pc.count_substring_regex(pa.scalar(text), pattern=compiled).as_py()
        if len(text) + count * len(rewrite) > MAX_TEXT:
            raise ExpressionError
        result: str = pc.replace_substring_regex(pa.scalar(text), pattern=compiled, replacement=rewrite).as_py()
    except pa.ArrowInvalid as error:
        raise ExpressionError from error
    return result


def _matches(text: str, compiled: str) -> bool:
    try:
        found: bool = pc.match_substring_regex(pa.scalar(text), pattern=compiled).as_py()
    except pa.ArrowInvalid as error:
        raise ExpressionError from error
    return found


def _pattern(pattern: str, flags: str, length: int) -> str:
    """Return the pattern in RE2's syntax.

    Raises: ExpressionError, also where it is too large for a text of this length.
    """
    if not _FLAGS.issuperset(flags):
        raise ExpressionError
    most = MOST_STEPS // max(length, LEAST_TEXT)
    if len(pattern) > most:
        raise ExpressionError
    inner = "".join(flag for flag in "smi" if flag in flags)
    if "q" in flags:
        pattern = re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", pattern)
    else:
        if "x" in flags:
            pattern = _SPACE.sub(lambda found: found[1] or "", pattern)
        pattern = _translated(pattern)
        if _size(pattern, most) > most:
            raise ExpressionError
    return f"(?{inner}:{pattern})" if inner else pattern


def _size(pattern: str, most: int) -> int:
    """Count the characters and classes of a pattern in RE2's syntax, its repetitions written out.

    The count is more than `most` where it is not clear.
    """
    opened, total, last = list[int](), 0, 0  # sizes before each open bracket; so far; and of what a repetition would repeat
    for found in _ATOM.finditer(pattern):
        atom = found[0]
        if found[1]:
            repeated = last * (int(found[2] or found[1]) - 1)
            total, last = total + max(repeated, 0), last + max(repeated, 0)
        elif atom == "(":
            opened.append(total)
        elif atom == ")" and opened:
            last = total - opened.pop()
        elif atom in (")", "\\Q"):
            return most + 1
        else:
            last = 1 + len(atom) // 2
            total += last
        if total > most:
            return total
    return most + 1 if opened else total


def _has_no_end(pattern: str) -> bool:
    return any(found[0] in ("*", "+") or found[2] == "" for found in _ATOM.finditer(pattern))


def _translated(pattern: str) -> str:
    """Return the pattern with XML Schema's character classes written out.

    Raises: ExpressionError.
    """
    inside = False

    def piece(found: re.Match[str]) -> str:
        nonlocal inside
        escaped, minus, opening, closing = found.groups()
        if escaped is not None:
            return _class_of(escaped, inside) or found[0]
        if inside and minus:
            raise ExpressionError  # [a-z-[aeiou]]
        ends = closing is not None or opening.endswith("]")  # a ] closes a class unless it is the first in it
        inside = not ends if inside else opening is not None
        return found[0]

    return _PIECE.sub(piece, pattern)


def _class_of(letter: str, inside: bool) -> str | None:
    """Return what a multi-character escape stands for; None if it is none."""
    if letter.lower() not in _CLASSES:
        return None
    if not inside:
        return f"[{'^' if letter.isupper() else ''}{_CLASSES[letter.lower()]}]"
    if letter.islower():
        return _CLASSES[letter]
    if letter not in _OPPOSITES:
        raise ExpressionError
    return _OPPOSITES[letter]


def _rewrite(replacement: str, groups: int) -> str:
    """Return the replacement with `$1` as RE2 writes it; a group that the pattern does not have is empty.

    Raises: ExpressionError.
    """
    parts = _REPLACEMENT.findall(replacement)
    if "".join(parts) != replacement:
        raise ExpressionError  # a lone \ or $
    return "".join(_rewrite_part(part, groups) for part in parts)


def _rewrite_part(part: str, groups: int) -> str:
    if part[0] == "\\":
        return "\\\\" if part == "\\\\" else "$"
    if part[0] != "$":
        return part
    digits = part[1:]
    while len(digits) > 1 and int(digits) > groups:  # $12 is group 1 and a 2 where there are fewer than 12 groups
        digits = digits[:-1]
    group, rest = int(digits), part[1 + len(digits) :]
    if group > 9:
        raise ExpressionError  # RE2 rewrites know single digits only
    return (f"\\{group}" if group <= groups else "") + rest

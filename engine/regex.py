"""REGEX and REPLACE by RE2, which takes time linear in the text: no pattern can hold the engine up.

What XPath has and RE2 lacks (back-references, character class subtraction, \\i and \\c) is an error.
"""

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from engine.values import ExpressionError

_FLAGS = frozenset("smixq")
_GROUP = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\((?!\?))", re.DOTALL)
_SPACE = re.compile(r"(\\.|\[(?:\\.|[^\]\\])*\])|[\t\n\r ]+", re.DOTALL)
_REPLACEMENT = re.compile(r"\\[\\$]|\$[0-9]+|[^\\$]", re.DOTALL)


@lru_cache(maxsize=1 << 12)
def matches(text: str, pattern: str, flags: str) -> bool:
    """XPath's fn:matches: whether the pattern is found anywhere in the text. Raises: ExpressionError."""
    return _matches(text, _pattern(pattern, flags))


@lru_cache(maxsize=1 << 12)
def replaced(text: str, pattern: str, replacement: str, flags: str) -> str:
    """XPath's fn:replace. Raises: ExpressionError, also for a pattern that matches the empty string."""
    compiled = _pattern(pattern, flags)
    if _matches("", compiled):
        raise ExpressionError
    groups = 0 if "q" in flags else sum(1 for found in _GROUP.finditer(pattern) if found[1])
    rewrite = replacement.replace("\\", "\\\\") if "q" in flags else _rewrite(replacement, groups)
    try:
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


def _pattern(pattern: str, flags: str) -> str:
    """In RE2's syntax."""
    if not _FLAGS.issuperset(flags):
        raise ExpressionError
    inner = "".join(flag for flag in "smi" if flag in flags)
    if "q" in flags:
        pattern = re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", pattern)
    elif "x" in flags:
        pattern = _SPACE.sub(lambda found: found[1] or "", pattern)
    return f"(?{inner}:{pattern})" if inner else pattern


def _rewrite(replacement: str, groups: int) -> str:
    """`$1` as RE2 writes it; a group that the pattern does not have is empty."""
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

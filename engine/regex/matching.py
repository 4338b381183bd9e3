"""REGEX and REPLACE run on RE2, which takes time linear in the text and in the pattern written out: their product is
bounded.

RE2 has no back references: patterns with them are matched by backtracking, in a bounded number of steps.
"""

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa

from engine.regex.backtracking import Captures, RegexProgram
from engine.regex.re2 import write_pattern
from epsparql.deferred_methods import dataclass
from epsparql.regex.pattern_parser import parse_pattern
from epsparql.regex.pattern_size import measure_pattern
from epsparql.regex.replacement import parse_replacement
from epsparql.regex.syntax import Anchor, Pattern, PatternFault, Reference, Repeat, walk

MOST_STEPS = 1 << 25
"""The text's characters times the pattern's size are at most so many, a few tenths of a second."""
MOST_SEARCHED = 1 << 14
"""A text has at most so many characters if `replace_matches` looks in it for what may go on without end.

Each search may go through all of the text, half a second in sum.
"""
_RE2_GROUPS = 9
"""RE2's replacements have groups of one digit."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    """Holds a pattern as RE2 reads it, None where it has references; and its size.

    With `m`, RE2's ^ matches after the text's last line feed too.
    """

    pattern: Pattern
    re2: str | None
    size: int
    has_line_start: bool


@lru_cache(maxsize=1 << 12)
def find_match(text: str, pattern: str, flags: str) -> bool:
    """Return whether the pattern is found anywhere in the text, as XPath's fn:matches. Raises: PatternFault."""
    compiled = _compile(pattern, flags)
    return _find_match(text, compiled)


def find_matches(texts: pa.Array, pattern: str, flags: str) -> pa.Array | None:
    """Return in which texts, none of which ends with a line break, the pattern is found; null for texts that are too
    long.

    The result is None for a pattern with back references. Raises: PatternFault.
    """
    import pyarrow.compute as pc  # as in `replace_matches`

    compiled = _compile(pattern, flags)
    if compiled.re2 is None:
        return None
    try:
        found = pc.match_substring_regex(texts, pattern=compiled.re2)
    except pa.ArrowInvalid as error:
        raise PatternFault(str(error)) from error
    return pc.if_else(pc.less_equal(pc.utf8_length(texts), MOST_STEPS // max(compiled.size, 1)), found, pa.scalar(None, pa.bool_()))


@lru_cache(maxsize=1 << 12)
def replace_matches(text: str, pattern: str, replacement: str, flags: str, most: int) -> str:
    """Replace what the pattern matches, as XPath's fn:replace, with at most `most` characters.

    Raises: PatternFault, also for a pattern that matches the empty text.
    """
    import pyarrow.compute as pc  # it takes 0.1 s to load, so only where a text is searched

    compiled = _compile(pattern, flags)
    parts = parse_replacement(replacement, flags, compiled.pattern.groups)
    if _find_match("", compiled):
        raise PatternFault("the pattern of REPLACE matches the empty text")
    re2 = compiled.re2
    if re2 is None or _needs_backtracking(text, compiled) or max((part for part in parts if isinstance(part, int)), default=0) > _RE2_GROUPS:
        return _replace_by_backtracking(text, compiled, parts, most)
    if len(text) > MOST_SEARCHED and _has_no_end(compiled.pattern):
        raise PatternFault(f"REPLACE takes a text of at most {MOST_SEARCHED:,} characters if its pattern has * or +")
    _check_steps(text, compiled)
    rewrite = "".join(part.replace("\\", r"\\") if isinstance(part, str) else f"\\{part}" for part in parts)
    try:
        count = pc.count_substring_regex(pa.scalar(text), pattern=re2).as_py()
        _check_length(len(text) + count * len(rewrite), most)
        result: str = pc.replace_substring_regex(pa.scalar(text), pattern=re2, replacement=rewrite).as_py()
    except pa.ArrowInvalid as error:
        raise PatternFault(str(error)) from error
    return result


@lru_cache(maxsize=1 << 10)
def _compile(pattern: str, flags: str) -> _Compiled:
    parsed = parse_pattern(pattern, flags)
    nodes = list(walk(parsed.root))
    re2 = None if any(isinstance(node, Reference) for node in nodes) else write_pattern(parsed.root)
    return _Compiled(parsed, re2, measure_pattern(parsed.root), Anchor.LINE_START in nodes)


@lru_cache(maxsize=1 << 8)
def _compile_program(pattern: Pattern) -> RegexProgram:
    return RegexProgram(pattern)


def _needs_backtracking(text: str, compiled: _Compiled) -> bool:
    return compiled.re2 is None or (compiled.has_line_start and text.endswith("\n"))


def _find_match(text: str, compiled: _Compiled) -> bool:
    import pyarrow.compute as pc  # as above

    _check_steps(text, compiled)
    if compiled.re2 is None or _needs_backtracking(text, compiled):
        return next(_compile_program(compiled.pattern).find_matches(text), None) is not None
    try:
        found: bool = pc.match_substring_regex(pa.scalar(text), pattern=compiled.re2).as_py()
    except pa.ArrowInvalid as error:
        raise PatternFault(str(error)) from error
    return found


def _check_steps(text: str, compiled: _Compiled) -> None:
    if compiled.size * len(text) > MOST_STEPS:
        raise PatternFault(f"the pattern's size of {compiled.size:,} times the text's length of {len(text):,} is over {MOST_STEPS:,}")


def _check_length(length: int, most: int) -> None:
    if length > most:
        raise PatternFault(f"the replaced text would have {length:,} characters; a text has at most {most:,}")


def _has_no_end(pattern: Pattern) -> bool:
    return any(isinstance(node, Repeat) and node.most is None for node in walk(pattern.root))


def _replace_by_backtracking(text: str, compiled: _Compiled, parts: tuple[str | int, ...], most: int) -> str:
    found, at, length = list[str](), 0, 0
    for captures in _compile_program(compiled.pattern).find_matches(text):
        found.append(text[at : captures[0]])
        for piece in _fill(text, parts, captures):
            found.append(piece)
            length += len(piece)
            _check_length(length, most)
        at = captures[1]
    result = "".join((*found, text[at:]))
    _check_length(len(result), most)
    return result


def _fill(text: str, parts: tuple[str | int, ...], captures: Captures) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif 0 <= (start := captures[2 * part]) < (end := captures[2 * part + 1]):
            yield text[start:end]

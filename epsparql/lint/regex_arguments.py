"""This module checks the constant patterns, replacements and flags of REGEX and REPLACE, with which the functions
would have no value.
"""

import re

from epsparql.lint.diagnostics import Reason
from epsparql.parser import ast as s
from epsparql.regex.pattern_parser import FLAGS, parse_pattern
from epsparql.regex.replacement import parse_replacement
from epsparql.regex.syntax import PatternFault, matches_empty

_DOUBLED = re.compile(r"(?<!\\)(?:\\\\)+([1-9])")


def find_regex_fault(call: s.BuiltInCall) -> Reason | None:
    """Return why a call of REGEX or REPLACE never has a value, as far as its constants tell."""
    pattern, flags = _read_arguments(call)
    if pattern is None or flags is None:
        return None
    try:
        parsed = parse_pattern(pattern, flags)
    except PatternFault as fault:
        blamed = call.arguments[1 if set(FLAGS).issuperset(flags) else -1]
        return Reason(f"{call.name}: {fault}", blamed.span)
    if call.name != "REPLACE":
        return None
    if matches_empty(parsed.root):
        return Reason("REPLACE: the pattern matches the empty text, which nothing can replace; write + instead of *", call.arguments[1].span)
    replacement = _read_text(call.arguments[2])
    try:
        parse_replacement(replacement or "", flags, parsed.groups)
    except PatternFault as fault:
        return Reason(f"REPLACE: {fault}", call.arguments[2].span)
    return None


def find_doubled_escape(call: s.BuiltInCall) -> Reason | None:
    r"""Return the doubt about a pattern with groups that matches \ and a digit: a reference to a group was probably meant."""
    pattern, flags = _read_arguments(call)
    found = None if pattern is None or flags is None or "q" in flags else _DOUBLED.search(pattern)
    if found is None or pattern is None or parse_pattern(pattern, flags or "").groups < int(found[1]):
        return None
    message = rf"this pattern matches the characters \{found[1]}; a reference to group {found[1]} is written with half as many \ in a query"
    return Reason(message, call.arguments[1].span)


def _read_arguments(call: s.BuiltInCall) -> tuple[str | None, str | None]:
    """Return the pattern and the flags; None where they are not constant."""
    at = 3 if call.name == "REPLACE" else 2
    return _read_text(call.arguments[1]), _read_text(call.arguments[at]) if len(call.arguments) > at else ""


def _read_text(node: s.Expression) -> str | None:
    match node:
        case s.StringLiteral(lexical, None, None, _):
            return lexical
    return None

"""This module recognises expressions of SELECT without their brackets, in the order of the language or as the papers
print them (`?v AS expression`).
"""

import re

from epsparql.errors import Edit
from epsparql.literals import show_lexical
from epsparql.parser.slips.stops import Slip, Stop, find_close, list_lexemes, next_lexeme, skip_blanks
from epsparql.trees import replace_fields

_LIST = {"another variable", "variables, '*' or (expression AS ?variable)"}
_OPERATORS = {"+", "-", "*", "/", "=", "!=", "<", "<=", ">", ">=", "&&", "||"}
_SIGNED = re.compile(r"[+-][0-9.]")
_VARIABLE = re.compile(r"[?$]\w+")
_ALONE = re.compile(r"[?$]?\w+")
_OPERAND = re.compile(r"[?$]\w|[+-]?\.?[0-9]|[\"'<]|(?:\w[\w.\-]*)?:|\w")
_NOT_IN_ITEMS = {"AS", "WHERE", "FROM", "SELECT", "GROUP", "ORDER", "HAVING", "WINDOW", "LIMIT", "OFFSET", "VALUES", "FILTER"}
_MOST_ITEMS = 200


def name_expression(stop: Stop) -> Slip | None:
    """Recognise an expression of SELECT that is not in brackets together with its name."""
    listed = bool(_LIST & set(stop.expected))
    if listed and stop.lexeme == ",":
        return Slip((Edit(stop.at, stop.end, ""),))
    if not listed and not ("AS" in stop.expected and stop.lexeme == ")"):
        return None
    item = _find_item(stop)
    if item is None:
        return None
    start, end, written = item
    slip = Slip((Edit(start, end, written),), show_lexical(written))
    if stop.word == "AS":
        message, expected = "an expression of SELECT stands in brackets, with its name", "(expression AS ?variable)"
    elif stop.word in stop.functions:
        message, expected = "an expression of SELECT stands in brackets, with a name", f"({stop.lexeme}(...) AS ?variable)"
    else:
        return slip
    return replace_fields(slip, message=message, expected=expected)


def _find_item(stop: Stop) -> tuple[int, int, str] | None:
    """Return the stretch of the item of SELECT in which the text stopped, and the item as it is to be written."""
    at = _find_list(stop)
    for _ in range(_MOST_ITEMS if at is not None else 0):
        assert at is not None
        start = skip_blanks(stop.text, at)
        first = find_expression_end(stop.text, start)
        if first is None:
            return None
        end, left, right = first, stop.text[start:first], ""
        if next_lexeme(stop.text, first).upper() == "AS":
            word = next(list_lexemes(stop.text, first))
            second = find_expression_end(stop.text, word.end())
            if second is None:
                return None
            end, right = second, stop.text[skip_blanks(stop.text, word.end()) : second]
        if start <= stop.at <= end and not (right == "" and _ALONE.fullmatch(left)):
            return _write_item(stop, start, end, (left, right))
        at = end
    return None


def _write_item(stop: Stop, start: int, end: int, parts: tuple[str, str]) -> tuple[int, int, str] | None:
    left, right = parts
    if right == "":
        if left.startswith("(") and find_close(left, 0) == len(left) - 1:
            left = left[1:-1].strip()
        return start, end, f"({left} AS {_invent_name(stop.text, left)})"
    if _VARIABLE.fullmatch(right):
        return start, end, f"({left} AS {right})"
    return (start, end, f"({right} AS {left})") if _VARIABLE.fullmatch(left) else None


def _invent_name(text: str, expression: str) -> str:
    word = re.match(r"[A-Za-z]+", expression)
    base = f"?{word[0].lower()}" if word else "?value"
    used = set(_VARIABLE.findall(text))
    return next(name for name in (base, *(f"{base}{number}" for number in range(2, len(used) + 3))) if name not in used)


def _find_list(stop: Stop) -> int | None:
    """Return where the list of the last SELECT before the stop begins."""
    start = None
    for found in list_lexemes(stop.text, 0, stop.at):
        word = found[0].upper()
        if word == "SELECT" or (start is not None and word in ("DISTINCT", "REDUCED") and stop.text[start : found.start()].strip() == ""):
            start = found.end()
        elif word in ("WHERE", "FROM") or found[0] == "{":
            start = None
    return start


def find_expression_end(text: str, at: int, *, single: bool = False) -> int | None:
    """Return where the expression ends that begins at a place, about as the grammar has it; None if there is none.

    A `single` one has no operators.
    """
    end = _find_operand_end(text, skip_blanks(text, at))
    while end is not None and not single:
        following = next_lexeme(text, end)
        start = skip_blanks(text, end)
        if following in _OPERATORS:
            more = _find_operand_end(text, skip_blanks(text, start + len(following)))
        elif _SIGNED.match(following):
            more = start + len(following)
        else:
            return end
        if more is None:
            return end
        end = more
    return end


def _find_operand_end(text: str, at: int) -> int | None:
    while next_lexeme(text, at) in ("!", "-", "+"):
        at = skip_blanks(text, skip_blanks(text, at) + 1)
    if text.startswith("(", at):
        close = find_close(text, at)
        return None if close is None else close + 1
    first = next(list_lexemes(text, at), None)
    if first is None or not _OPERAND.match(first[0]) or first[0].upper() in _NOT_IN_ITEMS:
        return None
    end = first.end()
    opening = skip_blanks(text, end)
    if first[0][0] in "\"'" and text.startswith("^^", end):
        datatype = next(list_lexemes(text, end + 2), None)
        return end if datatype is None else datatype.end()
    if text.startswith("(", opening) and first[0][0] not in "?$\"'" and not first[0][0].isdigit():
        close = find_close(text, opening)
        return None if close is None else close + 1
    return end

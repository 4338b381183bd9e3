"""This module recognises brackets that are missing, left over, or of another kind than the language has at their place."""

import re

from epsparql.errors import Edit
from epsparql.literals import show_lexical
from epsparql.parser.slips.foreign_words import find_near_keyword
from epsparql.parser.slips.select_items import find_expression_end
from epsparql.parser.slips.stops import CLOSES, OPENS, Slip, Stop, find_close, find_region, last_lexeme, list_lexemes, list_open, next_lexeme

_GROUPS = {"a group in braces", "a pattern in braces", "a template in braces"}
_AFTER_PATTERNS = ("WHERE", "FROM", "INTO", "FOR", "SEQOPTIONAL", "GROUP", "HAVING", "ONCE", "ORDER", "LIMIT", "OFFSET", "VALUES")
_CALL_IN_FILTER = re.compile(r"(?i)\bFILTER\s+(!?\s*\w+\s*\([^()]*\))\s*\Z")
_COMPARISONS = ("<", ">", "<=", ">=", "=", "!=", "&&", "||", "+", "-", "*", "/")
_FEWEST = 3
"""A pattern has at least this many words: those of a triple."""


def enclose_group(stop: Stop) -> Slip | None:
    """Recognise a pattern or a template without braces, or in other brackets."""
    if not any(each.startswith(tuple(_GROUPS)) for each in stop.expected) or {"another variable"} & set(stop.expected):
        return None
    if stop.lexeme in ("(", "["):
        return _change_brackets(stop, "{", "}")
    if stop.lexeme == "" or stop.lexeme in CLOSES or stop.word in stop.elements:
        return None
    end, words = find_region(stop.text, stop.at, {*stop.elements, *_AFTER_PATTERNS} - {"VALUES"})
    if words < _FEWEST:
        return None
    return _enclose(stop.text, stop.at, end, ("{ ", " }"))


def enclose_left_group(stop: Stop) -> Slip | None:
    """Recognise an operator over time whose left operand has no braces."""
    if stop.word not in stop.elements or stop.word in ("FILTER", "BIND", "OPTIONAL", "MINUS") or "an operator such as SEQ" in stop.expected:
        return None
    opened = list_open(stop.text, stop.at)
    before = last_lexeme(stop.text, stop.at)
    if not opened or opened[-1][0] != "{" or before is None or before[0].upper() in stop.keywords or before.start() == opened[-1][1]:
        return None
    start = next(list_lexemes(stop.text, opened[-1][1] + 1)).start()
    return _enclose(stop.text, start, before.end(), ("{ ", " }"))


def _enclose(text: str, start: int, end: int, brackets: tuple[str, str]) -> Slip:
    edits = (Edit(start, start, brackets[0]), Edit(end, end, brackets[1]))
    return Slip(edits, show_lexical(" ".join(f"{brackets[0]}{text[start:end]}{brackets[1]}".split())))


def _change_brackets(stop: Stop, opening: str, closing: str) -> Slip | None:
    close = find_close(stop.text, stop.at)
    if close is None:
        return None
    edits = (Edit(stop.at, stop.at + 1, opening), Edit(close, close + 1, closing))
    return Slip(edits, f"{opening} ... {closing}")


def close_bracket(stop: Stop) -> Slip | None:
    """Recognise a bracket that is not closed, or that closes nothing."""
    opened = [bracket for bracket, _ in list_open(stop.text, stop.at)]
    before = last_lexeme(stop.text, stop.at)
    if opened and before is not None and f"'{OPENS[opened[-1]]}'" in stop.expected:
        closing = OPENS[opened[-1]]
        if stop.lexeme == "":
            return Slip((Edit(before.end(), before.end(), "".join(f" {OPENS[each]}" for each in reversed(opened))),))
        ends = CLOSES.get(stop.lexeme) in opened[:-1] or stop.word in _AFTER_PATTERNS or (closing != "}" and stop.word in stop.elements)
        if ends:
            return Slip((Edit(before.end(), before.end(), f" {closing}"),), f"{closing} before {stop.lexeme}")
    if stop.lexeme in CLOSES and CLOSES[stop.lexeme] not in opened and {"the end of the query", "'}'"} & set(stop.expected):
        return Slip((Edit(stop.at, stop.end, ""),))
    return None


def enclose_condition(stop: Stop) -> Slip | None:
    """Recognise a condition without brackets after FILTER or HAVING."""
    if "a condition in brackets or a function call" in stop.expected:
        if stop.lexeme in ("{", "["):
            return _change_brackets(stop, "(", ")")
        end = find_expression_end(stop.text, stop.at)
        return None if end is None else _enclose(stop.text, stop.at, end, ("(", ")"))
    if stop.lexeme not in _COMPARISONS:
        return None
    first = max(0, stop.at - 200)
    call = _CALL_IN_FILTER.search(stop.text[first : stop.at])
    end = None if call is None else find_expression_end(stop.text, first + call.start(1))
    return None if call is None or end is None else _enclose(stop.text, first + call.start(1), end, ("(", ")"))


def complete_call(stop: Stop) -> Slip | None:
    """Recognise a function or a BIND without its brackets."""
    before = last_lexeme(stop.text, stop.at)
    if list(stop.expected) != ["'('"] or before is None or stop.lexeme == "":
        return None
    if before[0].upper().startswith("GET") or before[0].upper() in ("NOW", "RAND", "UUID", "STRUUID"):
        edits = (Edit(before.end(), before.end(), "()"),)
        return Slip(edits, f"{before[0]}()")
    if before[0].upper() not in (*stop.functions, "BIND") or stop.lexeme in CLOSES:
        return None
    end = find_expression_end(stop.text, stop.at, single=before[0].upper() != "BIND")
    if end is not None and next_lexeme(stop.text, end).upper() == "AS":
        following = list(list_lexemes(stop.text, end, min(len(stop.text), end + 80)))[:2]
        end = following[-1].end()
    if end is None:
        return None
    return _enclose(stop.text, stop.at, end, ("(", ")"))


def separate_triples(stop: Stop) -> Slip | None:
    """Recognise two triples without a dot between them, and a comma or a semicolon after the last one."""
    before = last_lexeme(stop.text, stop.at)
    if stop.lexeme in ("}", ".") and "an object" in stop.expected and before is not None and before[0] == ",":
        return Slip((Edit(before.start(), before.end(), ""),), f"{stop.lexeme} without the comma")
    if "'.'" not in stop.expected or not re.match(r"[?$<]|_:|[\w.\-]*:|\w", stop.lexeme):
        return None
    if stop.word in stop.keywords or (stop.is_word and find_near_keyword(stop.lexeme, stop.keywords) and next_lexeme(stop.text, stop.end) in "({"):
        return None
    if not re.match(r"[?$<:]|\w", next_lexeme(stop.text, stop.end)):
        return None
    at = stop.at if before is None else before.end()
    return Slip((Edit(at, at, " ."),), f". {show_lexical(stop.lexeme)}")

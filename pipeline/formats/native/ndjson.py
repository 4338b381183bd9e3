"""This module turns ndjson, one object of plain members per line, to cells of term numbers and times.

Terms are kept as they stand in JSON, between its quotes.
"""

from typing import Any, NamedTuple

import numpy as np

from pipeline.formats.native.interning import CLOSE, MAX_TERM, ODD, PLAIN, grown, new_table, number_at, put, slot_of
from pipeline.formats.native.nquads import OTHERWISE
from pipeline.formats.native.swar import NONE, borrowed, native, starts
from pipeline.formats.native.terms import (
    BACKSLASH,
    COLON,
    LESS,
    NEWLINE,
    QUOTE,
    RETURN,
    after_blanks,
    plain_iri,
    plain_suffix,
    plain_text,
    string_end,
)
from pipeline.formats.native.timestamps import NO_TIME, instant

_OPEN, _CLOSE, _COMMA = (np.uint8(ord(c)) for c in "{},")
_NULL = np.frombuffer(b"null", np.uint8)

S, P, O, G, AT_TIME, FROM, TO, ID = range(8)  # noqa: E741 - the members' names
_MEMBERS = (np.uint8(ord("s")), np.uint8(ord("p")), np.uint8(ord("o")), np.uint8(ord("g")))
_AT, _START, _END, _ID = (np.frombuffer(name, np.uint8) for name in (b'at"', b'start"', b'end"', b'id"'))


class _Body(NamedTuple):
    """Holds a body's text, the seed of its terms' hashes, and what is filled while it is read."""

    text: Any
    seed: Any
    columns: Any  # of term numbers, a row a place
    spans: Any
    flags: Any
    values: Any  # where the strings of the line's members stand, a row a member


@native.inlined
def _member(text, i):
    """Return the member whose name stands after the quote before `i`, and the place after the name's quote.

    Any other name gives NONE, and `i` itself.
    """
    if i + 1 < len(text) and text[i + 1] == QUOTE:
        for k in range(4):
            if text[i] == _MEMBERS[k]:
                return k, i + 2
        return NONE, i
    if starts(text, i, _AT):
        return AT_TIME, i + len(_AT)
    if starts(text, i, _START):
        return FROM, i + len(_START)
    if starts(text, i, _END):
        return TO, i + len(_END)
    if starts(text, i, _ID):
        return ID, i + len(_ID)
    return NONE, i


@native.jit
def _flag(text, spans, number, i, end):
    """Return PLAIN or ODD for a term that stands at text[i:end] in JSON; set CLOSE of a plain literal."""
    if text[i] == LESS:
        return PLAIN if plain_iri(text, i, end) else ODD
    k = i + 2
    while k < end and text[k] != BACKSLASH:
        k += 1
    if k + 1 < end and text[k + 1] == QUOTE and plain_text(text, i + 2, k) and plain_suffix(text, k + 2, end):
        spans[number, CLOSE] = k
        return PLAIN
    return ODD


@native.inlined
def _term(body, i, end, key, place, table, count):
    """Return the number of the term at text[i:end], or `count` if the term is new.

    NONE stands for a term of no kind that may stand there without being looked at.
    """
    text, spans = body.text, body.spans
    iri = i < end and text[i] == LESS
    literal = place == O and i + 1 < end and text[i] == BACKSLASH and text[i + 1] == QUOTE
    if not (iri or literal) or end - i > MAX_TERM:
        return NONE
    slot = slot_of(text, table, spans, key, i, end - i)
    if slot == NONE:
        return NONE
    number = number_at(table, slot)
    if number == NONE:
        number = count
        put(table, slot, spans, number, key, i, end - i)
        body.flags[number] = _flag(text, spans, number, i, end)
    return number


@native.jit
def _interval(text, found, values, default_start, default_end):
    """Return start and end of a line whose members stand at `values`; NO_TIME where they are for the exact path."""
    if found & (1 << AT_TIME):
        if found & (1 << FROM | 1 << TO):
            return NO_TIME, NO_TIME
        at = instant(text, values[AT_TIME, 0], values[AT_TIME, 1])
        return at, at
    if not found & (1 << FROM | 1 << TO):
        return default_start, default_end
    if not (found & (1 << FROM) and found & (1 << TO)):
        return NO_TIME, NO_TIME
    start, end = instant(text, values[FROM, 0], values[FROM, 1]), instant(text, values[TO, 0], values[TO, 1])
    if start == NO_TIME or end == NO_TIME or start > end:
        return NO_TIME, NO_TIME
    return start, end


@native.inlined
def _text_value(body, i, member, row, table, count):
    """Read a member's string, whose quote stands at `i`.

    Return the place after it (NONE where it is for the exact path), the table, and the number of terms.
    """
    text, begin = body.text, i + 1
    i, key, escapes = string_end(text, begin, body.seed)
    if i == NONE:
        return NONE, table, count
    body.values[member, 0], body.values[member, 1] = begin, i - 1
    if member > G:
        return NONE if escapes or not plain_text(text, begin, i - 1) else i, table, count
    number = _term(body, begin, i - 1, key, member, table, count)
    if number == NONE:
        return NONE, table, count
    if number == count:
        count += 1
        if 2 * count > len(table):
            table = grown(table, body.spans, count)
    body.columns[member, row] = number
    return i, table, count


@native.inlined
def _object(body, i, row, table, count):
    """Read the object whose brace is before `i`.

    Return the place after it (NONE where it is for the exact path), its members as bits, the table, and the number of terms.
    """
    text, found = body.text, 0
    body.columns[G, row] = NONE
    while True:
        i = after_blanks(text, i)
        if i == len(text) or text[i] != QUOTE:
            return NONE, found, table, count
        member, i = _member(text, i + 1)
        i = after_blanks(text, i)
        if member == NONE or found & (1 << member) or i == len(text) or text[i] != COLON:
            return NONE, found, table, count
        found |= 1 << member
        i = after_blanks(text, i + 1)
        if member == G and starts(text, i, _NULL):
            i += len(_NULL)
        elif i < len(text) and text[i] == QUOTE:
            i, table, count = _text_value(body, i, member, row, table, count)
            if i == NONE:
                return NONE, found, table, count
        else:
            return NONE, found, table, count
        i = after_blanks(text, i)
        if i == len(text) or (text[i] != _CLOSE and text[i] != _COMMA):
            return NONE, found, table, count
        i += 1
        if text[i - 1] == _CLOSE:
            return i, found, table, count


@native.inlined
def _after_line(text, i):
    """Return the place after the line's end, NONE where more stands on the line."""
    i = after_blanks(text, i)
    if i < len(text) and text[i] == RETURN:
        i += 1
    if i == len(text):
        return i
    return i + 1 if text[i] == NEWLINE else NONE


@native.entry_point
def events_of(text, seed, frame, default, columns, times, terms):
    """Read events, a line each. `frame` says that lines may have an id; an event without time has the `default` (start, end).

    Fill `columns` with term numbers (a row a place), `times` (starts, ends) and `terms` (spans, flags). Return the number of events, or OTHERWISE,
    and the number of terms, and where in the text the first line's id begins and ends, both NONE if there is none.
    """
    values = np.empty((8, 2), np.int64)  # it lives through the loop, so the body may borrow it
    body = _Body(borrowed(text), seed, borrowed(columns), borrowed(terms[0]), borrowed(terms[1]), borrowed(values))
    text, starts_, ends = body.text, times[0], times[1]
    table, count, row, line, i, first, after = new_table(), 0, 0, 0, 0, NONE, NONE
    while i < len(text):
        i = after_blanks(text, i)
        if i == len(text):
            break
        if text[i] == NEWLINE or text[i] == RETURN:
            i += 1
            continue
        if text[i] != _OPEN:
            return OTHERWISE, count, first, after
        i, found, table, count = _object(body, i + 1, row, table, count)
        if i != NONE:
            i = _after_line(text, i)
        if i == NONE or (found & (1 << ID) and not frame):
            return OTHERWISE, count, first, after
        if found & (1 << ID) and line == 0:
            first, after = values[ID, 0], values[ID, 1]
        line += 1
        if found == 1 << ID:
            continue
        starts_[row], ends[row] = _interval(text, found, values, default[0], default[1])
        if found & 7 != 7 or starts_[row] == NO_TIME:
            return OTHERWISE, count, first, after
        row += 1
    return row, count, first, after

"""This module writes solutions as JSON text. N-Triples terms become JSON terms nearly by copying, since most escapes of the two are the same."""

from typing import Any, NamedTuple

import numpy as np

from engine.messages import END_OF_TIME
from engine.revision import change_rows
from engine.runtime.watermarks import NO_TIME
from pipeline.formats.native.swar import borrowed, copied, first_of, marks, marks_of_controls, native, put_word, starts, word_at
from pipeline.formats.native.terms import BACKSLASH, LESS, NEWLINE, QUOTE, UNDERSCORE, term_end
from pipeline.formats.native.timestamps import put_instant

INSTANT_WIDTH = 20
assert INSTANT_WIDTH == change_rows.INSTANT_WIDTH, "the key of the compiled code sees this file alone, so a change has to be made here, too"
BINDINGS, TRIPLES, VERDICT, CHANGED = range(4)
"""Forms: what a solution's values are (pipeline/solutions/result_kinds.py, `Form`). CHANGED is added to that of a revised query, whose first value is a
change's header (engine/revision/change_rows.py).
"""

LINES, OBJECTS, HEADS, MESSAGES, FRAMES, EVENTS = range(6)
"""Kinds of text: ndjson; bindings alone, with commas between them; ids and times, likewise; lines that are messages to subscribers; each such
message as a WebSocket frame; Server-Sent Events.
"""


def _bytes(text):
    return np.frombuffer(text.encode(), np.uint8)


_URI, _BNODE, _LITERAL = (_bytes(f'{{"type":"{kind}","value":"') for kind in ("uri", "bnode", "literal"))
_TRIPLE, _PREDICATE, _OBJECT = (_bytes(text) for text in ('{"type":"triple","value":{"subject":', ',"predicate":', ',"object":'))
_DIRECTION = _bytes('","its:dir":"')
_DATATYPE, _LANGUAGE, _STRING = _bytes('","datatype":"'), _bytes('","xml:lang":"'), _bytes('"^^<http://www.w3.org/2001/XMLSchema#string>')
_START, _END, _BINDING, _TRIPLES, _VERDICT = (_bytes(t) for t in ('","start":"', '","end":"', '","binding":{', '","triples":"', '","boolean":'))
_TRUE_TERM, _TRUE, _FALSE = _bytes('"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'), _bytes("true"), _bytes("false")
_HEX = _bytes("0123456789abcdef")
_ID, _OPEN, _END_OF_HEAD = (_bytes(t) for t in ('{"id":"', "{", '"}'))
_SOLUTION, _CHANGE, _EVENT_ID, _EVENT_DATA = (_bytes(text) for text in ('{"solution":', '{"change":', "id: ", "\ndata: "))
_ADDED, _WITHDRAWN = _bytes('","added":[{"id":"'), _bytes('","added":[],"withdrawn":[{"id":"')
_AFTER_ADDED, _AFTER_WITHDRAWN, _MORE = (_bytes(text) for text in ('],"withdrawn":[],"settled":', '],"settled":', ',"more":true'))
_NULL, _FINISHED = _bytes("null"), _bytes('"finished"')
_MORE_AT, _SETTLED_AT = 2, 4  # where these begin in a header, each after a blank
_END_AT = _SETTLED_AT + INSTANT_WIDTH + 1
_ID_AT = _END_AT + INSTANT_WIDTH + 1
_CLOSE, _COMMA, _U, _LARGE_U, _DASH, _BLANK, _PLUS, _ONE = (np.uint8(ord(c)) for c in "},uU- +1")
_TEXT_FRAME, _HEADER = 0x81, 4
_TEXT_ROOM, _ROW_ROOM = 128, 256
_NAMED = np.zeros(32, np.uint8)
for _code, _letter in zip(b"\b\t\n\f\r", b"btnfr", strict=True):
    _NAMED[_code] = _letter


# ---------------------------------------------------------------- characters
@native.inlined
def _put(out, at, fragment):
    return copied(out, at, fragment, 0, len(fragment))


@native.inlined
def _put_hex(out, at, value, digits):
    for k in range(digits):
        out[at + k] = _HEX[np.int64((value >> np.uint64(4 * (digits - 1 - k))) & np.uint64(15))]
    return at + digits


@native.jit
def _put_character(out, at, code):
    """Write a code point as Python's json does, with ensure_ascii off, and return the place after it."""
    if code == 0x22 or code == 0x5C:
        out[at], out[at + 1] = BACKSLASH, code
        return at + 2
    if code < 0x20:
        out[at], out[at + 1] = BACKSLASH, _U
        if _NAMED[code]:
            out[at + 1] = _NAMED[code]
            return at + 2
        return _put_hex(out, at + 2, np.uint64(code), 4)
    if code < 0x80:
        out[at] = code
        return at + 1
    size = 2 if code < 0x800 else 3 if code < 0x10000 else 4
    for k in range(size - 1):
        out[at + size - 1 - k] = 0x80 | (code & 0x3F)
        code >>= 6
    out[at] = ((0xF00 >> size) & 0xFF) | code
    return at + size


@native.jit
def _unescaped(text, i, end):
    """Return the code point of the N-Triples escape whose backslash stands at `i`, and the place after it."""
    if i + 1 >= end:
        return 0x5C, end
    letter = text[i + 1]
    if letter == _U or letter == _LARGE_U:
        code, i, digits = 0, i + 2, 4 if letter == _U else 8
        for k in range(min(digits, end - i)):
            digit = np.int64(text[i + k])
            code = 16 * code + (digit - 48 if digit < 58 else (digit | 32) - 87)
        return code, min(i + digits, end)
    for code in range(32):
        if _NAMED[code] == letter:
            return code, i + 2
    return np.int64(letter), i + 2


@native.inlined
def _put_text(out, at, text, i, end):
    """Write an N-Triples string's characters up to its closing quote, or to `end`. Return their places after it in `out` and in the text."""
    while i < end:
        word = word_at(text, i)
        found = marks(word, QUOTE) | marks(word, BACKSLASH) | marks_of_controls(word)
        put_word(out, at, word)
        plain = first_of(found) if found else 8
        if i + plain >= end:
            return at + end - i, end
        at, i = at + plain, i + plain
        if plain == 8:
            continue
        if text[i] == QUOTE:
            return at, i
        if text[i] == BACKSLASH:
            code, i = _unescaped(text, i, end)
        else:
            code, i = np.int64(text[i]), i + 1
        at = _put_character(out, at, code)
    return at, i


@native.jit
def _put_quoted(out, at, text, i, end):
    """Write any text as it stands between the quotes of a JSON string, and return the place after it."""
    while i < end:
        word = word_at(text, i)
        found = marks(word, QUOTE) | marks(word, BACKSLASH) | marks_of_controls(word)
        put_word(out, at, word)
        plain = first_of(found) if found else 8
        if i + plain >= end:
            return at + end - i
        at, i = at + plain, i + plain
        if plain < 8:
            at, i = _put_character(out, at, np.int64(text[i])), i + 1
    return at


# ---------------------------------------------------------------- terms and values
@native.jit
def _put_triple_term(out, at, text, i):
    """Write a triple term as SPARQL's JSON results have it, and return the place after it. Only its object may be one itself."""
    depth = 0
    while text[i] == LESS and text[i + 1] == LESS:
        at, i, depth = _put(out, at, _TRIPLE), i + len("<<( "), depth + 1
        for named in (_PREDICATE, _OBJECT):
            after, _ = term_end(text, i, np.uint64(0))
            at = _put(out, _put_plain_term(out, at, text, i, after), named)
            i = after + 1
    after, _ = term_end(text, i, np.uint64(0))
    at = _put_plain_term(out, at, text, i, after)
    for _ in range(2 * depth):
        out[at] = _CLOSE
        at += 1
    return at


@native.jit
def _put_plain_term(out, at, text, i, end):
    """Write an IRI, blank node or literal, and return the place after it."""
    if text[i] == LESS:
        at, _ = _put_text(out, _put(out, at, _URI), text, i + 1, end - 1)
    elif text[i] == UNDERSCORE:
        at, _ = _put_text(out, _put(out, at, _BNODE), text, i + 2, end)
    else:
        at, i = _put_text(out, _put(out, at, _LITERAL), text, i + 1, end)
        if i + 2 < end and text[i + 1] == 64:
            at = _put(out, at, _LANGUAGE)
            k = i + 2
            while k < end and not (text[k] == _DASH and text[k - 1] == _DASH):
                out[at] = text[k] | 32 if 65 <= text[k] <= 90 else text[k]
                at, k = at + 1, k + 1
            if k < end:  # the first of the two dashes is written already
                at, _ = _put_text(out, _put(out, at - 1, _DIRECTION), text, k + 1, end)
        elif i + 4 < end and not (end - i == len(_STRING) and starts(text, i, _STRING)):
            at, _ = _put_text(out, _put(out, at, _DATATYPE), text, i + 4, end - 1)
    out[at], out[at + 1] = QUOTE, _CLOSE
    return at + 2


@native.inlined
def _is_null(nulls, first, k):
    return len(nulls) > 0 and not nulls[(first + k) >> 3] >> ((first + k) & 7) & 1


@native.jit
def _put_binding(out, at, values, span, text, fragments, names):
    """Write an object of the values of a span by variable and return the place after it. `names` (first of the query's, in `fragments`) are `"v":`."""
    _, offsets, nulls, first = values
    texts, places = fragments
    bound = False
    for k in range(span[0], span[1]):
        if _is_null(nulls, first, k):
            continue
        if bound:
            out[at] = _COMMA
            at += 1
        name = names + k - span[0]
        at = copied(out, at, texts, places[name], places[name + 1] - places[name])
        i, end = offsets[k], offsets[k + 1]
        triple = text[i] == LESS and text[i + 1] == LESS
        at = _put_triple_term(out, at, text, i) if triple else _put_plain_term(out, at, text, i, end)
        bound = True
    out[at] = _CLOSE
    return at + 1


@native.jit
def _put_triples(out, at, values, span, text):
    _, offsets, nulls, first = values
    written = False
    for k in range(span[0], span[1]):
        if _is_null(nulls, first, k):
            continue
        if written:
            out[at], out[at + 1] = BACKSLASH, 110
            at += 2
        at = _put_quoted(out, at, text, offsets[k], offsets[k + 1])
        written = True
    out[at] = QUOTE
    return at + 1


@native.inlined
def _put_verdict(out, at, values, row, text):
    lists, offsets, _, _ = values
    k = lists[row]
    true = lists[row] < lists[row + 1] and offsets[k + 1] - offsets[k] == len(_TRUE_TERM) and starts(text, offsets[k], _TRUE_TERM)
    return _put(out, at, _TRUE) if true else _put(out, at, _FALSE)


@native.jit
def _put_id(out, at, ids, row):
    _, end, ordinal = ids
    at = _put_hex(out, at, np.uint64(end[row]) ^ np.uint64(1 << 63), 16)
    out[at] = _DASH
    return _put_hex(out, at + 1, np.uint64(ordinal[row]), 8)


@native.inlined
def _put_times(out, at, ids, row):
    """Write `<id>","start":"…","end":"…` and return the place after it."""
    start, end, _ = ids
    at = put_instant(out, _put(out, _put_id(out, at, ids, row), _START), start[row])
    return put_instant(out, _put(out, at, _END), end[row])


# ---------------------------------------------------------------- changes
@native.jit
def _instant_at(text, i):
    """Return the instant that a header has from `i` on, behind blanks."""
    value, negative = np.int64(0), False
    for k in range(i, i + INSTANT_WIDTH):
        if text[k] == _DASH:
            negative = True
        elif text[k] != _BLANK:
            value = 10 * value + np.int64(text[k]) - 48
    return -value if negative else value


@native.jit
def _begin_change(out, at, ids, row, text, header, end):
    """Write `<seq>","added":[{"id":"…","start":"…","end":"…` by a header, which ends at `end`, and return the place after it."""
    at = _put_id(out, at, ids, row)
    at = _put(out, at, _ADDED) if text[header] == _PLUS else _put(out, at, _WITHDRAWN)
    at = copied(out, at, text, header + _ID_AT, end - header - _ID_AT)
    at = put_instant(out, _put(out, at, _START), ids[0][row])
    return put_instant(out, _put(out, at, _END), _instant_at(text, header + _END_AT))


@native.jit
def _end_change(out, at, text, header):
    """Write what comes after a change's solution, but for the last brace, and return the place after it.

    `settled` is null before there is such an instant, and "finished" once nothing can change any more.
    """
    at = _put(out, at, _AFTER_ADDED) if text[header] == _PLUS else _put(out, at, _AFTER_WITHDRAWN)
    settled = _instant_at(text, header + _SETTLED_AT)
    if settled == NO_TIME:
        at = _put(out, at, _NULL)
    elif settled >= END_OF_TIME:
        at = _put(out, at, _FINISHED)
    else:
        out[at] = QUOTE
        at = put_instant(out, at + 1, settled)
        out[at] = QUOTE
        at += 1
    return _put(out, at, _MORE) if text[header + _MORE_AT] == _ONE else at


@native.inlined
def _room(values, row, fragments, query, forms):
    """Return the bytes that a solution takes at most: a character becomes six at most, and the punctuation of a triple term ten times as much."""
    lists, offsets, _, _ = values
    text = np.int64(offsets[lists[row + 1]]) - offsets[lists[row]]
    first, after = forms[query, 1], forms[query, 2]
    return 16 * text + fragments[1][after] - fragments[1][first] + _TEXT_ROOM * np.int64(lists[row + 1] - lists[row]) + _ROW_ROOM


# ---------------------------------------------------------------- messages to subscribers
@native.jit
def _put_opening(out, at, kind, changed, ids, row):
    """Write what stands before the object of a solution or change, and return the place after it."""
    if kind == EVENTS:
        return _put(out, _put_id(out, _put(out, at, _EVENT_ID), ids, row), _EVENT_DATA)
    if kind != FRAMES and kind != MESSAGES:
        return at
    at += _HEADER if kind == FRAMES else 0
    return _put(out, at, _CHANGE) if changed else _put(out, at, _SOLUTION)


@native.jit
def _put_ending(out, begin, at, kind):
    """Write what stands after a solution's object, and return the place after it. `begin` is the place before its opening."""
    if kind == FRAMES or kind == MESSAGES:
        out[at] = _CLOSE
        at += 1
    if kind == FRAMES:
        return _put_header(out, begin, at)
    out[at] = NEWLINE
    if kind == EVENTS:
        out[at + 1] = NEWLINE
        return at + 2
    return at + 1


@native.jit
def _put_header(out, begin, at):
    """Write a text frame's header before its payload, which ends at `at`, and return the place after the frame. Source: RFC 6455 section 5.2.

    A solution takes at least 126 bytes, so its header has _HEADER bytes or more. A longer one moves the payload.
    """
    size = at - begin - _HEADER
    digits = 2 if size < 1 << 16 else 8
    moved = 2 + digits - _HEADER
    if moved:
        for k in range(at - 1, begin + _HEADER - 1, -1):
            out[k + moved] = out[k]
    out[begin], out[begin + 1] = _TEXT_FRAME, 126 if digits == 2 else 127
    for k in range(digits):
        out[begin + 2 + k] = (size >> (8 * (digits - 1 - k))) & 255
    return at + moved


# ---------------------------------------------------------------- whole pages
class Page(NamedTuple):
    """Holds what is written."""

    values: Any  # the lists' offsets, the texts' offsets into `text`, validity bits (none: all valid), and the bit of the first text
    text: Any
    ids: Any  # start, end and ordinal of each solution
    query: Any
    fragments: Any  # texts and their offsets
    forms: Any  # a row a query: its form, its first fragment (what a line begins with, up to the id) and the one after its last


@native.entry_point
def put_solutions(kind, out, at, row, ends_at, page):
    """Write solutions from `row` on, as `kind` says, from `at` on while there is room.

    `ends_at` gets the place after each. Return the row after the last one written, and the place after its text.
    """
    out, text, query, forms, ends_at = borrowed(out), borrowed(page.text), borrowed(page.query), borrowed(page.forms), borrowed(ends_at)
    values = borrowed(page.values[0]), borrowed(page.values[1]), borrowed(page.values[2]), page.values[3]
    ids = borrowed(page.ids[0]), borrowed(page.ids[1]), borrowed(page.ids[2])
    fragments = borrowed(page.fragments[0]), borrowed(page.fragments[1])
    whole = kind != OBJECTS and kind != HEADS
    while row < len(query):
        if at + _room(values, row, fragments, query[row], forms) > len(out):
            break
        form, first, begin = forms[query[row], 0], forms[query[row], 1], at
        changed = 1 if form >= CHANGED else 0
        header, span = values[1][values[0][row]] if changed else 0, (values[0][row] + changed, np.int64(values[0][row + 1]))
        if row and not whole:
            out[at] = _COMMA
            at += 1
        if whole:
            at = _put_opening(out, at, kind, changed, ids, row)
            at = copied(out, at, fragments[0], fragments[1][first], fragments[1][first + 1] - fragments[1][first])
        elif kind == HEADS:
            at = _put(out, at, _ID)
        if changed:
            at = _begin_change(out, at, ids, row, text, header, values[1][span[0]])
        elif kind != OBJECTS:
            at = _put_times(out, at, ids, row)
        if kind == HEADS:
            at = _put(out, at, _END_OF_HEAD)
        elif kind == OBJECTS or form - CHANGED * changed == BINDINGS:
            at = _put_binding(out, _put(out, at, _BINDING) if whole else _put(out, at, _OPEN), values, span, text, fragments, first + 1)
        elif form - CHANGED * changed == TRIPLES:
            at = _put_triples(out, _put(out, at, _TRIPLES), values, span, text)
        else:
            at = _put_verdict(out, _put(out, at, _VERDICT), values, row, text)
        if changed:
            out[at] = _CLOSE
            at = _end_change(out, at + 1, text, header)
        if whole:
            out[at] = _CLOSE
            at = _put_ending(out, begin, at + 1, kind)
        ends_at[row] = at
        row += 1
    return row, at

"""This module turns lines of N-Triples and N-Quads to cells of term numbers, and finds the time of each graph."""

import numpy as np

from pipeline.formats.native.interning import MAX_TERM, ODD, PLAIN, SIZE, START, grown, new_table, number_at, put, slot_of
from pipeline.formats.native.swar import NONE, borrowed, native, starts
from pipeline.formats.native.terms import (
    DOT,
    HASH,
    LESS,
    NEWLINE,
    QUOTE,
    RETURN,
    UNDERSCORE,
    after_blanks,
    is_blank,
    plain,
    term_end,
)
from pipeline.formats.native.timestamps import NO_TIME, instant

OTHERWISE = -1
"""Instead of a count: the body is not of the usual shape, and what it says is for the exact path to tell."""

_GENERATED, _STARTS, _ENDS = 0, 1, 2
_NAMES = (
    np.frombuffer(b"<http://www.w3.org/ns/prov#generatedAtTime>", np.uint8),
    np.frombuffer(b"<http://streamreasoning.org/timeVocab#startsAtTime>", np.uint8),
    np.frombuffer(b"<http://streamreasoning.org/timeVocab#endsAtTime>", np.uint8),
)
_DATE_TIME = np.frombuffer(b'"^^<http://www.w3.org/2001/XMLSchema#dateTime>', np.uint8)
_DATE_TIME_STAMP = np.frombuffer(b'"^^<http://www.w3.org/2001/XMLSchema#dateTimeStamp>', np.uint8)


# ---------------------------------------------------------------- lines
@native.inlined
def _after_rest(text, i):
    """Return the place after the rest of a statement's line; NONE if anything else stands there.

    The rest is blanks, a comment of printable ASCII, and the line's end.
    """
    i = after_blanks(text, i)
    if i < len(text) and text[i] == HASH:
        while i < len(text) and (0x20 <= text[i] < 0x7F or is_blank(text[i])):
            i += 1
    if i < len(text) and text[i] == RETURN:
        i += 1
        if i == len(text):
            return NONE
    if i == len(text):
        return i
    return i + 1 if text[i] == NEWLINE else NONE


@native.inlined
def _may_stand(first, place):
    """Return whether a term that begins so may stand in a place: subject (0), predicate, object, graph."""
    return first == LESS or (first == UNDERSCORE and place != 1) or (first == QUOTE and place == 2)


@native.entry_point
def cells_of(text, places, seed, cells, spans, flags):
    """Read statements of up to `places` (3 or 4) terms as rows of term numbers, NONE for no graph. Fill `cells`, `spans` and `flags`.

    Return the number of statements, or OTHERWISE, the number of terms, and the table. There is room for as many statements as lines, and four terms for each.
    """
    text, cells, spans, flags = borrowed(text), borrowed(cells), borrowed(spans), borrowed(flags)
    owner, count, row, i = new_table(), 0, 0, 0
    table = borrowed(owner)  # which is returned, so it lives
    while i < len(text):
        i = after_blanks(text, i)
        if i == len(text):
            break
        if text[i] == NEWLINE or text[i] == RETURN or text[i] == HASH:
            i = _after_rest(text, i)
            if i == NONE:
                return OTHERWISE, count, owner
            continue
        place = 0
        while place < places and text[i] != DOT:
            end, key = term_end(text, i, seed)
            if end == NONE or end >= len(text) or end - i > MAX_TERM or not is_blank(text[end]) or not _may_stand(text[i], place):
                return OTHERWISE, count, owner
            slot = slot_of(text, table, spans, key, i, end - i)
            if slot == NONE:
                return OTHERWISE, count, owner
            number = number_at(table, slot)
            if number == NONE:
                number = count
                put(table, slot, spans, number, key, i, end - i)
                flags[number] = PLAIN if plain(text, i, end) else ODD
                count += 1
                if 2 * count > len(table):
                    owner = grown(table, spans, count)
                    table = borrowed(owner)
            cells[row, place] = number
            place += 1
            i = after_blanks(text, end)
            if i == len(text):
                return OTHERWISE, count, owner
        if place < 3 or text[i] != DOT:
            return OTHERWISE, count, owner
        if place == 3:
            cells[row, 3] = NONE
        i = _after_rest(text, i + 1)
        if i == NONE:
            return OTHERWISE, count, owner
        row += 1
    return row, count, owner


@native.entry_point
def renamed(text, seed, terms, table, spans, count, cells):
    """Make terms (`terms`: their numbers and places) what stands at their places (start, size) of the text. Return False if that fails.

    Two that become one get one number.
    """
    numbers, places = terms
    text, table, spans, cells = borrowed(text), borrowed(table), borrowed(spans), borrowed(cells)
    other = np.arange(count).astype(np.int32)
    for k in range(len(numbers)):
        start, size = places[k, 0], places[k, 1]
        end, key = term_end(text, start, seed)
        slot = slot_of(text, table, spans, key, start, size)
        if end != start + size or slot == NONE:
            return False
        number = number_at(table, slot)
        if number == NONE:
            number = numbers[k]
            put(table, slot, spans, number, key, start, size)
        other[numbers[k]] = number
    for row in range(len(cells)):
        for place in range(4):
            if cells[row, place] != NONE:
                cells[row, place] = other[cells[row, place]]
    return True


# ---------------------------------------------------------------- times
@native.inlined
def _property(text, start, size):
    """Return the timing property that a term is, or NONE."""
    if size == len(_NAMES[_GENERATED]) and starts(text, start, _NAMES[_GENERATED]):
        return _GENERATED
    if size == len(_NAMES[_STARTS]) and starts(text, start, _NAMES[_STARTS]):
        return _STARTS
    if size == len(_NAMES[_ENDS]) and starts(text, start, _NAMES[_ENDS]):
        return _ENDS
    return NONE


@native.inlined
def _time_of(text, start, size):
    """Return the instant of an xsd:dateTime or xsd:dateTimeStamp of the usual shape, else NO_TIME."""
    if size < 22 or text[start] != QUOTE:
        return NO_TIME
    close = start + 1
    while close < start + size and close < start + 40 and text[close] != QUOTE:
        close += 1
    rest = start + size - close
    if (rest == len(_DATE_TIME) and starts(text, close, _DATE_TIME)) or (rest == len(_DATE_TIME_STAMP) and starts(text, close, _DATE_TIME_STAMP)):
        return instant(text, start + 1, close)
    return NO_TIME


@native.jit
def _stated(text, spans, cells, rows, count, stated, timing):
    """Fill `stated` with the objects (number and 1) of each graph's timing triples; mark those triples in `timing`.

    Return False where a graph has two.
    """
    is_graph, kinds = np.zeros(count, np.bool_), np.full(count, NONE - 1, np.int8)
    for row in range(rows):
        if cells[row, 3] != NONE:
            is_graph[cells[row, 3]] = True
    for row in range(rows):
        timing[row] = False
        if cells[row, 3] != NONE or not is_graph[cells[row, 0]]:
            continue
        graph, predicate, time = cells[row, 0], cells[row, 1], cells[row, 2]
        if kinds[predicate] < NONE:
            kinds[predicate] = _property(text, spans[predicate, START], spans[predicate, SIZE])
        kind = kinds[predicate]
        if kind == NONE:
            continue
        if stated[graph, kind] != 0 and stated[graph, kind] != time + 1:
            return False
        stated[graph, kind] = time + 1
        timing[row] = True
    return True


@native.jit
def _interval(text, spans, stated, graph):
    """Return start and end of a graph, both NO_TIME where it has none. A start beyond its end is returned where they are for the exact path."""
    generated, first, last = stated[graph, _GENERATED], stated[graph, _STARTS], stated[graph, _ENDS]
    if generated == 0 and first == 0 and last == 0:
        return NO_TIME, NO_TIME
    if generated != 0 and first == 0 and last == 0:
        first = last = generated
    elif generated != 0 or first == 0 or last == 0:
        return np.int64(1), np.int64(0)
    start = _time_of(text, spans[first - 1, START], spans[first - 1, SIZE])
    end = start if first == last else _time_of(text, spans[last - 1, START], spans[last - 1, SIZE])
    if start == NO_TIME or end == NO_TIME:
        return np.int64(1), np.int64(0)
    return start, end


@native.entry_point
def timed(text, spans, count, cells, rows, default_start, default_end):
    """Return occurrences with their times.

    They are columns of term numbers (a row a place), starts, ends, how many, and how many of them are at the default.

    The timing triples of the graphs are left out. The count is OTHERWISE where the times are not of the usual shape.
    """
    text, spans, cells = borrowed(text), borrowed(spans), borrowed(cells)
    stated, timing = np.zeros((count, 3), np.int32), np.empty(rows, np.bool_)
    columns, starts_, ends = np.empty((4, rows), np.int32), np.empty(rows, np.int64), np.empty(rows, np.int64)
    if not _stated(text, spans, cells, rows, count, stated, timing):
        return columns, starts_, ends, OTHERWISE, 0
    kept, untimed = 0, 0
    for row in range(rows):
        if timing[row]:
            continue
        graph, start, end = cells[row, 3], NO_TIME, NO_TIME
        if graph != NONE:
            start, end = _interval(text, spans, stated, graph)
            if start > end:
                return columns, starts_, ends, OTHERWISE, 0
        if start == NO_TIME:
            start, end, untimed = default_start, default_end, untimed + 1
        for place in range(4):
            columns[place, kept] = cells[row, place]
        starts_[kept], ends[kept] = start, end
        kept += 1
    return columns, starts_, ends, kept, untimed

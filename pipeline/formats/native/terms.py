"""This module finds where a term ends in bytes.

It also tells whether a parser would surely give the term back unchanged (pipeline/formats/batches/ntriples.py, `_PLAIN`).
"""

import numpy as np

from pipeline.formats.native.swar import NONE, beyond_ascii, first_of, leading, marks, marks_of_controls, mixed, native, starts, word_at

QUOTE, BACKSLASH, LESS, GREATER, AT, UNDERSCORE, HASH, COLON, SLASH, DOT, CARET = (np.uint8(ord(c)) for c in '"\\<>@_#:/.^')
SPACE, TAB, RETURN, NEWLINE, DELETE = np.uint8(32), np.uint8(9), np.uint8(13), np.uint8(10), np.uint8(127)

XSD = np.frombuffer(b"^^<http://www.w3.org/2001/XMLSchema#", np.uint8)
STRING = np.frombuffer(b"string>", np.uint8)

_SCHEME, _HOST, _PATH, _OPAQUE, _FIRST, _LETTER, _DIGIT, _SMALL, _LABEL = (1 << k for k in range(9))


def _roles():
    """Return a table of the roles that each byte may have in a term."""
    letters, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "0123456789"
    members = {
        _SCHEME: letters + digits + "+.-",
        _HOST: letters + digits + "._-",
        _PATH: letters + digits + "/_.~-",
        _OPAQUE: letters + digits + "/_.~:-",
        _FIRST: letters + digits + "_.~",
        _LETTER: letters,
        _DIGIT: digits,
        _SMALL: letters[26:],
        _LABEL: letters + digits + "_-",
    }
    table = np.zeros(256, np.int64)
    for role, characters in members.items():
        for character in characters:
            table[ord(character)] |= role
    return table


_ROLES = _roles()


@native.inlined
def is_blank(byte):
    return byte == SPACE or byte == TAB


@native.inlined
def after_blanks(text, i):
    while i < len(text) and is_blank(text[i]):
        i += 1
    return i


# ---------------------------------------------------------------- where a term ends
@native.inlined
def iri_end(text, i, key):
    """Return the place after the `>` of the IRI at `i`, NONE without one; and the hash."""
    while i < len(text):
        word = word_at(text, i)
        found = marks(word, GREATER)
        if found:
            size = first_of(found) + 1
            return i + size, mixed(key, leading(word, size))
        key = mixed(key, word)
        i += 8
    return NONE, key


@native.inlined
def string_end(text, i, key):
    """Return three numbers of a string whose opening quote is before `i`.

    They are the place after its closing quote (NONE without one), the hash, and the number of backslashes that lead an escape.
    """
    escapes = 0
    while i < len(text):
        word = word_at(text, i)
        found = marks(word, QUOTE) | marks(word, BACKSLASH)
        if not found:
            key = mixed(key, word)
            i += 8
            continue
        size = first_of(found) + 1
        key = mixed(key, leading(word, size))
        i += size
        if text[i - 1] == QUOTE:
            return i, key, escapes
        if i == len(text):
            break
        escapes += 1
        key = mixed(key, np.uint64(text[i]))
        i += 1
    return NONE, key, escapes


@native.jit
def term_end(text, i, key):
    """Return the place after the term at `i`, NONE where there is none; and its hash. The term's content is not looked at."""
    first = text[i]
    if first == LESS:
        return iri_end(text, i, key)
    if first == UNDERSCORE:
        while i < len(text) and not is_blank(text[i]) and text[i] != NEWLINE:
            key = mixed(key, np.uint64(text[i]))
            i += 1
        return i, key
    if first != QUOTE:
        return NONE, key
    i, key, _ = string_end(text, i + 1, mixed(key, np.uint64(first)))
    if i == NONE or i == len(text):
        return i, key
    if text[i] == CARET:
        return iri_end(text, i, key)
    if text[i] == AT:
        while i < len(text) and not is_blank(text[i]) and text[i] != NEWLINE:
            key = mixed(key, np.uint64(text[i]))
            i += 1
    return i, key


# ---------------------------------------------------------------- whether a term is plain
@native.inlined
def _run(text, i, end, role):
    while i < end and _ROLES[text[i]] & role:
        i += 1
    return i


@native.jit
def plain_iri(text, i, end):
    """Return whether text[i:end], with its brackets, is an IRI of the plainest kind."""
    end -= 1
    if end <= i + 1 or text[i] != LESS or text[end] != GREATER or not _ROLES[text[i + 1]] & _LETTER:
        return False
    i = _run(text, i + 2, end, _SCHEME)
    if i + 1 >= end or text[i] != COLON:
        return False
    i += 1
    if text[i] == SLASH:
        i = _after_authority(text, i, end)
        if i == NONE:
            return False
    elif _ROLES[text[i]] & _FIRST:
        i = _run(text, i + 1, end, _OPAQUE)
    else:
        return False
    if i < end and text[i] == HASH:
        i = _run(text, i + 1, end, _PATH)
    return i == end


@native.jit
def _after_authority(text, i, end):
    """Return the place after `//host:port/path`, the last two of which may be left out."""
    if i + 2 >= end or text[i + 1] != SLASH:
        return NONE
    host = i + 2
    i = _run(text, host, end, _HOST)
    if i == host:
        return NONE
    if i < end and text[i] == COLON:
        port = i + 1
        i = _run(text, port, end, _DIGIT)
        if i == port or i > port + 5:
            return NONE
    if i < end and text[i] == SLASH:
        i = _run(text, i + 1, end, _PATH)
    return i


@native.jit
def plain_text(text, i, end):
    """Return whether text[i:end] is UTF-8 of characters that N-Triples writes as they are. Quotes and backslashes are not looked for."""
    while i < end:
        word = word_at(text, i)
        if not (marks_of_controls(word) | marks(word, DELETE) | beyond_ascii(word)):
            i += 8
            continue
        i += first_of(marks_of_controls(word) | marks(word, DELETE) | beyond_ascii(word))
        if i >= end:
            break
        if text[i] < 0x80:
            return False
        size = _character(text, i, end)
        if size == NONE:
            return False
        i += size
    return True


@native.jit
def _character(text, i, end):
    """Return the number of bytes of the character beyond ASCII at `i`.

    It is NONE for no such character, and for U+FFFE and U+FFFF. Source: Unicode, table 3-7.
    """
    first = text[i]
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC2 or first > 0xF4 or i + size > end:
        return NONE
    for k in range(1, size):
        if text[i + k] & 0xC0 != 0x80:
            return NONE
    second = text[i + 1]
    if (
        (first == 0xE0 and second < 0xA0)
        or (first == 0xED and second > 0x9F)
        or (first == 0xF0 and second < 0x90)
        or (first == 0xF4 and second > 0x8F)
    ):
        return NONE
    if first == 0xEF and second == 0xBF and text[i + 2] >= 0xBE:
        return NONE
    return size


@native.jit
def plain_suffix(text, i, end):
    """Return whether text[i:end], after the closing quote of a literal, is nothing, a datatype of XML Schema or a short language tag.

    The datatype xsd:string does not count.
    """
    if i == end:
        return True
    if text[i] == AT:
        return 2 <= end - i - 1 <= 3 and _run(text, i + 1, end, _SMALL) == end
    if not starts(text, i, XSD):
        return False
    name = i + len(XSD)
    if starts(text, name, STRING):
        return False
    i = _run(text, name, end, _LETTER)
    return i > name and i == end - 1 and text[i] == GREATER


@native.jit
def plain_label(text, i, end):
    """Return whether text[i:end] is a blank node with a label of ASCII and without dots."""
    first = i + 2
    return first < end and text[i + 1] == COLON and text[first] != np.uint8(45) and _run(text, first, end, _LABEL) == end


@native.jit
def plain(text, i, end):
    """Return whether the term text[i:end], as `term_end` found it, is canonical as it stands. False says nothing."""
    if text[i] == LESS:
        return plain_iri(text, i, end)
    if text[i] == UNDERSCORE:
        return plain_label(text, i, end)
    close, _, escapes = string_end(text, i + 1, np.uint64(0))
    return escapes == 0 and plain_text(text, i + 1, close - 1) and plain_suffix(text, close, end)


@native.jit
def whole(text, i, end):
    """Return whether text[i:end] is one term as far as its quotes and brackets go, so that `plain` may look at it."""
    if text[i] == LESS or text[i] == UNDERSCORE:
        return True
    if text[i] != QUOTE:
        return False
    close, _, _ = string_end(text, i + 1, np.uint64(0))
    return close != NONE and close <= end

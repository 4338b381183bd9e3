"""This module names what breaks a string or an IRI: a character, an escape, or an end that is missing."""

import re

from epsparql.parser.slips.stops import Slip, Stop

_CLOSED = {quote: re.compile(rf"{quote}(?:[^{quote}\\\r\n]|\\.)*{quote}") for quote in "\"'"}
_BAD_ESCAPE = re.compile(r"""\\(?![tbnrf\\"']|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})(.)""")
_ESCAPE = re.compile(r"\\.")
_IRI = re.compile(r"<[^<>\r\n]{1,300}>")
_NO_IRI_CHARACTER = re.compile(r'[\x00-\x20"{}|^`\\]')


def explain_string(stop: Stop) -> Slip | None:
    """Recognise a string with a bad escape, or without an end."""
    if stop.lexeme not in _CLOSED:
        return None
    quote = stop.lexeme
    closed = _CLOSED[quote].match(stop.text, stop.at)
    if closed is None:
        return Slip((), "", "a string starts here and does not end on its line", f"{quote} at its end, or {quote * 3} around several lines")
    for escape in _ESCAPE.finditer(closed[0]):
        if bad := _BAD_ESCAPE.match(escape[0] + closed[0][escape.end() :]):
            start = stop.at + escape.start()
            expected = r"\\ for a backslash, or one of \t \n \r \b \f \" \' \uXXXX \UXXXXXXXX"
            return Slip((), "", f"\\{bad[1]} is no escape of a string", expected, start, start + 2)
    return None


def explain_iri(stop: Stop) -> Slip | None:
    """Recognise an IRI in angle brackets with a character that no IRI has."""
    whole = _IRI.match(stop.text, stop.at) if stop.lexeme == "<" and "an operator" not in stop.expected else None
    broken = _NO_IRI_CHARACTER.search(whole[0], 1) if whole else None
    if whole is None or broken is None or not re.match(r"<(?:[A-Za-z][A-Za-z0-9+.-]*:|[/#])", whole[0]):
        return None
    name = "a blank" if broken[0] == " " else repr(broken[0])
    start = stop.at + broken.start()
    return Slip((), "", f"this IRI has {name}, which no IRI may have", f"%{ord(broken[0]):02X} in its place", start, start + 1)

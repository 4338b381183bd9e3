"""This module has the tokens that programs and streams of events share, as regular expressions."""

import re

SKIP = r"(?:\s|%[^\n]*+|/\*(?s:.)*?\*/)*+"
NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
NAME = r"[a-z]\w*+"
END = r"\.(?=[ \t\r\n%]|/\*|\Z)"
_ESCAPED = re.compile(r"\\((?s:.))|''|\"\"")
_NAMED = {"n": "\n", "t": "\t", "r": "\r"}


def content_of(value: str) -> str:
    """Return the text of a name or a string, without quotes and escapes."""
    if value[0] not in "'\"":
        return value
    text = value[1:-1]
    return _ESCAPED.sub(lambda found: _NAMED.get(found[1], found[1]) if found[1] else found[0][0], text)

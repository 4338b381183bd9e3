"""The first line of a query's text says whether the text is a program, and names its policy.

This file loads nothing else of the language: most texts are no programs.
"""

from epsparql.errors import LANGUAGE_LINE


def is_program(text: str) -> bool:
    """Return whether a query's text is a program."""
    return LANGUAGE_LINE.match(text) is not None


def split_header(text: str) -> tuple[str, str]:
    """Return the program and the policy of a query's text that is a program; the line before the program becomes a
    comment of its language.
    """
    header = LANGUAGE_LINE.match(text)
    assert header is not None
    return f"%{text[1:]}", header[1]

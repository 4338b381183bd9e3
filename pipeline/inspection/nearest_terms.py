"""This module finds the term that resembles another one most: most often, a name is misspelt or has another namespace."""

from collections.abc import Mapping
from difflib import get_close_matches

_MOST_COMPARED, _LONGEST = 2_000, 200
"""So many of the most frequent candidates are compared, none longer than this."""


def find_nearest(wanted: str, candidates: Mapping[str, int]) -> str | None:
    """Return the candidate (N-Triples texts with their counts) that most resembles the wanted one; None where none
    does.
    """
    known = [text for text, _ in sorted(candidates.items(), key=lambda each: -each[1])[:_MOST_COMPARED] if len(text) <= _LONGEST and text != wanted]
    if len(wanted) > _LONGEST:
        return None
    by_core: dict[str, str] = {}
    for text in known:
        by_core.setdefault(fold_core(text), text)
    near = get_close_matches(fold_core(wanted), list(by_core), 1)
    return by_core[near[0]] if near else None


def fold_core(text: str) -> str:
    """Return what people remember of a term, without regard to case: the last part of an IRI, or a literal's text."""
    if text.startswith('"'):
        return text[1 : text.rindex('"')].strip().casefold()
    inner = text.strip("<>").rstrip("/#")
    return (inner[max(inner.rfind(sign) for sign in "/#:") + 1 :] or inner).casefold()

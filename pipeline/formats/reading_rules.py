"""This module holds what the settings of a stream say of the reading of its bodies."""

from codecs import BOM_UTF8
from dataclasses import dataclass

from pipeline.formats.short_terms import ShortTerms


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """Says how terms of ndjson may be `short`, and whether times finer than a microsecond are rounded."""

    short: ShortTerms | None = None
    rounds: bool = False


PLAIN_RULES = ReadingRules()
"""A stream without settings has these."""


def is_blank(body: bytes) -> bool:
    """Return whether a body has nothing but spaces, perhaps after a byte order mark."""
    return not body or body.isspace() or (body.startswith(BOM_UTF8) and not body.removeprefix(BOM_UTF8).strip())

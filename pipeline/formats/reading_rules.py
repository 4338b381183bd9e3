"""This module holds what the settings of a stream say of the reading of its bodies."""

from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import replace

from epsparql.deferred_methods import dataclass
from pipeline.formats.namespaces import NO_NAMES
from pipeline.formats.short_terms import ShortTerms

_PLAIN_TERMS = ShortTerms(NO_NAMES)


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """Says how terms of ndjson may be `short`, and whether times finer than a microsecond are rounded.

    `header` is the line of the body that declared prefixes, and so a part of the scope of blank nodes. Once a body is
    `begun`, no line declares any.
    """

    short: ShortTerms = _PLAIN_TERMS
    rounds: bool = False
    header: bytes = b""
    begun: bool = False

    def declare(self, prefixes: Mapping[str, str], header: bytes) -> "ReadingRules":
        """Return the rules for the lines after one that declares prefixes."""
        return replace(self, short=ShortTerms(self.short.names.declare(prefixes)), header=header, begun=True)

    def begin(self) -> "ReadingRules":
        """Return the rules for a later part of a body."""
        return replace(self, begun=True)


PLAIN_RULES = ReadingRules()
"""A stream without settings has these."""


def is_blank(body: bytes) -> bool:
    """Return whether a body has nothing but spaces, perhaps after a byte order mark."""
    return not body or body.isspace() or (body.startswith(BOM_UTF8) and not body.removeprefix(BOM_UTF8).strip())

"""This module checks JSON-LD before its parser sees it: how far its contexts may stretch names.

The parser writes such names out for a whole document at once.
"""

import re
from collections import ChainMap
from collections.abc import Iterator
from typing import Any

import msgspec

from pipeline.formats.batches.expansion_budget import ExpansionBudget

_NAME = re.compile(rb'"[^"\s]{200,}"')  # shorter names are usual
_USUAL = 200
_UNSURE = 4
"""This factor allows for the estimate: most strings are no names, and most names are shorter than the longest one."""


def check_contexts(text: bytes, budget: ExpansionBudget) -> None:
    """Refuse names that would take a multiple of the budget, if each were as long as the longest one is when written out. Raises: FormatError."""
    strings = text.count(b'"') // 2 + text.count(b",")
    longest = max(map(len, _NAME.findall(text)), default=_USUAL)
    if b"@context" in text and strings * len(text) > budget.most:  # else the contexts are too short to stretch anything
        try:
            longest += max(_stretches(msgspec.json.decode(text), ChainMap(), 0), default=0)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # the parser says why
    if strings * longest > _UNSURE * budget.most:
        raise budget.fault()


def _stretches(node: Any, terms: ChainMap[str, str], vocabulary: int) -> Iterator[int]:
    """Yield, for each context at or below a node, how many bytes may come before a name."""
    if isinstance(node, list):
        for each in node:
            yield from _stretches(each, terms, vocabulary)
    if not isinstance(node, dict):
        return
    contexts = node.get("@context")
    for context in contexts if isinstance(contexts, list) else [contexts]:
        if isinstance(context, dict):
            own = {name: iri for name, said in context.items() if isinstance(iri := said.get("@id") if isinstance(said, dict) else said, str)}
            terms = ChainMap(own, *terms.maps)
            vocabulary += sum(len(own.get(keyword, "")) for keyword in ("@vocab", "@base"))
            yield vocabulary + max(map(len, own.values()), default=0) + sum(len(iri) for iri in own.values() if _chained(iri, terms))
    for each in node.values():
        if isinstance(each, dict | list):
            yield from _stretches(each, terms, vocabulary)


def _chained(iri: str, terms: ChainMap[str, str]) -> bool:
    """Tell whether the IRI's prefix stands for a name with a prefix of its own: such names may form a chain."""
    said = terms.get(iri.partition(":")[0])
    return said is not None and terms.get(said.partition(":")[0]) is not None

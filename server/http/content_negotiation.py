"""Negotiates media types, with the version of RDF that an answer needs.

Source: RFC 9110, section 12.5.1; RDF 1.2 Concepts, section 1.7.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

from pipeline.formats.rdf.rdf_version import RDF_1_1, RDF_1_2, VERSIONS, WITHOUT_TRIPLE_TERMS
from server.http.problem_details import Fault, Problem

_UNVERSIONED = (*WITHOUT_TRIPLE_TERMS, "application/json", "application/x-ndjson")
"""These have no parameter `version`."""


class _Range(NamedTuple):
    """Represents a media range of an Accept header; `version` is empty where the range names none."""

    name: str
    quality: float
    version: str


def choose_media_type(accept: str | None, offered: Sequence[str], needed: str = RDF_1_1) -> str:
    """Return the offered media type that `accept` prefers, or the first one offered if all are alike.

    `needed` is the version of RDF that the answer needs. A type that cannot hold the answer is not offered, and a
    range that names an older version accepts nothing. Raises: Fault 406 that names what is offered.
    """
    held = [media_type for media_type in offered if needed != RDF_1_2 or media_type not in WITHOUT_TRIPLE_TERMS]
    ranges = [found for part in (accept or "*/*").split(",") if part.strip() and _holds(found := _parse(part), needed)]
    best, best_quality = "", 0.0
    for media_type in held:
        quality = _quality(media_type, ranges)
        if quality > best_quality:
            best, best_quality = media_type, quality
    if best:
        return best
    reason = "" if needed == RDF_1_1 else f", for it has {'triple terms' if needed == RDF_1_2 else 'base directions'} of RDF 1.2"
    expected = ", ".join(versioned(media_type, needed) for media_type in held)
    raise Fault(Problem(HTTPStatus.NOT_ACCEPTABLE, "not-acceptable", f"the answer is not available as {accept}{reason}", expected=expected))


def versioned(media_type: str, needed: str) -> str:
    """Return the Content-Type of an answer: a media type that tells of RDF 1.2 where the answer needs it."""
    return media_type if needed == RDF_1_1 or media_type in _UNVERSIONED else f"{media_type}; version={needed}"


def _parse(part: str) -> _Range:
    media_range, *parameters = (piece.strip() for piece in part.split(";"))
    quality, version = 1.0, ""
    for parameter in parameters:
        name, _, value = (piece.strip() for piece in parameter.partition("="))
        match name.lower():
            case "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 0.0
            case "version":
                version = value.strip('"')
    return _Range(media_range.lower(), quality, version)


def _holds(found: _Range, needed: str) -> bool:
    return found.version not in VERSIONS or VERSIONS.index(found.version) >= VERSIONS.index(needed)


def _quality(media_type: str, ranges: Sequence[_Range]) -> float:
    """Return the quality of the most specific range that holds the type."""
    family = media_type.partition("/")[0] + "/*"
    for candidate in (media_type, family, "*/*"):
        found = [each.quality for each in ranges if each.name == candidate]
        if found:
            return max(found)
    return 0.0

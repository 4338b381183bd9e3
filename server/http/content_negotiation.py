"""Negotiates media types. Source: RFC 9110, section 12.5.1."""

from collections.abc import Sequence
from http import HTTPStatus

from server.http.problem_details import Fault, Problem


def choose_media_type(accept: str | None, offered: Sequence[str]) -> str:
    """Return the offered media type that `accept` prefers, or the first one offered if all are alike.

    Raises: Fault 406 that names what is offered.
    """
    ranges = [_parse(part) for part in (accept or "*/*").split(",") if part.strip()]
    best, best_quality = "", 0.0
    for media_type in offered:
        quality = _quality(media_type, ranges)
        if quality > best_quality:
            best, best_quality = media_type, quality
    if not best:
        raise Fault(Problem(HTTPStatus.NOT_ACCEPTABLE, "not-acceptable", f"the answer is not available as {accept}", expected=", ".join(offered)))
    return best


def _parse(part: str) -> tuple[str, float]:
    media_range, *parameters = (piece.strip() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                quality = float(value)
            except ValueError:
                quality = 0.0
    return media_range.lower(), quality


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the quality of the most specific range that holds the type."""
    family = media_type.partition("/")[0] + "/*"
    for candidate in (media_type, family, "*/*"):
        found = [quality for media_range, quality in ranges if media_range == candidate]
        if found:
            return max(found)
    return 0.0

"""Proposes a mapping for a file of CSV, JSON or lines that a command names.

Only `epsparql map` loads what looks at such files.
"""

from pathlib import Path

from epsparql.events.media_types import MAPPED_SUFFIXES
from pipeline.errors import FormatError
from pipeline.proposals.proposal import AmbiguousDates, Choices, Proposal, propose_mapping
from pipeline.replay.query_files import SourceFault, read_file


def propose_for_file(path: Path, base: str, choices: Choices) -> Proposal:
    """Return a mapping for a file of CSV, JSON or lines.

    Raises: SourceFault; AmbiguousDates; InvalidMapping where the zone of `choices` is none.
    """
    suffix = path.suffix.lower()
    if suffix not in MAPPED_SUFFIXES and path.exists():
        raise SourceFault(path, f"no mapping is proposed for the suffix {suffix!r}", expected=", ".join(MAPPED_SUFFIXES))
    try:
        return propose_mapping(read_file(path), MAPPED_SUFFIXES[suffix], base, choices)
    except AmbiguousDates:
        raise
    except FormatError as error:
        raise SourceFault(path, error.message, error.line, error.column, error.expected) from None

"""Tells which version of RDF terms need. Triple terms need RDF 1.2, base directions need its basic part, and all
others RDF 1.1.

Source: RDF 1.2 Concepts, section 1.7 and 2.1, for the names of versions.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

RDF_1_1, RDF_1_2_BASIC, RDF_1_2 = "1.1", "1.2-basic", "1.2"
VERSIONS = (RDF_1_1, RDF_1_2_BASIC, RDF_1_2)
"""Each of these holds all that the ones before it hold."""
WITHOUT_TRIPLE_TERMS = ("text/csv", "application/ld+json")
"""These media types cannot hold triple terms. CSV has only the text of a term, and JSON-LD 1.1 has no syntax for them."""
_TRIPLE_TERM, _TRIPLE_OBJECT = r"^<<\(", r"^\S+ <[^>]*> <<\("
_DIRECTION = r'"@[a-z0-9-]+--(?:ltr|rtl)(?: \.)?$'


def version_of_terms(terms: pa.Array) -> str:
    """Return the version that canonical N-Triples terms need; nulls count as nothing."""
    return _version(terms, _TRIPLE_TERM)


def version_of_statements(statements: pa.Array | Sequence[str]) -> str:
    """Return the version that statements in canonical N-Triples need."""
    return _version(statements if isinstance(statements, pa.Array) else pa.array(statements, pa.utf8()), _TRIPLE_OBJECT)


def _version(texts: pa.Array, triple: str) -> str:
    for pattern, version in ((triple, RDF_1_2), (_DIRECTION, RDF_1_2_BASIC)):
        if pc.any(pc.match_substring_regex(texts, pattern)).as_py():
            return version
    return RDF_1_1

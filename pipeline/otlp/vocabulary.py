"""This module names the terms that stand for telemetry (docs/opentelemetry.md)."""

from typing import Any

from epsparql.terms import RDF
from pipeline.mapping.templates import encode_value

OTEL = "urn:epsparql:otel:"
ATTRIBUTE, RESOURCE = f"{OTEL}attribute:", f"{OTEL}resource:"
"""An attribute's predicate is one of these and its name: that of the record itself, or of its resource."""
TYPE = f"<{RDF}type>"
JSON_VALUE = f"{RDF}JSON"
SPAN_KINDS = (None, "internal", "server", "client", "producer", "consumer")
STATUSES = (None, "ok", "error")
TEMPORALITIES = (None, "delta", "cumulative")


def name_term(name: str) -> str:
    """Return the term of a name of the vocabulary."""
    return f"<{OTEL}{name}>"


def name_attribute(namespace: str, key: str) -> str:
    """Return the predicate of an attribute; what may not stand in an IRI is percent-encoded."""
    return f"<{namespace}{encode_value(key)}>"


def find_name(names: tuple[str | None, ...], number: Any) -> str | None:
    """Return the name of an enumeration's number; None for the one that says nothing, and for numbers of the future."""
    return names[number] if 0 <= number < len(names) else None

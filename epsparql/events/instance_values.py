"""This module writes the values of an instance as the server reads them."""

from collections.abc import Mapping
from typing import Any

from epsparql.python_values import written_value
from epsparql.terms import XSD, Literal

_OF_JSON = (bool, int, float, str)


def write_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by parameter as members of JSON.

    A value is a term of rdflib, a Python value, or a text in N-Triples syntax. Raises: ValueError for a term of rdflib
    that no format can write.
    """
    return {name: _write_value(value) for name, value in values.items()}


def _write_value(value: Any) -> Any:
    if hasattr(value, "n3"):
        from epsparql.rdf_exchange.conversion import from_client_term  # only those who give rdflib's terms load it

        return str(from_client_term(value))
    if isinstance(value, _OF_JSON):
        return value
    lexical, datatype = written_value(value)
    return str(Literal(lexical, XSD + datatype))

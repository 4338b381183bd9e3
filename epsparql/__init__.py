"""EP-SPARQL as a language: text to algebra and back."""

from epsparql.errors import QueryError, Warning_
from epsparql.render import render
from epsparql.translate import ParsedQuery, parse

__all__ = ["ParsedQuery", "QueryError", "Warning_", "parse", "render"]

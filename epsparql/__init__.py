"""This package defines EP-SPARQL as a language: text to algebra and back."""

from epsparql.errors import QueryError, Warning_
from epsparql.render.queries import render
from epsparql.translate.translator import ParsedQuery, parse

__all__ = ["ParsedQuery", "QueryError", "Warning_", "parse", "render"]

"""This module reads a JSON-LD context in place of a mapping's `properties`: terms with IRIs, types and languages."""

from collections.abc import Mapping
from typing import Any

from epsparql.deferred_methods import dataclass
from epsparql.terms import RDF
from pipeline.errors import InvalidMapping

_KEYWORDS = ("@vocab", "@base", "@language", "@version")
_TERM_MEMBERS = ("@id", "@type", "@language")
_NAMESPACE_ENDS = ("/", "#", ":", "?", "[", "]", "@")
"""JSON-LD 1.1: a term with a plain IRI that ends in one of these may be a prefix."""


@dataclass(frozen=True, slots=True)
class Context:
    """Holds what a context says.

    `properties` are documents of a mapping's properties; `subject` is the field that is `@id`.
    """

    base: str
    prefixes: Mapping[str, str]
    properties: Mapping[str, dict[str, Any]]
    subject: str | None


def read_context(document: Any) -> Context:
    """Return the content of a context that stands in the mapping itself. Raises: InvalidMapping."""
    if not isinstance(document, dict):
        raise InvalidMapping("@context", "is no object", "the context itself; contexts at other addresses are not loaded")
    for name in document:
        if name.startswith("@") and name not in _KEYWORDS:
            raise InvalidMapping(f"@context.{name}", "is not supported here", ", ".join(_KEYWORDS))
    vocab, base, language = (_word(document, name) for name in ("@vocab", "@base", "@language"))
    terms = {name: definition for name, definition in document.items() if not name.startswith("@")}
    plain = {name: iri for name, iri in terms.items() if isinstance(iri, str) and not iri.startswith("@")}
    prefixes = {name: iri for name, iri in plain.items() if iri.endswith(_NAMESPACE_ENDS) and ":" in iri}
    subject, properties = None, dict[str, dict[str, Any]]()
    for name, definition in terms.items():
        found = {"@id": definition} if isinstance(definition, str) else definition
        if not isinstance(found, dict) or not all(member in _TERM_MEMBERS for member in found):
            raise InvalidMapping(f"@context.{name}", "is no definition that is supported here", "an IRI, or an object of @id, @type and @language")
        if found.get("@id") == "@id":
            subject = name
        elif name not in prefixes:
            properties[name] = _read_term(name, found, vocab, language)
    return Context(base, prefixes, properties, subject)


def _read_term(name: str, found: dict[str, Any], vocab: str, language: str) -> dict[str, Any]:
    iri, kind = found.get("@id", name), found.get("@type")
    if iri == "@type":
        return {"iri": RDF + "type", "value": f"{{+{name}}}"} if not vocab else {"iri": RDF + "type", "value": f"{vocab}{{{name}}}"}
    if not isinstance(iri, str) or iri.startswith("@"):
        raise InvalidMapping(f"@context.{name}", f"cannot be {iri!r} here", "an IRI, @id or @type")
    if ":" not in iri:
        if not vocab:
            raise InvalidMapping(f"@context.{name}", f"{iri!r} is no IRI, and the context has no @vocab", "a whole IRI, or @vocab")
        iri = vocab + iri
    if kind == "@id":
        return {"iri": iri, "value": f"{{+{name}}}"}
    if kind is not None and (not isinstance(kind, str) or kind.startswith("@")):
        raise InvalidMapping(f"@context.{name}.@type", f"cannot be {kind!r} here", "@id or a datatype")
    tag = found.get("@language", language)
    typed = {"datatype": kind} if kind is not None else {"lang": tag} if tag else {}
    return {"iri": iri} | typed


def _word(document: dict[str, Any], name: str) -> str:
    value = document.get(name) or ""
    if not isinstance(value, str):
        raise InvalidMapping(f"@context.{name}", "is no text", "a string")
    return value

"""This module expands prefixed names and relative references."""

import re
from collections.abc import Mapping

from epsparql.deferred_methods import dataclass
from epsparql.iris import resolve
from epsparql.ntriples import is_absolute_iri
from epsparql.terms import RDF, XSD

WELL_KNOWN = {
    "xsd": XSD,
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "prov": "http://www.w3.org/ns/prov#",
}
"""These prefixes need no declaration."""
MOST_PREFIXES = 500
"""A stream or body declares at most so many prefixes."""

_LONGEST = 1000  # characters of a namespace
_PREFIX = re.compile(r"(?:[A-Za-z][\w.-]*)?")
_PREFIXED = re.compile(r"((?:[A-Za-z][\w.-]*)?):(?!//)(.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Expands names: `base` is "" where there is none, and is what the empty prefix stands for."""

    base: str
    prefixes: Mapping[str, str]

    def expand(self, name: str) -> str:
        """Return the IRI of a prefixed name, of a relative reference, or of an IRI.

        Raises: ValueError saying what is missing.
        """
        iri = self.expand_prefixed(name)
        if iri is not None:
            return iri
        if name.startswith(":"):
            raise ValueError(f"{name!r} has the empty prefix, which stands for the base, and there is no base; give base")
        if _SCHEME.match(name):
            return name
        if not self.base:
            raise ValueError(f"{name!r} is relative, and there is no base; give base, or write the whole IRI")
        return resolve(name, self.base)

    def expand_prefixed(self, name: str) -> str | None:
        """Return the IRI of a name whose prefix is known, None for any other text."""
        prefixed = _PREFIXED.fullmatch(name)
        if prefixed is None:
            return None
        prefix, local = prefixed.groups()
        namespace = self.prefixes.get(prefix, WELL_KNOWN.get(prefix)) if prefix else self.prefixes.get("") or self.base
        return namespace + local if namespace else None

    def declare(self, prefixes: Mapping[str, str]) -> "Namespaces":
        """Return these names with more prefixes, which count before those of the same name."""
        return Namespaces(self.base, {**self.prefixes, **prefixes})


NO_NAMES = Namespaces("", {})
"""These are no prefixes and no base but the well-known ones."""


def find_prefix_fault(prefixes: Mapping[str, str]) -> str | None:
    """Return what is wrong with declared prefixes, None if nothing is."""
    if len(prefixes) > MOST_PREFIXES:
        return f"there are more than {MOST_PREFIXES} prefixes"
    for prefix, namespace in prefixes.items():
        if _PREFIX.fullmatch(prefix) is None:
            return f"{prefix[:64]!r} is no prefix, which has letters, digits, _, . and -"
        if len(namespace) > _LONGEST or not is_absolute_iri(namespace):
            return f"the prefix {prefix[:64]!r} stands for {namespace[:64]!r}, which is no absolute IRI of at most {_LONGEST} characters"
    return None

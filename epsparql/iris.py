"""This module resolves the IRIs of a query: its prologue, and references against BASE (RFC 3986 section 5)."""

import difflib
import re
from itertools import islice

from epsparql.deferred_methods import dataclass
from epsparql.errors import Edit, QueryError, Span, UnknownPrefix
from epsparql.literals import show_lexical
from epsparql.parser import ast, ast_queries
from epsparql.terms import RDF, XSD

_REFERENCE = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.S)  # RFC 3986, appendix B
_WELL_KNOWN = {
    "xsd": XSD,
    "xs": XSD,
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "sosa": "http://www.w3.org/ns/sosa/",
    "prov": "http://www.w3.org/ns/prov#",
}
_LISTED = 10
"""A message names at most this many prefixes."""
_COMPARED, _LEAST_COMPARED = 60, 3
"""A prefix that may be meant has at most this many characters. Shorter ones than three are similar by chance."""


@dataclass(frozen=True, slots=True)
class _Reference:
    """Holds a reference in its parts; None is a part that is absent, not empty."""

    scheme: str | None
    authority: str | None
    path: str
    query: str | None
    fragment: str | None

    @classmethod
    def split_iri(cls, text: str) -> "_Reference":
        found = _REFERENCE.fullmatch(text)
        assert found is not None, "the pattern matches every text"
        return cls(found[1], found[2], found[3], found[4], found[5])

    def __str__(self) -> str:
        scheme = "" if self.scheme is None else f"{self.scheme}:"
        authority = "" if self.authority is None else f"//{self.authority}"
        query = "" if self.query is None else f"?{self.query}"
        fragment = "" if self.fragment is None else f"#{self.fragment}"
        return f"{scheme}{authority}{self.path}{query}{fragment}"


def resolve(reference: str, base: str | None) -> str:
    """Return `reference` seen from `base` (RFC 3986, 5.2.2); as written where there is no base."""
    if base is None:
        return reference
    r, b = _Reference.split_iri(reference), _Reference.split_iri(base)
    if r.scheme is not None:
        return reference
    if r.authority is not None:
        return str(_Reference(b.scheme, r.authority, _without_dots(r.path), r.query, r.fragment))
    if not r.path:
        return str(_Reference(b.scheme, b.authority, b.path, b.query if r.query is None else r.query, r.fragment))
    path = r.path if r.path.startswith("/") else _merged(b, r.path)
    return str(_Reference(b.scheme, b.authority, _without_dots(path), r.query, r.fragment))


def _merged(base: _Reference, path: str) -> str:
    if base.authority is not None and not base.path:
        return "/" + path
    return base.path[: base.path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Remove dot segments from a path (RFC 3986, 5.2.4)."""
    if "." not in path:
        return path
    segments = path.split("/")
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            if len(kept) > 1 or (kept and kept[0] != ""):
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


MAX_WRITTEN_OUT = 1 << 23
"""All names of a query together, with their prefixes and BASE written out, have at most this many characters."""


class Names:
    """Keeps the prologue read so far: BASE and the prefixes, each also as written, which is how streams are named."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._base: str | None = None
        self._resolved: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._left = MAX_WRITTEN_OUT

    def declare(self, declaration: ast_queries.Declaration) -> None:
        iri = self._absolute(declaration.iri)
        if isinstance(declaration, ast_queries.BaseDeclaration):
            self._base = iri
        else:
            self._resolved[declaration.prefix] = iri
            self._written[declaration.prefix] = declaration.iri.text

    @property
    def base(self) -> str | None:
        """Return the last BASE, which IRI() resolves against."""
        return self._base

    def iri(self, name: ast.IriName) -> str:
        """Return a name's IRI, resolved against BASE. Raises UnknownPrefix."""
        if isinstance(name, ast.IriRef):
            return self._absolute(name)
        return self._expanded(self._resolved, name)

    def resolve_stream(self, name: ast_queries.StreamName) -> str:
        """Return a stream's name as written: prefixes are expanded, nothing is resolved (semantics.md section 1)."""
        match name.iri:
            case None:
                return "default"
            case ast.IriRef(text, _):
                return text
            case ast.PrefixedName():
                return self._expanded(self._written, name.iri)

    def _expanded(self, prefixes: dict[str, str], name: ast.PrefixedName) -> str:
        namespace = prefixes.get(name.prefix)
        if namespace is None:
            raise self._unknown(name)
        self._spend(len(namespace) + len(name.local), name.span)
        return namespace + name.local

    def _absolute(self, name: ast.IriRef) -> str:
        self._spend(len(name.text) + len(self._base or ""), name.span)
        return resolve(name.text, self._base)

    def _spend(self, size: int, span: Span) -> None:
        """Count the characters of a name. Raises: QueryError before the names of a short query take much memory."""
        self._left -= size
        if self._left < 0:
            message = f"written out, the names up to here take more than {MAX_WRITTEN_OUT:,} characters"
            raise QueryError(message, span, self._text, "a shorter BASE and shorter prefixes")

    def _unknown(self, name: ast.PrefixedName) -> UnknownPrefix:
        span = Span(name.span.start, name.span.start + len(name.prefix) + 1)
        near = self._nearest(name.prefix)
        is_meant = near is not None and name.prefix not in _WELL_KNOWN and min(len(near), len(name.prefix)) >= _LEAST_COMPARED
        edit = Edit(span.start, span.end, f"{near}:") if is_meant else self._declare_missing(name.prefix)
        if name.prefix in _WELL_KNOWN:
            hint = f"a line PREFIX {name.prefix}: <{_WELL_KNOWN[name.prefix]}>"
        elif near:
            hint = f"{near}:, the nearest prefix declared"
        elif self._resolved:
            listed = [f"{show_lexical(prefix)}:" for prefix in islice(self._resolved, _LISTED)]
            more = len(self._resolved) - len(listed)
            hint = f"a declared prefix ({', '.join(listed)}{f' and {more} more' if more else ''})"
        else:
            hint = f"a line PREFIX {show_lexical(name.prefix)}: <...> before the query"
        return UnknownPrefix(f"the prefix {show_lexical(name.prefix)}: is not declared", span, self._text, hint, (edit,))

    def _declare_missing(self, prefix: str) -> Edit:
        """Return the line that declares a prefix: a usual one as everybody does, another one for examples."""
        iri = _WELL_KNOWN.get(prefix, f"http://example.org/{prefix}#" if prefix else "http://example.org/")
        start = len(self._text) - len(self._text.lstrip("\ufeff"))
        return Edit(start, start, f"PREFIX {prefix}: <{iri}>\n")

    def _nearest(self, prefix: str) -> str | None:
        """Return the most similar prefix, whatever the case; long ones are not compared, which would take long."""
        folded = {known.casefold(): known for known in self._resolved if len(known) <= _COMPARED}
        near = difflib.get_close_matches(prefix.casefold(), folded, 1, 0.5) if len(prefix) <= _COMPARED else []
        return folded[near[0]] if near else None

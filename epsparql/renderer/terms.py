"""This module writes terms as text, and the prologue that they need."""

import re
from collections.abc import Iterator

from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.iris import resolve
from epsparql.terms import XSD, XSD_STRING, Iri, Literal, TermOrVariable, TripleTerm, TripleTermPattern, Variable
from epsparql.trees import walk_nodes

_SHORT = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile("true|false"),
}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_NAMESPACE = re.compile(r"(.*[/#])([A-Za-z_][A-Za-z0-9_]*)", re.S)


@dataclass(frozen=True, slots=True)
class TermWriter:
    """Writes terms: IRIs in `names` by a prefixed name, all other IRIs in full. A `short` text abbreviates all it can."""

    prologue: str
    names: dict[str, str]
    short: bool = False

    @classmethod
    def from_query(cls, query: a.Query, *, short: bool = False) -> "TermWriter":
        """Build the prologue of a query: a BASE where IRI(x) needs one, and prefixes for IRIs that BASE would change,
        or for all in a `short` text.
        """
        base = _base(query)
        used = dict.fromkeys(_iris(query))
        changed = [value for value in used if base is not None and resolve(value, base) != value]
        names = {value: f"r{number}:" for number, value in enumerate(changed)}
        prefixes = {prefix: value for value, prefix in names.items()}
        if short:
            parts = [(value, found[1], found[2]) for value in used if value not in names and (found := _NAMESPACE.fullmatch(value))]
            spaces = {space: f"n{number}:" for number, space in enumerate(dict.fromkeys(space for _, space, _ in parts))}
            names |= {value: spaces[space] + local for value, space, local in parts}
            prefixes |= {prefix: space for space, prefix in spaces.items()}
        lines = [f"PREFIX {prefix} {_iri(value)} " for prefix, value in prefixes.items()]
        return cls("".join(lines) + ("" if base is None else f"BASE {_iri(base)} "), names, short)

    def iri(self, value: str) -> str:
        return self.names.get(value) or _iri(value)

    def term(self, term: TermOrVariable) -> str:
        match term:
            case Iri(value):
                return self.iri(value)
            case TripleTerm() | TripleTermPattern():
                return f"<<( {self.term(term.subject)} {self.term(term.predicate)} {self.term(term.object)} )>>"
            case Variable(name) if term.hidden:
                return name
            case Literal(lexical, datatype, _) if datatype in _SHORT and _SHORT[datatype].fullmatch(lexical):
                return lexical
            case Literal(lexical, datatype, None) if datatype in self.names and datatype != XSD_STRING:
                return f"{_escaped(str(Literal(lexical)))}^^{self.names[datatype]}"
            case Literal():
                return _escaped(str(term))
            case _:
                return str(term)

    def triples(self, triples: tuple[a.TriplePattern, ...]) -> str:
        written = [(self.term(t.subject), self.term(t.predicate), self.term(t.object)) for t in triples]
        if not self.short:
            return " ".join(f"{subject} {predicate} {object_} ." for subject, predicate, object_ in written)
        parts = []
        before: tuple[str, str] = ("", "")
        for subject, predicate, object_ in written:
            if (subject, predicate) == before:
                parts.append(f",{object_}")
            elif subject == before[0]:
                parts.append(f";{predicate} {object_}")
            else:
                parts.append(f"{' .' if parts else ''} {subject} {predicate} {object_}")
            before = subject, predicate
        return "".join([*parts, " ."] if parts else [])


def write_stream(name: str) -> str:
    """Return a stream's name, which is never abbreviated: it is compared as written."""
    return _iri(name)


def _iri(value: str) -> str:
    return f"<{_escaped(value)}>"


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04X}", text)


def _base(query: a.Query) -> str | None:
    """Return the BASE that translation put into the calls of IRI; a query has one at most."""
    for node in walk_nodes(query):
        match node:
            case a.Call("IRI", (_, a.Constant(Iri(base)))):
                return base
    return None


def _iris(query: a.Query) -> Iterator[str]:
    """Yield every IRI that is written as one, as often as it is; datatypes too."""
    for node in walk_nodes(query):
        match node:
            case Iri(value):
                yield value
            case Literal(_, datatype, _):
                yield datatype
            case a.Call(function, _) if function.startswith("<"):
                yield function[1:-1]
            case a.InWindow(name, _) | a.NamedWindow(name, _, _, _):
                yield name
            case a.Dataset(default, named):
                yield from (*default, *named)

"""This module translates triples and property paths to patterns (SPARQL 1.1, 18.2.2.3 to 18.2.2.5), with the scope of
blank node labels.
"""

import re
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import assert_never, cast

from epsparql import algebra as a
from epsparql.errors import QueryError, ScopeFault, Span, SyntaxFault
from epsparql.parser import ast as s
from epsparql.terms import RDF, BlankNode, Iri, Literal, TermOrVariable, TripleTerm, TripleTermPattern, Variable
from epsparql.translate.context import Context

EMPTY = a.Bgp(())
_TAKEN = re.compile("b[0-9]+")
MAX_PATTERNS = 2_000
"""A query has at most this many triple patterns, those of collections and sequence paths among them.

Plans grow with them times the variables they bind.
"""
_REPEATED: dict[str, type[a.ZeroOrOne | a.ZeroOrMore | a.OneOrMore]] = {"?": a.ZeroOrOne, "*": a.ZeroOrMore, "+": a.OneOrMore}
Link = a.TriplePattern | a.Path
REIFIES = Iri(RDF + "reifies")


class TripleTranslator:
    """Translates the triples of one query: each blank node label belongs to one basic graph pattern."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._taken = set(_TAKEN.findall(context.text))  # wherever they stand: labels are among them
        self._count = 0
        self._fresh = 0
        self._bgp = 0  # the basic graph pattern being read; each has its own number
        self._bgps = 0
        self._home: dict[str, int] = {}  # the basic graph pattern of each blank node label
        self._writing = False  # whether a template is being read

    # ------------------------------------------------ basic graph patterns
    def enter_group(self) -> int:
        """Begin the basic graph patterns of a group; return the number to leave it with."""
        outer = self._bgp
        self.begin()
        return outer

    def leave_group(self, outer: int) -> None:
        self._bgp = outer

    def begin(self) -> None:
        """Begin another basic graph pattern: what stands between parts them (19.6)."""
        self._bgps += 1
        self._bgp = self._bgps

    def links(self, triples: s.TriplesSameSubject) -> list[Link]:
        """Return the triple patterns and paths of one subject, in the order of the text."""
        found: list[Link] = []
        self._describe(self._node(triples.subject, found), triples.properties, found, triples.subject.span.start)
        return found

    def _describe(self, subject: TermOrVariable, properties: tuple[s.Property, ...], found: list[Link], start: int | None = None) -> None:
        """Add the triples of a subject to `found`; `start` is where the subject stands, if the text names it just
        before.
        """
        for prop in properties:
            for node in prop.objects:
                inner: list[Link] = []
                first = prop.verb.span.start if start is None else start
                span = Span(first if node is prop.objects[0] else node.span.start, node.span.end)
                object_ = self._node(node.node if isinstance(node, s.Annotated) else node, inner)
                self._add_links(self._linked(subject, prop.verb, object_), span, found)
                if isinstance(node, s.Annotated):
                    self._annotate(_triple(subject, self._plain_verb(cast(s.PlainVerb, prop.verb)), object_), node, inner)
                found += inner
            start = None

    def _annotate(self, triple: TripleTerm | TripleTermPattern, node: s.Annotated, found: list[Link]) -> None:
        """Add the reifiers of a triple, and what is said of them: a block is about the reifier just before it, else
        about one of its own.
        """
        last: TermOrVariable | None = None
        for part in node.annotations:
            if isinstance(part, s.Reifier):
                last = self._reify(triple, part, part.span, found)
            else:
                about = self._reify(triple, None, part.span, found) if last is None else last
                self._describe(about, part.properties, found)
                last = None

    def _reify(self, triple: TripleTerm | TripleTermPattern, reifier: s.Reifier | None, span: Span, found: list[Link]) -> TermOrVariable:
        name = self._fresh_blank() if reifier is None else self._node(reifier.name, found)
        self._add_links([a.TriplePattern(name, REIFIES, triple)], span, found)
        return name

    def _add_links(self, links: Iterable[Link], span: Span, found: list[Link]) -> None:
        for link in links:
            self._count += 1
            if self._count > MAX_PATTERNS:
                self._context.fail(QueryError, f"the query has more than {MAX_PATTERNS:,} triple patterns", span, "several smaller queries")
            self._context.places.note(link, span)
            found.append(link)

    def _linked(self, subject: TermOrVariable, verb: s.Verb, object_: TermOrVariable) -> Iterator[Link]:
        """Yield what a predicate or path links: a path that is a link, an inverse or a sequence is triple patterns
        with hidden nodes between.
        """
        match verb:
            case s.VariableName(name, _):
                yield a.TriplePattern(subject, Variable(name), object_)
            case s.IriRef() | s.PrefixedName() | s.TypeVerb():
                yield a.TriplePattern(subject, self._context.predicate(verb), object_)
            case _ if self._writing:
                message = "a property path stands in a template, where each triple has one predicate"
                self._context.fail(SyntaxFault, message, verb.span, "an IRI or a variable")
            case s.InversePath(path, _):
                yield from self._linked(object_, path, subject)
            case s.SequencePath(parts, _):
                nodes = [subject, *(self._fresh_blank() for _ in parts[1:]), object_]
                for index, part in enumerate(parts):
                    yield from self._linked(nodes[index], part, nodes[index + 1])
            case s.AlternativePath() | s.RepeatedPath() | s.NegatedPath():
                yield a.Path(subject, self._translate_path(verb), object_)
            case _:
                assert_never(verb)

    def _plain_verb(self, verb: s.PlainVerb) -> Iri | Variable:
        return Variable(verb.name) if isinstance(verb, s.VariableName) else self._context.predicate(verb)

    def _translate_path(self, path: s.Path) -> a.PropertyPath:
        match path:
            case s.IriRef() | s.PrefixedName() | s.TypeVerb():
                return a.Link(self._context.predicate(path))
            case s.InversePath(inner, _):
                return a.Inverse(self._translate_path(inner))
            case s.SequencePath(parts, _):
                return reduce(a.Sequence, map(self._translate_path, parts))
            case s.AlternativePath(parts, _):
                return reduce(a.Alternative, map(self._translate_path, parts))
            case s.RepeatedPath(inner, modifier, _):
                return _REPEATED[modifier](self._translate_path(inner))
            case s.NegatedPath():
                return self._negated(path)
        assert_never(path)

    def _negated(self, path: s.NegatedPath) -> a.Negated:
        forward = tuple(self._context.predicate(part) for part in path.parts if not isinstance(part, s.InversePath))
        backward = tuple(
            self._context.predicate(part.path)
            for part in path.parts
            if isinstance(part, s.InversePath) and isinstance(part.path, s.IriRef | s.PrefixedName | s.TypeVerb)
        )
        return a.Negated(forward if forward or not backward else None, backward or None)

    def block(self, links: list[Link]) -> a.Pattern:
        """Return triples that no other element parts: one basic graph pattern, to which the paths are joined."""
        if not links:
            return EMPTY
        places = self._context.places
        spans = [span for link in links if (span := places.find_span(link)) is not None]
        pattern: a.Pattern = a.Bgp(tuple(link for link in links if isinstance(link, a.TriplePattern)))
        places.note(pattern, Span(min(span.start for span in spans), max(span.end for span in spans)))
        for link, span in zip(links, spans, strict=True):
            if isinstance(link, a.Path):
                pattern = join_patterns(self._context, pattern, link, span)
        return pattern

    # ------------------------------------------------ nodes
    def _node(self, node: s.Node, found: list[Link]) -> TermOrVariable:
        """Return the node's term; what it stands for is added to `found`."""
        match node:
            case s.VariableName(name, _):
                return Variable(name)
            case s.BlankLabel():
                return self._blank(node)
            case s.Anonymous():
                return self._fresh_blank()
            case s.BlankProperties(properties, _):
                subject = self._fresh_blank()
                self._describe(subject, properties, found)
                return subject
            case s.Collection(items, _):
                return self._collection(items, found)
            case s.TripleNode(subject, verb, object_, _):
                return _triple(self._node(subject, found), self._plain_verb(verb), self._node(object_, found))
            case s.ReifiedTriple(subject, verb, object_, reifier, span):
                triple = _triple(self._node(subject, found), self._plain_verb(verb), self._node(object_, found))
                return self._reify(triple, reifier, span, found)
            case _:
                return self._context.term(node)

    def _collection(self, items: tuple[s.Node, ...], found: list[Link]) -> TermOrVariable:
        cells: list[TermOrVariable] = [*(self._fresh_blank() for _ in items), Iri(RDF + "nil")]
        for index, item in enumerate(items):
            inner: list[Link] = []
            self._add_links([a.TriplePattern(cells[index], Iri(RDF + "first"), self._node(item, inner))], item.span, found)
            found += inner
            self._add_links([a.TriplePattern(cells[index], Iri(RDF + "rest"), cells[index + 1])], item.span, found)
        return cells[0]

    def _blank(self, node: s.BlankLabel) -> Variable:
        home = self._home.setdefault(node.label, self._bgp)
        if home != self._bgp:
            message = f"the blank node _:{node.label} already stands in another group of triples, where it is another node"
            self._context.fail(ScopeFault, message, node.span, "a variable, or another label")
        return Variable(f"_:{node.label}")

    def _fresh_blank(self) -> Variable:
        while f"b{self._fresh}" in self._taken:
            self._fresh += 1
        self._fresh += 1
        return Variable(f"_:b{self._fresh - 1}")

    # ------------------------------------------------ templates
    def template(self, triples: tuple[s.TriplesSameSubject, ...], visible: tuple[Variable, ...]) -> tuple[a.TriplePattern, ...]:
        """Return the triples that a CONSTRUCT writes; labels in it are its own."""
        self._home, self._writing = {}, True
        self.begin()
        written: list[a.TriplePattern] = []
        for one in triples:
            patterns = [link for link in self.links(one) if isinstance(link, a.TriplePattern)]
            self._check_template(one, patterns, visible)
            written += (a.TriplePattern(*map(_template_term, (t.subject, t.predicate, t.object))) for t in patterns)
        return tuple(written)

    def _check_template(self, element: s.TriplesSameSubject, triples: list[a.TriplePattern], visible: tuple[Variable, ...]) -> None:
        if isinstance(element.subject, s.StringLiteral | s.NumericLiteral | s.BooleanLiteral):
            self._context.warn("literal-subject", "a literal is no subject: this triple is never written", element.subject.span)
        used = dict.fromkeys(variable for t in triples for variable in a.variables_in(t.subject, t.predicate, t.object) if not variable.hidden)
        for variable in used:
            if variable not in visible:
                message = "stands in the template and no pattern binds it: triples with it are never written"
                self._context.warn_unbound(variable, message, element.span, visible)


def join_patterns(context: Context, left: a.Pattern, right: a.Pattern, span: Span, *, unrestricted: bool = True) -> a.Pattern:
    """Join two patterns; the empty group is the neutral element (SPARQL 18.2.2.8).

    `span` is where the join stands, that is, what makes it. A policy acts on an AND, which is not `unrestricted`.
    """
    if left == EMPTY:
        return right
    if right == EMPTY:
        return left
    join = a.Join(left, right, unrestricted)
    context.places.note(join, span)
    return join


def _triple(subject: TermOrVariable, predicate: Iri | Variable, object_: TermOrVariable) -> TripleTerm | TripleTermPattern:
    """Return a triple term, or the pattern of one where it has variables, or a subject that no triple term has."""
    match subject, predicate, object_:
        case Iri(), Iri(), Iri() | Literal() | TripleTerm():
            return TripleTerm(subject, predicate, object_)
    return TripleTermPattern(subject, predicate, object_)


def _template_term(term: TermOrVariable) -> TermOrVariable:
    if isinstance(term, TripleTermPattern):
        return TripleTermPattern(_template_term(term.subject), term.predicate, _template_term(term.object))
    return BlankNode(term.name[2:]) if isinstance(term, Variable) and term.hidden else term

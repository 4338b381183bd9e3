"""This module translates text to algebra: SPARQL 1.1 section 18.2 with EP-SPARQL's operators (semantics.md section 3).

It raises every error of a query.
"""

import re
from dataclasses import field
from functools import lru_cache
from typing import assert_never

from epsparql import algebra as a
from epsparql.algebra.in_scope_variables import visible_variables
from epsparql.algebra.normalize import renumbered
from epsparql.deferred_methods import dataclass
from epsparql.errors import QueryError, Span, SyntaxFault, Warning_
from epsparql.etalis.header import is_program, split_header
from epsparql.lint.near_variables import find_near_variables
from epsparql.lint.warnings import doubts
from epsparql.literals import MAX_LENGTH, MAX_TREE_DEPTH, MAX_WORDS, word_beyond
from epsparql.parser import ast as s
from epsparql.parser import ast_queries as f
from epsparql.recursion import deep_stack
from epsparql.terms import Iri, Variable
from epsparql.translate.context import Context
from epsparql.translate.dataset_clauses import sources_of, stream_name, streams_of
from epsparql.translate.group_patterns import Groups
from epsparql.translate.parameters import add_parameters, list_parameters
from epsparql.translate.parsed_texts import look_up
from epsparql.translate.select import list_shown
from epsparql.translate.source_map import SourceMap
from epsparql.trees import list_fields, tree_depth

_RECENT = 64  # texts: a registration asks for the meaning of one text four times, each in another thread, and several are registered at once


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """Holds a query with the text it came from and the doubts about it."""

    query: a.Query
    text: str
    warnings: tuple[Warning_, ...]
    places: SourceMap = field(default_factory=SourceMap, compare=False, repr=False)


@lru_cache(maxsize=_RECENT)
def parse(text: str) -> ParsedQuery:
    """Return the meaning of a query's text. Raises `QueryError`."""
    known = look_up(text)
    return _parse(text) if known is None else known


def _parse(text: str) -> ParsedQuery:
    _check_text(text)
    if is_program(text):
        return _parse_program(text)
    from epsparql.parser.grammar import parse_document  # a third of a second, which a process that parses nothing does not need

    with deep_stack():
        document = parse_document(text)
        return _Translation(text).translate_document(document)


def _parse_program(text: str) -> ParsedQuery:
    """Return the meaning of a program of the ETALIS Language for Events."""
    from epsparql.etalis.translator import translate_program  # most processes have no programs

    program, policy = split_header(text)
    with deep_stack():
        found = translate_program(program, policy)
    return ParsedQuery(found.query, text, found.warnings, SourceMap(found.places, found.sources))


def _check_text(text: str) -> None:
    if len(text) > MAX_LENGTH:
        message = f"the query has {len(text):,} characters; at most {MAX_LENGTH:,} are read"
        raise QueryError(message, Span(MAX_LENGTH, len(text)), text, "a shorter query")
    if (beyond := word_beyond(text)) is not None:
        message = f"the query has more than {MAX_WORDS:,} words and signs"
        raise QueryError(message, Span(beyond, len(text)), text, "several smaller queries")
    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate:
        message = f"unexpected character U+{ord(surrogate[0]):04X}, half of a surrogate pair"
        raise SyntaxFault(message, Span(*surrogate.span()), text, "text in Unicode")


class _Translation:
    """Translates one query to the algebra, form by form."""

    def __init__(self, text: str) -> None:
        self._context = Context(text)
        self._groups = Groups(self._context)
        self._selects = self._groups.selects

    def translate_document(self, document: f.Document) -> ParsedQuery:
        for declaration in document.declarations:
            self._context.names.declare(declaration)
        clause = list_parameters(document.query.sources)
        self._context.parameters = frozenset() if clause is None else frozenset(Variable(name.name) for name in clause.names)
        query = self._query(document.query, document.registration)
        if clause is not None:
            query = add_parameters(self._context, query, clause)
        if tree_depth(query) > MAX_TREE_DEPTH:
            self._context.fail_depth(_too_deep(document.query) or document.query.body.where.span)
        found = [*self._context.warnings, *doubts(document, self._context.names, self._context.text)]
        found += find_near_variables(document.query, [warning.span for warning in found if warning.span is not None])
        numbered, places = renumbered(query), self._context.places
        places = places if numbered is query else places.moved(query, numbered)
        return ParsedQuery(numbered, self._context.text, tuple(sorted(found, key=_find_position)), places)

    def _query(self, query: f.QueryForm, registration: f.RegisterClause | None) -> a.Query:
        sources = sources_of(self._context, query.sources, registration)
        self._context.windows = sources.windows
        streams = streams_of(self._context, query.sources)
        output = None if registration is None else registration.output
        match query:
            case f.SelectQuery(select, _):
                pattern, projection, modifiers = self._selects.select(select)
                self._warn_of_output(output)
                return a.Select(pattern, projection, select.distinct, streams, modifiers, sources)
            case f.ConstructQuery(into=f.GraphName() as graph):
                return self._static_rule(query, graph, sources, output)
            case f.ConstructQuery():
                into = self._into(query.into, output)
                pattern = self._selects.translate_body(query.body)
                rule = a.Construct(self._groups.triples.template(query.template, visible_variables(pattern)), pattern, streams, into, sources)
                self._context.places.note(rule, query.span)
                return rule
            case f.AskQuery():
                self._warn_of_output(output)
                return a.Ask(self._selects.translate_body(query.body, ordered=False), streams, sources)
            case f.DescribeQuery(targets):
                self._warn_of_output(output)
                pattern = self._selects.translate_body(query.body)
                return a.Describe(self._targets(targets, pattern), pattern, streams, sources)
        assert_never(query)

    def _static_rule(self, query: f.ConstructQuery, graph: f.GraphName, sources: a.Sources, output: f.StreamName | None) -> a.BackgroundRule:
        """Return a rule over the background. It has no stream to read or to write."""
        for source in query.sources:
            if not isinstance(source, f.FromGraph):
                self._context.fail(
                    SyntaxFault, "a rule into the background reads no stream", source.span, "FROM or FROM NAMED with the IRI of a graph"
                )
        if output is not None:
            self._context.fail(
                SyntaxFault, "REGISTER names a stream, and the rule writes into the background", output.span, "the rule without REGISTER"
            )
        pattern = self._selects.translate_body(query.body)
        template = self._groups.triples.template(query.template, visible_variables(pattern))
        rule = a.BackgroundRule(template, pattern, self._context.names.iri(graph.iri), (), sources)
        self._context.places.note(rule, query.span)
        return rule

    def _into(self, into: f.StreamName | f.GraphName | None, output: f.StreamName | None) -> str:
        """Return the stream that a CONSTRUCT writes: INTO STREAM and REGISTER name it in two languages."""
        if into is not None and output is not None:
            self._context.fail(SyntaxFault, "REGISTER already names the stream that is written", into.span, "one of REGISTER ... AS and INTO STREAM")
        name = into if output is None else output
        assert not isinstance(name, f.GraphName), "that is a static rule"
        return a.DEFAULT_STREAM if name is None else stream_name(self._context, name)

    def _warn_of_output(self, output: f.StreamName | None) -> None:
        if output is not None:
            name = stream_name(self._context, output)
            message = f"only a CONSTRUCT writes into a stream: the solutions of this query are reported, and <{name}> gets nothing"
            self._context.warn("no-output", message, output.span)

    def _targets(self, targets: tuple[s.IriName | s.VariableName, ...], pattern: a.Pattern) -> tuple[Iri | Variable, ...]:
        if not targets:
            return list_shown(pattern)
        visible = visible_variables(pattern)
        found: dict[Iri | Variable, None] = {}
        for target in targets:
            term = Variable(target.name) if isinstance(target, s.VariableName) else Iri(self._context.names.iri(target))
            if isinstance(term, Variable) and term not in visible:
                self._context.warn_unbound(term, "is described and no pattern binds it", target.span, visible)
            found[term] = None
        return tuple(found)


def _too_deep(query: f.QueryForm) -> Span | None:
    """Return the first expression that is too deep by itself, found without recursion."""
    pending: list[tuple[object, Span | None, int]] = [(query, None, 0)]
    while pending:
        node, outermost, depth = pending.pop()
        if isinstance(node, tuple):
            pending += [(part, outermost, depth) for part in reversed(node)]
        elif (names := list_fields(type(node))) is not None:
            outermost, depth = (outermost or node.span, depth + 1) if isinstance(node, s.Expression) else (None, 0)
            if depth > MAX_TREE_DEPTH:
                return outermost
            pending += [(getattr(node, name), outermost, depth) for name in reversed(names)]
    return None


def _find_position(warning: Warning_) -> int:
    return 0 if warning.span is None else warning.span.start

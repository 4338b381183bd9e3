"""Syntax to algebra: SPARQL 1.1 section 18.2 with EP-SPARQL's operators (semantics.md section 3). Raises every error of meaning."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import NoReturn, assert_never

from epsparql import algebra as a
from epsparql import syntax as s
from epsparql.check import (
    MAX_MICROS,
    MAX_TREE_DEPTH,
    duration_micros,
    likely_duration,
    literal_fault,
    shown,
    tree_depth,
    unbound_in_conditions,
    visible_variables,
)
from epsparql.errors import InvalidLiteral, QueryError, ScopeFault, Span, SyntaxFault, Warning_
from epsparql.expressions import expression as translate_expression
from epsparql.grammar import parse_document
from epsparql.names import Names
from epsparql.terms import RDF, RDF_LANG_STRING, XSD, XSD_STRING, BlankNode, Iri, Literal, TermOrVariable, Variable

MAX_LENGTH = 20_000
"""Characters of a query's text."""

_EMPTY = a.Bgp(())
_LOCK = threading.Lock()
_FRAMES = 20_000
_BLANK_LABEL = re.compile(r"_:([\w.\-]+)")
_RELATIONS = {relation.value: relation for relation in a.Relation}


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query with the text it came from and the doubts about it."""

    query: a.Query
    text: str
    warnings: tuple[Warning_, ...]


def parse(text: str) -> ParsedQuery:
    """The meaning of a query's text. Raises `QueryError`."""
    _check_text(text)
    with _deep_stack():
        document = parse_document(text)
        return _Translation(text).document(document)


def _check_text(text: str) -> None:
    if len(text) > MAX_LENGTH:
        message = f"the query has {len(text):,} characters; at most {MAX_LENGTH:,} are read"
        raise QueryError(message, Span(MAX_LENGTH, len(text)), text, "a shorter query")
    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate:
        message = f"unexpected character U+{ord(surrogate[0]):04X}, half of a surrogate pair"
        raise SyntaxFault(message, Span(*surrogate.span()), text, "text in Unicode")


@contextmanager
def _deep_stack() -> Iterator[None]:
    """Room for 100 open brackets, each some thirty frames of the parser; the limit is the process's, hence the lock."""
    with _LOCK:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _FRAMES))
        try:
            yield
        finally:
            sys.setrecursionlimit(limit)


# ---------------------------------------------------------------- the state of one translation
class _Translation:
    """One query on its way to the algebra: its names, its blank node labels, the warnings so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._names = Names(text)
        self._warnings: list[Warning_] = []
        self._taken = set(_BLANK_LABEL.findall(text))
        self._fresh = 0
        self._bgp = 0  # the basic graph pattern being read; each has its own number
        self._bgps = 0
        self._home: dict[str, int] = {}  # the basic graph pattern of each blank node label

    # ------------------------------------------------ queries
    def document(self, document: s.Document) -> ParsedQuery:
        for declaration in document.declarations:
            self._names.declare(declaration)
        match document.query:
            case s.SelectQuery():
                query: a.Query = self._select(document.query)
            case s.ConstructQuery():
                query = self._construct(document.query)
            case _:
                assert_never(document.query)
        if tree_depth(query) > MAX_TREE_DEPTH:
            message = f"the query is more than {MAX_TREE_DEPTH} operators deep"
            raise QueryError(message, document.query.where.span, self._text, "fewer operators in a row, such as IN for a list of comparisons")
        self._warn_of_scope(query.pattern)
        return ParsedQuery(query, self._text, tuple(self._warnings))

    def _warn_of_scope(self, pattern: a.Pattern) -> None:
        for variable in unbound_in_conditions(pattern):
            message = f"{variable} stands in a FILTER or BIND whose own group does not bind it, so its value there is always an error"
            self._warnings.append(Warning_("out-of-scope", message, None))

    def _select(self, select: s.SelectQuery) -> a.Select:
        pattern = self.pattern(select.where)
        visible = visible_variables(pattern)
        if not select.items:
            projection = tuple(variable for variable in visible if not variable.hidden)
        else:
            pattern, projection = self._projected(select.items, pattern, visible)
        return a.Select(pattern, projection, select.distinct, self._streams(select.streams))

    def _projected(
        self, items: tuple[s.SelectItem, ...], pattern: a.Pattern, visible: tuple[Variable, ...]
    ) -> tuple[a.Pattern, tuple[Variable, ...]]:
        scope = set(visible)
        projection: dict[Variable, None] = {}
        for item in items:
            variable = Variable(item.variable.name)
            if item.expression is None:
                self._check_bound(variable, scope, item.span)
            else:
                if variable in scope or variable in projection:
                    self._fail_scope(variable, item.variable.span, "the query already has it")
                pattern = a.Extend(pattern, variable, self.expression(item.expression))
                scope.add(variable)
            projection[variable] = None
        return pattern, tuple(projection)

    def _check_bound(self, variable: Variable, scope: set[Variable], span: Span) -> None:
        if variable not in scope:
            self._warnings.append(Warning_("never-bound", f"{variable} is selected and no pattern binds it", span))

    def _construct(self, construct: s.ConstructQuery) -> a.Construct:
        pattern = self.pattern(construct.where)
        template = self._template(construct.where.elements if construct.short else construct.template, visible_variables(pattern))
        into = a.DEFAULT_STREAM if construct.into is None else self._stream(construct.into)
        return a.Construct(template, pattern, self._streams(construct.streams), into)

    def _template(self, elements: tuple[s.Element, ...], visible: tuple[Variable, ...]) -> tuple[a.TriplePattern, ...]:
        self._bgp, self._home = self._next_bgp(), {}  # labels of the template are its own
        written: list[a.TriplePattern] = []
        for element in elements:
            assert isinstance(element, s.Triples), "the grammar lets nothing else into a template"
            triples = self._triples(element)
            self._check_template(element, triples, visible)
            written += (a.TriplePattern(*map(_template_term, (t.subject, t.predicate, t.object))) for t in triples)
        return tuple(written)

    def _check_template(self, element: s.Triples, triples: list[a.TriplePattern], visible: tuple[Variable, ...]) -> None:
        if isinstance(element.subject, s.StringLiteral | s.NumericLiteral | s.BooleanLiteral):
            message = "a literal is no subject: this triple is never written"
            self._warnings.append(Warning_("literal-subject", message, element.subject.span))
        used = dict.fromkeys(term for t in triples for term in (t.subject, t.predicate, t.object) if isinstance(term, Variable) and not term.hidden)
        for variable in used:
            if variable not in visible:
                message = f"{variable} stands in the template and no pattern binds it: triples with it are never written"
                self._warnings.append(Warning_("never-bound", message, element.span))

    def _streams(self, streams: tuple[s.StreamName, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._stream(stream) for stream in streams)) or (a.DEFAULT_STREAM,)

    def _stream(self, stream: s.StreamName) -> str:
        name = self._names.stream(stream)
        if not name:
            raise SyntaxFault("a stream's name is not empty", stream.span, self._text, "the IRI of a stream")
        return name

    # ------------------------------------------------ groups
    def pattern(self, group: s.Group) -> a.Pattern:
        """A group whose FILTERs filter itself."""
        inner, condition = self._group(group)
        return inner if condition is None else a.Filter(condition, inner)

    def _group(self, group: s.Group) -> tuple[a.Pattern, a.Expression | None]:
        """A group without its own FILTERs, and their conjunction."""
        outer, self._bgp = self._bgp, self._next_bgp()
        pattern: a.Pattern = _EMPTY
        triples: list[a.TriplePattern] = []
        condition: a.Expression | None = None
        for element in group.elements:
            match element:
                case s.Triples():
                    triples += self._triples(element)
                case s.FilterElement():
                    further = self.expression(element.condition)
                    condition = further if condition is None else a.And(condition, further)
                case _:
                    pattern = self._applied(element, _join(pattern, a.Bgp(tuple(triples))))
                    triples, self._bgp = [], self._next_bgp()
        self._bgp = outer
        return _join(pattern, a.Bgp(tuple(triples))), condition

    def _applied(self, element: s.BindElement | s.OptionalElement | s.MinusElement | s.Chain, pattern: a.Pattern) -> a.Pattern:
        """`element` applied to what stands before it in its group."""
        match element:
            case s.OptionalElement(group, _):
                return a.LeftJoin(pattern, *self._group(group))
            case s.MinusElement(group, _):
                return a.Minus(pattern, self.pattern(group))
            case s.BindElement():
                return self._bind(element, pattern)
            case s.Chain():
                return _join(pattern, self._chain(element))
        assert_never(element)

    def _bind(self, bind: s.BindElement, pattern: a.Pattern) -> a.Extend:
        variable = Variable(bind.variable.name)
        if variable in visible_variables(pattern):
            self._fail_scope(variable, bind.variable.span, "the group already has it before BIND")
        return a.Extend(pattern, variable, self.expression(bind.expression))

    def _fail_scope(self, variable: Variable, span: Span, reason: str) -> NoReturn:
        raise ScopeFault(f"{variable} cannot be assigned: {reason}", span, self._text, "a variable that is new here")

    # ------------------------------------------------ chains
    def _chain(self, chain: s.Chain) -> a.Pattern:
        self._warn_of_mixture(chain)
        pattern, condition = self._group(chain.first)
        seq: a.SeqWithout | None = None  # the last SEQ, as it would be with a WITHOUT; only WITHIN may stand between
        for index, step in enumerate(chain.steps):
            optional = isinstance(step, s.Combine) and step.operator is s.ChainOperator.OPTIONALSEQ
            if condition is not None and not (index == 0 and optional):
                pattern, condition = a.Filter(condition, pattern), None
            match step:
                case s.Combine():
                    pattern = self._combined(step, pattern, condition)
                    seq = a.SeqWithout(pattern.left, pattern.right, _EMPTY) if isinstance(pattern, a.SeqJoin) else None
                    condition = None
                case s.WithinStep(duration, _):
                    limit = self._duration(duration, zero=True)
                    pattern = a.Within(pattern, limit)
                    if seq is not None:
                        seq = a.SeqWithout(seq.left, seq.right, _EMPTY, limit if seq.within is None else min(seq.within, limit))
                case s.WithoutStep():
                    pattern = self._without(step, pattern, seq)
                    seq = None
                case _:
                    assert_never(step)
        return pattern if condition is None else a.Filter(condition, pattern)

    def _combined(self, step: s.Combine, left: a.Pattern, condition: a.Expression | None) -> a.Pattern:
        """`condition` is that of the left group where OPTIONALSEQ follows it, else None."""
        match step.operator:
            case s.ChainOperator.EQUALSOPTIONAL:
                return a.EqLeftJoin(left, *self._group(step.group))
            case s.ChainOperator.OPTIONALSEQ:
                return a.SeqRightJoin(left, self.pattern(step.group), condition)
            case s.ChainOperator.SEQ:
                return a.SeqJoin(left, self.pattern(step.group))
            case s.ChainOperator.EQUALS:
                return a.EqJoin(left, self.pattern(step.group))
            case s.ChainOperator.UNION:
                return a.Union(left, self.pattern(step.group))
            case s.ChainOperator.AND:
                return _join(left, self.pattern(step.group))
            case _:
                return a.RelationJoin(_RELATIONS[step.operator.value], left, self.pattern(step.group))

    def _without(self, step: s.WithoutStep, pattern: a.Pattern, seq: a.SeqWithout | None) -> a.Pattern:
        absent = self.pattern(step.group)
        if step.duration is not None:
            return a.WithoutFor(pattern, absent, self._duration(step.duration, zero=False))
        if seq is None:
            message = "WITHOUT has no SEQ directly before it in its chain, whose operands it could stand between"
            expected = "{...} SEQ {...} WITHOUT {...} with only WITHIN between, or FOR and a duration; several absences are one WITHOUT { {...} UNION {...} }"
            raise SyntaxFault(message, step.span, self._text, expected)
        return a.SeqWithout(seq.left, seq.right, absent, seq.within)

    def _warn_of_mixture(self, chain: s.Chain) -> None:
        operators = [step for step in chain.steps if isinstance(step, s.Combine)]
        other = next((step for step in operators if step.operator is not operators[0].operator), None)
        if other is not None:
            message = f"the chain mixes {operators[0].operator.value} and {other.operator.value}, which apply from left to right; braces would say so"
            self._warnings.append(Warning_("mixed-operators", message, other.span))

    def _duration(self, duration: s.DurationText, *, zero: bool) -> a.Micros:
        """The microseconds of a duration after WITHIN (where zero is allowed) or FOR."""
        if duration.datatype is not None and self._names.iri(duration.datatype) not in (XSD + "duration", XSD + "dayTimeDuration", XSD_STRING):
            raise InvalidLiteral("this is no xsd:duration", duration.span, self._text, '"..."^^xsd:duration')
        micros = self._seconds(duration) if duration.seconds else self._parsed_duration(duration)
        if micros < 0 or (micros == 0 and not zero):
            raise InvalidLiteral("the duration is not positive", duration.span, self._text, "a duration longer than zero")
        if micros > MAX_MICROS:
            raise InvalidLiteral("the duration is too long", duration.span, self._text, f"at most {MAX_MICROS // 86_400_000_000:,} days")
        return micros

    def _seconds(self, duration: s.DurationText) -> a.Micros:
        """Exact: no rounding, and no arithmetic with exponents that only look like a number of seconds."""
        try:
            seconds = Decimal(duration.lexical)
        except InvalidOperation:
            raise InvalidLiteral("the number of seconds is out of range", duration.span, self._text, "a number of seconds") from None
        if seconds == 0:
            return 0
        if abs(seconds.adjusted()) > 20:
            return MAX_MICROS + 1 if seconds.adjusted() > 0 else self._fail_fineness(duration)
        micros = Fraction(seconds) * 1_000_000
        return int(micros) if micros.denominator == 1 else self._fail_fineness(duration)

    def _fail_fineness(self, duration: s.DurationText) -> NoReturn:
        raise InvalidLiteral("the duration is finer than a microsecond", duration.span, self._text, "at most six digits after the point")

    def _parsed_duration(self, duration: s.DurationText) -> a.Micros:
        literal = Literal(duration.lexical, XSD + "duration")
        fault = literal_fault(literal)
        if fault is not None:
            raise InvalidLiteral(f'"{shown(duration.lexical)}" is no duration', duration.span, self._text, likely_duration(duration.lexical))
        micros = duration_micros(duration.lexical)
        if micros is None:
            message = "the duration has months or years, which have no fixed length, or is finer than a microsecond"
            raise InvalidLiteral(message, duration.span, self._text, "days, hours, minutes and seconds, such as P30D")
        return micros

    # ------------------------------------------------ triples
    def _next_bgp(self) -> int:
        self._bgps += 1
        return self._bgps

    def _triples(self, triples: s.Triples) -> list[a.TriplePattern]:
        found: list[a.TriplePattern] = []
        self._describe(self._node(triples.subject, found), triples.properties, found)
        return found

    def _describe(self, subject: TermOrVariable, properties: tuple[s.Property, ...], found: list[a.TriplePattern]) -> None:
        for prop in properties:
            predicate = self._verb(prop.verb)
            for node in prop.objects:
                inner: list[a.TriplePattern] = []
                found.append(a.TriplePattern(subject, predicate, self._node(node, inner)))
                found += inner

    def _verb(self, verb: s.Verb) -> TermOrVariable:
        match verb:
            case s.TypeVerb():
                return Iri(RDF + "type")
            case s.VariableName(name, _):
                return Variable(name)
            case s.IriRef() | s.PrefixedName():
                return Iri(self._names.iri(verb))
        assert_never(verb)

    def _node(self, node: s.Node, found: list[a.TriplePattern]) -> TermOrVariable:
        """The node's term; the triples it stands for are added to `found`."""
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
            case _:
                return self.term(node)

    def _collection(self, items: tuple[s.Node, ...], found: list[a.TriplePattern]) -> TermOrVariable:
        cells: list[TermOrVariable] = [*(self._fresh_blank() for _ in items), Iri(RDF + "nil")]
        for index, item in enumerate(items):
            inner: list[a.TriplePattern] = []
            found.append(a.TriplePattern(cells[index], Iri(RDF + "first"), self._node(item, inner)))
            found += inner
            found.append(a.TriplePattern(cells[index], Iri(RDF + "rest"), cells[index + 1]))
        return cells[0]

    def _blank(self, node: s.BlankLabel) -> Variable:
        home = self._home.setdefault(node.label, self._bgp)
        if home != self._bgp:
            message = f"the blank node _:{node.label} already stands in another group of triples, where it is another node"
            raise ScopeFault(message, node.span, self._text, "a variable, or another label")
        return Variable(f"_:{node.label}")

    def _fresh_blank(self) -> Variable:
        while f"b{self._fresh}" in self._taken:
            self._fresh += 1
        self._fresh += 1
        return Variable(f"_:b{self._fresh - 1}")

    # ------------------------------------------------ terms and expressions
    def term(self, node: s.IriRef | s.PrefixedName | s.StringLiteral | s.NumericLiteral | s.BooleanLiteral) -> Iri | Literal:
        """A constant. Raises InvalidLiteral where its lexical form is not its datatype's."""
        match node:
            case s.IriRef() | s.PrefixedName():
                return Iri(self._names.iri(node))
            case s.NumericLiteral(text, _):
                return Literal(text, _number_type(text))
            case s.BooleanLiteral(text, _):
                return Literal(text, XSD + "boolean")
            case s.StringLiteral(lexical, str() as language, _, _):
                return Literal(lexical, RDF_LANG_STRING, language)
            case s.StringLiteral(lexical, None, None, _):
                return Literal(lexical)
            case s.StringLiteral(lexical, _, datatype, span) if datatype is not None:
                return self._checked(Literal(lexical, self._names.iri(datatype)), span)
        raise AssertionError(node)

    def _checked(self, literal: Literal, span: Span) -> Literal:
        fault = literal_fault(literal)
        if fault is not None and fault.fatal:
            raise InvalidLiteral(fault.message, span, self._text, fault.expected)
        if fault is not None:
            self._warnings.append(Warning_("ill-typed", f"{fault.message}; a legal form is {fault.expected}", span))
        return literal

    def expression(self, expression: s.Expression) -> a.Expression:
        return translate_expression(self, expression)

    def fail(self, kind: type[QueryError], message: str, span: Span, expected: str) -> NoReturn:
        raise kind(message, span, self._text, expected)


def _join(left: a.Pattern, right: a.Pattern) -> a.Pattern:
    """SPARQL 18.2.2.8: the empty group is the neutral element."""
    if left == _EMPTY:
        return right
    return left if right == _EMPTY else a.Join(left, right)


def _template_term(term: TermOrVariable) -> TermOrVariable:
    return BlankNode(term.name[2:]) if isinstance(term, Variable) and term.hidden else term


def _number_type(text: str) -> str:
    if "e" in text or "E" in text:
        return XSD + "double"
    return XSD + ("decimal" if "." in text else "integer")

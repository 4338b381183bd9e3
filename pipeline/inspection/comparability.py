"""This module finds expressions over values whose datatypes on the stream never fit: a comparison, arithmetic or a
function of them has no value.

1. Each predicate of the profiles gives the kinds of its objects. A variable has the kinds that all patterns allow which always bind it.
2. Where no pattern always binds it, it has those of all patterns that may. What is not understood may have any kind.
3. An expression that may have a value, but not with these kinds, never fits so far.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache

from epsparql.deferred_methods import dataclass
from epsparql.errors import Warning_
from epsparql.etalis.header import is_program
from epsparql.iris import Names
from epsparql.lint.certain_bindings import bound_in_group
from epsparql.lint.diagnostics import why_never_true
from epsparql.lint.scopes import Scopes, operands, parts
from epsparql.lint.type_inference import ANY, ERROR, Kind, Kinds, kind_of_datatype
from epsparql.parser import ast as s
from epsparql.parser import ast_queries as f
from epsparql.recursion import deep_stack
from epsparql.terms import XSD
from pipeline.inspection.stream_profile import IRI, NODE, StreamProfile

MOST_WARNINGS = 20
_LONGEST = 60
"""A message shows at most so many characters of an expression or a value."""
_NUMBER = re.compile(r'"\s*[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\s*"')
_LAZY = ("IF", "COALESCE", "BOUND")
"""These functions are there for parts that have no value."""
_JOINS = (s.ChainOperator.UNION, s.ChainOperator.OPTIONALSEQ, s.ChainOperator.EQUALSOPTIONAL)


@dataclass(frozen=True, slots=True)
class _Values:
    """Says which kinds a variable may have, and of which predicates (IRIs) its values are objects."""

    kinds: Kind = ANY
    predicates: frozenset[str] = frozenset()


_UNKNOWN = _Values()
Known = Mapping[str, _Values]


def find_incomparable(text: str, profiles: Sequence[StreamProfile], mentioned: frozenset[str]) -> list[Warning_]:
    """Return the warnings about a query's text.

    The predicates `mentioned` (IRIs) may have triples beside those of the profiles.
    """
    if is_program(text):
        return []
    document, names = _read_document(text)
    with deep_stack():
        reader = _Reader(names, text, _Objects(profiles, mentioned))
        reader.read_query(document.query)
    return list(dict.fromkeys(reader.found))[:MOST_WARNINGS]


@lru_cache(maxsize=64)
def _read_document(text: str) -> tuple[f.Document, Names]:
    from epsparql.parser.grammar import parse_document  # takes a third of a second to load, as in the translator

    with deep_stack():
        document = parse_document(text)
    names = Names(text)
    for declaration in document.declarations:
        names.declare(declaration)
    return document, names


class _Objects:
    """Holds what the streams carried as objects of predicates."""

    def __init__(self, profiles: Sequence[StreamProfile], mentioned: frozenset[str]) -> None:
        self.is_complete = all(profile.is_complete for profile in profiles)
        self._counts: dict[str, Counter[str]] = {}
        self._examples: dict[str, str] = {}
        for seen in (seen for profile in profiles for seen in profile.objects):
            predicate, _, kind = seen.name.partition(" ")
            if predicate[1:-1] not in mentioned:
                self._counts.setdefault(predicate[1:-1], Counter())[kind] += seen.count
                self._examples.setdefault(predicate[1:-1], seen.example.split(" ", 2)[2].removesuffix(" ."))

    def list_values(self, predicate: str) -> _Values:
        """Return the kinds of a predicate's objects: any where none was seen."""
        kinds = ERROR
        for kind in self._counts.get(predicate, ()):
            kinds |= Kind.IRI if kind == IRI else Kind.BLANK | Kind.TRIPLE if kind == NODE else kind_of_datatype(kind[1:-1])
        return _Values(kinds, frozenset((predicate,))) if kinds else _UNKNOWN

    def describe(self, predicates: frozenset[str]) -> tuple[str, str]:
        """Return the words that say what the objects of some predicates were, and an example."""
        counts = sum((self._counts[predicate] for predicate in predicates), Counter[str]())
        shown = [kind.removeprefix(f"<{XSD}").removesuffix(">") if kind.startswith(f"<{XSD}") else kind for kind in counts]
        named = [f"xsd:{short}" if full != short else full for full, short in zip(counts, shown, strict=True)]
        example = self._examples[min(predicates)]
        all_of = f"all {named[0]}" if len(named) == 1 else ", ".join(f"{count:,} {name}" for name, count in zip(named, counts.values(), strict=True))
        scope = "on the stream, so far," if self.is_complete else "in the last events of the stream"
        return f"{scope} {counts.total():,} value{'' if counts.total() == 1 else 's'}, {all_of}, for example {example[:_LONGEST]}", example


@dataclass(slots=True)
class _Reader:
    """Reads a query from the inside out."""

    names: Names
    text: str
    objects: _Objects
    found: list[Warning_] = field(default_factory=list)
    _scopes: Scopes = field(default_factory=Scopes)

    def read_query(self, query: f.QueryForm) -> None:
        match query:
            case f.SelectQuery(select, _):
                self._read_select(select)
            case _:
                self._read_body(query.body)

    def _read_select(self, select: s.SelectForm) -> Known:
        known = dict(self._read_body(select.body))
        for item in select.items:
            if item.expression is not None:
                self._find_unfit(item.expression, known)
        assigned = {item.variable.name for item in select.items if item.expression is not None}
        return {name: values for name, values in known.items() if name not in assigned}

    def _read_body(self, body: s.Body) -> Known:
        """Read a pattern and what follows it, and return what is known of the variables."""
        keys = {key.variable.name for key in body.modifier.keys if key.variable is not None}
        known = {name: values for name, values in self._read_group(body.where).items() if name not in keys}
        for key in body.modifier.keys:
            self._find_unfit(key.expression, known)
        for condition in body.modifier.having:
            self._read_condition(condition, known)
        return known

    # ------------------------------------------------ groups
    def _read_group(self, group: s.GroupGraphPattern, *, optional: bool = False) -> Known:
        """Read a group.

        The FILTERs of an `optional` one also see the other side's variables, so only what it always binds is known
        there.
        """
        required: dict[str, _Values] = {}
        possible: dict[str, _Values] = {}
        for element in group.elements:
            if not isinstance(element, s.FilterElement | s.BindElement):
                known, certain = self._read_element(element), bound_in_group(s.GroupGraphPattern((element,), group.span), self._scopes)
                for name in self._scopes.element(element):
                    _add_values(required if name in certain else possible, name, known.get(name, _UNKNOWN), is_join=name in certain)
        found = {**possible, **required}
        for element in group.elements:
            if isinstance(element, s.BindElement):
                self._find_unfit(element.expression, found)
                kinds = self._infer(found).infer_kind(element.expression)
                if element.variable.name not in found and kinds:
                    found[element.variable.name] = _Values(kinds, self._list_predicates(element.expression, found))
        certain = bound_in_group(group, self._scopes)
        seen = {name: values for name, values in found.items() if name in certain} if optional else found
        for element in group.elements:
            if isinstance(element, s.FilterElement):
                self._read_condition(element.condition, seen)
        return found

    def _read_element(self, element: s.Element) -> Known:
        match element:
            case s.TriplesSameSubject():
                return self._read_triples(element)
            case s.OptionalElement(group, _):
                return self._read_group(group, optional=True)
            case s.MinusElement(group, _):
                self._read_group(group)
            case s.GraphElement(_, group, _) | s.WindowElement(_, group, _):
                return self._read_group(group)
            case s.SubSelectElement(select, _):
                return self._read_select(select)
            case s.Chain():
                return self._read_chain(element)
        return {}

    def _read_triples(self, element: s.TriplesSameSubject) -> Known:
        found: dict[str, _Values] = {}
        pending: list[s.Property] = list(element.properties)
        if isinstance(element.subject, s.BlankProperties):
            pending += element.subject.properties
        while pending:
            link = pending.pop()
            predicate = self.names.iri(link.verb) if isinstance(link.verb, s.IriRef | s.PrefixedName) else None
            for each in link.objects:
                if isinstance(each, s.BlankProperties):
                    pending += each.properties
                elif isinstance(each, s.VariableName) and predicate is not None:
                    _add_values(found, each.name, self.objects.list_values(predicate), is_join=True)
        return found

    def _read_chain(self, chain: s.Chain) -> Known:
        joined = [step for step in chain.steps if isinstance(step, s.Combine)]
        for step in chain.steps:
            if isinstance(step, s.WithoutStep):
                self._read_group(step.group)
        apart = any(step.operator in _JOINS for step in joined)
        found: dict[str, _Values] = {}
        for group in (chain.first, *(step.group for step in joined)):
            known, certain = self._read_group(group, optional=apart), bound_in_group(group, self._scopes)
            for name in self._scopes.group(group):
                if apart or name in certain:
                    _add_values(found, name, known.get(name, _UNKNOWN), is_join=not apart)
        return found

    # ------------------------------------------------ expressions
    def _infer(self, known: Known) -> Kinds:
        return Kinds(self.names, {name: values.kinds or ANY for name, values in known.items()})

    def _read_condition(self, condition: s.Expression, known: Known) -> None:
        pending = [condition]
        while pending:
            match pending.pop():
                case s.Binary(s.BinaryOperator.AND, left, right, _):
                    pending += (right, left)
                case part:
                    if not self._find_unfit(part, known) and why_never_true(Kinds(self.names, {}), part) is None:
                        reason = why_never_true(self._infer(known), part)
                        blamed = next((each for each in parts((part,)) if reason is not None and each.span == reason.span), None)
                        if blamed is not None:
                            self._report_unfit(blamed, "is never true", known)

    def _find_unfit(self, expression: s.Expression, known: Known) -> bool:
        """Warn of the parts of an expression that have no value with the kinds that are known, and return whether
        there are any.
        """
        inferred, free = self._infer(known), Kinds(self.names, {})
        unfit = [
            node
            for node in _list_strict(expression)
            if _has_no_value(inferred, node) and not _has_no_value(free, node) and not any(_has_no_value(inferred, each) for each in operands(node))
        ]
        for node in unfit:
            self._report_unfit(node, "has no value", known)
        return bool(unfit)

    def _list_predicates(self, expression: s.Expression, known: Known) -> frozenset[str]:
        used = [known[part.name].predicates for part in parts((expression,)) if isinstance(part, s.VariableName) and part.name in known]
        return frozenset().union(*used)

    def _report_unfit(self, node: s.Expression, what: str, known: Known) -> None:
        shown = " ".join(self.text[node.span.start : node.span.end].split())[:_LONGEST]
        named = [part.name for part in parts((node,)) if isinstance(part, s.VariableName) and part.name in known and known[part.name].predicates]
        told = []
        for name in dict.fromkeys(named):
            words, example = self.objects.describe(known[name].predicates)
            remedy = f"; xsd:decimal(?{name}) reads numbers" if known[name].kinds == Kind.TEXT and _NUMBER.fullmatch(example) else ""
            told.append(f"?{name} has, {words}{remedy}")
        if told:
            self.found.append(Warning_("never-comparable", f"{shown} {what}: {'; '.join(told[:2])}", node.span))


def _has_no_value(kinds: Kinds, node: s.Expression) -> bool:
    """Return whether an expression never has a value; a sum of one or more values that are neither numbers nor
    durations has none.
    """
    if isinstance(node, s.AggregateCall) and node.name in ("SUM", "AVG") and node.argument is not None:
        return not kinds.infer_kind(node.argument) & (Kind.NUMBER | Kind.DURATION)
    return kinds.infer_kind(node) == ERROR


def _add_values(found: dict[str, _Values], name: str, values: _Values, *, is_join: bool) -> None:
    """Add what another pattern says of a variable: with a join, its value is one of both; otherwise of either."""
    known = found.get(name)
    if known is None:
        found[name] = values
    elif is_join:
        both = known.kinds & values.kinds
        predicates = known.predicates | values.predicates if known.kinds == values.kinds else (known if both == known.kinds else values).predicates
        found[name] = _Values(both, predicates)
    else:
        found[name] = _Values(known.kinds | values.kinds, known.predicates | values.predicates)


def _list_strict(expression: s.Expression) -> Iterator[s.Expression]:
    """Yield an expression with the parts that it needs a value of."""
    pending = [expression]
    while pending:
        node = pending.pop()
        if not (isinstance(node, s.BuiltInCall) and node.name in _LAZY):
            yield node
            pending += reversed(operands(node))

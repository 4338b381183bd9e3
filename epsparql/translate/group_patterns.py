"""This module translates groups and chains to patterns (SPARQL 1.1, 18.2.2, with the operators of semantics.md
section 3).
"""

from typing import NoReturn, TypeVar, assert_never

from epsparql import algebra as a
from epsparql.algebra.in_scope_variables import visible_variables
from epsparql.errors import ScopeFault, Span, SyntaxFault, Unsupported
from epsparql.literals import MAX_TREE_DEPTH
from epsparql.parser import ast as s
from epsparql.terms import Iri, Variable
from epsparql.translate.context import Context
from epsparql.translate.durations import micros_of
from epsparql.translate.expressions import expression
from epsparql.translate.select import SelectTranslator
from epsparql.translate.source_map import beginning
from epsparql.translate.triple_patterns import EMPTY, Link, TripleTranslator, join_patterns
from epsparql.trees import replace_fields

Placed = TypeVar("Placed", bound=a.Pattern)
_RELATIONS = {relation.value: relation for relation in a.Relation}


class _Growing:
    """Builds a group's pattern as its elements are added, with the variables in scope after them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._depth = 0
        self.pattern: a.Pattern = EMPTY
        self.visible: dict[Variable, None] = {}

    def apply(self, pattern: a.Pattern, added: a.Pattern, span: Span) -> None:
        """Take `pattern`, which holds what there was before and `added`, which stands at `span`."""
        if pattern is not self.pattern:
            self._depth += 1
        if self._depth > MAX_TREE_DEPTH:
            self._context.fail_depth(span)
        self.pattern = pattern
        self.visible.update(dict.fromkeys(visible_variables(added)))

    def join(self, right: a.Pattern, span: Span) -> None:
        """Join `right`, which stands at `span`, to the pattern."""
        self.apply(join_patterns(self._context, self.pattern, right, span), right, span)


class Groups:
    """Translates the groups of one query; as the `Scope` of their expressions they have no aggregates."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.triples = TripleTranslator(context)
        self.selects = SelectTranslator(self)

    def translate_group(self, group: s.GroupGraphPattern) -> a.Pattern:
        """Translate a group whose FILTERs filter itself."""
        inner, condition = self._split_filters(group)
        return inner if condition is None else a.Filter(condition, inner)

    def translate_variable(self, name: s.VariableName) -> a.Var:
        return a.Var(Variable(name.name))

    def bound(self, name: s.VariableName) -> a.Bound:
        return a.Bound(Variable(name.name))

    def aggregate(self, call: s.AggregateCall) -> NoReturn:
        message = f"the aggregate {call.name} stands where solutions are not grouped yet: in a pattern, in GROUP BY or in another aggregate"
        self.context.fail(SyntaxFault, message, call.span, "an aggregate in SELECT, HAVING or ORDER BY alone; a pattern can have one in a sub-SELECT")

    def previous(self, call: s.PreviousCall) -> NoReturn:
        message = "PREV is a value of the element before, which only the WHILE of a RUN has"
        self.context.fail(SyntaxFault, message, call.span, "PREV(...) in WINDOW [RUN WHILE (...)], and not in another PREV or an aggregate")

    def _split_filters(self, group: s.GroupGraphPattern) -> tuple[a.Pattern, a.Expression | None]:
        """Translate a group without its own FILTERs; return its pattern and their conjunction."""
        outer = self.triples.enter_group()
        growing = _Growing(self.context)
        links: list[Link] = []
        condition: a.Expression | None = None
        filters = 0
        for element in group.elements:
            match element:
                case s.TriplesSameSubject():
                    links += self.triples.links(element)
                case s.FilterElement():
                    filters += 1
                    if filters > MAX_TREE_DEPTH:
                        self.context.fail_depth(element.span)
                    further = expression(self, element.condition)
                    self.context.places.note_condition(further, element.span)
                    condition = further if condition is None else a.And(condition, further)
                case _:
                    self._join_links(links, growing)
                    self._apply(element, growing)
                    links = []
                    self.triples.begin()
        self.triples.leave_group(outer)
        self._join_links(links, growing)
        return growing.pattern, condition

    def _join_links(self, links: list[Link], growing: _Growing) -> None:
        if links:
            first = self.context.places.find_span(links[0])
            assert first is not None, "each link is noted where it is read"
            growing.join(self.triples.block(links), first)

    def _apply(self, element: s.Applied, growing: _Growing) -> None:
        """Apply `element` to what stands before it in its group."""
        match element:
            case s.OptionalElement(group, span):
                right, condition = self._split_filters(group)
                growing.apply(self._placed(a.LeftJoin(growing.pattern, right, condition), beginning(span, "OPTIONAL")), right, span)
            case s.MinusElement(group, span):
                growing.apply(self._placed(a.Minus(growing.pattern, self.translate_group(group)), beginning(span, "MINUS")), EMPTY, span)
            case s.BindElement():
                self._bind(element, growing)
            case s.Chain():
                growing.join(self._chain(element), element.span)
            case s.GraphElement():
                growing.join(self._translate_graph(element), element.span)
            case s.WindowElement():
                growing.join(self._in_window(element), element.span)
            case s.ValuesElement():
                growing.join(self.selects.values(element), element.span)
            case s.SubSelectElement(select, span):
                growing.join(self.selects.sub_select(select), span)
            case s.ServiceElement():
                self._refuse_service(element)
            case _:
                assert_never(element)

    def _placed(self, pattern: Placed, span: Span) -> Placed:
        self.context.places.note(pattern, span)
        return pattern

    def _bind(self, bind: s.BindElement, growing: _Growing) -> None:
        variable = Variable(bind.variable.name)
        if variable in growing.visible:
            message = f"{variable} cannot be assigned: the group already has it before BIND"
            self.context.fail(ScopeFault, message, bind.variable.span, "a variable that is new here")
        extended = a.Extend(growing.pattern, variable, expression(self, bind.expression))
        growing.apply(extended, a.Extend(EMPTY, variable, extended.expression), bind.span)

    def _translate_graph(self, element: s.GraphElement) -> a.Graph:
        name = element.name
        return a.Graph(
            Variable(name.name) if isinstance(name, s.VariableName) else Iri(self.context.names.iri(name)), self.translate_group(element.group)
        )

    def _in_window(self, element: s.WindowElement) -> a.InWindow:
        if isinstance(element.name, s.VariableName):
            self.context.fail(Unsupported, "a window is named by its IRI: variables for windows are not supported", element.name.span, "an IRI")
        name = self.context.names.iri(element.name)
        known = [window.name for window in self.context.windows]
        if name not in known:
            expected = f"one of {', '.join(f'<{one}>' for one in known)}" if known else f"FROM NAMED WINDOW <{name}> ON <stream> [RANGE ... STEP ...]"
            self.context.fail(ScopeFault, f"there is no window <{name}>", element.name.span, expected)
        return a.InWindow(name, self.translate_group(element.group))

    def _refuse_service(self, service: s.ServiceElement) -> NoReturn:
        message = "SERVICE is refused: a query reads its streams and the background, and no remote host is allowed"
        self.context.fail(Unsupported, message, service.span, "a pattern without SERVICE, over facts that are loaded as background")

    # ------------------------------------------------ chains
    def _chain(self, chain: s.Chain) -> a.Pattern:
        self._warn_of_mixture(chain)
        pattern, condition = self._split_filters(chain.first)
        between: a.SeqWithout | a.JoinWithout | None = None  # the last SEQ or AND, as it would be with a WITHOUT; only WITHIN may stand between
        for index, step in enumerate(chain.steps):
            if index >= MAX_TREE_DEPTH:
                self.context.fail_depth(step.span)
            optional = isinstance(step, s.Combine) and step.operator is s.ChainOperator.OPTIONALSEQ
            if condition is not None and not (index == 0 and optional):
                pattern, condition = a.Filter(condition, pattern), None
            match step:
                case s.Combine(s.ChainOperator.AND, group, span):
                    between = a.JoinWithout(pattern, self.translate_group(group), EMPTY)
                    pattern = join_patterns(self.context, pattern, between.right, span, unrestricted=False)
                case s.Combine():
                    pattern = self._placed(self._combined(step, pattern, condition), step.span)
                    condition = None
                    between = a.SeqWithout(pattern.left, pattern.right, EMPTY) if isinstance(pattern, a.SeqJoin) else None
                case s.WithinStep(duration, _):
                    limit = micros_of(self.context, duration, zero=True)
                    pattern = self._placed(a.Within(pattern, limit), step.span)
                    if between is not None:
                        between = replace_fields(between, within=limit if between.within is None else min(between.within, limit))
                case s.WithoutStep():
                    pattern = self._placed(self._translate_without(step, pattern, between), step.span)
                    between = None
                case _:
                    assert_never(step)
        return pattern if condition is None else a.Filter(condition, pattern)

    def _combined(self, step: s.Combine, left: a.Pattern, condition: a.Expression | None) -> a.Pattern:
        """Combine two groups; `condition` is that of the left group where OPTIONALSEQ follows it, else None."""
        match step.operator:
            case s.ChainOperator.EQUALSOPTIONAL:
                return a.EqLeftJoin(left, *self._split_filters(step.group))
            case s.ChainOperator.OPTIONALSEQ:
                return a.SeqRightJoin(left, self.translate_group(step.group), condition)
            case s.ChainOperator.SEQ:
                return a.SeqJoin(left, self.translate_group(step.group))
            case s.ChainOperator.EQUALS:
                return a.EqJoin(left, self.translate_group(step.group))
            case s.ChainOperator.UNION:
                return a.Union(left, self.translate_group(step.group))
            case _:
                return a.RelationJoin(_RELATIONS[step.operator.value], left, self.translate_group(step.group))

    def _translate_without(self, step: s.WithoutStep, pattern: a.Pattern, between: a.SeqWithout | a.JoinWithout | None) -> a.Pattern:
        absent = self.translate_group(step.group)
        if step.duration is not None:
            return a.WithoutFor(pattern, absent, micros_of(self.context, step.duration))
        if between is None:
            message = "WITHOUT does not follow a SEQ or AND of its chain"
            expected = (
                "{...} SEQ {...} WITHOUT {...} with only WITHIN between, or FOR and a duration; several absences are one WITHOUT "
                "{ {...} UNION {...} }"
            )
            self.context.fail(SyntaxFault, message, step.span, expected)
        return replace_fields(between, absent=absent)

    def _warn_of_mixture(self, chain: s.Chain) -> None:
        operators = [step for step in chain.steps if isinstance(step, s.Combine)]
        other = next((step for step in operators if step.operator is not operators[0].operator), None)
        if other is not None:
            message = (
                f"the chain mixes {operators[0].operator.value} and {other.operator.value}, which apply from left to right; add "
                f"braces to make the order explicit"
            )
            self.context.warn("mixed-operators", message, other.span)

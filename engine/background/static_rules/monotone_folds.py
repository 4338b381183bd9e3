"""MIN and MAX may feed the pattern that they fold, where a better value can only give better ones.

Such a loop has no strata: what is folded rests on the result. So the fold is taken out of it.

1. Each rule that derives members of groups becomes a rule that derives the aggregate's value from the same body. Its
   relation keeps the best value of each group alone (`Maintenance`).
2. The value is followed through the loop, from relation to relation. Each rule reads one of them, and hands the value
   on as it is, or as a sum with numbers that make no value better. Else the loop is refused.
3. Numbers whose sign only the background tells are tested where the rule runs: a sum with one of the other sign has no
   value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from engine.background.static_rules.program import (
    TRUE,
    UNBOUND,
    VALUE,
    Argument,
    Atom,
    Best,
    Condition,
    DatalogRule,
    NegativeCycle,
    Relation,
    list_components,
    list_edges,
)  # fmt: skip
from engine.expressions.literals import parse_number
from engine.rewrite.rename_hidden import find_variables
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.renderer.expressions import Expressions
from epsparql.renderer.terms import TermWriter
from epsparql.terms import XSD, Literal, Variable

_MONOTONE = (a.AggregateFunction.MIN, a.AggregateFunction.MAX)
_BOUNDS = {
    a.AggregateFunction.MIN: (a.Comparison.LESS, a.Comparison.LESS_OR_EQUAL),
    a.AggregateFunction.MAX: (a.Comparison.GREATER, a.Comparison.GREATER_OR_EQUAL),
}
"""A comparison of these, with the value on its left, holds for each better value if it holds for one."""
_MIRRORED = {
    a.Comparison.LESS: a.Comparison.GREATER,
    a.Comparison.LESS_OR_EQUAL: a.Comparison.GREATER_OR_EQUAL,
    a.Comparison.GREATER: a.Comparison.LESS,
    a.Comparison.GREATER_OR_EQUAL: a.Comparison.LESS_OR_EQUAL,
}
_ZERO = a.Constant(Literal("0", XSD + "integer"))
Made = dict[tuple[DatalogRule, DatalogRule | None, bool], DatalogRule]
"""The rules that were made of a rule, for a fold if it has members, and with a test that the value is a number."""


def compose_folds(rules: Sequence[DatalogRule], made: Made) -> list[DatalogRule]:
    """Return the rules, with each fold of MIN or MAX that rests on its own result taken out of its loop.

    A rule that was made before is used again; `made` has those in use afterwards. Raises: NegativeCycle.
    """
    found, used = dict.fromkeys(rules), Made()
    for component in list_components(list_edges(rules, ())) if any(rule.fold is not None for rule in rules) else ():
        inside = set(component)
        folds = [rule for rule in rules if rule.fold is not None and {rule.head.relation, rule.source_atom.relation} <= inside]
        functions = {rule.fold.aggregate.function for rule in folds if rule.fold is not None}
        if len(functions) == 1 and functions <= {*_MONOTONE}:
            _Loop(component, folds, functions.pop(), made, used).compose(found)
    made.clear()
    made.update(used)
    return list(found)


@dataclass(slots=True)
class _Loop:
    component: list[Relation]
    folds: list[DatalogRule]
    function: a.AggregateFunction
    made: Made
    used: Made
    places: dict[Relation, int] = field(default_factory=dict)
    """By relation of the loop, which term of its tuples is the value."""

    def compose(self, rules: dict[DatalogRule, None]) -> None:
        """Replace the loop's rules among all rules."""
        members = {fold.source_atom.relation for fold in self.folds}
        inner = {relation for relation in self.component if relation not in members}
        own = [rule for rule in rules if rule.head.relation in inner and rule.fold is None and self._reads(rule, inner)]
        composed = [
            (rule, fold, each)
            for fold in self.folds for rule in rules if rule.head.relation is fold.source_atom.relation
            if (each := _compose(rule, fold, self.function)) is not None
        ]  # fmt: skip
        self.places = {fold.head.relation: fold.head.relation.arity - 1 for fold in self.folds}
        pending = [(rule, None, rule) for rule in own] + composed
        checked = self._follow_value([each for each in pending if self._reads(each[2], inner)], inner)
        numeric = any(rule.conditions != each.conditions or self._tests_value(each, inner) for (_, _, rule), each in checked)
        checked += [(each, each[2]) for each in pending if not self._reads(each[2], inner)]
        for rule in [*self.folds, *own]:
            del rules[rule]
        for (origin, fold, _), rule in checked:
            key = origin, fold, numeric
            made = rule if fold is None or not numeric else _with_number(rule)
            self.used[key] = self.made[key] if key in self.made and _derives_same(self.made[key], made) else made
            rules[self.used[key]] = None
        read = {atom.relation for rule in rules for atom in (*rule.atoms, *rule.absent)}
        for rule in [rule for rule in rules if rule.head.relation in members and rule.head.relation not in read]:
            del rules[rule]

    @staticmethod
    def _reads(rule: DatalogRule, inner: Iterable[Relation]) -> bool:
        return any(atom.relation in inner for atom in (*rule.atoms, *rule.absent))

    def _follow_value(self, pending: list["_Made"], inner: set[Relation]) -> list[tuple["_Made", DatalogRule]]:
        """Return the rules that read relations of the loop, as they are with their tests. The value is followed from
        relation to relation.
        """
        found, pending = list["tuple[_Made, DatalogRule]"](), [*pending]
        while pending:
            ready = [each for each in pending if all(atom.relation in self.places for atom in each[2].atoms if atom.relation in inner)]
            if not ready:
                raise self._refusal("not each pattern of the loop has the value")
            for each in ready:
                pending.remove(each)
                found.append((each, self._follow_rule(each[2], inner)))
        return found

    def _follow_rule(self, rule: DatalogRule, inner: set[Relation]) -> DatalogRule:
        atoms = [atom for atom in rule.atoms if atom.relation in inner]
        if len(atoms) != 1 or any(atom.relation in inner for atom in rule.absent):
            raise self._refusal("a rule reads more than one pattern of the loop, or asks that one is absent")
        place = self.places[atoms[0].relation]
        value = atoms[0].arguments[place]
        fixed = [argument for atom in (*rule.atoms, *rule.absent) for argument in atom.arguments]
        if value >= 0 or fixed.count(value) != 1:
            raise self._refusal("a pattern of the loop fixes the value, or joins by it")
        values, conditions = self._follow_conditions(rule, value)
        places = [k for k, argument in enumerate(rule.head.arguments) if argument in values]
        if len(places) != 1 or self.places.setdefault(rule.head.relation, places[0]) != places[0]:
            raise self._refusal("a rule of the loop has the value in no place, or in several")
        best = None if rule.best is None else replace(rule.best, inner=value)
        return rule if conditions == rule.conditions and best == rule.best else replace(rule, conditions=conditions, best=best)

    def _follow_conditions(self, rule: DatalogRule, value: Argument) -> tuple[set[Argument], tuple[Condition, ...]]:
        """Return what has the value, or a worse one that a sum makes of it, and the conditions with tests of signs."""
        values, tests = {value}, list[Condition]()
        pending = list(rule.conditions)
        while pending:
            unknown = {each.target for each in pending if each.wants == VALUE}
            known = [each for each in pending if unknown.isdisjoint(argument for _, argument in each.scope)]
            for condition in known:
                pending.remove(condition)
                names = {variable for variable, argument in condition.scope if argument in values}
                if not names:
                    continue
                if condition.wants == VALUE:
                    tests += self._list_signs(condition, condition.expression, names)
                    values.add(condition.target)
                elif condition.wants != TRUE or not self._is_bound(condition.expression, names):
                    raise self._refusal(
                        f"a better value may fail {_write_expression(condition.expression)}"
                        if condition.wants == TRUE
                        else "BIND of the value may be an error"
                    )
            if not known:
                raise self._refusal("its BINDs depend on each other")
        return values, (*rule.conditions, *dict.fromkeys(tests))

    def _list_signs(self, condition: Condition, expression: a.Expression, names: set[Variable]) -> list[Condition]:
        """Return tests of the numbers that a sum adds to the value, each by its sign."""
        match expression:
            case a.Var(variable) if variable in names:
                return []
            case a.Arithmetic(a.Operator.ADD, left, right) if not names & set(find_variables(right)):
                return [*self._list_signs(condition, left, names), *self._test_sign(condition, right, minus=False)]
            case a.Arithmetic(a.Operator.ADD, left, right) if not names & set(find_variables(left)):
                return [*self._list_signs(condition, right, names), *self._test_sign(condition, left, minus=False)]
            case a.Arithmetic(a.Operator.SUBTRACT, left, right) if not names & set(find_variables(right)):
                return [*self._list_signs(condition, left, names), *self._test_sign(condition, right, minus=True)]
        raise self._refusal("the value is used otherwise than in a sum")

    def _test_sign(self, condition: Condition, number: a.Expression, *, minus: bool) -> list[Condition]:
        above = (self.function is a.AggregateFunction.MIN) != minus
        if isinstance(number, a.Constant):
            known = parse_number(number.term) if isinstance(number.term, Literal) else None
            if known is None or not (known.value >= 0 if above else known.value <= 0):
                raise self._refusal(f"a sum with {_write_expression(number)} makes the value better")
            return []
        asked = set(find_variables(number))
        test = a.Compare(a.Comparison.GREATER_OR_EQUAL if above else a.Comparison.LESS_OR_EQUAL, number, _ZERO)
        return [Condition(test, tuple(each for each in condition.scope if each[0] in asked))]

    def _is_bound(self, expression: a.Expression, names: set[Variable]) -> bool:
        """Return whether each better value meets a condition that one meets."""
        match expression:
            case a.Compare(op, a.Var(variable), other) if variable in names and not names & set(find_variables(other)):
                return op in _BOUNDS[self.function]
            case a.Compare(op, other, a.Var(variable)) if variable in names and not names & set(find_variables(other)):
                return _MIRRORED.get(op) in _BOUNDS[self.function]
        return False

    def _tests_value(self, rule: DatalogRule, inner: set[Relation]) -> bool:
        """Return whether a condition of a rule looks at the value."""
        values = {atom.arguments[self.places[atom.relation]] for atom in rule.atoms if atom.relation in inner}
        return any(argument in values for condition in rule.conditions for _, argument in condition.scope)

    def _refusal(self, reason: str) -> NegativeCycle:
        return NegativeCycle(self.component, f"{self.function.value} feeds its own pattern, and {reason}")


def _write_expression(expression: a.Expression) -> str:
    return Expressions(TermWriter("", {}), {}, lambda _: "{ ... }").write_expression(expression)


_Made = tuple[DatalogRule, DatalogRule | None, DatalogRule]
"""A rule, the fold whose members it derives, and the rule that is made of both."""


def _compose(rule: DatalogRule, fold_rule: DatalogRule, function: a.AggregateFunction) -> DatalogRule | None:
    """Return the rule that derives the aggregate's value from a rule of members; None if the argument is unbound there."""
    fold = fold_rule.fold
    assert fold is not None
    assert fold.aggregate.argument is not None
    known = dict(zip(fold.names, rule.head.arguments, strict=False))
    keys, best = rule.head.arguments[: fold.keys], Best(function)
    if isinstance(fold.aggregate.argument, a.Var):
        value = known.get(fold.aggregate.argument.variable, UNBOUND)
        return None if value == UNBOUND else replace(rule, head=Atom(fold_rule.head.relation, (*keys, value)), best=best)
    target = -1 - rule.variables
    scope = tuple((variable, known[variable]) for variable in sorted(fold.scope, key=str) if known.get(variable, UNBOUND) != UNBOUND)
    condition = Condition(fold.aggregate.argument, scope, VALUE, target)
    head = Atom(fold_rule.head.relation, (*keys, target))
    return replace(rule, head=head, conditions=(*rule.conditions, condition), variables=rule.variables + 1, best=best)


def _with_number(rule: DatalogRule) -> DatalogRule:
    """Return a rule that derives numbers alone."""
    name = Variable("_:value")
    return replace(rule, conditions=(*rule.conditions, Condition(a.Call("ISNUMERIC", (a.Var(name),)), ((name, rule.head.arguments[-1]),))))


def _derives_same(one: DatalogRule, other: DatalogRule) -> bool:
    """Return whether two rules derive the same, argument by argument."""
    return all(getattr(one, name) == getattr(other, name) for name in ("head", "atoms", "absent", "conditions", "best"))

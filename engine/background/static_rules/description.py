"""A static rule is described by the rules of Datalog that it comes to."""

from engine.background.static_rules.program import (
    ERROR,
    UNBOUND,
    VALUE,
    VIEW,
    WRITTEN,
    Argument,
    Atom,
    Condition,
    DatalogRule,
    Fold,
    Relation,
    RelationKey,
)
from engine.background.static_rules.translate import Translation
from engine.dictionary.term_dictionary import TermTable
from engine.rewrite.rename_hidden import restore_name
from epsparql import algebra as a
from epsparql.renderer.expressions import Expressions
from epsparql.renderer.terms import TermWriter


def describe_rules(query: a.BackgroundRule, default_graph: str = "all") -> list[str]:
    """Return the rules of Datalog, one a text. Raises StaticRuleRefused."""
    terms, relations = TermTable(), dict[RelationKey, Relation]()
    translation = Translation(terms, lambda key, arity: relations.setdefault(key, Relation(key, arity)), 1)
    translation.translate(query, default_graph)
    writer = _Writer(terms)
    return [writer.rule(rule) for rule in translation.rules]


class _Writer:
    def __init__(self, terms: TermTable) -> None:
        self._terms = terms
        self._expressions = Expressions(TermWriter("", {}), {}, lambda _: "{ ... }")

    def rule(self, rule: DatalogRule) -> str:
        if rule.fold is not None:
            return self._describe_fold(rule, rule.fold)
        names = {argument: str(variable) for condition in rule.conditions for variable, argument in condition.scope}
        parts = [self._atom(atom, names) for atom in rule.atoms]
        parts += [self._condition(condition, names) for condition in rule.conditions]
        parts += [f"not {self._atom(atom, names)}" for atom in rule.absent]
        return f"{self._atom(rule.head, names)} <- {', '.join(parts) or 'always'}"

    def _describe_fold(self, rule: DatalogRule, fold: Fold) -> str:
        names = {argument: f"?{restore_name(name) or name.name}" for name, argument in zip(fold.names, rule.source_atom.arguments, strict=False)}
        names[rule.head.arguments[-1]] = "?value"
        return (
            f"{self._atom(rule.head, names)} <- ?value is {self._expressions.aggregate(fold.aggregate)} of all {self._atom(rule.source_atom, names)}"
        )

    def _atom(self, atom: Atom, names: dict[Argument, str]) -> str:
        key = atom.relation.key
        arguments = [self._argument(argument, names) for argument in atom.arguments]
        if key.role not in (VIEW, WRITTEN):
            return f"{key.role}{key.of[1]}({', '.join(arguments)})"
        graphs = "" if key.graphs is None else f" in {' '.join(self._terms.text(g) if g else 'no graph' for g in key.graphs) or 'no graph at all'}"
        kind = f" {self._terms.text(key.kind)}" if key.kind else ""
        return f"{arguments[0]} {self._terms.text(key.predicate)}{kind}{''.join(f' {each}' for each in arguments[1:])}{graphs}"

    def _argument(self, argument: Argument, names: dict[Argument, str]) -> str:
        return "nothing" if argument == UNBOUND else self._terms.text(argument) if argument > 0 else names.get(argument, f"?{-argument}")

    def _condition(self, condition: Condition, names: dict[Argument, str]) -> str:
        text = self._expressions.write_expression(condition.expression)
        if condition.wants == VALUE:
            return f"{self._argument(condition.target, names)} is {text}"
        return f"{text} has no value" if condition.wants == ERROR else text

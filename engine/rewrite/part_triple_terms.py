"""Triple terms with variables become variables: a pattern takes its triple terms apart by functions, a template puts
them together (RDF 1.2).
"""

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import count

from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import BlankNode, Iri, Literal, TermOrVariable, TripleTerm, TripleTermPattern, Variable
from epsparql.trees import replace_fields


def part_triple_terms(query: a.Query) -> a.Query:
    """Return the query without patterns of triple terms.

    A hidden variable stands for each, with conditions on its parts. Equal ones have one variable: the same parts are
    the same triple term.
    """
    names: dict[TripleTermPattern, Variable] = {}

    def name(term: TripleTermPattern) -> Variable:
        return names.setdefault(term, Variable(f"_:triple#{len(names)}"))

    def part(pattern: a.Pattern) -> a.Pattern:
        below = replace_patterns(pattern, part)
        return _Parting(name).part(below) if isinstance(below, a.Bgp | a.Path) else below

    below = replace_patterns(query, part)
    return _put_together(below) if isinstance(below, a.Construct) else below


@dataclass(slots=True)
class _Parting:
    """Parts the triple terms of one pattern; `bound` are the variables that have their value already."""

    name: Callable[[TripleTermPattern], Variable]
    bound: set[Variable] = field(default_factory=set)
    conditions: list[a.Expression] = field(default_factory=list)
    values: list[tuple[Variable, a.Expression]] = field(default_factory=list)

    def part(self, pattern: a.Bgp | a.Path) -> a.Pattern:
        triples = pattern.triples if isinstance(pattern, a.Bgp) else ()
        terms = (
            [pattern.subject, pattern.object]
            if isinstance(pattern, a.Path)
            else [term for t in triples for term in (t.subject, t.predicate, t.object)]
        )
        if not any(isinstance(term, TripleTermPattern) for term in terms):
            return pattern
        self.bound = {term for term in terms if isinstance(term, Variable) and not isinstance(term, TripleTermPattern)}
        flat: a.Pattern
        if isinstance(pattern, a.Bgp):
            flat = replace_fields(pattern, triples=tuple(a.TriplePattern(self._flat(t.subject), t.predicate, self._flat(t.object)) for t in triples))
        else:
            flat = replace_fields(pattern, subject=self._flat(pattern.subject), object=self._flat(pattern.object))
        return self._constrain(flat)

    def _flat(self, term: TermOrVariable) -> TermOrVariable:
        if not isinstance(term, TripleTermPattern):
            return term
        whole = self.name(term)
        if whole in self.bound:
            return whole
        self.bound.add(whole)
        self._take_apart(term, a.Var(whole))
        return whole

    def _take_apart(self, triple: TripleTermPattern, whole: a.Expression) -> None:
        self.conditions.append(a.Call("ISTRIPLE", (whole,)))
        for accessor, part in (("SUBJECT", triple.subject), ("PREDICATE", triple.predicate), ("OBJECT", triple.object)):
            value = a.Call(accessor, (whole,))
            match part:
                case TripleTermPattern():
                    self._take_apart(part, value)
                case Variable() if part not in self.bound:
                    self.bound.add(part)
                    self.values.append((part, value))
                case Variable():
                    self.conditions.append(a.Call("SAMETERM", (value, a.Var(part))))
                case Iri() | BlankNode() | Literal() | TripleTerm():
                    self.conditions.append(a.Call("SAMETERM", (value, a.Constant(part))))

    def _constrain(self, pattern: a.Pattern) -> a.Pattern:
        """Add the conditions before the values, but for those on the values."""
        new = {variable for variable, _ in self.values}
        later = [condition for condition in self.conditions if _compares_with(condition, new)]
        pattern = _filtered(pattern, [condition for condition in self.conditions if condition not in later])
        for variable, value in self.values:
            pattern = a.Extend(pattern, variable, value)
        return _filtered(pattern, later)


def _compares_with(condition: a.Expression, variables: set[Variable]) -> bool:
    return isinstance(condition, a.Call) and isinstance(condition.arguments[-1], a.Var) and condition.arguments[-1].variable in variables


def _filtered(pattern: a.Pattern, conditions: list[a.Expression]) -> a.Pattern:
    if not conditions:
        return pattern
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = a.And(whole, condition)
    return a.Filter(whole, pattern)


def _put_together(rule: a.Construct) -> a.Construct:
    """Return the rule with a variable for each triple term of its template, and for each blank node that stands in one."""
    written = [part for triple in rule.template for part in (triple.subject, triple.object) if isinstance(part, TripleTermPattern)]
    if not written:
        return rule
    pattern, made, numbers = rule.pattern, dict[TermOrVariable, Variable](), count()
    for label in dict.fromkeys(part for triple in written for part in _blank_nodes(triple)):
        made[label] = Variable(f"_:written#{next(numbers)}")
        pattern = a.Extend(pattern, made[label], a.Call("BNODE", (a.Constant(Literal(f"\0{label.label}")),)))  # no query has this text
    for triple in dict.fromkeys(written):
        made[triple] = Variable(f"_:written#{next(numbers)}")
        pattern = a.Extend(pattern, made[triple], _value(triple, made))
    template = tuple(a.TriplePattern(made.get(t.subject, t.subject), t.predicate, made.get(t.object, t.object)) for t in rule.template)
    return replace_fields(rule, template=template, pattern=pattern)


def _blank_nodes(triple: TripleTermPattern) -> Iterator[BlankNode]:
    for part in (triple.subject, triple.object):
        if isinstance(part, BlankNode):
            yield part
        elif isinstance(part, TripleTermPattern):
            yield from _blank_nodes(part)


def _value(part: TermOrVariable, made: dict[TermOrVariable, Variable]) -> a.Expression:
    match part:
        case TripleTermPattern():
            return a.Call("TRIPLE", tuple(_value(each, made) for each in (part.subject, part.predicate, part.object)))
        case Variable():
            return a.Var(part)
        case BlankNode():
            return a.Var(made[part])
        case Iri() | Literal() | TripleTerm():
            return a.Constant(part)

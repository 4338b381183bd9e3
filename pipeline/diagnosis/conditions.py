"""This module explains why a FILTER or HAVING lets nothing through: terms of another datatype, or the closest value."""

from collections import Counter
from collections.abc import Callable, Sequence

from engine.expressions.evaluator import ExpressionError, evaluate, truth, value_of
from engine.expressions.values import DateTime, Duration, Number, Text, Value
from engine.pattern_scope import duration_limit, has_exists, list_conjuncts, list_subexpressions
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.literals import duration_text
from epsparql.terms import Iri, Literal, Term
from pipeline.diagnosis.evaluation.probing import Row
from pipeline.diagnosis.evaluation.steps import Node
from pipeline.diagnosis.examination import Examination
from pipeline.diagnosis.model import Reason
from pipeline.diagnosis.wording import shorten, tell_difference, write_duration, write_kind, write_times
from pipeline.inspection.nearest_terms import find_nearest

_UNITS = (
    ("divided by 1000", lambda value: value / 1000), ("multiplied by 1000", lambda value: value * 1000),
    ("divided by 100", lambda value: value / 100), ("multiplied by 100", lambda value: value * 100),
    ("divided by 60", lambda value: value / 60), ("multiplied by 60", lambda value: value * 60),
    ("taken as °F", lambda value: (value - 32) / 1.8), ("taken as K", lambda value: value - 273.15),
)  # fmt: skip
_MAGNITUDE = 10
"""Values in the right unit are hardly more than so many times a limit, or less than that part of it."""


def explain_filter(case: Examination, node: Node) -> Reason:
    """Explain a FILTER that no solution of its input passes, by the first of its conditions that none satisfies."""
    assert isinstance(node.pattern, a.Filter)
    (below,) = node.inputs
    rows, conditions = case.list_rows(below), list_conjuncts(node.pattern.condition)
    for condition in conditions:
        if not has_exists(condition) and not any(_truth(condition, row) for row in rows):
            more = case.found[below].more or case.found[below].count > len(rows)
            return ConditionExplainer(case, node, rows, more).explain_condition(condition)
    for condition in conditions:
        if has_exists(condition) and not case.probe(below.wrap(a.Filter(condition, below.pattern)))[0].count:
            return _explain_exists(case, node, condition)
    counts = ", ".join(f"{case.words.texts.write_expression(each)} for {sum(_truth(each, row) is True for row in rows):,}" for each in conditions)
    message = f"no solution satisfies all conditions together: of {len(rows):,}, {counts}"
    return case.make_reason(node, "filter-false", message, "relax one of them")


def _truth(condition: a.Expression, row: Row) -> bool | None:
    return truth(condition, row.binding.get, row.start, row.end)


def _explain_exists(case: Examination, node: Node, condition: a.Expression) -> Reason:
    (below,) = node.inputs
    count, exists = case.found[below].count, next(each for each in list_subexpressions(condition) if isinstance(each, a.Exists))
    written, at = case.words.write_group(exists.pattern), case.parsed.places.find_span(exists)
    if isinstance(condition, a.Not):
        example = _write_binding(case.list_rows(below)[:1])
        message = f"NOT EXISTS {written} is false for all {count:,} solutions, for example for {example}"
        return case.make_reason(node, "blocked", message, "bind more variables of the pattern in it, so that it is about the same thing", at=at)
    message = f"EXISTS {written} is false for all {count:,} solutions"
    alone = case.probe(below.wrap(exists.pattern))[0]
    seen = (
        f"; by itself, the pattern matches {write_times(alone.count, alone.more)}, with other values"
        if alone.count
        else "; the pattern matches nothing at all"
    )
    return case.make_reason(node, "exists-never", message + seen, "look at the pattern of EXISTS by itself", at=at)


def _write_binding(rows: Sequence[Row]) -> str:
    return "; ".join(", ".join(f"{variable} = {shorten(str(term))}" for variable, term in row.binding.items() if not variable.hidden) for row in rows)


@dataclass(frozen=True, slots=True)
class _Compared:
    """Holds both sides of a comparison for one solution; None for a side without a value."""

    left: Term | None
    right: Term | None


@dataclass(frozen=True, slots=True)
class ConditionExplainer:
    """Explains one condition that no row satisfies."""

    case: Examination
    node: Node
    rows: Sequence[Row]
    more: bool

    def explain_condition(self, condition: a.Expression) -> Reason:
        for compared in (each for each in list_subexpressions(condition) if isinstance(each, a.Compare | a.In)):
            for single in _list_comparisons(compared):
                if (reason := self._explain_comparison(single, condition)) is not None:
                    return reason
        for variable in dict.fromkeys(each.variable for each in list_subexpressions(condition) if isinstance(each, a.Var)):
            if not any(variable in row.binding for row in self.rows):
                return self._report("never-bound", f"{variable} is unbound in each of {len(self.rows):,} solutions", "bind it in the pattern")
        written, example = self._write_expression(condition), _write_binding(self.rows[:1])
        return self._report("filter-false", f"{written} is false or has no value {self._times()}, for example for {example}", "change the condition")

    def _report(self, code: str, message: str, remedy: str, nearest: str | None = None) -> Reason:
        return self.case.make_reason(self.node, code, message, remedy, nearest)

    def _write_expression(self, expression: a.Expression) -> str:
        return self.case.words.texts.write_expression(expression)

    def _times(self) -> str:
        return write_times(len(self.rows), self.more)

    def _explain_comparison(self, compared: a.Compare, condition: a.Expression) -> Reason | None:
        pairs = [_Compared(_evaluate_side(compared.left, row), _evaluate_side(compared.right, row)) for row in self.rows]
        known = [(pair.left, pair.right) for pair in pairs if pair.left is not None and pair.right is not None]
        for side in (compared.left, compared.right):
            if not known and isinstance(side, a.Var) and not any(side.variable in row.binding for row in self.rows):
                return self._report("never-bound", f"{side.variable} is unbound in each of {len(self.rows):,} solutions", "bind it in the pattern")
        if not known:
            return None
        if (reason := self._explain_kinds(compared, known)) is not None:
            return reason
        numbers = [
            (one, two) for one, two in ((_measure_term(left), _measure_term(right)) for left, right in known) if one is not None and two is not None
        ]
        if numbers and compared.op is not a.Comparison.UNEQUAL:
            return self._explain_distance(compared, numbers)
        if compared.op is a.Comparison.EQUAL:
            return self._explain_terms(compared, known, condition)
        return None

    def _explain_kinds(self, compared: a.Compare, known: Sequence[tuple[Term, Term]]) -> Reason | None:
        """Explain that the sides are of kinds that never compare, or are never equal."""
        kinds = Counter((_kind(left), _kind(right)) for left, right in known)
        if any(one == two for one, two in kinds):
            return None
        (one, two), count = kinds.most_common(1)[0]
        left, right = next(pair for pair in known if (_kind(pair[0]), _kind(pair[1])) == (one, two))
        side, value, other = compared.left, left, right
        if isinstance(compared.left, a.Constant):
            side, value, other = compared.right, right, left
        times = write_times(count, self.more)
        message = (
            f"{self._write_expression(side)} was compared with {write_kind(other)} {times} and was {write_kind(value)} each time: "
            f"{shorten(str(value))}"
        )
        return self._report("other-datatype", message, _advise_kind(self._write_expression(side), value, other), str(value))

    def _explain_distance(self, compared: a.Compare, numbers: Sequence[tuple["_Measure", "_Measure"]]) -> Reason:
        one, two = min(numbers, key=lambda pair: abs(pair[0].value - pair[1].value))
        side, value, limit = (compared.left, one, two) if not isinstance(compared.left, a.Constant) else (compared.right, two, one)
        written = self._write_expression(compared)
        if duration_limit(compared) is not None and value.is_duration:
            message = f"{written} is false {self._times()}: the shortest solution lasts {write_duration(round(value.value))}"
            return self._report("too-far-apart", message, f"allow {duration_text(round(value.value))} or more, if that is meant", str(value.text))
        among = f", of the first {len(self.rows):,}," if self.more else ""
        message = f"{written} is false {self._times()}: the closest value of {self._write_expression(side)}{among} was {shorten(value.text)}"
        passing = [name for name, change in _UNITS if _passes(compared.op, numbers, change, left=side is compared.left)]
        hint = f"; {passing[0]}, some values would pass: is it another unit?" if passing and isinstance(limit.value, int | float) else ""
        return self._report("filter-false", message, f"change the limit, if such values are meant{hint}", value.text)

    def _explain_terms(self, compared: a.Compare, known: Sequence[tuple[Term, Term]], condition: a.Expression) -> Reason | None:
        values = Counter((str(left), str(right)) for left, right in known)
        swapped = isinstance(compared.left, a.Constant)
        side, (left, right) = (compared.right if swapped else compared.left), next(iter(values))
        wanted = left if swapped else right
        candidates = Counter[str]()
        for (one, two), count in values.items():
            if wanted == (one if swapped else two):
                candidates[two if swapped else one] += count
        nearest = find_nearest(wanted, candidates) or candidates.most_common(1)[0][0]
        difference = tell_difference(wanted, nearest)
        message = (
            f"{self._write_expression(compared)} is false {self._times()}: the nearest value of {self._write_expression(side)} was {shorten(nearest)}"
        )
        return self._report(
            "filter-false", message + (f": {difference}" if difference else ""), f"compare with {shorten(nearest)}, if that is meant", nearest
        )


@dataclass(frozen=True, slots=True)
class _Measure:
    """Holds a value on a line, in µs for times."""

    value: float
    text: str
    is_duration: bool = False


def _measure_term(term: Term) -> _Measure | None:
    match value_of(term):
        case Number(_, number):
            return _Measure(float(number), term.lexical if isinstance(term, Literal) else str(term))
        case DateTime(micros):
            return _Measure(float(micros), str(term))
        case Duration(0, micros):
            return _Measure(float(micros), write_duration(round(micros)), is_duration=True)
    return None


def _passes(op: a.Comparison, numbers: Sequence[tuple[_Measure, _Measure]], change: Callable[[float], float], *, left: bool) -> bool:
    """Return whether some comparison would hold if one side were changed, and would then be of the other side's
    magnitude.
    """
    for one, two in numbers:
        if one.is_duration or one.text.startswith('"'):
            return False
        first, second = (change(one.value), two.value) if left else (one.value, change(two.value))
        if op in (a.Comparison.GREATER, a.Comparison.GREATER_OR_EQUAL):
            first, second = second, first
        if op is not a.Comparison.EQUAL and 0 < first < second <= _MAGNITUDE * first:
            return True
    return False


def _list_comparisons(compared: a.Compare | a.In) -> list[a.Compare]:
    if isinstance(compared, a.Compare):
        return [compared]
    return [a.Compare(a.Comparison.EQUAL, compared.operand, member) for member in compared.members]


def _evaluate_side(expression: a.Expression, row: Row) -> Term | None:
    try:
        return evaluate(expression, row.binding.get, row.start, row.end)
    except ExpressionError:
        return None


def _kind(term: Term) -> object:
    value: Value = value_of(term)
    match value:
        case Text(_, language):
            return Text, (language or "").lower()
        case Literal(_, datatype):
            return Literal, datatype
    return type(value)


def _advise_kind(side: str, value: Term, other: Term) -> str:
    if isinstance(value, Literal) and isinstance(value_of(other), Number) and not isinstance(value_of(value), Number):
        if _is_number(value.lexical.replace(",", ".", 1)) and "," in value.lexical:
            return f"the number has a decimal comma; send it with a point and as a number, such as {value.lexical.replace(',', '.', 1)}"
        if _is_number(value.lexical):
            return f"send {value.lexical} as a number, without quotes or with the type decimal in the mapping, or compare xsd:decimal({side})"
    if isinstance(value, Literal) and isinstance(other, Literal) and value.lexical == other.lexical:
        return f"compare STR({side}), or write {shorten(str(value))}"
    if isinstance(value, Literal) and isinstance(value_of(other), DateTime):
        return f"send a time as xsd:dateTime, or compare xsd:dateTime({side})"
    if isinstance(value, Iri) or isinstance(other, Iri):
        return f"compare STR({side}) with a text, or write {shorten(str(value))}"
    return f"compare with {write_kind(value)}, or send {write_kind(other)}"


def _is_number(text: str) -> bool:
    try:
        float(text.strip())
    except ValueError:
        return False
    return True


__all__ = ["explain_filter"]

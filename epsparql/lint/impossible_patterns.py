"""This module finds patterns that no event can match: durations that contradict each other, and parts that exclude
themselves.

Source: semantics.md, sections 3 and 4. A timeless solution satisfies each relation and adds no time, so only what is
certainly timed contradicts.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from epsparql.deferred_methods import dataclass
from epsparql.errors import Span
from epsparql.lint.scopes import Scopes, strip_spans
from epsparql.literals import duration_micros, duration_text
from epsparql.parser import ast as s

_EVER = 1 << 62


class Doubt(NamedTuple):
    """Says why nothing matches, and at which place."""

    message: str
    span: Span


class Lengths(NamedTuple):
    """Bounds the durations (µs) of a pattern's timed solutions; `timed` if it has no others.

    Where `least` is more than 0, it is timed.
    """

    least: int = 0
    most: int = _EVER
    timed: bool = False


def find_impossible(group: s.GroupGraphPattern) -> list[Doubt]:
    """Return the doubts of a group and of the groups that it needs, in the order of the text."""
    reader = _Reader([])
    reader.measure_group(group)
    return sorted(reader.found, key=lambda doubt: doubt.span.start)


@dataclass(frozen=True, slots=True)
class _Reader:
    found: list[Doubt]

    def measure_group(self, group: s.GroupGraphPattern) -> Lengths:
        parts = [
            self._measure_element(element) for element in group.elements if not isinstance(element, s.FilterElement | s.BindElement | s.MinusElement)
        ]
        lengths = Lengths(
            max((part.least for part in parts), default=0), parts[0].most if len(parts) == 1 else _EVER, any(part.timed for part in parts)
        )
        for element in group.elements:
            if isinstance(element, s.FilterElement):
                for least, most in _limits(element.condition):
                    lengths = self._limit(Lengths(max(lengths.least, least), min(lengths.most, most), True), lengths, element.span)
        self._find_excluded(group)
        return lengths

    def _limit(self, limited: Lengths, before: Lengths, span: Span) -> Lengths:
        """Return the limited lengths; where none is left, say so and go on with those before."""
        if limited.least <= limited.most:
            return limited
        message = f"nothing matches here: a solution would last {_show_least(limited.least)} and {_show_most(limited.most)}; change one of the limits"
        self.found.append(Doubt(message, span))
        return before

    def _measure_element(self, element: s.Element) -> Lengths:
        match element:
            case s.Chain():
                return self._measure_chain(element)
            case s.GraphElement(_, group, _):
                return self.measure_group(group)
        return Lengths()  # triples and whatever has intervals of its own

    def _measure_chain(self, chain: s.Chain) -> Lengths:
        lengths = self.measure_group(chain.first)
        for step in chain.steps:
            match step:
                case s.Combine(operator, group, span):
                    lengths = self._combine(operator, lengths, self.measure_group(group), span)
                case s.WithinStep(duration, span):
                    most = _micros(duration)
                    lengths = self._limit(lengths._replace(most=min(lengths.most, most)), lengths, span)
                case s.WithoutStep(_, duration, _) if duration is not None:
                    added = _micros(duration) if _micros(duration) < _EVER else 0
                    lengths = Lengths(lengths.least + added, min(lengths.most + added, _EVER) if lengths.timed else _EVER, True)
        return lengths

    def _combine(self, operator: s.ChainOperator, left: Lengths, right: Lengths, span: Span) -> Lengths:
        """Return the lengths of what an operator joins; each duration that both sides need is one of the joined
        solution or a part of it.
        """
        timed = left.timed or right.timed
        both = left.timed and right.timed
        match operator:
            case s.ChainOperator.UNION:
                return Lengths(min(left.least, right.least), max(left.most, right.most), both)
            case s.ChainOperator.EQUALSOPTIONAL:
                return left
            case s.ChainOperator.OPTIONALSEQ:
                return Lengths(right.least, _EVER, right.timed)
            case s.ChainOperator.EQUALS if both:
                return self._limit(Lengths(max(left.least, right.least), min(left.most, right.most), True), Lengths(timed=True), span)
            case s.ChainOperator.DURING | s.ChainOperator.STARTS | s.ChainOperator.FINISHES if both:
                return self._limit(Lengths(max(left.least + 1, right.least), right.most, True), Lengths(timed=True), span)
            case s.ChainOperator.SEQ | s.ChainOperator.MEETS:
                return Lengths(left.least + right.least, _EVER, timed)
        return Lengths(max(left.least, right.least), _EVER, timed)

    # ------------------------------------------------------------ what excludes itself
    def _find_excluded(self, group: s.GroupGraphPattern) -> None:
        """Find MINUS and NOT EXISTS whose triples the group needs itself: each solution then contains what it must not."""
        needed = set(_list_needed(group))
        for element in group.elements:
            for word, excluded, span in _list_excluded(element):
                triples = [_triples_of(part) for part in excluded.elements]
                shared = word == "NOT EXISTS" or bool(Scopes().group(excluded))
                if triples and shared and all(part and needed.issuperset(part) for part in triples):
                    message = f"nothing matches here: {word} excludes triples that the group itself needs; WITHOUT excludes others between two events"
                    self.found.append(Doubt(message, span))


def _show_least(micros: int) -> str:
    """Show a lower limit; one microsecond above a second comes from a comparison that excludes the second."""
    return f"more than {duration_text(micros - 1)}" if micros % 1_000_000 == 1 else f"at least {duration_text(micros)}"


def _show_most(micros: int) -> str:
    return f"less than {duration_text(micros + 1)}" if micros % 1_000_000 == 999_999 else f"at most {duration_text(micros)}"


def _micros(duration: s.DurationText) -> int:
    """Return the microseconds of a duration; faults are the translation's, and bound nothing here."""
    found = duration_micros(f"PT{duration.lexical}S" if duration.seconds else duration.lexical)
    return _EVER if found is None else found


_TURNED = {
    s.BinaryOperator.LESS: s.BinaryOperator.GREATER,
    s.BinaryOperator.LESS_OR_EQUAL: s.BinaryOperator.GREATER_OR_EQUAL,
    s.BinaryOperator.GREATER: s.BinaryOperator.LESS,
    s.BinaryOperator.GREATER_OR_EQUAL: s.BinaryOperator.LESS_OR_EQUAL,
    s.BinaryOperator.EQUAL: s.BinaryOperator.EQUAL,
}


def _limits(condition: s.Expression) -> Iterator[tuple[int, int]]:
    """Yield the least and the greatest duration (µs) that each part of a conjunction lets pass."""
    pending = [condition]
    while pending:
        match pending.pop():
            case s.Binary(s.BinaryOperator.AND, left, right, _):
                pending += (right, left)
            case s.Binary(operator, s.BuiltInCall("GETDURATION"), s.StringLiteral(lexical, None), _) if operator in _TURNED:
                yield from _limit_of(operator, lexical)
            case s.Binary(operator, s.StringLiteral(lexical, None), s.BuiltInCall("GETDURATION"), _) if operator in _TURNED:
                yield from _limit_of(_TURNED[operator], lexical)


def _limit_of(operator: s.BinaryOperator, lexical: str) -> Iterator[tuple[int, int]]:
    micros = duration_micros(lexical)
    if micros is not None:
        match operator:
            case s.BinaryOperator.LESS:
                yield 0, micros - 1
            case s.BinaryOperator.LESS_OR_EQUAL:
                yield 0, micros
            case s.BinaryOperator.GREATER:
                yield micros + 1, _EVER
            case s.BinaryOperator.GREATER_OR_EQUAL:
                yield micros, _EVER
            case _:
                yield micros, micros


_EITHER = (s.ChainOperator.UNION, s.ChainOperator.OPTIONALSEQ, s.ChainOperator.EQUALSOPTIONAL)


def _list_needed(group: s.GroupGraphPattern) -> Iterator[tuple[object, ...]]:
    """Yield the triples that each solution of a group contains."""
    for element in group.elements:
        yield from _triples_of(element)
        if isinstance(element, s.Chain):
            joined = [step for step in element.steps if isinstance(step, s.Combine)]
            if not any(step.operator in _EITHER for step in joined):
                for part in (element.first, *(step.group for step in joined)):
                    yield from _list_needed(part)


def _list_excluded(element: s.Element) -> Iterable[tuple[str, s.GroupGraphPattern, Span]]:
    match element:
        case s.MinusElement(group, span):
            yield "MINUS", group, Span(span.start, span.start + len("MINUS"))
        case s.FilterElement(s.ExistsCall(True, group, span), _):
            yield "NOT EXISTS", group, span


def _triples_of(element: s.Element) -> list[tuple[object, ...]]:
    """Return the triples of an element without their places in the text; none for what is no triple."""
    if not isinstance(element, s.TriplesSameSubject):
        return []
    return [(strip_spans(element.subject), strip_spans(found.verb), strip_spans(each)) for found in element.properties for each in found.objects]

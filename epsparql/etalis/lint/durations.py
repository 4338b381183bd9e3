"""This module finds patterns of a program that nothing can match: windows that are too short, and instants in the wrong
order.

1. Each pattern gets bounds on the start, the end and the duration of its results (µs). An event that is sent may have
   any; an event that rules derive has those of its rules.
2. An operator's relation narrows the bounds of its operands. Where none are left, nothing matches.
3. Triples of the background have no time, and satisfy each relation. So a pattern that may be one bounds nothing.
"""

from collections.abc import Iterator
from dataclasses import field
from functools import reduce
from typing import NamedTuple

from epsparql.deferred_methods import dataclass
from epsparql.errors import Span, Warning_
from epsparql.etalis.parser.constants import instant_micros, predicate_atom
from epsparql.etalis.parser.program import EventRule, Program, duration_of
from epsparql.etalis.parser.syntax import Num, Struct, Term, as_struct
from epsparql.etalis.parser.vocabulary import is_iri

_EVER = 1 << 62


class Bounds(NamedTuple):
    """Bounds the results of a pattern: the durations, starts and ends lie between these values, in µs.

    `timeless` says that a result may have no time. `derived` has the indicators of derived events on which the bounds
    rest.
    """

    least: int = 0
    most: int = _EVER
    start: tuple[int, int] = (-_EVER, _EVER)
    end: tuple[int, int] = (-_EVER, _EVER)
    timeless: bool = False
    derived: frozenset[str] = frozenset()

    def close(self) -> "Bounds":
        """Return the bounds that follow from each other."""
        least = max(self.least, self.end[0] - self.start[1], 0)
        most = min(self.most, self.end[1] - self.start[0])
        start = max(self.start[0], self.end[0] - most), min(self.start[1], self.end[1] - least)
        end = max(self.end[0], self.start[0] + least), min(self.end[1], self.start[1] + most)
        return self._replace(least=least, most=most, start=start, end=end)

    @property
    def is_empty(self) -> bool:
        return self.least > self.most or self.start[0] > self.start[1] or self.end[0] > self.end[1]


ANY = Bounds()


def find_impossible(program: Program) -> Iterator[Warning_]:
    """Yield a doubt for each pattern that nothing can match."""
    reader = _Reader(program)
    for rule in program.rules:
        reader.measure_rule(rule)
    for span, message in reader.found.items():
        yield Warning_("never-matches", message, span)


@dataclass(slots=True)
class _Reader:
    program: Program
    found: dict[Span, str] = field(default_factory=dict)
    _rules: dict[tuple[str, int], list[EventRule]] = field(init=False)
    _known: dict[tuple[str, int], Bounds] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rules = {}
        for rule in self.program.rules:
            atom = predicate_atom(rule.head, self.program)
            self._rules.setdefault((atom.name, len(atom.args)), []).append(rule)

    # ------------------------------------------------------------ events
    def measure_rule(self, rule: EventRule) -> Bounds:
        """Return the bounds of the events that a rule derives."""
        found = self._measure(rule.body)
        if rule.window is not None:
            found = self._limit(found, rule.window, rule.head.span)
        if rule.alarm is None:
            return found
        if rule.alarm == "delay" and isinstance(rule.time, Num) and rule.time.value > 0:
            delay = duration_of(self.program.text, rule.time)
            end = found.end[0] + delay, min(found.end[1] + delay, _EVER)
            return found._replace(least=found.least + delay, most=min(found.most + delay, _EVER), end=end).close()
        return Bounds(found.least, start=found.start, end=(found.end[0], _EVER), derived=found.derived).close()

    def _measure_event(self, atom: Struct) -> Bounds:
        atom = predicate_atom(atom, self.program)
        event = atom.name, len(atom.args)
        if is_iri(atom.name):
            return Bounds(timeless=True)
        if event not in self._known:
            self._known[event] = ANY  # an event that rests on itself
            parts = [self.measure_rule(rule) for rule in self._rules.get(event, ())]
            if parts:
                found = reduce(_unite, parts)
                self._known[event] = found._replace(timeless=False, derived=found.derived | {atom.indicator})
        return self._known[event]

    # ------------------------------------------------------------ patterns
    def _measure(self, term: Term) -> Bounds:
        match term:
            case Num():
                return _bound_instant(duration_of(self.program.text, term))
            case Struct("datime", _):
                return _bound_instant(instant_micros(term, self.program))
            case Struct(":where", (inner, _)):
                return self._measure(inner)
            case Struct(":within", (inner, limit)):
                return self._limit(self._measure(inner), duration_of(self.program.text, limit), limit.span)
            case Struct(":cnot" | ":fnot", (inner, absent)):
                self._measure(absent)
                return self._measure(inner)
            case Struct(":or", (left, right)):
                return _unite(self._measure(left), self._measure(right))
            case Struct(":ntimes", (inner, Num(times))):
                x = self._measure(inner)
                return reduce(lambda whole, _: self._measure_join(":ntimes", whole, x, term.span), range(min(int(times), 100) - 1), x)
            case Struct(":<-", (head, body)):
                self._measure(body)
                atom = as_struct(head)
                return ANY if atom is None else self._measure_event(atom)
            case Struct((":seq" | ":forall_seq"), (left, Struct("prolog", _))):
                return self._measure(left)
            case Struct("aggregate", (_, inner, _, *_)):
                return self._measure(inner)._replace(most=_EVER).close()
            case Struct((":seq" | ":forall_seq"), (left, Struct("aggregate" | ":star_times", _) as right)):
                if right.name == "aggregate":
                    self._measure(right)
                x = self._measure(left)
                return Bounds(x.least, start=x.start, end=(x.end[0], _EVER), timeless=x.timeless, derived=x.derived).close()
            case Struct(name, (left, right)) if name.startswith(":"):
                return self._measure_join(name, self._measure(left), self._measure(right), term.span)
            case _:
                atom = as_struct(term)
                return ANY if atom is None else self._measure_event(atom)

    def _limit(self, bounds: Bounds, most: int, span: Span) -> Bounds:
        limited = bounds._replace(most=min(bounds.most, most)).close()
        if bounds.timeless or not limited.is_empty:
            return bounds if bounds.timeless else limited
        message = f"a result lasts at least {_show_seconds(bounds.least)}, and the window is {_show_seconds(most)}: make the window longer"
        return self._doubt(message, bounds.derived, span)

    def _measure_join(self, operator: str, x: Bounds, y: Bounds, span: Span) -> Bounds:
        derived = x.derived | y.derived
        if x.timeless or y.timeless:
            return Bounds(timeless=x.timeless and y.timeless, derived=derived)
        left, right = _relate(operator, x, y)
        if left.is_empty or right.is_empty:
            return self._doubt(_IMPOSSIBLE.get(operator, "its sides never meet"), derived, span)
        start = min(left.start[0], right.start[0]), min(left.start[1], right.start[1])
        end = max(left.end[0], right.end[0]), max(left.end[1], right.end[1])
        least, most = max(left.least, right.least), _EVER
        if operator in (":seq", ":forall_seq", ":ntimes", ":meets"):
            least = left.least + right.least + (operator != ":meets")
            most = left.most + right.most if operator == ":meets" else _EVER
        elif operator in (":equals", ":during", ":starts", ":finishes"):
            most = right.most
        return Bounds(least, min(most, _EVER), start, end, derived=derived).close()

    def _doubt(self, message: str, derived: frozenset[str], span: Span) -> Bounds:
        unless = f", unless {' or '.join(sorted(derived))} is also sent" if derived else ""
        self.found.setdefault(span, f"nothing matches here{unless}: {message}")
        return ANY


_IMPOSSIBLE = {
    ":seq": "what stands on the left of seq never ends before what stands on its right begins",
    ":forall_seq": "what stands on the left of forall_seq never ends before what stands on its right begins",
    ":meets": "what stands on the left of meets never ends where what stands on its right begins",
    ":equals": "the sides of equals never have one interval",
    ":during": "what stands on the left of during is never inside of what stands on its right",
    ":starts": "what stands on the left of starts never begins what stands on its right",
    ":finishes": "what stands on the left of finishes never ends what stands on its right",
    ":par": "the sides of par never share more than a point",
    ":ntimes": "an instant comes once",
}


def _bound_instant(micros: int) -> Bounds:
    return Bounds(0, 0, (micros, micros), (micros, micros))


def _unite(x: Bounds, y: Bounds) -> Bounds:
    """Return the bounds of what has one of these."""
    return Bounds(
        min(x.least, y.least),
        max(x.most, y.most),
        (min(x.start[0], y.start[0]), max(x.start[1], y.start[1])),
        (min(x.end[0], y.end[0]), max(x.end[1], y.end[1])),
        x.timeless or y.timeless,
        x.derived | y.derived,
    )


def _relate(operator: str, x: Bounds, y: Bounds) -> tuple[Bounds, Bounds]:
    """Return the bounds of both sides where the operator's relation holds (docs/etalis.md)."""
    match operator:
        case ":seq" | ":forall_seq" | ":ntimes":
            x, y = x._replace(end=_below(x.end, y.start[1] - 1)), y._replace(start=_above(y.start, x.end[0] + 1))
        case ":meets":
            met = _meet(x.end, y.start)
            x, y = x._replace(end=met), y._replace(start=met)
        case ":equals":
            start, end = _meet(x.start, y.start), _meet(x.end, y.end)
            least, most = max(x.least, y.least), min(x.most, y.most)
            x, y = (each._replace(start=start, end=end, least=least, most=most) for each in (x, y))
        case ":during":
            x = x._replace(most=min(x.most, y.most - 2), start=_above(x.start, y.start[0] + 1), end=_below(x.end, y.end[1] - 1))
            y = y._replace(least=max(y.least, x.least + 2), start=_below(y.start, x.start[1] - 1), end=_above(y.end, x.end[0] + 1))
        case ":starts":
            start = _meet(x.start, y.start)
            x, y = x._replace(most=min(x.most, y.most - 1), start=start), y._replace(least=max(y.least, x.least + 1), start=start)
        case ":finishes":
            end = _meet(x.end, y.end)
            x, y = x._replace(most=min(x.most, y.most - 1), end=end), y._replace(least=max(y.least, x.least + 1), end=end)
        case ":par":
            x = x._replace(least=max(x.least, 1), start=_below(x.start, y.end[1] - 1), end=_above(x.end, y.start[0] + 1))
            y = y._replace(least=max(y.least, 1), start=_below(y.start, x.end[1] - 1), end=_above(y.end, x.start[0] + 1))
        case _:
            pass
    return x.close(), y.close()


def _meet(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
    return max(x[0], y[0]), min(x[1], y[1])


def _above(x: tuple[int, int], least: int) -> tuple[int, int]:
    return max(x[0], least), x[1]


def _below(x: tuple[int, int], most: int) -> tuple[int, int]:
    return x[0], min(x[1], most)


def _show_seconds(micros: int) -> str:
    """Return a duration in seconds, with the microsecond by which seq is strict."""
    whole, rest = divmod(micros, 1_000_000)
    return f"{whole} s" if not rest else f"{whole}.{rest:06d}".rstrip("0") + " s"

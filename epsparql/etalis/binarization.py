"""This module writes the rules of a program as the papers draw them: binary rules, each of one operator and two events.

An intermediate event is named `ie1`, `ie2` and so on. What comes first is kept as a *goal*, which waits for what
completes it.

Source: Anicic et al., *Stream reasoning and complex event processing in ETALIS*, algorithms 1 to 6.
"""

from collections.abc import Mapping
from dataclasses import field

from epsparql.deferred_methods import dataclass
from epsparql.etalis.header import split_header
from epsparql.etalis.parser.program import EventRule, read_program
from epsparql.etalis.parser.syntax import Struct, Term, list_conjuncts
from epsparql.etalis.writer import write_term

_WAITS: Mapping[str, str] = {":seq": "left", ":forall_seq": "left", ":cnot": "", ":fnot": ""}
"""These sides wait; both wait under every other operator."""


@dataclass(frozen=True, slots=True)
class BinaryRule:
    """Represents one step of a rule. `event` is what it gives, and `pattern` what that comes from.

    `waits_for` has each goal with the event that completes it; `rule` is the label of the program's rule, or its head.
    """

    rule: str
    event: str
    pattern: str
    waits_for: tuple[tuple[str, str], ...]

    def write(self) -> str:
        goals = ", ".join(f"{goal} waits for {completed_by}" for goal, completed_by in self.waits_for)
        return f"{self.event} <- {self.pattern}" + (f"   [{goals}]" if goals else "")


def list_binary_rules(text: str) -> tuple[BinaryRule, ...]:
    """Return the binary rules of a query's text that is a program, in the order of its rules. Raises: EleRefused."""
    program, _ = split_header(text)
    writer = _Writer()
    for rule in read_program(program).rules:
        writer.add_rule(rule)
    return tuple(writer.found)


@dataclass(slots=True)
class _Step:
    """Holds a step whose event may get another name, where nothing follows it."""

    pattern: str
    waits_for: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Writer:
    found: list[BinaryRule] = field(default_factory=list)
    _intermediate: int = 0
    _rule: str = ""

    def add_rule(self, rule: EventRule) -> None:
        self._rule = rule.label or rule.head.indicator
        step = self._read(rule.body)
        window = "" if rule.window is None else f" within {rule.window / 1_000_000:g}"
        head = write_term(rule.head)
        if rule.alarm is not None and rule.time is not None:
            head = f"{head} {'after' if rule.alarm == 'delay' else 'at'} {write_term(rule.time)}"
        self.found.append(BinaryRule(self._rule, head, step.pattern + window, step.waits_for))

    def _name(self, term: Term) -> str:
        """Return the event that stands for a pattern: an atom itself, or an intermediate event with a rule of its own."""
        step = self._read(term)
        if not step.waits_for and not (isinstance(term, Struct) and term.name.startswith(":")):
            return step.pattern
        self._intermediate += 1
        self.found.append(BinaryRule(self._rule, f"ie{self._intermediate}", step.pattern, step.waits_for))
        return f"ie{self._intermediate}"

    def _read(self, term: Term) -> _Step:
        match term:
            case Struct(":where", (inner, goals)):
                step = self._read(inner)
                return _Step(f"{step.pattern} where {', '.join(map(write_term, list_conjuncts(goals)))}", step.waits_for)
            case Struct((":within" | ":ntimes") as name, (inner, amount)):
                step = self._read(inner)
                return _Step(f"{step.pattern} {name[1:]} {write_term(amount)}", step.waits_for)
            case Struct(":<-", (head, body)):
                step = self._read(body)
                self.found.append(BinaryRule(self._rule, write_term(head), step.pattern, step.waits_for))
                return _Step(write_term(head))
            case Struct(":or", (left, right)):
                return _Step(f"{self._name(left)} or {self._name(right)}")
            case Struct(":star_times", (inner,)):
                return _Step(f"{self._name(inner)} star_times")
            case Struct(name, (left, right)) if name.startswith(":"):
                x, y = self._name(left), self._name(right)
                side = "" if isinstance(right, Struct) and right.name == "prolog" else _WAITS.get(name, "both")
                waits = {"left": ((x, y),), "both": ((x, y), (y, x)), "": ()}[side]
                return _Step(f"{x} {name[1:]} {y}", waits)
            case _:
                return _Step(write_term(term))

"""This module makes the program of the first operands of another program's rules.

The operands of a rule are the patterns that seq, forall_seq, and, par, equals, meets, during, starts and finishes join,
from left to right; each alternative of an `or` around them is a chain of its own. Each chain with more operands gets a
rule for an event `HEAD~N`. Its arguments are the variables that the first ones bind.

The other clauses stay, since operands may be events that the program derives; its own triggers go.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import reduce

from epsparql.deferred_methods import dataclass
from epsparql.errors import Span
from epsparql.etalis.bound_variables import list_bound
from epsparql.etalis.header import split_header
from epsparql.etalis.parser.program import MAX_ARGUMENTS, EventRule, Program, read_program
from epsparql.etalis.parser.syntax import Num, Struct, Term, as_struct, extend_to_close, join_goals, list_conjuncts, list_variables
from epsparql.etalis.writer import write_pattern, write_quoted

_JOINS = frozenset(f":{name}" for name in ("seq", "forall_seq", "and", "par", "equals", "meets", "during", "starts", "finishes"))
_BEGUN_BY_THE_RIGHT = frozenset((":seq", ":forall_seq", ":and"))
"""A solution of these begins with a join of the left operand and the first part of the right one."""
SECOND = 1_000_000
_LOOK_AT_TIME = frozenset(("t1", "t2", "current_datime"))


def write_first_operands(text: str, n: int) -> str | None:
    """Return the text of the program of the first `n` operands of a query's text that is a program; None if no rule has
    more, or they are no part of one by themselves.

    Of the conditions on a whole rule, it has those that the first operands decide, and the longest duration.

    Raises: EleRefused.
    """
    program = read_program(split_header(text)[0])
    chains = [(rule, chain) for rule in program.rules for chain in _list_alternatives(rule.body) if count_operands(chain) > n]
    rules = [_write_rule(program, rule, chain, n) for rule, chain in chains]
    written = [each for each in rules if each is not None]
    if n < 1 or not rules or len(written) < len(rules):
        return None
    triggers = list(dict.fromkeys(f"print_trigger({event}/{arity})" for event, arity, _ in written))
    added = [f"{each}." for each in triggers] + [rule for _, _, rule in written]
    return "\n".join([_replace_outputs(text, program.outputs, triggers[0]).rstrip("\n"), *dict.fromkeys(added), ""])


def _replace_outputs(text: str, places: Sequence[Span], trigger: str) -> str:
    """Write a trigger over each command that chooses what is reported or written."""
    for place in sorted(places, reverse=True, key=lambda span: span.start):
        whole = extend_to_close(text, place)
        text = text[: whole.start] + trigger + text[whole.end :]
    return text


def _write_rule(program: Program, rule: EventRule, chain: Term, n: int) -> tuple[str, int, str] | None:
    """Return the event of a chain's first operands, as it is written, with the number of its arguments, and its rule."""
    limits = () if rule.window is None else (Num(Decimal(rule.window) / SECOND, "", rule.span),)
    part = _select_part(program, chain, n, _Limits((), limits))
    if part is None:
        return None
    bound = list_bound(program, part)
    if len(bound) > MAX_ARGUMENTS:
        return None
    event = write_quoted(f"{re.split('[:/#]', rule.head.name)[-1]}~{n}")
    head = f"{event}({', '.join(bound)})" if bound else event
    return event, len(bound), f"{head} <- {write_pattern(part)}."


# ---------------------------------------------------------------- operands
def count_operands(pattern: Term) -> int:
    """Return how many operands the longest chain of a pattern has."""
    match _write_out(pattern):
        case Struct(name, (left, right)) if name in _JOINS and not _is_condition(right):
            return count_operands(left) + count_operands(right)
        case Struct(":cnot" | ":where" | ":within", (inner, _)):
            return count_operands(inner)
        case Struct(":seq", (left, Struct("prolog"))):
            return count_operands(left)
        case _:
            return 1


def _is_condition(right: Term) -> bool:
    """Return whether the right side of a seq makes one operand with its left side, or none."""
    return isinstance(right, Struct) and right.name in ("aggregate", "prolog", ":star_times")


def _write_out(pattern: Term) -> Term:
    """Return the seq that `ntimes` stands for, or the pattern itself."""
    if isinstance(pattern, Struct) and pattern.name == ":ntimes" and isinstance(pattern.args[1], Num):
        inner, times = pattern.args[0], int(pattern.args[1].value)
        return reduce(lambda whole, each: Struct(":seq", (whole, each), pattern.span), [inner] * times)
    return pattern


def _list_alternatives(body: Term) -> Iterator[Term]:
    """Yield the chains of a rule, each with the conditions and durations around the alternatives."""
    match body:
        case Struct(":or", (left, right)) if max(map(_count_longest, (left, right))) > 1:
            yield from _list_alternatives(left)
            yield from _list_alternatives(right)
        case Struct(":where" | ":within" as name, (inner, around)):
            for chain in _list_alternatives(inner):
                yield Struct(name, (chain, around), body.span)
        case _:
            yield body


def _count_longest(body: Term) -> int:
    return max(map(count_operands, _list_alternatives(body)))


# ---------------------------------------------------------------- the first ones
@dataclass(frozen=True, slots=True)
class _Limits:
    """Holds the goals and the durations of a whole chain."""

    goals: tuple[Term, ...] = ()
    durations: tuple[Term, ...] = ()

    def put_around(self, program: Program, pattern: Term) -> Term:
        """Return a part of the chain under its durations, and those goals that the part decides."""
        bound = {*list_bound(program, pattern)}
        for duration in self.durations:
            pattern = Struct(":within", (pattern, duration), pattern.span)
        goals = [goal for goal in self.goals if {each.name for each in list_variables(goal)} <= bound and not _looks_at_time(goal)]
        return Struct(":where", (pattern, join_goals(goals, pattern.span)), pattern.span) if goals else pattern


def _select_part(program: Program, pattern: Term, n: int, limits: _Limits) -> Term | None:
    """Return the first `n` operands of a chain, under the limits of the whole; None if they are no part by themselves."""
    pattern = _write_out(pattern)
    if count_operands(pattern) == n:
        return limits.put_around(program, pattern)
    match pattern:
        case Struct(":where", (inner, goals)):
            return _select_part(program, inner, n, _Limits((*limits.goals, *list_conjuncts(goals)), limits.durations))
        case Struct(":within", (inner, duration)):
            return _select_part(program, inner, n, _Limits(limits.goals, (*limits.durations, duration)))
        case Struct(":seq", (inner, Struct("prolog", goals))):
            return _select_part(program, inner, n, _Limits((*limits.goals, *goals), limits.durations))
        case Struct(":cnot", (inner, _)):
            return _select_part(program, inner, n, limits)
        case Struct(name, (left, right)) if name in _JOINS and not _is_condition(right):
            if count_operands(left) >= n:
                return _select_part(program, left, n, limits)
            part = _select_part(program, right, n - count_operands(left), _Limits()) if name in _BEGUN_BY_THE_RIGHT else None
            return None if part is None else limits.put_around(program, Struct(name, (left, part), pattern.span))
        case _:
            return None


def _looks_at_time(goal: Term) -> bool:
    found = as_struct(goal)
    return found is not None and (found.name in _LOOK_AT_TIME or any(map(_looks_at_time, found.args)))

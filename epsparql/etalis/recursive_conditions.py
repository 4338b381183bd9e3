"""Conditions that go through a list are evaluated on demand, by rules over events (magic sets).

A condition that gets its inputs from an event cannot be closed beforehand, and a recursive one cannot be unfolded. So
each call is an event, and each answer is one, on the interval of the pattern that calls. For

    sum([], 0).   sum([X|T], S) :- sum(T, R), S is R + X.   e(S) <- a(L) where sum(L, S).

where the first argument is bound, b, and the second one free, f, the rules are

    'sum~bf~call'(L) <- a(L).
    'sum~bf~call'(T) <- 'sum~bf~call'(A) where A = [X|T].
    'sum~bf'([], 0)  <- 'sum~bf~call'([]).
    'sum~bf'(A, S)   <- 'sum~bf~call'(A) equals 'sum~bf'(T, R) where A = [X|T], S is R + X.
    e(S)             <- a(L) equals 'sum~bf'(L, S).

Their least fixpoint has all answers. What never ends is stopped as other rules are that derive too much at an instant.
Source: Bancilhon, Maier, Sagiv and Ullman, *Magic sets and other strange ways to implement logic programs*, PODS 1986.
"""

from collections.abc import Set
from dataclasses import field

from epsparql.deferred_methods import dataclass
from epsparql.errors import Span
from epsparql.etalis.bound_variables import list_bound
from epsparql.etalis.parser.program import EventRule, Program, StaticRule
from epsparql.etalis.parser.syntax import Name, Struct, Term, VariableTerm, as_struct, join_goals, list_conjuncts, refuse
from epsparql.etalis.statics.goals import Key, Statics, closed_variables, is_expression, variables_of
from epsparql.trees import replace_fields


def demand_conditions(program: Program, statics: Statics) -> None:
    """Let the event rules of a program evaluate the conditions that rest on themselves. Raises: EleRefused."""
    if statics.demanded:
        demand = _Demand(program, statics)
        rules = [replace_fields(rule, body=demand.rewrite(rule.body)) for rule in program.rules]
        program.rules[:] = [*rules, *demand.close()]


@dataclass(slots=True)
class _Demand:
    program: Program
    statics: Statics
    _calls: dict[tuple[Key, str], None] = field(default_factory=dict)  # conditions with the inputs that they are called with: b or f
    _rules: list[EventRule] = field(default_factory=list)

    def rewrite(self, pattern: Term) -> Term:
        """Return a pattern in which answers stand in the place of calls."""
        match pattern:
            case Struct(":where", (inner, goals)):
                return self._join_answers(self.rewrite(inner), list_conjuncts(goals), pattern.span)
            case Struct(":seq", (left, Struct("prolog", goals))):
                return self._join_answers(self.rewrite(left), list_conjuncts(join_goals(goals, pattern.span)), pattern.span)
            case Struct("aggregate", (function, inner, *rest)):
                return replace_fields(pattern, args=(function, self.rewrite(inner), *rest))
            case Struct(name, args) if name.startswith(":"):
                return replace_fields(pattern, args=tuple(map(self.rewrite, args)))
            case _:
                return pattern

    def close(self) -> list[EventRule]:
        """Return the rules of all calls, and of the calls that these make."""
        done = 0
        while done < len(self._calls):
            key, inputs = [*self._calls][done]
            done += 1
            for rule in self.statics.demanded[key]:
                self._answer(rule, inputs)
        return self._rules

    def _answer(self, rule: StaticRule, inputs: str) -> None:
        """Add the rule by which a static rule answers a call."""
        given, answer = list[Term](), list[Term]()
        goals = [] if rule.body is None else list_conjuncts(rule.body)
        for argument, kind in zip(rule.head.args, inputs, strict=True):
            part = argument
            if kind == "b" and not _is_plain(argument):
                part = self._fresh(argument.span)
                goals.insert(0, Struct("=", (part, argument), argument.span))
            answer.append(part)
            given += [part] if kind == "b" else []
        body = self._join_answers(self._event(rule.head, inputs, given, is_call=True), goals, rule.span)
        self._rules.append(EventRule(self._event(rule.head, inputs, answer), body, rule.span, rule.head.indicator))

    def _join_answers(self, pattern: Term, goals: list[Term], span: Span) -> Term:
        """Return a pattern under goals, where calls are joined with their answers one by one."""
        calls = [atom for goal in goals if (atom := as_struct(goal)) is not None and _indicator(atom) in self.statics.demanded]
        rest = [goal for goal in goals if goal not in calls and as_struct(goal) not in calls]
        while calls:
            ready, known = self._find_ready(rest, {*list_bound(self.program, pattern)})
            call = max(calls, key=lambda each: sum(variables_of(argument) <= known for argument in each.args))
            calls.remove(call)
            inputs = "".join("b" if variables_of(argument) <= known else "f" for argument in call.args)
            self._calls[_indicator(call), inputs] = None
            given = [argument for argument, kind in zip(call.args, inputs, strict=True) if kind == "b"]
            head = self._event(call, inputs, given, is_call=True)
            self._rules.append(EventRule(head, _put_under(pattern, ready, span), call.span, call.indicator))
            parts = list[Term]()
            for argument in call.args:
                if is_expression(argument):
                    refuse(
                        f"arithmetic in an argument of {call.indicator}", argument.span, self.program.text, "a variable, with 'is' beside the goal"
                    )
                parts.append(argument if _is_plain(argument) else self._fresh(argument.span))
                rest += [] if parts[-1] is argument else [Struct("=", (parts[-1], argument), argument.span)]
            pattern = Struct(":equals", (pattern, self._event(call, inputs, parts)), call.span)
        return _put_under(pattern, rest, span)

    def _find_ready(self, goals: list[Term], bound: Set[str]) -> tuple[list[Term], set[str]]:
        """Return the goals whose inputs are bound without calls, and what is bound then."""
        ready, known, pending = list[Term](), {*bound}, [(goal, self.statics.expand(goal)) for goal in goals]
        found = True
        while found:
            found = False
            for goal, expanded in [*pending]:
                _, more, missing = self.statics.order(expanded, known)
                if not missing and all(closed_variables(each) <= known for each in expanded):
                    pending.remove((goal, expanded))
                    ready.append(goal)
                    known, found = more, True
        return ready, known

    def _event(self, atom: Struct, inputs: str, args: list[Term], *, is_call: bool = False) -> Struct:
        name = f"{atom.name}~{inputs}{'~call' * is_call}"
        self.program.hidden.add((name, len(args)))
        return Struct(name, tuple(args), atom.span)

    def _fresh(self, span: Span) -> VariableTerm:
        return VariableTerm(f"Arg~{self.statics.fresh()}", span)


def _indicator(atom: Struct) -> Key:
    return atom.name, len(atom.args)


def _is_plain(term: Term) -> bool:
    """Return whether a term may stand in an event's pattern as it is: a variable, or a constant."""
    return isinstance(term, VariableTerm) or not (variables_of(term) or (is_expression(term) and not isinstance(term, Name)))


def _put_under(pattern: Term, goals: list[Term], span: Span) -> Term:
    return Struct(":where", (pattern, join_goals(goals, span)), span) if goals else pattern

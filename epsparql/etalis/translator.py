"""This module translates a program to one query: silent rules that derive its events on a stream of its own, and a
SELECT of those that it reports.
"""

from collections.abc import Iterable, Iterator, Mapping

from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.errors import Span, Warning_
from epsparql.etalis.events import (
    ARGUMENTS,
    EVENT,
    NOTHING,
    event_rule,
    input_rule,
    join_union,
    no_rule,
    other_pattern,
    own_pattern,
    prefix_rules,
    reported_solutions,
    reported_triples,
    sent_pattern,
    written_rule,
)  # fmt: skip
from epsparql.etalis.header import split_header
from epsparql.etalis.lint.warnings import doubt_program
from epsparql.etalis.parser.constants import ground_term, predicate_atom
from epsparql.etalis.parser.program import MAX_ARGUMENTS, EventRule, Program, Trigger, duration_of, read_program
from epsparql.etalis.parser.syntax import Num, Struct, Term, VariableTerm, as_struct, list_variables, refuse
from epsparql.etalis.parser.vocabulary import iri_of, is_iri
from epsparql.etalis.patterns import Event, Patterns
from epsparql.etalis.recursive_conditions import demand_conditions
from epsparql.etalis.statics.conditions import Conditions, Translated, call
from epsparql.etalis.statics.datalog import close_static_rules
from epsparql.etalis.statics.goals import is_expression, variables_of
from epsparql.recursion import deep_stack
from epsparql.terms import TermOrVariable, Variable
from epsparql.trees import replace_fields

_Derived = tuple[Event, tuple[TermOrVariable, ...], a.Pattern, str]
"""This is a rule's event, its arguments, the pattern whose solutions it is derived from, and the rule's label."""


@dataclass(frozen=True, slots=True)
class TranslatedProgram:
    """Holds a program's query, with the policy that it asks for and the doubts about it.

    `sources` has the places of the streams' names, and `places` those of patterns that match sent events or wait for
    time.
    """

    query: a.Select
    policy: str
    warnings: tuple[Warning_, ...]
    sources: Mapping[str, Span]
    places: tuple[tuple[object, Span], ...]


def translate_program(text: str, policy: str | None = None) -> TranslatedProgram:
    """Return the query of a program, under a policy or else its own. Raises EleRefused."""
    program = read_program(text)
    return _Translation(program, policy or program.policy or "unrestricted").translate()


def translate_told(text: str) -> a.Select:
    """Return the query of a text that is a program, by which its events are explained: all that rules derive lies on
    the own stream. Raises EleRefused.
    """
    program, policy = split_header(text)
    with deep_stack():
        return _Translation(read_program(program), policy, told=True).translate().query


def query_text(program: str, policy: str | None = None) -> tuple[str, str]:
    """Return a program as a query's text, and its policy: the one that is given, else its own, else unrestricted.

    Raises EleRefused.
    """
    program = program.removeprefix("\ufeff")
    chosen = policy or read_program(program).policy or "unrestricted"
    return f"#!etalis {chosen}\n{program}", chosen


class _Translation:
    """Translates one program."""

    def __init__(self, program: Program, policy: str, *, told: bool = False) -> None:
        self._program, self._policy, self._told = program, policy, told
        program.streams = program.streams or {a.DEFAULT_STREAM: None}
        self._streams = tuple(program.streams)
        knowledge = close_static_rules(program)
        self._static = {*knowledge.rows, *knowledge.statics.conditions, *knowledge.statics.demanded}
        demand_conditions(program, knowledge.statics)
        self._conditions = Conditions(program, knowledge)
        heads = frozenset(_indicator(predicate_atom(head, program)) for rule in program.rules for head in (rule.head, *_list_inner_heads(rule.body)))
        self._patterns = Patterns(program, self._conditions, policy, heads)
        self._own: list[Event] = []  # the events that are read from the program's own stream
        self._reports: dict[Event, list[a.Pattern]] = {}  # the solutions of rules whose events no rule reads
        self._calls: dict[Event, list[tuple[Event, str]]] = {}  # what each head reads, and through what

    def translate(self) -> TranslatedProgram:
        derived: list[_Derived] = []
        pending = list(self._program.rules)
        heads: dict[Event, None] = {}
        while pending:
            rule = pending.pop(0)
            rule = replace_fields(rule, head=predicate_atom(rule.head, self._program))
            heads[_indicator(rule.head)] = None
            derived.append(self._translate_rule(rule))
            pending += self._patterns.added
            self._patterns.added = []
        self._refuse_static_events(heads)
        self._refuse_cycles()
        sought = {event for calls in self._calls.values() for event, through in calls if through == "fnot"}
        selected, into = self._select_events(heads), self._program.into
        written = [event for event in selected if event in heads] if into is not None else []
        read = [event for event in self._patterns.read if event in heads or event in sought]
        self._own = [event for event in dict.fromkeys((*read, *(heads if self._told else written))) if not is_iri(event[0])]
        rules = [input_rule(name, arity, self._streams) for name, arity in self._own if (name, arity) not in self._program.hidden]
        for head, parts, pattern, label in derived:
            if is_iri(head[0]) or head in self._own:
                rules.append(event_rule(head[0], parts, pattern, self._streams, label, marked=head in written))
            else:
                self._reports.setdefault(head, []).append(reported_solutions(head[0], parts, pattern))
        if into is not None:
            if not written:
                message = f"no trigger chooses an event that rules derive, so nothing is written to the stream {into}"
                self._program.warnings.append(Warning_("nothing-written", message))
            rules += [written_rule(name, arity, self._streams, into) for name, arity in written] or [no_rule(self._streams, into)]
        patterns = self._report_events(heads, selected)
        arities = [arity for arity in range(MAX_ARGUMENTS + 1) if self._open_triggers(arity)]
        if arities:
            rules = [*prefix_rules(self._streams, max(arities)), *rules]
        widest = max((arity for _, arity in selected), default=0)
        shown = (EVENT, *([ARGUMENTS] if arities else []), *(Variable(f"a{k}") for k in range(1, widest + 1)))
        query = a.Select(join_union(patterns), shown, True, self._streams, rules=tuple(rules), program=True, into=into)
        warnings = tuple(dict.fromkeys((*self._program.warnings, *doubt_program(self._program, self._policy))))  # a pattern with calls stands twice
        sources = {stream: span for stream, span in self._program.streams.items() if span is not None}
        return TranslatedProgram(query, self._policy, warnings, sources, tuple(self._program.places))

    # ------------------------------------------------------------ rules
    def _translate_rule(self, rule: EventRule) -> _Derived:
        text, patterns = self._program.text, self._patterns
        if len(rule.head.args) > MAX_ARGUMENTS:
            refuse(f"{rule.head.indicator} has more than {MAX_ARGUMENTS} arguments", rule.head.span, text, "lists or structs of arguments")
        patterns.outside = frozenset(variables_of(rule.head)) | (frozenset(variables_of(rule.time)) if rule.time is not None else frozenset())
        before, patterns.strict = list(patterns.read), []
        patterns.read, patterns.parts = {}, 0
        found = patterns.translate(rule.body)
        self._note_calls(rule, list(patterns.read), patterns.strict)
        patterns.read = dict.fromkeys((*before, *patterns.read))
        if rule.window is not None:
            found = Translated(a.Within(found.pattern, rule.window), found.bound, found.partial)
        found = self._set_alarm(rule, found)
        if rule.alarm is not None:
            self._program.places.append((found.pattern, rule.head.span))
        return self._derive(rule, found)

    def _note_calls(self, rule: EventRule, read: list[Event], strict: list[tuple[Event, str]]) -> None:
        calls = self._calls.setdefault((rule.head.name, len(rule.head.args)), [])
        calls += [(event, "") for event in read]
        calls += strict

    def _set_alarm(self, rule: EventRule, found: Translated) -> Translated:
        if rule.alarm is None or rule.time is None:
            return found
        self._refuse_unbound(rule.time, found, "the alarm's time")
        if rule.alarm == "delay" and isinstance(rule.time, Num):
            delay = duration_of(self._program.text, rule.time)
            if delay == 0:
                return Translated(NOTHING, found.bound)
            return Translated(a.WithoutFor(found.pattern, NOTHING, delay), found.bound, found.partial)
        time = self._conditions.arithmetic(rule.time, {})
        after = a.Time(a.TimeFunction.END)
        instant = call("datime_plus_sec", after, time) if rule.alarm == "delay" else call("datime", time)
        variable = Variable(f"_:alarm#{self._conditions.knowledge.statics.fresh()}")
        found = self._conditions.bind(found, variable.name, instant)
        return Translated(a.Alarm(found.pattern, variable), found.bound, found.partial)

    def _derive(self, rule: EventRule, found: Translated) -> _Derived:
        parts: list[TermOrVariable] = []
        for argument in rule.head.args:
            self._refuse_unbound(argument, found, f"the head {rule.head.indicator}")
            if isinstance(argument, VariableTerm):
                parts.append(Variable(argument.name))
            elif is_expression(argument) or variables_of(argument):
                value = self._conditions.canonical if is_expression(argument) else self._conditions.value
                variable = Variable(f"_:head#{self._conditions.knowledge.statics.fresh()}")
                found = self._conditions.bind(found, variable.name, value(argument, {}))
                parts.append(variable)
            else:
                parts.append(ground_term(argument, self._program))
        return _indicator(rule.head), tuple(parts), found.pattern, rule.label or rule.head.indicator

    def _refuse_unbound(self, term: Term, found: Translated, where: str) -> None:
        for variable in list_variables(term):
            if variable.name not in found.bound:
                side = " in every alternative" if variable.name in found.partial else ""
                refuse(
                    f"variable {variable.name} in {where} is not bound{side}", variable.span, self._program.text, "a variable that the pattern binds"
                )

    # ------------------------------------------------------------ what a program may not do
    def _refuse_static_events(self, heads: Mapping[Event, None]) -> None:
        for name, arity in (*heads, *self._patterns.read):
            if (name, arity) in self._static:
                span = next((rule.head.span for rule in self._program.static if (rule.head.name, len(rule.head.args)) == (name, arity)), Span(0, 1))
                refuse(f"{name}/{arity} is static and an event", span, self._program.text, "two names")

    def _refuse_cycles(self) -> None:
        for head, calls in self._calls.items():
            for event, through in calls:
                if through and (way := self._find_way(event, head)) is not None:
                    rule = next((rule for rule in self._program.rules if (rule.head.name, len(rule.head.args)) == head), None)
                    shown = " <- ".join(f"{name}/{arity}" for name, arity in (head, *way))
                    span = Span(0, 1) if rule is None else rule.head.span
                    refuse(f"recursion through {through}: {shown}", span, self._program.text, "cnot, or rules without this cycle")

    def _find_way(self, start: Event, goal: Event) -> list[Event] | None:
        """Return a way from an event to another one, from each head to what it reads."""
        came: dict[Event, Event | None] = {start: None}
        pending = [start]
        while pending:
            here = pending.pop(0)
            if here == goal:
                way: list[Event] = [here]
                while (before := came[way[-1]]) is not None:
                    way.append(before)
                return way[::-1]
            for event, _ in self._calls.get(here, ()):
                if event not in came:
                    came[event] = here
                    pending.append(event)
        return None

    # ------------------------------------------------------------ what is reported
    def _list_known(self, heads: Mapping[Event, None]) -> list[Event]:
        """Return the events that the program names."""
        exact = [(t.name, t.arity) for t in self._program.triggers if t.name is not None and t.arity is not None]
        return list(dict.fromkeys((*heads, *self._patterns.read, *exact)))

    def _select_events(self, heads: Mapping[Event, None]) -> list[Event]:
        """Return the events that the program names and reports."""
        program = self._program
        defined = heads if program.reports_defined else {}
        known = [event for event in self._list_known(heads) if event not in program.hidden]
        return [event for event in known if event in defined or any(_selects(trigger, event) for trigger in program.triggers)]

    def _report_events(self, heads: Mapping[Event, None], selected: Iterable[Event]) -> list[a.Pattern]:
        """Return the patterns of all events that are reported."""
        patterns = [pattern for event in selected for pattern in self._reported(*event)]
        for arity in range(MAX_ARGUMENTS + 1):
            open_ones = self._open_triggers(arity)
            if open_ones:
                patterns.append(self._reported_others(arity, open_ones, [name for name, n in self._list_known(heads) if n == arity]))
        return patterns or [a.Extend(NOTHING, EVENT, a.Constant(iri_of("none")))]

    def _open_triggers(self, arity: int) -> list[Trigger]:
        """Return the triggers that may select predicates which no rule names."""
        return [t for t in self._program.triggers if (t.name is None or t.arity is None) and t.arity in (None, arity)]

    def _reported(self, name: str, arity: int) -> list[a.Pattern]:
        arguments = [Variable(f"a{k}") for k in range(1, arity + 1)]
        if is_iri(name):
            return [a.Extend(reported_triples(name, arguments, self._streams), EVENT, a.Constant(iri_of(name)))]
        if (name, arity) in self._own:
            return [a.Extend(own_pattern(name, arguments, Variable("_:node")), EVENT, a.Constant(iri_of(name)))]
        sent = sent_pattern(name, arguments, Variable("_:event"), self._streams)
        return [*self._reports.get((name, arity), ()), a.Extend(sent, EVENT, a.Constant(iri_of(name)))]

    def _reported_others(self, arity: int, triggers: Iterable[Trigger], known: list[str]) -> a.Pattern:
        """Return the pattern of events that no rule names, as the streams have them."""
        found, event = other_pattern(arity, self._streams), a.Var(EVENT)
        named = [trigger.name for trigger in triggers]
        if None not in named:
            found = a.Filter(a.In(event, tuple(a.Constant(iri_of(name)) for name in named if name is not None)), found)
        return a.Filter(a.Not(a.In(event, tuple(a.Constant(iri_of(name)) for name in known))), found) if known else found


def _selects(trigger: Trigger, event: Event) -> bool:
    return trigger.name in (None, event[0]) and trigger.arity in (None, event[1])


def _indicator(head: Struct) -> Event:
    return head.name, len(head.args)


def _list_inner_heads(term: Term) -> Iterator[Struct]:
    """Yield the heads of the rules inside a pattern."""
    if isinstance(term, Struct):
        if term.name == ":<-" and (head := as_struct(term.args[0])) is not None:
            yield head
        for part in term.args:
            yield from _list_inner_heads(part)


__all__ = ["TranslatedProgram", "query_text", "translate_program", "translate_told"]

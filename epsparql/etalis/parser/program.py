"""This module sorts the clauses of a program: event rules, static rules and facts, triggers, flags and properties."""

from dataclasses import field

from epsparql.deferred_methods import dataclass
from epsparql.errors import Span, Warning_
from epsparql.etalis.parser.keywords import OUTPUT, UNITS
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, ParsedClause, Struct, Term, VariableTerm, as_struct, list_variables, refuse
from epsparql.etalis.parser.vocabulary import OWN
from epsparql.ntriples import is_absolute_iri
from epsparql.solutions.policies import POLICIES, PolicyFault, read_policy
from epsparql.terms import RDF, XSD
from epsparql.trees import replace_fields

TRIGGERS = ("print_trigger", "external_trigger", "print_event")
ALARMS = ("exceptionAlarm", "exceptionAlarmAbsoluteDatime")
MAX_ARGUMENTS = 16
"""An event has at most so many arguments."""
_INSTEAD = {
    "module": "give the files together", "use_module": "give the files together",
    **dict.fromkeys(("ins_event_rule", "del_event_rule", "ins_static_rule", "del_static_rule", "ins_rules_from_file"),
    "change rules with PUT /queries"),
}  # fmt: skip
_PROPERTIES = {"event_rule_window", "window"}
_IGNORED_PROPERTIES = {"window_step", "ooo_window"}
_PREFIXES = {"rdf": RDF, "rdfs": "http://www.w3.org/2000/01/rdf-schema#", "xsd": XSD, "owl": "http://www.w3.org/2002/07/owl#"}


@dataclass(frozen=True, slots=True)
class EventRule:
    """Represents an event rule; `window` is in µs, and `alarm` is None, `delay` or `instant`, with the term that says
    it.
    """

    head: Struct
    body: Term
    span: Span
    label: str = ""
    window: int | None = None
    alarm: str | None = None
    time: Term | None = None


@dataclass(frozen=True, slots=True)
class StaticRule:
    """Represents a fact, or a Horn rule over facts."""

    head: Struct
    body: Term | None
    span: Span


@dataclass(frozen=True, slots=True)
class Trigger:
    """Selects predicates whose events are reported; None stands for any name or any arity."""

    name: str | None
    arity: int | None
    span: Span | None = None


@dataclass(slots=True)
class Program:
    """Holds a program's clauses by what they are."""

    text: str
    rules: list[EventRule] = field(default_factory=list)
    static: list[StaticRule] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)
    reports_defined: bool = False  # the heads of event rules are reported
    policy: str | None = None
    streams: dict[str, Span | None] = field(default_factory=dict)  # those that it reads, with the places of their names
    into: str | None = None  # the stream that derived events are written to
    prefixes: dict[str, str] = field(default_factory=lambda: dict(_PREFIXES))
    dynamic: set[tuple[str, int]] = field(default_factory=set)
    warnings: list[Warning_] = field(default_factory=list)
    hidden: set[tuple[str, int]] = field(default_factory=set)  # events of rules that the text does not have; nobody sends or sees them
    outputs: list[Span] = field(default_factory=list)  # the names of triggers and of into_stream, where they stand
    places: list[tuple[object, Span]] = field(default_factory=list)  # of the patterns that events match, and of what waits for time


def read_program(text: str) -> Program:
    """Return a program's clauses. Raises EleRefused."""
    from epsparql.etalis.parser.grammar import parse_clauses  # only processes that parse programs load pyparsing

    clauses, warnings = parse_clauses(text)
    program = Program(text, warnings=warnings)
    windows: list[tuple[Term, Term, Term]] = []
    for clause in clauses:
        _add_clause(program, clause, windows)
    for label, name, value in windows:
        _set_property(program, label, name, value)
    if not program.triggers and not program.reports_defined:
        program.reports_defined = True
        program.warnings.append(Warning_("no-trigger", "no trigger is given, so the heads of all event rules are reported"))
    return program


def _add_clause(program: Program, clause: ParsedClause, windows: list[tuple[Term, Term, Term]]) -> None:
    head = as_struct(clause.head)
    if clause.kind == "directive":
        _add_directive(program, clause)
        return
    assert head is not None
    if head.name in _INSTEAD:
        refuse(f"'{head.name}' is no part of the language: {_INSTEAD[head.name]}", head.span, program.text)
    if head.name in TRIGGERS and clause.kind != "fact":
        refuse("a trigger is no rule", head.span, program.text, "facts such as print_trigger(a/1)")
    if clause.kind == "event":
        program.rules.append(_make_rule(program, clause, head))
    elif clause.kind == "static" or not _is_command(program, head, windows):
        _check_fact(program, clause, head)
        program.static.append(StaticRule(head, clause.body, clause.span))


def _check_fact(program: Program, clause: ParsedClause, head: Struct) -> None:
    if clause.body is None:
        for variable in list_variables(head):
            refuse(f"the fact {head.indicator} has the variable {variable.name}", variable.span, program.text, "a fact without variables, or a rule")


def _add_directive(program: Program, clause: ParsedClause) -> None:
    goal = as_struct(clause.head)
    if goal is not None and goal.name == "dynamic":
        for each in _list_predicates(goal):
            name, arity = _predicate_of(program, each)
            if name is not None and arity is not None:
                program.dynamic.add((name, arity))
        return
    name = "this" if goal is None else goal.name
    refuse(f"the directive '{name}' calls Prolog", clause.head.span, program.text, "no directive but ':- dynamic'")


def _list_predicates(goal: Struct) -> list[Term]:
    found: list[Term] = []
    pending = list(goal.args)
    while pending:
        each = pending.pop()
        if isinstance(each, Struct) and each.name == ",":
            pending += each.args
        else:
            found.append(each)
    return found


# ---------------------------------------------------------------- rules
def _make_rule(program: Program, clause: ParsedClause, head: Struct) -> EventRule:
    assert clause.body is not None
    label, window = _read_label(program, clause.label)
    if head.name not in ALARMS:
        return EventRule(head, clause.body, clause.span, label, window)
    event = as_struct(head.args[0]) if len(head.args) == 2 else None
    if event is None:
        refuse(f"{head.name} without an event and a time", head.span, program.text, f"{head.name}(event, time)")
    return EventRule(event, clause.body, clause.span, label, window, "delay" if head.name == ALARMS[0] else "instant", head.args[1])


def _read_label(program: Program, label: Term | None) -> tuple[str, int | None]:
    """Return a rule's label and the window among its properties."""
    if label is None:
        return "", None
    if isinstance(label, Name) and not label.iri:
        return label.text, None
    if isinstance(label, Struct) and len(label.args) == 1 and isinstance(label.args[0], ListTerm) and label.args[0].tail is None:
        window = None
        for each in label.args[0].items:
            if not (isinstance(each, Struct) and each.name == "property" and len(each.args) == 2):
                refuse("a label has properties alone", each.span, program.text, "property(event_rule_window, seconds)")
            window = _read_property(program, each.args[0], each.args[1]) or window
        return label.name, window
    return refuse("this is no label", label.span, program.text, "a name, maybe with ([property(name, number)])")


def _read_property(program: Program, name: Term, value: Term) -> int | None:
    """Return the window that a property sets; None for a property that is ignored."""
    text = name.text if isinstance(name, Name) else ""
    if text in _PROPERTIES:
        return duration_of(program.text, value)
    if text not in _IGNORED_PROPERTIES:
        refuse("this property of a rule is not known", name.span, program.text, "event_rule_window or window")
    program.warnings.append(Warning_("ignored", f"the property {text} is ignored", name.span))
    return None


def _set_property(program: Program, label: Term, name: Term, value: Term) -> None:
    window = _read_property(program, name, value)
    named = [k for k, rule in enumerate(program.rules) if isinstance(label, Name) and rule.label == label.text]
    if not named:
        refuse("no rule has this label", label.span, program.text, "the label of an event rule")
    for k in named if window is not None else []:
        program.rules[k] = replace_fields(program.rules[k], window=window)


def duration_of(text: str, term: Term) -> int:
    """Return the microseconds of a number with its unit. Raises EleRefused."""
    if not isinstance(term, Num) or term.value < 0:
        refuse("this is no duration", term.span, text, "a number that is not negative, with a unit or in seconds")
    micros = term.value * UNITS[term.unit]
    if micros != micros.to_integral_value():
        refuse("a duration has at most six fraction digits of a second", term.span, text, "whole microseconds")
    return int(micros)


# ---------------------------------------------------------------- commands
def _is_command(program: Program, head: Struct, windows: list[tuple[Term, Term, Term]]) -> bool:
    """Return whether a clause is a command, which then has been carried out."""
    match head.name, len(head.args):
        case (("print_trigger" | "external_trigger" | "print_event"), 1):
            program.outputs.append(head.span)
            _add_trigger(program, head.args[0])
        case "set_etalis_flag", 2:
            _set_flag(program, head)
        case "event_rule_property", 3:
            windows.append((head.args[0], head.args[1], head.args[2]))
        case "prefix", 2:
            prefix, iri = head.args
            if not isinstance(prefix, Name) or not isinstance(iri, Name):
                refuse("prefix without a name and an IRI", head.span, program.text, "prefix(tr, 'http://example.org/')")
            if not is_absolute_iri(iri.text):
                refuse(f"'{iri.text[:60]}' is no absolute IRI", iri.span, program.text, "prefix(tr, 'http://example.org/')")
            program.prefixes[prefix.text] = iri.text
        case "from_stream", 1:
            program.streams.setdefault(_stream_name(program, head), head.args[0].span)
        case "into_stream", 1:
            name = _stream_name(program, head)
            if program.into not in (None, name):
                refuse(f"the program writes the stream '{program.into}' already", head.span, program.text, "one into_stream in a program")
            program.into = name
            program.outputs.append(head.span)
        case name, _ if name in OUTPUT:
            program.warnings.append(Warning_("ignored", f"the output {name} is ignored", head.span))
        case _:
            return False
    return True


def _stream_name(program: Program, head: Struct) -> str:
    name = head.args[0]
    if not isinstance(name, Name):
        refuse(f"{head.name} without a name", head.span, program.text, f"{head.name}('urn:my:stream')")
    if (whole := _whole_name(program, name)).startswith(OWN):
        refuse(f"the stream '{whole}' is a program's own", name.span, program.text, f"a name that does not begin with {OWN}")
    return whole


def _add_trigger(program: Program, term: Term) -> None:
    match term:
        case VariableTerm() | Name(text="all_events"):
            program.triggers.append(Trigger(None, None))
        case Name(text="all_defined_events"):
            program.reports_defined = True
        case Struct(name="/", args=(_, _)):
            program.triggers.append(Trigger(*_predicate_of(program, term), term.span))
        case Struct(args=(VariableTerm(),)):
            program.triggers.append(Trigger(term.name, None))
        case _:
            refuse("this is no trigger", term.span, program.text, "name/arity, such as a/1; _ stands for any")


def _predicate_of(program: Program, term: Term) -> tuple[str | None, int | None]:
    """Return the name and arity of `p/n`; None stands for `_`."""
    if isinstance(term, Struct) and term.name == "/" and len(term.args) == 2:
        name, arity = term.args
        known = isinstance(arity, VariableTerm) or (isinstance(arity, Num) and 0 <= arity.value <= MAX_ARGUMENTS and arity.value == int(arity.value))
        if isinstance(name, Name | VariableTerm) and known:
            return _predicate_name(program, name), int(arity.value) if isinstance(arity, Num) else None
    return refuse("this is no predicate", term.span, program.text, f"name/arity, with at most {MAX_ARGUMENTS} arguments")


def _predicate_name(program: Program, name: Name | VariableTerm) -> str | None:
    """Return the name of a predicate, with its prefix written out; None for any."""
    return None if isinstance(name, VariableTerm) else _whole_name(program, name)


def _whole_name(program: Program, name: Name) -> str:
    """Return a name, with its prefix written out. Raises EleRefused."""
    prefix, _, local = name.text.partition(":")
    if name.iri and prefix not in program.prefixes:
        refuse(f"the prefix {prefix} is not declared before", name.span, program.text, f"prefix({prefix}, 'http://...') before it is used here")
    return program.prefixes[prefix] + local if name.iri else name.text


def _set_flag(program: Program, head: Struct) -> None:
    flag, value = head.args
    if not isinstance(flag, Name) or flag.text != "event_consumption_policy":
        program.warnings.append(Warning_("ignored", "this flag is ignored", head.span))
        return
    policy = value.text if isinstance(value, Name) else ""
    try:
        program.policy = read_policy(policy)
    except PolicyFault:
        refuse(f"the policy {policy or 'given'} is not known", value.span, program.text, ", ".join(POLICIES))

"""This module finds names of a program that were probably misspelt: variables of a rule, and events that no rule derives
though another name or number of arguments is derived.
"""

from collections.abc import Iterator, Mapping

from epsparql.errors import Span, Warning_
from epsparql.etalis.parser.constants import predicate_atom
from epsparql.etalis.parser.program import EventRule, Program
from epsparql.etalis.parser.syntax import Struct, Term, as_struct, list_variables
from epsparql.etalis.parser.vocabulary import is_iri
from epsparql.lint.near_variables import find_slips

Event = tuple[str, int]


def find_near_variables(program: Program) -> Iterator[Warning_]:
    """Yield a doubt for each variable that stands once in a rule and resembles another one of the rule."""
    for rule in program.rules:
        places: dict[str, list[Span]] = {}
        for part in (rule.head, rule.body, rule.time):
            for variable in list_variables(part) if part is not None else ():
                if not variable.name.startswith("_"):
                    places.setdefault(variable.name, []).append(variable.span)
        for name, near in find_slips(places):
            yield Warning_("near-variable", f"{name} stands only here, so it equals nothing else; was {near} meant?", places[name][0])


def find_near_events(program: Program) -> Iterator[Warning_]:
    """Yield a doubt for each event that is read or reported, that no rule derives, and that resembles a derived one.

    A rule may read an event of its head's name with other arguments.
    """
    derived = {(atom.name, len(atom.args)) for rule in program.rules for atom in _list_heads(rule, program)}
    for rule in program.rules:
        own = {atom.name for atom in _list_heads(rule, program)}
        for atom in _list_atoms(rule.body, program):
            near = None if atom.name in own else _find_near((atom.name, len(atom.args)), derived)
            if near is not None:
                yield Warning_("near-event", f"no rule derives {atom.indicator}; was {near} meant?", atom.span)
    for trigger in program.triggers:
        if trigger.name is not None and trigger.arity is not None and trigger.span is not None:
            near = _find_near((trigger.name, trigger.arity), derived)
            if near is not None:
                message = f"no rule derives {trigger.name}/{trigger.arity}, so it is reported only if it is sent; was {near} meant?"
                yield Warning_("near-event", message, trigger.span)


def _find_near(event: Event, derived: set[Event]) -> str | None:
    """Return the indicator of the derived event that is nearest to one which is not derived; None where none is near."""
    if event in derived or is_iri(event[0]):
        return None
    name, arity = event
    for other, n in sorted(derived):
        places: Mapping[str, list[Span]] = {other: [Span(0, 0)] * 2, name: [Span(1, 1)]}
        if other == name or (n == arity and any(find_slips(places))):
            return f"{other}/{n}"
    return None


def _list_heads(rule: EventRule, program: Program) -> Iterator[Struct]:
    """Yield the heads of a rule and of the rules inside its pattern."""
    yield predicate_atom(rule.head, program)
    pending: list[Term] = [rule.body]
    while pending:
        match pending.pop():
            case Struct(":<-", (head, body)):
                atom = as_struct(head)
                if atom is not None:
                    yield predicate_atom(atom, program)
                pending.append(body)
            case Struct("aggregate", (_, inner, _, *_)):
                pending.append(inner)
            case Struct(name, parts) if name.startswith(":"):
                pending += parts
            case _:
                pass


def _list_atoms(body: Term, program: Program) -> Iterator[Struct]:
    """Yield the atoms that a pattern reads."""
    match body:
        case Struct(":where" | ":within" | ":ntimes", (inner, _)):
            yield from _list_atoms(inner, program)
        case Struct(":<-", (_, inner)):
            yield from _list_atoms(inner, program)
        case Struct("aggregate", (_, inner, _, *_)):
            yield from _list_atoms(inner, program)
        case Struct("prolog" | "datime", _):
            return
        case Struct(name, parts) if name.startswith(":"):
            for part in parts:
                yield from _list_atoms(part, program)
        case _:
            atom = as_struct(body)
            if atom is not None:
                yield predicate_atom(atom, program)

"""This module finds the operators of a program that keep events for ever."""

from collections.abc import Iterator

from epsparql.errors import Warning_
from epsparql.etalis.parser.aggregates import keeps_values
from epsparql.etalis.parser.program import Program
from epsparql.etalis.parser.syntax import Num, Struct, Term
from epsparql.etalis.statics.goals import variables_of
from epsparql.solutions.policies import is_recent

_KEEPS_BOTH = (":and", ":par", ":during")
"""These operators wait for either operand."""


def find_unbounded(program: Program, policy: str) -> Iterator[Warning_]:
    """Yield a doubt for each operator that keeps events and stands in no window.

    `recent` keeps one event of each key, and a pattern without variables has one key.
    """
    for rule in program.rules:
        for term in _list_unbounded(rule.body) if rule.window is None else ():
            if term.name == "aggregate":
                message = "aggregate keeps all values for ever: a window in it, rows(100) or range(1h), bounds that"
                yield Warning_("unbounded-state", message, term.span)
                continue
            name, keyed = term.name.removeprefix(":"), bool(set(variables_of(term.args[0])) & set(variables_of(term.args[1])))
            if is_recent(policy) and not keyed:
                continue
            side = "on both sides" if term.name in _KEEPS_BOTH else "on its left"
            message = f"{name} keeps the events {side} for ever: a window around it, such as (a {name} b).60, bounds that"
            yield Warning_("unbounded-state", message, term.span)


def _list_unbounded(term: Term) -> Iterator[Struct]:
    match term:
        case Struct(":within"):
            return
        case Struct(":where", (pattern, _)):
            yield from _list_unbounded(pattern)
        case Struct("aggregate", (_, pattern, _, *_)):
            yield from _list_unbounded(pattern)
            if keeps_values(term):
                yield term
        case Struct(name, args) if name.startswith(":"):
            if name in (":seq", ":forall_seq", *_KEEPS_BOTH) and not isinstance(args[0], Num):
                yield term
            for part in args:
                yield from _list_unbounded(part)

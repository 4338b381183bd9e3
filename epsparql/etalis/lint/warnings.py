"""This module lists the doubts about a program, in the order of its text."""

from epsparql.errors import Warning_
from epsparql.etalis.lint.conditions import find_contradictions
from epsparql.etalis.lint.durations import find_impossible
from epsparql.etalis.lint.names import find_near_events, find_near_variables
from epsparql.etalis.lint.state import find_unbounded
from epsparql.etalis.parser.program import Program
from epsparql.etalis.parser.syntax import Struct, Term


def doubt_program(program: Program, policy: str) -> list[Warning_]:
    """Return the doubts about a program that runs under a policy."""
    found = [
        *find_unbounded(program, policy),
        *find_impossible(program),
        *find_contradictions(program),
        *find_near_variables(program),
        *find_near_events(program),
    ]
    return [*_doubt_policy(program), *sorted(found, key=lambda warning: 0 if warning.span is None else warning.span.start)]


def _doubt_policy(program: Program) -> list[Warning_]:
    if program.policy is not None or not any(_has_seq(rule.body) for rule in program.rules):
        return []
    return [Warning_("no-policy", "no policy is set: it is unrestricted, where ETALIS's default is recent")]


def _has_seq(term: Term) -> bool:
    return isinstance(term, Struct) and (term.name == ":seq" or any(_has_seq(part) for part in term.args if isinstance(part, Struct)))

"""This module writes terms, goals and patterns as programs have them: what is read again is the same.

Goals have parentheses where Prolog's precedences ask for them, and patterns around each operator.
"""

import re

from epsparql.etalis.parser.keywords import GOALS
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, Str, Struct, Term, VariableTerm, join_goals

_NAMELESS = re.compile(r"_[0-9]*")
"""The parser numbers the variables that are written as `_`."""
_PLAIN, _LOCAL = re.compile(r"[a-z]\w*"), re.compile(r"[A-Za-z_]\w*")
_ARGUMENT, _LOOSEST, _NOT, _SIGNED = 999, 1200, 900, 200
"""The greatest precedences of an argument, of goals in parentheses, and of what stands behind `\\+` or a sign."""


def is_nameless(variable: VariableTerm) -> bool:
    """Return whether a variable is written as `_`."""
    return _NAMELESS.fullmatch(variable.name) is not None


def write_term(term: Term, most: int = _LOOSEST) -> str:
    """Write a term or goals; operators of a precedence above `most` get parentheses."""
    match term:
        case Name(text, _, iri):
            return _write_name(text, iri=iri)
        case VariableTerm(name):
            return "_" if is_nameless(term) else name
        case Num(value, unit):
            return f"{value:f}{unit}"
        case Str(text):
            return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '""'))
        case ListTerm(items, _, tail):
            rest = "" if tail is None else f"|{write_term(tail)}"
            return f"[{', '.join(write_term(item, _ARGUMENT) for item in items)}{rest}]"
        case Struct(name, (left, right)) if name in GOALS:
            own, most_left, most_right = GOALS[name]
            text = f"{write_term(left, most_left)}{', ' if name == ',' else f' {name} '}{write_term(right, most_right)}"
            return f"({text})" if own > most else text
        case Struct("\\+", (goal,)):
            return f"(\\+ {write_term(goal, _NOT)})" if most < _NOT else f"\\+ {write_term(goal, _NOT)}"
        case Struct("-" | "+" as sign, (inner,)):
            return f"({sign} {write_term(inner, _SIGNED)})" if most < _SIGNED else f"{sign} {write_term(inner, _SIGNED)}"
        case Struct(name, args):
            return f"{_write_name(name, iri=term.iri)}({', '.join(write_term(arg, _ARGUMENT) for arg in args)})"


def write_pattern(term: Term) -> str:
    """Write a pattern of events."""
    match term:
        case Struct(":where", (inner, goals)):
            return f"({write_pattern(inner)} where ({write_term(goals)}))"
        case Struct((":within" | ":ntimes") as name, (inner, amount)):
            return f"({write_pattern(inner)} {name[1:]} {write_term(amount)})"
        case Struct(":<-", (head, body)):
            return f"({write_term(head)} <- {write_pattern(body)})"
        case Struct(":star_times", (inner,)):
            return f"({write_pattern(inner)}) star_times"
        case Struct(":cnot", (Struct(":seq", (left, right)), absent)):
            return f"NOT({write_pattern(absent)}).[{write_pattern(left)}, {write_pattern(right)}]"
        case Struct(name, (left, right)) if name.startswith(":"):
            return f"({write_pattern(left)} {name[1:]} {write_pattern(right)})"
        case Struct("aggregate", (function, pattern, *rest)):
            return (
                f"aggregate({', '.join((write_term(function, _ARGUMENT), write_pattern(pattern), *(write_term(each, _ARGUMENT) for each in rest)))})"
            )
        case Struct("prolog", args):
            return f"prolog({write_term(join_goals(args, term.span))})"
        case _:
            return write_term(term)


def write_quoted(text: str) -> str:
    """Write a name in quotes."""
    return "'{}'".format(text.replace("\\", "\\\\").replace("'", "''"))


def _write_name(text: str, *, iri: bool) -> str:
    if iri:
        prefix, _, local = text.partition(":")
        return f"{prefix}:{local if _LOCAL.fullmatch(local) else write_quoted(local)}"
    return text if _PLAIN.fullmatch(text) else write_quoted(text)

"""This module finds the variables that a pattern of a program binds."""

from epsparql.etalis.parser.aggregates import read_aggregate
from epsparql.etalis.parser.program import Program
from epsparql.etalis.parser.syntax import Struct, Term, VariableTerm, list_variables
from epsparql.etalis.writer import is_nameless


def list_bound(program: Program, pattern: Term) -> list[str]:
    """Return the named variables that a pattern binds in each of its solutions, in the order of the text."""
    match pattern:
        case Struct(":where" | ":within" | ":ntimes" | ":cnot" | ":fnot", (inner, _)):
            return list_bound(program, inner)
        case Struct(":seq", (left, Struct(":star_times" | "prolog"))):
            return list_bound(program, left)
        case Struct(":<-", (head, _)):
            return list_bound(program, head)
        case Struct(":or", (left, right)):
            others = list_bound(program, right)
            return [name for name in list_bound(program, left) if name in others]
        case Struct("aggregate"):
            found = read_aggregate(pattern, program.text)
            return [*dict.fromkeys(each.name for each in (*found.keys, found.target) if isinstance(each, VariableTerm))]
        case Struct(name, (left, right)) if name.startswith(":"):
            return [*dict.fromkeys((*list_bound(program, left), *list_bound(program, right)))]
        case _:
            return [*dict.fromkeys(each.name for each in list_variables(pattern) if not is_nameless(each))]

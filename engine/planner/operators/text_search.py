"""This module finds the condition by which instances are found in a text, such as CONTAINS(?text, ?word).

The text is a variable or an expression of the pattern, as LCASE(?text), and what is sought is a parameter or an
expression of one. CONTAINS, STRSTARTS and STRENDS are decided by the search. REGEX and LANGMATCHES are decided for the
instances that it finds.
"""

from collections.abc import Collection

from engine.dictionary import layout as c
from engine.pattern_scope import asks_identity, has_exists, looks_at_time, variables_of
from engine.physical_plan.plan import TextSearch
from engine.planner.builder.plan_builder import Conditions
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Literal, Variable

_DECIDING = {"CONTAINS": c.ANYWHERE, "STRSTARTS": c.TEXT_START, "STRENDS": c.TEXT_END}


@dataclass(frozen=True, slots=True)
class TextCondition:
    """Holds a condition, and the search that finds its instances in a text. If it `decides`, it finds no others."""

    condition: a.Expression
    text: a.Expression
    search: TextSearch
    decides: bool


def find_search(conditions: Conditions, certain: Collection[Variable], free: Collection[Variable]) -> TextCondition | None:
    """Return the first condition that a search decides, else the first by which one finds instances, if any.

    `certain` are the variables that a solution of the pattern has; `free` are the parameters that it may not have.
    """
    found = [each for each in map(_read_condition, conditions) if each is not None and _is_apart(each, certain, free)]
    return min(found, key=lambda each: not each.decides, default=None)


def _read_condition(condition: a.Expression) -> TextCondition | None:
    match condition:
        case a.Call(function, (text, sought)) if function in _DECIDING:
            return _search(condition, text, sought, sought, _DECIDING[function])
        case a.Call("REGEX", (text, sought)):
            return _search(condition, text, sought, sought, c.ANYWHERE, "")
        case a.Call("REGEX", (text, sought, a.Constant(Literal(flags)))):
            return _search(condition, text, sought, sought, c.ANYWHERE, flags)
        case a.Call("LANGMATCHES", (text, sought)):
            every = a.Compare(a.Comparison.EQUAL, sought, a.Constant(Literal("*")))
            beginning = a.If(every, a.Constant(Literal("")), a.Call("LCASE", (sought,)))
            return _search(condition, a.Call("LCASE", (text,)), sought, beginning, c.TEXT_START)
        case _:
            return None


def _search(
    condition: a.Expression, text: a.Expression, of: a.Expression, sought: a.Expression, mode: int, flags: str | None = None
) -> TextCondition | None:
    """Return the search for what one variable of an expression gives; None if it has several."""
    if len(parameters := variables_of(of)) != 1 or asks_identity(of) or has_exists(of) or looks_at_time(of):
        return None
    (parameter,), decides = parameters, isinstance(condition, a.Call) and condition.function in _DECIDING
    return TextCondition(condition, text, TextSearch(parameter, sought, mode, flags), decides)


def _is_apart(found: TextCondition, certain: Collection[Variable], free: Collection[Variable]) -> bool:
    """Return whether the text is the pattern's, and what is sought is a parameter that the pattern does not bind."""
    text, looks = found.text, variables_of(found.text)
    is_certain = bool(looks) and looks <= frozenset(certain) and not (asks_identity(text) or has_exists(text) or looks_at_time(text))
    return is_certain and found.search.parameter in free

"""This module builds the terms and clauses of a program from what its productions found."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from epsparql.errors import Span, Warning_
from epsparql.etalis.parser.faults import TERM, unexpected_operator
from epsparql.etalis.parser.keywords import AMOUNTS, CONDITIONS, EVENTS, GOALS, MOST_OPERATORS, OUTPUT, SYNONYMS
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, ParsedClause, Struct, Term, VariableTerm, as_struct, join_goals, list_conjuncts, refuse
from epsparql.etalis.parser.terminals import ProgramText, refuse_operators, span_after
from epsparql.parser.elements import QueryText, Sign
from epsparql.trees import replace_fields

LOOSEST = 1200
Found = Sequence[Any]


# ---------------------------------------------------------------- terms
def build_compound(source: QueryText, found: Found) -> Term:
    """Return an atom with arguments; without any it is a name."""
    name, args = found[0], _list_terms(found[1:])
    return Struct(name.text, args, name.span, name.iri) if args else cast(Name, name)


def build_list(source: QueryText, found: Found) -> ListTerm:
    """Return `[items]` or `[items|Tail]`; a tail that is a list is written out."""
    bar = next((k for k, part in enumerate(found) if isinstance(part, Sign) and part.value == "|"), None)
    if bar is None:
        return ListTerm(_list_terms(found[1:]), found[0].span)
    items, tail = _list_terms(found[1:bar]), found[bar + 1]
    match tail:
        case VariableTerm():
            return ListTerm(items, found[0].span, tail)
        case ListTerm():
            return ListTerm((*items, *tail.items), found[0].span, tail.tail)
    return refuse("the tail of a list is no list", tail.span, source.text, "a variable, or a list")


def _list_terms(found: Found) -> tuple[Term, ...]:
    return found[0] if isinstance(found[0], tuple) else tuple(part for part in found if not isinstance(part, Sign))


def take_inner(source: QueryText, found: Found) -> object:
    return found[1]


def fold_goals(source: QueryText, found: Found) -> Term:
    """Return the term of operands with operators between them, by Prolog's precedences.

    Raises EleRefused for operators that cannot stand together.
    """
    if len(found) == 1:
        return cast(Term, found[0])
    whole, at = _climb_goals(source, found, 0, LOOSEST)
    if at < len(found):
        raise unexpected_operator(source, found[at].span)
    return whole


def _climb_goals(source: QueryText, found: Found, at: int, most: int) -> tuple[Term, int]:
    """Return the term that begins at an index, of operators up to a precedence, and the index after it."""
    left, level, at = _take_operand(source, found, at, most)
    operators = 0
    while at < len(found):
        sign = found[at]
        own, most_left, most_right = (1000, LOOSEST, 0) if sign.value == "!" else GOALS[sign.value]
        if own > most or level > most_left:
            break
        operators += 1
        if operators > MOST_OPERATORS:
            refuse_operators(source, sign.span)
        if sign.value == "!":
            left, level, at = Struct(",", (left, Name("!", sign.span)), sign.span), own, at + 1
            continue
        right, at = _climb_goals(source, found, at + 1, most_right)
        left, level = Struct(sign.value, (left, right), sign.span), own
    return left, at


def _take_operand(source: QueryText, found: Found, at: int, most: int) -> tuple[Term, int, int]:
    """Return an operand with the operators before it, its precedence, and the index after it."""
    sign = found[at]
    if not isinstance(sign, Sign):
        return sign, 0, at + 1
    match sign.value:
        case "\\+":
            if most < 900:
                raise unexpected_operator(source, sign.span, TERM)
            inner, at = _climb_goals(source, found, at + 1, 900)
            return Struct("\\+", (inner,), sign.span), 900, at
        case "dynamic":
            inner, at = _climb_goals(source, found, at + 1, 1000)
            return Struct("dynamic", (inner,), sign.span), 1150, at
        case "!":
            inner, at = _climb_goals(source, found, at + 1, 1000)
            return Struct(",", (Name("!", sign.span), inner), span_after(source, sign.span.end)), 1000, at
    inner, at = _climb_goals(source, found, at + 1, 200)
    if isinstance(inner, Num) and sign.value == "-":
        return Num(-inner.value, inner.unit, Span(sign.span.start, inner.span.end)), 0, at
    return Struct(sign.value, (inner,), sign.span), 200, at


def warn_of_cut(where: str, place_after: bool) -> Callable[[QueryText, str, Span], Sign]:
    """Return what builds a cut that lacks a comma, with the warning."""

    def build(source: QueryText, value: str, span: Span) -> Sign:
        assert isinstance(source, ProgramText)
        source.warn("misprint", f"a comma is missing {where} '!'", span_after(source, span.end) if place_after else span)
        return Sign("!", span)

    return build


def warn_of_comma(source: QueryText, value: str, span: Span) -> Sign:
    """Build the comma that is missing between two goals."""
    assert isinstance(source, ProgramText)
    source.warn("misprint", "a comma is missing between two goals", span_after(source, span.start))
    return Sign(",", span)


# ---------------------------------------------------------------- patterns
def fold_pattern(source: QueryText, found: Found) -> Term:
    """Return the term of events with operators between them, which associate to the left."""
    return cast(Term, found[0]) if len(found) == 1 else _climb_pattern(source, found, 0, LOOSEST)[0]


def _climb_pattern(source: QueryText, found: Found, at: int, most: int) -> tuple[Term, int]:
    left, at = found[at], at + 1
    while at < len(found) and found[at].value == "star_times":
        left, at = Struct(":star_times", (left,), found[at].span), at + 1
    operators = 0
    while at < len(found) and EVENTS[found[at].value] <= most:
        sign = found[at]
        operators += 1
        if operators > MOST_OPERATORS:
            refuse_operators(source, sign.span, "rules for parts of the pattern")
        if sign.value in CONDITIONS:
            goals = found[at + 1] if isinstance(found[at + 1], tuple) else (found[at + 1],)
            left, at = Struct(":where", (left, join_goals(goals, sign.span)), sign.span), at + 2
        elif sign.value in AMOUNTS:
            left, at = Struct(f":{sign.value}", (left, found[at + 1]), sign.span), at + 2
        else:
            right, at = _climb_pattern(source, found, at + 1, EVENTS[sign.value] - 1)
            left = Struct(f":{SYNONYMS.get(sign.value, sign.value)}", (left, right), sign.span)
    return left, at


def build_braces(source: QueryText, found: Found) -> tuple[Term, ...]:
    return tuple(part for part in found if not isinstance(part, Sign))


def build_parenthesis(source: QueryText, found: Found) -> Term:
    """Return `(P)`, `(s <- P)` or `(P).5`."""
    whole = found[1]
    if found[2].value in ("<-", "←"):
        whole = Struct(":<-", (whole, found[3]), found[2].span)
    return Struct(":within", (whole, found[-1]), found[-1].span) if isinstance(found[-1], Num) else whole


def build_not(source: QueryText, found: Found) -> Term:
    """Return NOT(C).[A, B]."""
    absent, left, right = (part for part in found if not isinstance(part, Sign))
    return Struct(":cnot", (Struct(":seq", (left, right), found[0].span), absent), found[0].span)


def build_aggregate(source: QueryText, found: Found) -> Struct:
    """Return aggregate(F, P, V) with its options."""
    return Struct("aggregate", _list_terms(found[1:]), found[0].span)


# ---------------------------------------------------------------- clauses
def check_head(source: QueryText, found: Found) -> Term:
    head: Term = found[0]
    if not isinstance(head, Name | Struct):
        refuse("a clause begins with an atom", head.span, source.text, "a name, with or without arguments")
    return head


def build_actions(source: QueryText, found: Found) -> Sign:
    """Check the goals of `do`: only output is allowed, and ignored."""
    assert isinstance(source, ProgramText)
    for goal in list_conjuncts(found[1]):
        atom = as_struct(goal)
        if atom is None or atom.name not in OUTPUT:
            name = "this" if atom is None else atom.name
            refuse(f"actions are not run; subscribe to the events instead: {name}", goal.span, source.text, "a rule without 'do'")
    source.warn("ignored", "output is not written; what follows 'do' is ignored", found[0].span)
    return cast(Sign, found[0])


def build_rule(source: str, at: int, found: Found) -> ParsedClause:
    """Return the fact or rule at a place: a head, and maybe an arrow and a body, beside actions; or a label and a rule."""
    head, *rest = (part for part in found if not (isinstance(part, Sign) and part.value == "do"))
    if not rest:
        return ParsedClause("fact", head, None, span_after(source, at))
    arrow, body = rest
    if isinstance(body, ParsedClause):
        return replace_fields(body, label=head)
    return ParsedClause("static" if arrow.value == "neck" else "event", head, body, span_after(source, at))


def build_directive(source: QueryText, found: Found) -> ParsedClause:
    return ParsedClause("directive", found[1], None, found[0].span)


def build_program(source: QueryText, found: Found) -> tuple[list[ParsedClause], list[Warning_]]:
    """Return the clauses, and the warnings in the order of their places."""
    assert isinstance(source, ProgramText)
    return [part for part in found if isinstance(part, ParsedClause)], [source.warnings[at] for at in sorted(source.warnings)]

"""This module answers the kernel's questions; answers are exact, and functions of the arguments alone."""

import hashlib
from collections.abc import Sequence

from engine.dictionary.term_dictionary import TermTable
from engine.expressions.evaluator import ExpressionError, evaluate, truth
from engine.expressions.nondeterministic import Identity
from engine.kernel.state import layout as c
from engine.physical_plan.plan import Inquiry
from epsparql.terms import BlankNode, Term, Variable


def answer(inquiry: Inquiry, arguments: Sequence[int], terms: TermTable, name: str, now: int) -> int:
    """Return a verdict (TRUE or FALSE; an error is FALSE) or the number of a term (UNBOUND for an error).

    `arguments` start with the numbers of the inquiry's variables' terms, then start and end if it is timed. `name` is the query's; `now` is the
    instant at which the question is asked, where a timeless solution stands.
    """
    n = len(inquiry.variables)
    bound = dict(zip(inquiry.variables, arguments[:n], strict=True))
    start, end = (arguments[n], arguments[n + 1]) if inquiry.timed else (None, None)
    if start is not None and end is not None and start > end:
        start = end = None  # timeless

    def lookup(variable: Variable) -> Term | None:
        return terms.term(bound.get(variable, c.UNBOUND))

    if inquiry.fresh is not None:
        return terms.intern(str(fresh_node(inquiry.fresh, name, [terms.text(k) for k in bound.values()], start, end)))
    identity = None
    if inquiry.site or (inquiry.timed and end is None):
        identity = Identity(name, inquiry.site, (*(terms.text(bound[v]) for v in inquiry.solution), str(start), str(end)), now)
    try:
        if inquiry.condition is not None:
            return c.TRUE if truth(inquiry.condition, lookup, start, end, identity) else c.FALSE
        assert inquiry.expression is not None
        return terms.intern(str(evaluate(inquiry.expression, lookup, start, end, identity)))
    except (ExpressionError, ValueError, ArithmeticError, RecursionError):  # what a library makes of an odd term is SPARQL's error as well
        return c.UNBOUND if inquiry.condition is None else c.FALSE


def fresh_node(label: str, name: str, solution: Sequence[str], start: int | None, end: int | None) -> BlankNode:
    """Return a template's blank node, a function of rule, solution and label (semantics.md section 6)."""
    whole = "\x00".join([name, label, str(start), str(end), *solution])
    return BlankNode(f"c{hashlib.sha256(whole.encode()).hexdigest()[:24]}")

"""WHILE becomes code that compiled functions follow for each element (engine/native/source/aggregation/runs/links.c).

A part that the code has no operation for is evaluated beforehand for all elements, if nothing in it depends on the run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from engine.aggregation.arguments import Argument
from engine.aggregation.row_batch import Ints
from engine.aggregation.runs import layout as r
from engine.dictionary.term_dictionary import LITERAL, TermTable
from engine.expressions.literals import FALSE, TRUE
from engine.expressions.nondeterministic import Naming
from engine.kernel.state import layout as c
from engine.pattern_scope import asks_identity, list_subexpressions, variables_of
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Variable

assert (r.FALSE, r.TRUE, r.FAILED, r.UNSURE, r.LITERAL_KIND) == (c.FALSE, c.TRUE, c.ERROR, c.UNSURE, LITERAL)
assert (r.ULP, r.TINY, r.EXACT) == (c.ULP, c.TINY, c.EXACT)

_UNREAD = Variable("_:unread")
_MOST_PARTS = 48  # of a condition that becomes code; its stack holds r.DEPTH
_OPERATORS = {
    a.Comparison.EQUAL: r.EQUAL,
    a.Comparison.UNEQUAL: r.UNEQUAL,
    a.Comparison.LESS: r.LESS,
    a.Comparison.LESS_OR_EQUAL: r.LESS_OR_EQUAL,
    a.Comparison.GREATER: r.GREATER,
    a.Comparison.GREATER_OR_EQUAL: r.GREATER_OR_EQUAL,
    a.Operator.ADD: r.ADD,
    a.Operator.SUBTRACT: r.SUBTRACT,
    a.Operator.MULTIPLY: r.MULTIPLY,
}


@dataclass(frozen=True, slots=True, eq=False)
class LinkCode:
    """Holds the code of a condition (operations x 2), and what stands in the columns that it reads behind those of
    variables.
    """

    code: Ints
    constants: tuple[str, ...]
    verdicts: tuple[Argument, ...]

    def constants_of(self, terms: TermTable) -> Ints:
        """Return the numbers of the constants, then room for verdicts."""
        return np.array([*map(terms.intern, self.constants), *[0] * len(self.verdicts)], np.int64)

    def write_verdicts(self, row: Ints, times: Ints, chosen: Ints, terms: TermTable) -> None:
        """Write what the parts that are no code say of the `chosen` elements, whose starts, ends and instants are the
        columns of `times`.
        """
        true, false = terms.intern(str(TRUE)), terms.intern(str(FALSE))
        verdict_of = {true: r.TRUE, false: r.FALSE}
        for place, argument in enumerate(self.verdicts, row.shape[1] - len(self.verdicts)):
            for k in chosen.tolist():
                start, end, now = times[k].tolist()
                row[k, place] = verdict_of.get(argument.evaluate_row(row[k].tolist(), start, end, now, terms), r.FAILED)


def link_code(window: a.RunWindow, reads: Sequence[Variable], aggregates: Mapping[Variable, tuple[int, bool]], naming: Naming) -> LinkCode | None:
    """Return the code of WHILE; None if aggregates stand in it where there is no operation for them, or something
    that draws lots.

    Its columns are the values of PREV and then `reads`. `aggregates` are variables that stand for a set function, and
    say which and whether its mean.
    """
    previous, condition = [variable for variable, _ in window.previous], window.condition
    hidden = {*previous, *aggregates}  # the plan has columns for these, too
    columns = [*previous, *(_UNREAD if variable in hidden else variable for variable in reads)]
    compiler = _Compiler({variable: k for k, variable in enumerate(columns)}, tuple(columns), aggregates, naming)
    if condition is not None:
        short = len(list_subexpressions(condition)) <= _MOST_PARTS
        if asks_identity(condition) or not (compiler.compile_verdict(condition) if short else compiler.evaluate_first(condition)):
            return None
    return compiler.result()


@dataclass(slots=True)
class _Compiler:
    """Appends code part by part; each method says whether it could, and appends nothing if it could not."""

    places: Mapping[Variable, int]
    columns: tuple[Variable, ...]
    aggregates: Mapping[Variable, tuple[int, bool]]
    naming: Naming
    code: list[tuple[int, int]] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    verdicts: list[Argument] = field(default_factory=list)

    def result(self) -> LinkCode:
        """Return the code; the places of verdicts come after those of constants, of which all are known only now."""
        after = len(self.columns) + len(self.constants)
        code = [(op, place + after if op == r.VERDICT else place) for op, place in self.code]
        return LinkCode(np.array(code, np.int64).reshape(-1, 2), tuple(self.constants), tuple(self.verdicts))

    def compile_verdict(self, e: a.Expression) -> bool:
        match e:
            case a.And(left, right) | a.Or(left, right):
                if not (self.compile_verdict(left) and self.compile_verdict(right)):
                    return False
                self.code.append((r.AND if isinstance(e, a.And) else r.OR, 0))
                return True
            case a.Not(operand):
                if not self.compile_verdict(operand):
                    return False
                self.code.append((r.NOT, 0))
                return True
            case a.Compare(op, left, right):
                before = len(self.code)
                if self._compare(op, left, right):
                    return True
                del self.code[before:]
        return self.evaluate_first(e)

    def evaluate_first(self, e: a.Expression) -> bool:
        """Leave a part to the expression itself, unless it depends on the run."""
        if self.aggregates.keys() & variables_of(e):
            return False
        self.code.append((r.VERDICT, len(self.verdicts)))
        value = a.If(e, a.Constant(TRUE), a.Constant(FALSE))
        self.verdicts.append(Argument(value, self.columns, self.naming, f"WHILE {len(self.verdicts)}"))
        return True

    def _compare(self, op: a.Comparison, left: a.Expression, right: a.Expression) -> bool:
        """Compare two numbers.

        Equal are terms by what they are, unless both are literals with values: then by the numbers that they stand
        for.
        """
        equality = op in (a.Comparison.EQUAL, a.Comparison.UNEQUAL)
        places = [self._find_column(each) for each in (left, right)]
        if equality and None not in places:
            self.code += [*((r.IDENTITY, place) for place in places if place is not None), (r.SAME, 0)]
            self.code += [(r.NOT, 0)] if op is a.Comparison.UNEQUAL else []
        if not (self._push_number(left) and self._push_number(right)):
            return False
        self.code.append((_OPERATORS[op], 0))
        if equality and None not in places:
            self.code.append((r.ELSE, 0))
        return True

    def _push_number(self, e: a.Expression) -> bool:
        match e:
            case a.Var(variable) if variable in self.aggregates:
                place, mean = self.aggregates[variable]
                self.code.append((r.MEAN if mean else r.GROWN, place))
                return True
            case a.Arithmetic(op, left, right) if op in _OPERATORS and self._push_number(left) and self._push_number(right):
                self.code.append((_OPERATORS[op], 0))
                return True
        place_ = self._find_column(e)
        if place_ is not None:
            self.code.append((r.NUMBER, place_))
        return place_ is not None

    def _find_column(self, e: a.Expression) -> int | None:
        """Return the column of a variable or a constant."""
        match e:
            case a.Var(variable):
                return self.places.get(variable)
            case a.Constant(term):
                text = str(term)
                if text not in self.constants:
                    self.constants.append(text)
                return len(self.columns) + self.constants.index(text)
            case _:
                return None

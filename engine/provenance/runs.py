"""This module derives reports of runs and sessions: which elements of a group each run has, and when it reports
(semantics.md section 13).
"""

from collections.abc import Callable, Iterator, Sequence

from engine.aggregation.set_functions import folding
from engine.aggregation.term_values import TermValues
from engine.aggregation.window_contents import Ever
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.evaluator import truth
from engine.kernel.state import layout as c
from engine.messages import Micros
from engine.provenance.model import Proof
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term

ValueOf = Callable[[a.Expression, Proof], Term | None]


@dataclass(frozen=True, slots=True)
class RunReports:
    """The runs of one group.

    `absent` are the solutions of UNTIL that agree with its key; `asked` is the instant up to which it is reported.
    """

    window: a.RunWindow
    absent: Sequence[Proof]
    value_of: ValueOf
    t0: Micros
    asked: Micros

    def list_reports(self, elements: Sequence[Proof]) -> Iterator[tuple[list[Proof], Micros]]:
        """Yield the elements of each report with its instant; `elements` are those of the group, in order."""
        runs = self._list_runs(elements)
        for k, run in enumerate(runs):
            if self.window.report is a.RunReport.EACH:
                for instant in sorted({self._end(x) for x in run}):
                    yield [x for x in run if self._end(x) <= instant], instant
            else:
                following = [self._end(other[0]) for other in runs[k + 1 : k + 2]]
                yield run, min([*following, *self._ends(run)])

    def _list_runs(self, elements: Sequence[Proof]) -> list[list[Proof]]:
        worth, growing = TermValues(), folding([aggregate for _, aggregate in self.window.aggregates])
        worth.over(TermTable())
        runs: list[list[Proof]] = []
        held, least = Ever(growing), c.BIG
        for y in elements:
            values = [1 if one.argument is None else self._number(one.argument, y, worth.terms) for one in growing.held]
            grown = held.copied()
            grown.add(0, 0, values, worth)
            if runs and self._links(runs[-1][-1], y, min(least, self._start(y)), [worth.terms.term(k) for k in grown.results(worth)]):
                runs[-1].append(y)
                held, least = grown, min(least, self._start(y))
            else:
                runs.append([y])
                held, least = Ever(growing), self._start(y)
                held.add(0, 0, values, worth)
        return runs

    def _number(self, expression: a.Expression, x: Proof, terms: TermTable) -> int:
        term = self.value_of(expression, x)
        return c.UNBOUND if term is None else terms.intern(str(term))

    def _links(self, x: Proof, y: Proof, least: Micros, totals: Sequence[Term | None]) -> bool:
        window = self.window
        if window.condition is not None:
            known = {variable: self.value_of(value, x) for variable, value in window.previous}
            known |= {variable: total for (variable, _), total in zip(window.aggregates, totals, strict=True)}
            if truth(window.condition, lambda v: known[v] if v in known else y.lookup(v), y.start, y.end) is not True:
                return False
        if window.gap is not None and self._end(y) - self._end(x) > window.gap:
            return False
        if window.within is not None and self._end(y) - least > window.within:
            return False
        return not any(z.start is None or z.end is None or self._end(x) < z.start <= z.end < self._end(y) for z in self.absent)

    def _ends(self, run: Sequence[Proof]) -> Iterator[Micros]:
        """Yield the instants that end a run by themselves; a run without deadline may end with the streams, at the
        instant that is asked for.
        """
        end, gap, within = self._end(run[-1]), self.window.gap, self.window.within
        deadlines = [] if gap is None else [end + gap]
        if within is not None:
            deadlines.append(max(end, min(map(self._start, run)) + within))
        yield min(deadlines, default=self.asked)
        yield from (z.end for z in self.absent if z.start is not None and z.end is not None and end < z.start)

    def _start(self, x: Proof) -> Micros:
        return self.t0 if x.start is None else x.start

    def _end(self, x: Proof) -> Micros:
        return self.t0 if x.end is None else x.end

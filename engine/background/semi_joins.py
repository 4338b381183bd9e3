"""Semi-joins narrow the background to the rows that one query can use, before it is planned.

The law: patterns that are joined agree on their common variables. So a row is in no solution if its term for such a
variable is in no row of another pattern. The narrowed rows give the same solutions, and tables are made of these rows
alone.

1. The patterns that all solutions of a group join are taken together, the one with the fewest rows first.
2. Its terms bound the next pattern, whose rows are found by an index.
3. OPTIONAL, MINUS and EXISTS get the terms of the variables that their left sides certainly bind; UNION,
   sub-SELECTs and groups those of the variables that they show.

Source: M. Yannakakis, Algorithms for Acyclic Database Schemes, VLDB 1981.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from engine.background.fact_store import NOTHING, OBJECT, SUBJECT, FactIndex, parts_of
from engine.background.path_walks import WalkTooLong, list_links, walk_path
from engine.pattern_scope import ANY_TRIPLE, Variables, find_scope, list_subexpressions
from engine.triples.relation import distinct
from engine.triples.row_index import is_among
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import Term, TermOrVariable, Variable
from epsparql.trees import walk_nodes

Ints = NDArray[np.int64]
Terms = dict[Variable, Ints]
"""The sorted terms that a variable can have, where they are few."""
Asked = tuple[a.TriplePattern, a.Place]
Link = tuple[TermOrVariable, a.Place]
FEW = 1 << 15
"""The terms of at most this many rows bound other patterns."""
WORTHWHILE = 4
"""A pattern with more rows is narrowed if so many times fewer are left."""
LEAST_CUT, GROWTH = 1 << 10, 8
"""So many rows make the first part of a background that is cut, and each part has so many times those of the one before."""


def narrow_background(known: FactIndex, pattern: a.Pattern) -> FactIndex:
    """Return the background as far as a query with this pattern, which has been rewritten, can use it."""
    narrowing = _Narrowing(known)
    narrowing.narrow_group(pattern, {})
    return narrowing.narrow_known(pattern)


def cut_background(known: FactIndex, pattern: a.Pattern) -> Iterator[FactIndex]:
    """Yield backgrounds that together give the solutions of a query with this pattern, each solution in one of them.

    The first ones are small: a query that wants few solutions may have them there.
    """
    whole = _Narrowing(known)
    whole.narrow_group(pattern, {})
    narrowed, largest = whole.narrow_known(pattern), whole.find_largest(pattern)
    if largest is None:
        yield narrowed
        return
    for rows in _cut_rows(known, *largest):
        narrowing = _Narrowing(known, cut=(largest, rows))
        narrowing.narrow_group(pattern, {})
        yield narrowing.narrow_known(pattern)


def _cut_rows(known: FactIndex, triple: a.TriplePattern, place: a.Place) -> Iterator[Ints]:
    """Yield the rows of a pattern in parts that grow."""
    pending, size = NOTHING, LEAST_CUT
    for part in known.match_in_pieces(triple, place):
        pending = np.concatenate([pending, part]) if len(pending) else part
        while len(pending) >= size:
            yield pending[:size]
            pending, size = pending[size:], GROWTH * size
    if len(pending):
        yield pending


@dataclass(frozen=True, slots=True)
class _Dependent:
    """Represents a pattern that is looked for from solutions which certainly bind `visible`."""

    pattern: a.Pattern
    visible: Variables


_Part = Asked | a.Path | a.Values | a.Union | a.Group | a.SubSelect


class _Parts:
    """Holds the parts of a group that are yet to be narrowed, with estimates of their rows."""

    def __init__(self, parts: Sequence[_Part], estimate: Callable[[_Part], int]) -> None:
        self._estimate = estimate
        self._parts = [(estimate(part), k, part) for k, part in enumerate(parts)]

    def __bool__(self) -> bool:
        return bool(self._parts)

    def take_least(self) -> _Part:
        least = min(self._parts, key=lambda each: each[:2])
        self._parts.remove(least)
        return least[2]

    def estimate_again(self, changed: Set[Variable]) -> None:
        """Estimate the parts anew that have one of these variables."""
        self._parts = [(n if changed.isdisjoint(_variables_of(part)) else self._estimate(part), k, part) for n, k, part in self._parts]


@dataclass(slots=True)
class _Narrowing:
    known: FactIndex
    rows: dict[Asked, list[Ints]] = field(default_factory=dict)  # an array for each place where the pattern stands
    walks: dict[Link, list[Ints]] = field(default_factory=dict)  # an array for each path that takes steps by the link
    cut: tuple[Asked, Ints] | None = None  # a pattern of the outermost group, and those of its rows that are wanted
    outermost: dict[Asked, int] | None = None  # the patterns of the outermost group, with their numbers of rows

    def narrow_known(self, pattern: a.Pattern) -> FactIndex:
        """Return the narrowed background. A pattern that also stands where it was not narrowed keeps all rows."""
        standing, links = _count_places(pattern)
        rows = {
            (triple, place): distinct(np.concatenate(found))
            for (triple, place), found in self.rows.items()
            if len(found) == standing[triple, place] and (triple.predicate, place) not in links
        }
        walks = {link: distinct(np.concatenate(found)) for link, found in self.walks.items() if len(found) == links[link]}
        return self.known.narrowed(rows, walks)

    def find_largest(self, pattern: a.Pattern) -> Asked | None:
        """Return the pattern of the outermost group with most rows, if these are many and it stands nowhere else."""
        standing, links = _count_places(pattern)
        sizes = {
            (triple, place): n
            for (triple, place), n in (self.outermost or {}).items()
            if n > LEAST_CUT and standing[triple, place] == 1 and (triple.predicate, place) not in links
        }
        return max(sizes, key=lambda asked: sizes[asked], default=None)

    # ------------------------------------------------------------ groups
    def narrow_group(self, pattern: a.Pattern, outer: Mapping[Variable, Ints]) -> Terms:
        """Narrow the patterns of a group to solutions with the outer terms; return the terms of variables that it
        certainly binds.
        """
        parts, dependents = list[_Part](), list[_Dependent]()
        terms, bound = dict(outer), set[Variable]()
        self._flatten(pattern, parts, dependents, terms)
        if self.outermost is None:
            self.outermost = {part: 0 for part in parts if isinstance(part, tuple)}
        pending = _Parts(parts, lambda part: self._estimate(part, terms))
        while pending:
            changed = set[Variable]()
            for variable, found in self._narrow_part(pending.take_least(), terms).items():
                bound.add(variable)
                before = terms.get(variable)
                terms[variable] = found if before is None else before[is_among(before, found)]
                if before is None or 2 * len(terms[variable]) <= len(before):
                    changed.add(variable)
            pending.estimate_again(changed)
        for dependent in dependents:
            self.narrow_group(dependent.pattern, {v: terms[v] for v in dependent.visible if v in terms})
        return {v: terms[v] for v in bound}

    def _flatten(self, pattern: a.Pattern, parts: list[_Part], dependents: list[_Dependent], terms: Terms) -> None:
        """Collect what all solutions of a pattern join, and what is looked for from them."""
        match pattern:
            case a.Bgp(triples, place):
                parts += [(triple, place) for triple in triples]
            case a.Join(left, right):
                self._flatten(left, parts, dependents, terms)
                self._flatten(right, parts, dependents, terms)
            case a.Filter(expression, inner):
                self._flatten(inner, parts, dependents, terms)
                dependents += _list_exists(expression, inner)
            case a.Extend(inner, variable, expression):
                self._flatten(inner, parts, dependents, terms)
                dependents += _list_exists(expression, inner)
                if isinstance(expression, a.Constant):
                    parts.append(a.Values((variable,), ((expression.term,),)))
            case a.LeftJoin(left, right, condition):
                self._flatten(left, parts, dependents, terms)
                dependents.append(_Dependent(right, _find_certain(left)))
                dependents += [] if condition is None else _list_exists(condition, left)
            case a.Minus(left, right):
                self._flatten(left, parts, dependents, terms)
                dependents.append(_Dependent(right, _find_certain(left)))
            case a.Graph(_, inner) | a.SubSelect(inner, distinct=False, modifiers=a.PLAIN):
                self._flatten(inner, parts, dependents, terms)
            case a.Path() | a.Values() | a.Union() | a.Group() | a.SubSelect():
                parts.append(pattern)
            case _:
                pass  # operators over time, whose patterns keep all rows

    def _estimate(self, part: _Part, terms: Terms) -> int:
        match part:
            case a.Values(_, rows):
                return len(rows)
            case a.Path(start, _, end):
                return min((len(found) for found in (self._find_terms(start, terms), self._find_terms(end, terms)) if found is not None), default=FEW)
            case a.Union() | a.Group() | a.SubSelect():
                return FEW
            case (triple, _):
                is_first = self.cut is not None and part == self.cut[0]
                return -1 if is_first else self.known.count_rows(triple, self._bounds_of(triple, terms))
            case _:
                assert_never(part)

    def _narrow_part(self, part: _Part, terms: Terms) -> Terms:
        """Narrow a part; return the terms of variables that it certainly binds."""
        match part:
            case a.Values(variables, rows):
                columns = {v: [row[k] for row in rows] for k, v in enumerate(variables)}
                return {v: self._sort_terms(column) for v, column in columns.items() if None not in column}
            case a.Path():
                return self._narrow_path(part, terms)
            case a.Union(left, right):
                x, y = self.narrow_group(left, terms), self.narrow_group(right, terms)
                return {v: np.union1d(x[v], y[v]) for v in x.keys() & y.keys()}
            case a.Group(inner, shown):
                return self._narrow_inner(inner, shown, terms)
            case a.SubSelect(inner, shown, _, modifiers):
                return self._narrow_inner(inner, shown, terms if modifiers == a.PLAIN else {})
            case (triple, place):
                return self._narrow_triple(triple, place, terms)
            case _:
                assert_never(part)

    def _narrow_inner(self, inner: a.Pattern, shown: Sequence[Variable], terms: Terms) -> Terms:
        found = self.narrow_group(inner, {v: terms[v] for v in shown if v in terms})
        return {v: found[v] for v in shown if v in found}

    # ------------------------------------------------------------ triples and paths
    def _narrow_triple(self, triple: a.TriplePattern, place: a.Place, terms: Terms) -> Terms:
        wanted = self._bounds_of(triple, terms)
        if self.cut is not None and (triple, place) == self.cut[0]:
            rows = self.cut[1]
        else:
            n = self.known.count_rows(triple, wanted)
            self._note_size((triple, place), n)
            if n > FEW and n * WORTHWHILE > self.known.count_all(triple):
                return {}
            rows = self.known.select_rows(triple, place, wanted)
        self.rows.setdefault((triple, place), []).append(rows)
        return {part: np.unique(rows[:, k]) for k, part in enumerate(parts_of(triple)) if isinstance(part, Variable)} if len(rows) <= FEW else {}

    def _note_size(self, asked: Asked, n: int) -> None:
        if self.outermost is not None and asked in self.outermost:
            self.outermost[asked] = n

    def _narrow_path(self, path: a.Path, terms: Terms) -> Terms:
        """Narrow the links of a path to the steps that it takes from the end with fewer terms."""
        ends = [(self._find_terms(end, terms), end) for end in (path.subject, path.object)]
        sizes = [FEW + 1 if found is None else len(found) for found, _ in ends]
        start, back = ends[sizes[1] < sizes[0]][0], sizes[1] < sizes[0]
        if start is None or min(sizes) > FEW:
            return {}
        try:
            reached, steps = walk_path(self.known, path, start, back=back)
        except WalkTooLong:
            return {}
        for link, rows in steps.items():
            self.walks.setdefault((link, path.place), []).append(rows)
        if asks_nodes(path):
            parts = [self.known.select_rows(ANY_TRIPLE, path.place, {part: start}) for part in (SUBJECT, OBJECT)]
            self.rows.setdefault((ANY_TRIPLE, path.place), []).append(np.concatenate(parts))
        other = path.subject if back else path.object
        return {other: reached} if isinstance(other, Variable) and len(reached) <= FEW else {}

    def _bounds_of(self, triple: a.TriplePattern, terms: Terms) -> dict[int, Ints]:
        return {k: terms[part] for k, part in enumerate(parts_of(triple)) if isinstance(part, Variable) and part in terms}

    def _find_terms(self, part: TermOrVariable, terms: Terms) -> Ints | None:
        return terms.get(part) if isinstance(part, Variable) else self._sort_terms([part])

    def _sort_terms(self, terms: Iterable[Term | None]) -> Ints:
        return np.unique(np.array([self.known.terms.intern(str(term)) for term in terms], np.int64))


def _count_places(pattern: a.Pattern) -> tuple[Counter[Asked], Counter[Link]]:
    """Return how often each triple pattern is asked for in a pattern, and how many of its paths have each link."""
    standing, links = Counter[Asked](), Counter[Link]()
    for node in walk_nodes(pattern):
        match node:
            case a.Bgp(triples, place):
                standing.update((triple, place) for triple in triples)
            case a.Path(_, path, _, place):
                links.update((link, place) for link in list_links(path))
                standing[ANY_TRIPLE, place] += asks_nodes(node)
    return standing, links


def asks_nodes(path: a.Path) -> bool:
    """Return whether a path may give each node of the graph with itself."""
    is_open = isinstance(path.subject, Variable) and isinstance(path.object, Variable)
    return is_open and any(isinstance(node, a.ZeroOrOne | a.ZeroOrMore) for node in walk_nodes(path.path))


def _list_exists(expression: a.Expression, kept: a.Pattern) -> list[_Dependent]:
    sought = [part.pattern for part in list_subexpressions(expression) if isinstance(part, a.Exists)]
    return [_Dependent(pattern, _find_certain(kept)) for pattern in sought]


def _find_certain(pattern: a.Pattern) -> Variables:
    return find_scope(pattern, lambda triple, place: True).certain


def _variables_of(part: _Part) -> Variables:
    match part:
        case a.Values(variables):
            return frozenset(variables)
        case a.Path(start, _, end):
            return frozenset(end for end in (start, end) if isinstance(end, Variable))
        case (triple, _):
            return frozenset(term for term in parts_of(triple) if isinstance(term, Variable))
        case _:
            return frozenset()

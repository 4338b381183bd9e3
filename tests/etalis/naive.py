"""A naive evaluator of programs, by brute force from the definitions: it shares the parser with the product, and
nothing else.

Each rule of a program reads events that are sent, and heads of rules before it. Arguments are whole numbers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from epsparql.etalis.parser.program import read_program
from epsparql.etalis.parser.syntax import Num, Struct, Term, VariableTerm, as_struct, list_variables

Event = tuple[str, tuple[int, ...], int, int]
"""Name, arguments, start and end in seconds."""
Bindings = dict[str, int]
RELATIONS: dict[str, Callable[[int, int, int, int], bool]] = {
    ":seq": lambda s, e, t, f: e < t,
    ":and": lambda s, e, t, f: True,
    ":par": lambda s, e, t, f: max(s, t) < min(e, f),
    ":equals": lambda s, e, t, f: (s, e) == (t, f),
    ":meets": lambda s, e, t, f: e == t,
    ":during": lambda s, e, t, f: t < s and e < f,
    ":starts": lambda s, e, t, f: s == t and e < f,
    ":finishes": lambda s, e, t, f: e == f and s > t,
}
FUNCTIONS: dict[str, Callable[[list[int]], int]] = {
    "count": len,
    "sum": sum,
    "min": min,
    "max": max,
    "last": lambda values: values[-1],
    "spread": lambda values: max(values) - min(values),
}
"""`last` is a function of lists, and `spread` one that programs here define: the greatest less the least."""
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "=<": lambda a, b: a <= b,
    "=:=": lambda a, b: a == b,
    "=\\=": lambda a, b: a != b,
}


class Ambiguous(Exception):
    """Signals a window whose elements depend on an order that the definition leaves to hidden variables."""


@dataclass(frozen=True)
class NaiveSolution:
    """A solution."""

    bindings: frozenset[tuple[str, int]]
    start: int
    end: int


def run_naively(program: str, events: list[Event]) -> set[Event]:
    """Return the events that the rules derive."""
    known, derived = set(events), set[Event]()
    horizon = max((event[3] for event in events), default=0)
    for rule in read_program(program).rules:
        heads = set()
        for found in solve(rule.body, known):
            end = found.end
            if rule.alarm is not None:
                if end > horizon or not isinstance(rule.time, Num):
                    continue
                end += int(rule.time.value)
            args = tuple(value(argument, dict(found.bindings)) for argument in rule.head.args)
            if rule.window is None or end - found.start <= rule.window // 1_000_000:
                heads.add((rule.head.name, args, found.start, end))
        known |= heads
        derived |= heads
    return derived


def solve(term: Term, events: set[Event]) -> set[NaiveSolution]:
    assert not isinstance(term, VariableTerm)
    match term:
        case Struct(":seq", (left, Struct(":star_times", (right,)))):
            x = solve(left, events)
            mine = frozenset(v.name for v in list_variables(left))
            return x | {NaiveSolution(only(z, mine), z.start, z.end) for z in joined(x, solve(right, events), RELATIONS[":seq"])}
        case Struct(":seq", (left, Struct("aggregate") as right)):
            return set(aggregated(solve(left, events), right, events))
        case Struct("aggregate"):
            return set(aggregated(None, term, events))
        case Struct(":or", (left, right)):
            return solve(left, events) | solve(right, events)
        case Struct(":within", (inner, Num(limit))):
            return {x for x in solve(inner, events) if x.end - x.start <= limit}
        case Struct(":ntimes", (inner, Num(times))):
            found = solve(inner, events)
            for _ in range(int(times) - 1):
                found = joined(found, solve(inner, events), RELATIONS[":seq"])
            return found
        case Struct(":where", (inner, goal)):
            return {x for x in solve(inner, events) if holds(goal, dict(x.bindings))}
        case Struct(":cnot", (Struct(":seq", (left, right)), absent)):
            return set(not_between(left, right, absent, events))
        case Struct(":fnot", (left, absent)):
            blockers = solve(absent, events)
            return {x for x in solve(left, events) if not any(z.end <= x.end and agree(x, z) for z in blockers)}
        case Struct(name, (left, right)) if name in RELATIONS:
            return joined(solve(left, events), solve(right, events), RELATIONS[name])
        case _:
            return set(matched(term, events))


def matched(term: Term, events: set[Event]) -> Iterator[NaiveSolution]:
    atom = as_struct(term)
    assert atom is not None
    for name, args, start, end in events:
        if (name, len(args)) == (atom.name, len(atom.args)):
            bindings: Bindings = {}
            if all(unify(argument, given, bindings) for argument, given in zip(atom.args, args, strict=True)):
                yield NaiveSolution(frozenset(bindings.items()), start, end)


def unify(term: Term, given: int, bindings: Bindings) -> bool:
    if isinstance(term, VariableTerm):
        return bindings.setdefault(term.name, given) == given
    assert isinstance(term, Num)
    return term.value == given


def agree(x: NaiveSolution, y: NaiveSolution) -> bool:
    mine = dict(x.bindings)
    return all(mine.get(name, given) == given for name, given in y.bindings)


def joined(xs: set[NaiveSolution], ys: set[NaiveSolution], relation: Callable[[int, int, int, int], bool]) -> set[NaiveSolution]:
    return {
        NaiveSolution(x.bindings | y.bindings, min(x.start, y.start), max(x.end, y.end))
        for x, y in product(xs, ys)
        if agree(x, y) and relation(x.start, x.end, y.start, y.end)
    }


def only(x: NaiveSolution, names: frozenset[str]) -> frozenset[tuple[str, int]]:
    return frozenset((name, given) for name, given in x.bindings if name in names)


def not_between(left: Term, right: Term, absent: Term, events: set[Event]) -> Iterator[NaiveSolution]:
    for x, y in product(solve(left, events), solve(right, events)):
        if x.end < y.start and agree(x, y):
            both = NaiveSolution(x.bindings | y.bindings, min(x.start, y.start), max(x.end, y.end))
            if not any(x.end < z.start and z.end < y.start and agree(both, z) for z in solve(absent, events)):
                yield both


def aggregated(xs: set[NaiveSolution] | None, term: Struct, events: set[Event]) -> Iterator[NaiveSolution]:
    """Yield what each group reports at each end of an element: y, or with xs the pairs of an x and a later y."""
    function, pattern, target, *options = term.args
    atom = as_struct(function)
    assert atom is not None
    assert isinstance(target, VariableTerm)
    given = {option.name: option.args for option in options if isinstance(option, Struct)}
    keys = frozenset(key.name for key in given.get("group_by", ()) if isinstance(key, VariableTerm))
    groups: dict[tuple[NaiveSolution | None, frozenset[tuple[str, int]]], list[tuple[int, int, int]]] = {}
    for x, y in product([None] if xs is None else xs, solve(pattern, events)):
        if x is None or (x.end < y.start and agree(x, y)):
            bindings = dict(y.bindings if x is None else x.bindings | y.bindings)
            member = y.end, y.start if x is None else x.start, value(atom.args[0], bindings) if atom.args else 1
            groups.setdefault((x, only(y, keys)), []).append(member)
    for (x, key), members in groups.items():
        for at in {end for end, _, _ in members}:
            window = windowed(sorted(member for member in members if member[0] <= at), at, given, atom.name)
            found = FUNCTIONS[atom.name]([number for _, _, number in window])
            known = key if x is None else key | x.bindings
            yield NaiveSolution(known | {(target.name, found)}, min(start for _, start, _ in window), at)
    if xs is not None and not keys and atom.name in ("count", "sum"):
        yield from (NaiveSolution(x.bindings | {(target.name, 0)}, x.start, x.end) for x in xs)


def windowed(members: list[tuple[int, int, int]], at: int, given: dict[str, tuple[Term, ...]], function: str) -> list[tuple[int, int, int]]:
    """Return what a window has of elements in order. Raises: Ambiguous."""
    size = int(term.value) if isinstance(term := (given.get("rows") or given.get("range") or (None,))[0], Num) else 0
    if "range" in given:
        members = [member for member in members if member[0] > at - size]
    if function == "last" and len({number for end, start, number in members if (end, start) == members[-1][:2]}) > 1:
        raise Ambiguous
    if "rows" not in given or len(members) <= size:
        return members
    inside, outside = members[-size:], members[-size - 1]
    tied = {number for end, start, number in members if (end, start) == outside[:2]}
    if inside[0][:2] == outside[:2] and len(tied) > 1:
        raise Ambiguous
    return inside


def holds(goal: Term, bindings: Bindings) -> bool:
    assert isinstance(goal, Struct)
    if goal.name == "\\+":
        return not holds(goal.args[0], bindings)
    if goal.name in (",", ";"):
        answers = [holds(part, bindings) for part in goal.args]
        return all(answers) if goal.name == "," else any(answers)
    return COMPARED[goal.name](*(value(part, bindings) for part in goal.args))


def value(term: Term, bindings: Bindings) -> int:
    match term:
        case VariableTerm(name):
            return bindings[name]
        case Num(number):
            return int(number)
        case Struct("+", (left, right)):
            return value(left, bindings) + value(right, bindings)
    raise AssertionError(term)

"""A naive evaluator of static rules, by resolution from left to right as in Prolog: it shares the parser with the
product, and nothing else. The product closes relations from the facts upwards, and orders goals itself.

Every goal is to stand after those that bind its inputs, and recursion is to end. Numbers are whole.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from epsparql.etalis.parser.program import Program, StaticRule
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, Struct, Term, VariableTerm, as_struct, list_variables

Bindings = dict[str, "Value"]


@dataclass(frozen=True)
class Compound:
    """A struct; names are texts, numbers are integers, and lists are tuples."""

    name: str
    args: tuple["Value", ...]


@dataclass(frozen=True)
class Unbound:
    name: str


@dataclass(frozen=True)
class Partial:
    """A list that is known up to its tail, a variable."""

    items: tuple["Value", ...]
    tail: Unbound


Value = int | str | tuple["Value", ...] | Compound | Unbound | Partial
LISTS: dict[str, Callable[..., Value]] = {
    "length": len,
    "reverse": lambda items: items[::-1],
    "last": lambda items: items[-1],
    "sum_list": lambda items: sum(numbers(items)),
    "min_list": lambda items: min(numbers(items)),
    "max_list": lambda items: max(numbers(items)),
    "sort": lambda items: tuple(ascending(set(items))),
    "msort": lambda items: tuple(ascending(items)),
    "append": lambda left, right: left + right,
    "nth0": lambda at, items: items[at] if at >= 0 else (),
    "nth1": lambda at, items: items[at - 1] if at > 0 else (),
}
COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "=<": lambda a, b: a <= b,
    "=:=": lambda a, b: a == b,
}


def numbers(items: Sequence[Value]) -> list[int]:
    assert isinstance(items, tuple)
    found = [item for item in items if isinstance(item, int)]
    if len(found) < len(items):
        raise ValueError
    return found


def ascending(items: "set[Value] | Sequence[Value]") -> list[Value]:
    """Numbers, names, structs and lists, each kind in its own order."""

    def key(value: Value) -> tuple[object, ...]:
        match value:
            case int():
                return (0, value)
            case str():
                return (1, value)
            case Compound(name, args):
                return (2, len(args), name, tuple(map(key, args)))
            case tuple():
                return (3, tuple(map(key, value)))
        raise AssertionError(value)

    return sorted(items, key=key)


class Prover:
    """Proves goals over the static part of a program."""

    def __init__(self, program: Program) -> None:
        self.rules: dict[tuple[str, int], list[StaticRule]] = {}
        for rule in program.static:
            self.rules.setdefault((rule.head.name, len(rule.head.args)), []).append(rule)
        self.fresh = count()

    def answers(self, goal: Term, given: Bindings) -> list[Bindings]:
        """Return the different answers of a goal, by its variables and those that are given."""
        names = {v.name for v in list_variables(goal)} | given.keys()
        found = [{name: resolve(Unbound(name), env) for name in names} for env in self.prove(goal, given)]
        return [answer for k, answer in enumerate(found) if answer not in found[:k]]

    def prove(self, goal: Term, env: Bindings) -> Iterator[Bindings]:
        atom = as_struct(goal)
        assert atom is not None
        match atom.name, atom.args:
            case ",", (left, right):
                for found in self.prove(left, env):
                    yield from self.prove(right, found)
            case ";", (Struct("->", (condition, then)), otherwise):
                found_ones = list(self.prove(condition, env))
                for found in found_ones:
                    yield from self.prove(then, found)
                if not found_ones:
                    yield from self.prove(otherwise, env)
            case ";", (left, right):
                yield from self.prove(left, env)
                yield from self.prove(right, env)
            case "\\+", (inner,):
                if not any(True for _ in self.prove(inner, env)):
                    yield env
            case "findall", (template, inner, whole):
                both = Struct(",", (inner, Struct("=", (template, template), atom.span)), atom.span)
                values = [resolve(read(template), answer) for answer in self.answers(both, env)]
                yield from unify(read(whole), tuple(ascending(values)), env)
            case "=", (left, right):
                yield from unify(read(left), read(right), env)
            case "is", (target, expression):
                yield from unify(read(target), compute(expression, env), env)
            case "member", (item, whole):
                items = resolve(read(whole), env)
                for each in items if isinstance(items, tuple) else ():
                    yield from unify(read(item), each, env)
            case name, (left, right) if name in COMPARED:
                if COMPARED[name](compute(left, env), compute(right, env)):
                    yield env
            case name, (*inputs, target) if name in LISTS:
                try:
                    value = LISTS[name](*(resolve(read(each), env) for each in inputs))
                except (TypeError, ValueError, IndexError):
                    return
                yield from unify(read(target), value, env)
            case "true", ():
                yield env
            case _:
                yield from self.resolve_atom(atom, env)

    def resolve_atom(self, atom: Struct, env: Bindings) -> Iterator[Bindings]:
        for rule in self.rules[atom.name, len(atom.args)]:
            suffix = f"~{next(self.fresh)}"
            head, body = rename(rule.head, suffix), None if rule.body is None else rename(rule.body, suffix)
            assert isinstance(head, Struct)
            pairs = Compound("", tuple(map(read, head.args))), Compound("", tuple(map(read, atom.args)))
            for found in unify(*pairs, env):
                yield from [found] if body is None else self.prove(body, found)


def rename(term: Term, suffix: str) -> Term:
    match term:
        case VariableTerm(name, span):
            return VariableTerm(name + suffix, span)
        case Struct(name, args, span):
            return Struct(name, tuple(rename(part, suffix) for part in args), span)
        case ListTerm(items, span, tail):
            return ListTerm(tuple(rename(part, suffix) for part in items), span, None if tail is None else VariableTerm(tail.name + suffix, span))
    return term


def read(term: Term) -> Value:
    match term:
        case VariableTerm(name):
            return Unbound(name)
        case Num(value):
            return int(value)
        case Name(text):
            return text
        case Struct(name, args):
            return Compound(name, tuple(map(read, args)))
        case ListTerm(items, tail=tail):
            return tuple(map(read, items)) if tail is None else Partial(tuple(map(read, items)), Unbound(tail.name))
    raise AssertionError(term)


def resolve(value: Value, env: Bindings) -> Value:
    """Return a value with its variables replaced, as far as they are bound."""
    match value:
        case Unbound(name):
            return resolve(env[name], env) if name in env else value
        case tuple():
            return tuple(resolve(item, env) for item in value)
        case Partial(items, tail):
            rest = resolve(tail, env)
            if isinstance(rest, tuple):
                return (*(resolve(item, env) for item in items), *rest)
            return value
        case Compound(name, args):
            return Compound(name, tuple(resolve(part, env) for part in args))
    return value


def unify(left: Value, right: Value, env: Bindings) -> Iterator[Bindings]:
    left, right = resolve(left, env), resolve(right, env)
    if isinstance(left, Unbound) or isinstance(right, Unbound):
        if left == right:
            yield env
        elif isinstance(left, Unbound):
            yield {**env, left.name: right}
        else:
            assert isinstance(right, Unbound)
            yield {**env, right.name: left}
        return
    if isinstance(right, Partial):
        left, right = right, left
    match left, right:
        case Partial(items, tail), tuple():
            if len(items) <= len(right):
                yield from unify(Compound("", (*items, tail)), Compound("", (*right[: len(items)], right[len(items) :])), env)
        case tuple(), tuple():
            yield from unify(Compound("", left), Compound("", right), env)
        case Compound(name, mine), Compound(other, theirs):
            if (name, len(mine)) == (other, len(theirs)):
                found: list[Bindings] = [env]
                for a, b in zip(mine, theirs, strict=True):
                    found = [each for before in found for each in unify(a, b, before)]
                yield from found
        case _:
            if left == right:
                yield env


def compute(term: Term, env: Bindings) -> int:
    match term:
        case Num(value):
            return int(value)
        case VariableTerm(name):
            found = resolve(Unbound(name), env)
            assert isinstance(found, int)
            return found
        case Struct("+", (left, right)):
            return compute(left, env) + compute(right, env)
    raise AssertionError(term)

"""This module says of each goal of a condition what it needs, and what it binds; goals are a set, evaluated as their
inputs are there.
"""

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import field
from itertools import count

from epsparql.deferred_methods import dataclass
from epsparql.etalis.parser.constants import predicate_atom
from epsparql.etalis.parser.keywords import OUTPUT
from epsparql.etalis.parser.program import Program, StaticRule
from epsparql.etalis.parser.syntax import (
    ListTerm,
    Name,
    Num,
    Str,
    Struct,
    Term,
    VariableTerm,
    as_struct,
    join_goals,
    list_conjuncts,
    list_variables,
    refuse,
)
from epsparql.etalis.parser.vocabulary import is_iri
from epsparql.etalis.statics.arithmetic import OPERATIONS
from epsparql.etalis.statics.lists import LIST_FUNCTIONS

COMPARISONS = ("<", ">", "=<", ">=", "=:=", "=\\=")
FUNCTIONS = {
    ("is", 2): ((1,), 0),
    ("min", 3): ((0, 1), 2),
    ("max", 3): ((0, 1), 2),
    ("t1", 1): ((), 0),
    ("t2", 1): ((), 0),
    ("current_datime", 1): ((), 0),
    ("datime_minus_datime", 3): ((0, 1), 2),
    ("datime_plus_sec", 3): ((0, 1), 2),
    ("datime_minus_sec", 3): ((0, 1), 2),
    ("addSec_Datime", 3): ((0, 1), 2),
    **{key: (places, len(places)) for key, (places, _) in LIST_FUNCTIONS.items()},
}
"""Goals that compute: the places of their inputs, and of the result."""
TESTS = {*((name, 2) for name in (*COMPARISONS, "\\=", "==", "\\==")), ("less_datime", 2)}
MEMBERS = {("member", 2), ("memberchk", 2)}
"""Goals that find an item in a list, or find each item."""
BUILT_IN = {*FUNCTIONS, *TESTS, ("=", 2), ("true", 0), ("fail", 0)}
_INSTEAD = {
    **dict.fromkeys(("bagof", "setof", "aggregate_all"), "findall(T, G, L), and functions of lists such as length, sum_list and sort"),
    "forall": "\\+ (A, \\+ B)", "findall": "findall(T, G, L)", "append": "append(A, B, C) of two lists that are bound",
    "select": "a relation with the list that is left, or member(X, L)", "call": "the goal itself",
}  # fmt: skip
_UNDECLARATIVE = {*_INSTEAD, "assert", "asserta", "assertz", "retract", "retractall", "=..", "functor", "arg", "name", "random"}
MOST_UNFOLDED = 10_000
"""Calls of conditions are unfolded to at most so many goals in a program."""
MOST_STEPS = 2_000_000
"""Static rules and conditions look at at most so many rows and orders of goals: some seconds of work."""
Key = tuple[str, int]
Order = tuple[list[Term], frozenset[str], frozenset[str]]
"""Goals in order, what they bind, and what is missing."""


@dataclass(slots=True)
class Statics:
    """Holds what conditions may call: relations by their arity, and conditions, which are unfolded where they are
    called.
    """

    program: Program
    relations: Set[Key] = field(default_factory=set)
    conditions: dict[Key, list[StaticRule]] = field(default_factory=dict)
    demanded: dict[Key, list[StaticRule]] = field(default_factory=dict)  # those that are evaluated on demand, by events
    _numbers: "count[int]" = field(default_factory=count)
    _orders: dict[tuple[tuple[int, ...], frozenset[str]], tuple[list[Term], Order]] = field(default_factory=dict)
    _unfolded: int = 0
    _steps: int = 0
    _inside: str = ""  # the goal that the goals which are expanded stand in, for messages

    @property
    def text(self) -> str:
        return self.program.text

    def fresh(self) -> int:
        return next(self._numbers)

    def is_own(self, key: Key) -> bool:
        """Return whether the program has facts or rules for a predicate; a goal of the language with this name is hidden."""
        return key in self.relations or key in self.conditions or key in self.demanded

    def is_function(self, key: Key) -> bool:
        return key in FUNCTIONS and not self.is_own(key)

    def is_member(self, key: Key) -> bool:
        return key in MEMBERS and not self.is_own(key)

    def spend(self, steps: int, term: Term) -> None:
        """Count steps of work at a term. Raises: EleRefused beyond MOST_STEPS."""
        self._steps += steps
        if self._steps > MOST_STEPS:
            refuse(
                f"static rules and conditions take more than {MOST_STEPS:,} steps", term.span, self.text, "fewer facts, or goals that share variables"
            )

    # ------------------------------------------------------------ unfolding
    def expand(self, goal: Term) -> list[Term]:
        """Return the goals of a condition, with calls of conditions unfolded. Raises EleRefused."""
        found: list[Term] = []
        for each in list_conjuncts(goal):
            found += self._expand_one(each)
        return found

    def _expand_one(self, goal: Term) -> list[Term]:
        atom = as_struct(goal)
        if atom is None:
            what = "a variable" if isinstance(goal, VariableTerm) else "this"
            refuse(f"{what} is no goal", goal.span, self.text, "an atom, a comparison or 'is'")
        key = atom.name, len(atom.args)
        if key == ("!", 0):
            refuse("'!' cuts between goals", atom.span, self.text, "a condition without cuts")
        if atom.name in OUTPUT or key == ("true", 0):
            return []
        if key == (";", 2) and isinstance(choice := atom.args[0], Struct) and (choice.name, len(choice.args)) == ("->", 2):
            return [Struct("->", tuple(self._conjunction(part, atom) for part in (*choice.args, atom.args[1])), choice.span)]
        if key in ((",", 2), (";", 2)):
            return [Struct(atom.name, tuple(self._conjunction(part, atom) for part in atom.args), atom.span)]
        if key == ("->", 2):
            return [*self.expand(atom.args[0]), *self.expand(atom.args[1])]
        if key == ("findall", 3) and not self.is_own(key):
            return [self._expand_findall(atom)]
        if key in (("\\+", 1), ("not", 1)):
            return [Struct("\\+", (self._conjunction(atom.args[0], atom),), atom.span)]
        if key in self.demanded:
            message = f"the recursive condition {atom.indicator} stands inside of another goal"
            refuse(message, atom.span, self.text, "the condition by itself, beside other goals; or a function of lists such as length or sum_list")
        if key in self.conditions:
            return self._unfold(atom, self.conditions[key])
        if key in self.relations:
            return self._flatten(atom)
        if key in BUILT_IN or key in MEMBERS:
            return [atom]
        if atom.name in _UNDECLARATIVE:
            refuse(f"'{atom.name}' is no declarative goal", atom.span, self.text, _INSTEAD.get(atom.name, "static rules and comparisons"))
        if atom.iri or is_iri(atom.name):
            return self._flatten(predicate_atom(atom, self.program))
        message = f"{atom.indicator}{self._inside} is not known as a static predicate"
        return refuse(message, atom.span, self.text, "a predicate with facts or static rules")

    def _expand_findall(self, atom: Struct) -> Struct:
        around, self._inside = self._inside, " in findall"
        goal = self._conjunction(atom.args[1], atom)
        self._inside = around
        return Struct("findall", (atom.args[0], goal, atom.args[2]), atom.span)

    def _flatten(self, atom: Struct) -> list[Term]:
        """Return an atom of a relation with variables in place of lists and structs that have variables, and what these
        variables are.
        """
        args, goals = list[Term](), list[Term]()
        for argument in atom.args:
            if isinstance(argument, VariableTerm) or not variables_of(argument):
                args.append(argument)
                continue
            if is_expression(argument):
                expected = "a variable, with 'is' before or after the goal"
                refuse(f"arithmetic in an argument of {atom.indicator}", argument.span, self.text, expected)
            args.append(VariableTerm(f"_whole~{self.fresh()}", argument.span))
            goals.append(Struct("=", (args[-1], argument), atom.span))
        return [Struct(atom.name, tuple(args), atom.span, atom.iri), *goals] if goals else [atom]

    def _conjunction(self, goal: Term, atom: Struct) -> Term:
        return join_goals(self.expand(goal), atom.span)

    def _unfold(self, atom: Struct, rules: list[StaticRule]) -> list[Term]:
        alternatives: list[Term] = []
        for rule in rules:
            names = {variable.name: f"{variable.name}~{self.fresh()}" for variable in list_variables(rule.head)}
            if rule.body is not None:
                names |= {v.name: f"{v.name}~{self.fresh()}" for v in list_variables(rule.body) if v.name not in names}
            head = rename(rule.head, names)
            assert isinstance(head, Struct)
            goals: list[Term] = [Struct("=", pair, atom.span) for pair in zip(head.args, atom.args, strict=True)]
            goals += self.expand(rename(rule.body, names)) if rule.body is not None else []
            self._unfolded += len(goals)
            if self._unfolded > MOST_UNFOLDED:
                refuse(f"the conditions are unfolded to more than {MOST_UNFOLDED:,} goals", atom.span, self.text, "conditions that call fewer others")
            alternatives.append(join_goals(goals, atom.span))
        return list_conjuncts(alternatives[0]) if len(alternatives) == 1 else [join_goals(alternatives, atom.span, ";")]

    # ------------------------------------------------------------ order
    def find_missing(self, goal: Term, bound: Set[str], shared: Set[str]) -> set[str] | None:
        """Return the variables that a goal lacks; empty if it can be evaluated.

        `shared` are those that stand outside the goal too.
        """
        atom = as_struct(goal)
        assert atom is not None
        key = atom.name, len(atom.args)
        if key == ("\\+", 1):
            return variables_of(atom) & shared - bound
        if key == ("->", 3):
            alone = closed_variables(atom) & {*shared, *variables_of(atom.args[2])} - bound
            return alone | self._find_missing_inside(atom, bound)
        if key == ("findall", 3) and not self.is_own(key):
            return (closed_variables(atom) & shared - bound) | self.order(list_conjuncts(atom.args[1]), bound)[2]
        if self.is_member(key):
            return variables_of(atom.args[1]) - bound
        if key in ((";", 2), (",", 2)):
            return self._find_missing_inside(atom, bound)
        if key == ("=", 2):
            left, right = (variables_of(part) - bound for part in atom.args)
            return set() if not left or not right else left | right
        if self.is_function(key):
            return set().union(*(variables_of(atom.args[k]) for k in FUNCTIONS[key][0])) - bound
        if key in TESTS:
            return variables_of(atom) - bound
        return set()

    def _find_missing_inside(self, atom: Struct, bound: Set[str]) -> set[str]:
        missing: set[str] = set()
        for branch in list_branches(atom):
            missing |= self.order(branch, bound)[2]
        return missing

    def find_bound(self, goal: Term, bound: Set[str]) -> set[str]:
        """Return the variables that are bound once a goal has been evaluated."""
        atom = as_struct(goal)
        assert atom is not None
        if atom.name == "\\+":
            return set(bound)
        key = atom.name, len(atom.args)
        if key == ("findall", 3) and not self.is_own(key):
            return set(bound) | variables_of(atom.args[2])
        if key in ((";", 2), ("->", 3)):
            left, right = (self.order(branch, bound)[1] for branch in list_branches(atom))
            return left & right
        return set(bound) | variables_of(atom)

    def order(self, goals: Iterable[Term], bound: Set[str]) -> tuple[list[Term], set[str], set[str]]:
        """Return goals in an order in which their inputs are bound, what is bound then, and what is missing where
        there is no such order.

        Goals inside of goals are ordered with each of these, so orders are kept: they depend on what is bound of the
        goals' own variables alone.
        """
        given = list(goals)
        key = tuple(map(id, given)), frozenset(bound & set().union(*map(variables_of, given)))
        if key not in self._orders:
            self._orders[key] = given, self._find_order(given, key[1])  # the goals are kept, so that no others get their ids
        found, known, missing = self._orders[key][1]
        return list(found), {*bound, *known}, set(missing)

    def _find_order(self, goals: list[Term], bound: Set[str]) -> Order:
        rest, found, known = [(goal, variables_of(goal)) for goal in goals], list[Term](), set(bound)
        uses = Counter(name for _, names in rest for name in names)
        while rest:
            self.spend(len(rest), rest[0][0])
            lacks = [self.find_missing(goal, known, {name for name in names if uses[name] > 1} | known) for goal, names in rest]
            ready = min((k for k, missing in enumerate(lacks) if not missing), key=lambda k: _cost(rest[k][0]), default=None)
            if ready is None:
                return found, frozenset(known), frozenset(set().union(*(missing or () for missing in lacks)))
            goal, names = rest.pop(ready)
            uses.subtract(names)
            found.append(goal)
            known = self.find_bound(goal, known)
        return found, frozenset(known), frozenset()


def _cost(goal: Term) -> int:
    """Return in which order goals that are ready come: tests and computed values before relations, which may multiply
    answers, and lists of all answers last.
    """
    atom = as_struct(goal)
    assert atom is not None
    if atom.name == "findall":
        return 2
    return 0 if (atom.name, len(atom.args)) in BUILT_IN or atom.name == "\\+" else 1


def list_branches(atom: Struct) -> list[list[Term]]:
    """Return the goals of each alternative of `;` and of `->`, and those of `,` as the only one."""
    match atom.name, atom.args:
        case ",", _:
            return [list_conjuncts(atom)]
        case "->", (condition, then, otherwise):
            return [[*list_conjuncts(condition), *list_conjuncts(then)], list_conjuncts(otherwise)]
    return [list_conjuncts(part) for part in atom.args]


def closed_variables(goal: Term) -> set[str]:
    """Return the variables of a goal that are its own unless they stand elsewhere too; then they are to be bound before."""
    if isinstance(goal, Struct):
        match goal.name, goal.args:
            case "\\+", (inner,):
                return variables_of(inner)
            case "->", (condition, _, _):
                return variables_of(condition)
            case "findall", (template, inner, _):
                return variables_of(template) | variables_of(inner)
    return set()


def variables_of(term: Term) -> set[str]:
    return {variable.name for variable in list_variables(term)}


def rename(term: Term, names: dict[str, str]) -> Term:
    """Return a term with other names for its variables."""
    match term:
        case VariableTerm(name, span):
            return VariableTerm(names.get(name, name), span)
        case Struct(name, args, span, iri):
            return Struct(name, tuple(rename(part, names) for part in args), span, iri)
        case ListTerm(items, span, tail):
            renamed = None if tail is None else VariableTerm(names.get(tail.name, tail.name), tail.span)
            return ListTerm(tuple(rename(part, names) for part in items), span, renamed)
        case Name() | Num() | Str():
            return term


def is_expression(term: Term) -> bool:
    """Return whether a term is an arithmetic expression with an operation."""
    return isinstance(term, Struct) and (term.name, len(term.args)) in OPERATIONS

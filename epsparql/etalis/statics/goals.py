"""This module says of each goal of a condition what it needs, and what it binds; goals are a set, evaluated as their inputs are there."""

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from itertools import count

from epsparql.etalis.parser.constants import predicate_atom
from epsparql.etalis.parser.lexer import refuse
from epsparql.etalis.parser.program import Program, StaticRule
from epsparql.etalis.parser.reader import OUTPUT
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, Str, Struct, Term, VariableTerm, as_struct, list_conjuncts, list_variables
from epsparql.etalis.parser.vocabulary import is_iri
from epsparql.etalis.statics.arithmetic import OPERATIONS

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
}
"""Goals that compute: the places of their inputs, and of the result."""
TESTS = {*((name, 2) for name in (*COMPARISONS, "\\=", "==", "\\==")), ("less_datime", 2)}
BUILT_IN = {*FUNCTIONS, *TESTS, ("=", 2), ("true", 0), ("fail", 0)}
_UNDECLARATIVE = {
    "assert", "asserta", "assertz", "retract", "retractall", "findall", "bagof", "setof", "forall", "call", "->", "=..", "functor", "arg", "name", "append", "random",
}  # fmt: skip
Key = tuple[str, int]


@dataclass(slots=True)
class Statics:
    """Holds what conditions may call: relations by their arity, and conditions, which are unfolded where they are called."""

    program: Program
    relations: Set[Key] = field(default_factory=set)
    conditions: dict[Key, list[StaticRule]] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=count)

    @property
    def text(self) -> str:
        return self.program.text

    def fresh(self) -> int:
        return next(self._numbers)

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
        if key in ((",", 2), (";", 2)):
            return [_rejoin(atom, [self._conjunction(part, atom) for part in atom.args])]
        if key in (("\\+", 1), ("not", 1)):
            return [Struct("\\+", (self._conjunction(atom.args[0], atom),), atom.span)]
        if key in self.conditions:
            return self._unfold(atom, self.conditions[key])
        if key in BUILT_IN or key in self.relations:
            return [atom]
        if atom.name in _UNDECLARATIVE:
            refuse(f"'{atom.name}' is no declarative goal", atom.span, self.text, "static rules and comparisons")
        if atom.iri or is_iri(atom.name):
            return [predicate_atom(atom, self.program)]
        return refuse(f"{atom.indicator} is not known as a static predicate", atom.span, self.text, "a predicate with facts or static rules")

    def _conjunction(self, goal: Term, atom: Struct) -> Term:
        goals = self.expand(goal)
        whole: Term = goals[0] if goals else Name("true", atom.span)
        for each in goals[1:]:
            whole = Struct(",", (whole, each), atom.span)
        return whole

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
            whole: Term = goals[0] if goals else Name("true", atom.span)
            for each in goals[1:]:
                whole = Struct(",", (whole, each), atom.span)
            alternatives.append(whole)
        if len(alternatives) == 1:
            return list_conjuncts(alternatives[0])
        whole = alternatives[0]
        for each in alternatives[1:]:
            whole = Struct(";", (whole, each), atom.span)
        return [whole]

    # ------------------------------------------------------------ order
    def find_missing(self, goal: Term, bound: Set[str], shared: Set[str]) -> set[str] | None:
        """Return the variables that a goal lacks; empty if it can be evaluated. `shared` are those that stand outside the goal too."""
        atom = as_struct(goal)
        assert atom is not None
        key = atom.name, len(atom.args)
        if key == ("\\+", 1):
            return variables_of(atom) & shared - bound
        if key in ((";", 2), (",", 2)):
            return self._find_missing_inside(atom, bound)
        if key == ("=", 2):
            left, right = (variables_of(part) - bound for part in atom.args)
            return set() if not left or not right else left | right
        if key in FUNCTIONS:
            return set().union(*(variables_of(atom.args[k]) for k in FUNCTIONS[key][0])) - bound
        if key in TESTS:
            return variables_of(atom) - bound
        return set()

    def _find_missing_inside(self, atom: Struct, bound: Set[str]) -> set[str]:
        if atom.name == ",":
            return self.order(list_conjuncts(atom), bound)[2]
        missing: set[str] = set()
        for part in atom.args:
            missing |= self.order(list_conjuncts(part), bound)[2]
        return missing

    def find_bound(self, goal: Term, bound: Set[str]) -> set[str]:
        """Return the variables that are bound once a goal has been evaluated."""
        atom = as_struct(goal)
        assert atom is not None
        if atom.name == "\\+":
            return set(bound)
        if atom.name == ";" and len(atom.args) == 2:
            left, right = (self.order(list_conjuncts(part), bound)[1] for part in atom.args)
            return left & right
        return set(bound) | variables_of(atom)

    def order(self, goals: Iterable[Term], bound: Set[str]) -> tuple[list[Term], set[str], set[str]]:
        """Return goals in an order in which their inputs are bound, what is bound then, and what is missing where there is no such order."""
        rest, found, known = list(goals), list[Term](), set(bound)
        while rest:
            ready = self._pick(rest, known)
            if ready is None:
                missing: set[str] = set()
                for k, goal in enumerate(rest):
                    missing |= self.find_missing(goal, known, self._others(rest, k) | known) or set()
                return found, known, missing
            goal = rest.pop(ready)
            found.append(goal)
            known = self.find_bound(goal, known)
        return found, known, set()

    def _pick(self, rest: list[Term], known: set[str]) -> int | None:
        """Return the place of a goal that is ready: tests and computed values before relations, which may multiply answers."""
        ready = [k for k, goal in enumerate(rest) if not self.find_missing(goal, known, self._others(rest, k) | known)]
        return min(ready, key=lambda k: self._cost(rest[k]), default=None)

    def _cost(self, goal: Term) -> int:
        atom = as_struct(goal)
        assert atom is not None
        key = atom.name, len(atom.args)
        return 0 if key in BUILT_IN or atom.name == "\\+" else 1

    def _others(self, goals: list[Term], k: int) -> set[str]:
        return set().union(*(variables_of(goal) for j, goal in enumerate(goals) if j != k))


def _rejoin(atom: Struct, parts: list[Term]) -> Term:
    return Struct(atom.name, tuple(parts), atom.span)


def variables_of(term: Term) -> set[str]:
    return {variable.name for variable in list_variables(term)}


def rename(term: Term, names: dict[str, str]) -> Term:
    """Return a term with other names for its variables."""
    match term:
        case VariableTerm(name, span):
            return VariableTerm(names.get(name, name), span)
        case Struct(name, args, span, iri):
            return Struct(name, tuple(rename(part, names) for part in args), span, iri)
        case ListTerm(items, span):
            return ListTerm(tuple(rename(part, names) for part in items), span)
        case Name() | Num() | Str():
            return term


def is_expression(term: Term) -> bool:
    """Return whether a term is an arithmetic expression with an operation."""
    return isinstance(term, Struct) and (term.name, len(term.args)) in OPERATIONS

"""This module translates conditions: their goals become filters, binds and joins with the closed relations, in an
order that binds their inputs.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from functools import reduce

from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.etalis.parser.constants import ground_term
from epsparql.etalis.parser.program import Program
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, Str, Struct, Term, VariableTerm, as_struct, list_conjuncts, list_variables, refuse
from epsparql.etalis.parser.vocabulary import FUNCTION, NAMED, is_iri, number_literal
from epsparql.etalis.statics.arithmetic import OPERATIONS
from epsparql.etalis.statics.datalog import Knowledge, reads_background
from epsparql.etalis.statics.goals import COMPARISONS, FUNCTIONS, Key, closed_variables, list_branches, rename, variables_of
from epsparql.etalis.statics.lists import LIST_FUNCTIONS, ordered_list
from epsparql.terms import RDF, XSD, Iri, Literal, TermOrVariable, Variable
from epsparql.terms import Term as RdfTerm
from epsparql.trees import replace_fields

MOST_TESTS = 5_000
"""A negated or alternative condition over relations is written out in at most so many tests."""
TYPE = Iri(RDF + "type")
BACKGROUND = ""
"""A window of this name holds the background alone."""
ZERO = a.Constant(Literal("0", XSD + "integer"))
TRUE, FALSE = a.Constant(Literal("true", XSD + "boolean")), a.Constant(Literal("false", XSD + "boolean"))
_OPERATORS = {"+": a.Operator.ADD, "-": a.Operator.SUBTRACT, "*": a.Operator.MULTIPLY, "/": a.Operator.DIVIDE}
_COMPARED = {"<": a.Comparison.LESS, ">": a.Comparison.GREATER, "=<": a.Comparison.LESS_OR_EQUAL, ">=": a.Comparison.GREATER_OR_EQUAL}
_TIMES = {"t1": a.TimeFunction.START, "t2": a.TimeFunction.END, "current_datime": a.TimeFunction.END}
Environment = Mapping[str, a.Expression]


@dataclass(frozen=True, slots=True)
class Translated:
    """Holds a pattern with the variables that are bound in all of its solutions, and those that are in some
    alternatives alone.
    """

    pattern: a.Pattern
    bound: frozenset[str]
    partial: frozenset[str] = frozenset()


def call(function: str, *arguments: a.Expression) -> a.Call:
    """Return a call of one of the functions of this language."""
    return a.Call(f"<{FUNCTION}{function}>", arguments)


def triple_of(name: str, arguments: Sequence[TermOrVariable]) -> a.TriplePattern:
    """Return the triple that an atom stands for whose predicate is an IRI."""
    if len(arguments) == 1:
        return a.TriplePattern(arguments[0], TYPE, Iri(name))
    return a.TriplePattern(arguments[0], Iri(name), arguments[1])


def same(left: a.Expression, right: a.Expression) -> a.Expression:
    return a.Call("SAMETERM", (left, right))


@dataclass(slots=True)
class Conditions:
    """Translates the conditions of one program."""

    program: Program
    knowledge: Knowledge
    _tests: int = 0

    def apply_goals(self, found: Translated, goal: Term, outside: Set[str]) -> Translated:
        """Return the solutions, each once for each answer of the goals that extends it; `outside` are the rule's
        other variables. Raises EleRefused.
        """
        return self._apply(found, self.knowledge.statics.expand(goal), outside)

    def _apply(self, found: Translated, goals: Sequence[Term], outside: Set[str]) -> Translated:
        shared = {*found.bound, *outside}
        ordered, _, missing = self.knowledge.statics.order(goals, found.bound)
        if missing or len(ordered) < len(goals):
            self._refuse_unbound(goals, missing)
        for goal in ordered:
            others = set().union(shared, *(variables_of(other) for other in goals if other is not goal))
            if unbound := (closed_variables(goal) & others) - found.bound:
                self._refuse_unbound([goal], unbound)
            found = self._apply_one(found, goal, others)
        return found

    def _refuse_unbound(self, goals: Sequence[Term], missing: Set[str]) -> None:
        for goal in goals:
            for variable in list_variables(goal):
                if variable.name in missing:
                    refuse(
                        f"variable {_shown(variable.name)} is not bound in this condition",
                        variable.span,
                        self.program.text,
                        "a variable of the pattern, or of a relation",
                    )
        name = next(iter(sorted(missing)), "?")
        refuse(
            f"variable {_shown(name)} is not bound in this condition", goals[0].span, self.program.text, "a variable of the pattern, or of a relation"
        )

    def _apply_one(self, found: Translated, goal: Term, outside: Set[str]) -> Translated:
        atom = as_struct(goal)
        assert atom is not None
        key = atom.name, len(atom.args)
        if self.knowledge.statics.is_function(key):
            value = self._result(atom, {})
            return self._bind(found, atom.args[FUNCTIONS[key][1]], value)
        match key:
            case _ if key in self.knowledge.rows:
                return self._join_relation(found, atom, key)
            case ",", 2:
                return self._apply(found, list_conjuncts(atom), outside)
            case "findall", 3:
                return self._apply(found, self._tabulate(atom, found.bound), outside)
            case "->", 3:
                return self._either(found, self._write_choice(atom, found.bound), outside)
            case "=", 2:
                return self._unify(found, atom.args[0], atom.args[1])
            case ";", 2:
                return self._either(found, atom, outside)
            case "\\+", 1 if reads_background(atom):
                return self._without_background(found, atom.args[0])
            case _ if is_iri(atom.name):
                return self._join_background(found, atom)
            case _:
                return self.keep(found, self.holds([atom], {}, found.bound))

    def keep(self, found: Translated, condition: a.Expression) -> Translated:
        """Return the solutions for which a condition holds."""
        return found if condition == TRUE else replace_fields(found, pattern=a.Filter(condition, found.pattern))

    def bind(self, found: Translated, name: str, value: a.Expression) -> Translated:
        """Return the solutions with a variable more; where its value is an error there is no solution."""
        variable = Variable(name)
        pattern = a.Filter(a.Bound(variable), a.Extend(found.pattern, variable, value))
        return replace_fields(found, pattern=pattern, bound=found.bound | {name})

    def _bind(self, found: Translated, target: Term, value: a.Expression) -> Translated:
        if isinstance(target, VariableTerm) and target.name not in found.bound:
            return self.bind(found, target.name, value)
        if variables_of(target) - found.bound:
            whole = f"_:whole#{self.knowledge.statics.fresh()}"
            found = replace_fields(self.bind(found, whole, value), bound=found.bound)
            return self.take_apart(found, a.Var(Variable(whole)), target)
        return self.keep(found, same(self.value(target, {}), value))

    def _unify(self, found: Translated, left: Term, right: Term) -> Translated:
        if variables_of(left) - found.bound:
            left, right = right, left
        if isinstance(left, Struct) and isinstance(right, Struct) and variables_of(right) - found.bound:
            if (left.name, len(left.args)) != (right.name, len(right.args)):
                return self.keep(found, FALSE)
            for mine, theirs in zip(left.args, right.args, strict=True):
                found = self._unify(found, mine, theirs)
            return found
        if isinstance(right, Struct | ListTerm) and variables_of(right) - found.bound:
            return self.take_apart(found, self.value(left, {}), right)
        return self._bind(found, right, self.value(left, {}))

    def take_apart(self, found: Translated, whole: a.Expression, term: Term) -> Translated:
        """Return the solutions in which a struct, list or instant has the parts that a term says."""
        for part, value in self._list_parts(whole, term):
            if isinstance(part, Struct | ListTerm) and variables_of(part) - found.bound:
                found = self.take_apart(found, value, part)
            else:
                found = self._bind(found, part, value)
        return found

    def _list_parts(self, whole: a.Expression, term: Term) -> list[tuple[Term, a.Expression]]:
        """Return the parts of a struct, list or instant with what each of them is of `whole`."""
        parts = term.args if isinstance(term, Struct) else term.items if isinstance(term, ListTerm) else ()
        if isinstance(term, ListTerm) and term.tail is not None:
            size = count_constant(len(parts))
            return [(part, call("part", whole, _text("|"), size, count_constant(k))) for k, part in enumerate((*parts, term.tail))]
        name = term.name if isinstance(term, Struct) else "."
        if name == "datime" and len(parts) == 6:
            parts = (*parts, VariableTerm(f"_c{self.knowledge.statics.fresh()}", term.span))
        return [(part, call("part", whole, _text(name), count_constant(len(parts)), count_constant(k))) for k, part in enumerate(parts)]

    def _either(self, found: Translated, atom: Struct, outside: Set[str]) -> Translated:
        if not (variables_of(atom) & outside) - found.bound and not reads_background(atom):
            return self.keep(found, self.holds([atom], {}, found.bound))
        left, right = (self._apply(found, list_conjuncts(part), outside) for part in atom.args)
        bound = left.bound & right.bound
        return Translated(a.Union(left.pattern, right.pattern), bound, found.partial | ((left.bound | right.bound) - bound))

    def _write_choice(self, atom: Struct, known: Set[str]) -> Struct:
        """Return `C -> T ; E` as `C, T ; \\+ C, E`; what is not `known` of the variables of C is its own in either part."""
        condition, then, otherwise = atom.args
        names = {name: f"{name}~{self.knowledge.statics.fresh()}" for name in variables_of(condition) - known}
        absent = Struct("\\+", (rename(condition, names),), atom.span)
        branches = (condition, then), (absent, otherwise)
        return Struct(";", tuple(Struct(",", branch, atom.span) for branch in branches), atom.span)

    def _tabulate(self, atom: Struct, known: Set[str]) -> list[Term]:
        """Return goals that give the list of a findall by relations, which are added here.

        One has the list for each binding of the known variables with an answer. For others the list is empty.
        Raises EleRefused for a goal that does not bind its variables from facts.
        """
        template, goal, target = atom.args
        statics, rows = self.knowledge.statics, self.knowledge.rows
        self._check_collected(template, goal)
        inputs = sorted((variables_of(template) | variables_of(goal)) & known)
        lists: dict[tuple[RdfTerm, ...], list[RdfTerm]] = {} if inputs else {(): []}
        for answers, value in self.knowledge.list_answers(template, goal, {}):
            lists.setdefault(tuple(answers[name] for name in inputs), []).append(value)
        number = statics.fresh()
        full, found = (f"findall~{number}", len(inputs) + 1), (f"findall~{number}", len(inputs))
        rows[full] = {(*key, ordered_list(values)): None for key, values in lists.items()}
        rows[found] = dict.fromkeys(lists)
        given = tuple(VariableTerm(name, atom.span) for name in inputs)
        whole = VariableTerm(f"_list~{number}", atom.span)
        goals: list[Term] = [Struct(full[0], (*given, whole), atom.span)]
        if inputs:
            absent = Struct("\\+", (Struct(found[0], given, atom.span),), atom.span)
            empty = Struct("=", (whole, ListTerm((), atom.span)), atom.span)
            goals = [Struct(";", (goals[0], Struct(",", (absent, empty), atom.span)), atom.span)]
        return [*goals, Struct("=", (target, whole), atom.span)]

    def _check_collected(self, template: Term, goal: Term) -> None:
        """Check that the goal of a findall binds its variables, and those of the template, from facts. Raises EleRefused."""
        if reads_background(goal):
            expected = "COUNT, SUM, MIN, MAX or GROUP_CONCAT in a CONSTRUCT ... INTO BACKGROUND of EP-SPARQL"
            refuse("findall reads the background", goal.span, self.program.text, expected)
        missing = self.knowledge.statics.order(list_conjuncts(goal), set())[2] | (variables_of(template) - variables_of(goal))
        for variable in (*list_variables(template), *list_variables(goal)):
            if variable.name in missing:
                message = f"variable {_shown(variable.name)} in findall is not bound by facts"
                refuse(message, variable.span, self.program.text, "a relation inside of findall that has the variable")

    def _join_relation(self, found: Translated, atom: Struct, key: Key) -> Translated:
        names, rows = self._select(atom, key, {})
        if not names:
            return self.keep(found, TRUE if rows else FALSE)
        pattern = a.Join(found.pattern, a.Values(tuple(Variable(name) for name in names), tuple(rows)))
        return replace_fields(found, pattern=pattern, bound=found.bound | set(names))

    def _join_background(self, found: Translated, atom: Struct) -> Translated:
        """Return the solutions with each triple of the background that an atom matches whose predicate is an IRI."""
        parts = [Variable(each.name) if isinstance(each, VariableTerm) else ground_term(each, self.program) for each in atom.args]
        triples = a.InWindow(BACKGROUND, a.Bgp((triple_of(atom.name, parts),)))
        return replace_fields(found, pattern=a.Join(found.pattern, triples), bound=found.bound | variables_of(atom))

    def _without_background(self, found: Translated, goal: Term) -> Translated:
        """Return the solutions for which goals have no answer that needs triples of the background."""
        for goals in self._write_out(list_conjuncts(goal)):
            absent = self._apply(Translated(a.Bgp(()), found.bound), goals, frozenset())
            found = replace_fields(found, pattern=a.Filter(a.Not(a.Exists(absent.pattern)), found.pattern))
        return found

    def _write_out(self, goals: list[Term]) -> list[list[Term]]:
        """Return goals with each `;` that reads the background written out: the goals have an answer where one of
        these lists has.
        """
        for k, goal in enumerate(goals):
            if isinstance(goal, Struct) and goal.name == ";" and reads_background(goal):
                self._count_test(goal)
                return [found for part in goal.args for found in self._write_out([*goals[:k], *list_conjuncts(part), *goals[k + 1 :]])]
        return [goals]

    def _select(self, atom: Struct, key: Key, env: Environment) -> tuple[list[str], list[tuple[RdfTerm, ...]]]:
        """Return the variables of an atom and the rows of its relation that fit it, projected to them."""
        names = list(dict.fromkeys(argument.name for argument in atom.args if isinstance(argument, VariableTerm)))
        wanted = [None if isinstance(argument, VariableTerm) else ground_term(argument, self.program) for argument in atom.args]
        found: dict[tuple[RdfTerm, ...], None] = {}
        self.knowledge.statics.spend(len(self.knowledge.rows[key]), atom)
        for row in self.knowledge.rows[key]:
            answer: dict[str, RdfTerm] = {}
            for argument, constant, value in zip(atom.args, wanted, row, strict=True):
                fits = answer.setdefault(argument.name, value) == value if isinstance(argument, VariableTerm) else constant == value
                if not fits:
                    break
            else:
                found[tuple(answer[name] for name in names)] = None
        return names, list(found)

    # ------------------------------------------------------------ values
    def value(self, term: Term, env: Environment) -> a.Expression:
        """Return the value of a term that is no arithmetic."""
        match term:
            case VariableTerm(name):
                return env.get(name) or a.Var(Variable(name))
            case Struct(name, args) if variables_of(term):
                return call("struct", _text(name), *(self.value(part, env) for part in args))
            case ListTerm(items, tail=None) if variables_of(term):
                return call("list", *(self.value(part, env) for part in items))
            case ListTerm(items, tail=VariableTerm() as tail):
                return call("cons", *(self.value(part, env) for part in (*items, tail)))
            case _:
                return a.Constant(_constant(ground_term(term, self.program)))

    def canonical(self, term: Term, env: Environment) -> a.Expression:
        """Return the canonical number that an arithmetic expression stands for."""
        return call("number", self.arithmetic(term, env))

    def arithmetic(self, term: Term, env: Environment) -> a.Expression:
        """Return an arithmetic expression. Raises EleRefused for an operation that is not known."""
        match term:
            case Num(value):
                return a.Constant(number_literal(value))
            case Struct(name, (left, right)) if name in _OPERATORS:
                return a.Arithmetic(_OPERATORS[name], self.arithmetic(left, env), self.arithmetic(right, env))
            case Struct("-", (operand,)):
                return a.Negate(self.arithmetic(operand, env))
            case Struct(name, args) if (name, len(args)) in OPERATIONS:
                return call(NAMED.get(name, name), *(self.arithmetic(part, env) for part in args))
            case Name(name) if (name, 0) in OPERATIONS:
                return call(name)
            case Struct("datime", _):
                return self.value(term, env)
            case Struct():
                return refuse(
                    f"{term.indicator} is no arithmetic operation", term.span, self.program.text, "+, -, *, /, //, mod and the functions of numbers"
                )
            case VariableTerm() | Str() | Name() | ListTerm():
                return self.value(term, env)
            case _:
                raise AssertionError(term)

    def _result(self, atom: Struct, env: Environment) -> a.Expression:
        """Return what a goal computes."""
        match atom.name:
            case "is":
                return self.canonical(atom.args[1], env)
            case "min" | "max":
                return call("number", call(atom.name, *(self.arithmetic(part, env) for part in atom.args[:2])))
            case "t1" | "t2" | "current_datime":
                return a.Time(_TIMES[atom.name])
            case name if (name, len(atom.args)) in LIST_FUNCTIONS:
                return call(NAMED.get(name, name), *(self.value(part, env) for part in atom.args[:-1]))
            case name:
                return call(name, *(self.arithmetic(part, env) for part in atom.args[:2]))

    # ------------------------------------------------------------ tests
    def holds(self, goals: Sequence[Term], env: Environment, bound: Set[str]) -> a.Expression:
        """Return whether goals have an answer, as one expression; what `bound` and `env` do not have is existential."""
        known = {*bound, *env}
        ordered, _, missing = self.knowledge.statics.order(goals, known)
        if missing or len(ordered) < len(goals):
            self._refuse_unbound(goals, missing)
        return self._hold(ordered, env, bound)

    def _hold(self, goals: Sequence[Term], env: Environment, bound: Set[str]) -> a.Expression:
        if not goals:
            return TRUE
        self._count_test(goals[0])
        atom, rest = as_struct(goals[0]), goals[1:]
        assert atom is not None
        key = atom.name, len(atom.args)
        if self.knowledge.statics.is_function(key) or (key == ("=", 2)):
            return self._hold_bound(atom, rest, env, bound)
        if key in self.knowledge.rows:
            return self._hold_relation(atom, key, rest, env, bound)
        if key == ("findall", 3):
            return self.holds([*self._tabulate(atom, {*bound, *env}), *rest], env, bound)
        if key == ("->", 3):
            atom, key = self._write_choice(atom, {*bound, *env}), (";", 2)
        if key in ((",", 2), (";", 2)):
            return _disjunction([self.holds([*branch, *rest], env, bound) for branch in list_branches(atom)])
        if self.knowledge.statics.is_member(key):
            self._check_member(atom, {*bound, *env})
        return _both(self._test(atom, key, env, bound), lambda: self._hold(rest, env, bound))

    def _count_test(self, goal: Term) -> None:
        self._tests += 1
        if self._tests > MOST_TESTS:
            expected = "a relation without \\+ or ; around it, or fewer facts"
            refuse(f"this condition needs more than {MOST_TESTS:,} tests", goal.span, self.program.text, expected)

    def _hold_bound(self, atom: Struct, rest: Sequence[Term], env: Environment, bound: Set[str]) -> a.Expression:
        """Return whether a goal that may bind a variable holds with the rest."""
        key, known = (atom.name, len(atom.args)), {*bound, *env}
        if key == ("=", 2):
            left, right = atom.args
            left, right = (right, left) if variables_of(left) - known else (left, right)
            target, value = right, self.value(left, env)
        else:
            target, value = atom.args[FUNCTIONS[key][1]], self._result(atom, env)
        if isinstance(target, VariableTerm) and target.name not in known:
            return self._hold(rest, {**env, target.name: value}, bound)
        if variables_of(target) - known:
            inner = dict(env)
            return _both(self._has_parts(value, target, inner, bound), lambda: self._hold(rest, inner, bound))
        return _both(same(self.value(target, env), value), lambda: self._hold(rest, env, bound))

    def _has_parts(self, whole: a.Expression, term: Term, env: dict[str, a.Expression], bound: Set[str]) -> a.Expression:
        """Return whether a struct, list or instant has the parts that a term says; `env` gets the values of new
        variables.
        """
        test: a.Expression = TRUE
        for part, value in self._list_parts(whole, term):
            if isinstance(part, Struct | ListTerm) and variables_of(part) - {*bound, *env}:
                found = self._has_parts(value, part, env, bound)
            elif isinstance(part, VariableTerm) and part.name not in {*bound, *env}:
                env[part.name] = value
                found = same(value, value)  # an error where there is no such part
            else:
                found = same(self.value(part, env), value)
            test = _both(test, lambda found=found: found)  # type: ignore[misc]
        return test

    def _hold_relation(self, atom: Struct, key: Key, rest: Sequence[Term], env: Environment, bound: Set[str]) -> a.Expression:
        known = {*bound, *env}
        names, rows = self._select(atom, key, env)
        if all(name not in known and not any(name in variables_of(goal) for goal in rest) for name in names):
            return _both(TRUE, lambda: self._hold(rest, env, bound)) if rows else FALSE
        used = [k for k, name in enumerate(names) if name in known or any(name in variables_of(goal) for goal in rest)]
        tests = []
        for row in dict.fromkeys(tuple(row[k] for k in used) for row in rows):
            inner = dict(env)
            test: a.Expression = TRUE
            for k, value in zip(used, row, strict=True):
                constant = a.Constant(_constant(value))
                if names[k] in known:
                    equal = same(env.get(names[k]) or a.Var(Variable(names[k])), constant)
                    test = equal if test == TRUE else a.And(test, equal)
                else:
                    inner[names[k]] = constant
            tests.append(_both(test, lambda inner=inner: self._hold(rest, inner, bound)))  # type: ignore[misc]
        return _disjunction(tests)

    def _test(self, atom: Struct, key: Key, env: Environment, bound: Set[str]) -> a.Expression:
        match key:
            case "true", 0:
                return TRUE
            case "fail", 0:
                return FALSE
            case "\\+", 1:
                return a.Not(a.Coalesce((self.holds(list_conjuncts(atom.args[0]), env, bound), FALSE)))
            case ("==", 2):
                return same(self.value(atom.args[0], env), self.value(atom.args[1], env))
            case ("\\==" | "\\=", 2):
                return a.Not(same(self.value(atom.args[0], env), self.value(atom.args[1], env)))
            case (("member" | "memberchk"), 2):
                return call("member", *(self.value(part, env) for part in atom.args))
            case "less_datime", 2:
                return call("less_datime", *(self.arithmetic(part, env) for part in atom.args))
            case name, 2 if name in COMPARISONS:
                return self._compare(name, *(self.arithmetic(part, env) for part in atom.args))
            case _:
                return refuse(f"{atom.indicator} is no test", atom.span, self.program.text, "a comparison, or a relation")

    def _check_member(self, atom: Struct, known: Set[str]) -> None:
        """Check that `member` looks for an item that is bound. Raises EleRefused."""
        for variable in list_variables(atom.args[0]):
            if variable.name not in known:
                message = f"variable {_shown(variable.name)} in {atom.name} is not bound"
                expected = "a relation that binds it, or a static rule such as item(L, X) :- p(L), member(X, L)"
                refuse(message, variable.span, self.program.text, expected)

    def _compare(self, name: str, left: a.Expression, right: a.Expression) -> a.Expression:
        """Return a comparison of numbers.

        Anything else is an error: one operand is surely a number or an error, so the other must be one.
        """
        if name in _COMPARED:
            return a.Compare(_COMPARED[name], left if _is_numeric(right) else _numeric(left), right)
        return a.Compare(a.Comparison.EQUAL if name == "=:=" else a.Comparison.UNEQUAL, _numeric(left), _numeric(right))


def _is_numeric(expression: a.Expression) -> bool:
    """Return whether an expression is a number or an error."""
    match expression:
        case a.Constant(Literal(datatype=datatype)):
            return datatype in (XSD + "integer", XSD + "decimal")
        case a.Arithmetic() | a.Negate():
            return True
        case _:
            return False


def _numeric(expression: a.Expression) -> a.Expression:
    return expression if _is_numeric(expression) else a.Arithmetic(a.Operator.ADD, expression, ZERO)


def _both(first: a.Expression, second: Callable[[], a.Expression]) -> a.Expression:
    if first == FALSE:
        return FALSE
    other = second()
    return other if first == TRUE else first if other == TRUE else a.And(first, other)


def _disjunction(tests: Sequence[a.Expression]) -> a.Expression:
    """Return a balanced disjunction."""
    rest = [test for test in dict.fromkeys(tests) if test != FALSE]
    if not rest:
        return FALSE
    if TRUE in rest:
        return TRUE
    while len(rest) > 1:
        rest = [reduce(a.Or, rest[k : k + 2]) for k in range(0, len(rest), 2)]
    return rest[0]


def _shown(name: str) -> str:
    return name.partition("~")[0]


def _text(text: str) -> a.Constant:
    return a.Constant(Literal(text))


def count_constant(number: int) -> a.Constant:
    """Return an integer as a constant."""
    return a.Constant(Literal(str(number), XSD + "integer"))


def _constant(term: RdfTerm) -> Iri | Literal:
    assert isinstance(term, Iri | Literal)
    return term

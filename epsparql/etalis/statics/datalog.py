"""This module closes static rules: Horn rules over facts with stratified negation, by their least fixpoint
(docs/etalis.md).
"""

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import islice

from epsparql.deferred_methods import dataclass
from epsparql.errors import Warning_
from epsparql.etalis.parser.constants import ground_term, instant_parts, list_literal, nesting, read_parts, struct_literal
from epsparql.etalis.parser.program import Program, StaticRule
from epsparql.etalis.parser.syntax import ListTerm, Name, Struct, Term, VariableTerm, as_struct, join_goals, list_conjuncts, list_variables, refuse
from epsparql.etalis.parser.vocabulary import TERM, is_iri
from epsparql.etalis.statics.arithmetic import OPERATIONS, Value, literal_of_value, value_of_literal
from epsparql.etalis.statics.goals import COMPARISONS, Key, Statics, is_expression, list_branches, variables_of
from epsparql.etalis.statics.lists import LIST_FUNCTIONS, NoList, list_items, ordered_list
from epsparql.terms import Literal
from epsparql.terms import Term as RdfTerm

MOST_FACTS = 100_000
"""The static rules of a program close to at most so many facts."""
MOST_CHARACTERS = 65_536
"""A list or struct that static rules build has at most so many characters."""
MOST_BRACKETS = 100
"""So many brackets of a list or struct stand in one another at most."""
STEP_CHARACTERS = 2
"""To write so many characters of a list or struct is one step of work: an item has two, with its comma."""
Row = tuple[RdfTerm, ...]
Answers = Mapping[str, RdfTerm]


@dataclass(slots=True)
class Knowledge:
    """Holds the relations of a program, closed, and the conditions that are unfolded."""

    statics: Statics
    rows: dict[Key, dict[Row, None]]
    list_answers: Callable[[Term, Term, Answers], Iterator[tuple[Answers, RdfTerm]]]
    """Yields the answers of a goal over the relations, each with a template's value."""


def close_static_rules(program: Program) -> Knowledge:
    """Return what a program's facts and static rules say. Raises EleRefused."""
    by_key: dict[Key, list[StaticRule]] = {key: [] for key in program.dynamic}
    for rule in program.static:
        by_key.setdefault((rule.head.name, len(rule.head.args)), []).append(_without_last_cut(program, rule))
        _check_head(program, rule)
    statics = Statics(program, set(by_key))
    while True:  # what cannot bind its variables, or changes with the background, is a condition, and then what rests on it may be one too
        conditions = {key for key in statics.relations if any(not _stands_alone(statics, rule) for rule in by_key[key])}
        if not conditions:
            break
        statics.relations = set(statics.relations) - conditions
        statics.conditions |= {key: by_key[key] for key in conditions}
        _demand_recursive_conditions(statics, by_key)
    closed = _Closure(program, statics, {key: rules for key, rules in by_key.items() if key in statics.relations})
    closed.close()
    return Knowledge(statics, closed.rows, closed.list_answers)


def _without_last_cut(program: Program, rule: StaticRule) -> StaticRule:
    """Return a rule without a cut at its end, which is ignored with a warning."""
    goals = [] if rule.body is None else list_conjuncts(rule.body)
    if not (goals and isinstance(goals[-1], Name) and goals[-1].text == "!"):
        return rule
    program.warnings.append(Warning_("ignored", "a cut that ends a rule is ignored: all answers count", goals[-1].span))
    return StaticRule(rule.head, join_goals(goals[:-1], rule.span), rule.span)


def _check_head(program: Program, rule: StaticRule) -> None:
    if rule.head.iri or is_iri(rule.head.name):
        expected = "a CONSTRUCT ... INTO BACKGROUND of EP-SPARQL, PUT /ontologies, or a plain name"
        refuse(f"the fact or static rule for {rule.head.name} would change the background", rule.head.span, program.text, expected)
    for argument in rule.head.args:
        if rule.body is not None and isinstance(argument, Struct) and variables_of(argument) and not is_expression(argument):
            refuse(
                f"the head of {rule.head.indicator} has the function term {argument.indicator}",
                argument.span,
                program.text,
                "constants, variables, lists and arithmetic",
            )


def _stands_alone(statics: Statics, rule: StaticRule) -> bool:
    """Return whether a rule binds its variables by itself, from facts of the program."""
    if rule.body is None:
        return True
    goals = statics.expand(rule.body)
    _, bound, missing = statics.order(goals, set())
    return not missing and variables_of(rule.head) <= bound and not any(map(reads_background, goals))


def reads_background(goal: Term) -> bool:
    """Return whether a goal, or one inside of it, is an atom whose predicate is an IRI."""
    return any(is_iri(atom.name) for atom in _list_atoms(goal))


def _demand_recursive_conditions(statics: Statics, by_key: Mapping[Key, list[StaticRule]]) -> None:
    """Find the conditions that rest on themselves, and all that rests on these; none of them can be unfolded.

    Their recursion is over lists. Raises: EleRefused.
    """
    calls = {key: {_predicate_key(goal) for rule in rules for goal in _list_atoms(rule.body)} for key, rules in by_key.items()}
    found = [*statics.demanded]
    for key in statics.conditions:
        if key in _list_reached(calls, key):
            _check_recursion(statics, key, [each for each in calls[key] if each == key or key in _list_reached(calls, each)])
            found.append(key)
    while found:
        key = found.pop()
        statics.demanded[key] = by_key[key]
        found += [caller for caller, called in calls.items() if key in called and caller not in statics.demanded]
    statics.relations = set(statics.relations) - statics.demanded.keys()
    statics.conditions = {key: rules for key, rules in statics.conditions.items() if key not in statics.demanded}


def _list_reached(calls: Mapping[Key, set[Key]], key: Key) -> set[Key]:
    """Return the predicates that rules for a predicate call, and those that these call."""
    reached, pending = set[Key](), [key]
    while pending:
        new = calls.get(pending.pop(), set()) - reached
        reached |= new
        pending += new
    return reached


def _check_recursion(statics: Statics, key: Key, loop: Collection[Key]) -> None:
    """Check that each rule for a condition that calls one of its loop takes a list apart. Raises: EleRefused."""
    for rule in statics.conditions[key]:
        is_inner = any(_predicate_key(goal) in loop for goal in _list_atoms(rule.body))
        if is_inner and not any(isinstance(argument, ListTerm) and argument.tail is not None for argument in rule.head.args):
            expected = (
                "a list in the head, such as [X|T]; rules that bind their variables by themselves; over the background, "
                "a CONSTRUCT ... INTO BACKGROUND of EP-SPARQL"
            )
            refuse(f"the condition {key[0]}/{key[1]} is recursive", rule.span, statics.text, expected)


def _predicate_key(goal: Struct) -> Key:
    return goal.name, len(goal.args)


def _list_atoms(body: Term | None) -> Iterator[Struct]:
    """Yield the atoms of a body, also those inside `;`, `->`, `\\+` and findall."""
    pending = [] if body is None else [body]
    while pending:
        atom = as_struct(pending.pop())
        if atom is not None:
            if atom.name in (",", ";", "->", "\\+", "not"):
                pending += atom.args
            elif (atom.name, len(atom.args)) == ("findall", 3):
                pending.append(atom.args[1])
            else:
                yield atom


@dataclass(slots=True)
class _Closure:
    """Evaluates relations stratum by stratum, each by rounds that start from the facts that are new."""

    program: Program
    statics: Statics
    rules: dict[Key, list[StaticRule]]
    rows: dict[Key, dict[Row, None]] = field(default_factory=dict)
    _facts: int = 0
    _news: dict[Key, list[Row]] = field(default_factory=dict)
    _indexes: dict[tuple[Key, tuple[int, ...]], tuple[int, dict[Row, list[Row]]]] = field(default_factory=dict)

    def close(self) -> None:
        self.rows = {key: {} for key in self.rules}
        for component in self._strata():
            self._close_component(component)

    def _strata(self) -> list[list[Key]]:
        """Return the relations in an order in which each comes after those that it calls.

        Raises EleRefused for a cycle through negation.
        """
        calls = {
            key: {_predicate_key(atom) for rule in rules for atom in _list_atoms(rule.body)} & self.rules.keys() for key, rules in self.rules.items()
        }
        reach = {key: _reached(key, calls) for key in calls}
        for key, rules in self.rules.items():
            for rule in rules:
                for goal in self._negated(rule.body):
                    if _predicate_key(goal) in reach and key in reach[_predicate_key(goal)] | {_predicate_key(goal)}:
                        expected = "rules without a cycle through \\+, -> and findall"
                        refuse(f"{goal.indicator} depends on its own negation", rule.span, self.program.text, expected)
        components: dict[frozenset[Key], list[Key]] = {}
        for key in calls:
            component = frozenset({key} | {other for other in reach[key] if key in reach[other]})
            components.setdefault(component, sorted(component))
        return [
            component for _, component in sorted(components.items(), key=lambda item: len(set().union(*(reach[key] for key in item[0])) | item[0]))
        ]

    def _negated(self, body: Term | None) -> Iterator[Struct]:
        pending = [] if body is None else [body]
        while pending:
            atom = as_struct(pending.pop())
            if atom is None:
                continue
            if atom.name in ("\\+", "not", "->"):
                yield from _list_atoms(atom.args[0])
                pending += atom.args[1:]
            elif atom.name in (",", ";"):
                pending += atom.args
            elif (atom.name, len(atom.args)) == ("findall", 3):
                yield from _list_atoms(atom.args[1])

    def _close_component(self, component: list[Key]) -> None:
        """Close relations that call each other, by rounds: after the first, a rule starts from the facts that the
        round before has found.
        """
        plans = [(key, rule, self._plan(rule, set(component))) for key in component for rule in self.rules[key]]
        news = {key: self._add_rows(key, [(rule, goals) for own, rule, (goals, _) in plans if own == key]) for key in component}
        while any(news.values()):
            self._news, before = news, news
            news = {key: [] for key in component}
            for key, rule, (_, starts) in plans:
                for start, rest in starts:
                    if isinstance(start, Struct) and not before[_predicate_key(start)]:
                        continue
                    news[key] += self._add_rows(key, [(rule, [start, *rest])], fresh=True)
        self._news = {}

    def _plan(self, rule: StaticRule, component: set[Key]) -> tuple[list[Term], list[tuple[Term, list[Term]]]]:
        """Return a rule's goals in order, and each goal that a round may start from, with the rest in order."""
        goals = [] if rule.body is None else self.statics.expand(rule.body)
        starts: list[tuple[Term, list[Term]]] = []
        for k, goal in enumerate(goals):
            atom = as_struct(goal)
            assert atom is not None
            if _predicate_key(atom) in component:
                rest = self.statics.order([each for j, each in enumerate(goals) if j != k], variables_of(goal))[0]
                starts.append((atom, rest))
            elif atom.name in (";", ",", "->") and any(_predicate_key(each) in component for each in _list_atoms(atom)):
                starts.append((Name("true", atom.span), self.statics.order(goals, set())[0]))
        return self.statics.order(goals, set())[0], starts

    def _add_rows(self, key: Key, plans: list[tuple[StaticRule, list[Term]]], *, fresh: bool = False) -> list[Row]:
        """Add the facts that rules give; return the new ones. If `fresh`, the first goal looks at the news alone."""
        found = []
        for rule, goals in plans:
            for answers in list(self._solve_new(goals) if fresh else self._solve(goals, {})):
                row = self._head_row(rule, answers)
                if row is not None and row not in self.rows[key]:
                    self.rows[key][row] = None
                    found.append(row)
                    self._facts += 1
                    if self._facts > MOST_FACTS:
                        refuse(f"{rule.head.indicator} grows beyond {MOST_FACTS:,} facts", rule.span, self.program.text, "rules that come to an end")
        return found

    def _solve_new(self, goals: list[Term]) -> Iterator[Answers]:
        """Solve goals of which the first is matched with the facts of the round before alone."""
        first = as_struct(goals[0])
        assert first is not None
        if (first.name, len(first.args)) == ("true", 0):
            yield from self._solve(goals[1:], {})
            return
        for row in self._news[_predicate_key(first)]:
            self.statics.spend(1, first)
            found = self._match_row(first, row, {})
            if found is not None:
                yield from self._solve(goals[1:], found)

    def _head_row(self, rule: StaticRule, answers: Answers) -> Row | None:
        row = list[RdfTerm]()
        for argument in rule.head.args:
            if is_expression(argument):
                value = evaluate(argument, answers)
                if value is None:
                    return None
                row.append(literal_of_value(value))
            else:
                try:
                    row.append(self._term(argument, answers))
                except NoList:
                    return None
        return tuple(row)

    def _term(self, term: Term, answers: Answers) -> RdfTerm:
        """Return the constant that a term is under answers that bind its variables. Raises: EleRefused if it is too long."""
        if isinstance(term, VariableTerm):
            return answers[term.name]
        if not variables_of(term):
            return ground_term(term, self.program)
        found: RdfTerm
        if isinstance(term, Struct):
            found = struct_literal(term.name, [self._term(part, answers) for part in term.args])
        else:
            assert isinstance(term, ListTerm)
            tail = () if term.tail is None else list_items(answers[term.tail.name])
            found = list_literal([*(self._term(part, answers) for part in term.items), *tail])
        return self._limit_length(found, term)

    def _limit_length(self, value: RdfTerm, term: Term) -> RdfTerm:
        """Count the steps to write a list or struct, and return it. Raises: EleRefused if it is too long or too deep.

        An order of lists takes steps by the square of their depth.
        """
        if isinstance(value, Literal) and value.datatype == TERM:
            self.statics.spend(len(value.lexical) // STEP_CHARACTERS, term)
            expected = "shorter lists, or rules that come to an end"
            if len(value.lexical) > MOST_CHARACTERS:
                refuse(f"a list or struct grows beyond {MOST_CHARACTERS:,} characters", term.span, self.program.text, expected)
            if value.lexical.count("[") + value.lexical.count("(") > MOST_BRACKETS and nesting(value.lexical) > MOST_BRACKETS:
                refuse(f"a list or struct grows beyond {MOST_BRACKETS} brackets in one another", term.span, self.program.text, expected)
        return value

    # ------------------------------------------------------------ goals
    def _solve(self, goals: list[Term], answers: Answers) -> Iterator[Answers]:
        if not goals:
            yield answers
            return
        try:
            for found in self._solve_one(goals[0], answers):
                yield from self._solve(goals[1:], found)
        except NoList:  # [X|Tail] of a Tail that is no list equals nothing
            return

    def _solve_one(self, goal: Term, answers: Answers) -> Iterator[Answers]:
        atom = as_struct(goal)
        assert atom is not None
        match atom.name, len(atom.args):
            case key if key in self.rows:
                yield from self._match(key, atom, answers)
            case (("," | ";"), 2) | ("->", 3):
                yield from self._solve_branches(atom, answers)
            case "\\+", 1:
                if next(self._solve_inner(atom.args[0], answers), None) is None:
                    yield answers
            case "findall", 3:
                yield from self._unify(atom.args[2], self._collect(atom, answers), answers)
            case key if key in LIST_FUNCTIONS:
                yield from self._compute_list(atom, answers)
            case (("member" | "memberchk"), 2):
                for item in dict.fromkeys(_items_or_none(self._term(atom.args[1], answers))):
                    self.statics.spend(1, atom)
                    yield from self._unify(atom.args[0], item, answers)
            case name, 2 if name in COMPARISONS:
                if compare(name, atom, answers):
                    yield answers
            case "is", 2:
                value = evaluate(atom.args[1], answers)
                if value is not None:
                    yield from self._unify(atom.args[0], literal_of_value(value), answers)
            case ("min" | "max") as name, 3:
                value = evaluate(Struct(name, atom.args[:2], atom.span), answers)
                if value is not None:
                    yield from self._unify(atom.args[2], literal_of_value(value), answers)
            case "=", 2:
                left, right = atom.args
                left, right = (right, left) if variables_of(left) - answers.keys() else (left, right)
                yield from self._unify(right, self._term(left, answers), answers)
            case ("==" | "\\==" | "\\=") as name, 2:
                if (self._term(atom.args[0], answers) == self._term(atom.args[1], answers)) == (name == "=="):
                    yield answers
            case "true", 0:
                yield answers
            case "fail", 0:
                return
            case _:
                refuse(f"{atom.indicator} needs an event, which a static rule has none of", atom.span, self.program.text, "goals over facts")

    def _solve_inner(self, goal: Term, answers: Answers) -> Iterator[Answers]:
        return self._solve(self.statics.order(list_conjuncts(goal), set(answers))[0], answers)

    def _solve_branches(self, atom: Struct, answers: Answers) -> Iterator[Answers]:
        """Solve `,`, `;` and `->`: of the latter, the second branch counts if its condition has no answer."""
        branches = list_branches(atom)
        if atom.name == "->":
            branches = branches[:1] if next(self._solve_inner(atom.args[0], answers), None) is not None else branches[1:]
        for branch in branches:
            yield from self._solve(self.statics.order(branch, set(answers))[0], answers)

    def _collect(self, atom: Struct, answers: Answers) -> RdfTerm:
        """Return the list of findall: its template for each answer of its goal, in the standard order."""
        template, goal, _ = atom.args
        return self._limit_length(ordered_list(found for _, found in self.list_answers(template, goal, answers)), atom)

    def list_answers(self, template: Term, goal: Term, answers: Answers) -> Iterator[tuple[Answers, RdfTerm]]:
        """Yield each answer of a goal once, with what a template is then. Raises EleRefused."""
        names, seen = sorted(variables_of(template) | variables_of(goal)), set[tuple[RdfTerm | None, ...]]()
        for found in self._solve_inner(goal, answers):
            answer = tuple(found.get(name) for name in names)
            if answer not in seen:
                seen.add(answer)
                for variable in list_variables(template):
                    if variable.name not in found:
                        message = f"variable {variable.name.partition('~')[0]} in findall is not bound"
                        refuse(message, variable.span, self.program.text, "a variable of a relation")
                with suppress(NoList):  # a list before what is no list is no value
                    yield found, self._term(template, found)

    def _compute_list(self, atom: Struct, answers: Answers) -> Iterator[Answers]:
        places, operation = LIST_FUNCTIONS[atom.name, len(atom.args)]
        try:
            value = operation(*(self._term(atom.args[k], answers) for k in places))
        except (ArithmeticError, ValueError):
            return
        yield from self._unify(atom.args[len(places)], self._limit_length(value, atom), answers)

    def _unify(self, term: Term, value: RdfTerm, answers: Answers) -> Iterator[Answers]:
        found = self._take_apart(term, value, answers)
        if found is not None:
            yield found

    def _take_apart(self, term: Term, value: RdfTerm, answers: Answers) -> Answers | None:
        """Return the answers with the variables of a term, so that the term is a constant; None if it cannot be."""
        if isinstance(term, VariableTerm) and term.name not in answers:
            return {**answers, term.name: value}
        if variables_of(term) <= answers.keys():
            return answers if self._term(term, answers) == value else None
        assert isinstance(term, Struct | ListTerm)
        parts = _parts_of(value, term)
        if parts is None:
            return None
        rest: Answers | None = answers
        for part, each in zip(term.args if isinstance(term, Struct) else _with_tail(term), parts, strict=True):
            rest = None if rest is None else self._take_apart(part, each, rest)
        return rest

    def _match(self, key: Key, atom: Struct, answers: Answers) -> Iterator[Answers]:
        known = tuple(k for k, argument in enumerate(atom.args) if not isinstance(argument, VariableTerm) or argument.name in answers)
        wanted = tuple(self._term(atom.args[k], answers) for k in known)
        for row in self._index(key, known).get(wanted, ()):
            self.statics.spend(1, atom)
            found = self._match_row(atom, row, answers)
            if found is not None:
                yield found

    def _match_row(self, atom: Struct, row: Row, answers: Answers) -> Answers | None:
        """Return the answers with the variables of an atom that a row binds; None if it does not fit."""
        found = dict(answers)
        for argument, value in zip(atom.args, row, strict=True):
            if isinstance(argument, VariableTerm):
                if found.setdefault(argument.name, value) != value:
                    return None
            elif ground_term(argument, self.program) != value:
                return None
        return found

    def _index(self, key: Key, known: tuple[int, ...]) -> dict[Row, list[Row]]:
        size, index = self._indexes.get((key, known), (0, {}))
        rows = self.rows[key]
        if size < len(rows):
            for row in islice(rows, size, None):
                index.setdefault(tuple(row[k] for k in known), []).append(row)
            self._indexes[key, known] = len(rows), index
        return index


def _with_tail(term: ListTerm) -> tuple[Term, ...]:
    return term.items if term.tail is None else (*term.items, term.tail)


def _parts_of(value: RdfTerm, term: Struct | ListTerm) -> Sequence[RdfTerm] | None:
    """Return what the parts of a term stand for if the term is a value; None if it cannot be."""
    if not isinstance(value, Literal):
        return None
    if isinstance(term, Struct) and term.name == "datime":
        return instant_parts(value, len(term.args))
    name, parts = (read_parts(value.lexical) if value.datatype == TERM else None) or ("", ())
    if isinstance(term, Struct):
        return parts if (name, len(parts)) == (term.name, len(term.args)) else None
    if name != "." or len(parts) < len(term.items) or (term.tail is None and len(parts) > len(term.items)):
        return None
    return parts if term.tail is None else (*parts[: len(term.items)], list_literal(parts[len(term.items) :]))


def _items_or_none(term: RdfTerm) -> Sequence[RdfTerm]:
    """Return the items of a list, and none of anything else."""
    try:
        return list_items(term)
    except NoList:
        return ()


def _reached(key: Key, calls: Mapping[Key, set[Key]]) -> set[Key]:
    found, pending = set[Key](), [key]
    while pending:
        for called in calls[pending.pop()]:
            if called not in found:
                found.add(called)
                pending.append(called)
    return found


def evaluate(term: Term, answers: Answers) -> Value | None:
    """Return the value of an arithmetic expression; None for an error."""
    if isinstance(term, VariableTerm):
        return value_of_literal(answers.get(term.name))
    atom = as_struct(term)
    if atom is None:
        return getattr(term, "value", None)
    operation = OPERATIONS.get((atom.name, len(atom.args)))
    operands = [evaluate(part, answers) for part in atom.args]
    if operation is None or any(value is None for value in operands):
        return None
    try:
        return operation(*operands)
    except (ArithmeticError, ValueError):
        return None


_HOLDS: Mapping[str, Callable[[Value, Value], object]] = {
    "<": operator.lt, ">": operator.gt, "=<": operator.le, ">=": operator.ge, "=:=": operator.eq, "=\\=": operator.ne,
}  # fmt: skip


def compare(name: str, atom: Struct, answers: Answers) -> bool:
    """Return whether a comparison of two numbers holds; it is false for anything else."""
    left, right = (evaluate(part, answers) for part in atom.args)
    if left is None or right is None:
        return False
    return bool(_HOLDS[name](left, right))

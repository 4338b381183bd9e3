"""Random programs mean what their translations to EP-SPARQL mean: both run in one engine, and give the same events on
the same intervals.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import epsparql
from epsparql.etalis.parser.program import EventRule, read_program
from epsparql.etalis.parser.syntax import Num, Struct, Term, VariableTerm, as_struct, list_variables
from epsparql.etalis.translator import query_text
from tests.etalis.naive import Event
from tests.etalis.strategies import aggregates, occurrences, patterns, streams
from tests.soak import examples
from tests.support.ntriples import parse_statement
from tests.support.run_both import block, entries, in_order, run

_OPERATORS = {
    ":seq": "SEQ", ":and": "AND", ":par": "PAR", ":equals": "EQUALS", ":meets": "MEETS", ":during": "DURING", ":starts": "STARTS", ":finishes": "FINISHES",
}  # fmt: skip
_COMPARISONS = {"<": "<", "=<": "<=", "=:=": "=", "=\\=": "!="}
_DERIVED = "<urn:t:event> <urn:t:{}> {}"
"""An event that a rule derives is one triple on its interval, so that equal events are one."""
READER = "SELECT ?kind ?argument FROM STREAM <urn:t:out> WHERE { ?node a ?kind ; <urn:ele:arg1> ?argument }"
Found = set[tuple[str, str, int, int]]
"""The name, argument in N-Triples text, start and end of events."""


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Return rules of which one reads another's events, or its own."""
    first, second = draw(patterns(("a", "b", "c"))), draw(patterns(("a", "b", "d")))
    recursion = draw(st.sampled_from(["", "d(X) <- d(X) seq c(X).\n", "d(X) <- (d(X) seq c(_)) cnot a(X).\n"]))
    counted = draw(st.just("") | st.builds("f(V) <- {}.\n".format, aggregates(("a", "b", "d"), ("count", "sum(X)", "min(X)", "max(X + 1)"))))
    return f"d(X + 1) <- {first}.\n{recursion}e(X) <- {second}.\n{counted}"


@dataclass
class _Text:
    """Writes patterns as groups of EP-SPARQL; `derived` are the predicates that rules derive."""

    derived: frozenset[str]
    numbers: Iterator[int] = field(default_factory=count)

    def rule(self, rule: EventRule) -> str:
        """Return the query that derives the events of a rule."""
        (argument,) = rule.head.args
        value = self.value(argument)
        return f"CONSTRUCT {{ {_DERIVED.format(rule.head.name, '?value')} }} WHERE {{ {{ {self.group(rule.body)} }} BIND({value} AS ?value) }}"

    def group(self, term: Term) -> str:
        match term:
            case Struct(":seq", (left, Struct(":star_times", (right,)))):
                mine = " ".join(sorted({f"?{v.name}" for v in list_variables(left)}))
                return f"{{ {self.group(left)} UNION {{ SELECT {mine} WHERE {{ {self.group(left)} SEQ {self.group(right)} }} }} }}"
            case Struct(":seq", (left, Struct("aggregate") as right)):
                return self.aggregate(left, right)
            case Struct("aggregate"):
                return self.aggregate(None, term)
            case Struct(":or", (left, right)):
                return f"{{ {self.group(left)} UNION {self.group(right)} }}"
            case Struct(":within", (inner, Num(limit))):
                return f"{{ {self.group(inner)} FILTER(getDURATION() <= 'PT{limit}S'^^<http://www.w3.org/2001/XMLSchema#duration>) }}"
            case Struct(":ntimes", (inner, Num(times))):
                return "{ " + " SEQ ".join(self.group(inner) for _ in range(int(times))) + " }"
            case Struct(":where", (inner, goal)):
                return f"{{ {self.group(inner)} FILTER({self.condition(goal)}) }}"
            case Struct(":cnot", (Struct(":seq", (left, right)), absent)):
                return f"{{ {self.group(left)} SEQ {self.group(right)} WITHOUT {self.group(absent)} }}"
            case Struct(":fnot", (left, absent)):
                return f"{{ {self.group(left)} FILTER NOT EXISTS {self.group(absent)} }}"
            case Struct(name, (left, right)) if name in _OPERATORS:
                return f"{{ {self.group(left)} {_OPERATORS[name]} {self.group(right)} }}"
            case _:
                return self.atom(term)

    def aggregate(self, left: Term | None, term: Struct) -> str:
        """Return the groups of a sub-SELECT: without a key, those of a constant, so that no empty group reports."""
        function, pattern, target, *options = term.args
        given = {option.name: option.args[0] for option in options if isinstance(option, Struct)}
        text, atom = self.group(pattern), as_struct(function)
        inner = f"{{ SELECT DISTINCT {' '.join(sorted(set(re.findall(r'[?](?!node)[A-Za-z0-9]+', text))))} WHERE {text} }}"
        assert atom is not None
        whole = f"COUNT(*) AS {self.value(target)}" if not atom.args else f"{atom.name.upper()}({self.value(atom.args[0])}) AS {self.value(target)}"
        window = f"ROWS {self.value(given['rows'])}" if "rows" in given else f"RANGE 'PT{self.value(given['range'])}S'" if "range" in given else ""
        window = f" WINDOW [{window}]" if window else ""
        keys = ["?X"] if "group_by" in given else []
        if left is None:
            return f"{{ SELECT {' '.join(keys)} ({whole}) WHERE {{ {inner} BIND(1 AS ?one) }} GROUP BY ?one {' '.join(keys)}{window} }}"
        mine = sorted({f"?{v.name}" for v in list_variables(left)})
        times = "BIND(getSTARTTIME() AS ?from) BIND(getENDTIME() AS ?to)"
        pairs = f"{{ {self.group(left)} {times} }} SEQ {{ {inner} BIND(getSTARTTIME() AS ?began) }}"
        by = " ".join(dict.fromkeys((*mine, *keys)))
        groups = f"{{ SELECT {by} ({whole}) WHERE {{ {pairs} }} GROUP BY {by} ?from ?to{window} }}"
        zero = f"{{ {self.group(left)} BIND(0 AS {self.value(target)}) }}"
        return f"{{ {groups} UNION {zero} }}" if not keys and atom.name in ("count", "sum") else groups

    def atom(self, term: Term) -> str:
        atom = as_struct(term)
        assert atom is not None
        value = self.value(atom.args[0])
        if atom.name in self.derived:
            return f"{{ {_DERIVED.format(atom.name, value)} }}"
        return f"{{ ?node{next(self.numbers)} a <urn:ele:{atom.name}> ; <urn:ele:arg1> {value} }}"

    def condition(self, goal: Term) -> str:
        assert isinstance(goal, Struct)
        parts = goal.args
        if goal.name == "\\+":
            return f"!({self.condition(parts[0])})"
        if goal.name == ";":
            return f"({self.condition(parts[0])} || {self.condition(parts[1])})"
        return f"{self.value(parts[0])} {_COMPARISONS[goal.name]} {self.value(parts[1])}"

    def value(self, term: Term) -> str:
        match term:
            case VariableTerm(name) if name.startswith("_"):
                return f"?any{next(self.numbers)}"
            case VariableTerm(name):
                return f"?{name}"
            case Num(number):
                return str(number)
            case Struct("+", (left, right)):
                return f"({self.value(left)} + {self.value(right)})"
        raise AssertionError(term)


def translated(program: str) -> dict[str, str]:
    """Return the queries that stand for a program's rules."""
    rules = read_program(program).rules
    text = _Text(frozenset(rule.head.name for rule in rules))
    return {f"{rule.head.name}{k}": text.rule(rule) for k, rule in enumerate(rules)}


@settings(max_examples=examples(300, 20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs(), events=streams(), writes=st.booleans())
def test_programs_and_their_translations(program: str, events: list[Event], writes: bool) -> None:
    """Programs that write a stream write what they report."""
    program = f"into_stream('urn:t:out').\n{program}" if writes else program
    try:
        text, _ = query_text(program)
        epsparql.parse(text)
    except epsparql.QueryError as refusal:
        assume("on one side of an or alone" not in str(refusal) and "in every alternative" not in str(refusal))
        raise
    queries = translated(program)
    sent = {"default": occurrences(events)}
    ran = run([block(entries({"program": text, **queries, "reader": READER}, sent, in_order(sent), ()))])
    assert not ran.refused
    of_program, of_queries, of_reader = Found(), Found(), Found()
    for query, _, start, end, values in ran.emitted:
        if query in ("program", "reader"):
            name, argument = values
            assert name is not None
            assert argument is not None
            found = of_program if query == "program" else of_reader
            found.add((name.removeprefix("<urn:ele:").removesuffix(">"), argument, start, end))
        else:
            for statement in values:
                assert statement is not None
                of_queries.add((query[0], str(parse_statement(statement)[2]), start, end))
    assert of_reader == (of_program if writes else set())
    assert of_program == of_queries, "\n".join([program, *queries.values()])

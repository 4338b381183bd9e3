"""A plan as text: all that the planner decides on, with names for columns, terms and operators. What is as by default
is left out.

Lines that start with `# ` before a query say what it is planned over: `# background :s :p :o .`, `# many :p 1001`
triples of a predicate, `# rates :p=7 :q=1`, `# policy recent`, `# message :p :part`, `# without filters`, `# default
unnamed`; and `# copy me` shows the first shared part by itself, too.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from engine.aggregation.rsp_window_report import ReportCollector
from engine.background.fact_store import FactIndex
from engine.dictionary.term_dictionary import TermTable
from engine.errors import Refusal
from engine.expressions.nondeterministic import Naming
from engine.kernel.state import layout as c
from engine.messages import MessageKey
from engine.network.network import Network
from engine.partitioning import partition
from engine.physical_plan.common_subplans import copy_subplan, find_subplans
from engine.physical_plan.plan import Fragment, Inquiry, Node, RowRange
from engine.physical_plan.plan_signature import sign_plan
from engine.physical_plan.recipes import make_recipe
from engine.planner import PlanOptions, plan_query
from engine.planner.builder.join_order import rates_given
from engine.planner.reach import Asked, find_reaches
from engine.rewrite import name_own_stream, rewrite_query
from engine.rewrite.operands import find_operands, select_first_operands
from engine.triples.quads import quads_of
from epsparql import algebra as a
from epsparql import parse
from epsparql.renderer.queries import render
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import RDF, XSD, Variable
from tests.epsparql.golden import write

EXAMPLE = "http://e/"
KINDS = [
    "JOIN", "OUT", "PASS", "EXTEND", "OPTIONAL", "OPTIONALSEQ", "EQUALSOPTIONAL", "MINUS", "EXISTS", "NOTEXISTS", "WITHOUT", "WITHOUTFOR",
    "DROPPED", "MOVE", "FIRST", "MARK", "COLLECT", "RECENT", "CHRONOLOGICAL", "FIND", "EARLIEST", "LATEST", "ONCE", "INSTANCES",
]  # fmt: skip
CODES = [
    "STOP", "NOT", "PUSH_VAR", "PUSH_CONST", "PUSH_DURATION", "PUSH_TERM", "PUSH_KNOWN", "BOUND_VAR", "ASK_HOST", "LT", "LE", "GT", "GE",
    "EQ", "NE", "ADD", "SUB", "MUL", "AND", "OR", "SAME", "IDENTICAL", "ELSE",
]  # fmt: skip
RELATIONS = ["ANY", "SEQ", "EQUALS", "MEETS", "DURING", "STARTS", "FINISHES", "OVERLAPS", "PAR"]
SIDES = ["left", "right", "blocker", "emit"]
BARE = re.compile(r":(\w+)")
_SHORTER = (
    (re.compile(r"Var\(variable=(Variable\(name='[^']*'\))\)"), r"\1"),
    (re.compile(r"Variable\(name='([^']*)'\)"), r"?\1"),
    (re.compile(r"<\w+\.(\w+): '[^']*'>"), r"\1"),
    (re.compile(r"\b[a-z_]+=|, None|" + re.escape(XSD)), ""),
)
"""These shorten what a dataclass says of itself."""
_DIRECTIVE = re.compile(r"^# (\w+) (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Surroundings:
    """Holds what a query is planned over, by the directives before it."""

    directives: Sequence[tuple[str, str]]

    def all_of(self, name: str) -> list[str]:
        return [words for directive, words in self.directives if directive == name]

    @cached_property
    def quads(self) -> str:
        lines = [BARE.sub(rf"<{EXAMPLE}\1>", words) for words in self.all_of("background")]
        for words in self.all_of("many"):
            predicate, n = BARE.sub(rf"<{EXAMPLE}\1>", words).split()
            lines += [f"<{EXAMPLE}s{k}> {predicate} <{EXAMPLE}o{k % 7}> ." for k in range(int(n))]
        return "".join(f"{line}\n" for line in lines)

    @property
    def policy(self) -> str:
        return next(iter(self.all_of("policy")), UNRESTRICTED)

    @property
    def rates(self) -> dict[str, int]:
        return {EXAMPLE + name: int(n) for words in self.all_of("rates") for name, n in re.findall(r":(\w+)=(\d+)", words)}

    @property
    def without(self) -> list[str]:
        return [word for words in self.all_of("without") for word in words.split()]

    @property
    def declared(self) -> dict[str, MessageKey]:
        names = [EXAMPLE + name for words in self.all_of("message") for name in BARE.findall(words)]
        return {a.DEFAULT_STREAM: MessageKey(names[0], tuple(names[1:]))} if names else {}


def show_query(text: str) -> str:
    """Return the plan of a query, how far it looks back, and its partition key."""
    given = Surroundings(_DIRECTIVE.findall(text))
    query = parse(text).query
    assert not isinstance(query, a.BackgroundRule)
    terms = TermTable()
    known, network = FactIndex.from_quads(quads_of(given.quads), terms), Network(terms, without=frozenset(given.without))
    taken = rewrite_query(name_own_stream(query, 7), next(iter(given.all_of("default")), "all"), given.policy, given.without)
    assert not isinstance(taken, a.BackgroundRule)
    names = network.planning.make_names(known, PlanOptions(Naming("q", 1), given.policy, rates_given(given.rates)))
    try:
        fragment = plan_query(taken, names)
    except Refusal as refusal:
        return f"refused: {refusal} ({refusal.word})"
    reach = find_reaches([Asked(taken, given.policy)], names.matches)[0]
    apart = partition(query, given.policy, given.declared, reach.settled)
    back = reach.reason if reach.micros is None else micros(reach.micros)
    head = [
        f"form {sign_plan(fragment)}",
        f"reach {back}{' opens' if reach.opens else ''}",
        f"partition {apart.key or 'one'}: {apart.reason}",
    ]
    streams = network.slots.streams.numbers
    operands = find_operands(taken).patterns if not (isinstance(taken, a.Select) and taken.program) else ()
    firsts = [(n, select_first_operands(taken, n)) for n in range(len(operands) + 1)]
    head += [f"first {n}: {' '.join(render(first).split())}" for n, first in firsts if first is not None]
    subplans = find_subplans(fragment)
    tail = [f"shared {root}: {each.digest.hex()} nodes {each.nodes} columns {each.columns} {micros(each.memory)}" for root, each in subplans.items()]
    for collector in fragment.collectors.values():
        if isinstance(collector, ReportCollector):  # what is evaluated over the contents of windows
            tail += [f"report {line}" for line in PlanText(plan_query(collector._query, names), terms, streams).lines()]
    if given.all_of("copy") and subplans:
        copied = copy_subplan(fragment, subplans[min(subplans)], terms.intern)
        tail += [f"copy {line}" for line in PlanText(copied, terms, streams).lines()]
    return "\n".join(head + PlanText(fragment, terms, streams).lines() + tail)


def micros(n: int) -> str:
    """Return a duration in µs as people read it."""
    special = {c.FOREVER: "ever", c.FOREVER - 1: "lifted", c.NEVER: "never"}
    return special.get(n) or (f"{n / 1e6:g}s" if n % 1000 == 0 else str(n))


@dataclass(frozen=True)
class PlanText:
    """Writes the parts of one plan."""

    fragment: Fragment
    terms: TermTable
    streams: Mapping[str, int]

    def lines(self) -> list[str]:
        plan = self.fragment
        found = [f"columns {' '.join(self.column(number) for number in plan.columns.values())}"]
        found += [f"{number} {self.node(number, node)}" for number, node in enumerate(plan.nodes) if node.edges.n or number not in plan.sets]
        for scan in plan.scans:
            sought = [self.term(number) for number in (scan.subject, scan.predicate, scan.object)]
            takes = self.names([column for column in scan.columns if column != c.NONE])
            graph = "" if scan.graph == c.NONE else f" in {self.term(scan.graph)}"
            at = [str(k) for k, column in enumerate(scan.columns) if column != c.NONE]
            carried = "" if scan.graph_column == c.NONE else f" graph {self.column(scan.graph_column)}"
            stream = "" if self.stream(scan.stream) == a.DEFAULT_STREAM else f" {self.stream(scan.stream)}"
            found.append(f"scan{stream} {' '.join(sought)}{graph} parts {''.join(at)} to {takes}{carried} -> {target((scan.node, scan.side))}")
        for fact in plan.facts:
            rows = "; ".join(" ".join(map(self.term, row)) for row in fact.rows[:3].tolist())
            source = "" if fact.source is None else f" of {len(fact.source)}"
            if len(fact.rows) or not fact.triple:
                kind = "triples" if fact.triple else "rows"
                found.append(f"{kind} {len(fact.rows)}{source} [{rows}] to {self.names(fact.columns)} -> {target((fact.node, fact.side))}")
        for node, lookup in plan.lookups.items():
            found.append(f"lookup {node} " + ("copied" if lookup is None else f"{len(lookup.source)} parts {lookup.parts} keys {lookup.keys}"))
        found += [f"collector {node} {self.collector(collector)}" for node, collector in plan.collectors.items()]
        found += [f"template {' '.join(map(self.part, triple[:3]))} {self.stream(triple.stream)}" for triple in plan.templates]
        found += [f"unit {each}".replace("(nodes=", "(").replace("range", "") for each in plan.units]
        found += [f"path {each}" for each in plan.paths]
        found += [f"lasting {key}: {each.decided} {self.names(sorted(each.columns))}" for key, each in plan.lasting.items()]
        found += [f"read {pattern}: {n} {use}" for (pattern, use), n in plan.reads.items()]
        rest = {
            "deciding": plan.deciding, "strict": sorted(plan.strict), "forgetful": sorted(plan.forgetful), "sets": plan.sets, "timed": plan.timed,
            "rules": plan.rules, "last": plan.last, "shape": plan.shape, "pairs": plan.pairs, "segments": plan.segments, "stages": plan.stages,
        }  # fmt: skip
        found += [f"{name} {value}" for name, value in rest.items() if value not in (None, [], {}, {(0, c.LEFT): (0, 0)})]
        return found

    def node(self, number: int, node: Node) -> str:
        words = [KINDS[node.kind]]
        for field in fields(Node)[1:]:
            value = getattr(node, field.name)
            if value != field.default and not (isinstance(value, RowRange) and value.n == 0) and field.name not in ("edges", "ask"):
                words.append(f"{field.name} {self.field(field.name, value)}")
        if node.kind == c.EXTEND:
            words.append(f"asks {self.inquiry(self.fragment.inquiries[node.ask], node.ask)}")
        readers = self.fragment.edges_of(number)
        return " ".join(words) + (f" -> {' '.join(map(target, readers))}" if readers else "")

    def field(self, name: str, value: Any) -> str:
        match name:
            case "key" | "rest" | "key2" | "rest2" | "hide" | "look":
                return f"({self.names(self.fragment.columns_at(value))})"
            case "relation":
                return str(RELATIONS[value])
            case "span" | "life_left" | "life_right" | "life_blocker":
                return micros(value)
            case "filter" | "condition":
                return {c.TIMED_ONLY: "timed", c.TIMELESS_ONLY: "timeless"}.get(value) or self.condition(value)
            case "column":
                return self.column(value)
            case "moves":
                return "(" + " ".join(f"{self.part(-source)}>{self.part(-column)}" for source, column in rows_of(self.fragment.moves, value)) + ")"
            case "marks":
                return f"({' '.join(map(target, rows_of(self.fragment.edges, value)))})"
            case "templates":
                return str(value.n)
        return f"{value:d}"

    def condition(self, at: int) -> str:
        ops = list[str]()
        for op, argument in self.fragment.code[at + 1 :]:
            if op == c.STOP:
                break
            ops.append(CODES[op % c.OPERATIONS] + self.argument(op, argument))
        asked = self.fragment.code[at][0]
        return f"[{self.inquiry(self.fragment.inquiries[asked], asked)}: {' '.join(ops)}]"

    def argument(self, op: int, argument: int) -> str:
        if op in (c.PUSH_VAR, c.PUSH_TERM, c.BOUND_VAR) or op // c.OPERATIONS == 1:
            return f"({self.column(argument)})"
        if op == c.PUSH_CONST or op // c.OPERATIONS == 2:
            value, slack = self.fragment.consts[argument]
            return f"({value:g}{f'~{slack:.1g}' if slack else ''})"
        return f"({self.term(argument)})" if op == c.PUSH_KNOWN else str(argument or "")

    def inquiry(self, inquiry: Inquiry, number: int) -> str:
        rest = " ".join(part for part in ("timed" * inquiry.timed, inquiry.fresh or "", inquiry.site, " ".join(map(str, inquiry.solution))) if part)
        slots = self.names(self.fragment.columns_at(self.fragment.asks[number]))
        lasts = " at its instant" if inquiry.condition is not None and not inquiry.lasts else ""
        asked = str(inquiry.expression or inquiry.condition)
        for pattern, short in _SHORTER:
            asked = pattern.sub(short, asked)
        return f"{asked} of ({slots})" + (f" {rest}" if rest else "") + lasts + show_recipe(inquiry)

    def collector(self, collector: Any) -> str:
        shown = [f"reads ({' '.join(map(str, collector.reads))}) writes ({' '.join(map(str, collector.writes))}) due {micros(collector.due())}"]
        for name in ("_visible", "_implicit", "window", "per_report", "ranked", "stands", "distinct", "_graph", "_at", "_windows"):
            if hasattr(collector, name):
                value = getattr(collector, name)
                shown.append(f"{name.strip('_')} {' '.join(map(str, value)) if isinstance(value, tuple) else value}")
        return f"{type(collector).__name__} {' '.join(shown)}"

    def names(self, columns: Iterable[int]) -> str:
        return " ".join(map(self.column, columns))

    def column(self, number: int) -> str:
        found = next((variable for variable, column in self.fragment.columns.items() if column == number), None)
        return str(found) if isinstance(found, Variable) else {c.START: "START", c.END: "END"}.get(number, str(number))

    def term(self, number: int) -> str:
        return (
            self.terms.text(number).replace(f"<{EXAMPLE}", "<:").replace(f"<{RDF}type>", "a")
            if number > 0
            else {c.NONE: "any", 0: "none", c.NAMED: "named"}.get(number, str(number))
        )

    def stream(self, number: int) -> str:
        return next(name for name, known in self.streams.items() if known == number)

    def part(self, number: int) -> str:
        """Return a term, or a column where the number is negative."""
        return self.column(-number) if number < 0 else self.term(number)


def show_recipe(inquiry: Inquiry) -> str:
    """Return what compiled code is told of a question that it answers; addresses of texts are left out."""
    cells, *texts = make_recipe(inquiry, Naming("q", 1)) or ([],)
    if not texts:
        return f" recipe {list(map(int, cells))}" if len(cells) else ""
    written = [bytes(text[:-1]).decode() for text in texts]
    places = {int(text.ctypes.data): f"text {k}" for k, text in enumerate(texts)}
    return f" recipe {[places.get(int(cell), int(cell)) for cell in cells]} {written}"


def rows_of(rows: Sequence[tuple[int, int]], chosen: RowRange) -> Sequence[tuple[int, int]]:
    return rows[chosen.first : chosen.first + chosen.n]


def target(edge: tuple[int, int]) -> str:
    return f"{edge[0]}.{SIDES[edge[1]]}"


if __name__ == "__main__":
    write("plans.txt", show_query)

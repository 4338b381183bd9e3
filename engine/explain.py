"""A query's plan for people: operators with their keys, windows, what is stored and for how long, what the host is asked."""

from dataclasses import dataclass

from engine import times
from engine.check import OPERATORS, RELATIONS
from engine.kernel import columns as c
from engine.network import Network
from engine.plan import TIMED_ONLY, plan
from engine.program import Fragment
from engine.terms import TermTable
from engine.values import Duration
from epsparql import algebra as a
from epsparql import render
from epsparql.terms import Variable


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of a plan; `inputs` are what feeds it."""

    text: str
    inputs: tuple["Step", ...]


def explain(query: a.Query) -> str:
    """The query as it was understood and the tree of its operators, outermost first."""
    network = Network(TermTable())
    fragment = plan(query, network.names(()))
    key = partition_key(query.pattern)
    lines = ["query", *(f"  {line}" for line in render(query).splitlines()), "plan"]
    lines += _drawn(_step(fragment, network, fragment.out, query), "  ", "  ")
    if key is None:
        lines.append("partition key: none, because no variable is bound by every triple pattern; one bucket")
    else:
        lines.append(f"partition key: {key}, which every triple pattern binds")
    return "\n".join(lines)


def partition_key(pattern: a.Pattern) -> Variable | None:
    """A variable that every triple pattern binds as subject or object; the first by name."""
    groups = triple_groups(pattern)
    common = frozenset.intersection(*groups) if groups else frozenset()
    return min(common, key=lambda v: v.name, default=None)


def triple_groups(pattern: a.Pattern) -> list[frozenset[Variable]]:
    """For each triple pattern the variables it binds as subject or object."""
    match pattern:
        case a.Bgp(triples):
            return [frozenset(t for t in (triple.subject, triple.object) if isinstance(t, Variable)) for triple in triples]
        case a.Filter(_, inner) | a.Extend(inner, _, _) | a.Within(inner, _):
            return triple_groups(inner)
        case a.SeqWithout(left, right, absent, _):
            return triple_groups(left) + triple_groups(right) + triple_groups(absent)
        case a.RelationJoin(_, left, right) | a.WithoutFor(left, right, _):
            return triple_groups(left) + triple_groups(right)
        case _:
            return triple_groups(pattern.left) + triple_groups(pattern.right)


def _step(fragment: Fragment, network: Network, node: int, query: a.Query) -> Step:
    sides: list[tuple[int, Step]] = []
    for other, row in enumerate(fragment.nodes):
        if row[c.EDGE_N] and fragment.edges[row[c.EDGE_AT]][0] == node:
            sides.append((fragment.edges[row[c.EDGE_AT]][1], _step(fragment, network, other, query)))
    streams = {number: name for name, number in network.streams.items()}
    for scan in fragment.alpha:
        if scan[c.A_NODE] == node:
            sides.append((scan[c.A_SIDE], Step(_scan(fragment, network, scan, streams[scan[c.A_STREAM]]), ())))
    ordered = tuple(step for _, step in sorted(sides, key=lambda pair: pair[0]))
    return Step(_operator(fragment, fragment.nodes[node], query), ordered)


def _scan(fragment: Fragment, network: Network, scan: list[int], stream: str) -> str:
    variable = {column: str(v) for v, column in fragment.columns.items()}
    texts = network.terms.texts

    def part(constant: int, column: int) -> str:
        return variable[column] if column != c.NONE else texts[constant]

    return f"scan {part(scan[c.A_S], scan[c.A_SVAR])} {part(scan[-1], scan[c.A_PVAR])} {part(scan[c.A_O], scan[c.A_OVAR])} of {stream}"


def _operator(fragment: Fragment, row: list[int], query: a.Query) -> str:
    kind = row[c.KIND]
    if kind == c.OUT:
        return _head(query)
    words = [RELATIONS[row[c.RELATION]] if kind == c.JOIN else OPERATORS[kind]]
    if kind == c.PASS:
        words = ["keep what is"]
    variable = {column: str(v) for v, column in fragment.columns.items()}
    key = [variable[column] for column in fragment.slots[row[c.KEY_AT] : row[c.KEY_AT] + row[c.KEY_N]]]
    rest = [variable[column] for column in fragment.slots[row[c.REST_AT] : row[c.REST_AT] + row[c.REST_N]]]
    if kind == c.EXTEND:
        words.append(f"of {variable[row[c.COLUMN]]} by the host")
    if key:
        words.append(f"on {' '.join(key)}")
    if rest:
        words.append(f"checking {' '.join(rest)}, which may be unbound")
    if row[c.SPAN] != c.FOREVER:
        words.append(f"within {_duration(row[c.SPAN])}")
    if row[c.FILTER] == TIMED_ONLY:
        words.append("timed only")
    elif row[c.FILTER] >= 0:
        words.append(_filtered(fragment, row[c.FILTER]))
    if row[c.CONDITION] >= 0:
        words.append("where its own filter holds")
    if kind not in (c.PASS, c.EXTEND):
        words.append(_stored(row))
    return " ".join(words)


def _head(query: a.Query) -> str:
    match query:
        case a.Select(projection=projection, distinct=distinct):
            return f"SELECT {'DISTINCT ' if distinct else ''}{' '.join(map(str, projection))}"
        case a.Construct(template=template, into=into):
            return f"CONSTRUCT of {len(template)} triple{'s' if len(template) != 1 else ''} into {into}"


def _filtered(fragment: Fragment, at: int) -> str:
    inquiry = fragment.inquiries[fragment.code[at][0]]
    by_host = fragment.code[at + 1][0] == c.ASK_HOST
    looks = " ".join(map(str, inquiry.variables)) or "the interval"
    return f"filtered on {looks} {'by the host' if by_host else 'in the kernel'}"


def _stored(row: list[int]) -> str:
    sides = [("left", row[c.LIFE_LEFT]), ("right", row[c.LIFE_RIGHT])]
    if row[c.KIND] in (c.WITHOUT, c.WITHOUTFOR):
        sides = [("left", row[c.LIFE_LEFT]), ("absent", row[c.LIFE_BLOCKER])]
    return "[" + ", ".join(f"{side} {_life(life)}" for side, life in sides) + "]"


def _life(life: int) -> str:
    if life == c.NEVER:
        return "not stored"
    if life == c.FOREVER:
        return "kept for ever"
    return f"kept {_duration(life)}" if life else "kept for the instant"


def _duration(micros: int) -> str:
    return times.format_duration(Duration(0, micros))


def _drawn(step: Step, first: str, rest: str) -> list[str]:
    lines = [first + step.text]
    for k, part in enumerate(step.inputs):
        last = k == len(step.inputs) - 1
        lines += _drawn(part, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
    return lines

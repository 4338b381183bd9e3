"""A naive fixpoint of static rules over tuples of strings, stratum by stratum.

It shares no code with the engine, and knows RDFS as far as tests need it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Fact = tuple[str, str, str, str]
"""Subject, predicate ("a" is rdf:type), object and graph."""
Key = tuple[str, str]
"""A predicate, or "a" with a class, and a graph."""
GRAPHS = ("", "h1", "h2", "g1", "g2")
CLASSES = ("C0", "C1", "C2")
MOST = 6
PREDICATES = ("p0", "p1", "p2", "p3")
SCHEMA = ("subPropertyOf", "subClassOf", "domain", "range")
PROPERTY = "Property"


@dataclass(frozen=True)
class Match:
    """Matches a triple; names with `?` are variables. `graph` is None for all graphs."""

    subject: str
    predicate: str
    object: str
    graph: str | None = None

    def reads(self) -> list[Key]:
        kinds = [self.predicate]
        if self.predicate == "a":
            kinds = [f"a {c}" for c in (*CLASSES, PROPERTY)] if self.object.startswith("?") else [f"a {self.object}"]
        return [(kind, graph) for kind in kinds for graph in (GRAPHS if self.graph is None else (self.graph,))]

    def text(self) -> str:
        triple = f"{term(self.subject)} {'a' if self.predicate == 'a' else ':' + self.predicate} {term(self.object)} ."
        return triple if self.graph is None else f"GRAPH :{self.graph} {{ {triple} }}"


@dataclass(frozen=True)
class Fold:
    """Folds the solutions that agree on `key` (None: all of them) to `?n`: COUNT(*) without an argument, else COUNT,
    SUM, MIN or MAX of it.
    """

    function: str
    key: str | None
    argument: str | None = None
    distinct: bool = False

    def text(self, pattern: str) -> str:
        argument = "*" if self.argument is None else self.argument
        shown, group = (f"{self.key} ", f"GROUP BY {self.key}") if self.key else ("", "")
        return f"{{ SELECT {shown}({self.function}({'DISTINCT ' * self.distinct}{argument}) AS ?n) WHERE {{ {pattern} }} {group} }}"

    def folded(self, found: list[dict[str, str]]) -> Iterator[dict[str, str]]:
        """Yield the groups' solutions; those that differ in graphs alone are one."""
        groups: dict[str, set[tuple[tuple[str, str], ...]]] = {} if self.key else {"": set()}
        for solution in found:
            groups.setdefault(solution[self.key] if self.key else "", set()).add(tuple(sorted(solution.items())))
        for key, members in groups.items():
            values = ["" if self.argument is None else dict(member)[self.argument] for member in members]
            if (value := self.value(sorted(set(values)) if self.distinct and self.argument else values)) is not None:
                yield {"?n": value} | ({self.key: key} if self.key else {})

    def value(self, values: list[str]) -> str | None:
        if self.function == "COUNT":
            return str(len(values))
        if self.function == "SUM":
            return str(sum(map(int, values))) if all(value.isdigit() for value in values) else None
        ordered = sorted(values, key=lambda value: (value.isdigit(), int(value) if value.isdigit() else 0, value))
        return ordered[0 if self.function == "MIN" else -1] if ordered else None


@dataclass(frozen=True)
class Rule:
    """Writes triples to a graph where all of `body` matches, no group of `absent` does, and the arithmetic holds.

    `less` compares two variables; `sums` are (x, number, y): y is x and the number, and below MOST, so that no rule
    goes on without end. With `fold` it writes what the solutions are folded to.
    """

    head: Match
    body: tuple[Match, ...]
    absent: tuple[tuple[Match, ...], ...] = ()
    less: tuple[tuple[str, str], ...] = ()
    sums: tuple[tuple[str, int, str], ...] = ()
    fold: Fold | None = None

    def text(self) -> str:
        parts = [match.text() for match in self.body]
        parts += [f"BIND({x} + {n} AS {y}) FILTER({y} < {MOST})" for x, n, y in self.sums]
        parts += [f"FILTER({x} < {y})" for x, y in self.less]
        parts += [f"FILTER NOT EXISTS {{ {' '.join(match.text() for match in group)} }}" for group in self.absent]
        head, pattern = Match(self.head.subject, self.head.predicate, self.head.object), " ".join(parts)
        pattern = pattern if self.fold is None else self.fold.text(pattern)
        return f"PREFIX : <http://e/> CONSTRUCT {{ {head.text()} }} INTO BACKGROUND :{self.head.graph} WHERE {{ {pattern} }}"


def term(name: str) -> str:
    return name if name.startswith("?") or name.isdigit() else f":{name}"


def property_rules(facts: set[Fact]) -> Iterator[Rule]:
    """Yield rules that say what is a property: what stands as a predicate, and what subPropertyOf speaks of."""
    links = {(s, o) for s, p, o, _ in facts if p == "subPropertyOf"}
    above = {s: {s} for link in links for s in link}
    for _ in above:
        for s, o in links:
            above[s] |= above[o]
    for graph in GRAPHS:
        for predicate in (*PREDICATES, *SCHEMA, "a"):
            for node in {predicate, "a", "subClassOf", "subPropertyOf"} | above.get(predicate, set()):
                yield Rule(Match(node, "a", PROPERTY, graph), (Match("?x", predicate, "?y", graph),))
        for s, p, o, g in facts:
            for node in above[s] | above[o] if p == "subPropertyOf" and g == graph else ():
                yield Rule(Match(node, "a", PROPERTY, graph), (Match(s, p, o, graph),))


def schema_rules(facts: set[Fact]) -> Iterator[Rule]:
    for s, p, o, _ in sorted(facts):
        for graph in GRAPHS:
            match p:
                case "subPropertyOf":
                    yield Rule(Match("?x", o, "?y", graph), (Match("?x", s, "?y", graph),))
                case "subClassOf":
                    yield Rule(Match("?x", "a", o, graph), (Match("?x", "a", s, graph),))
                case "domain":
                    yield Rule(Match("?x", "a", o, graph), (Match("?x", s, "?y", graph),))
                case "range":
                    yield Rule(Match("?y", "a", o, graph), (Match("?x", s, "?y", graph),))


def solutions(matches: tuple[Match, ...], facts: set[Fact], known: Mapping[str, str]) -> Iterator[dict[str, str]]:
    if not matches:
        yield dict(known)
        return
    first, *rest = matches
    for s, p, o, g in facts:
        if p != first.predicate or first.graph not in (None, g):
            continue
        found: dict[str, str] | None = dict(known)
        for wanted, value in ((first.subject, s), (first.object, o)):
            if found is not None and (found.setdefault(wanted, value) if wanted.startswith("?") else wanted) != value:
                found = None
        if found is not None:
            yield from solutions(tuple(rest), facts, found)


def derived(rule: Rule, facts: set[Fact]) -> Iterator[Fact]:
    found_all = list(matched(rule, facts))
    for found in found_all if rule.fold is None else rule.fold.folded(found_all):
        s, o = found.get(rule.head.subject, rule.head.subject), found.get(rule.head.object, rule.head.object)
        if not s.isdigit() and "?" not in s + o:
            assert rule.head.graph is not None
            yield s, rule.head.predicate, o, rule.head.graph


def matched(rule: Rule, facts: set[Fact]) -> Iterator[dict[str, str]]:
    for found in solutions(rule.body, facts, {}):
        for x, n, y in rule.sums:
            if found[x].isdigit():
                found[y] = str(int(found[x]) + n)
        if any(int(found.get(y, MOST)) >= MOST for _, _, y in rule.sums):
            continue
        if not all(found.get(x, "").isdigit() and found.get(y, "").isdigit() and int(found[x]) < int(found[y]) for x, y in rule.less):
            continue
        if any(True for group in rule.absent for _ in solutions(group, facts, found)):
            continue
        yield found


def heads(rule: Rule) -> list[Key]:
    return rule.head.reads()


def strata(rules: list[Rule]) -> list[list[Rule]] | None:
    """Return the rules by stratum, or None where one depends on its own negation."""
    level: dict[Key, int] = {}
    for _ in range(len(rules) * 40 + 2):
        before = dict(level)
        for rule in rules:
            least = max(
                [
                    0,
                    *(level.get(k, 0) + (rule.fold is not None) for m in rule.body for k in m.reads()),
                    *(level.get(k, 0) + 1 for g in rule.absent for m in g for k in m.reads()),
                ]
            )
            for key in heads(rule):
                level[key] = max(level.get(key, 0), least)
        if level == before:
            top = max(level.values(), default=0)
            return [[rule for rule in rules if level[heads(rule)[0]] == k] for k in range(top + 1)]
        if max(level.values()) > len(GRAPHS) * 12:
            return None
    return None


def closed(facts: set[Fact], rules: list[Rule]) -> set[Fact] | None:
    """Return all that holds, but for what the schema says of itself; None for rules that have no strata."""
    asked = any(m.predicate == "a" and m.object.startswith("?") for rule in rules for m in (*rule.body, *(m for group in rule.absent for m in group)))
    every = [*rules, *schema_rules(facts), *(property_rules(facts) if asked else ())]
    ordered = strata(every)
    if ordered is None:
        return None
    found = set(facts)
    for stratum in ordered:
        size = -1
        while size != len(found):
            size = len(found)
            for rule in stratum:
                found |= set(derived(rule, found))
    return found

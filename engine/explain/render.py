"""This module writes an explanation as text, as a JSON document, and as a mermaid flowchart."""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from engine.explain.algebra_outline import length
from engine.explain.live_counts import StepRows
from engine.explain.model import Explanation
from engine.explain.plan_reader import OperatorStep
from engine.kernel.state import layout as c
from engine.messages import MessageKey
from engine.physical_plan.operator_names import RELATION_WORDS
from engine.physical_plan.plan import COPIED, LOOKED_UP, WAITING
from engine.planner.reach import Reach
from epsparql.etalis.binarization import BinaryRule

_ENTITIES = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;"}
DEEPEST = 12
"""A tree is drawn in pieces of this many levels."""
LONGEST = 250_000
"""Each of the four parts of a text has at most this many characters."""
LONGEST_BOX = 1_000
"""A flowchart has at most this many characters for one thing that it says of a step."""

USES = {
    COPIED: "copied to the query, which keeps them and what they join",
    LOOKED_UP: "looked up for each solution in a table that queries share; what is found is not kept",
    WAITING: "taken in as a whole when a stream brings a first link of the path",
}


# ---------------------------------------------------------------- text
def render_text(explanation: Explanation) -> str:
    """Return the query as it was understood, its algebra and the tree of its steps, outermost first.

    Each part is cut if it is longer than `LONGEST`.
    """
    key = "none" if explanation.key is None else explanation.key
    algebra, plan = explanation.algebra, explanation.plan
    return "\n".join(
        [
            "query",
            *_cut(f"  {line}" for line in explanation.query.splitlines()),
            *(["rules", *_cut(f"  {rule.write()}" for rule in explanation.rules)] if explanation.rules else []),
            "algebra",
            *_cut(f"  {line}" for line in tree([f"{item.node} {item.detail}".rstrip() for item in algebra], [item.inputs for item in algebra])),
            "plan",
            *_cut(f"  {line}" for line in tree(*_in_runs(plan, [" ".join(phrases(*each)) for each in _with_rows(explanation)]))),
            f"partition key: {key}, because {explanation.reason}",
            *_cut([f"unbounded state: {'; '.join(explanation.unbounded) or 'none'}"]),
            *([f"reach: {_write_reach(explanation.reach)}"] if explanation.reach is not None else []),
            *([f"shape: {explanation.shape}"] if explanation.shape else []),
            *(
                ["background", *_cut(f"  {read.pattern}: {read.triples:,} triples, {USES[read.use]}" for read in explanation.reads)]
                if explanation.reads
                else []
            ),
        ]
    )


def _write_reach(reach: Reach) -> str:
    return f"unbounded, because of {reach.reason}" if reach.micros is None else f"{length(reach.micros)} before a solution's end"


def phrases(step: OperatorStep, rows: StepRows | None = None) -> list[str]:
    """Return the phrases that describe a step: its operator and detail, keys, window, filters, what it keeps, and the
    rows that it has had.
    """
    found = [f"{step.operator} {step.detail}".rstrip()]
    if step.on:
        found.append(f"on {' '.join(step.on)}")
    if step.checks:
        found.append(f"checking {' '.join(step.checks)}, which may be unbound")
    if step.within is not None:
        found.append(f"within {step.within.duration}{' (pushed down)' if step.within.pushed_down else ''}")
    found += [f"where {f.condition} (in the {f.by}{', pushed down' if f.pushed_down else ''})" for f in step.filters]
    if step.keeps:
        found.append(f"[{', '.join(f'{kept.side} {kept.time}' for kept in step.keeps)}]")
    if rows is not None:
        found.append(f"({_write_rows(step, rows)})")
    return found


def _write_rows(step: OperatorStep, rows: StepRows) -> str:
    """Write how many rows came in and went out."""
    sides = [f"{side.side} {side.taken:,}" if len(step.inputs) > 1 else f"{side.taken:,}" for side in rows.sides]
    taken = [f"in: {', '.join(sides) or '0'}"] if step.inputs else []
    refused = [f"refused: {rows.refused:,}"] if step.filters else []
    refused += [f"type errors: {rows.failed:,}"] if rows.failed else []
    return "; ".join([*taken, *refused, *([] if rows.given is None else [f"out: {rows.given:,}"])])


def _with_rows(explanation: Explanation) -> Iterator[tuple[OperatorStep, StepRows | None]]:
    """Yield the steps with their rows, which are known of running queries alone."""
    return zip(explanation.plan, explanation.rows or (None,) * len(explanation.plan), strict=True)


def _in_runs(plan: Sequence[OperatorStep], lines: list[str]) -> tuple[list[str], list[Sequence[int]]]:
    """Return what is to say of each step, and what is shown below it.

    Joins in a row that are alike, as those of a group's triples, become one with many sides.
    """
    below: list[Sequence[int]] = [step.inputs for step in plan]
    feeds = Counter(each for step in plan for each in step.inputs)
    begun: set[int] = set()
    for place, step in enumerate(plan):
        if place in begun or step.operator != RELATION_WORDS[c.ANY]:
            continue
        run = [place]
        while _two_sided(plan[run[-1]]) and lines[first := plan[run[-1]].inputs[0]] == lines[place] and feeds[first] == 1 and _two_sided(plan[first]):
            run.append(first)
        begun.update(run)
        if len(run) > 1:
            lines[place] += ", with each side in turn"
            below[place] = [*plan[run[-1]].inputs, *(plan[each].inputs[1] for each in reversed(run[:-1]))]
            for each in run[1:]:
                below[each] = ()
    return lines, below


def _two_sided(step: OperatorStep) -> bool:
    """Return whether each input is a side of its own; a UNION gives a side several inputs."""
    return len(step.inputs) == 2


def tree(lines: Sequence[str], below: Sequence[Sequence[int]]) -> Iterator[str]:
    """Draw the nodes as a tree from the first one. A node that feeds several has a number, and stands under the first
    of them alone.

    A node that is `DEEPEST` levels down has a number too, and follows with all that is below it. A tree that went on
    to the right would have a size of the square of its depth.
    """
    feeds = Counter(each for parts in below for each in parts)
    numbers = {node: number for number, node in enumerate((node for node, count in sorted(feeds.items()) if count > 1), 1)}
    drawn: set[int] = set()
    later = deque([0])
    while later:
        pending = [(later.popleft(), "", "", 0)]
        while pending:
            node, first, rest, level = pending.pop()
            if node in drawn:
                if level:
                    yield f"{first}({numbers[node]}), as above"
                continue
            if level == DEEPEST and below[node]:
                later.append(node)
                yield f"{first}({numbers.setdefault(node, len(numbers) + 1)}), below"
                continue
            drawn.add(node)
            yield first + (f"({numbers[node]}) " if node in numbers else "") + lines[node]
            for k, part in enumerate(reversed(below[node])):  # the last one is drawn last
                pending.append((part, rest + ("├─ " if k else "└─ "), rest + ("│  " if k else "   "), level + 1))


def _cut(lines: Iterable[str]) -> Iterator[str]:
    """Return as many lines as have `LONGEST` characters together, then one that says so."""
    left = LONGEST
    for line in lines:
        if len(line) > left:
            yield f"{line[:left]}\n  ... cut after {LONGEST:,} characters; the JSON format has all of it"
            return
        yield line
        left = max(left - len(line) - 1, 0)


# ---------------------------------------------------------------- JSON
def render_document(explanation: Explanation) -> dict[str, Any]:
    """Return the document that openapi.yaml describes as PlanDocument.

    Trees are lists whose nodes name their inputs: plans are deeper than JSON parsers go.
    """
    return {
        "query": explanation.query,
        "rules": [
            {
                "rule": rule.rule,
                "event": rule.event,
                "pattern": rule.pattern,
                "waits": [{"event": event, "waits_for": awaited} for event, awaited in rule.waits_for],
            }
            for rule in explanation.rules
        ],
        "algebra": [{"node": item.node, "detail": item.detail, "inputs": list(item.inputs)} for item in explanation.algebra],
        "plan": [_step(step) | ({"live": _live(rows)} if explanation.rows else {}) for step, rows in _with_rows(explanation)],
        "partition": {
            "key": explanation.key,
            "reason": explanation.reason,
            "message_key": _message_key(explanation.message_key),
            "slices": None
            if explanation.slices is None
            else {"length": length(explanation.slices.length), "before": length(explanation.slices.reach)},
        },
        "unbounded": list(explanation.unbounded),
        "reach": None if explanation.reach is None else _describe_reach(explanation.reach),
        "background": [{"pattern": read.pattern, "triples": read.triples, "use": read.use} for read in explanation.reads],
    }


def _describe_reach(reach: Reach) -> dict[str, Any]:
    return {"duration": None if reach.micros is None else length(reach.micros), "reason": reach.reason}


def _message_key(key: MessageKey | None) -> dict[str, Any] | None:
    return None if key is None else {"key": key.predicate, "parts": list(key.parts)}


def _step(step: OperatorStep) -> dict[str, Any]:
    return {
        "operator": step.operator,
        "detail": step.detail,
        "on": list(step.on),
        "checks": list(step.checks),
        "within": None if step.within is None else {"duration": step.within.duration, "pushed_down": step.within.pushed_down},
        "filters": [{"condition": f.condition, "by": f.by, "pushed_down": f.pushed_down} for f in step.filters],
        "keeps": [{"side": kept.side, "time": kept.time} for kept in step.keeps],
        "inputs": list(step.inputs),
    }


def _live(rows: StepRows | None) -> dict[str, Any] | None:
    if rows is None:
        return None
    sides = [{"side": side.side, "rows": side.taken, "goals": side.goals} for side in rows.sides]
    return {"sides": sides, "out": rows.given, "refused": rows.refused, "type_errors": rows.failed, "state_bytes": rows.state_bytes}


# ---------------------------------------------------------------- mermaid
def mermaid(explanation: Explanation) -> str:
    """Draw the plan as a flowchart from the scans up; steps that keep something for ever are of the class `unbounded`."""
    lines = ["flowchart BT", *_draw_rules(explanation.rules)]
    lines += [
        f"  s{n}{_box(phrases(step, rows))}{':::unbounded' if step.unbounded else ''}" for n, (step, rows) in enumerate(_with_rows(explanation))
    ]
    lines += [f"  s{below} --> s{n}" for n, step in enumerate(explanation.plan) for below in step.inputs]
    key = "none" if explanation.key is None else explanation.key
    lines.append(f"  partition{_box([f'partition key: {key}', explanation.reason])}")
    lines.append("  classDef unbounded stroke:#c00,stroke-width:3px")
    return "\n".join(lines)


def _draw_rules(rules: Sequence[BinaryRule]) -> Iterator[str]:
    """Draw the rules of a program, each above those whose events it reads."""
    if rules:
        yield "  subgraph rules"
        for number, rule in enumerate(rules):
            waits = [f"{goal} waits for {awaited}" for goal, awaited in rule.waits_for]
            yield f"  r{number}{_box([f'{rule.event} <- {rule.pattern}', *waits])}"
        for number, rule in enumerate(rules):
            read = re.findall(r"\bie[0-9]+\b", rule.pattern)
            yield from (f"  r{below} --> r{number}" for below, other in enumerate(rules[:number]) if other.event in read)
        yield "  end"


def _box(lines: Sequence[str]) -> str:
    short = [line if len(line) <= LONGEST_BOX else f"{line[:LONGEST_BOX]} ..." for line in lines]
    escaped = [re.sub(r'[#"<>&`]', lambda found: _ENTITIES[found[0]], line) for line in short]
    return f'["{"<br/>".join(" ".join(line.split()) for line in escaped)}"]'

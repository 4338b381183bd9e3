"""This module answers why a query finds nothing: it walks the steps from the inputs up, and explains the first that
lets nothing through.

1. The recent events are read, within bounds of rows, bytes and time.
2. Every step is evaluated as a query of its own, first over the last events, then over more of them while there is time.
3. The first step without solutions whose inputs all have some is explained by its kind.
4. If it reads what rules write, and they find nothing, the first of them is diagnosed instead.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.recursion import deep_stack
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.translate.translator import ParsedQuery
from pipeline.diagnosis.absences import explain_absence
from pipeline.diagnosis.conditions import explain_filter
from pipeline.diagnosis.evaluation.probing import Found, Prober, Setting
from pipeline.diagnosis.evaluation.sample import Sample
from pipeline.diagnosis.evaluation.steps import MOST_STEPS, Node, Words, build_steps, list_steps
from pipeline.diagnosis.examination import Examination
from pipeline.diagnosis.joins import explain_join, explain_within
from pipeline.diagnosis.model import FOUND, NOTHING, UNKNOWN, Diagnosis, Examined, Reason, Step
from pipeline.diagnosis.rules import find_writers
from pipeline.diagnosis.triples import explain_pattern
from pipeline.inspection.nearest_terms import find_nearest

FIRST_EVENTS, GROWTH = 4_096, 8
"""So many of the last events are examined first, and so many times as many each time that they are found to be too few."""
MOST_S = 1.2
MOST_DEEP = 4
"""A reason is followed through at most so many rules, each of which reads what the next one writes."""


@dataclass(frozen=True, slots=True)
class Question:
    """Names a query to be diagnosed, with what it rests on. `read_others` reads events of other streams."""

    name: str
    parsed: ParsedQuery
    setting: Setting
    sample: Sample
    read_others: Callable[[], Sample] = lambda: Sample.from_batches({})


def diagnose(asked: Question, most_s: float = MOST_S, depth: int = 0) -> Diagnosis:
    """Return why a query finds nothing in its sample, or that it finds something.

    Its reason was reached through `depth` other queries.
    """
    query, sample = asked.parsed.query, asked.sample
    assert not isinstance(query, a.BackgroundRule), "a static rule reads no events"
    words = Words(asked.parsed)
    if (reason := _explain_silence(asked, query)) is not None:
        return Diagnosis(asked.name, NOTHING, Examined(len(sample)), (), reason)
    with deep_stack():
        last = build_steps(query.pattern)
    prober = Prober(query, asked.setting, sample, time.thread_time() + most_s)
    nodes = list_steps(last)
    counted = _count_steps(prober, nodes if len(nodes) <= MOST_STEPS else [last])
    examined = _describe_examined(prober, sample)
    if counted is None:
        return Diagnosis(asked.name, UNKNOWN, examined)
    steps = tuple(_describe_step(words, node, counted) for node in counted)
    if counted[last].count:
        return _judge_found(asked, examined, steps, Examination(asked.parsed, words, prober, counted, asked.read_others), last)
    prober.deadline += most_s / 2
    failing = _find_failing(last, counted)
    case = Examination(asked.parsed, words, prober, counted, asked.read_others)
    reason = _explain_writers(asked, case, failing, most_s, depth) if depth < MOST_DEEP and not failing.inputs else None
    return Diagnosis(asked.name, NOTHING, examined, steps, reason or _explain_step(case, failing))


def _explain_silence(asked: Question, query: a.StreamQuery) -> Reason | None:
    """Explain that a stream which the query reads has no events, where there is no other."""
    sample, written = asked.sample, set(asked.setting.rules)
    silent = [name for name in query.streams if name not in sample.names or not sample.of_stream(name).any()]
    if not silent or written or len(silent) < len(query.streams):
        return None
    other = asked.read_others()
    fed = {name: int((other.streams == number).sum()) for number, name in enumerate(other.names)}
    listed = ", ".join(f"<{name}> ({count:,} events)" for name, count in sorted(fed.items(), key=lambda each: -each[1])[:3] if count)
    nearest = find_nearest(silent[0], {name: count for name, count in fed.items() if count})
    message = f"the stream <{silent[0]}> has no events" + (f"; there are events in {listed}" if listed else "")
    remedy = f"read another stream: FROM STREAM <{nearest or next(iter(fed))}>" if listed else "send events to it"
    return Reason("stream-empty", message, remedy, nearest)


def _explain_writers(asked: Question, case: Examination, node: Node, most_s: float, depth: int) -> Reason | None:
    """Explain a pattern that reads what rules write by the first of these, if each of them finds nothing for a known
    reason.
    """
    query, setting = case.prober.query, asked.setting
    found = list[tuple[str, str, Reason]]()
    for rule, parsed, stream in find_writers(query, node.pattern, setting.rules, asked.sample):
        others = [each for each in setting.rules if each is not rule]  # a rule that needs its own events is left out, so this ends
        below = replace(setting, rules=others, default_graph=rule.default_graph, policy=rule.policy)
        silent = diagnose(Question(rule.name, parsed, below, asked.sample, asked.read_others), most_s / 2, depth + 1)
        if silent.reason is None:
            return None
        found.append((rule.name, stream, silent.reason))
    if not found:
        return None
    name, stream, reason = found[0]
    more = f" (as {len(found) - 1} more {'rules do' if len(found) > 2 else 'rule does'})" if len(found) > 1 else ""
    place = f" at its line {reason.line}, column {reason.column}" if reason.line is not None else ""
    message = f"no event of the stream <{stream}>: the rule {name!r} writes it{more}, and finds nothing{place}: {reason.message}"
    return case.make_reason(node, "rule-silent", message, reason.remedy, reason.nearest)


def _count_steps(prober: Prober, nodes: list[Node]) -> Mapping[Node, Found] | None:
    """Evaluate the steps over ever more of the last events; return the counts of the longest part for which there was
    time.
    """
    counted: Mapping[Node, Found] | None = None
    size = FIRST_EVENTS
    while True:
        before, prober.first = prober.first, max(len(prober.sample) - size, 0)
        found = prober.run_probes([node.probe for node in nodes])
        if found is None:
            prober.first = before
            return counted
        counted = dict(zip(nodes, found, strict=True))
        if prober.first == 0 or found[-1].count:
            return counted
        size *= GROWTH


def _describe_examined(prober: Prober, sample: Sample) -> Examined:
    if not len(sample):
        return Examined(0)
    ends = sample.end[prober.first :]
    return Examined(len(ends), int(ends[0]), int(ends[-1]), sample.bounded or prober.first > 0)


def _describe_step(words: Words, node: Node, counted: Mapping[Node, Found]) -> Step:
    line, column = words.find_place(node.pattern)
    inputs = tuple(counted[each].count for each in node.inputs if each in counted)
    found = counted[node]
    return Step(words.name_operator(node), words.describe_pattern(node.pattern), line, column, inputs, found.count, found.more)


def _find_failing(node: Node, counted: Mapping[Node, Found]) -> Node:
    """Return the first step without solutions all of whose inputs have some."""
    silent = [each for each in node.inputs if each in counted and not counted[each].count]
    return _find_failing(silent[0], counted) if silent else node


def _explain_step(case: Examination, node: Node) -> Reason:
    if node.inputs and any(each not in case.found for each in node.inputs):
        return case.make_reason(node, "too-many-steps", f"the query has more than {MOST_STEPS} steps", "diagnose a part of it")
    match node.pattern:
        case a.Bgp() | a.Path() | a.Values() | a.Instant():
            return explain_pattern(case, node)
        case a.Filter():
            return explain_filter(case, node)
        case a.Within():
            return explain_within(case, node)
        case a.Join() | a.SeqJoin() | a.EqJoin() | a.RelationJoin():
            return explain_join(case, node)
        case a.SeqWithout() | a.JoinWithout() | a.WithoutFor() | a.Minus():
            return explain_absence(case, node)
        case a.SubSelect(_, _, _, modifiers):
            return _explain_modifiers(case, node, modifiers)
        case _:
            word = case.words.name_operator(node)
            return case.make_reason(node, "step-empty", f"{word} gives nothing for the solutions of its input", f"look at {word} by itself")


def _explain_modifiers(case: Examination, node: Node, modifiers: a.Modifiers) -> Reason:
    count = case.found[node.inputs[0]].count if node.inputs else 0
    written = f"LIMIT {modifiers.limit}" if modifiers.limit == 0 else f"OFFSET {modifiers.offset}"
    return case.make_reason(node, "skipped", f"{written} leaves none of {count:,} solutions", "leave it out, or skip fewer")


def _judge_found(asked: Question, examined: Examined, steps: tuple[Step, ...], case: Examination, last: Node) -> Diagnosis:
    """Judge a query whose pattern has solutions: its modifiers or its policy may still leave none."""
    query, setting = asked.parsed.query, asked.setting
    if (
        isinstance(query, a.Select)
        and (query.modifiers.limit == 0 or query.modifiers.offset >= case.found[last].count)
        and query.modifiers != a.PLAIN
    ):
        return Diagnosis(asked.name, NOTHING, examined, steps, _explain_modifiers(case, Node(last.pattern, last.probe, (last,)), query.modifiers))
    if setting.policy != UNRESTRICTED and (found := case.prober.run_probes([last.probe], setting.policy)) is not None and not found[0].count:
        message = (
            f"the policy {setting.policy!r} uses up the events before they complete a match; unrestricted, the pattern has "
            f"{case.found[last].count:,} solutions"
        )
        return Diagnosis(asked.name, NOTHING, examined, steps, case.make_reason(last, "policy", message, "use the policy unrestricted"))
    return Diagnosis(asked.name, FOUND, examined, steps)

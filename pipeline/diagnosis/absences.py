"""This module explains why everything is blocked by what must be absent: WITHOUT and MINUS."""

from epsparql import algebra as a
from pipeline.diagnosis.evaluation.probing import Row
from pipeline.diagnosis.evaluation.steps import Node
from pipeline.diagnosis.examination import Examination
from pipeline.diagnosis.joins import write_interval
from pipeline.diagnosis.model import Reason
from pipeline.diagnosis.wording import shorten

Absence = a.SeqWithout | a.JoinWithout | a.WithoutFor | a.Minus


def explain_absence(case: Examination, node: Node) -> Reason:
    """Explain a step whose input lets something through, by an event that blocks it."""
    pattern = node.pattern
    assert isinstance(pattern, Absence)
    (below,) = node.inputs
    absent = pattern.right if isinstance(pattern, a.Minus) else pattern.absent
    blockers = case.probe(node.wrap(absent))[0].list_rows()
    rows, written = case.list_rows(below), case.words.write_group(absent)
    pairs = ((row, blocker) for row in rows for blocker in blockers if _blocks(pattern, row, blocker))
    found = next(pairs, None)
    count = f"each of {case.found[below].count:,} solutions is blocked by {written}"
    if found is None:
        return case.make_reason(node, "blocked", count, "make the pattern that must be absent narrower")
    row, blocker = found
    event = ", ".join(f"{variable} = {shorten(str(term))}" for variable, term in blocker.binding.items() if not variable.hidden)
    message = f"{count}, for example the one of {write_interval(row)} by that of {write_interval(blocker)}" + (f" with {event}" if event else "")
    unrelated = not any(blocker.binding.keys() & each.binding.keys() for each in rows[:1])
    advice = "; it shares no variable with the rest, so that events about anything block" if unrelated else ""
    return case.make_reason(node, "blocked", message, f"make the pattern that must be absent narrower{advice}", write_interval(blocker))


def _blocks(pattern: Absence, row: Row, blocker: Row) -> bool:
    """Return whether an event stands in the way of a solution, as far as its interval says."""
    if any(row.binding[variable] != blocker.binding[variable] for variable in row.binding.keys() & blocker.binding.keys()):
        return False
    match pattern:
        case a.Minus():
            return bool(row.binding.keys() & blocker.binding.keys())
        case a.WithoutFor(_, _, duration):
            return row.start <= blocker.start and blocker.end <= row.end + duration
        case _:
            return row.start <= blocker.start and blocker.end <= row.end

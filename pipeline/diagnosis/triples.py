"""This module explains why no event matches a triple pattern: one of its terms was never seen in its place, or in
another stream or graph.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from epsparql import algebra as a
from epsparql.deferred_methods import dataclass
from epsparql.terms import RDF, Iri, Variable
from epsparql.trees import walk_nodes
from pipeline.diagnosis.evaluation.sample import Sample
from pipeline.diagnosis.evaluation.steps import Node
from pipeline.diagnosis.examination import Examination
from pipeline.diagnosis.model import Reason
from pipeline.diagnosis.wording import shorten, tell_difference, write_times
from pipeline.inspection.nearest_terms import find_nearest

TYPE = f"<{RDF}type>"
_MOST_FACTS = 200_000
_LISTED = 3
_WORDS = {"s": "subject", "p": "predicate", "o": "object", "g": "graph"}
_CODES = {"s": "subject-never-seen", "p": "predicate-never-seen", "o": "object-never-seen", "g": "graph-never-seen"}
Mask = NDArray[np.bool_]


def explain_pattern(case: Examination, node: Node) -> Reason:
    """Explain a step without inputs that matches nothing."""
    match node.pattern:
        case a.Bgp((triple,), _):
            return _explain_triple(case, node, triple)
        case a.Path(_, path, _):
            for link in walk_nodes(path):
                if isinstance(link, a.Link) and not case.sample.get_column("p").mark_rows(str(link.predicate)).any():
                    return _explain_term(case, node, "p", str(link.predicate), _Relaxed(case.sample, case.of_query))
            message = f"no events are linked by the path {case.words.describe_pattern(node.pattern)} between these ends"
            return case.make_reason(node, "path-never-linked", message, "look at each link of the path by itself")
        case a.Values():
            return case.make_reason(node, "no-values", "VALUES has no rows", "give it a row")
        case _:
            return case.make_reason(node, "never-reached", "its instant is not reached", "look at the times of the events")


@dataclass(frozen=True, slots=True)
class _Relaxed:
    """Holds the events that match a pattern apart from one of its terms."""

    sample: Sample
    rows: Mask

    def count_terms(self, place: str) -> dict[str, int]:
        return self.sample.get_column(place).count_terms(self.rows)

    def write_example(self, place: str, term: str) -> str:
        row = int(np.argmax(self.rows & self.sample.get_column(place).mark_rows(term)))
        columns = (self.sample.get_column(name) for name in "spo")
        return " ".join(shorten(column.terms[column.codes[row]]) for column in columns)


def _explain_triple(case: Examination, node: Node, triple: a.TriplePattern) -> Reason:
    sample, places = case.sample, {"o": triple.object, "s": triple.subject, "g": node.graph, "p": triple.predicate}
    wanted = {place: str(term) for place, term in places.items() if term is not None and not isinstance(term, Variable)}
    masks = {place: sample.get_column(place).mark_rows(term) for place, term in wanted.items()}
    if isinstance(node.graph, Variable):
        masks["g"] = sample.get_column("g").codes >= 0
        wanted["g"] = "a graph"
    elif node.graph is None and case.prober.setting.default_graph == "unnamed":
        masks["g"] = sample.get_column("g").codes < 0
        wanted["g"] = "no graph"
    masks = {place: mask & case.of_query for place, mask in masks.items()}
    predicate_seen = "p" not in masks or masks["p"].any()
    culprits = [place for place in wanted if _others(case, masks, place).any()]
    if not predicate_seen:
        culprits = ["p"]
    if not culprits:
        culprits = [place for place in ("p", *wanted) if place in wanted and not masks[place].any()] or list(wanted)[:1]
    if not culprits:
        return _explain_repeated(case, node)
    culprit = culprits[0]
    relaxed = _Relaxed(sample, _others(case, masks, culprit) if predicate_seen or culprit != "p" else case.of_query)
    if culprit == "g" and not (isinstance(node.graph, Iri) and relaxed.count_terms("g")):
        return _explain_graph(case, node, relaxed, wanted["g"])
    return _explain_term(case, node, culprit, wanted[culprit], relaxed, is_class=culprit == "o" and wanted.get("p") == TYPE)


def _others(case: Examination, masks: Mapping[str, Mask], without: str) -> Mask:
    found = case.of_query
    for place, mask in masks.items():
        if place != without:
            found = found & mask
    return found


def _explain_term(case: Examination, node: Node, place: str, wanted: str, relaxed: _Relaxed, *, is_class: bool = False) -> Reason:
    """Explain that no event has the wanted term where the others of the pattern match."""
    word, code = ("class", "class-never-seen") if is_class else (_WORDS[place], _CODES[place])
    streams = " or ".join(f"<{name}>" for name in case.prober.query.streams)
    seen_in = f"in the last {int(case.of_query.sum()):,} events of" if case.sample.bounded else "in"
    subject = f"the {word} {shorten(wanted)} was never seen {seen_in} the stream {streams}"
    if (case.sample.get_column(place).mark_rows(wanted) & case.of_query).any():
        subject = f"the {word} {shorten(wanted)} was never seen together with the rest of {case.words.describe_pattern(node.pattern)}"
    other = case.read_others()
    for number, name in enumerate(other.names):
        count = int((other.get_column(place).mark_rows(wanted) & (other.streams == number)).sum())
        if count:
            message = f"{subject}, but the stream <{name}> has carried it {write_times(count, other.bounded)}"
            return case.make_reason(node, "other-stream", message, f"read that stream: FROM STREAM <{name}>", f"<{name}>")
    candidates = relaxed.count_terms(place) | _count_facts(case, place, wanted, is_class)
    nearest = find_nearest(wanted, candidates)
    if nearest is None:
        return _name_frequent(case, node, (code, subject, word), candidates)
    count, difference = candidates[nearest], tell_difference(wanted, nearest)
    if count and relaxed.count_terms(place).get(nearest):
        example = relaxed.write_example(place, nearest)
        seen = f"the nearest is {shorten(nearest)}, seen {write_times(count)}, as in {example}"
    else:
        seen = f"the nearest is {shorten(nearest)}, of the background"
    remedy = f"write {shorten(nearest)} in the query, or send {shorten(wanted)}"
    if is_class:
        remedy += "; if the one is a subclass of the other, give a background that says so"
    return case.make_reason(node, code, f"{subject}; {seen}" + (f": {difference}" if difference else ""), remedy, nearest)


def _name_frequent(case: Examination, node: Node, told: tuple[str, str, str], candidates: Mapping[str, int]) -> Reason:
    code, subject, word = told
    frequent = sorted(candidates.items(), key=lambda each: -each[1])[:_LISTED]
    listed = ", ".join(f"{shorten(term)} ({write_times(count)})" for term, count in frequent if count)
    seen = f"; seen in this place were {listed}" if listed else ""
    more = "; if one of these is a subclass of it, give a background that says so" if code == "class-never-seen" else ""
    return case.make_reason(node, code, f"{subject}{seen}", f"use a {word} that the events have, or send events that have this one{more}")


def _explain_graph(case: Examination, node: Node, relaxed: _Relaxed, wanted: str) -> Reason:
    count = int(relaxed.rows.sum())
    is_named = node.graph is not None
    where = "no named graph" if is_named else "named graphs only"
    message = f"{case.words.describe_pattern(node.pattern)} was seen {write_times(count)}, in {where}"
    remedy = (
        f"leave GRAPH out, or send the events in {shorten(wanted)}"
        if is_named
        else "put the pattern into GRAPH ?g { ... }, or set default_graph to all"
    )
    return case.make_reason(node, "graph-never-seen", message, remedy)


def _explain_repeated(case: Examination, node: Node) -> Reason:
    message = f"no event matches {case.words.describe_pattern(node.pattern)}"
    return case.make_reason(node, "pattern-never-seen", message, "a variable that stands twice must have one value; use two variables")


def _count_facts(case: Examination, place: str, wanted: str, is_class: bool) -> dict[str, int]:
    """Return terms of the background that may be meant, without a count."""
    if place not in "po" or (place == "o" and not is_class):
        return {}
    lines = (line for _, triples in case.prober.setting.facts for line in triples.splitlines()[:_MOST_FACTS])
    found = dict[str, int]()
    for line in lines:
        _, predicate, rest = line.split(" ", 2)
        term = predicate if place == "p" else rest.removesuffix(" .")
        if place == "p" or (predicate == TYPE and term != wanted):
            found[term] = 0
    return found

"""This module checks a query before it is registered: it finds faults that only planning finds, and doubts."""

import difflib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, NoReturn

from engine.background.changes import read_static_rule
from engine.background.fact_store import FactIndex, numbers_of
from engine.background.routes import MOST_VISITED
from engine.background.static_rules.derivations import NegativeRecursion, RegisteredRule
from engine.background.static_rules.translate import StaticRuleRefused
from engine.dictionary.term_dictionary import TermTable
from engine.errors import Refusal
from engine.expressions import geosparql
from engine.expressions.background_functions import BACKGROUND_FUNCTIONS
from engine.expressions.casts import CASTS
from engine.expressions.evaluator import supported
from engine.expressions.extensions import extensions
from engine.expressions.functions import arguments_of
from engine.expressions.literals import TRUE
from engine.messages import Register
from engine.planner import plan_query
from engine.planner.detached_names import name_apart
from engine.planner.groups_and_modifiers import MOST_STEPS
from engine.rewrite import rewrite_query
from engine.triples.quads import Quad, quads_of
from engine.validation.state_warnings import doubts
from epsparql import algebra as a
from epsparql import parse
from epsparql.errors import CyclicNegation, Span, SyntaxFault, Unsupported, Warning_
from epsparql.etalis.parser.syntax import EleRefused
from epsparql.literals import show_lexical
from epsparql.ntriples import is_absolute_iri, is_language_tag
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import XSD, Iri, Literal
from epsparql.translate.translator import ParsedQuery
from epsparql.trees import is_node, map_fields, walk_nodes

_INSTEAD = {"STEP": "a longer STEP or a shorter RANGE", "EXISTS": "the condition in the group of the EXISTS itself"}
"""The remedy, by the word of a Refusal, says what is accepted instead."""
_CASTS_LISTED = 8


def check(
    parsed: ParsedQuery,
    others: Mapping[str, a.Query] = MappingProxyType({}),
    facts: Sequence[Quad] = (),
    name: str = "this query",
    policies: Mapping[str, str] = MappingProxyType({}),
    *,
    instants: bool = False,
) -> tuple[Warning_, ...]:
    """Return the doubts about a query that may run beside `others` (by name) over `facts`; `instants` says whether it
    reads only events that do not last.

    `policies` are those of all of them, by name, where they are not unrestricted. Raises Unsupported, CyclicNegation
    with the place in its text.
    """
    refuse_functions(parsed)
    refuse_searches(parsed)
    refuse_invalid_terms(parsed)
    policy, known = policies.get(name, UNRESTRICTED), FactIndex.from_quads(facts, TermTable())
    if isinstance(parsed.query, a.BackgroundRule):
        _check_static_rule(parsed, parsed.query, known, others, name)
        return ()
    others = {other: query for other, query in others.items() if not isinstance(query, a.BackgroundRule)}
    try:
        if isinstance(parsed.query, a.Construct) or (isinstance(parsed.query, a.Select) and parsed.query.rules):
            _place_rule(parsed, known, others, name, policies)
        else:  # only rules can close a cycle, and to plan costs a third of what it costs to place as well
            plan_query(rewrite_query(parsed.query, policy=policy), name_apart(known, policy))
    except Refusal as refusal:
        message, place = f"{refusal} is not evaluated by this version", place_of(culprits(refusal.word, parsed.query), parsed)
        raise Unsupported(message, place, parsed.text, _INSTEAD.get(refusal.word, "")) from refusal
    found = doubts(parsed, lambda triple, place: len(known.matching(triple, place)) > 0, policy, instants=instants)
    return (*found, *_find_bounded_searches(parsed, known))


def _place_rule(parsed: ParsedQuery, known: FactIndex, others: Mapping[str, a.Query], name: str, policies: Mapping[str, str]) -> None:
    """Place a query that may feed itself beside the others, in a registry of its own.

    Raises Refusal, Unsupported, CyclicNegation.
    """
    from engine.network.stratification import Cycle
    from engine.runtime.query_registry import Registry  # it takes a tenth of a start, and most queries are no rules

    assert not isinstance(parsed.query, a.BackgroundRule)
    registry = Registry(terms=known.terms)
    registry.known = known
    try:
        for k, (other, query) in enumerate(others.items()):
            registry.place_query(Register(k, other, "", policies.get(other, UNRESTRICTED)), query)
        registry.place_query(Register(len(others), name, parsed.text, policies.get(name, UNRESTRICTED)), parsed.query)
    except Cycle as cycle:
        if isinstance(parsed.query, a.Select) and parsed.query.program:
            message = f"recursion without a step in time between an event and what is absent or aggregated: {cycle.way}"
            raise EleRefused(message, Span(0, min(1, len(parsed.text))), parsed.text, "seq or cnot somewhere on the cycle") from None
        message = f"this rule would read its own negation without a strict step in time: {cycle.way}"
        expected = "SEQ, OPTIONALSEQ or WITHOUT ... FOR somewhere on the cycle"
        raise CyclicNegation(message, place_of([parsed.query], parsed), parsed.text, expected) from None


def _find_bounded_searches(parsed: ParsedQuery, known: FactIndex) -> Iterator[Warning_]:
    """Yield a doubt for each function that may visit more nodes of the background than one search is granted."""
    for node in walk_nodes(parsed.query):
        match node:
            case a.Call(function, (_, _, a.Constant(predicate), *_)) if function in BACKGROUND_FUNCTIONS:
                if (links := known.count(str(predicate))) > MOST_VISITED:
                    message = f"the background has {links:,} links {predicate}, and a search that has visited {MOST_VISITED:,} nodes finds no route"
                    yield Warning_("bounded-search", message, place_of([node], parsed))


def _check_static_rule(parsed: ParsedQuery, rule: a.BackgroundRule, known: FactIndex, others: Mapping[str, a.Query], name: str) -> None:
    """Check a static rule, and that it closes no cycle with other static rules. Raises Unsupported, CyclicNegation."""
    standing = [
        RegisteredRule(k, other, "", "all", query) for k, (other, query) in enumerate(others.items(), 1) if isinstance(query, a.BackgroundRule)
    ]
    try:
        known.with_rules([*standing, RegisteredRule(len(others) + 1, name, parsed.text, "all", rule)])
    except StaticRuleRefused as refused:
        raise Unsupported(
            f"{refused} is not evaluated by this version", place_of([refused.culprit, rule], parsed), parsed.text, refused.expected
        ) from None
    except NegativeRecursion as cycle:
        message = f"this rule would depend on its own negation: {cycle}"
        raise CyclicNegation(
            message, place_of([rule], parsed), parsed.text, cycle.remedy or "a predicate of its own for what is derived without the negation"
        ) from None


MOST_WORK = 1_000_000_000
"""A change of the background is refused if its static rules need more rows of joins, with their computed values."""


def background_of(nquads: str, entailment: str) -> FactIndex:
    """Return a background by itself, for `check_background`."""
    return FactIndex.from_quads(quads_of(nquads), TermTable(), entailment)


def background_with(known: FactIndex, rules: Iterable[tuple[int, str, str, str]]) -> FactIndex:
    """Return the background with static rules by number, name, text and default graph.

    Raises NegativeRecursion, StaticRuleRefused.
    """
    entries = [Register(number, name, text, default_graph=default_graph) for number, name, text, default_graph in rules]
    found = [rule for entry in entries if (rule := read_static_rule(entry)) is not None]
    return known if [rule.registered for rule in found] == [rule.registered for rule in known.rules] else known.with_rules(found, MOST_WORK)


def background_after(known: FactIndex, graph: str, ntriples: str, change: str) -> FactIndex:
    """Return the background after a change of a graph, which costs what it concerns; `known` stays what it is."""
    if known.terms.due:
        known.terms.collect(())
    return known.with_change(graph, numbers_of(ntriples, known.terms), change)


def check_background(known: FactIndex, rules: Iterable[tuple[str, str, str]]) -> None:
    """Check that these rules, by text, policy and default graph, can run over a background.

    Raises Cycle, EntailmentLimit.
    """
    from engine.runtime.query_registry import Registry  # as above

    if known.overflow is not None:
        raise known.overflow
    registry = Registry(terms=known.terms)
    registry.known = known
    for k, (text, policy, default_graph) in enumerate(rules):
        registry.place_query(Register(k, f"rule {k}", text, policy, default_graph), parse(text).query)


def place_of(culprits: Iterable[object], parsed: ParsedQuery) -> Span:
    """Return the first place of these nodes; the start of the text if none has one."""
    spans = [span for node in culprits if (span := parsed.places.find_span(node)) is not None]
    return min(spans, key=lambda span: span.start, default=Span(0, min(1, len(parsed.text))))


def refuse_functions(parsed: ParsedQuery) -> None:
    """Raise Unsupported at a function by an IRI that is not known, or that is given another number of arguments than
    it takes.
    """
    for node in walk_nodes(parsed.query):
        if not isinstance(node, a.Call) or not node.function.startswith("<"):
            continue
        if not supported(node.function):
            message = f"the function {node.function} is not known"
            expected = f"one of {', '.join(_like(node.function[1:-1]))}, or a built-in"
            raise Unsupported(message, place_of([node], parsed), parsed.text, expected)
        if node.function.startswith(f"<{geosparql.NAMESPACE}") and not geosparql.is_installed():
            message = f"the function {node.function} needs {' and '.join(geosparql.LIBRARIES)}, which are not installed"
            raise Unsupported(message, place_of([node], parsed), parsed.text, "an installation with pip install 'epsparql[geo]'")
        least, most = arguments_of(node.function)
        if not least <= len(node.arguments) <= most:
            message = f"the function {node.function} with {len(node.arguments)} arguments"
            expected = f"{least} of them" if least == most else f"{least} to {most} of them"
            raise Unsupported(message, place_of([node], parsed), parsed.text, expected)


def refuse_searches(parsed: ParsedQuery) -> None:
    """Raise Unsupported at a function that looks into the background where it has none: in a static rule, an
    aggregate, ORDER BY or RUN.
    """
    whole = isinstance(parsed.query, a.BackgroundRule)
    holders = [parsed.query] if whole else [node for node in walk_nodes(parsed.query) if isinstance(node, a.Aggregate | a.OrderKey | a.RunWindow)]
    for node in (part for holder in holders for part in walk_nodes(holder)):
        if isinstance(node, a.Call) and node.function in BACKGROUND_FUNCTIONS:
            message = f"the function {node.function} is not evaluated {'in a static rule' if whole else 'in an aggregate, ORDER BY or RUN'}"
            expected = "a query that reads what the rule derives" if whole else "BIND(... AS ?route) in the group, and ?route here"
            raise Unsupported(message, place_of([node], parsed), parsed.text, expected)


def refuse_invalid_terms(parsed: ParsedQuery) -> None:
    """Raise SyntaxFault at a constant of a rule that no format of RDF can write, such as a relative IRI: it could
    reach the rule's triples.
    """
    if not isinstance(parsed.query, a.Construct | a.BackgroundRule):
        return
    owner: object = parsed.query
    terms = [Iri(parsed.query.graph)] if isinstance(parsed.query, a.BackgroundRule) else []
    for node in (*terms, *walk_nodes(parsed.query)):
        match node:
            case Iri(value) | Literal(_, value, None) if not is_absolute_iri(value):
                fault = f"the IRI <{show_lexical(value)}> is {'not valid' if ':' in value else 'relative'}, so no format can write it"
                _refuse_term(parsed, owner, f"<{value}>", fault, "an absolute IRI (RFC 3987), or BASE with one")
            case Literal(_, _, str() as language) if not is_language_tag(language):
                fault = f"{show_lexical(language)} is no language tag, so no format can write it"
                _refuse_term(parsed, owner, f"@{language}", fault, "a tag such as en or en-GB (RFC 5646)")
            case _ if parsed.places.find_span(node) is not None:
                owner = node


def _refuse_term(parsed: ParsedQuery, owner: object, written: str, message: str, expected: str) -> NoReturn:
    """Raise SyntaxFault at a term, or at `owner`, the node that has it, if it is not written so there."""
    place = place_of([owner], parsed)
    at = parsed.text.find(written, place.start)
    raise SyntaxFault(message, place if at < 0 else Span(at, at + len(written)), parsed.text, expected)


def _like(function: str) -> list[str]:
    """Return the nearest casts, and all extensions; those of GeoSPARQL only for a function of their namespace."""
    casts = sorted((f"xsd:{cast.removeprefix(XSD)}" for cast in CASTS), key=lambda cast: -_likeness(cast.removeprefix("xsd:"), function))
    if function.startswith(geosparql.NAMESPACE):
        return sorted(f"<{iri}>" for iri in geosparql.FUNCTIONS)
    return [*casts[:_CASTS_LISTED], *sorted(name for name in extensions() if name[1:-1] not in geosparql.FUNCTIONS)]


def _likeness(cast: str, function: str) -> float:
    return difflib.SequenceMatcher(None, cast, function.removeprefix(XSD)).ratio() if function.startswith(XSD) else 0


# ---------------------------------------------------------------- what a refusal is about
def culprits(word: str, query: a.Query) -> Iterator[object]:
    """Yield the nodes that a Refusal means by `word`."""
    match word:
        case "INTO" | "PARAMETERS":
            yield query
        case "STEP":
            for node in walk_nodes(query):
                if isinstance(node, a.RangeWindow) and node.step is not None and node.length > MOST_STEPS * node.step:
                    yield node
        case "EXISTS":
            found = [node for node in walk_nodes(query) if isinstance(node, a.Exists)]
            first = bisect_left(range(len(found)), True, key=lambda k: _is_refused(_assume_exists(query, {id(exists) for exists in found[k + 1 :]})))
            yield from found[first : first + 1]


def _assume_exists(query: a.Query, absent: Set[int]) -> a.Query:
    """Return the query in which these EXISTS are true."""

    def replace_exists(node: Any) -> Any:
        if id(node) in absent:
            return a.Constant(TRUE)
        if isinstance(node, tuple):
            return tuple(map(replace_exists, node))
        return map_fields(node, replace_exists) if is_node(node) else node

    rest: a.Query = replace_exists(query)
    return rest


def _is_refused(query: a.Query) -> bool:
    from engine.runtime.query_registry import Registry  # as above

    try:
        Registry().place_query(Register(0, "", ""), query)
    except Refusal:
        return True
    return False

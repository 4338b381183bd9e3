"""Caches what the server needs to know of query texts: the checks at registration, and the form of the solutions."""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, assert_never

import epsparql
from engine.messages import RDFS, REVISED, MessageKey
from epsparql.algebra import (
    Alarm,
    Ask,
    BackgroundRule,
    Construct,
    Describe,
    Group,
    GroupWindow,
    Instant,
    NamedWindow,
    Query,
    RangeWindow,
    RunReport,
    RunWindow,
    Select,
    WithoutFor,
    writing_rules,
    written_stream,
)
from epsparql.deferred_methods import dataclass
from epsparql.errors import QueryError, Span, Unsupported, Warning_
from epsparql.etalis.header import is_program, split_header
from epsparql.etalis.parser.syntax import EleRefused
from epsparql.renderer.queries import render
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.translate.parsed_texts import ParsedTexts, looking_up
from epsparql.translate.translator import ParsedQuery
from epsparql.trees import replace_fields, walk_nodes
from pipeline.solutions.result_kinds import Bindings, Changes, Form, Triples, Verdict

if TYPE_CHECKING:  # a check loads neither
    from engine.physical_plan.plan import Read
    from engine.runtime.introspection import OperatorState


@dataclass(frozen=True, slots=True)
class Shape:
    """Describes a query: the form of its solutions, the streams that it reads, and the stream or the background graph
    that a CONSTRUCT writes.

    `parameters` are those of PARAMETERS. `waits` is the place of the first part whose solutions time alone may bring.
    """

    form: Form
    streams: tuple[str, ...]
    into: str | None
    waits: Span | None = None
    graph: str | None = None
    parameters: tuple[str, ...] = ()

    @property
    def is_rule(self) -> bool:
        """Return whether other queries may rest on what it writes."""
        return self.into is not None or self.graph is not None

    @property
    def touched(self) -> tuple[str, ...]:
        """Return the streams that the query reads, and the one that it writes."""
        return self.streams if self.into is None else (*self.streams, self.into)


@dataclass(frozen=True, slots=True)
class Observed:
    """Holds what a query reads of the background, its operators' rows so far (None if it does not run), and the
    streams' message keys.

    `instants` says whether no event that it reads lasts.
    """

    reads: "Sequence[Read]" = ()
    operators: "Sequence[OperatorState] | None" = None
    message_keys: Mapping[str, MessageKey] = field(default_factory=dict)
    instants: bool = False


NOTHING_OBSERVED = Observed()
_shapes: dict[str, Shape] = {}  # keyed by text and without limit: a server asks for the shapes of all its queries again and again


def check_registration(
    text: str,
    others: Mapping[str, str] = MappingProxyType({}),
    name: str = "this query",
    policies: Mapping[str, str] = MappingProxyType({}),
    *,
    instants: bool = False,
) -> tuple[Warning_, ...]:
    """Return the warnings of a query that can be registered beside `others` (texts by name).

    `policies`, by name, are those of all of them; where there is none, it is `unrestricted`. `instants` says whether
    no event that it reads lasts.

    Raises: QueryError.
    """
    from engine.validation.validate import check as check_plan  # loads the kernel, so only where a query is planned

    parsed = epsparql.parse(text)
    _check_policy(text, policies.get(name, UNRESTRICTED))
    is_rule = isinstance(parsed.query, BackgroundRule) or written_stream(parsed.query) is not None
    rules = {known: other for known, other in others.items() if get_shape(other).is_rule} if is_rule else {}  # only rules can close a cycle
    return (
        *parsed.warnings,
        *check_plan(parsed, {known: epsparql.parse(other).query for known, other in rules.items()}, name=name, policies=policies, instants=instants),
    )


def refuse_instances(text: str) -> None:
    """Refuse a query with PARAMETERS where it cannot have instances. Raises: Unsupported."""
    parsed = epsparql.parse(text)
    if get_shape(text).parameters:
        message = "a query with PARAMETERS has solutions for its instances alone, and there are none here"
        place = parsed.places.find_span(parsed.query) or Span(0, min(1, len(text)))
        raise Unsupported(message, place, text, "a constant in place of each parameter")


def _check_policy(text: str, policy: str) -> None:
    """Check that a program is registered under the policy that its first line names. Raises: EleRefused."""
    if is_program(text) and (named := split_header(text)[1]) != policy:
        raise EleRefused(f"the program's first line names the policy {named}, and the policy is {policy}", Span(0, 1), text, f"the policy {named}")


def explain_query(
    text: str, form: str = "text", default_graph: str = "all", policy: str = UNRESTRICTED, rates: Mapping[str, int] = MappingProxyType({}),
    without: Collection[str] = (), observed: Observed = NOTHING_OBSERVED,
) -> str:  # fmt: skip
    """Return the plan as `text`, `json` or `mermaid`.

    `rates` gives the number of triples of each predicate, by its IRI. `without` names the optional steps to leave
    out. `observed` is what is known of the query beside its text.

    Raises: QueryError.
    """
    from engine import explain  # as above

    check_registration(text, name="explained", policies={"explained": policy})
    declared = explain.Declared(observed.message_keys, observed.instants)
    found = explain.explain(epsparql.parse(text).query, default_graph, policy, explain.rates_given(rates), without, observed.reads, declared)
    if is_program(text):
        from epsparql.etalis.binarization import list_binary_rules  # as above

        found = replace_fields(found, rules=list_binary_rules(text))
    if observed.operators is not None:
        found = replace_fields(found, rows=explain.match_counts(found.plan, observed.operators))
    match form:
        case "json":
            return json.dumps(explain.render_document(found), ensure_ascii=False, indent=2)
        case "mermaid":
            return explain.mermaid(found)
        case _:
            return explain.render_text(found)


def propose_key(text: str, policy: str = UNRESTRICTED) -> str:
    """Return a sentence on the message key by which several partitions could share a query without a key; "" if there
    is none. Raises: QueryError.
    """
    from engine.background.fact_store import FactIndex  # as above
    from engine.partitioning import partition
    from engine.planner.detached_names import name_apart
    from engine.planner.reach import Asked, find_reaches
    from engine.rewrite import rewrite_query

    query = epsparql.parse(text).query
    if isinstance(query, BackgroundRule):
        return ""
    rewritten = rewrite_query(query, policy=policy)
    assert not isinstance(rewritten, BackgroundRule)
    found = partition(query, policy, reach=find_reaches([Asked(rewritten, policy)], name_apart(FactIndex()).matches)[0].settled)
    if found.proposal is None:
        return ""
    return f"several partitions {'cannot share it' if found.slices is None else 'share it by time alone'}, because {found.reason}"


def name_operands(text: str, default_graph: str = "all", policy: str = UNRESTRICTED) -> tuple[tuple[str, ...], ...]:
    """Return the words of the operands that each chain of a registered query joins, in order."""
    from engine.explain.operand_words import name_operands as name_parsed  # as above

    return name_parsed(epsparql.parse(text), default_graph, policy)


def write_first_operands(text: str, n: int) -> str | None:
    """Return the text of the query of a chain's first `n` operands; None if they are no part of it by themselves.

    Of a program, it is the program of the first operands of its rules. Raises: QueryError.
    """
    if is_program(text):
        from epsparql.etalis.first_operands import write_first_operands as write_first_events  # as above

        return write_first_events(text, n)
    from engine.rewrite.operands import select_first_operands  # as above

    found = select_first_operands(epsparql.parse(text).query, n)
    return None if found is None else render(found)


def find_background_reads(background: str, text: str, policy: str = UNRESTRICTED, entailment: str = RDFS) -> "tuple[Read, ...]":
    """Return what a query would read of a background in N-Quads. Raises: QueryError."""
    from engine.explain import reads_over  # as above
    from engine.triples.quads import quads_of

    check_registration(text, name="read", policies={"read": policy})
    return reads_over(quads_of(background), epsparql.parse(text).query, policy, entailment)


def have_one_plan(text: str, other: str, policy: str, default_graph: str) -> bool:
    """Return whether what runs for one text finds what the other asks for, in the same order. Raises: QueryError."""
    from engine.rewrite import rewrite_query  # as above
    from engine.rewrite.equivalence import have_one_plan as is_one_plan

    one, two = (rewrite_query(epsparql.parse(each).query, default_graph, policy) for each in (text, other))
    return is_one_plan(one, two)


def get_shape(text: str) -> Shape:
    """Return the shape of a text that was accepted before; it is cached until `drop_shape`.

    A text that another version accepted, and this one does not, reads and writes nothing; the runner fails its query
    with the reason.
    """
    found = _shapes.get(text)
    if found is None:
        try:
            found = compute_shape(epsparql.parse(text))
        except QueryError:
            found = Shape(Bindings(()), (), None)
        _shapes[text] = found
    return found


def may_write_intervals(text: str, *, instants: bool) -> bool:
    """Return whether a rule may write events that last; `instants` says whether it reads only events that do not.

    Raises: QueryError.
    """
    from engine.kernel.state.layout import FOREVER  # as above
    from engine.pattern_scope import find_scope

    query = epsparql.parse(text).query
    if isinstance(query, BackgroundRule):
        return False
    longest = 0 if instants else FOREVER
    return any(rule.sources.windows or find_scope(rule.pattern, lambda *_: False, longest).longest > 0 for rule in writing_rules(query))


def recall_texts(texts: Collection[str], kept: ParsedTexts) -> None:
    """Cache the shapes of all texts of a catalog, which need not be parsed where they are kept; those that had to be
    are kept from now on.
    """
    with looking_up(kept):
        for text in texts:
            get_shape(text)
            keep_text(text, kept)
        with suppress(OSError):
            kept.drop_others(texts)


def keep_text(text: str, kept: ParsedTexts) -> None:
    """Keep what an accepted text means for the next start. Where that fails, the next start takes longer."""
    if text not in kept:
        with suppress(QueryError, OSError):
            kept.keep_meaning(text, epsparql.parse(text))


def find_form(text: str, emit: str) -> Form:
    """Return the form of what a query gives: its solutions, or the changes of those that stand."""
    form = get_shape(text).form
    return Changes(form) if emit == REVISED and isinstance(form, Bindings | Triples) else form


def drop_shape(text: str) -> None:
    """Drop the shape of a query that was dropped."""
    _shapes.pop(text, None)


def compute_shape(parsed: ParsedQuery) -> Shape:
    query = parsed.query
    graph = query.graph if isinstance(query, BackgroundRule) else None
    parameters = tuple(variable.name for variable in query.parameters) if isinstance(query, Select) else ()
    return Shape(_form_of(query), query.streams, written_stream(query), _waits_at(parsed), graph, parameters)


def _form_of(query: Query) -> Form:
    match query:
        case Select():
            variables = tuple(variable.name for variable in query.projection)
            return Bindings(variables, events=query.program, instances=bool(query.parameters))
        case Construct() | Describe() | BackgroundRule():
            return Triples()
        case Ask():
            return Verdict()
        case _:
            assert_never(query)


def _waits_at(parsed: ParsedQuery) -> Span | None:
    """Return the place of the first timer, or window that reports at instants of its own; None where there is neither."""
    for node in walk_nodes(parsed.query):
        if isinstance(node, Alarm | Instant | WithoutFor | NamedWindow) or (isinstance(node, Group) and _reports_by_time(node.window)):
            return parsed.places.find_span(node) or Span(0, min(1, len(parsed.text)))
    return None


def _reports_by_time(window: GroupWindow | None) -> bool:
    match window:
        case RangeWindow(_, step):
            return step is not None
        case RunWindow(report=RunReport.CLOSED):
            return window.gap is not None or window.within is not None
        case _:
            return False

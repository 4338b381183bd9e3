"""This module writes events as triple patterns and templates, on a program's own stream and on those that it reads.

Events that rules derive and read lie on the own stream. An event `p(t1, ..., tn)` is one triple there. With three
arguments and more, it is a star of triples around a node for the list of arguments. So equal events on one interval
are one, as occurrences are a set:

    p         unit  own:p/0    unit
    p(t)      unit  own:p/1    t
    p(t,u)    t     own:p/2    u
    p(t,u,v)  node  own:p/3:1  t,   node  own:p/3:2  u,   node  own:p/3:3  v

Events that streams alone bring are matched where they come. If a program writes a stream, events that its rules
derive lie on the own stream twice: once more for what is to be written, because the first triples may have been sent.
"""

from collections.abc import Sequence

from epsparql import algebra as a
from epsparql.etalis.parser.vocabulary import (
    EMPTY_LIST,
    NEVER,
    OWN,
    UNIT,
    URN,
    argument_predicate,
    event_predicate,
    iri_of,
    is_iri,
    prefix_predicate,
)  # fmt: skip
from epsparql.etalis.statics.conditions import TYPE, call, triple_of
from epsparql.terms import Iri, Literal, TermOrVariable, Variable

EVENT, ARGUMENTS = Variable("event"), Variable("args")
"""What is reported of an event: its name, and the list of its arguments where no rule names its predicate."""
SENT = Variable("_:event")
"""The node of an event that is written to a stream."""
NOTHING = a.InWindow(OWN, a.Bgp((a.TriplePattern(UNIT, NEVER, UNIT),)))
"""This pattern has no solution."""


def own_pattern(name: str, arguments: Sequence[TermOrVariable], node: Variable, *, derived: bool = False) -> a.Pattern:
    """Return the pattern of an event on the program's own stream, whether or not it is `derived`; `node` is a
    variable of its own.
    """
    return _star([a.InWindow(OWN, a.Bgp((triple,))) for triple in own_triples(name, arguments, node, derived=derived)])


def own_triples(name: str, arguments: Sequence[TermOrVariable], node: TermOrVariable, *, derived: bool) -> tuple[a.TriplePattern, ...]:
    """Return the triples of an event on the program's own stream."""
    n = len(arguments)
    if n < 3:
        subject, object_ = (UNIT, UNIT, *arguments)[n:]
        return (a.TriplePattern(subject, event_predicate(name, n, derived=derived), object_),)
    return tuple(a.TriplePattern(node, event_predicate(name, n, k, derived=derived), argument) for k, argument in enumerate(arguments, 1))


def triple_pattern(name: str, arguments: Sequence[TermOrVariable]) -> a.Pattern:
    """Return the pattern of an atom whose predicate is an IRI: triples of streams, of the background, and of the
    program itself.
    """
    triples = a.Bgp((triple_of(name, arguments),))
    return a.Union(triples, a.InWindow(OWN, triples))


def reported_triples(name: str, arguments: Sequence[TermOrVariable], streams: Sequence[str]) -> a.Pattern:
    """Return the pattern of the same triples as they are reported, without those of the background."""
    return join_union([a.InWindow(stream, a.Bgp((triple_of(name, arguments),))) for stream in (OWN, *streams)])


def event_rule(
    name: str, arguments: Sequence[TermOrVariable], pattern: a.Pattern, streams: tuple[str, ...], label: str = "", *, marked: bool = False
) -> a.Construct:
    """Return the rule that derives an event for each solution of a pattern; `marked` says that the events are to be
    written to a stream.
    """
    node = Variable("_:node")
    if is_iri(name):
        return a.Construct((triple_of(name, arguments),), pattern, streams, OWN, label=label)
    if len(arguments) > 2:
        pattern = a.Extend(pattern, node, call("key", *map(_value, arguments)))
    template = [triple for derived in ((False, True) if marked else (False,)) for triple in own_triples(name, arguments, node, derived=derived)]
    return a.Construct(tuple(template), pattern, streams, OWN, label=label)


def written_rule(name: str, arity: int, streams: tuple[str, ...], into: str) -> a.Construct:
    """Return the rule that writes the derived events of a predicate to a stream: as a node with a type and arguments,
    or the triple that they are.
    """
    arguments = [Variable(f"a{k}") for k in range(1, arity + 1)]
    if is_iri(name):
        triple = triple_of(name, arguments)
        return a.Construct((triple,), a.InWindow(OWN, a.Bgp((triple,))), streams, into)
    times = [a.Time(function) for function in (a.TimeFunction.START, a.TimeFunction.END)]
    named = call("event", a.Constant(Literal(name)), *map(_value, arguments), *times)
    pattern = a.Extend(own_pattern(name, arguments, Variable("_:node"), derived=True), SENT, named)
    parts = [a.TriplePattern(SENT, argument_predicate(k), argument) for k, argument in enumerate(arguments, 1)]
    return a.Construct((a.TriplePattern(SENT, TYPE, iri_of(name)), *parts), pattern, streams, into)


def no_rule(streams: tuple[str, ...], into: str) -> a.Construct:
    """Return a rule that writes nothing to a stream, whose time it brings along."""
    return a.Construct((a.TriplePattern(UNIT, NEVER, UNIT),), NOTHING, streams, into)


def sent_pattern(name: str, arguments: Sequence[TermOrVariable], node: Variable, streams: Sequence[str]) -> a.Pattern:
    """Return the pattern of an event as streams have it: a node with a type and exactly these arguments, one value
    each, all on one interval.

    Events are a set, so nodes with the same arguments are one. `node` is a variable of the pattern's own.
    """
    shown = tuple(dict.fromkeys(each for each in arguments if isinstance(each, Variable)))
    return a.SubSelect(join_union([_sent_on(iri_of(name), arguments, node, stream) for stream in streams]), shown, True)


def _sent_on(kind: Iri, arguments: Sequence[TermOrVariable], node: Variable, stream: str) -> a.Pattern:
    found = _star(
        [_sent_part(stream, node, TYPE, kind), *(_sent_part(stream, node, argument_predicate(k), each) for k, each in enumerate(arguments, 1))]
    )
    for k, argument in enumerate(arguments, 1):
        found = _has_no_other(found, stream, k, argument, node)
    return _has_no_other(found, stream, len(arguments) + 1, None, node)


def _sent_part(stream: str, node: Variable, predicate: Iri, value: TermOrVariable) -> a.Pattern:
    return a.InWindow(stream, a.Bgp((a.TriplePattern(node, predicate, value),)))


def _has_no_other(found: a.Pattern, stream: str, place: int, argument: TermOrVariable | None, node: Variable) -> a.Pattern:
    """Return the solutions whose node has no argument at a place on the same interval, but the one that is given."""
    other = Variable(f"{node.name}~{place}")
    differs = None if argument is None else a.Not(a.Call("SAMETERM", (a.Var(other), _value(argument))))
    return a.Filter(a.Not(a.Bound(other)), a.EqLeftJoin(found, _sent_part(stream, node, argument_predicate(place), other), differs))


def _value(part: TermOrVariable) -> a.Expression:
    return a.Var(part) if isinstance(part, Variable) else a.Constant(part)


# ---------------------------------------------------------------- events that no rule names
def prefix_rules(streams: tuple[str, ...], most: int) -> list[a.Construct]:
    """Return the rules that list the first arguments of each typed node, one more a rule, up to `most`."""
    node, known, added, whole = Variable("_:event"), Variable("_:known"), Variable("_:added"), Variable("_:whole")
    found = []
    for number, stream in enumerate(streams):
        typed = _is_named(_sent_part(stream, node, TYPE, EVENT))
        found.append(a.Construct((a.TriplePattern(node, prefix_predicate(number, 0), EMPTY_LIST),), typed, streams, OWN))
        for k in range(1, most + 1):
            before = a.InWindow(OWN, a.Bgp((a.TriplePattern(node, prefix_predicate(number, k - 1), known),)))
            pairs = _has_no_other(a.EqJoin(before, _sent_part(stream, node, argument_predicate(k), added)), stream, k, added, node)
            pairs = a.Extend(pairs, whole, call("append", a.Var(known), a.Var(added)))
            found.append(a.Construct((a.TriplePattern(node, prefix_predicate(number, k), whole),), pairs, streams, OWN))
    return found


def other_pattern(arity: int, streams: Sequence[str]) -> a.Pattern:
    """Return the pattern of all events of an arity, as streams have them, with their names and lists of arguments."""
    node = Variable("_:event")
    found = []
    for number, stream in enumerate(streams):
        listed = a.InWindow(OWN, a.Bgp((a.TriplePattern(node, prefix_predicate(number, arity), ARGUMENTS),)))
        whole = _has_no_other(listed, stream, arity + 1, None, node)
        found.append(_is_named(a.EqJoin(whole, _sent_part(stream, node, TYPE, EVENT))))
    return join_union(found)


def _is_named(pattern: a.Pattern) -> a.Pattern:
    return a.Filter(a.Call("STRSTARTS", (a.Call("STR", (a.Var(EVENT),)), a.Constant(Literal(URN)))), pattern)


def join_union(patterns: Sequence[a.Pattern]) -> a.Pattern:
    """Return a balanced union."""
    rest = list(patterns)
    while len(rest) > 1:
        rest = [rest[k] if k + 1 == len(rest) else a.Union(rest[k], rest[k + 1]) for k in range(0, len(rest), 2)]
    return rest[0]


def _star(parts: Sequence[a.Pattern]) -> a.Pattern:
    whole = parts[0]
    for part in parts[1:]:
        whole = a.EqJoin(whole, part)
    return whole


def input_rule(name: str, arity: int, streams: tuple[str, ...]) -> a.Construct:
    """Return the rule that takes the events of a predicate from streams to the program's own stream."""
    arguments = [Variable(f"a{k}") for k in range(1, arity + 1)]
    return event_rule(name, arguments, sent_pattern(name, arguments, Variable("_:event"), streams), streams)


def reported_solutions(name: str, arguments: Sequence[TermOrVariable], pattern: a.Pattern) -> a.Pattern:
    """Return the pattern of the events that a rule reports and no rule reads, which so are on no stream."""
    for k, argument in enumerate(arguments, 1):
        pattern = a.Extend(pattern, Variable(f"a{k}"), _value(argument))
    return a.Extend(pattern, EVENT, a.Constant(iri_of(name)))

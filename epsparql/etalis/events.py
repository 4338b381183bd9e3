"""This module writes events as triple patterns and templates, on a program's own stream and on those that it reads.

An event `p(t1, ..., tn)` is on the own stream one triple, or for two arguments and more a star of triples around a node that stands for the list
of arguments. So equal events on one interval are one, as occurrences are a set:

    p       unit  own:p/0    unit
    p(t)    unit  own:p/1    t
    p(t,u)  node  own:p/2:1  t,   node  own:p/2:2  u
"""

from collections.abc import Sequence

from epsparql import algebra as a
from epsparql.etalis.conditions import call
from epsparql.etalis.vocabulary import NEVER, OWN, UNIT, argument_predicate, event_predicate, iri_of
from epsparql.terms import RDF, Iri, TermOrVariable, Variable

TYPE = Iri(RDF + "type")
NOTHING = a.InWindow(OWN, a.Bgp((a.TriplePattern(UNIT, NEVER, UNIT),)))
"""This pattern has no solution."""


def own_pattern(name: str, arguments: Sequence[TermOrVariable], node: Variable) -> a.Pattern:
    """Return the pattern of an event on the program's own stream; `node` is a variable of its own."""
    return _star([a.InWindow(OWN, a.Bgp((triple,))) for triple in own_triples(name, arguments, node)])


def own_triples(name: str, arguments: Sequence[TermOrVariable], node: TermOrVariable) -> tuple[a.TriplePattern, ...]:
    """Return the triples of an event on the program's own stream."""
    n = len(arguments)
    if n < 2:
        return (a.TriplePattern(UNIT, event_predicate(name, n), arguments[0] if n else UNIT),)
    return tuple(a.TriplePattern(node, event_predicate(name, n, k), argument) for k, argument in enumerate(arguments, 1))


def event_rule(name: str, arguments: Sequence[TermOrVariable], pattern: a.Pattern, streams: tuple[str, ...]) -> a.Construct:
    """Return the rule that derives an event for each solution of a pattern."""
    node = Variable("_:node")
    if len(arguments) > 1:
        pattern = a.Extend(pattern, node, call("key", *(a.Var(each) if isinstance(each, Variable) else a.Constant(each) for each in arguments)))
    return a.Construct(own_triples(name, arguments, node), pattern, streams, OWN)


def sent_pattern(kind: TermOrVariable, arguments: Sequence[Variable], streams: Sequence[str]) -> a.Pattern:
    """Return the pattern of an event as streams have it: a node with a type and exactly these arguments, one value each, all on one interval."""
    found = [_sent_on(kind, arguments, stream) for stream in streams]
    whole = found[0]
    for each in found[1:]:
        whole = a.Union(whole, each)
    return whole


def _sent_on(kind: TermOrVariable, arguments: Sequence[Variable], stream: str) -> a.Pattern:
    node = Variable("_:event")

    def part(predicate: Iri, value: TermOrVariable) -> a.Pattern:
        return a.InWindow(stream, a.Bgp((a.TriplePattern(node, predicate, value),)))

    found = _star([part(TYPE, kind), *(part(argument_predicate(k), argument) for k, argument in enumerate(arguments, 1))])
    absent = [(Variable(f"_:other#{k}"), argument) for k, argument in enumerate((*arguments, None), 1)]
    for k, (other, argument) in enumerate(absent, 1):
        differs = None if argument is None else a.Not(a.Call("SAMETERM", (a.Var(other), a.Var(argument))))
        found = a.Filter(a.Not(a.Bound(other)), a.EqLeftJoin(found, part(argument_predicate(k), other), differs))
    return found


def _star(parts: Sequence[a.Pattern]) -> a.Pattern:
    whole = parts[0]
    for part in parts[1:]:
        whole = a.EqJoin(whole, part)
    return whole


def input_rule(name: str, arity: int, streams: tuple[str, ...]) -> a.Construct:
    """Return the rule that takes the events of a predicate from streams to the program's own stream."""
    arguments = [Variable(f"a{k}") for k in range(1, arity + 1)]
    return event_rule(name, arguments, sent_pattern(iri_of(name), arguments, streams), streams)

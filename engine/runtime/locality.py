"""This module finds the streams in which nodes of a message are local: no later entry of the log describes them
(semantics.md section 5).
"""

from collections.abc import Iterable

from epsparql import algebra as a
from epsparql.terms import BlankNode, Variable


def find_described(rules: Iterable[a.Construct]) -> frozenset[str]:
    """Return the streams into which a rule writes triples of nodes that it may have found in a stream.

    A program names the nodes of its events itself, by hidden variables.
    """
    return frozenset(rule.into for rule in rules if any(_may_describe(triple.subject) for triple in rule.template))


def _may_describe(subject: object) -> bool:
    return not isinstance(subject, BlankNode) and not (isinstance(subject, Variable) and subject.hidden)

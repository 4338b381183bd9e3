"""This module tells what kind of solutions a query has."""

from typing import NamedTuple

from epsparql.deferred_methods import dataclass


class InstanceLife(NamedTuple):
    """Names an instance from the entry `since` on, which added it: its id may have named another one before."""

    instance: str
    since: int


@dataclass(frozen=True, slots=True)
class Bindings:
    """Stands for the solutions of a SELECT: a term for each of `variables` (names in their order), None where unbound.

    If they are `events` of an ETALIS program, the first variable is the event's name, and the others are its arguments.
    If they are of `instances`, the id of each solution's instance, a literal, comes before its terms.
    """

    variables: tuple[str, ...]
    events: bool = False
    instances: bool = False


@dataclass(frozen=True, slots=True)
class Triples:
    """Stands for the solutions of a CONSTRUCT or DESCRIBE: N-Triples statements."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Stands for the solution of an ASK: one xsd:boolean."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Stands for the changes of a revised query, whose solutions are of the form `of`."""

    of: Bindings | Triples


Form = Bindings | Triples | Verdict | Changes


def find_program_form(form: Form) -> Bindings | None:
    """Return the form of the events of an ETALIS program that are given, or changed; None for another query's form."""
    solutions = form.of if isinstance(form, Changes) else form
    return solutions if isinstance(solutions, Bindings) and solutions.events else None

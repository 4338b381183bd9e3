"""What the solutions of a query are."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bindings:
    """Solutions of a SELECT: a term for each of `variables` (names in their order), None where unbound."""

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Triples:
    """Solutions of a CONSTRUCT or DESCRIBE: N-Triples statements."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The solution of an ASK: one xsd:boolean."""


Form = Bindings | Triples | Verdict

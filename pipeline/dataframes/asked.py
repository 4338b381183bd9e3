"""This module defines what `solve` asks of engines: queries that run together, over a background."""

from engine.messages import NODE_NAMES, Entry, Facts, Register
from epsparql.deferred_methods import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """Represents the queries of one share by name, with their policies, over background graphs ("" for none) in
    N-Triples.
    """

    queries: tuple[tuple[str, str, str], ...]
    facts: tuple[tuple[str, str], ...]
    default_graph: str

    def entries(self) -> list[Entry]:
        facts: list[Entry] = [Facts(offset, graph, triples) for offset, (graph, triples) in enumerate(self.facts)]
        return facts + [
            Register(len(facts) + k, name, text, policy, self.default_graph, node_names=NODE_NAMES)
            for k, (name, text, policy) in enumerate(self.queries)
        ]


@dataclass(frozen=True, slots=True)
class Share:
    """Represents queries that run in the same `partitions` engines, numbered from `first`.

    An event goes to the engine that its term in `column` chooses; with None there is one engine.
    """

    queries: tuple[str, ...]
    column: str | None
    first: int
    partitions: int

"""Logs in which the background changes while a stream runs, and what its occurrences entail meanwhile by the rules
one at a time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from engine.messages import ADD, DROP, REPLACE, Entry, Events, Facts, Finish, Register
from epsparql.solutions.policies import UNRESTRICTED
from epsparql.terms import RDF, Iri, Term
from tests.reference.evaluator import Fact, Occurrence
from tests.support.feeds import EXAMPLE, SECOND
from verification.definitions import rdfs
from verification.definitions.rdfs import RDFS, SUBCLASS

TYPE = Iri(RDF + "type")
NAMES = st.sampled_from([*(Iri(EXAMPLE + name) for name in "ABCDpqr"), TYPE])
RELATIONS = st.sampled_from([Iri(RDFS + name) for name in ("subClassOf", "subPropertyOf", "domain", "range")])
STATED = st.builds(lambda s, p, o: Fact((s, p, o)), NAMES, RELATIONS, st.one_of(NAMES, NAMES, st.just(SUBCLASS)))
SCHEMAS = st.lists(STATED, max_size=5)
"""Cycles, diamonds, several parents, classes that are properties, and what is said of rdf:type itself."""
CHANGES = st.tuples(st.sampled_from((ADD, ADD, REPLACE, DROP)), SCHEMAS)


@dataclass(frozen=True)
class Step:
    """Says what comes next.

    Time goes so many instants on, there are occurrences of then or up to `late` before, and then perhaps a change of
    the background.
    """

    later: int
    triples: tuple[tuple[Term, Term, Term], ...]
    change: tuple[str, list[Fact]] | None
    length: int = 0
    late: int = 0


GRAPH, STATES_IN = Iri(EXAMPLE + "g"), "urn:background"


@dataclass
class Told:
    """A log, and the occurrences with what each entails by the background of its instant."""

    log: list[tuple[Entry, tuple[Occurrence, ...]]]
    entailed: list[Occurrence]


def told(queries: dict[str, str], schema: Sequence[Fact], steps: Sequence[Step], delay: int, policy: str = UNRESTRICTED) -> Told:
    """Tell a timeline whose occurrences come up to `delay` instants late.

    The instant `e` has the background of the entry that lets it begin: the first to take the watermark as far.
    """
    log: list[tuple[Entry, tuple[Occurrence, ...]]] = [(Facts(0, STATES_IN, text_of(schema)), ())]
    log += [(Register(k, name, text, policy), ()) for k, (name, text) in enumerate(queries.items(), 1)]
    stated, waiting, begun, now, latest = [*schema], list[Occurrence](), dict[int, frozenset[Fact]](), 1, 1 - delay
    entailed: list[Occurrence] = []
    for step in steps:
        now += step.later
        end = now - min(step.late, delay)
        latest = max(latest, end)
        new = tuple(dict.fromkeys(Occurrence(triple, (end - step.length) * SECOND, end * SECOND, GRAPH) for triple in step.triples))
        log.append((Events(len(log), "default", len(new), (latest - delay) * SECOND), new))
        waiting += new
        begun.setdefault((latest - delay) * SECOND, rdfs.closed(stated))  # though nothing has come of it yet
        entailed += taken(waiting, (latest - delay) * SECOND, begun, stated)
        if step.change is not None:
            change, facts = step.change
            stated = ([*stated, *facts] if change == ADD else [*facts]) if change != DROP else []
            log.append((Facts(len(log), STATES_IN, "" if change == DROP else text_of(facts), change), ()))
    log.append((Finish(len(log), "default"), ()))
    return Told(log, [*entailed, *taken(waiting, now * SECOND, begun, stated)])


def taken(waiting: list[Occurrence], until: int, begun: dict[int, frozenset[Fact]], stated: Sequence[Fact]) -> Iterable[Occurrence]:
    """Return what the occurrences that wait no longer entail."""
    found: list[Occurrence] = []
    for occurrence in [o for o in waiting if o.end <= until]:
        waiting.remove(occurrence)
        found += rdfs.entailed([occurrence], begun.setdefault(occurrence.end, rdfs.closed(stated)))
    return found


def iri(name: str) -> Iri:
    return Iri(EXAMPLE + name)


def text_of(facts: Iterable[Fact]) -> str:
    return "".join("{} {} {} .\n".format(*fact.triple) for fact in facts)

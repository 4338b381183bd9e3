"""Figure 2 of the EP-SPARQL paper: the delay of finding, for each typed triple, whether its subject is an instance of
a class or of a class below it.

The hierarchy is generated: as many classes as in the paper, as deep, under the class that the paper asks for.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bench.measurement import WrongCount
from bench.papers.feeds import BEGIN, Event, batches, iri, run
from bench.papers.figures import NOT_LEGIBLE, Figure, Row, Size
from engine.background.reasoning.rdfs_schema import RDFS
from epsparql.terms import RDF

FIGURES = {
    "003-2": Figure(
        "No. of Triples vs. Reasoning Delay",
        "EP-SPARQL paper, Figure 2, test 2",
        "triples",
        "ms",
        "40,080 classes, at most 8 levels below EthanPlants.owl#Tracheobionta; 5,000, 10,000, 15,000 and 20,000 typed triples.",
        "The hierarchy is generated, with four classes below each. The time does not include loading the hierarchy and registering the query.",
        axis="0 to 2000 ms",
    ),
}
CLASSES, FAN_OUT = 40_080, 4
_PLANTS = "http://spire.umbc.edu/ontologies/EthanPlants.owl#"
_QUERY = {"instances": f"SELECT ?s WHERE {{ ?s a <{_PLANTS}Tracheobionta> }}"}
_PEER_US = 8.3
"""ETALIS takes so many µs a triple on SWI-Prolog 9, as we measured it on another day; see docs/paper-experiments.md."""


def measure(size: Size) -> Iterator[Row]:
    """Yield a row for each number of triples and share of hits. Raises: WrongCount."""
    classes = size.of(CLASSES, 400)
    hierarchy = "".join(f"{_class(k)} <{RDFS}subClassOf> {_class((k - 1) // FAN_OUT)} .\n" for k in range(1, classes + 1))
    run(_QUERY, batches(_typed([1, classes + 1])), hierarchy)  # compiled code is loaded
    for triples in (500, 1_000) if size.quick else (5_000, 10_000, 15_000, 20_000):
        drawn = np.random.default_rng(42).integers(1, classes + 1, triples)
        for series, kinds, hits, paper in (("all are instances", drawn, triples, NOT_LEGIBLE), ("none is", drawn + classes, 0, None)):
            found = run(_QUERY, batches(_typed(kinds.tolist())), hierarchy)
            if found.counts["instances"] != hits:
                raise WrongCount(f"papers: instances of {triples} triples", found.counts["instances"], hits)
            yield Row("003-2", series, triples, round(found.cpu_s * 1_000, 2), paper, {"us_a_triple": round(found.cpu_s * 1e6 / triples, 3)})
        yield Row("003-2", "ETALIS on SWI-Prolog 9", triples, round(triples * _PEER_US / 1_000), None, {"measured": "another day"})


def _class(k: int) -> str:
    return f"<{_PLANTS}Tracheobionta>" if k == 0 else f"<{_PLANTS}C{k}>"


def _typed(kinds: Sequence[int]) -> Iterator[Event]:
    for k, kind in enumerate(kinds):
        yield Event(iri(f"plant/{k % 1_000}"), f"<{RDF}type>", _class(kind), BEGIN + k * 1_000)

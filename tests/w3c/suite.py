"""The W3C's SPARQL 1.0, 1.1 and 1.2 test suites, read from their manifests."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from rdflib import RDF, Graph, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.term import Node

ROOT = Path(__file__).parents[3] / "shared" / "w3c-sparql"
ROOT_1_2 = ROOT.parent / "w3c-1.2"
BASES = {
    "sparql10": "http://www.w3.org/2001/sw/DataAccess/tests/data-r2/",
    "sparql11": "http://www.w3.org/2009/sparql/docs/tests/data-sparql11/",
    "sparql12": "https://w3c.github.io/rdf-tests/sparql/sparql12/",
}
"""Where a suite lives on the Web: the base of the relative IRIs in its files."""

MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
SD = Namespace("http://www.w3.org/ns/sparql-service-description#")
ENT = Namespace("http://www.w3.org/ns/entailment/")
OTHER_SPECIFICATIONS = (
    "add", "basic-update", "clear", "copy", "delete", "delete-data", "delete-insert", "delete-where", "drop", "move", "syntax-update-1", "syntax-update-2",
    "update-silent", "service", "service-description", "protocol", "graph-store-protocol", "http-rdf-update",
)  # fmt: skip
"""Groups of SPARQL 1.1 about updates, federation and protocols, which are no part of the language."""


class Kind(Enum):
    """Names what is asked of a query."""

    EVALUATION = "evaluation"
    POSITIVE = "syntax"
    NEGATIVE = "negative syntax"


KINDS = {
    MF.QueryEvaluationTest: Kind.EVALUATION,
    MF.CSVResultFormatTest: Kind.EVALUATION,
    MF.PositiveSyntaxTest: Kind.POSITIVE,
    MF.PositiveSyntaxTest11: Kind.POSITIVE,
    MF.NegativeSyntaxTest: Kind.NEGATIVE,
    MF.NegativeSyntaxTest11: Kind.NEGATIVE,
}
UPDATES = (MF.PositiveUpdateSyntaxTest, MF.NegativeUpdateSyntaxTest, MF.UpdateEvaluationTest)
"""Tests of updates, which stand among the others in SPARQL 1.2's groups."""


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """One test of a manifest. Files stand in the folder `suite / group` of `ROOT` or `ROOT_1_2`."""

    suite: str
    group: str
    name: str
    kind: Kind
    query: str
    data: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()
    result: str | None = None
    lax: bool = False  # REDUCED: duplicates may go
    regimes: frozenset[str] = frozenset()  # entailment regimes, any of which gives the result; with none, simple entailment

    @property
    def id(self) -> str:
        return f"{self.suite}/{self.group}/{self.name}"

    def path(self, name: str) -> Path:
        return (ROOT_1_2 if self.suite == "sparql12" else ROOT) / self.suite / self.group / name

    def iri(self, name: str) -> str:
        return f"{BASES[self.suite]}{self.group}/{name}"

    @property
    def text(self) -> str:
        return self.path(self.query).read_bytes().decode()


def cases() -> list[SuiteCase]:
    """Every test of the query language, in the order of the manifests; those of entailment regimes beyond RDFS are `beyond_rdfs`."""
    return [case for case in _all_cases() if not is_beyond_rdfs(case)]


def beyond_rdfs() -> list[SuiteCase]:
    """Tests whose regimes all entail more than RDFS does."""
    return [case for case in _all_cases() if is_beyond_rdfs(case)]


def _all_cases() -> list[SuiteCase]:
    manifests = [*sorted(ROOT.glob("*/*/manifest.ttl")), *sorted(ROOT_1_2.glob("sparql12/*/manifest.ttl"))]
    return [case for manifest in manifests if manifest.parent.name not in OTHER_SPECIFICATIONS for case in _cases(manifest)]


def is_beyond_rdfs(case: SuiteCase) -> bool:
    return bool(case.regimes) and not case.regimes & {"RDF", "RDFS"}


def _cases(manifest: Path) -> Iterator[SuiteCase]:
    suite, group = manifest.parts[-3:-1]
    graph = Graph().parse(manifest, publicID=f"{BASES[suite]}{group}/manifest.ttl")
    for head in graph.objects(None, MF.entries):
        for test in Collection(graph, head):
            if graph.value(test, RDF.type) not in UPDATES:
                yield _case(graph, test, suite, group)


def _case(graph: Graph, test: Node, suite: str, group: str) -> SuiteCase:
    action = graph.value(test, MF.action)
    assert action is not None, test
    query = graph.value(action, QT.query) or action
    result = graph.value(test, MF.result)
    return SuiteCase(
        suite=suite,
        group=group,
        name=str(test).rpartition("#")[2],
        kind=KINDS[URIRef(str(graph.value(test, RDF.type)))],
        query=_file(query),
        data=tuple(sorted(_file(data) for data in graph.objects(action, QT.data))),
        graphs=tuple(sorted(_file(data) for data in graph.objects(action, QT.graphData))),
        result=None if result is None else _file(result),
        lax=graph.value(test, MF.resultCardinality) == MF.LaxCardinality,
        regimes=frozenset(_regimes(graph, graph.value(action, SD.entailmentRegime))),
    )


def _regimes(graph: Graph, value: Node | None) -> list[str]:
    if value is None:
        return []
    members = [value] if isinstance(value, URIRef) else list(Collection(graph, value))
    return [str(member).removeprefix(str(ENT)) for member in members]


def _file(node: Node) -> str:
    return str(node).rpartition("/")[2]

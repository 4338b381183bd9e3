"""The W3C's SPARQL 1.0, 1.1 and 1.2 test suites, read from their manifests."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

import pyoxigraph as ox

ROOT = Path(__file__).parents[3] / "shared" / "w3c-sparql"
ROOT_1_2 = ROOT.parent / "w3c-1.2"
BASES = {
    "sparql10": "http://www.w3.org/2001/sw/DataAccess/tests/data-r2/",
    "sparql11": "http://www.w3.org/2009/sparql/docs/tests/data-sparql11/",
    "sparql12": "https://w3c.github.io/rdf-tests/sparql/sparql12/",
}
"""Where a suite lives on the Web: the base of the relative IRIs in its files."""

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
SD = "http://www.w3.org/ns/sparql-service-description#"
ENT = "http://www.w3.org/ns/entailment/"
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
    MF + "QueryEvaluationTest": Kind.EVALUATION,
    MF + "CSVResultFormatTest": Kind.EVALUATION,
    MF + "PositiveSyntaxTest": Kind.POSITIVE,
    MF + "PositiveSyntaxTest11": Kind.POSITIVE,
    MF + "NegativeSyntaxTest": Kind.NEGATIVE,
    MF + "NegativeSyntaxTest11": Kind.NEGATIVE,
}
UPDATES = (MF + "PositiveUpdateSyntaxTest", MF + "NegativeUpdateSyntaxTest", MF + "UpdateEvaluationTest")
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
    """Every test of the query language, in the order of the manifests; those of entailment regimes beyond RDFS are
    `beyond_rdfs`.
    """
    return [case for case in _all_cases() if not is_beyond_rdfs(case)]


def beyond_rdfs() -> list[SuiteCase]:
    """Tests whose regimes all entail more than RDFS does."""
    return [case for case in _all_cases() if is_beyond_rdfs(case)]


@cache
def _all_cases() -> tuple[SuiteCase, ...]:
    manifests = [*sorted(ROOT.glob("*/*/manifest.ttl")), *sorted(ROOT_1_2.glob("sparql12/*/manifest.ttl"))]
    return tuple(case for manifest in manifests if manifest.parent.name not in OTHER_SPECIFICATIONS for case in _cases(manifest))


def is_beyond_rdfs(case: SuiteCase) -> bool:
    return bool(case.regimes) and not case.regimes & {"RDF", "RDFS"}


class Manifest:
    """Holds the triples of a manifest by subject and predicate.

    A term is the value of its IRI or literal, or the label of its blank node.
    """

    def __init__(self, path: Path, base: str) -> None:
        self._objects = defaultdict[tuple[str, str], list[str]](list)
        for quad in ox.parse(path.read_bytes(), ox.RdfFormat.TURTLE, base_iri=base):
            self._objects[_value(quad.subject), quad.predicate.value].append(_value(quad.object))

    def objects(self, subject: str, predicate: str) -> list[str]:
        return self._objects.get((subject, predicate), [])

    def value(self, subject: str, predicate: str) -> str | None:
        return next(iter(self.objects(subject, predicate)), None)

    def items(self, head: str) -> Iterator[str]:
        """Yield the members of a list."""
        while head != RDF + "nil":
            yield from self.objects(head, RDF + "first")
            [head] = self.objects(head, RDF + "rest")

    def tests(self) -> list[str]:
        return [test for (_, predicate), heads in self._objects.items() if predicate == MF + "entries" for head in heads for test in self.items(head)]


def _value(term: object) -> str:
    match term:
        case ox.NamedNode(value=value) | ox.BlankNode(value=value) | ox.Literal(value=value):
            return str(value)
    raise AssertionError(term)


def _cases(manifest: Path) -> Iterator[SuiteCase]:
    suite, group = manifest.parts[-3:-1]
    read = Manifest(manifest, f"{BASES[suite]}{group}/manifest.ttl")
    for test in read.tests():
        kind = read.value(test, RDF + "type")
        if kind not in UPDATES:
            yield _case(read, test, KINDS[str(kind)], suite, group)


def _case(read: Manifest, test: str, kind: Kind, suite: str, group: str) -> SuiteCase:
    [action] = read.objects(test, MF + "action")
    result = read.value(test, MF + "result")
    return SuiteCase(
        suite=suite,
        group=group,
        name=test.rpartition("#")[2],
        kind=kind,
        query=file_name(read.value(action, QT + "query") or action),
        data=tuple(sorted(map(file_name, read.objects(action, QT + "data")))),
        graphs=tuple(sorted(map(file_name, read.objects(action, QT + "graphData")))),
        result=None if result is None else file_name(result),
        lax=read.value(test, MF + "resultCardinality") == MF + "LaxCardinality",
        regimes=frozenset(_regimes(read, read.value(action, SD + "entailmentRegime"))),
    )


def _regimes(read: Manifest, value: str | None) -> list[str]:
    if value is None:
        return []
    members = read.items(value) if read.objects(value, RDF + "first") else [value]
    return [member.removeprefix(ENT) for member in members]


def file_name(iri: str) -> str:
    return iri.rpartition("/")[2]

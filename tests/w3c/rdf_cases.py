"""The cases of the W3C's RDF 1.2 suites that are about reading RDF: Turtle, TriG, N-Triples, N-Quads and RDF/XML."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyoxigraph as ox

from pipeline.errors import FormatError
from pipeline.formats.background import read_graphs, syntax_of
from tests.w3c.suite import MF, RDF, ROOT_1_2, Manifest, file_name

RDF_12 = ROOT_1_2 / "rdf12"
_BASE = "https://w3c.github.io/rdf-tests/rdf/rdf12/"
_KINDS = {"NegativeSyntax": "negative", "PositiveSyntax": "positive", "Eval": "evaluation", "PositiveC14N": "canonical"}
_RDFT = "http://www.w3.org/ns/rdftest#"


@dataclass(frozen=True, slots=True)
class RdfCase:
    """One test: `folder` is that of its manifest, below RDF_12. `result` is None for tests of syntax."""

    folder: str
    name: str
    kind: str
    action: str
    result: str | None

    @property
    def id(self) -> str:
        return f"rdf12/{self.folder}/{self.name}"

    @property
    def path(self) -> Path:
        return RDF_12 / self.folder / self.action

    def fault(self) -> str | None:
        """Return what is wrong with what is read, or None if it is what the suite asks for."""
        try:
            found = _read(self.path, f"{_BASE}{self.folder}/{self.action}")
        except FormatError as fault:
            return None if self.kind == "negative" else f"refused: {fault}"
        if self.kind == "negative":
            return "accepted"
        if self.result is None:
            return None
        expected = RDF_12 / self.folder / self.result
        if self.kind == "canonical":
            lines = "".join(f"{quad} .\n" for quad in sorted(map(str, found)))
            text = "".join(sorted(expected.read_text().splitlines(keepends=True)))
            return None if lines == text or "_:" in text else f"found {lines}\nexpected {text}"
        wanted = ox.Dataset(ox.parse(expected.read_bytes(), ox.RdfFormat.N_QUADS))
        for dataset in (found, wanted):
            dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
        return None if found == wanted else f"found {found}\nexpected {wanted}"


def _read(path: Path, base: str) -> ox.Dataset:
    """Read a file as the background is read, and what that gives with a parser of N-Triples."""
    read, dataset = read_graphs(path.read_bytes(), syntax_of(path), base), ox.Dataset()
    for name, text in read.items():
        graph = ox.DefaultGraph() if name == base else ox.BlankNode(name[2:]) if name.startswith("_:") else ox.NamedNode(name)
        for quad in ox.parse(text, ox.RdfFormat.N_TRIPLES):
            dataset.add(ox.Quad(quad.subject, quad.predicate, quad.object, graph))
    return dataset


@lru_cache
def rdf_cases() -> tuple[RdfCase, ...]:
    return tuple(case for manifest in sorted(RDF_12.glob("rdf-*/*/manifest.ttl")) for case in _cases(manifest))


def _cases(manifest: Path) -> Iterator[RdfCase]:
    folder = "/".join(manifest.parts[-3:-1])
    read = Manifest(manifest, f"{_BASE}{folder}/manifest.ttl")
    for test in read.tests():
        kind = next(kind for kind in read.objects(test, RDF + "type") if kind.startswith(_RDFT))
        [action], result = read.objects(test, MF + "action"), read.value(test, MF + "result")
        yield RdfCase(
            folder,
            test.rpartition("#")[2],
            next(meaning for ending, meaning in _KINDS.items() if kind.endswith(ending)),
            file_name(action),
            None if result is None else file_name(result),
        )

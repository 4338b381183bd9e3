"""The W3C syntax suites: what is in the language parses, what is not is refused; what this version lacks may be refused by name."""

from pathlib import Path

import pytest
from rdflib import RDF, Graph, Namespace

from epsparql import QueryError, parse
from epsparql.errors import Unsupported
from tests.language.builders import SHARED

MANIFEST = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
MANIFESTS = sorted((SHARED / "w3c-sparql").glob("*/syntax-*/manifest.ttl"))
POSITIVE = ("PositiveSyntaxTest", "PositiveSyntaxTest11")
NEGATIVE = ("NegativeSyntaxTest", "NegativeSyntaxTest11")


def queries(manifest: Path, kinds: tuple[str, ...]) -> list[Path]:
    graph = Graph().parse(manifest, publicID=manifest.as_uri())
    actions = [graph.value(test, MANIFEST.action) for kind in kinds for test in graph.subjects(RDF.type, MANIFEST[kind])]
    return sorted(manifest.parent / str(action).rpartition("/")[2] for action in actions if str(action).endswith(".rq"))


def refusal(path: Path) -> QueryError | None:
    try:
        parse(path.read_bytes().decode())
    except QueryError as fault:
        return fault
    return None


@pytest.mark.skipif(not MANIFESTS, reason="the W3C suites are not beside the project")
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
def test_syntax_suite(manifest: Path) -> None:
    for path in queries(manifest, POSITIVE):
        assert isinstance(refusal(path), Unsupported | None), path
    for path in queries(manifest, NEGATIVE):
        assert refusal(path) is not None, path

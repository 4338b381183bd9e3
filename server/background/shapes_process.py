"""`python -m server.background.shapes_process` validates a background against the shapes of SHACL in it, with pyshacl.

The process reads one line of JSON (ShapesLimits) on stdin, and then the triples as N-Triples. It writes one line of
JSON (ShapesVerdict) to stdout. Whoever may load shapes must not stall the server, so the process bounds its own time
and memory. Only SHACL Core is validated: constraints of SPARQL and of JavaScript would run code that the shapes bring,
and could reach other machines.
"""

import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pyoxigraph as ox
import pyshacl
import rdflib
from pyshacl.errors import ReportableRuntimeError, ShapeRecursionWarning
from rdflib import RDF, BNode, Graph, URIRef
from rdflib.term import Node

from epsparql.rdf_exchange.conversion import ExactLiteral
from pipeline.formats.rdf.stored_statements import parse_stored
from server.background.shapes_protocol import DONE, INVALID, MOST_SHOWN, NO_MEMORY, NOT_COVERED, ShapesLimits, ShapesVerdict, ValidationResult
from server.subordinate_process import bound_process

SH = "http://www.w3.org/ns/shacl#"
_MOST_CHARACTERS = 300
"""So many characters of each term and message are shown."""
_RUNS_CODE = ("ask", "construct", "js", "jsFunctionName", "nodeValidator", "propertyValidator", "rule", "select", "sparql", "target", "validator")
_NOT_REFUSING = {f"{SH}Info", f"{SH}Warning"}
_MOST_STEPS = 32


def main() -> None:
    limits: ShapesLimits = json.loads(sys.stdin.buffer.readline())
    bound_process(limits["seconds"], limits["memory"])
    json.dump(judge_shapes(sys.stdin.buffer.read().decode()), sys.stdout)


def judge_shapes(triples: str) -> ShapesVerdict:
    """Validate triples, as N-Triples, against the shapes among them."""
    try:
        graph = _read_graph(triples)
        if code := next((name for name in _RUNS_CODE if (None, URIRef(SH + name), None) in graph), None):
            return _fail(NOT_COVERED, f"sh:{code}")
        warnings.simplefilter("error", ShapeRecursionWarning)  # pyshacl would leave the rest of a recursive shape unchecked
        _, report, text = pyshacl.validate(graph, advanced=False, js=False, inplace=True)
        return _fail(INVALID, text) if not isinstance(report, Graph) else _summarize(report, graph)
    except MemoryError:
        return _fail(NO_MEMORY, "")
    except (ReportableRuntimeError, RecursionError, ShapeRecursionWarning) as fault:
        return _fail(INVALID, str(fault))
    except Exception as fault:  # noqa: BLE001 - pyshacl meets malformed shapes with exceptions of any class
        traceback.print_exc()
        return _fail(INVALID, f"{type(fault).__name__}: {fault}")


def _fail(outcome: str, detail: str) -> ShapesVerdict:
    return ShapesVerdict(outcome=outcome, detail=_shorten(" ".join(detail.split())), results=0, violations=0, shown=[])


def _read_graph(triples: str) -> Graph:
    """Return the triples with their texts unchanged, without triple terms and directions, which SHACL does not have."""
    rdflib.NORMALIZE_LITERALS = False
    graph = Graph()
    for quad in parse_stored(triples):
        subject, object_ = _convert_term(quad.subject), _convert_term(quad.object)
        if subject is not None and object_ is not None:
            graph.add((subject, URIRef(quad.predicate.value), object_))
    return graph


def _convert_term(term: object) -> Node | None:
    match term:
        case ox.NamedNode():
            return URIRef(term.value)
        case ox.BlankNode():
            return BNode(term.value)
        case ox.Literal() if term.direction is None:
            return ExactLiteral(term.value, term.language, None if term.language else term.datatype.value)
    return None


# ---------------------------------------------------------------- results
def _summarize(report: Graph, graph: Graph) -> ShapesVerdict:
    sh, name_shape = rdflib.Namespace(SH), cache(lambda shape: _shorten(_find_named(shape, graph).n3()))
    found = list(report.objects(report.value(None, RDF.type, sh.ValidationReport), sh.result))
    refusing = {result for result in found if str(report.value(result, sh.resultSeverity)) not in _NOT_REFUSING}
    texts = [(result not in refusing, _describe_result(report, result, name_shape)) for result in found]
    texts.sort(key=lambda each: (each[0], *each[1].values()))
    shown = [text for _, text in texts[:MOST_SHOWN]]
    return ShapesVerdict(outcome=DONE, detail="", results=len(found), violations=len(refusing), shown=shown)


def _describe_result(report: Graph, result: Node, name_shape: Callable[[Node], str]) -> ValidationResult:
    def show(name: str) -> str:
        term = report.value(result, URIRef(SH + name))
        return "" if term is None else _shorten(term.n3())

    shape = report.value(result, URIRef(f"{SH}sourceShape"))
    return ValidationResult(
        focus=show("focusNode"),
        path=show("resultPath"),
        value=show("value"),
        shape="" if shape is None else name_shape(shape),
        constraint=show("sourceConstraintComponent")[1:-1].removeprefix(SH),
        severity=show("resultSeverity")[1:-1].removeprefix(SH),
        message=_shorten("; ".join(sorted(map(str, report.objects(result, URIRef(f"{SH}resultMessage")))))),
    )


def _find_named(shape: Node, graph: Graph) -> Node:
    """Return the nearest node with a name that leads to a shape, or the shape if there is none within some steps."""
    reached, newest = {shape}, [shape]
    for _ in range(_MOST_STEPS):
        if named := sorted(node for node in newest if isinstance(node, URIRef)):
            return named[0]
        newest = list(_find_users(newest, graph, reached))
    return shape


def _find_users(nodes: Iterable[Node], graph: Graph, reached: set[Node]) -> Iterator[Node]:
    for node in nodes:
        for user in graph.subjects(None, node):
            if user not in reached:
                reached.add(user)
                yield user


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


if __name__ == "__main__":
    main()

"""The suites' files of data and of expected results."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

import pyoxigraph as ox

from epsparql.terms import XSD, BlankNode, Iri, Literal, Term, TripleTerm
from tests.w3c.tables import Row, Table
from verification.log_files import convert_term

RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
RDF_FORMATS = {
    ".ttl": ox.RdfFormat.TURTLE, ".rdf": ox.RdfFormat.RDF_XML, ".nt": ox.RdfFormat.N_TRIPLES, ".trig": ox.RdfFormat.TRIG, ".nq": ox.RdfFormat.N_QUADS,
}  # fmt: skip
Quad = tuple[str, str, str, str | None]
RESULT_FORMATS = {".srx": ox.QueryResultsFormat.XML, ".srj": ox.QueryResultsFormat.JSON, ".tsv": ox.QueryResultsFormat.TSV}
TRUE = str(Literal("true", XSD + "boolean"))
FALSE = str(Literal("false", XSD + "boolean"))


def triples(path: Path, base: str, prefix: str = "") -> list[tuple[str, str, str]]:
    """The triples of a file in N-Triples text, its blank nodes numbered behind `prefix`."""
    return [quad[:3] for quad in quads(path, base, prefix)]


def quads(path: Path, base: str, prefix: str = "") -> list[Quad]:
    """The quads of a file, as `triples` gives them."""
    labels: dict[str, str] = {}

    def renamed(term: Term) -> Term:
        match term:
            case BlankNode(label):
                return BlankNode(labels.setdefault(label, f"{prefix}b{len(labels)}"))
            case TripleTerm(subject, predicate, object_):
                known = renamed(subject)
                assert isinstance(known, Iri | BlankNode)
                return TripleTerm(known, predicate, renamed(object_))
        return term

    def text(part: object) -> str:
        return str(renamed(convert_term(part)))

    parsed = ox.parse(path.read_bytes(), format=RDF_FORMATS[path.suffix], base_iri=base)
    return [
        (text(quad.subject), text(quad.predicate), text(quad.object), None if isinstance(quad.graph_name, ox.DefaultGraph) else text(quad.graph_name))
        for quad in parsed
    ]


def expected(path: Path, base: str, graph: bool) -> Table:
    """The result of a test; `graph` says that it is the graph that a CONSTRUCT query makes."""
    if path.suffix == ".csv":
        return csv_table(path.read_bytes().decode().splitlines(keepends=True))
    if path.suffix in RESULT_FORMATS:
        return solutions(path.read_bytes(), RESULT_FORMATS[path.suffix])
    statements = triples(path, base)
    return statement_table(statements) if graph else _result_set(statements)


def statement_table(statements: Iterable[tuple[str, str, str]]) -> Table:
    return Table(("s", "p", "o"), tuple(sorted(set(statements))))


def truth(value: str) -> Table:
    """The answer of ASK."""
    return Table(("ask",), ((value,),))


def solutions(data: bytes, result_format: ox.QueryResultsFormat) -> Table:
    """SPARQL results in XML, JSON or TSV."""
    read = ox.parse_query_results(data, format=result_format)
    if isinstance(read, ox.QueryBoolean):
        return truth(TRUE if read else FALSE)
    rows = [tuple(None if value is None else str(convert_term(value)) for value in solution) for solution in read]
    return Table(tuple(variable.value for variable in read.variables), tuple(rows), ordered=True)


def csv_table(lines: Iterable[str]) -> Table:
    """CSV has no types: its cells stay the plain texts that they are."""
    head, *rows = csv.reader(lines)
    return Table(tuple(head), tuple(tuple(cell or None for cell in row) for row in rows), ordered=True)


def csv_cell(term: Term) -> str:
    """A term as SPARQL's CSV shows it."""
    match term:
        case Iri(value):
            return value
        case Literal(lexical):
            return lexical
        case BlankNode() | TripleTerm():
            return str(term)


def _result_set(statements: list[tuple[str, str, str]]) -> Table:
    """A result set in RDF, its order given by rs:index."""

    def objects(subject: str, name: str) -> list[str]:
        return [o for s, p, o in statements if s == subject and p == f"<{RS}{name}>"]

    [top] = {s for s, _, o in statements if o == f"<{RS}ResultSet>"}
    for value in objects(top, "boolean"):
        return truth(value)
    variables = tuple(variable.strip('"') for variable in objects(top, "resultVariable"))
    solutions = objects(top, "solution")
    indices = {solution: int(index.split('"')[1]) for solution in solutions for index in objects(solution, "index")}
    solutions.sort(key=lambda solution: indices.get(solution, 0))
    return Table(variables, tuple(_row(variables, solution, objects) for solution in solutions), ordered=bool(indices))


def _row(variables: tuple[str, ...], solution: str, objects: Callable[[str, str], list[str]]) -> Row:
    bound = {objects(binding, "variable")[0].strip('"'): objects(binding, "value")[0] for binding in objects(solution, "binding")}
    return tuple(bound.get(variable) for variable in variables)

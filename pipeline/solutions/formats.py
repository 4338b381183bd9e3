"""This module writes solutions in the formats that clients read: interfaces.md."""

import csv as csv_module
import io
import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import assert_never
from urllib.parse import quote

import pyarrow as pa
import pyoxigraph as ox

from engine.expressions.evaluator import parse_term
from epsparql.terms import BlankNode, Iri, Literal, TripleTerm
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.rdf.rdf import ENDS_AT, GENERATED_AT, STARTS_AT
from pipeline.formats.rdf.rdf_version import version_of_statements, version_of_terms
from pipeline.formats.rdf.stored_statements import parse_stored
from pipeline.solutions.json_encoder import bindings, heads, ndjson
from pipeline.solutions.result_kinds import Bindings, Changes, Form, Triples, Verdict
from pipeline.solutions.solution_log import StoredSolution, listed

NDJSON, SPARQL_JSON, CSV, TURTLE, TRIG, N_QUADS = (
    "application/x-ndjson",
    "application/sparql-results+json",
    "text/csv",
    "text/turtle",
    "application/trig",
    "application/n-quads",
)
LD_JSON = "application/ld+json"
TRUE = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
"""An ASK's solution that is true has this value."""
_DATE_TIME = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
_TIMELY = 1 << 16


def _boolean(solution: StoredSolution) -> str:
    return "true" if solution.values[0] == TRUE else "false"


def sparql_json(solutions: pa.RecordBatch, form: Bindings) -> str:
    """Write application/sparql-results+json.

    `epsparql`, beside `results`, holds the id, start and end of each binding, and its instance, in the same order.
    """
    head = ",".join(json.dumps(name, ensure_ascii=False) for name in form.variables)
    # before "results", since there are parsers that take nothing after the bindings
    beside, found = heads(solutions, form), bindings(solutions, form)
    return f'{{"head":{{"vars":[{head}]}},"epsparql":[{beside}],"results":{{"bindings":[{found}]}}}}'


def sparql_json_verdict(solutions: pa.RecordBatch) -> str:
    """Write an ASK's answer like `sparql_json`.

    Without a solution, while the answer is not known, there is no `boolean`.
    """
    verdict = f',"boolean":{_boolean(listed(solutions.slice(0, 1))[0])}' if solutions.num_rows else ""
    return f'{{"head":{{}},"epsparql":[{heads(solutions, Verdict())}]{verdict}}}'


@lru_cache(maxsize=_TIMELY)
def show_plain(term: str) -> str:
    """Return a term as SPARQL's CSV results write it: bare."""
    parsed = parse_term(term)
    match parsed:
        case Iri(value):
            return value
        case BlankNode():
            return term
        case Literal(lexical):
            return lexical
        case TripleTerm():
            return term


def _write_csv(columns: Sequence[str], rows: Iterable[tuple[StoredSolution, Sequence[str]]]) -> str:
    """Write the columns id, start and end of a solution before those that are given."""
    out = io.StringIO()
    writer = csv_module.writer(out)
    writer.writerow(["id", "start", "end", *columns])
    writer.writerows([solution.id, iso(solution.start), iso(solution.end), *cells] for solution, cells in rows)
    return out.getvalue()


def csv(solutions: Iterable[StoredSolution], form: Bindings) -> str:
    """Write text/csv as SPARQL has it, with the columns id, start and end before the variables, and the instance before
    these.
    """
    columns = [*(["instance"] if form.instances else []), *form.variables]
    return _write_csv(columns, ((each, ["" if term is None else show_plain(term) for term in each.values]) for each in solutions))


def csv_verdict(solutions: Iterable[StoredSolution]) -> str:
    """Write text/csv of an ASK: id, start, end, boolean."""
    return _write_csv(["boolean"], ((each, [_boolean(each)]) for each in solutions))


def csv_constructed(solutions: Iterable[StoredSolution]) -> str:
    """Write the triples of CONSTRUCT and DESCRIBE solutions, one per row: id, start, end, subject, predicate, object."""
    triples = ((each, triple) for each in solutions for triple in triples_of(each))
    return _write_csv(
        ["subject", "predicate", "object"],
        ((each, [show_plain(str(term)) for term in (triple.subject, triple.predicate, triple.object)]) for each, triple in triples),
    )


def turtle(solutions: Iterable[StoredSolution]) -> str:
    """Write only the triples of CONSTRUCT and DESCRIBE solutions, duplicates removed."""
    triples = dict.fromkeys(triple for solution in solutions for triple in triples_of(solution))
    return _serialize(triples, ox.RdfFormat.TURTLE)


def n_triples(solutions: Iterable[StoredSolution]) -> str:
    """Write the triples as `turtle` does, in N-Triples."""
    statements = dict.fromkeys(statement for solution in solutions for statement in _statements(solution))
    return "".join(f"{statement}\n" for statement in statements)


_QUADS = {"n-quads": ox.RdfFormat.N_QUADS, "trig": ox.RdfFormat.TRIG, "ld+json": ox.RdfFormat.JSON_LD}


def quads(solutions: Iterable[StoredSolution], fmt: str) -> str:
    """Write n-quads, trig or ld+json (`fmt`): per solution one graph `urn:epsparql:<query>:<id>`, which the default
    graph times.

    An instant is given as prov:generatedAtTime, an interval as startsAtTime and endsAtTime, so the text can be fed
    back as events. A description without triples has no graph.
    """
    found: list[ox.Quad] = []
    for solution in (solution for solution in solutions if _statements(solution)):
        graph = ox.NamedNode(f"urn:epsparql:{quote(solution.query, safe='')}:{solution.id}")
        times = ((GENERATED_AT, solution.end),) if solution.start == solution.end else ((STARTS_AT, solution.start), (ENDS_AT, solution.end))
        found += [ox.Quad(graph, ox.NamedNode(name), ox.Literal(iso(at), datatype=_DATE_TIME)) for name, at in times]
        found += [ox.Quad(triple.subject, triple.predicate, triple.object, graph) for triple in triples_of(solution)]
    return _serialize(found, _QUADS[fmt])


def _serialize(content: Iterable[ox.Triple] | Iterable[ox.Quad], fmt: ox.RdfFormat) -> str:
    written = ox.serialize(content, format=fmt)
    assert written is not None
    return written.decode()


def _statements(solution: StoredSolution) -> list[str]:
    return [statement for statement in solution.values if statement is not None]


def _n_triples(solution: StoredSolution) -> str:
    return "\n".join(_statements(solution))


def triples_of(solution: StoredSolution) -> list[ox.Triple]:
    """Return the triples of a CONSTRUCT or DESCRIBE solution."""
    return parse_stored(_n_triples(solution))


def version_of_page(page: pa.RecordBatch, form: Form) -> str:
    """Return the version of RDF that a page of one query's solutions (STORED) needs: one of `rdf_version.VERSIONS`."""
    values = page.column("values").flatten()
    return version_of_statements(values) if isinstance(form, Triples) else version_of_terms(values)


def write_page(media_type: str, page: pa.RecordBatch, form: Form) -> bytes:
    """Serialize a page of one query's solutions (STORED) as `media_type`, one of those that are `list_media_types`."""
    if media_type == NDJSON:
        return ndjson(page, dict.fromkeys(page.column("query").dictionary.to_pylist(), form)).text
    match form:
        case Bindings():
            text = csv(listed(page), form) if media_type == CSV else sparql_json(page, form)
        case Verdict():
            text = csv_verdict(listed(page)) if media_type == CSV else sparql_json_verdict(page)
        case Triples():
            text = turtle(listed(page)) if media_type == TURTLE else quads(listed(page), media_type.partition("/")[2])
        case Changes():
            raise AssertionError("changes are ndjson")
        case _:
            assert_never(form)
    return text.encode()


__all__ = [
    "CSV", "LD_JSON", "NDJSON", "N_QUADS", "SPARQL_JSON", "TRIG", "TRUE", "TURTLE", "Bindings", "Changes", "Form", "Triples", "Verdict",
    "csv", "csv_constructed", "csv_verdict", "n_triples", "ndjson", "quads", "sparql_json", "sparql_json_verdict",
    "triples_of", "turtle", "version_of_page", "write_page",
]  # fmt: skip

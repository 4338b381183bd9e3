"""Solutions to the formats that clients read: interfaces.md."""

import csv as csv_module
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never
from urllib.parse import quote

import pyoxigraph as ox

from engine.expressions import parse_term
from epsparql.terms import RDF_LANG_STRING, XSD_STRING, BlankNode, Iri, Literal
from pipeline.rdf import ENDS_AT, GENERATED_AT, STARTS_AT
from pipeline.solutions import Solution
from pipeline.times import iso

TRUE = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
"""The value of an ASK's solution that is true."""
_DATE_TIME = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
_TIMELY = 1 << 16


@dataclass(frozen=True, slots=True)
class Bindings:
    """Solutions of a SELECT: a term for each of `variables` (names in their order), None where unbound."""

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Triples:
    """Solutions of a CONSTRUCT or DESCRIBE: N-Triples statements."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The solution of an ASK: one xsd:boolean."""


Form = Bindings | Triples | Verdict


@lru_cache(maxsize=_TIMELY)
def term_json(term: str) -> str:
    """A term as SPARQL's JSON results write it."""
    parsed = parse_term(term)
    match parsed:
        case Iri(value):
            fields = {"type": "uri", "value": value}
        case BlankNode(label):
            fields = {"type": "bnode", "value": label}
        case Literal(lexical, datatype, language):
            fields = {"type": "literal", "value": lexical}
            if language is not None:
                fields["xml:lang"] = language
            elif datatype not in (XSD_STRING, RDF_LANG_STRING):
                fields["datatype"] = datatype
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=_TIMELY)
def _time_json(at: int) -> str:
    return f'"{iso(at)}"'


@lru_cache(maxsize=1 << 12)
def _text_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _binding(solution: Solution, variables: Sequence[str]) -> str:
    pairs = zip(variables, solution.values, strict=True)
    return "{" + ",".join([f"{_text_json(name)}:{term_json(term)}" for name, term in pairs if term is not None]) + "}"


def json_line(solution: Solution, form: Form) -> str:
    """One ndjson object without the newline."""
    times = f'"start":{_time_json(solution.start)},"end":{_time_json(solution.end)}'
    return f'{{"query":{_text_json(solution.query)},"id":"{solution.id}",{times},{_content(solution, form)}}}'


def _content(solution: Solution, form: Form) -> str:
    match form:
        case Bindings(variables):
            return f'"binding":{_binding(solution, variables)}'
        case Triples():
            return f'"triples":{json.dumps(_n_triples(solution), ensure_ascii=False)}'
        case Verdict():
            return f'"boolean":{_boolean(solution)}'
        case _:
            assert_never(form)


def _boolean(solution: Solution) -> str:
    return "true" if solution.values[0] == TRUE else "false"


def sparql_json(solutions: Iterable[Solution], variables: Sequence[str]) -> str:
    """application/sparql-results+json. `epsparql`, beside `results`, holds the id, start and end of each binding, in the same order."""
    head = ",".join(_text_json(name) for name in variables)
    listed = list(solutions)
    bindings = ",".join(_binding(solution, variables) for solution in listed)
    # before "results", since there are parsers that take nothing after the bindings
    return f'{{"head":{{"vars":[{head}]}},"epsparql":[{_times(listed)}],"results":{{"bindings":[{bindings}]}}}}'


def sparql_json_verdict(solutions: Iterable[Solution]) -> str:
    """As `sparql_json`, of an ASK. Without a solution, while the answer is not known, there is no `boolean`."""
    listed = list(solutions)
    verdict = f',"boolean":{_boolean(listed[0])}' if listed else ""
    return f'{{"head":{{}},"epsparql":[{_times(listed)}]{verdict}}}'


def _times(solutions: Sequence[Solution]) -> str:
    return ",".join(f'{{"id":"{s.id}","start":{_time_json(s.start)},"end":{_time_json(s.end)}}}' for s in solutions)


@lru_cache(maxsize=_TIMELY)
def _plain(term: str) -> str:
    """A term as SPARQL's CSV results write it: bare."""
    parsed = parse_term(term)
    match parsed:
        case Iri(value):
            return value
        case BlankNode():
            return term
        case Literal(lexical):
            return lexical


def csv(solutions: Iterable[Solution], variables: Sequence[str]) -> str:
    """text/csv as SPARQL has it, with the columns id, start and end before the variables."""
    out = io.StringIO()
    writer = csv_module.writer(out)
    writer.writerow(["id", "start", "end", *variables])
    for solution in solutions:
        terms = ["" if term is None else _plain(term) for term in solution.values]
        writer.writerow([solution.id, iso(solution.start), iso(solution.end), *terms])
    return out.getvalue()


def csv_verdict(solutions: Iterable[Solution]) -> str:
    """text/csv of an ASK: id, start, end, boolean."""
    out = io.StringIO()
    writer = csv_module.writer(out)
    writer.writerow(["id", "start", "end", "boolean"])
    for solution in solutions:
        writer.writerow([solution.id, iso(solution.start), iso(solution.end), _boolean(solution)])
    return out.getvalue()


def csv_constructed(solutions: Iterable[Solution]) -> str:
    """The triples of CONSTRUCT and DESCRIBE solutions, one per row: id, start, end, subject, predicate, object."""
    out = io.StringIO()
    writer = csv_module.writer(out)
    writer.writerow(["id", "start", "end", "subject", "predicate", "object"])
    for solution in solutions:
        for triple in _triples(solution):
            terms = [_plain(str(term)) for term in (triple.subject, triple.predicate, triple.object)]
            writer.writerow([solution.id, iso(solution.start), iso(solution.end), *terms])
    return out.getvalue()


def turtle(solutions: Iterable[Solution]) -> str:
    """The triples of CONSTRUCT and DESCRIBE solutions alone, duplicates removed."""
    triples = dict.fromkeys(triple for solution in solutions for triple in _triples(solution))
    return _text(triples, ox.RdfFormat.TURTLE)


def n_triples(solutions: Iterable[Solution]) -> str:
    """As `turtle`, in N-Triples."""
    statements = dict.fromkeys(statement for solution in solutions for statement in _statements(solution))
    return "".join(f"{statement}\n" for statement in statements)


def quads(solutions: Iterable[Solution], fmt: str) -> str:
    """`fmt` n-quads or trig: per solution one graph `urn:epsparql:<query>:<id>`, which the default graph times.

    An instant is given as prov:generatedAtTime, an interval as startsAtTime and endsAtTime, so the text can be fed back as events. A
    description without triples has no graph.
    """
    found: list[ox.Quad] = []
    for solution in (solution for solution in solutions if _statements(solution)):
        graph = ox.NamedNode(f"urn:epsparql:{quote(solution.query, safe='')}:{solution.id}")
        times = ((GENERATED_AT, solution.end),) if solution.start == solution.end else ((STARTS_AT, solution.start), (ENDS_AT, solution.end))
        found += [ox.Quad(graph, ox.NamedNode(name), ox.Literal(iso(at), datatype=_DATE_TIME)) for name, at in times]
        found += [ox.Quad(triple.subject, triple.predicate, triple.object, graph) for triple in _triples(solution)]
    return _text(found, ox.RdfFormat.N_QUADS if fmt == "n-quads" else ox.RdfFormat.TRIG)


def _text(content: Iterable[ox.Triple] | Iterable[ox.Quad], fmt: ox.RdfFormat) -> str:
    written = ox.serialize(content, format=fmt)
    assert written is not None
    return written.decode()


def _statements(solution: Solution) -> list[str]:
    return [statement for statement in solution.values if statement is not None]


def _n_triples(solution: Solution) -> str:
    return "\n".join(_statements(solution))


def _triples(solution: Solution) -> list[ox.Triple]:
    parsed = ox.parse(_n_triples(solution), ox.RdfFormat.N_TRIPLES)
    return [ox.Triple(quad.subject, quad.predicate, quad.object) for quad in parsed]

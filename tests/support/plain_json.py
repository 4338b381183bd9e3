"""Solutions as JSON, one by one and plainly: what the compiled writers must give, byte for byte."""

import json
from collections.abc import Sequence
from typing import Any, assert_never

import pyarrow as pa

from engine.expressions.evaluator import parse_term
from engine.messages import INSTANT
from epsparql.terms import RDF_LANG_STRING, XSD_STRING, BlankNode, Iri, Literal, Term, TripleTerm
from pipeline.formats.batches.timestamps import iso
from pipeline.solutions.formats import TRUE, Bindings, Changes, Form, Triples, Verdict
from pipeline.solutions.solution_ids import STORED, key_of
from pipeline.solutions.solution_log import StoredSolution


def term_json(term: str) -> str:
    """A term as SPARQL's JSON results write it."""
    return quoted(_fields(parse_term(term)))


def _fields(term: Term) -> dict[str, Any]:
    match term:
        case Iri(value):
            return {"type": "uri", "value": value}
        case BlankNode(label):
            return {"type": "bnode", "value": label}
        case TripleTerm(subject, predicate, object_):
            return {"type": "triple", "value": {"subject": _fields(subject), "predicate": _fields(predicate), "object": _fields(object_)}}
        case Literal(lexical, datatype, language, direction):
            fields = {"type": "literal", "value": lexical}
            if language is not None:
                fields["xml:lang"] = language
            elif datatype not in (XSD_STRING, RDF_LANG_STRING):
                fields["datatype"] = datatype
            return fields if direction is None else {**fields, "its:dir": direction}


def quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def binding(solution: StoredSolution, variables: Sequence[str]) -> str:
    pairs = zip(variables, solution.values, strict=True)
    return "{" + ",".join([f"{quoted(name)}:{term_json(term)}" for name, term in pairs if term is not None]) + "}"


def head(solution: StoredSolution) -> str:
    return f'"id":"{solution.id}","start":"{iso(solution.start)}","end":"{iso(solution.end)}"'


def json_line(solution: StoredSolution, form: Form) -> str:
    return f'{{"query":{quoted(solution.query)},{head(solution)},{content(solution, form)}}}'


def content(solution: StoredSolution, form: Form) -> str:
    match form:
        case Bindings(variables):
            return f'"binding":{binding(solution, variables)}'
        case Triples():
            return f'"triples":{quoted(chr(10).join(statement for statement in solution.values if statement is not None))}'
        case Verdict():
            return f'"boolean":{"true" if solution.values[0] == TRUE else "false"}'
        case Changes():
            raise AssertionError("changes are written by themselves")
        case _:
            assert_never(form)


def sparql_json(solutions: Sequence[StoredSolution], variables: Sequence[str]) -> str:
    names = ",".join(quoted(name) for name in variables)
    heads = ",".join(f"{{{head(solution)}}}" for solution in solutions)
    bindings = ",".join(binding(solution, variables) for solution in solutions)
    return f'{{"head":{{"vars":[{names}]}},"epsparql":[{heads}],"results":{{"bindings":[{bindings}]}}}}'


def stored(solutions: Sequence[StoredSolution]) -> pa.RecordBatch:
    """The solutions as the solution log has them."""
    columns = [
        pa.array([s.query for s in solutions], pa.utf8()).dictionary_encode(),
        pa.array([s.registered for s in solutions], pa.int64()),
        pa.array([s.entry for s in solutions], pa.int64()),
        pa.array([s.start for s in solutions], pa.int64()).view(INSTANT),
        pa.array([s.end for s in solutions], pa.int64()).view(INSTANT),
        pa.array([list(s.values) for s in solutions], pa.list_(pa.utf8())),
        pa.array([key_of(s.id)[1] for s in solutions], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=STORED)

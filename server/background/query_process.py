"""`python -m server.background.query_process` holds the background, closed under entailment, and answers one-shot SPARQL queries over it.

The process reads one line of JSON (Setting) on stdin and lives until stdin is closed. Each query gets a fork of its own, which shares the background
with the parent. A fork can be ended, by time or by memory, whatever the query engine is doing. Forking is safe because nothing else runs in this
process.
"""

import io
import json
import os
import re
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, TypedDict

import pyarrow as pa
import pyoxigraph as ox

from engine.background.changes import read_static_rule, with_standing_rules
from engine.background.fact_store import FactIndex, numbers_of
from engine.dictionary.term_dictionary import TermTable
from engine.expressions.extensions import Extension, extensions
from engine.expressions.literals import parse_term
from engine.expressions.values import ExpressionError
from engine.messages import ADD, Register
from epsparql.terms import BlankNode, Iri, Literal, Term, TripleTerm
from pipeline.formats.rdf.rdf_version import RDF_1_1, RDF_1_2, RDF_1_2_BASIC, WITHOUT_TRIPLE_TERMS, version_of_terms
from pipeline.formats.rdf.stored_statements import escape_term
from pipeline.log import LogReader
from pipeline.log.background_graphs import graph_lines
from pipeline.log.catalog import BackgroundGraph
from server.subordinate_process import bound_memory

TABLES = {
    "application/sparql-results+json": ox.QueryResultsFormat.JSON,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
    "text/csv": ox.QueryResultsFormat.CSV,
    "text/tab-separated-values": ox.QueryResultsFormat.TSV,
}
GRAPHS = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}
Answer = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
_RDF_1_2 = re.compile(r"<<|--|triple|strlangdir", re.IGNORECASE)
"""A query that makes what RDF 1.1 has not has one of these in its text."""
STRETCH = 4
"""A query may take so many times longer than its processor time, because others have the cores too."""
DONE, TOO_LARGE, NO_MEMORY, FAULT = "done", "too-large", "memory", "fault"


class Setting(TypedDict):
    """Configures the process: the log, its graphs (name, entries), their entailment, the socket's path, and the limits of a query.

    `rules` are the static rules: registration, name, text and default graph.
    """

    data: str
    graphs: list[tuple[str, list[int]]]
    entailment: str
    rules: list[tuple[int, str, str, str]]
    socket: str
    seconds: float
    memory: int
    answer: int


class Question(TypedDict):
    """Holds a query and its dataset. Graphs are given by name, None where the client chose none; with `union`, patterns look through all graphs."""

    query: str
    union: bool
    default: list[str] | None
    named: list[str] | None
    media_type: str


def main() -> None:
    setting: Setting = json.loads(sys.stdin.buffer.readline())
    store, has_rdf12 = _store(setting)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(setting["socket"])
        listener.listen(128)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that ended forks leave no zombies
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                _bound(setting)
                _answer(store, has_rdf12, connection, setting["answer"])
                os._exit(0)  # skips the clean-up that the parent does at its end
            connection.close()


def _store(setting: Setting) -> tuple[ox.Store, bool]:
    """Return the background, and whether it has anything that RDF 1.1 has not."""
    reader, terms = LogReader(setting["data"]), TermTable()
    index = FactIndex(terms)
    for name, entries in setting["graphs"]:
        lines = graph_lines(reader, BackgroundGraph(name, tuple(entries)))
        index = index.with_change(name, numbers_of("\n".join(lines), terms), ADD)
    reader.close()
    registrations = (Register(registered, name, text, default_graph=default_graph) for registered, name, text, default_graph in setting["rules"])
    rules = [rule for entry in registrations if (rule := read_static_rule(entry)) is not None]
    holding = with_standing_rules(index.under(setting["entailment"]), rules).everything().tolist()
    try:
        store = _fill_store(holding, terms.text)
    except SyntaxError:  # a rule of an earlier version has a term that no format can write
        store = _fill_store(holding, lambda number: escape_term(terms.text(number)) if number > 0 else "")
    objects = pa.array([terms.text(quad[2]) for quad in holding], pa.utf8())
    return store, version_of_terms(objects) != RDF_1_1


def _fill_store(quads: list[list[int]], text: Callable[[int], str]) -> ox.Store:
    """Return a store of quads, given by the numbers of their terms. Raises: SyntaxError."""
    store = ox.Store()
    store.bulk_extend(ox.parse("".join(f"{' '.join(map(text, quad))} .\n" for quad in quads).encode(), ox.RdfFormat.N_QUADS))
    return store


def _given(term: Term) -> ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple:
    match term:
        case Iri(value):
            return ox.NamedNode(value)
        case BlankNode(label):
            return ox.BlankNode(label)
        case Literal() | TripleTerm():
            quad: ox.Quad = next(iter(ox.parse(f"<x:s> <x:p> {term} .", ox.RdfFormat.N_TRIPLES)))
            return quad.object


def _bound(setting: Setting) -> None:
    """Limit this process: signals end it in time, whatever it is doing, and allocations beyond the limit fail."""
    for number, timer, seconds in (
        (signal.SIGPROF, signal.ITIMER_PROF, setting["seconds"]),
        (signal.SIGALRM, signal.ITIMER_REAL, setting["seconds"] * STRETCH),
    ):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, seconds)
    bound_memory(setting["memory"])


class _Limited(io.BytesIO):
    """Collects an answer of at most `limit` bytes. Raises: _TooLarge."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def write(self, data: bytes) -> int:  # type: ignore[override]  # what the query engine gives is bytes
        if self.tell() + len(data) > self.limit:
            raise _TooLarge
        return super().write(data)


class _TooLarge(Exception):
    pass


def _answer(store: ox.Store, has_rdf12: bool, connection: socket.socket, limit: int) -> None:
    with connection, connection.makefile("rwb") as file:
        file.write(b"begun\n")
        file.flush()
        try:
            question: Question = json.loads(file.readline())
            version, found = _solve(store, question, limit, has_rdf12=has_rdf12 or _RDF_1_2.search(question["query"]) is not None)
            file.write(json.dumps([DONE, version]).encode() + b"\n" + found)
        except _TooLarge:
            file.write(json.dumps([TOO_LARGE, ""]).encode() + b"\n")
        except MemoryError:
            file.write(json.dumps([NO_MEMORY, ""]).encode() + b"\n")
        except Exception as fault:  # noqa: BLE001  # a fault of the query, or of the query engine, goes to the client
            file.write(json.dumps([FAULT, str(fault)]).encode() + b"\n")


def _solve(store: ox.Store, question: Question, limit: int, *, has_rdf12: bool) -> tuple[str, bytes]:
    """Return the version of RDF that the answer needs, and the answer; no text where the media type has no triple terms and the answer has some."""
    functions: dict[ox.NamedNode, Callable[..., Answer | None]] = {
        ox.NamedNode(name[1:-1]): _function(extension) for name, extension in extensions().items()
    }
    default, named = _named(question["default"]), _named(question["named"])

    def solve() -> Any:
        return store.query(
            question["query"], use_default_graph_as_union=question["union"], default_graph=default, named_graphs=named, custom_functions=functions
        )

    version = _version(solve()) if has_rdf12 else RDF_1_1  # so that most queries are answered once
    if version == RDF_1_2 and question["media_type"] in WITHOUT_TRIPLE_TERMS:
        return version, b""
    found, written = solve(), _Limited(limit)
    if isinstance(found, ox.QueryTriples):
        found.serialize(written, GRAPHS[question["media_type"]])
    else:
        found.serialize(written, TABLES[question["media_type"]])
    return version, written.getvalue()


def _version(found: Any) -> str:
    version = RDF_1_1
    for row in () if isinstance(found, ox.QueryBoolean) else found:
        for term in row if isinstance(found, ox.QuerySolutions) else (row.object,):
            if isinstance(term, ox.Triple):
                return RDF_1_2
            if isinstance(term, ox.Literal) and term.direction is not None:
                version = RDF_1_2_BASIC
    return version


def _named(graphs: list[str] | None) -> Any:
    return None if graphs is None else [ox.NamedNode(name) for name in graphs]


def _function(extension: Extension) -> Callable[..., Answer | None]:
    """Wrap one of our functions for this query engine, where None stands for an error."""

    def applied(*arguments: object) -> Answer | None:
        if not extension.least <= len(arguments) <= extension.most:
            return None
        try:
            return _given(extension.apply(*(parse_term(str(argument)) for argument in arguments)))
        except ExpressionError:
            return None

    return applied


if __name__ == "__main__":
    main()

"""`python -m server.background.query_process` holds the background and answers one-shot SPARQL queries over it by the
engine.

The process reads one line of JSON (Setting) on stdin and lives until stdin is closed. Each query gets a fork of its
own, which shares the background with the parent. A fork can be ended, by time or by memory, whatever the engine is
doing. Forking is safe because nothing else runs in this process.
"""

import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import NamedTuple, assert_never

import numpy as np
import pyarrow as pa

import epsparql
from engine.background.changes import read_static_rule, with_standing_rules
from engine.background.fact_store import FactIndex, numbers_of
from engine.dictionary.term_dictionary import TermTable
from engine.errors import Refusal, SolverStopped
from engine.messages import ADD, Register
from engine.runtime.one_shot_query import solve_ask, solve_construct, solve_describe, solve_select
from engine.validation.one_shot import refuse_streams
from engine.validation.validate import culprits, place_of
from epsparql import algebra as a
from epsparql.deferred_methods import generate_all
from epsparql.errors import QueryError, Unsupported
from epsparql.trees import replace_fields
from pipeline.formats.rdf.stored_statements import escape_stored, escape_term
from pipeline.log import LogReader
from pipeline.log.background_graphs import graph_lines
from pipeline.log.catalog import BackgroundGraph
from server.background.answer_text import JSON, TURTLE, NotWritable, Text, TooLarge, write_graph, write_table, write_verdict
from server.background.query_protocol import DONE, FAULT, INTERNAL, NO_MEMORY, NOT_WRITABLE, TOO_LARGE, Place, Question, Setting
from server.subordinate_process import bound_process


def main() -> None:
    setting: Setting = json.loads(sys.stdin.buffer.readline())
    background = _load_background(setting)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(setting["socket"])
        listener.listen(128)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that ended forks leave no zombies
        generate_all()
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                bound_process(setting["seconds"], setting["memory"])
                _answer(background, connection, setting["answer"])
                os._exit(0)  # skips the clean-up that the parent does at its end
            connection.close()


class _Background(NamedTuple):
    """Holds the background with what follows; `escapes` says that some terms are shown escaped, for no format can
    write them.
    """

    known: FactIndex
    escapes: bool


def _load_background(setting: Setting) -> _Background:
    """Return the background, with what each query would have to make for itself again."""
    reader, terms = LogReader(setting["data"]), TermTable()
    index = FactIndex(terms)
    for name, entries in setting["graphs"]:
        lines = graph_lines(reader, BackgroundGraph(name, tuple(entries)))
        index = index.with_change(name, numbers_of("\n".join(lines), terms), ADD)
    reader.close()
    registrations = (Register(registered, name, text, default_graph=default_graph) for registered, name, text, default_graph in setting["rules"])
    rules = [rule for entry in registrations if (rule := read_static_rule(entry)) is not None]
    known = with_standing_rules(index.under(setting["entailment"]), rules)
    known.prepare_indexes()
    _warm_up()
    return _Background(known, _has_unwritable(known))


_WARMING = """SELECT DISTINCT ?x (COUNT(DISTINCT ?y) AS ?n) (GROUP_CONCAT(?l; SEPARATOR=", ") AS ?all) (AVG(?k) AS ?m) FROM <x:g> FROM NAMED <x:g> {
  ?x a x:C ; x:p "a"@en, 'b', 1, 2.5, 1e0, true, "c"^^xsd:date, [ x:q () ], ( x:r ) ; x:s/^x:t|!(a|^x:u) ?y . ?x x:v* ?z . ?z x:w+/x:v? _:b .
  OPTIONAL { ?y x:l ?l FILTER(LANG(?l) = "en" || REGEX(STR(?l), "^a", "i") && ?k + 1 * 2 - 3 / 4 >= -5 && ?k != 6 && !BOUND(?l)) }
  { SELECT ?x { ?x ?p ?k FILTER(?k < 5 && ?k > 1 && ?k <= 4 && ?p IN (x:a, x:b) && ?p NOT IN (x:c)) } ORDER BY DESC(?k) ASC(?x) ?p LIMIT 3 OFFSET 1 }
  UNION { GRAPH ?g { ?x x:k ?k } MINUS { ?x x:gone true } }
  BIND(IF(CONTAINS(?l, "a"), COALESCE(?k, xsd:integer("1")), CONCAT("a", ?l)) AS ?c) VALUES (?x ?y) { (x:a UNDEF) } VALUES ?z { x:b }
  FILTER NOT EXISTS { ?x x:no ?y } FILTER EXISTS { ?y x:yes ?x }
} GROUP BY ?x (STR(?y) AS ?s) HAVING (COUNT(*) > 1) ORDER BY ?n LIMIT 10
---
CONSTRUCT { ?x x:p [] } WHERE { ?x x:q ?y } LIMIT 1
---
DESCRIBE <x:a> ?x WHERE { ?x x:p <x:b> }
---
ASK { ?s ?p ?o }"""
"""These queries make a process load what most queries need: a fork that does so would do it for itself alone."""


def _warm_up() -> None:
    """Load code and the grammar's patterns by queries over one triple; then keep all that is loaded from being copied."""
    terms = TermTable()
    little = _Background(FactIndex(terms).with_change("x:g", numbers_of('<x:a> <x:p> "b" .\n', terms), ADD), False)
    for query in _WARMING.split("---\n"):
        text = f"PREFIX x: <x:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> {query}"
        media_type = JSON if query.startswith(("SELECT", "ASK")) else TURTLE
        _solve(little, Question(query=text, default=None, named=None, media_type=media_type), 1 << 16)
    gc.collect()
    gc.freeze()  # so that the collections of forks copy no pages


def _has_unwritable(known: FactIndex) -> bool:
    """Return whether a static rule of an earlier version has made a term that no format can write."""
    derived = [known.derived(rule.query.graph).reshape(-1) for rule in known.rules]
    terms = known.terms.text_array(np.unique(np.concatenate([np.zeros(0, np.int64), *derived])))
    return escape_stored(text := "".join(f"<x:s> <x:p> {term} .\n" for term in terms.to_pylist())) != text


def _escape_terms(parts: Iterable[pa.ListArray]) -> Iterator[pa.ListArray]:
    for part in parts:
        terms = part.values.dictionary_encode()
        shown = pa.array(map(escape_term, terms.dictionary.to_pylist()), pa.utf8())
        yield pa.ListArray.from_arrays(part.offsets, shown.take(terms.indices))


def _answer(background: _Background, connection: socket.socket, limit: int) -> None:
    with connection, connection.makefile("rwb") as file:
        file.write(b"begun\n")
        file.flush()
        question = json.loads(file.readline())
        _end_with(connection)
        verdict, detail, text = _judge(background, question, limit)
        fcntl.fcntl(connection, fcntl.F_SETFL, 0)
        file.write(json.dumps([verdict, detail]).encode() + b"\n" + text)


def _end_with(connection: socket.socket) -> None:
    """Let this process end once the server closes the connection, whatever the engine is doing.

    SIGIO tells so, and its default action ends the process.
    """
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETFL, os.O_ASYNC)
    if select.select([connection], [], [], 0)[0]:  # it was closed before
        os._exit(0)


def _judge(background: _Background, question: Question, limit: int) -> tuple[str, str | Place, bytes]:
    """Return what became of a query, what is said about it, and its answer."""
    try:
        version, text = _solve(background, question, limit)
    except (TooLarge, OverflowError):  # texts that Arrow cannot hold are beyond any limit
        return TOO_LARGE, "", b""
    except MemoryError:
        return NO_MEMORY, "", b""
    except NotWritable as fault:
        return NOT_WRITABLE, str(fault), b""
    except QueryError as fault:
        return FAULT, Place(code=fault.code, detail=fault.message, line=fault.line, column=fault.column, expected=fault.expected), b""
    except Exception:  # noqa: BLE001 - the server answers all the same, and its log has it
        traceback.print_exc()
        return INTERNAL, "", b""
    return DONE, version, text


def _solve(background: _Background, question: Question, limit: int) -> Text:
    """Return the answer. Raises: QueryError, TooLarge, NotWritable."""
    parsed = epsparql.parse(question["query"])
    refuse_streams(parsed)
    query, now, media_type = parsed.query, time.time_ns() // 1000, question["media_type"]
    if question["default"] is not None or question["named"] is not None:
        dataset = a.Dataset(tuple(question["default"] or ()), tuple(question["named"] or ()))
        query = replace_fields(query, sources=replace_fields(query.sources, dataset=dataset))
    known, show = background.known, _escape_terms if background.escapes else iter
    try:
        match query:
            case a.Select():
                return write_table(media_type, tuple(v.name for v in query.projection), show(solve_select(query, known, now)), limit)
            case a.Ask():
                return write_verdict(media_type, solve_ask(query, known, now))
            case a.Construct():
                return write_graph(media_type, show(solve_construct(query, known, now)), limit)
            case a.Describe():
                return write_graph(media_type, show(solve_describe(query, known, now)), limit)
            case a.BackgroundRule():
                raise AssertionError("it is refused")
            case _:
                assert_never(query)
    except Refusal as refusal:
        place = place_of(culprits(refusal.word, parsed.query), parsed)
        raise Unsupported(f"{refusal} is not evaluated by this version", place, parsed.text) from None
    except SolverStopped as stopped:
        raise Unsupported(f"the query {stopped}", place_of([], parsed), parsed.text) from None


if __name__ == "__main__":
    main()

"""Compares solutions as values: interval and terms, whatever their ids and the order of their members."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyoxigraph as ox

from engine.triples.quads import written
from epsparql.solutions.solution import term_of
from pipeline.formats.batches.timestamps import instant, iso


@dataclass(frozen=True, slots=True, order=True)
class Solution:
    """Represents a solution: its query ("" for the only one), its interval as ISO times, and its terms in N-Triples.

    `triples` is the text of a CONSTRUCT or DESCRIBE solution, in N-Triples with sorted lines; `boolean` is that of an
    ASK.
    """

    start: str
    end: str
    query: str = ""
    binding: tuple[tuple[str, str], ...] = ()
    triples: str | None = None
    boolean: bool | None = None

    def __str__(self) -> str:
        shown = " ".join(f"?{name}={term}" for name, term in self.binding) if self.triples is None else self.triples.replace("\n", " ").strip()
        shown = shown if self.boolean is None else str(self.boolean).lower()
        return f"{self.query}{': ' if self.query else ''}{shown or '(no bindings)'} on [{self.start}, {self.end}]"

    def line(self) -> str:
        """Return the solution as a line of expected.ndjson."""
        told: dict[str, object] = {"query": self.query} if self.query else {}
        told |= {"start": self.start, "end": self.end}
        if self.boolean is not None:
            told["boolean"] = self.boolean
        elif self.triples is not None:
            told["triples"] = self.triples
        else:
            told["binding"] = dict(self.binding)
        return json.dumps(told, ensure_ascii=False)


def parse_solution(told: Mapping[str, object]) -> Solution:
    """Return the solution of a JSON object: as `replay` prints it, or with its terms in N-Triples.

    Raises: ValueError, KeyError, TypeError.
    """
    binding = told.get("binding", {})
    if not isinstance(binding, Mapping):
        raise TypeError("binding is no object")
    triples, boolean = told.get("triples"), told.get("boolean")
    return Solution(
        iso(instant(str(told["start"]))),
        iso(instant(str(told["end"]))),
        str(told.get("query", "")),
        tuple(sorted((name, _term(value)) for name, value in binding.items())),
        None if triples is None else "".join(sorted(f"{triple} .\n" for triple in ox.parse(str(triples), ox.RdfFormat.N_TRIPLES))),
        None if boolean is None else bool(boolean),
    )


def term_object(term: object) -> dict[str, Any]:
    """Return a term as SPARQL's JSON results write it."""
    match term:
        case ox.NamedNode():
            return {"type": "uri", "value": term.value}
        case ox.BlankNode():
            return {"type": "bnode", "value": term.value}
        case ox.Literal(language=str(language)):
            direction = {} if term.direction is None else {"its:dir": term.direction.value}
            return {"type": "literal", "value": term.value, "xml:lang": language, **direction}
        case ox.Literal():
            return {"type": "literal", "value": term.value, "datatype": term.datatype.value}
        case ox.Triple():
            parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
            return {"type": "triple", "value": {name: term_object(part) for name, part in parts.items()}}
    raise ValueError(f"{term} is no term of a solution")


def _term(value: object) -> str:
    """Return a term in N-Triples, in the one way in which pyoxigraph writes it."""
    if isinstance(value, str):
        (found,) = ox.parse(f"<x:s> <x:p> {value} .", ox.RdfFormat.N_TRIPLES)
        return written(found.object)
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no term")
    return str(term_of(value))

"""`epsparql.run`: queries over files, triples, frames and graphs in this process."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import rdflib

import epsparql
from epsparql.terms import XSD, Iri

EX = "http://example.org/"
EWR, TEMPERATURE = rdflib.URIRef(f"{EX}ewr"), rdflib.URIRef(f"{EX}temperature")
WARMUP = f"""PREFIX : <{EX}>
SELECT ?station ?cold ?warm WHERE {{
  {{ ?station :temperature ?cold FILTER(?cold < 10) }} SEQ {{ ?station :temperature ?warm }} FILTER(?warm >= ?cold + 5)
}}"""
TEN, ELEVEN = datetime(2026, 1, 1, 10, tzinfo=UTC), datetime(2026, 1, 1, 11, tzinfo=UTC)
TRIPLES = [(EWR, TEMPERATURE, Decimal("8.5"), TEN), (EWR, TEMPERATURE, Decimal("14.1"), ELEVEN)]
COLUMNS = {"s": [EWR.n3()] * 2, "p": [TEMPERATURE.n3()] * 2, "o": [8.5, 14.1], "at": [TEN, ELEVEN]}


def graph() -> rdflib.Dataset:
    found = rdflib.Dataset()
    for number, (_, _, value, at) in enumerate(TRIPLES):
        name = rdflib.URIRef(f"{EX}reading/{number}")
        found.graph(name).add((EWR, TEMPERATURE, rdflib.Literal(value)))
        found.default_graph.add((name, rdflib.PROV.generatedAtTime, rdflib.Literal(at)))
    return found


def file(directory: Path) -> Path:
    path = directory / "readings.ndjson"
    lines = [f'{{"s":"{s.n3()}","p":"{p.n3()}","o":"\\"{o}\\"^^<{XSD}decimal>","at":"{at.isoformat()}"}}\n' for s, p, o, at in TRIPLES]
    path.write_text("".join(lines))
    return path


EVENTS: dict[str, Callable[[Path], Any]] = {
    "triples": lambda _: TRIPLES,
    "triples with intervals, as they come": lambda _: ((s, p, o, at, at) for s, p, o, at in reversed(TRIPLES)),
    "terms of rdflib": lambda _: [(s, p, rdflib.Literal(o), at.isoformat()) for s, p, o, at in TRIPLES],
    "texts of terms": lambda _: [(s.n3(), p.n3(), o, at) for s, p, o, at in TRIPLES],
    "terms of the language": lambda _: [(Iri(str(s)), Iri(str(p)), o, at) for s, p, o, at in TRIPLES],
    "numbers of numpy": lambda _: [(s, p, np.float64(o), at) for s, p, o, at in TRIPLES],
    "a frame of pandas": lambda _: pd.DataFrame(COLUMNS),
    "a frame of polars": lambda _: pl.DataFrame(COLUMNS),
    "a graph of rdflib": lambda _: graph(),
    "a file": file,
    "a file's name": lambda directory: str(file(directory)),
    "streams by name": lambda _: {"default": TRIPLES},
}


@pytest.mark.parametrize("kind", EVENTS)
def test_events_of_every_kind(kind: str, tmp_path: Path) -> None:
    found = epsparql.run(WARMUP, EVENTS[kind](tmp_path))
    (solution,) = found["query"]
    assert (solution["station"], float(str(solution["cold"])), float(str(solution["warm"]))) == (EWR, 8.5, 14.1)
    assert (solution.start, solution.end) == ("2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z")


def test_queries_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "warmup.rq"
    path.write_text(WARMUP)
    assert {name: len(found) for name, found in epsparql.run(path, TRIPLES).items()} == {"warmup": 1}
    assert {name: len(found) for name, found in epsparql.run([path], TRIPLES).items()} == {"warmup": 1}
    rule = f"CONSTRUCT {{ ?s <{EX}hot> ?t }} INTO STREAM <{EX}found> WHERE {{ ?s <{EX}temperature> ?t FILTER(?t > 10) }}"
    reader = f"SELECT ?t FROM STREAM <{EX}found> WHERE {{ ?s <{EX}hot> ?t }}"
    found = epsparql.run({"a.rule": rule, "b/c": reader, "again": path}, TRIPLES)
    assert {name: len(solutions) for name, solutions in found.items()} == {"a.rule": 1, "b/c": 1, "again": 1}
    assert [*found["a.rule"].to_rdflib()] == [(EWR, rdflib.URIRef(f"{EX}hot"), rdflib.Literal("14.1", datatype=rdflib.XSD.decimal))]
    assert found["b/c"][0]["t"].toPython() == Decimal("14.1")


def test_background_and_entailment(tmp_path: Path) -> None:
    path = tmp_path / "facts.ttl"
    path.write_text(f"<{EX}ewr> <{EX}in> <{EX}newark> .")
    query = f"SELECT ?place WHERE {{ ?s <{EX}temperature> ?t . ?s <{EX}in> ?place }}"
    for background in (path, str(path), [path]):
        assert epsparql.run(query, TRIPLES, background=background, entailment="owl-rl")["query"][0]["place"] == rdflib.URIRef(f"{EX}newark")
    assert epsparql.run(f"ASK {{ ?s <{EX}in> ?place }}", background=path)["query"][0].boolean is True


def test_a_policy() -> None:
    query = f"SELECT ?a ?b WHERE {{ {{ ?s <{EX}temperature> ?a }} SEQ {{ ?s <{EX}temperature> ?b }} }}"
    events = [(EWR, TEMPERATURE, number, datetime(2026, 1, 1, number, tzinfo=UTC)) for number in range(4)]
    assert len(epsparql.run(query, events)["query"]) == 6
    assert len(epsparql.run(query, events, policies={"query": "recent"})["query"]) == 3


def test_a_text_may_have_separators_of_lines() -> None:
    """Python's texts end lines at these characters, and JSON does not escape them."""
    text = "a\u2028b\u2029c\x85d"
    (found,) = epsparql.run("SELECT ?o WHERE { ?s ?p ?o }", [(EWR, TEMPERATURE, rdflib.Literal(text), TEN)])["query"]
    assert str(found["o"]) == text


REFUSED: list[tuple[Any, type[Exception], str]] = [
    ([(EWR, TEMPERATURE, 1)], TypeError, r"event 1: .* is neither \(s, p, o, at\) nor"),
    ([*TRIPLES, (EWR, 5, 1, TEN)], TypeError, "event 3: p is 5; expected a term"),
    ([(EWR, TEMPERATURE, 1j, TEN)], TypeError, "event 1: .* has no RDF datatype"),
    ([(EWR, TEMPERATURE, 1, 2026)], TypeError, "event 1: the time 2026 is neither a datetime nor"),
    (["abcd"], TypeError, "event 1: 'abcd' is neither"),
    ([(EWR, TEMPERATURE, 1, "yesterday")], ValueError, "events:1:.*'yesterday' is no xsd:dateTime"),
    ([("http://example.org/ewr", TEMPERATURE, 1, TEN)], ValueError, "events:1:.*may be the IRI"),
    (5, TypeError, "events of type int; expected a file, triples, a frame, or an rdflib Graph"),
    (pd.DataFrame({"sensor": ["a"], "temp": [1]}), ValueError, "the frame has the columns sensor, temp; expected s, p, o, and at, or start and end"),
    ("missing.ndjson", ValueError, "missing.ndjson: No such file"),
    (rdflib.Graph().add((EWR, TEMPERATURE, rdflib.Literal(1))), ValueError, "has no time"),
]


@pytest.mark.parametrize(("events", "kind", "fault"), REFUSED)
def test_bad_events_are_refused_with_their_place(events: Any, kind: type[Exception], fault: str) -> None:
    with pytest.raises(kind, match=fault):
        epsparql.run(WARMUP, events)


def test_a_bad_query_is_refused_with_its_place() -> None:
    with pytest.raises(ValueError, match="slow:1:8: "):
        epsparql.run({"slow": "SELECT nothing"}, TRIPLES)
    with pytest.raises(ValueError, match="'best' is no policy"):
        epsparql.run(WARMUP, TRIPLES, policies={"query": "best"})
    with pytest.raises(ValueError, match="entailment='owl' is not known; expected rdfs or owl-rl"):
        epsparql.run(WARMUP, TRIPLES, entailment="owl")


def test_a_stream_that_stays_empty_is_told() -> None:
    with pytest.warns(UserWarning, match="the stream <default>, which query reads, stays empty"):
        assert epsparql.run(WARMUP, {"other": TRIPLES}) == {"query": []}


MAPPING = {
    "base": EX,
    "time": "time",
    "subject": "{station}",
    "properties": {"temp": {"iri": ":temperature", "datatype": "xsd:decimal"}, "note": ":note"},
}
ROWS = {"station": ["ewr", "ewr", "jfk"], "temp": [8.5, 14.1, None], "note": [None, "wärm", "cold"], "time": [TEN, ELEVEN, ELEVEN]}


@pytest.mark.parametrize("kind", ["pandas", "polars", "decimals", "csv", "json"])
def test_a_mapping_takes_other_columns(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS)
    if kind in ("csv", "json"):
        path = tmp_path / f"readings.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_json(path, orient="records", date_format="iso")
        events: object = path
    else:
        frame["temp"] = [Decimal("8.5"), Decimal("14.1"), None] if kind == "decimals" else frame["temp"]
        events = pl.DataFrame(ROWS) if kind == "polars" else frame
    (solution,) = epsparql.run(WARMUP, events, mapping=MAPPING)["query"]
    assert (solution["station"], solution["cold"].toPython(), solution["warm"].toPython()) == (EWR, Decimal("8.5"), Decimal("14.1"))
    assert (solution.start, solution.end) == ("2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z")


def test_what_does_not_map_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"row 2.*temp"):
        epsparql.run(WARMUP, pd.DataFrame(ROWS | {"temp": ["8.5", "warm", "9"]}), mapping=MAPPING)
    with pytest.raises(TypeError, match="row 1, column temp: Object of type complex is not JSON"):
        epsparql.run(WARMUP, pd.DataFrame(ROWS | {"temp": [1j, 2j, 3j]}, dtype=object), mapping=MAPPING)
    with pytest.raises(ValueError, match="propertys"):
        epsparql.run(WARMUP, pd.DataFrame(ROWS), mapping={"propertys": {}})
    path = tmp_path / "readings.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"readings\.csv"):
        epsparql.run(WARMUP, path)

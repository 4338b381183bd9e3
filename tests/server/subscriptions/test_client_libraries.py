"""The clients with rdflib, pandas and polars, against a real server."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
import rdflib

from epsparql.async_client import AsyncClient
from epsparql.client import ApiError, Client
from epsparql.rdf_exchange.client_terms import NotInRdflib
from tests.server.conftest import EX, event, moment, serving, values

S, VALUE = rdflib.URIRef(f"{EX}s"), rdflib.URIRef(f"{EX}value")
TEXT = rdflib.Literal("01.50", datatype=rdflib.XSD.decimal, normalize=False)


def graph(literal: rdflib.Literal = TEXT) -> rdflib.Graph:
    return rdflib.Graph().add((S, VALUE, literal))


def rule(stream: str) -> str:
    return f"PREFIX : <{EX}> CONSTRUCT {{ ?s :seen ?v }} INTO STREAM <{stream}/seen> FROM STREAM <{stream}> WHERE {{ ?s :value ?v }}"


def test_a_graph_goes_in_and_comes_back_as_written(client: Client, stream: str, name: str) -> None:
    client.register(name, values(stream))
    client.register(f"{name} rule", rule(stream))
    assert client.send(stream, graph(), at=datetime(2026, 1, 1, tzinfo=UTC)).accepted == 1
    (solution,) = client.solutions(name, wait_s=30)
    assert (solution["s"], solution["v"], solution.start) == (S, TEXT, moment(0))
    assert str(solution["v"]) == "01.50"
    assert client.solutions(f"{name} rule", wait_s=30)
    assert [*client.graph(f"{name} rule")] == [(S, rdflib.URIRef(f"{EX}seen"), TEXT)]
    with pytest.raises(NotInRdflib, match="only CONSTRUCT and DESCRIBE"):
        client.graph(name)


def test_a_graph_without_a_stream_goes_to_the_default_one(tmp_path: Path) -> None:
    """The server is its own: events of other tests on the shared stream would make this one late."""
    with serving(tmp_path) as url:
        client = Client(url)
        client.register("q", values("default"))
        client.send(graph(), at=moment(1))
        assert client.solutions("q", wait_s=30)[0].end == moment(1)


def test_a_dataset_carries_its_own_times(client: Client, stream: str, name: str) -> None:
    dataset = rdflib.Dataset()
    for number in range(2):
        reading = rdflib.URIRef(f"{EX}reading/{number}")
        dataset.graph(reading).add((S, VALUE, rdflib.Literal(number)))
        dataset.default_graph.add((reading, rdflib.PROV.generatedAtTime, rdflib.Literal(moment(number), datatype=rdflib.XSD.dateTime)))
    client.register(name, values(stream))
    assert client.send(stream, dataset).accepted == 2
    client.finish(stream)
    assert [each.end for each in client.follow(name)] == [moment(0), moment(1)]


def test_a_body_must_be_one(client: Client, stream: str) -> None:
    with pytest.raises(TypeError, match="not int"):
        client.send(stream, 5)  # type: ignore[call-overload]
    with pytest.raises(ApiError, match="400"):
        client.send(stream, event(1), at="yesterday")


def test_frames(client: Client, stream: str, name: str) -> None:
    client.register(name, values(stream))
    client.send(stream, "\n".join(event(number) for number in range(30)))
    client.finish(stream)
    found = [*client.follow(name)]
    pandas = client.frame(name)
    assert isinstance(pandas, pd.DataFrame)
    assert list(pandas.columns) == ["id", "start", "end", "s", "v"]
    assert pandas["v"].tolist() == [str(number) for number in range(30)]
    assert pandas["end"][1] == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    polars = client.frame(name, after=found[9].id, library="polars")
    assert isinstance(polars, pl.DataFrame)
    assert polars["id"].to_list() == [each.id for each in found[10:]]
    with pytest.raises(ValueError, match="has more than 10 solutions to read; begin later with after="):
        client.frame(name, limit=10)
    assert asyncio.run(AsyncClient(client._transport.url).frame(name)).equals(pandas)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_frame_is_sent(client: Client, stream: str, name: str, library: Any) -> None:
    """The frame takes several bodies, and no row is late."""
    count = 2_000
    times = pd.date_range("2026-01-01", periods=count, freq="s", tz="UTC").to_pydatetime().tolist()
    frame = library.DataFrame({"s": [S.n3()] * count, "p": [VALUE.n3()] * count, "o": range(count), "at": times})
    client.register(name, f"SELECT ?v FROM STREAM <{stream}> WHERE {{ ?s <{EX}value> ?v FILTER(?v >= 1999) }}")
    sent = client.send_frame(stream, frame, rows=300)
    assert (sent.accepted, sent.late) == (count, 0)
    assert client.stream(stream)["accepted"] == count
    client.finish(stream)
    assert [each["v"].toPython() for each in client.follow(name)] == [count - 1]


def test_a_frame_of_other_columns_is_refused(client: Client, stream: str) -> None:
    with pytest.raises(ValueError, match="the frame has the columns sensor, temp; expected s, p, o, and at"):
        client.send_frame(stream, pd.DataFrame({"sensor": ["a"], "temp": [1.0]}))
    with pytest.raises(ApiError, match="the body is empty"):
        client.send_frame(stream, pl.DataFrame({"s": [], "p": [], "o": [], "at": []}))


MAPPING = {
    "base": EX,
    "time": "time",
    "subject": "{sensor}",
    "types": [":Reading"],
    "properties": {"value": {"iri": ":value", "datatype": "xsd:decimal"}},
}


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_frame_of_any_columns_is_sent_by_a_mapping(client: Client, stream: str, name: str, library: Any) -> None:
    """The stream keeps its other settings, and the mapping; rows that are sent again are no new events."""
    times = pd.date_range("2026-01-01", periods=4, freq="s", tz="UTC").to_pydatetime().tolist()
    frame = library.DataFrame({"sensor": ["s"] * 4, "value": [1.5, 2.0, None, 4.25], "time": times})
    client.create_stream(stream, max_delay="PT5S", description="kept")
    client.register(name, values(stream))
    sent = client.send_frame(stream, frame, MAPPING, rows=3)
    assert (sent.accepted, sent.late) == (7, 0)
    client.send_frame(stream, frame, MAPPING)
    found = client.stream(stream)
    assert (found["max_delay"], found["description"], found["mapping"]) == ("PT5S", "kept", MAPPING)
    client.finish(stream)
    assert [(each["s"], float(str(each["v"])), each.end) for each in client.follow(name)] == [
        (S, 1.5, moment(0)),
        (S, 2.0, moment(1)),
        (S, 4.25, moment(3)),
    ]
    assert client.send_frame(f"{stream}/new", frame, MAPPING).accepted == 7


def test_a_frame_that_does_not_map_is_refused(client: Client, stream: str) -> None:
    frame = pd.DataFrame({"sensor": ["s"], "value": ["many"], "time": [moment(0)]})
    with pytest.raises(ApiError, match="row 1"):
        client.send_frame(stream, frame, MAPPING)
    with pytest.raises(ApiError, match="propertys"):
        client.send_frame(stream, frame, {"propertys": {}})

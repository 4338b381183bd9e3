"""Progress of readers of several streams, and of streams that rules write."""

from collections.abc import Mapping

import pytest

from engine.messages import Micros
from pipeline.log.catalog import Catalogue, Registration, Stream
from server.query_output.watermark_progress import QueryProgress, WatermarkHistory


def select(*streams: str) -> str:
    return "SELECT * " + " ".join(f"FROM STREAM <{stream}>" for stream in streams) + " WHERE { ?s ?p ?o }"


def rule(into: str, *streams: str) -> str:
    return select(*streams).replace("SELECT *", f"CONSTRUCT {{ ?s ?p ?o }} INTO STREAM <{into}>")


@pytest.mark.parametrize(
    ("reads", "rules", "fed", "watermark"),
    [
        pytest.param(["x:a", "x:b"], [], {"x:a": 7}, None, id="one is not fed"),
        pytest.param(["x:a", "x:b"], [], {"x:a": 7, "x:b": 5}, 5, id="all are fed"),
        pytest.param(["x:d"], [rule("x:d", "x:a")], {"x:a": 7}, 7, id="a rule writes it"),
        pytest.param(["x:d"], [rule("x:d", "x:a", "x:b")], {"x:a": 7}, None, id="a rule rests on one that is not fed"),
        pytest.param(["x:a", "x:d"], [rule("x:d", "x:d")], {"x:a": 7}, None, id="its rule rests on itself"),
        pytest.param(["x:a", "x:d"], [rule("x:d", "x:e"), rule("x:e", "x:d")], {"x:a": 7}, None, id="its rules rest on each other"),
        pytest.param(["x:d"], [rule("x:d", "x:e"), rule("x:e", "x:d", "x:a")], {"x:a": 7}, 7, id="a cycle rests on one that is fed"),
        pytest.param(["x:d"], [rule("x:d", "x:d")], {"x:d": 7}, 7, id="what a rule writes is fed too"),
    ],
)
def test_progress(reads: list[str], rules: list[str], fed: Mapping[str, Micros], watermark: Micros | None) -> None:
    queries = [Registration(number, f"q{number}", text) for number, text in enumerate([select(*reads), *rules])]
    streams = {name: Stream(name, 0, latest=at, watermark=at, accepted=1) for name, at in fed.items()}
    catalogue, watermarks = Catalogue(position=9, streams=streams), WatermarkHistory()
    watermarks.take_sample(catalogue, 0.0)
    watermarks.take_sample(catalogue, 1.0)
    assert watermarks.compute_progress(9, queries[0], queries) == (None if watermark is None else QueryProgress(watermark, finished=False))

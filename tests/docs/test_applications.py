"""Applications on real data: the queries of docs/applications.md, with the numbers of the specification's `conformance/apps.md`."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from pipeline.query_tests.cases import Example, examples_in
from pipeline.query_tests.timelines import declare_prefixes
from server.cli.commands import main
from tests.docs.test_docs import ROOT

DATA = ROOT.parent / "shared" / "data"
EXAMPLE = "http://example.org/"
EARTHQUAKE = "2011-03-11T05:46:24Z"
Solution = dict[str, str]
"""A solution's values by variable, and its `start` and `end`."""


@pytest.fixture(scope="module")
def queries() -> list[Example]:
    return list(examples_in((ROOT / "docs" / "applications.md").read_text(encoding="utf-8")))


def replayed(example: Example, events: Iterable[dict[str, str]], directory: Path, capsys: pytest.CaptureFixture[str]) -> list[Solution]:
    query, stream = directory / "query.rq", directory / "stream.ndjson"
    query.write_text(declare_prefixes(example.query), encoding="utf-8")
    stream.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    assert main(["replay", "--query", str(query), "--stream", str(stream)]) == 0
    return [flat(json.loads(line)) for line in capsys.readouterr().out.splitlines()]


def flat(line: dict[str, dict[str, Solution]]) -> Solution:
    values = {name: term["value"] for name, term in line["binding"].items()}
    return values | {"start": str(line["start"]), "end": str(line["end"])}


def reading(subject: str, quantity: str, value: str, at: str) -> dict[str, str]:
    decimal = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    return {"s": f"<{EXAMPLE}{subject}>", "p": f"<{EXAMPLE}{quantity}>", "o": decimal, "at": at}


# ---------------------------------------------------------------- tsunami
def heights(path: Path) -> Iterator[dict[str, str]]:
    """A buoy's heights on the quarter hour, each once: of several at an instant the one with the lowest T code; 9999 stands for none."""
    known: dict[str, tuple[int, str]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        year, month, day, hour, minute, second, code, height = line.split()[:8]
        if int(minute) % 15 == 0 and int(second) == 0 and float(height) < 9999:
            at = f"{year}-{month}-{day}T{hour}:{minute}:{second}Z"
            known[at] = min(known.get(at, (int(code), height)), (int(code), height), key=lambda one: one[0])
    return (reading(path.name[:5], "height", height, at) for at, (_, height) in known.items())


@pytest.fixture(scope="module")
def ocean() -> list[dict[str, str]]:
    files = sorted((DATA / "dart-tohoku").glob("[0-9]*.txt"))
    assert len(files) == 17
    return [event for path in files for event in heights(path)]


def test_heights_with_a_prediction(
    queries: Sequence[Example], ocean: list[dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(replayed(queries[0], ocean, tmp_path, capsys)) == 8818


def test_the_tsunami(queries: Sequence[Example], ocean: list[dict[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alarms = replayed(queries[1], ocean, tmp_path, capsys)
    assert len(alarms) == 1132
    assert alarms[0]["end"] > EARTHQUAKE
    first = next(alarm for alarm in alarms if alarm["buoy"] == f"{EXAMPLE}21418")
    assert (first["end"], round(float(first["off"]), 6)) == ("2011-03-11T06:15:00Z", 0.192852)


# ---------------------------------------------------------------- traffic
@pytest.mark.parametrize(("sensor", "pairs"), [("speed_6005", 26), ("speed_7578", 305)])
def test_slow_traffic(queries: Sequence[Example], sensor: str, pairs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (DATA / "nab-traffic" / f"{sensor}.csv").open(newline="", encoding="utf-8") as file:
        events = [reading(sensor, "speed", row["value"], row["timestamp"].replace(" ", "T") + "Z") for row in csv.DictReader(file)]
    assert len(replayed(queries[2], events, tmp_path, capsys)) == pairs


# ---------------------------------------------------------------- weather stations
@pytest.fixture(scope="module")
def stations() -> list[dict[str, str]]:
    """The batches as messages, each at its sampling time."""
    found = []
    for path in sorted((DATA / "csrbench" / "data").glob("*.ttl")):
        text = path.read_text(encoding="utf-8")
        (sampled,) = set(re.findall(r"samplingTime sens-obs:Instant_(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)", text))
        found.append({"triples": text, "at": "{}-{}-{}T{}:{}:{}Z".format(*sampled)})
    assert len(found) == 34
    return found


@pytest.mark.parametrize(("query", "solutions"), [pytest.param(3, 15, id="hot"), pytest.param(4, 12, id="dry"), pytest.param(5, 3990, id="pairs")])
def test_weather_stations(
    queries: Sequence[Example], stations: list[dict[str, str]], query: int, solutions: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(replayed(queries[query], stations, tmp_path, capsys)) == solutions

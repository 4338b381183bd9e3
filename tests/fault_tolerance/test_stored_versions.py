"""Data directories written by earlier versions are read by this one, and go on from where they stood.

Each fixture was written in segments of 4 KiB by `write_fixture` below: two directories, of one engine and of two
partitions, and `expected.json` with the solutions that its version gave, up to the stop and after it went on with
`send_rest`. `0.1.0.tar.xz` is of that version, `format-2.tar.xz` is the first of format 2
(pipeline/log/format_version.py), and `node-names-1.tar.xz` the last whose queries named nodes in the form 1.
"""

import json
import shutil
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from engine.partitioning import PartitionShare
from epsparql.client import Client, Source
from pipeline.log import LogWriter
from pipeline.log.format_version import FORMAT, READABLE_FROM, FormatNote, read_format
from pipeline.runners.snapshots import Snapshots
from server.cli.serve import Server, gate_of, listen
from server.process import clock
from server.settings import Settings
from tests.server.conftest import COMPILING_S, EX, moment, serving, until

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[1] / "fixtures"
PREFIX = f"PREFIX : <{EX}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
SEGMENT_BYTES = 4096
READERS = {
    "sequence": "SELECT * WHERE { {?s :a ?x} SEQ {?s :b ?y} WITHIN 20 }",
    "optional": "SELECT * WHERE { {?s :a ?x} OPTIONAL {?s :c ?z FILTER(getDURATION() < 'PT5S'^^xsd:duration)} }",
    "missing": "SELECT * WHERE { {?s :a ?x} WITHOUT {?s :b ?y} FOR 'PT5S'^^xsd:duration }",
    "windows": "SELECT ?s (COUNT(?x) AS ?n) (SUM(?x) AS ?sum) WHERE { ?s :a ?x } GROUP BY ?s WINDOW [RANGE 'PT20S'^^xsd:duration STEP 'PT10S'^^xsd:duration]",
    "graphs": "SELECT * WHERE { GRAPH ?g { ?s :c ?x } }",
    "background": "SELECT * WHERE { ?s :a ?x . ?s a :Sensor . ?s :room ?r }",
    "derived": "SELECT * FROM STREAM <http://example.org/alarms> WHERE { ?s :alarm ?x }",
    "alarms": "CONSTRUCT { ?s :alarm ?y } INTO STREAM <http://example.org/alarms> WHERE { {?s :a ?x} SEQ {?s :c ?y} WITHIN 10 }",
}
ONE_ENGINE = {
    "recent": "SELECT * WHERE { {?s :a ?x} SEQ {?s :b ?y} }",
    "limited": "SELECT * WHERE { ?s :b ?y } LIMIT 3",
    "paused": "SELECT * WHERE { ?s :b ?y }",
}
FURTHER = {
    "sessions": "SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :a ?x } GROUP BY ?s WINDOW [SESSION 'PT12S'^^xsd:duration CLOSED]",
    "bulk": "SELECT ?s FROM STREAM <http://example.org/bulk> WHERE { ?s :part 7 }",
}
"""What version 0.1.0 did not have: sessions, and bodies that are long enough to be stored in slices for two partitions."""
NAMED = {
    "labels": "SELECT * WHERE { ?s :a ?x BIND(BNODE() AS ?n) BIND(BNODE('x') AS ?l) BIND(UUID() AS ?u) BIND(STRUUID() AS ?t) BIND(RAND() AS ?r) }",
    "template": "CONSTRUCT { [] :of ?s ; :from ?x } INTO STREAM <http://example.org/named> WHERE { {?s :a ?x} SEQ {?s :b ?y} WITHIN 20 }",
    "named": "SELECT * FROM STREAM <http://example.org/named> WHERE { ?n :of ?s }",
    "least": "SELECT ?s (MIN(BNODE()) AS ?n) WHERE { ?s :a ?x } GROUP BY ?s WINDOW [RANGE 'PT20S'^^xsd:duration STEP 'PT10S'^^xsd:duration]",
    "warm": "SELECT ?s ?n FROM NAMED WINDOW :w ON <default> [RANGE PT4S STEP PT4S] WHERE { WINDOW :w { ?s :a ?x } BIND(BNODE() AS ?n) }",
}
"""These queries name nodes in the form of their registration."""
VERSIONS = "0.1.0", "format-2", "node-names-1"
ROOMS = "@prefix : <http://example.org/> . :Thermometer <http://www.w3.org/2000/01/rdf-schema#subClassOf> :Sensor . :s1 a :Thermometer ; :room 1 . :s2 a :Sensor ; :room 2 ."


def body(first: int, last: int) -> str:
    """Return the events of the seconds `first` to `last - 1`: a, b and c in turn, of five subjects, some in a graph."""
    lines = []
    for second in range(first, last):
        subject, name = second % 5, "abc"[second * second % 3 if second % 7 else 2]
        graph = f',"g":"<{EX}g{second % 2}>"' if second % 4 == 0 else ""
        value = f'"\\"{second / 4}\\"^^<http://www.w3.org/2001/XMLSchema#{"decimal" if second % 3 else "double"}>"'
        lines.append(f'{{"s":"<{EX}s{subject}>","p":"<{EX}{name}>","o":{value},"at":"{moment(second)}"{graph}}}')
    return "\n".join(lines)


def send_first(client: Client, partitions: int) -> None:
    client.create_stream("default", max_delay="PT2S")
    for name, text in (FURTHER | NAMED).items():
        client.register(name, PREFIX + text)
    lines = (
        f'{{"s":"<{EX}s{k}>","p":"<{EX}part>","o":"\\"{k % 100}\\"^^<http://www.w3.org/2001/XMLSchema#integer>","at":"{moment(k)}"}}'
        for k in range(1500)
    )
    client.send(f"{EX}bulk", "\n".join(lines), source=Source("file:bulk", None, "1500"))
    client.finish(f"{EX}bulk")
    client.request("PUT", "/ontologies/http%3A%2F%2Fexample.org%2Frooms", ROOMS, Content_Type="text/turtle")
    for name, text in READERS.items() | (ONE_ENGINE.items() if partitions == 1 else ()):
        client.register(name, PREFIX + text, policy="recent" if name == "recent" else "unrestricted")
    for first in range(0, 100, 4):
        client.send("default", body(first, first + 4), key=f"key {first}")
    client.send("default", body(10, 12))  # late
    if partitions == 1:
        client.pause("paused")
    for first in range(100, 200, 4):
        client.send("default", body(first, first + 4))


def send_rest(client: Client, partitions: int) -> None:
    if partitions == 1:
        client.resume("paused")
    client.request(
        "POST",
        "/ontologies/http%3A%2F%2Fexample.org%2Frooms",
        "<http://example.org/s3> a <http://example.org/Sensor> ; <http://example.org/room> 3 .",
        Content_Type="text/turtle",
    )
    client.register("new", PREFIX + READERS["sequence"])
    for first in range(200, 260, 4):
        client.send("default", body(first, first + 4))
    client.finish("default")


def solutions(client: Client, partitions: int) -> dict[str, list[Any]]:
    """Return each query's solutions once the engine has read all of the log."""
    found = {}
    for query in client.queries():
        name = query["name"]
        until(lambda name=name: not client.query(name)["lag"] or client.query(name)["state"] in ("paused", "completed"), f"{name} has read all")  # type: ignore[misc]  # a default that captures
        rows = client.solutions(name, limit=10_000)
        found[name] = [[row.id, row.start, row.end, row.binding or row.triples] for row in rows]
    return found


@contextmanager
def writing(data: Path, partitions: int) -> Iterator[Client]:
    """Serve with small segments, so that a little data makes several."""
    settings = Settings(data=data, port=0, runner="inprocess", partitions=partitions)
    with listen(settings) as listener, LogWriter(settings.data, clock, segment_bytes=SEGMENT_BYTES, partitions=partitions) as log:
        server = Server(settings, log, listener, gate_of(settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            client = Client(server.url)
            client.wait_ready(COMPILING_S)
            yield client
        finally:
            server.should_exit = True
            thread.join()


def write_fixture(version: str, scratch: Path) -> None:
    """Write the fixture of the running version; `python -c` calls this once, before a release."""
    expected: dict[str, dict[str, Any]] = {}
    with tarfile.open(FIXTURES / f"{version}.tar.xz", "w:xz") as archive:
        for partitions in (1, 2):
            data, other = scratch / str(partitions), scratch / f"{partitions}-ended"
            with writing(data, partitions) as client:
                send_first(client, partitions)
                stopped = solutions(client, partitions)
            shutil.copytree(data, other)
            archive.add(data, str(partitions))
            with writing(other, partitions) as client:
                send_rest(client, partitions)
                expected[str(partitions)] = {"stopped": stopped, "ended": solutions(client, partitions)}
        (scratch / "expected.json").write_text(json.dumps(expected))
        archive.add(scratch / "expected.json", "expected.json")


def unpack(version: str, where: Path) -> None:
    with tarfile.open(FIXTURES / f"{version}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
        archive.extractall(where)


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_directory_of_an_earlier_version_goes_on(tmp_path: Path, version: str, partitions: int) -> None:
    unpack(version, tmp_path)
    expected = json.loads((tmp_path / "expected.json").read_text())[str(partitions)]
    with serving(tmp_path / str(partitions)) as url:
        client = Client(url)
        assert solutions(client, partitions) == expected["stopped"]
        stream = client.stream("default")
        assert (stream["accepted"], stream["late"], stream["max_delay"]) == (202, 2, "PT2S")
        send_rest(client, partitions)
        assert solutions(client, partitions) == expected["ended"]
    assert read_format(tmp_path / str(partitions)) == FormatNote(FORMAT, READABLE_FROM)


def test_a_new_registration_names_nodes_in_the_present_form(tmp_path: Path) -> None:
    unpack("node-names-1", tmp_path)
    with serving(tmp_path / "1") as url:
        client = Client(url)
        client.register("labels of now", PREFIX + NAMED["labels"], start="beginning")
        client.promote("labels", PREFIX + NAMED["labels"] + " # as before")
        client.finish("default")
        found = solutions(client, 1)
        started = client.start_trial(PREFIX + NAMED["least"], compare_with="least")["id"]
        until(lambda: client.trial(started)["state"] == "completed", "the trial is over")
        (compared,) = client.trial(started)["queries"]
        assert (compared["new"], compared["old"]) == (0, 0), "it names nodes as its query does"
        assert compared["both"] > 20
    before, now = ([row[3] for row in found[name]] for name in ("labels", "labels of now"))
    assert len(before) == len(now) > 20
    assert {len(row["n"]["value"]) for row in before} == {1 + 24}
    assert {len(row["n"]["value"]) for row in now} == {1 + 32}


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_snapshot_of_an_earlier_version_is_taken(tmp_path: Path, version: str, partitions: int) -> None:
    """A snapshot that is not taken costs a restart the whole log, so this version's plans must still be those of the
    earlier one.
    """
    unpack(version, tmp_path)
    found = sorted((tmp_path / str(partitions) / "snapshots").glob("*.snapshot"))
    assert len(found) == partitions
    for path in found:
        name, position = path.stem.rsplit("-", 1)
        share = PartitionShare(int(name.partition("of")[0] or 0), partitions)
        engine = Snapshots(path.parent, name, share).newest(int(position))
        assert isinstance(engine, Engine)
        assert engine.position == int(position)


def test_the_present_format_has_a_fixture() -> None:
    assert (FIXTURES / f"format-{FORMAT}.tar.xz").exists(), "write one by write_fixture, and name it in VERSIONS"
    assert f"format-{FORMAT}" in VERSIONS

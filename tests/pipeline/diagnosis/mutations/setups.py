"""Defines small set-ups that work: a query with its events, a mapping and a background. Each is run in this process."""

import io
import json
from dataclasses import dataclass
from pathlib import Path

from epsparql.errors import QueryError
from pipeline.formats.body_parser import NDJSON
from pipeline.replay.input_files import NamedBody
from pipeline.replay.query_files import NamedFile, QueryFile, SourceFault
from pipeline.replay.replay import Replay, run

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}>\n"
NOW = 1_767_312_000_000_000  # 2026-01-02


@dataclass(frozen=True, slots=True)
class Setup:
    """Holds what a user writes. `bodies` are the events by stream: lines of ndjson, or CSV where there is a mapping."""

    name: str
    query: str
    bodies: tuple[tuple[str, str], ...]
    mapping: str = ""
    background: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Says how many solutions a set-up has, and what its user is told beside them."""

    solutions: int
    told: str


def answer_setup(setup: Setup, directory: Path) -> Answer:
    """Run a set-up as `epsparql replay` does, and return all its messages."""
    background = []
    if setup.background:
        background.append(NamedFile("", directory / "background.ttl"))
        background[0].path.write_text(setup.background)
    media_type = "text/csv" if setup.mapping else NDJSON
    bodies = [NamedBody(name, Path(f"{name}.txt"), text.encode(), media_type, mapping=setup.mapping) for name, text in setup.bodies]
    told: list[str] = []
    try:
        replay = Replay([QueryFile(Path("q.rq"), setup.query)], bodies, background)
        summary = run(replay, "ndjson", io.BytesIO(), lambda: NOW, lambda _: None, lambda doubt: told.append(str(doubt)), explains=True)
    except (SourceFault, QueryError) as fault:
        return Answer(0, str(fault))
    told += [str(each.reason) for each in summary.silent]
    return Answer(summary.solutions["q"], "\n".join(told))


def _write_lines(events: str) -> str:
    """Return lines of ndjson for events such as `10 m1 temp 35`: seconds, subject, predicate, object (number, 'text'
    or name), graph.
    """
    return "".join(_write_line(*line.split()) for line in events.strip().split("\n"))


def _write_line(at: str, subject: str, predicate: str, value: str, graph: str = "") -> str:
    object_ = f"<{EX}{value}>"
    if value[0] in "0123456789-":
        object_ = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    elif value[0] == "'":
        object_ = f'"{value[1:-1]}"'
    name = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type" if predicate == "a" else EX + predicate
    line = {
        "s": f"<{EX}{subject}>",
        "p": f"<{name}>",
        "o": object_,
        "at": f"2026-01-01T{int(at) // 3600:02}:{int(at) // 60 % 60:02}:{int(at) % 60:02}Z",
    }
    return json.dumps(line | ({"g": f"<{EX}{graph}>"} if graph else {})) + "\n"


def _make_setup(name: str, query: str, *streams: tuple[str, str], background: str = "") -> Setup:
    return Setup(name, PREFIX + query, tuple((stream, _write_lines(events)) for stream, events in streams), "", background and PREFIX + background)


def _make_table(name: str, query: str, rows: str, background: str = "") -> Setup:
    mapping = {
        "time": "ts", "time_format": "epoch_ms", "base": EX, "subject": "{sensor}",
        "properties": {"temp": {"iri": ":temperature", "datatype": "xsd:decimal"}, "load": {"iri": ":powerLoad", "datatype": "xsd:decimal"}},
    }  # fmt: skip
    return Setup(name, PREFIX + query, (("default", "ts,sensor,temp,load\n" + rows),), json.dumps(mapping), background and PREFIX + background)


_READINGS = "0 m1 temperature 20\n600 m1 temperature 35.5\n900 m2 temperature 36.5\n1200 m1 temperature 31\n1300 m3 pressure 3"
_DOORS = "100 d1 doorOpened p1\n160 d1 doorClosed p1\n130 d9 pinged p1\n400 d2 doorOpened p2\n500 d9 pinged p2\n900 d2 doorClosed p2"
_ORDERS = "0 o1 orderPlaced 120\n1800 o1 orderShipped 120\n3600 o2 orderPlaced 75\n9000 o2 orderShipped 75"
_PATIENTS = "0 p1 heartRate 85\n30 p1 heartRate 128\n60 p1 bloodPressure 95\n90 p2 heartRate 131\n150 p2 bloodPressure 92"
_SHARES = "0 acme stockPrice 100\n60 acme stockPrice 112\n120 acme tradedVolume 5000\n180 bolt stockPrice 50\n240 bolt tradedVolume 7000"
_STATES = "0 pump1 pumpState 'running'\n60 pump1 vibration 4\n90 pump1 pumpState 'stopped'\n120 pump2 pumpState 'running'\n180 pump2 vibration 9"
_KINDS = "0 v1 a Vehicle\n5 v1 speed 88\n10 v2 a Vehicle\n15 v2 speed 132\n20 v1 brake 1\n25 v2 brake 1"
_SITES = "0 t1 windSpeed 12 north\n60 t2 windSpeed 27 north\n120 t1 rotorSpeed 14 north\n180 t2 rotorSpeed 19 north"
_BEDS = "10 bed1 alarmRaised n1\n30 bed9 pinged n1\n50 bed1 alarmQuit n1\n100 bed2 alarmRaised n2\n400 bed9 pinged n2\n700 bed2 alarmQuit n2"
_TABLE = "1767225600000,m1,20,300\n1767226200000,m1,35.5,900\n1767226800000,m2,36.5,870\n1767227400000,m1,31,410\n"

SETUPS = (
    _make_setup("hot", "SELECT ?s ?t { ?s :temperature ?t FILTER(?t > 30) }", ("default", _READINGS)),
    _make_setup("hot site", "SELECT ?s ?t FROM STREAM <readings> { ?s :temperature ?t FILTER(?t >= 35) }", ("readings", _READINGS)),
    _make_setup("door", "SELECT ?d ?p { { ?d :doorOpened ?p } SEQ { ?d :doorClosed ?p } WITHIN PT10M }", ("default", _DOORS)),
    _make_setup("door stream", "SELECT ?d FROM STREAM <doors> { { ?d :doorOpened ?p } SEQ { ?d :doorClosed ?q } WITHIN PT5M }", ("doors", _DOORS)),
    _make_setup("order", "SELECT ?o { { ?o :orderPlaced ?x } SEQ { ?o :orderShipped ?y } WITHIN PT2H FILTER(?x >= 100) }", ("default", _ORDERS)),
    _make_setup("patient", "SELECT ?p { { ?p :heartRate ?h } SEQ { ?p :bloodPressure ?b } WITHIN PT2M FILTER(?h > 120 && ?b < 100) }", ("default", _PATIENTS)),
    _make_setup("share", "SELECT ?s ?v { { ?s :stockPrice ?x } SEQ { ?s :tradedVolume ?v } WITHIN PT5M FILTER(?v > 1000) }", ("default", _SHARES)),
    _make_setup("pump", 'SELECT ?s { { ?s :pumpState "running" } SEQ { ?s :vibration ?v } WITHIN PT3M FILTER(?v > 3) }', ("default", _STATES)),
    _make_setup("pump text", 'SELECT ?s { ?s :pumpState ?state FILTER(?state = "stopped") }', ("default", _STATES)),
    _make_setup("vehicle", "SELECT ?s { { ?s a :Vehicle ; :speed ?v } SEQ { ?s :brake ?b } WITHIN PT1M FILTER(?v > 80) }", ("default", _KINDS)),
    _make_setup("class", "SELECT ?s FROM STREAM <traffic> { ?s a :Vehicle }", ("traffic", _KINDS)),
    _make_setup("graph", "SELECT ?s { { GRAPH :north { ?s :windSpeed ?w } } SEQ { GRAPH :north { ?s :rotorSpeed ?r } } WITHIN PT5M }", ("default", _SITES)),
    _make_setup("bed", "SELECT ?b { { ?b :alarmRaised ?n } SEQ { ?b :alarmQuit ?n } WITHOUT { ?b :alarmLost ?n } WITHIN PT15M }", ("default", _BEDS)),
    _make_setup("two streams", "SELECT ?s FROM STREAM <prices> FROM STREAM <volumes> { { ?s :stockPrice ?x } SEQ { ?s :tradedVolume ?v } WITHIN PT5M }",
                ("prices", "\n".join(line for line in _SHARES.split("\n") if "Price" in line)), ("volumes", "\n".join(line for line in _SHARES.split("\n") if "Volume" in line))),
    _make_setup("background", "SELECT ?s ?r { { ?s :temperature ?t . ?s :inRoom ?r } FILTER(?t > 30) }", ("default", _READINGS), background=":m1 :inRoom :cellar . :m2 :inRoom :attic ."),
    _make_setup("count", "SELECT ?s (COUNT(*) AS ?n) { ?s :temperature ?t } GROUP BY ?s HAVING (COUNT(*) > 2)", ("default", _READINGS)),
    _make_table("table", "SELECT ?s ?t { ?s :temperature ?t FILTER(?t > 30) }", _TABLE),
    _make_table("table join", "SELECT ?s ?t { ?s :temperature ?t ; :powerLoad ?l FILTER(?l > 800) }", _TABLE),
    _make_table("table sequence", "SELECT ?s { { ?s :powerLoad ?x } SEQ { ?s :temperature ?t } WITHIN PT1H FILTER(?x > 800) }", _TABLE),
    _make_table("table background", "SELECT ?s ?r { ?s :temperature ?t . ?s :inRoom ?r }", _TABLE, background=":m1 :inRoom :cellar ."),
)  # fmt: skip

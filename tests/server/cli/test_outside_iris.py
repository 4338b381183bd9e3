"""Samples from outside whose IRIs are made of data: what is no IRI is an error, and what earlier versions stored is
shown escaped.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from engine.expressions import functions
from engine.validation import validate
from epsparql.terms import Iri
from server.cli.commands import main
from tests.server.conftest import DEADLINE_S, EX, serving, until

OUTSIDE = Path(__file__).resolve().parents[4] / "shared/conformance/outside"
ROOMS = f"/ontologies/{quote(EX + 'rooms', safe='')}?derived=true"
GRAPH_FORMATS = ("text/turtle", "application/n-triples", "application/trig", "application/n-quads", "application/ld+json")
FORMATS = ("application/x-ndjson", "text/turtle", "application/trig", "application/n-quads", "application/ld+json")
ROOM_RULE = f"""PREFIX : <{EX}> CONSTRUCT {{ <http://e/50%> :named ?label . <kitchen> :named "x"@en-a }} INTO BACKGROUND <{EX}rooms>
    WHERE {{ ?x :label ?label }}"""
ALARM = f"""PREFIX : <{EX}> CONSTRUCT {{ ?room :temp ?t . <http://e/50%> :in <kitchen> }} INTO STREAM <rooms> FROM STREAM <in>
    WHERE {{ ?x :room ?l ; :temp ?t BIND(IRI(?l) AS ?room) }}"""


def test_an_iri_made_of_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--query", f"{OUTSIDE}/01-iri.rq", "--stream", f"{OUTSIDE}/01-iri.ndjson", "--format", "turtle"]) == 0
    assert capsys.readouterr().out.split() == ["<http://example.org/room/hall>", "<http://example.org/temp>", "21", "."]


def test_a_relative_iri_without_base(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{OUTSIDE}/rel.rq"]) == 0
    assert "no BASE, so IRI of a relative text is an error" in "".join(capsys.readouterr())
    assert main(["replay", "--query", f"{OUTSIDE}/rel.rq", "--stream", f"{OUTSIDE}/rel.ndjson"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert "hall" in line


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """IRI() and the check of constants as version 0.1.0 had them."""
    found = functions.Function(lambda term, base=None: Iri(term.value if isinstance(term, Iri) else term.lexical), 1, 2)
    monkeypatch.setitem(functions.FUNCTIONS, "IRI", found)
    monkeypatch.setattr(validate, "refuse_invalid_terms", lambda parsed: None)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    with serving(tmp_path) as url, httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
        yield client


def begin(client: httpx.Client) -> None:
    """Register rules with terms that no format can write, and feed them."""
    sparql = {"Content-Type": "application/sparql-query"}
    turtle = {"Content-Type": "text/turtle"}
    client.put(f"/ontologies/{quote(EX + 'labels', safe='')}", content=(OUTSIDE / "labels.ttl").read_text(), headers=turtle).raise_for_status()
    client.put("/queries/rooms", content=ROOM_RULE, headers=sparql).raise_for_status()
    client.put("/queries/alarm", content=ALARM, headers=sparql).raise_for_status()
    body = f"<http://e/s> <{EX}room> 'hall' , 'http://e/[x]' ; <{EX}temp> 21 ."
    client.post("/streams/in/events", content=body, headers=turtle).raise_for_status()
    client.post("/streams/in/finish").raise_for_status()
    until(lambda: client.get("/queries/alarm").json()["solutions"] > 0, "the rule has solutions")


def ask_names(client: httpx.Client) -> list[str]:
    answer = client.post("/sparql", data={"query": f"SELECT ?room {{ ?room <{EX}named> ?l }}"})
    assert answer.status_code == 200, answer.text
    return sorted({row["room"]["value"].removeprefix(EX) for row in answer.json()["results"]["bindings"]})


def test_labels_that_give_no_iri_leave_the_background_readable(client: httpx.Client) -> None:
    labels = (OUTSIDE / "labels.ttl").read_text()
    client.put(f"/ontologies/{quote(EX + 'labels', safe='')}", content=labels, headers={"Content-Type": "text/turtle"}).raise_for_status()
    rule = (OUTSIDE / "static.rq").read_text()
    client.put("/queries/rooms", content=rule, headers={"Content-Type": "application/sparql-query"}).raise_for_status()
    assert ask_names(client) == ["room/hall"]


def test_a_rule_that_makes_iris_is_no_trap(client: httpx.Client) -> None:
    refused = client.put("/queries/alarm", content=ALARM, headers={"Content-Type": "application/sparql-query"})
    assert (refused.status_code, refused.json()["code"]) == (400, "syntax"), refused.text
    assert "<http://e/50%> is not valid" in refused.json()["detail"]


@pytest.mark.usefixtures("earlier")
def test_what_earlier_versions_stored_is_shown_escaped(client: httpx.Client) -> None:
    begin(client)
    assert ask_names(client) == ["http://e/50%25", "urn:epsparql:invalid-iri:kitchen"]
    for media_type in GRAPH_FORMATS:
        answer = client.get(ROOMS, headers={"Accept": media_type})
        assert (answer.status_code, "http://e/50%25" in answer.text) == (200, True), answer.text
    for media_type in FORMATS:
        answer = client.get("/queries/alarm/solutions", headers={"Accept": media_type})
        assert (answer.status_code, "kitchen" in answer.text) == (200, True), answer.text
    (address,) = re.findall(r"http[^>]*page=0", client.get("/queries/alarm/ldes", headers={"Accept": "application/n-quads"}).text)
    for media_type in FORMATS[2:]:
        page = client.get(address, headers={"Accept": media_type})
        assert (page.status_code, "invalid-iri:kitchen" in page.text) == (200, True), page.text
    assert client.get("/readyz").status_code == 200

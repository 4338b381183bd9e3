"""Mappings through a real server: bodies, frames, CloudEvents, the dead-letter feed, and what a restart keeps of them."""

import json
from pathlib import Path
from typing import Any

import httpx

from epsparql.client import Client, segment
from tests.server.conftest import EX, serving, until
from tests.server.subscriptions.test_websockets import dial

MAPPING: dict[str, Any] = {
    "time": "ts",
    "base": EX,
    "subject": "sensor/{sensor}",
    "properties": {"temp": {"iri": ":temp", "datatype": "xsd:decimal"}},
}
CSV = "ts,sensor,temp\n2026-01-01T00:00:00Z,a,1\n2026-01-01T00:00:01Z,b,cold\n2026-01-01T00:00:02Z,c,3\n"
QUERY = f"PREFIX : <{EX}> SELECT ?s ?v FROM STREAM <s> WHERE {{ ?s :temp ?v }}"


def post(http: httpx.Client, body: str, media_type: str = "text/csv", stream: str = "s", **headers: str) -> httpx.Response:
    sent = {"Content-Type": media_type} | {name.replace("_", "-"): value for name, value in headers.items()}
    return http.post(f"/streams/{segment(stream)}/events", content=body.encode(), headers=sent)


def rejected(http: httpx.Client, **query: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in http.get("/streams/s/rejected", params=query).text.splitlines()]


def test_mapped_and_rejected_rows_and_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path) as url, httpx.Client(base_url=url) as http:
        client = Client(url)
        assert client.create_stream("s", mapping=MAPPING, on_error="dead_letter")["mapping"] == MAPPING
        client.register("q", QUERY)
        answer = post(http, CSV, Idempotency_Key="k")
        assert (answer.status_code, answer.json()["accepted"], answer.json()["rejected"]) == (202, 2, 1)
        assert post(http, CSV, Idempotency_Key="k").json() == answer.json()
        assert post(http, '{"ts":"2026-01-01T00:00:03Z","sensor":"d","temp":4.50}', "application/json").json()["accepted"] == 1
        assert "rejected" not in post(http, "", "application/json").json()
        before, document = rejected(http), client.stream("s")
        assert 'epsparql_stream_rejected_rows_total{stream="s"} 1.0' in http.get("/metrics").text
    assert [(row["row"], row["field"], row["text"]) for row in before] == [(2, "temp", "2026-01-01T00:00:01Z,b,cold")]
    assert "'cold' is no xsd:decimal" in before[0]["reason"]
    with serving(tmp_path) as url, httpx.Client(base_url=url) as http:
        client = Client(url)
        assert rejected(http) == before
        assert rejected(http, after=before[0]["offset"]) == []
        assert client.stream("s") == document
        assert (document["rejected"], document["accepted"], document["on_error"]) == (1, 3, "dead_letter")
        assert post(http, CSV, Idempotency_Key="k").json() == answer.json()
        assert post(http, "ts,sensor,temp\n2026-01-01T00:00:04Z,e,warm\n", Idempotency_Key="l").json()["rejected"] == 1
        assert [row["row"] for row in rejected(http)] == [2, 1]
        assert len(rejected(http, limit=1)) == 1
        client.finish("s")
        until(lambda: len(client.solutions("q")) == 3, "all mapped rows are solutions")
        values = [solution.binding["v"]["value"] for solution in client.solutions("q") if solution.binding is not None]
        assert values == ["1", "3", "4.50"]


def test_a_body_is_refused_as_a_whole(http: httpx.Client, client: Client, stream: str) -> None:
    answer = post(http, CSV, stream=stream)
    assert (answer.status_code, answer.json()["code"]) == (415, "media-type")
    assert "PUT /streams/{name}" in answer.json()["expected"]
    client.create_stream(stream, mapping=MAPPING)
    answer = post(http, CSV, stream=stream)
    assert (answer.status_code, answer.json()["code"]) == (400, "mapping")
    assert answer.json()["detail"] == "row 2, field temp: 'cold' is no xsd:decimal"
    assert client.stream(stream)["accepted"] == 0
    assert http.get(f"/streams/{segment(stream)}/rejected").text == ""


def test_of_very_many_rows_that_do_not_map_the_feed_has_the_first(http: httpx.Client, client: Client, stream: str) -> None:
    header, good = CSV.splitlines(keepends=True)[:2]
    for on_error in ("skip", "dead_letter"):
        client.create_stream(stream, mapping=MAPPING, on_error=on_error)
        answer = post(http, header + ",,\n" * 1_200 + good, stream=stream).json()
        assert (answer["accepted"], answer["rejected"], answer["first_rejected"]["row"]) == (1, 1_200, 1)
    assert client.stream(stream)["rejected"] == 2_400
    assert len(http.get(f"/streams/{segment(stream)}/rejected?limit=5000").text.splitlines()) == 1_000


def test_rows_are_left_out_and_counted(http: httpx.Client, client: Client, stream: str) -> None:
    """The stream says so, or the request for its body. `reject` is another name of `refuse`."""
    client.create_stream(stream, mapping=MAPPING, on_error="skip")
    answer = post(http, CSV, stream=stream).json()
    assert (answer["accepted"], answer["rejected"]) == (2, 1)
    assert answer["first_rejected"] == {"row": 2, "field": "temp", "reason": "'cold' is no xsd:decimal"}
    assert (client.stream(stream)["rejected"], http.get(f"/streams/{segment(stream)}/rejected").text) == (1, "")
    assert client.create_stream(stream, mapping=MAPPING, on_error="reject")["on_error"] == "refuse"
    assert post(http, CSV, stream=stream).status_code == 400
    path = f"/streams/{segment(stream)}/events"
    sent = {"Content-Type": "text/csv"}
    assert http.post(f"{path}?on_error=dead_letter", content=CSV, headers=sent).json()["rejected"] == 1
    assert http.post(f"{path}?on_error=skip", content=CSV, headers=sent).json()["rejected"] == 1
    assert len(http.get(f"/streams/{segment(stream)}/rejected").text.splitlines()) == 1
    assert http.post(f"{path}?on_error=drop", content=CSV, headers=sent).status_code == 400


def test_a_message_is_put_into_the_feed(http: httpx.Client, stream: str) -> None:
    """Its position in its source is stored with it, so it is there once."""
    path = f"/streams/{segment(stream)}/rejected"
    source = {"Epsparql-Source": '{"id": "a", "position": "1"}'}
    letter = {"reason": "it is no JSON", "text": "x" * 5_000, "field": "f"}
    assert http.post(path, json=letter, headers=source).json()["rejected"] == 1
    assert http.post(path, json=letter, headers=source).json()["duplicate"] is True
    (kept,) = [json.loads(line) for line in http.get(path).text.splitlines()]
    assert (kept["row"], kept["field"], kept["reason"], len(kept["text"])) == (1, "f", "it is no JSON", 1_000)
    assert http.get(f"/streams/{segment(stream)}/sources").json()["sources"][0]["position"] == "1"
    for document, detail in (({"text": "x"}, "reason is missing"), ({"why": "x"}, "the member 'why' is not known here")):
        assert detail in http.post(path, json=document).json()["detail"]


def test_settings_are_checked(http: httpx.Client, stream: str) -> None:
    faults = [
        ({"mapping": {"properties": {"a": "a"}}}, "invalid-mapping", "mapping.properties.a.iri"),
        ({"mapping": 5}, "invalid-mapping", "no object"),
        ({"mapping": MAPPING | {"properties": {"$.a[*].b": ":b"}}}, "invalid-mapping", "leads to no element around the rows"),
        ({"on_error": "drop"}, "invalid-member", "on_error"),
        ({"base": "x"}, "invalid-mapping", "base"),
    ]
    for document, code, detail in faults:
        answer = http.put(f"/streams/{segment(stream)}", json=document)
        assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text
        assert detail in answer.json()["detail"]


def test_cloud_events(http: httpx.Client, client: Client, stream: str) -> None:
    client.create_stream(stream, mapping={name: word for name, word in MAPPING.items() if name != "time"})
    data = {"sensor": "a", "temp": 1}
    event = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t", "time": "2026-01-01T00:00:00Z", "data": data}
    first = post(http, json.dumps(event), "application/cloudevents+json", stream).json()
    assert post(http, json.dumps(event), "application/cloudevents+json", stream).json() == first
    binary = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/x", "ce_type": "t", "ce_time": "2026-01-01T00:00:00Z"}
    assert post(http, json.dumps(data), "application/json", stream, **binary).json() == first
    assert (
        post(http, json.dumps(data), "application/json", stream, **binary | {"ce_id": "2", "ce_time": "2026-01-01T00:00:05Z"}).json()["accepted"] == 1
    )
    assert client.stream(stream)["latest"] == "2026-01-01T00:00:05Z"
    assert post(http, json.dumps([event, event]), "application/cloudevents-batch+json", stream).json()["late"] == 2
    assert post(http, "{}", "application/json", stream, ce_specversion="1.0").json()["code"] == "cloud-event"


def test_frames_and_short_terms(url: str, client: Client, stream: str) -> None:
    client.create_stream(stream, base=EX, mapping=MAPPING, on_error="dead_letter")
    with dial(url, f"/streams/{segment(stream)}/feed") as feed:
        answers = []
        for frame in (
            f'{{"format":"csv"}}\n{CSV}',
            '{"s":":a","p":":temp","o":4.5,"at":"2026-01-01T00:00:05Z"}',
            '{"s":":a","p":":temp","o":"cold"}',
        ):
            feed.send(frame)
            answers.append(json.loads(feed.recv(60)))
    assert [answers[0]["accepted"], answers[0]["rejected"], answers[1]["accepted"], answers[2]["error"]["code"]] == [2, 1, 1, "term"]


def test_a_mapping_is_proposed_for_a_body(tmp_path: Path) -> None:
    """It is what `epsparql map` proposes, relative to the stream's base; nothing is set, and what is no table is
    refused.
    """
    with serving(tmp_path) as url, httpx.Client(base_url=url) as http:

        def propose(body: str, media_type: str = "text/csv", query: str = "") -> httpx.Response:
            return http.post(f"/streams/s/mapping{query}", content=body.encode(), headers={"Content-Type": media_type})

        found = propose(CSV, query="?base=http://a.example/").json()
        assert (found["mapping"]["time"], found["mapping"]["base"]) == ("ts", "http://a.example/")
        assert found["mapping"]["subject"] == "sensor/{sensor}"
        assert "the subject is made of 'sensor'" in found["comments"]
        assert http.get("/streams/s").status_code == 404
        Client(url).create_stream("s", base=EX)
        assert propose('[{"ts":"2026-01-01T00:00:00Z","sensor":"a","temp":1}]', "application/json").json()["mapping"]["base"] == EX
        for refused, status in ((propose("{}", "text/turtle"), 415), (propose(""), 400), (propose(CSV, query="?base=x"), 200)):
            assert refused.status_code == status, refused.text
        dates = "Date,sensor,temp\n04/01/2026 10:00,a,1.5\n"
        ambiguous = propose(dates)
        assert (ambiguous.status_code, ambiguous.json()["code"]) == (422, "ambiguous-date")
        assert ambiguous.json()["expected"] == "the query parameter order, day-first or month-first"
        assert ambiguous.json()["readings"] == {"day-first": "2026-01-04", "month-first": "2026-04-01"}
        ordered = propose(dates, query="?order=day-first&time_zone=%2B01:00").json()
        assert ordered["preview"] == [['<sensor/a> :temp "1.5"^^xsd:decimal .  # 2026-01-04T09:00:00Z']]
        assert [choice["setting"] for choice in ordered["choices"]] == ["order", "time_zone", "subject"]
        chosen = propose(CSV, query='?choices={"subject":"a blank node for each row"}').json()
        assert "subject" not in chosen["mapping"]
        for choices, code in (('{"subject":5}', "invalid-parameter"), ("[", "invalid-parameter"), ('{"subject":"temp"}', "choice")):
            assert propose(CSV, query=f"?choices={choices}").json()["code"] == code
        assert http.put("/streams/s", json={"mapping": found["mapping"]}).status_code == 200
        assert post(http, CSV.replace("cold", "2")).json()["accepted"] == 3

"""Streams over HTTP: settings, bodies in every format, faults that leave nothing behind, late events."""

import json
from datetime import UTC, datetime

import httpx
import pytest

from epsparql.client import Client, segment
from tests.server.conftest import EX, event, moment, values

NDJSON = {"Content-Type": "application/x-ndjson"}


def post(
    http: httpx.Client, stream: str, body: str | bytes, media_type: str = NDJSON["Content-Type"], query: str = "", **headers: str
) -> httpx.Response:
    return http.post(f"/streams/{segment(stream)}/events{query}", content=body, headers={"Content-Type": media_type, **headers})


def accepted(http: httpx.Client, stream: str) -> int:
    """Return how many events the stream has accepted; 0 if it does not exist."""
    answer = http.get(f"/streams/{segment(stream)}")
    return int(answer.json()["accepted"]) if answer.status_code == 200 else 0


def assert_problem(answer: httpx.Response, status: int, code: str | None = None) -> dict[str, object]:
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, object] = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status), problem
    assert code is None or problem["code"] == code
    assert problem["type"] == f"urn:epsparql:problem:{problem['code']}"
    assert problem["title"]
    assert problem["detail"]
    assert "Traceback" not in answer.text
    return problem


class TestSettings:
    def test_created_then_changed_then_the_same(self, http: httpx.Client, stream: str) -> None:
        path = f"/streams/{segment(stream)}"
        first = http.put(path, json={"max_delay": "PT10S", "description": "d"})
        assert first.status_code == 201
        assert first.json() == {
            "name": stream, "description": "d", "max_delay": "PT10S", "revisable": None, "idle_timeout": None, "max_ahead": "PT86400S", "sources": [], "prefixes": {}, "instants": False, "local": False,
            "base": "", "mapping": None, "on_error": "refuse", "key": "", "parts": [], "round": "", "warning": None,
            "latest": None, "watermark": None, "finished": False, "accepted": 0, "late": 0, "rejected": 0, "waiting": 0, "waits_for": [],
        }  # fmt: skip
        second = http.put(path, json={"max_delay": 0.5, "idle_timeout": "PT1M", "max_ahead": 60})
        assert second.status_code == 200
        assert {key: second.json()[key] for key in ("max_delay", "idle_timeout", "max_ahead")} == {
            "max_delay": "PT0.5S", "idle_timeout": "PT60S", "max_ahead": "PT60S",
        }  # fmt: skip
        assert http.get(path).json() == second.json()
        assert second.json() in http.get("/streams").json()["streams"]

    def test_fine_times_are_refused_or_rounded(self, http: httpx.Client, stream: str) -> None:
        path, fine = f"/streams/{segment(stream)}", "2026-01-01T00:00:01.1234567Z"
        body = {"s": "<http://e/s>", "p": "<http://e/p>", "o": "<http://e/o>", "at": fine}

        def send(**query: str) -> httpx.Response:
            return http.post(f"{path}/events", params=query, json=body, headers={"Content-Type": "application/x-ndjson"})

        refused = send()
        assert (refused.status_code, refused.json()["code"]) == (400, "time")
        assert "?round=microsecond" in refused.json()["detail"]
        assert send(round="second").status_code == 400
        assert send(round="microsecond").status_code == 202
        assert http.put(path, json={"round": "second"}).json()["code"] == "invalid-member"
        assert http.put(path, json={"round": "microsecond"}).json()["round"] == "microsecond"
        assert send().status_code == 202
        assert http.get(path).json()["latest"] == "2026-01-01T00:00:01.123457Z"

    def test_an_empty_body_takes_the_defaults(self, http: httpx.Client, stream: str) -> None:
        assert http.put(f"/streams/{segment(stream)}").json()["max_delay"] == "PT0S"

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            pytest.param('{"max_delay": "P1H"}', "invalid-duration", id="no duration"),
            pytest.param('{"max_delay": "P1M"}', "invalid-duration", id="months"),
            pytest.param('{"max_delay": -1}', "invalid-duration", id="negative"),
            pytest.param('{"max_delay": true}', "invalid-duration", id="boolean"),
            pytest.param('{"maxdelay": 1}', "unknown-member", id="unknown member"),
            pytest.param('{"description": 1}', "invalid-member", id="no string"),
            pytest.param(r'{"description": "half \ud800"}', "invalid-member", id="half of a surrogate pair"),
            pytest.param("[]", "malformed-json", id="no object"),
            pytest.param("[" * 9_000, "too-deep", id="nested too deeply"),
            pytest.param('{"max_delay": ' + "1" * 5_000 + "}", "malformed-json", id="too many digits"),
            pytest.param(b"\xff", "bad-encoding", id="no UTF-8"),
        ],
    )
    def test_faults(self, http: httpx.Client, stream: str, body: str, code: str) -> None:
        assert_problem(http.put(f"/streams/{segment(stream)}", content=body), 400, code)
        assert_problem(http.get(f"/streams/{segment(stream)}"), 404, "unknown-stream")

    def test_malformed_json_has_a_place(self, http: httpx.Client, stream: str) -> None:
        problem = assert_problem(http.put(f"/streams/{segment(stream)}", content='{\n "max_delay" 1}'), 400, "malformed-json")
        assert (problem["line"], problem["column"]) == (2, 14)

    def test_finished_and_deleted(self, http: httpx.Client, stream: str) -> None:
        path = f"/streams/{segment(stream)}"
        post(http, stream, event(1))
        for _ in range(2):
            assert http.post(f"{path}/finish").json()["finished"] is True
        assert_problem(post(http, stream, event(2)), 409, "stream-finished")
        assert http.delete(path).status_code == 204
        assert_problem(http.get(path), 404)
        assert_problem(http.delete(path), 404)
        assert_problem(http.post(f"{path}/finish"), 404)
        assert post(http, stream, event(2)).status_code == 202

    def test_a_stream_in_use_is_not_deleted(self, http: httpx.Client, client: Client, name: str, stream: str) -> None:
        path, derived = f"/streams/{segment(stream)}", f"{stream}/derived"
        rule = f"PREFIX : <{EX}> CONSTRUCT {{ ?s :value ?v }} INTO STREAM <{derived}> FROM STREAM <{stream}> WHERE {{ ?s :raw ?v }}"
        for text, used in ((values(stream), [stream]), (rule, [stream, derived])):
            client.create_stream(derived)
            client.register(name, text)
            post(http, stream, event(1))
            for each in used:
                problem = assert_problem(http.delete(f"/streams/{segment(each)}"), 409, "stream-in-use")
                assert problem["query"] == name
                assert "drop" in str(problem["detail"])
            assert accepted(http, stream) == 1
            client.drop(name)
            assert http.delete(path).status_code == 204

    def test_a_stream_that_a_query_reads_or_writes_is_there(self, http: httpx.Client, client: Client, name: str, stream: str) -> None:
        derived = f"{stream}/derived"
        assert_problem(http.post(f"/streams/{segment(stream)}/finish"), 404, "unknown-stream")
        client.register(name, f"PREFIX : <{EX}> CONSTRUCT {{ ?s :value ?v }} INTO STREAM <{derived}> FROM STREAM <{stream}> WHERE {{ ?s :value ?v }}")
        listed = {each["name"]: each for each in http.get("/streams").json()["streams"]}
        for each in (stream, derived):
            found = client.stream(each)
            assert (found, found["accepted"], found["latest"]) == (listed[each], 0, None)
            assert_problem(http.delete(f"/streams/{segment(each)}"), 409, "stream-in-use")
        assert client.finish(stream)["finished"] is True
        assert_problem(post(http, stream, event(1)), 409, "stream-finished")
        client.drop(name)
        assert client.stream(stream)["finished"] is True, "that is in the log"
        assert_problem(http.get(f"/streams/{segment(derived)}"), 404, "unknown-stream")

    def test_a_name_that_is_none(self, http: httpx.Client) -> None:
        assert_problem(http.get("/streams/%FF"), 400, "bad-name")
        assert_problem(http.get("/streams/%0A"), 400, "bad-name")

    def test_the_nearest_name_is_told(self, http: httpx.Client) -> None:
        http.put("/streams/thermometers")  # like no other test's stream
        problem = assert_problem(http.get("/streams/thermometres"), 404)
        assert problem["expected"] == "thermometers"


FORMATS = [
    pytest.param(NDJSON["Content-Type"], f"{event(1)}\n{event(2)}\n", "", 2, id="ndjson"),
    pytest.param(NDJSON["Content-Type"], json.dumps({"triples": f"<{EX}s> <{EX}p> 1, 2, 3 .", "at": moment(1)}), "", 3, id="ndjson of a message"),
    pytest.param("application/n-triples", f"<{EX}s> <{EX}p> <{EX}o> .\n", f"?at={moment(1)}", 1, id="n-triples"),
    pytest.param("text/turtle; charset=utf-8", f"<{EX}s> <{EX}p> 1, 2 .", f"?start={moment(1)}&end={moment(2)}", 2, id="turtle"),
    pytest.param("text/turtle", f"<{EX}s> <{EX}p> 1 .", "", 1, id="turtle at the time of arrival"),
    pytest.param(
        "application/trig",
        f'<{EX}g> <http://www.w3.org/ns/prov#generatedAtTime> "{moment(1)}"^^<http://www.w3.org/2001/XMLSchema#dateTime> . <{EX}g> {{ <{EX}s> <{EX}p> 1 }}',
        "",
        1,
        id="trig",
    ),
    pytest.param(
        "application/n-quads",
        f'<{EX}g> <http://www.w3.org/ns/prov#generatedAtTime> "{moment(1)}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n<{EX}s> <{EX}p> "1" <{EX}g> .\n',
        "",
        1,
        id="n-quads",
    ),
]


@pytest.mark.parametrize(("media_type", "body", "query", "rows"), FORMATS)
def test_formats(http: httpx.Client, stream: str, media_type: str, body: str, query: str, rows: int) -> None:
    answer = post(http, stream, body, media_type, query)
    assert answer.status_code == 202, answer.text
    assert answer.json()["accepted"] == rows
    assert accepted(http, stream) == rows


FAULTS = [
    pytest.param('{"s": <a>}', NDJSON["Content-Type"], "", 400, (1, 7), id="malformed JSON"),
    pytest.param("\n".join([event(1), event(2), event(3).replace(f"<{EX}s>", "s"), event(4), event(5)]), NDJSON["Content-Type"], "", 400, (3, 6), id="bad term in line 3 of 5"),
    pytest.param(event(1) + "\n" + event(2).replace('"at":', '"start":"2027-01-01T00:00:00Z","end":'), NDJSON["Content-Type"], "", 400, (2, None), id="start after end"),
    pytest.param("<a> <b>\n 1 2 .", "text/turtle", "", 400, (None, None), id="turtle"),
    pytest.param(f"<{EX}s> <{EX}p> 1 .", "text/turtle", "?at=yesterday", 400, None, id="no time"),
    pytest.param(f"<{EX}s> <{EX}p> 1 .", "text/turtle", f"?start={moment(2)}&end={moment(1)}", 400, None, id="parameter start after end"),
    pytest.param(f"<{EX}s> <{EX}p> 1 .", "text/turtle", f"?start={moment(2)}", 400, None, id="start alone"),
    pytest.param("x", "text/plain", "", 415, None, id="unknown media type"),
    pytest.param("x", "", "", 415, None, id="no media type"),
    pytest.param("x" * 100_001, NDJSON["Content-Type"], "", 413, None, id="too large"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "media_type", "query", "status", "place"), FAULTS)
def test_faults(
    http: httpx.Client, stream: str, body: str, media_type: str, query: str, status: int, place: tuple[int | None, int | None] | None
) -> None:
    problem = assert_problem(post(http, stream, body, media_type, query), status)
    if place is not None:
        assert isinstance(problem["line"], int)
        assert isinstance(problem["column"], int)
        assert place[0] in (None, problem["line"])
        assert place[1] in (None, problem["column"])
    assert accepted(http, stream) == 0
    assert post(http, stream, event(1)).status_code == 202, "the server goes on"


def test_a_body_without_length_is_limited_too(http: httpx.Client, stream: str) -> None:
    parts = iter([b"x" * 60_000, b"x" * 60_000])
    answer = http.post(f"/streams/{segment(stream)}/events", content=parts, headers=NDJSON)
    assert_problem(answer, 413, "too-large")


def test_an_encoded_body_is_refused(http: httpx.Client, stream: str) -> None:
    assert_problem(post(http, stream, event(1), **{"Content-Encoding": "gzip"}), 415, "content-encoding")


def test_too_far_ahead(http: httpx.Client, stream: str) -> None:
    http.put(f"/streams/{segment(stream)}", json={"max_ahead": "PT1H"})
    assert_problem(post(http, stream, event(1).replace("2026", "2926")), 422, "too-far-ahead")
    assert accepted(http, stream) == 0


def test_an_idempotency_key_is_honoured(http: httpx.Client, stream: str) -> None:
    untimed = f'{{"s":"<{EX}s>","p":"<{EX}value>","o":"\\"1\\""}}'
    first = post(http, stream, untimed, **{"Idempotency-Key": "k1"})
    again = post(http, stream, untimed, **{"Idempotency-Key": "k1"})
    assert first.json() == again.json()
    assert accepted(http, stream) == 1
    assert post(http, stream, untimed, **{"Idempotency-Key": "k2"}).json()["offset"] > first.json()["offset"]


def test_rdf_xml_is_taken_and_timed_by_what_it_says(http: httpx.Client, stream: str) -> None:
    sent = {"Content-Type": "application/rdf+xml"}
    body = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="{EX}" xmlns:prov="http://www.w3.org/ns/prov#">
        <rdf:Description rdf:about="{EX}s" e:value="1"><prov:generatedAtTime rdf:datatype="http://www.w3.org/2001/XMLSchema#dateTime">{moment(9)}
        </prov:generatedAtTime></rdf:Description></rdf:RDF>""".replace("\n        </prov", "</prov")
    assert post(http, stream, body, **sent).json().keys() == {"accepted", "offset", "late"}
    assert http.get(f"/streams/{segment(stream)}").json()["latest"] == moment(9)
    assert_problem(post(http, stream, body.replace("<rdf:RDF", "<!doctype r><rdf:RDF"), **sent), 400, "rdf")
    assert accepted(http, stream) == 1


def test_a_member_that_looks_like_the_time_is_warned_of(http: httpx.Client, stream: str) -> None:
    body, sent = json.dumps({"@context": {"@vocab": EX}, "@id": f"{EX}s", "value": 1, "at": moment(5)}), {"Content-Type": "application/ld+json"}
    warning = post(http, stream, body, **sent).json()["warning"]
    assert "'at'" in warning
    assert "time of arrival" in warning
    path = f"/streams/{segment(stream)}/events"
    assert "warning" not in http.post(path, params={"at": moment(5)}, content=body, headers=sent).json()
    assert "warning" not in post(http, stream, body.replace('"at"', '"home"').replace(moment(5), "x"), **sent).json()


def test_offsets_grow(http: httpx.Client, stream: str) -> None:
    offsets = [post(http, stream, event(number)).json()["offset"] for number in range(5)]
    assert offsets == sorted(set(offsets))


def test_late_events_are_in_the_late_feed(http: httpx.Client, stream: str) -> None:
    path = f"/streams/{segment(stream)}/late"
    assert_problem(http.get(path), 404)
    post(http, stream, event(10))
    assert http.get(path).text == ""
    answer = post(http, stream, event(3) + "\n" + event(11) + "\n" + event(4))
    assert answer.json()["late"] == 2
    assert answer.json()["accepted"] == 3
    post(http, stream, event(5))
    lines = [json.loads(line) for line in http.get(path).text.splitlines()]
    assert [(line["end"], line["watermark"]) for line in lines] == [
        (moment(3), moment(10)), (moment(4), moment(10)), (moment(5), moment(11)),
    ]  # fmt: skip
    assert set(lines[0]) == {"s", "p", "o", "g", "start", "end", "watermark", "arrived", "offset", "reason"}
    assert lines[0]["g"] is None
    following = http.get(path, params={"after": lines[1]["offset"]})
    assert [json.loads(line)["end"] for line in following.text.splitlines()] == [moment(5)]
    assert len(http.get(path, params={"limit": 1}).text.splitlines()) == 2, "whole bodies only"
    assert_problem(http.get(path, params={"limit": 0}), 400, "invalid-parameter")
    document = http.get(f"/streams/{segment(stream)}").json()
    assert (document["accepted"], document["late"], document["watermark"]) == (5, 3, moment(11))
    assert http.delete(f"/streams/{segment(stream)}").status_code == 204
    post(http, stream, event(7))
    assert http.get(path).text == "", "the stream is another one"
    post(http, stream, event(6))
    assert [json.loads(line)["end"] for line in http.get(path).text.splitlines()] == [moment(6)]


def test_unknown_paths_and_methods(http: httpx.Client) -> None:
    assert "%2F" not in str(assert_problem(http.get("/nothing"), 404)["detail"])
    for path in ("/streams/http://e/a/events", "/queries/http://e/a", "/ontologies/http://e/a"):
        assert "a slash in it is written %2F" in str(assert_problem(http.get(path), 404)["detail"])
    problem = http.patch("/streams")
    assert_problem(problem, 405)
    assert "GET" in problem.headers["allow"]


class TestMessageKey:
    def test_a_message_has_one_key(self, http: httpx.Client, stream: str) -> None:
        wanted = {"key": f"{EX}by", "parts": [f"{EX}result"]}
        shown = http.put(f"/streams/{segment(stream)}", json=wanted).json()
        assert {name: shown[name] for name in wanted} == wanted
        message = "<{0}o> <{0}by> <{0}{1}> ."
        assert post(http, stream, message.format(EX, "a"), "application/n-triples").status_code == 202
        problem = assert_problem(post(http, stream, message.format(EX, "b"), "application/n-triples"), 422, "message-key")
        assert f"<{EX}o> had the key <{EX}a> before" in str(problem["detail"])
        assert accepted(http, stream) == 1

    @pytest.mark.parametrize(
        "body", [{"key": "no IRI"}, {"key": 5}, {"parts": [f"{EX}p"]}, {"key": f"{EX}p", "parts": [f"{EX}p"]}, {"key": f"{EX}p", "parts": ["<x>"]}]
    )
    def test_a_bad_key(self, http: httpx.Client, stream: str, body: dict[str, object]) -> None:
        assert_problem(http.put(f"/streams/{segment(stream)}", json=body), 400, "invalid-member")


NOW_S = 1_795_910_400  # 2026-11-29
SENT = [
    pytest.param(
        {}, "epoch_ms", NOW_S, "seconds that were read as milliseconds, of 2026-11-29: set time_format of the mapping to epoch_s", id="seconds"
    ),
    pytest.param(
        {"max_ahead": 0}, "epoch_s", NOW_S * 1000, "milliseconds that were read as seconds, of 2026-11-29: set time_format", id="milliseconds"
    ),
    pytest.param({"max_ahead": None}, "epoch_s", NOW_S, None, id="the unit of the mapping"),
    pytest.param({"max_ahead": None}, "epoch_s", 60, None, id="simulated time"),
]


@pytest.mark.parametrize(("settings", "unit", "at", "told"), SENT)
def test_times_of_another_unit_are_told(http: httpx.Client, stream: str, settings: dict[str, object], unit: str, at: int, told: str | None) -> None:
    path, body = f"/streams/{segment(stream)}", {"at": at, "v": 1}
    mapping = {"time": "at", "time_format": unit, "base": EX, "subject": "s", "properties": {"v": ":v"}}
    assert http.put(path, json=settings | {"mapping": mapping}).status_code == 201
    answer = http.post(f"{path}/events", json=body).json()
    found = http.get(path).json()["warning"]
    assert answer["accepted"] == 1
    assert found == answer.get("warning")
    assert (found is None) if told is None else (told in found)


def test_a_day_ahead_is_refused_by_default(http: httpx.Client, stream: str) -> None:
    """That holds for a stream that its first event creates, too. A wrong unit is named; `0` turns the limit off."""
    path, year = f"/streams/{segment(stream)}", datetime.now(UTC).year + 2
    ahead = {"s": "<http://example.org/s>", "p": "<http://example.org/p>", "o": "<http://example.org/o>", "at": f"{year}-01-01T00:00:00Z"}
    refused = http.post(f"{path}/events", content=json.dumps(ahead), headers=NDJSON)
    assert (refused.status_code, refused.json()["code"]) == (422, "too-far-ahead")
    assert "raise max_ahead, which 0 turns off" in refused.json()["detail"]
    assert http.post(f"{path}/events", content=event(1), headers=NDJSON).status_code == 202
    assert http.get(path).json()["max_ahead"] == "PT86400S"
    assert (
        http.post(f"{path}/events", content=json.dumps(ahead | {"at": "57840-01-01T00:00:00Z"}), headers=NDJSON)
        .json()["detail"]
        .count("read as seconds")
    )
    assert http.put(path, json={"max_ahead": 0}).json()["max_ahead"] is None
    assert http.post(f"{path}/events", content=json.dumps(ahead), headers=NDJSON).status_code == 202

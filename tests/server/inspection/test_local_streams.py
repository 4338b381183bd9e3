"""Streams whose subjects are local: at every door a subject of another body is refused, and absence is certain at once."""

import json
from collections.abc import Callable

import httpx
import pytest

from epsparql.client import ApiError, Client, segment
from tests.server.conftest import EX, until

NDJSON = {"Content-Type": "application/x-ndjson"}
AT = "2026-11-29T12:00:00Z"
LACKING = "{ ?o :value ?v } OPTIONAL { ?o :unit ?u }"


def reading(subject: str, predicate: str = "value", value: int = 1) -> str:
    return json.dumps({"s": f"<{EX}{subject}>", "p": f"<{EX}{predicate}>", "o": f'"{value}"', "at": AT})


def select(pattern: str, stream: str) -> str:
    return f"PREFIX : <{EX}> SELECT ?v FROM STREAM <{stream}> WHERE {{ {pattern} }}"


@pytest.fixture
def name(stream: str) -> str:
    return f"{EX}local{''.join(filter(str.isdigit, stream.split('?')[0]))}"


@pytest.fixture
def put(http: httpx.Client, name: str) -> Callable[..., httpx.Response]:
    return lambda **settings: http.put(f"/streams/{segment(name)}", json=settings)


def test_no_door_takes_a_subject_of_another_body(http: httpx.Client, url: str, put: Callable[..., httpx.Response], name: str) -> None:
    path = f"/streams/{segment(name)}"
    assert put(local=True).json()["local"] is True
    assert http.get(path).json()["local"] is True
    assert put(local="yes").json()["code"] == "invalid-member"
    first = reading("o") + "\n" + reading("o", "unit")
    assert http.post(f"{path}/events", content=first, headers=NDJSON).status_code == 202
    bodies = [(reading("o", "unit", 2), NDJSON, ""), (f"<{EX}o> <{EX}unit> 3 . <{EX}p> <{EX}unit> 3 .", {"Content-Type": "text/turtle"}, f"?at={AT}")]
    for body, headers, query in bodies:
        answer = http.post(f"{path}/events{query}", content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "subject-returned"), answer.text
        assert f"described <{EX}o>" in answer.json()["detail"]
    with Client(url).feed(name) as feed:
        feed.send(reading("o", "unit", 4))
        with pytest.raises(ApiError, match="are local"):
            feed.flush()
    assert http.get(path).json()["accepted"] == 2
    assert http.post(f"{path}/events", content=first, headers=NDJSON).status_code == 202, "it is sent again"
    assert http.post(f"{path}/events", content=reading("p"), headers=NDJSON).status_code == 202


def test_absence_is_certain_with_the_body(http: httpx.Client, put: Callable[..., httpx.Response], name: str) -> None:
    """The query before the setting waits for its instant, and the one after it does not; the setting stays for it."""

    def register(query: str, **parameters: str) -> str:
        headers = {"Content-Type": "application/sparql-query"}
        http.put(f"/queries/{segment(query)}", params=parameters, content=select(LACKING, name), headers=headers).raise_for_status()
        return query

    early = register(f"early of {name}")
    put(local=True)
    late = register(f"late of {name}")
    http.post(f"/streams/{segment(name)}/events", content=reading("o"), headers=NDJSON).raise_for_status()

    def count(query: str) -> int:
        return int(http.get(f"/queries/{segment(query)}").json()["solutions"])

    until(lambda: count(late) == 1, "the solution of the only body")
    past = register(f"past of {name}", **{"from": "beginning"})
    assert count(early) == 0
    refused = put(max_delay="PT1S")
    assert (refused.status_code, refused.json()["code"], refused.json()["query"]) == (409, "stream-in-use", late)
    assert "has local subjects" in refused.json()["detail"]
    assert put(local=True, description="kept").status_code == 200
    for query in (early, late, past):
        http.delete(f"/queries/{segment(query)}").raise_for_status()
    assert put().json()["local"] is False

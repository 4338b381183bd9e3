"""Query parameters that a route does not declare are refused, by every route."""

from typing import Any

import httpx
import pytest

from epsparql.client import Client, segment
from server.app import create_app, document
from server.cli.openapi_doc import _never
from server.http.query_parameters import OPEN
from server.routes.websockets import NOT_ALLOWED
from server.subscriptions.subscriber import BAD_REQUEST
from tests.server.conftest import values
from tests.server.routes.test_streams import assert_problem
from tests.server.subscriptions.test_websockets import closing, dial

OPERATIONS = [(method.upper(), path) for path, methods in document(create_app(_never))["paths"].items() for method in methods if path not in OPEN]


@pytest.mark.parametrize(
    ("method", "path"), [*OPERATIONS, ("GET", "/"), ("GET", "/console/x.js"), ("GET", "/openapi.json"), ("GET", "/queries/q/feed")]
)
def test_every_route_refuses_what_it_does_not_declare(http: httpx.Client, method: str, path: str) -> None:
    answer = http.request(method, path.replace("{", "").replace("}", ""), params={"nonsense": "1"})
    assert_problem(answer, 400, "unknown-parameter")
    assert "'nonsense'" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "nearest"),
    [
        ("GET", "/queries/q/solutions?formt=csv", "the nearest one is"),
        ("GET", "/queries/q/solutions?frm=", "from"),
        ("GET", "/queries/q/solutions?limt=1", "limit"),
        ("PUT", "/queries/q?replac=true", "replace"),
        ("GET", "/sparql?querry=ASK%7B%7D", "query"),
        ("GET", "/streams/s/late?aftr=1", "after"),
    ],
)
def test_the_nearest_name_is_told(http: httpx.Client, method: str, path: str, nearest: str) -> None:
    answer = http.request(method, path)
    assert_problem(answer, 400, "unknown-parameter")
    assert nearest in answer.json()["detail"]


def test_a_route_of_a_query_s_variables_refuses_other_names(client: Client, http: httpx.Client, name: str, stream: str) -> None:
    client.register(name, values(stream))
    answer = http.get(f"/queries/{segment(name)}/goals", params={"nonsense": "1"})
    assert_problem(answer, 400, "unknown-parameter")
    assert "'nonsense'" in answer.json()["detail"]


def test_a_form_is_no_other(http: httpx.Client) -> None:
    assert_problem(http.post("/sparql", data={"query": "ASK {}", "defualt-graph-uri": "http://e/g"}), 400, "unknown-parameter")
    assert http.post("/sparql", data={"query": "ASK {}", "default-graph-uri": "http://e/g"}).status_code == 200


def fixed(http: httpx.Client) -> dict[str, Any]:
    """Return what the document says of the query, without what the runner reports of it meanwhile."""
    return {name: value for name, value in http.get("/queries/kept").json().items() if name not in ("lag", "memory")}


def test_nothing_is_done(client: Client, http: httpx.Client, name: str, stream: str) -> None:
    client.register("kept", values(stream))
    before = fixed(http)
    assert (
        http.put(
            "/queries/kept", params={"replac": "true"}, content=values("other"), headers={"Content-Type": "application/sparql-query"}
        ).status_code
        == 400
    )
    assert fixed(http) == before


@pytest.mark.parametrize("path", ["/queries/followed/feed?aftr=x", "/streams/fed/feed?at=now"])
def test_websockets_refuse_likewise(client: Client, url: str, path: str) -> None:
    client.register("followed", values("followed"))
    with dial(url, path) as connection:
        code, reason = closing(connection)
    assert code == BAD_REQUEST != NOT_ALLOWED
    assert "there is no query parameter" in reason

"""The requests of docs/history.md, against a running server: each is answered as the page says."""

import re
from pathlib import Path

import httpx

from epsparql.client import Client
from tests.server.conftest import serving, until

PAGE = Path(__file__).parents[3] / "docs" / "history.md"
REQUEST = re.compile(r"^```http\n(\w+) (\S+)\n(.*?)(\d{3})\n```$", re.MULTILINE | re.DOTALL)
TYPES = {"events": "application/x-ndjson", "queries": "application/sparql-query"}


def test_the_requests(tmp_path: Path) -> None:
    requests = REQUEST.findall(PAGE.read_text(encoding="utf-8"))
    assert len(requests) == 5
    with serving(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as http:
        client = Client(url)
        for method, path, body, status in requests:
            if "{last}" in path:
                client.finish("default")
                until(lambda: client.query("hot")["last"] is not None, "the query has a solution")
                path = path.replace("{last}", client.query("hot")["last"])
            kind = TYPES["events" if "events" in path else "queries"]
            answer = http.request(method, path, content=body, headers={"Content-Type": kind} if body else {})
            assert answer.status_code == int(status), (path, answer.text)
        (step,) = answer.json()["because"]
        assert (step["kind"], step["triple"]) == (
            "occurrence",
            '<http://e/boiler> <http://e/degrees> "95"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        )

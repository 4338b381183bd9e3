"""The console's files, as the server hands them out."""

import csv
import re
from pathlib import Path

import httpx
import pytest

from server.cli.demo_data import find
from server.http.documentation import SOURCES
from server.routes.console import DIST
from tests.server.conftest import serving
from tests.server.operations.test_security import digest
from tests.server.routes.test_streams import assert_problem

LINKED = re.compile(r'(?:src|href)="\./(console/[^"]+)"')


def test_the_page_is_whole(http: httpx.Client) -> None:
    page = http.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    files = LINKED.findall(page.text)
    assert {Path(file).suffix for file in files} == {".js", ".css", ".svg"}
    for file in files:
        assert http.get(f"/{file}").status_code == 200


def test_nothing_but_its_own_origin(http: httpx.Client) -> None:
    policy = http.get("/").headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("file", sorted(path.name for path in (DIST / "console").iterdir()))
def test_every_file_is_served_and_may_be_kept(http: httpx.Client, file: str) -> None:
    answer = http.get(f"/console/{file}")
    assert answer.content == (DIST / "console" / file).read_bytes()
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_is_asked_for_anew(http: httpx.Client) -> None:
    """Its name holds no hash, so a browser asks whether it changed."""
    page = http.get("/")
    assert page.headers["cache-control"] == "no-cache"
    assert http.get("/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
    assert http.get("/", headers={"If-None-Match": '"old"'}).status_code == 200


@pytest.mark.parametrize("file", ["nothing.js", "..%2Findex.html", "%2e%2e", "..%2f..%2fconsole.py", "%2Fetc%2Fpasswd", "index.html%00.js", ".js"])
def test_nothing_else_is(http: httpx.Client, file: str) -> None:
    assert_problem(http.get(f"/console/{file}"), 404)


def test_it_asks_for_no_token_since_it_holds_no_data(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{digest('root')} admin\n")
    with serving(tmp_path / "data", token_file=tokens) as url:
        assert httpx.get(f"{url}/").status_code == 200
        assert_problem(httpx.post(f"{url}/check", json={"query": "ASK {}"}), 401)
        assert httpx.post(f"{url}/check", json={"query": "ASK {}"}, headers={"Authorization": "Bearer root"}).status_code == 200


@pytest.mark.parametrize(("name", "rows"), [("winter", 1224), ("summer", 1008)])
def test_the_examples_data_are_the_published_ones(name: str, rows: int) -> None:
    with find().open(newline="", encoding="utf-8") as file:
        published = {(row["time_hour"], row["origin"]): row for row in csv.DictReader(file)}
    (path,) = (DIST / "console").glob(f"{name}-*.csv")
    with path.open(newline="", encoding="utf-8") as file:
        shown = list(csv.DictReader(file))
    assert len(shown) == rows
    for row in shown:
        source = published[row["at"], row["station"]]
        assert all(row[quantity] == source[quantity].replace("NA", "") for quantity in ("temp", "humid", "wind_speed", "visib"))


def test_a_server_without_the_site_says_so(http: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("server.http.documentation.DIST", tmp_path)
    monkeypatch.setattr("server.http.documentation.SOURCES", tmp_path)
    answer = http.get("/docs/")
    assert answer.status_code == 404
    assert "make docs" in answer.json()["detail"]


def test_a_checkout_without_the_site_shows_the_sources(http: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("server.http.documentation.DIST", tmp_path)
    page = http.get("/docs", follow_redirects=True)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "make docs" in page.text
    links = re.findall(r'href="([^"]+)"', page.text)
    assert {"operations/recovery.md", "concepts/background.md"} <= {*links}
    for name in ("operations/recovery.md", "operations/recovery/", "operations/recovery"):
        answer = http.get(f"/docs/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert answer.text == (SOURCES / "operations" / "recovery.md").read_text(encoding="utf-8")
    for name in ("zensical.toml", "../README.md", "..%2FREADME.md", "nothing"):
        assert http.get(f"/docs/{name}").status_code == 404

"""Retention and the past: what is behind keeps what it needs, and what is gone is told."""

from pathlib import Path

import httpx

from epsparql.client import Client
from pipeline.log.segments import segments
from tests.server.conftest import EX, event, serving, until, values
from tests.server.routes.test_pause_resume import joined, refused, send


def test_what_retention_has_removed_is_told(tmp_path: Path) -> None:
    stream = f"{EX}stream"
    with serving(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as http:
        client = Client(url)
        client.register("q", values(stream))
        send(client, stream, range(1, 6))
        until(lambda: client.query("q")["solutions"] == 5, "all is applied")
        first = client.solutions("q")[0].id
        (only,) = segments(tmp_path / "log")
        path = tmp_path / "log" / f"{only:020d}.frames"
        path.rename(path.with_name(f"{3:020d}.frames"))  # as a log whose first segment has gone begins with another
        try:
            assert refused(lambda: client.register("past", values(stream), start="beginning")) == (409, "offset-gone")
            answer = http.get(f"/queries/q/solutions/{first}/why")
            assert (answer.status_code, answer.json()["code"]) == (410, "log-gone")
        finally:
            path.with_name(f"{3:020d}.frames").rename(path)
        client.register("past", values(stream), start="beginning")
        until(lambda: joined(client, "past"), "it has caught up")
        client.send(stream, event(9))

"""A server whose logs have been cut: what is gone is told as such, the rest is served, and it goes on."""

from pathlib import Path

import httpx
import pytest

from epsparql.client import Client, Closed
from pipeline.log.segments import oldest
from server.cli.commands import parser
from server.settings import Settings, SettingsError, settings_from
from tests.pipeline.log.test_retention import emitted, fill, retention
from tests.server.conftest import serving, until
from tests.support import spark_cases as cases


def test_what_is_gone_is_410(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data, range(150), begin=True)
    every = emitted(data)
    with retention(data) as (swept, _):
        swept.sweep(cases.START)
    kept = emitted(data)
    with serving(data) as url, httpx.Client(base_url=url) as http:
        for path, after in (("queries/pairs/solutions", every[0].id), ("queries/pairs/events", every[0].id), ("streams/default/late", 1)):
            answer = http.get(f"/{path}", params={"after": after})
            assert (answer.status_code, answer.json()["code"]) == (410, "log-gone"), answer.text
        assert every[-len(kept) - 1].id in http.get("/queries/pairs/solutions", params={"after": every[0].id}).json()["detail"]
        assert str(oldest(data / "log")) in http.get("/streams/default/late", params={"after": 1}).json()["detail"]
        assert http.get("/streams/default/late").status_code == 200
        found = http.get("/queries/pairs/solutions", params={"limit": 10_000}, headers={"Accept": "application/x-ndjson"}).text.splitlines()
        assert len(found) == len(kept)
        assert http.get("/queries/pairs").json()["solutions"] == len(every)
        with pytest.raises(Closed, match="no longer kept"), Client(url).follow("pairs", after=every[0].id) as subscription:
            subscription.next(10)


def test_what_a_paused_query_has_still_to_read_stays(tmp_path: Path) -> None:
    data = tmp_path / "data"
    fill(data, range(10), begin=True)
    with serving(data) as url, httpx.Client(base_url=url) as http:
        other = {"query": cases.PAIRS, "from": "beginning"}
        assert http.put("/queries/other", json=other).status_code == 201
        until(lambda: http.get("/queries/other").json()["solutions"] == http.get("/queries/pairs").json()["solutions"], "the past is read")
        assert http.post("/queries/pairs/pause").status_code == 200
    fill(data, range(10, 150))
    with serving(data, retain_bytes=1, retain_every_s=0.01) as url, httpx.Client(base_url=url) as http:
        until(lambda: oldest(data / "solutions") > 0, "the logs are cut")
        assert http.post("/queries/pairs/resume").status_code == 200
        until(lambda: http.get("/queries/pairs").json()["solutions"] == http.get("/queries/other").json()["solutions"], "all is read")
        until(lambda: oldest(data / "log") > 0, "the log is cut")


@pytest.mark.parametrize(
    ("flag", "value", "read"),
    [
        ("retain_age", "90s", 90.0),
        ("retain_age", "1.5h", 5400.0),
        ("retain_age", "30d", 2_592_000.0),
        ("retain_bytes", "500k", 500_000),
        ("retain_bytes", "7", 7),
    ],
)
def test_limits_are_read(flag: str, value: str, read: float) -> None:
    flags = parser().parse_args(["serve", f"--{flag.replace('_', '-')}", value])
    assert getattr(settings_from(vars(flags), {}), flag) == read
    assert getattr(settings_from({}, {f"EPSPARQL_{flag.upper()}": value}), flag) == read
    assert getattr(Settings(), flag) is None


@pytest.mark.parametrize(("flag", "value"), [("retain_age", "90"), ("retain_age", "-1s"), ("retain_bytes", "1.5G"), ("retain_bytes", "many")])
def test_other_limits_are_refused(flag: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"EPSPARQL_{flag.upper()}='{value}'"):
        settings_from({}, {f"EPSPARQL_{flag.upper()}": value})

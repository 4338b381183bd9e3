"""Trials through a real server: what a query would have found is the difference of two replays, and what is asked for
wrongly is told.
"""

import hashlib
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from epsparql.client import Client, segment
from pipeline.formats.batches.timestamps import iso
from pipeline.log import LogWriter
from pipeline.log.segments import oldest
from pipeline.trials.plan import snapshots_of
from server.cli.commands import main
from tests.pipeline.log.test_retention import fill, retention
from tests.server.conftest import EX, event, moment, serving, until, values
from tests.server.routes.test_pause_resume import joined
from tests.soak import is_full
from tests.support import spark_cases as cases

pytestmark = pytest.mark.slow

PREFIX = f"PREFIX : <{EX}>"
Found = Counter[tuple[str, str, str]]


def readings(stream: str, more: str, variables: str = "?s ?a ?b") -> str:
    return f"{PREFIX} SELECT {variables} FROM STREAM <{stream}> WHERE {{ {{ {{ ?s :value ?a }} SEQ {{ ?s :value ?b }} }} WITHIN 'PT5S' {more} }}"


def rule(stream: str, derived: str, least: int) -> str:
    return (
        f"{PREFIX} CONSTRUCT {{ ?s :high ?v }} INTO STREAM <{derived}> FROM STREAM <{stream}> "
        f"WHERE {{ ?s :value ?v {{ ?s a :Sensor }} FILTER(?v >= {least}) }}"
    )


def highs(derived: str) -> str:
    return f"{PREFIX} SELECT ?s ?v ?w FROM STREAM <{derived}> WHERE {{ {{ {{ ?s :high ?v }} SEQ {{ ?s :high ?w }} }} WITHIN 'PT4S' }}"


def feed(client: Client, stream: str, random: Random, seconds: range) -> int:
    """Send a few events for each second, some of them late or within the delay, and return the offset after them."""
    offset = 0
    for second in seconds:
        lines = [
            f'{{"s":"<{EX}s{random.randrange(3)}>","p":"<{EX}value>","o":"{random.randrange(9)}","at":"{moment(max(second - random.randrange(6), 0))}"}}'
            for _ in range(random.randrange(1, 4))
        ]
        offset = client.send(stream, "\n".join(lines).replace('"o":"', '"o":"\\"').replace('","at"', f'\\"^^<{XSD}integer>","at"')).offset
    return offset


BACKGROUND = f"/ontologies/{segment(EX)}"
XSD = "http://www.w3.org/2001/XMLSchema#"


def tried(http: httpx.Client, **wish: Any) -> dict[str, Any]:
    """Start a trial and return its document once it has ended."""
    answer = http.post("/trials", json={name.rstrip("_"): value for name, value in wish.items()})
    assert answer.status_code == 201, answer.text
    path = answer.headers["Location"]
    until(lambda: http.get(path).json()["state"] not in ("waiting", "running"), "the trial has ended")
    document: dict[str, Any] = http.get(path).json()
    return document


def solutions_of(http: httpx.Client, trial: dict[str, Any], kind: str) -> Found:
    """Read all solutions of a kind, page by page."""
    found, after = Found(), 0
    while True:
        page = http.get(f"/trials/{trial['id']}/solutions", params={"of": kind, "after": after, "limit": 7}).json()
        found.update(_key(each["query"], each) for each in page["solutions"])
        if page["next"] is None:
            return found
        after = page["next"]


def _key(query: str, solution: dict[str, Any]) -> tuple[str, str, str]:
    content = solution.get("binding", solution.get("triples"))
    return query, f"{solution['start']}/{solution['end']}", str(sorted(content.items()) if isinstance(content, dict) else content)


def replayed(client: Client, http: httpx.Client, name: str, as_query: str) -> Found:
    until(lambda: joined(client, name), "it has caught up")
    lines = client.request("GET", f"/queries/{name}/solutions?limit=100000", Accept="application/x-ndjson")[2].decode().splitlines()
    return Found(_key(as_query, httpx.Response(200, text=line).json()) for line in lines)


def assert_difference(http: httpx.Client, trial: dict[str, Any], new: Found, old: Found) -> None:
    assert trial["state"] == "completed", trial["reason"]
    found = {kind: solutions_of(http, trial, kind) for kind in ("new", "old", "both")}
    assert found == {"new": new - old, "old": old - new, "both": new & old}
    counts = {kind: each.total() for kind, each in found.items()}
    assert trial["counts"] == trial["kept"] == counts
    assert {kind: sum(slot[kind] for slot in trial["timeline"]["slots"]) for kind in counts} == counts


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_a_trial_finds_the_difference_of_two_replays(client: Client, http: httpx.Client, stream: str, seed: int) -> None:
    name, random = f"tried-{seed}", Random(seed)
    client.create_stream(stream, max_delay="PT3S")
    client.register(name, readings(stream, "FILTER(?a > ?b)"))
    feed(client, stream, random, range(1, 25))
    begin = feed(client, stream, random, range(25, 30))
    end = feed(client, stream, random, range(30, 60))
    new = readings(stream, "FILTER(?a > ?b + 1)" if seed else "FILTER(?a >= ?b)")
    whole = tried(http, query=new, compare_with=name)
    part = tried(http, query=new, compare_with=name, from_=begin, to=end)
    client.register(f"{name}-new", new, start="beginning")
    client.register(f"{name}-old", readings(stream, "FILTER(?a > ?b)"), start="beginning")
    assert_difference(http, whole, *(replayed(client, http, f"{name}-{side}", name) for side in ("new", "old")))
    client.register(f"{name}-new", new, start=begin, replace=True)
    client.register(f"{name}-old", readings(stream, "FILTER(?a > ?b)"), start=begin, replace=True)
    assert_difference(http, part, *(replayed(client, http, f"{name}-{side}", name) for side in ("new", "old")))
    assert (part["progress"]["from"], part["progress"]["to"]) == (begin, end)
    assert part["old_query"] == readings(stream, "FILTER(?a > ?b)")
    assert http.get("/trials").json()["trials"][0] == part
    assert http.get("/trials?timeline=false").json()["trials"][0] == part | {"timeline": part["timeline"] | {"slots": []}}


def test_a_rule_that_nothing_reads_yet_is_tried(client: Client, http: httpx.Client, stream: str) -> None:
    feed(client, stream, Random(11), range(1, 25))
    text = f"{PREFIX} CONSTRUCT {{ ?s :high ?v }} INTO STREAM <{stream}/high> FROM STREAM <{stream}> WHERE {{ ?s :value ?v FILTER(?v >= 5) }}"
    trial = tried(http, query=text)
    client.register("tried-alone", text, start="beginning")
    new = replayed(client, http, "tried-alone", "trial 1")
    assert new.total() > 5
    assert_difference(http, trial, new, Found())


def test_the_readers_of_a_rule_are_compared_over_the_background_as_it_changed(tmp_path: Path) -> None:
    stream, derived, random = f"{EX}stream", f"{EX}derived", Random(7)
    with serving(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as http:
        client = Client(url)
        client.register("rule", rule(stream, derived, 3))
        client.register("reader", highs(derived))
        feed(client, stream, random, range(1, 20))
        sensors = "".join(f"<{EX}s{k}> a <{EX}Sensor> .\n" for k in range(2))
        assert http.put(BACKGROUND, content=sensors, headers={"Content-Type": "text/turtle"}).is_success
        feed(client, stream, random, range(20, 40))
        assert http.put(BACKGROUND, content=sensors.replace("s1", "s2"), headers={"Content-Type": "text/turtle"}).is_success
        feed(client, stream, random, range(40, 60))
        trial = tried(http, query=rule(stream, derived, 5), compare_with="rule")
        sides = []
        for least in (5, 3):
            into = f"{derived}/{least}"
            client.register(f"rule-{least}", rule(stream, into, least), start="beginning")
            found = replayed(client, http, f"rule-{least}", "rule")
            client.register(f"reader-{least}", highs(into), start="beginning")
            sides.append(found + replayed(client, http, f"reader-{least}", "reader"))
        assert_difference(http, trial, *sides)
        assert all(trial["counts"].values()) or trial["counts"]["new"] == 0
        assert {each["query"] for each in trial["queries"] if each["old"]} == {"rule", "reader"}


def test_solutions_count_by_event_time(client: Client, http: httpx.Client, stream: str) -> None:
    name = "timed"
    query = f"{PREFIX} SELECT ?v FROM STREAM <{stream}> WHERE {{ ?s :value ?v }}"
    client.register(name, query)
    feed(client, stream, Random(3), range(1, 50))
    found = solutions_of(http, tried(http, query=query, from_=moment(10), to=moment(20)), "new")
    everything = solutions_of(http, tried(http, query=query), "new")
    assert {each[1:] for each in found} == {each[1:] for each in everything if moment(10) <= each[1].split("/")[1] < moment(20)}
    assert 0 < len(found) < len(everything)
    assert tried(http, query=query, from_="2026-01-02")["counts"] == {"new": 0, "old": 0, "both": 0}


def test_what_settings_of_streams_promise_counts_in_a_trial(tmp_path: Path) -> None:
    """On instants, a WITHOUT keeps the latest reading of a subject alone. If subjects are local, absence is certain in
    the open instant.
    """
    latest = "{ ?s :value ?a } SEQ { ?s :value ?b } WITHOUT { ?s :value ?c }"
    lacking = "?s :value ?v OPTIONAL { ?s :unit ?u }"
    with serving(tmp_path, max_partial_matches=20) as url, httpx.Client(base_url=url, timeout=60) as http:
        client = Client(url)
        for stream, setting, pattern, count in (("timely", "instants", latest, 59), ("apart", "local", lacking, 60)):
            client.create_stream(stream, **{setting: True})
            query = f"{PREFIX} SELECT * FROM STREAM <{stream}> WHERE {{ {pattern} }}"
            client.register(stream, query)
            for number in range(60):
                subject = f"{EX}s" if setting == "instants" else f"{EX}s{number}"
                client.send(stream, event(number).replace(f"<{EX}s>", f"<{subject}>"))
            trial = tried(http, query=query, compare_with=stream, from_=http.get(f"/queries/{stream}").json()["registered"])
            live = client.request("GET", f"/queries/{stream}/solutions?limit=1000", Accept="application/x-ndjson")[2].decode().splitlines()
            assert (trial["counts"], trial["ended"], len(live)) == ({"new": 0, "old": 0, "both": count}, [], count)


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_trial_is_cancelled(tmp_path: Path) -> None:
    """The first trial has more to compare than there is time for until it is cancelled, however busy the machine is."""
    endless = f"{PREFIX} SELECT * WHERE {{ {' AND '.join(f'{{ ?s{k} :value ?v{k} }}' for k in range(3))} FILTER(?v0 + ?v1 + ?v2 < 0) }}"
    with serving(tmp_path, max_trials=2, trial_processes=1) as url, httpx.Client(base_url=url, timeout=60) as http:
        client = Client(url)
        client.send("default", "\n".join(event(n) for n in range(2_000)))
        wish = {"query": values("default")}
        first, second = (http.post("/trials", json=each).headers["Location"] for each in ({"query": endless}, wish))
        assert http.get(second).json()["state"] == "waiting"
        assert refused(http.post("/trials", json=wish)) == (429, "too-many-trials")
        assert http.delete(first).status_code == 204
        assert refused(http.get(first)) == refused(http.delete(first)) == (404, "unknown-trial")
        until(lambda: http.get(second).json()["state"] == "completed", "the other one had its turn")
        assert http.get(second).json()["counts"] == {"new": 2_000, "old": 0, "both": 0}


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        pytest.param({}, (400, "no-query"), id="no query"),
        pytest.param({"query": "SELECT"}, (400, "syntax"), id="malformed query"),
        pytest.param({"query": "SELECT * WHERE {?s ?p ?o}", "compare_with": "nobody"}, (404, "unknown-query"), id="compared with nothing"),
        pytest.param({"query": "SELECT * WHERE {?s ?p ?o}", "policy": "any"}, (400, "invalid-member"), id="policy"),
        pytest.param({"query": "SELECT * WHERE {?s ?p ?o}", "from": "yesterday"}, (400, "bad-place"), id="no place"),
        pytest.param({"query": "SELECT * WHERE {?s ?p ?o}", "from": True}, (400, "bad-place"), id="no number"),
        pytest.param({"query": "SELECT * WHERE {?s ?p ?o}", "to": 10**17}, (400, "bad-offset"), id="beyond the log"),
        pytest.param({"query": "SELECT * WHERE {?s ?p ?o}", "from": 1, "to": 0}, (400, "bad-range"), id="to before from"),
        pytest.param({"query": "SELECT * WHERE {?s ?p ?o}", "from": "2026-01-02", "to": "2026-01-01"}, (400, "bad-range"), id="times in reverse"),
        pytest.param({"query": "SELECT * WHERE {?s ?p ?o}", "since": 1}, (400, "unknown-member"), id="unknown member"),
    ],
)
def test_what_cannot_be_tried_is_told(client: Client, http: httpx.Client, stream: str, wish: dict[str, Any], expected: tuple[int, str]) -> None:
    client.send(stream, event(1))
    assert refused(http.post("/trials", json=wish)) == expected


def test_a_log_without_its_beginning_says_from_where_a_trial_can_begin(tmp_path: Path) -> None:
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    fill(cut, range(150), begin=True)
    shutil.copytree(cut, whole)
    with retention(cut) as (swept, _):
        swept.sweep(cases.START)
    for data in (cut, whole):
        with LogWriter(data, cases.frozen_clock) as log:
            cases.readings(log, range(150, 200), Random(2))
    first = min(position for position in snapshots_of(cut).positions() if position >= oldest(cut / "log"))
    wish, since = {"query": cases.PAIRS, "compare_with": "pairs", "policy": "recent"}, iso(cases.START + 165 * cases.SECOND)
    with serving(cut) as url, httpx.Client(base_url=url, timeout=60) as http:
        answer = http.post("/trials", json=wish)
        assert refused(answer) == (409, "offset-gone")
        assert f"can begin at offset {first} or later" in answer.json()["detail"]
        assert refused(http.post("/trials", json={**wish, "from": first - 1})) == (409, "offset-gone")
        told = tried(http, **wish, from_="2026-01-01")
        assert (told["state"], f"or at offset {first}" in told["reason"]) == ("failed", True)
        begins = (first, since) if is_full() else (since,)
        found = [tried(http, **wish, from_=begin) for begin in begins]
    with serving(whole) as url, httpx.Client(base_url=url, timeout=60) as http:
        expected = [tried(http, **wish, from_=begin) for begin in begins]
    assert [(each["counts"], each["timeline"]) for each in found] == [(each["counts"], each["timeline"]) for each in expected]
    assert all(each["counts"]["both"] and each["counts"]["old"] for each in found)


def test_a_token_reads_the_trials_of_what_it_may_read(tmp_path: Path) -> None:
    grants = {"admin": "admin", "reader": "read:q", "other": "read:p", "feeder": "ingest:*"}
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{hashlib.sha256(token.encode()).hexdigest()} {scope}\n" for token, scope in grants.items()))
    with serving(tmp_path / "data", token_file=tokens) as url, httpx.Client(base_url=url, timeout=60) as http:
        Client(url, "admin").register("q", values("default"))
        by = {token: {"Authorization": f"Bearer {token}"} for token in grants}
        wish = {"query": values("default")}
        for token in ("reader", "other", "feeder"):
            assert http.post("/trials", json=wish, headers=by[token]).status_code == 403
        apart = http.post("/trials", json=wish, headers=by["admin"]).headers["Location"]
        compared = http.post("/trials", json={**wish, "compare_with": "q"}, headers=by["admin"]).headers["Location"]
        allowed = {
            token: (*(http.get(path, headers=by[token]).status_code for path in (apart, compared, f"{compared}/solutions")), _listed(http, by[token]))
            for token in ("admin", "reader", "other")
        }
        assert allowed == {"admin": (200, 200, 200, 2), "reader": (403, 200, 200, 1), "other": (403, 403, 403, 0)}
        assert http.delete(compared, headers=by["reader"]).status_code == 403


def _listed(http: httpx.Client, headers: dict[str, str]) -> int:
    return len(http.get("/trials", headers=headers).json()["trials"])


def test_the_command_prints_what_only_one_side_has(client: Client, url: str, stream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = tmp_path / "q.rq"
    query.write_text(f"{values(stream).removesuffix('}')} FILTER(?v > '2') }}")
    client.register("commanded", values(stream))
    client.send(stream, "\n".join(event(n) for n in range(5)))
    assert main(["trial", str(query), "--against", "commanded", "--server", url, "--from", "2026-01-01"]) == 0
    printed = capsys.readouterr()
    shown = [json.loads(line) for line in printed.out.splitlines()]
    assert [(each["only"], each["end"]) for each in shown] == [("old", moment(n)) for n in range(3)]
    assert printed.err == "commanded: 0 only new, 3 only old, 2 both\n"
    assert "commanded" not in {trial["compare_with"] for trial in client.trials()}, "it is deleted"
    assert main(["trial", str(query), "--server", url, "--to", "tomorrow"]) == 2
    assert "to cannot be 'tomorrow'" in capsys.readouterr().err


def test_a_trial_with_other_columns_says_that_nothing_can_be_equal(
    client: Client, url: str, stream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = tmp_path / "q.rq"
    query.write_text(values(stream).replace("?v", "?value"))
    client.register("renamed", values(stream))
    client.send(stream, event(0))
    assert main(["trial", str(query), "--against", "renamed", "--server", url]) == 0
    warning, counts = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"warning: the new text has the columns .*\?value, and 'renamed' has .*\?v, so no solution is counted as found by both; .*", warning
    )
    assert counts == "renamed: 1 only new, 1 only old, 0 both"
    trial = client.start_trial("ASK { ?s ?p ?o }", compare_with="renamed")
    assert "are of different query forms" in trial["warning"]
    client.drop_trial(trial["id"])

"""A server whose data directory is kept in a store: over HTTP, in an emulation of S3."""

import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest

from epsparql.client import Client
from pipeline.log.segments import oldest
from pipeline.object_store.backends import DirectoryStore, ObjectStore, open_store
from pipeline.replication.lease import LEASE, LeaseHolder
from pipeline.replication.manifest import Manifest, ManifestChain
from pipeline.replication.replicator import Replicator
from server.child_server import Child
from tests.pipeline.log.test_retention import emitted, fill
from tests.pipeline.solutions.exports import feed, logged
from tests.server.conftest import event, refusal_of, serving, until
from tests.server.operations.test_export import USER
from tests.server.routes.test_streams import assert_problem
from tests.soak import is_full
from tests.support import spark_cases as cases
from tests.support.s3_emulator import CREDENTIALS, SECRET, Line, S3Bucket, Served, served
from tests.support.webhook_receiver import receiving


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture
def s3(emulator: Served, monkeypatch: pytest.MonkeyPatch) -> S3Bucket:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return emulator.bucket()


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["store", pytest.param("bucket", marks=pytest.mark.soak), pytest.param("answer", marks=pytest.mark.soak)])
def test_a_store_that_is_not_there_is_told(missing: str, s3: S3Bucket, tmp_path: Path) -> None:
    """The fault is told as other faults of settings are, and without the credentials.

    test_export.py has a missing bucket; `answer` takes its 30 s.
    """
    with Line(s3) as line:
        if missing == "store":
            line.cut()
        if missing == "answer":
            line.hold()
        uri = s3.uri("p", port=line.port, user=USER).replace(s3.name, "no-bucket" if missing == "bucket" else s3.name)
        told = refused(tmp_path / "data", uri)
    assert re.search(r"--store s3://\*\*\*@(bucket-\d+|no-bucket)/p\?.* cannot be used: .*; check that the store can be reached", told)
    assert not (tmp_path / "data" / "log").exists()


@pytest.mark.slow
def test_a_directory_that_is_not_the_stores_is_told(tmp_path: Path) -> None:
    """So is half a copy, with and without the store."""
    store = tmp_path / "store"
    options = ["--store", str(store)]
    with Child(tmp_path / "data", "inprocess", tmp_path / "log", extra=options) as child:
        Client(child.url).wait_ready(240)
        Client(child.url).register("high", cases.HIGH)
        fill(tmp_path / "other", range(3), begin=True)
        told = refused(tmp_path / "other", str(store))
        assert f"{tmp_path}/other has a log of its own, and so has {store}; give an empty directory with --data" in told
        Client(child.url).register("pairs", cases.PAIRS)
        assert child.stop() == 0
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "store.restoring").touch()
    assert f"{tmp_path}/half is an unfinished copy of a store; give that with --store, or another directory with --data" in refused(tmp_path / "half")
    with Child(tmp_path / "half", "inprocess", tmp_path / "log", extra=options) as child:
        Client(child.url).wait_ready(60)
        assert {query["name"] for query in Client(child.url).queries()} == {"high", "pairs"}
        assert child.stop() == 0


class Flaky(DirectoryStore):
    """Refuses while it is told to; `late`: what it refuses took effect. Its faults are OSError, as those of a disk are."""

    refuses = late = False

    def put(self, name: str, data: pa.Buffer | bytes) -> None:
        if self.late or not self.refuses:
            super().put(name, data)
        if self.refuses and not self.late:
            raise OSError("Stale file handle")

    def create(self, name: str, data: bytes) -> bool:
        created = super().create(name, data)
        if self.refuses:
            raise OSError("Stale file handle")
        return created

    def hooks(self) -> list[str]:
        """Return the webhooks that a server would find which begins now."""
        manifest = ManifestChain(self).look()
        return [name for name in manifest.files if name.startswith("observers/")] if manifest is not None else []


@pytest.mark.parametrize("late", [False, True])
def test_a_webhook_that_the_store_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    """Is none: put again it has a secret that is told. One that was there is changed, or has ended."""
    monkeypatch.setattr("pipeline.replication.replicator.PATIENCE_S", -1.0)
    place = Flaky(tmp_path / "store", locked=False)
    keeper = Replicator(tmp_path / "data", place)  # without rounds: what is there was brought because somebody waited
    with (
        serving(tmp_path / "data", keeper=keeper, allow_hosts=("127.0.0.1",)) as url,
        httpx.Client(base_url=f"{url}/queries/q/observers", timeout=60) as http,
    ):
        Client(url).register("q", cases.HIGH)
        hook = {"url": "http://127.0.0.1:9/"}
        place.refuses, place.late = True, late
        assert "the webhook is not created" in str(assert_problem(http.put("1", json=hook), 503, "store-failed")["detail"])
        assert http.get("1").status_code == 404
        assert len(place.hooks()) == late
        assert_problem(http.delete("1"), 503, "store-failed")
        place.refuses = False
        assert_problem(http.delete("1"), 404, "unknown-observer")
        assert not place.hooks()
        place.refuses = True
        assert http.put("1", json=hook).status_code == 503
        place.refuses = False
        made = http.put("1", json=hook)
        assert (made.status_code, made.json()["secret"][:6]) == (201, "whsec_")
        place.refuses = True
        assert "the change is stored here" in str(assert_problem(http.put("1", json={"url": "http://127.0.0.1:9/b"}), 503, "store-failed")["detail"])
        assert http.get("1").json()["url"] == "http://127.0.0.1:9/b"
        place.refuses = False
        Client(url).drop("q")
        assert not place.hooks()
    keeper.stop()


def test_a_server_whose_lease_has_lapsed_is_not_ready_until_it_has_looked_for_a_later_one(tmp_path: Path) -> None:
    place = Flaky(tmp_path / "store", locked=False)
    keeper = Replicator(tmp_path / "data", place)
    with serving(tmp_path / "data", keeper=keeper) as url, httpx.Client(base_url=url, timeout=60) as http:
        keeper.lease_until = time.monotonic()
        assert "could not be renewed" in str(assert_problem(http.get("/readyz"), 503, "not-ready")["detail"])
        holder = LeaseHolder(place, keeper, 60.0)
        until(lambda: http.get("/readyz").status_code == 200, "the lease is renewed")
        holder.stop()
        renewed = place.read(LEASE)
        later = Replicator(tmp_path / "later", place)
        keeper.lease_until = time.monotonic()
        LeaseHolder(place, keeper, 60.0).stop()
        assert keeper.taken
        assert place.read(LEASE) == renewed
        assert "another server has begun" in str(assert_problem(http.get("/readyz"), 503, "not-ready")["detail"])
        later.stop()
    keeper.stop()


@pytest.mark.slow
def test_a_start_that_cannot_be_takes_nothing(tmp_path: Path) -> None:
    """The server that runs goes on, and goes on acknowledging."""
    store, again = str(tmp_path / "store"), tmp_path / "again"
    (tmp_path / "file").touch()
    (tmp_path / "wrong.ttl").write_text("<urn:s>")
    (tmp_path / "words").write_text("admin")
    starts = {
        "--background": (tmp_path / "wrong.ttl", "wrong.ttl:1:"),
        "--export": (tmp_path / "file", f"--export {tmp_path}/file cannot be used"),
        "--token-file": (tmp_path / "words", "words:1: expected the SHA-256"),
    }
    options = ["--store", store, "--export", str(tmp_path / "exported")]
    with Child(tmp_path / "data", "inprocess", tmp_path / "log", extra=options) as child:
        client = Client(child.url, patience_s=60)
        client.wait_ready(240)
        client.register("high", cases.HIGH)
        for option, (given, told) in list(starts.items())[: None if is_full() else 1]:
            assert told in refused(again, store, option, str(given))
        told = refused(again, *options[1:])
        assert f"{tmp_path}/exported is in use by process" in told
        assert not again.exists()
        feed(client, range(60))
        assert get(child, "readyz").status_code == 200
        assert child.stop() == 0


def refused(data: Path, store: str | None = None, *options: str) -> str:
    """Return what a start that is refused says."""
    told = refusal_of("--data", str(data), "--port", "0", *(["--store", store] if store else []), *options)
    assert SECRET not in told
    assert quote(SECRET, safe="") not in told
    return told


@pytest.mark.slow
def test_machines_go_one_after_the_other(s3: S3Bucket, tmp_path: Path) -> None:
    """Each server is killed with -9 and its disk is lost.

    What was acknowledged is there, and solutions are those of one that was never disturbed.
    """
    told, options = tmp_path / "log", ["--store", s3.uri("p", user=USER), "--allow-host", "127.0.0.1"]
    machines = 8 if is_full() else 2
    for number in range(machines):
        with Child(tmp_path / f"{number}", "inprocess", told, extra=options) as child:
            client = Client(child.url, patience_s=60)
            client.wait_ready(240)
            if not number:
                client.register("high", cases.HIGH)
                client.register("pairs", cases.PAIRS)
            feed(client, range(30 * number, 30 * number + 30))
            assert httpx.put(f"{child.url}/queries/pairs/observers/{number}", json={"url": "http://127.0.0.1:9/"}, timeout=60).status_code == 201
            if number % 2:
                assert httpx.delete(f"{child.url}/queries/pairs/observers/{number - 1}", timeout=60).status_code == 204
            child.kill()
    last = tmp_path / "last"
    with Child(last, "inprocess", told, extra=options) as child:
        Client(child.url, patience_s=60).wait_ready(60)
        assert {hook["id"] for hook in get(child, "queries/pairs/observers").json()["observers"]} == {str(number) for number in range(1, machines, 2)}
        cases.reached(last, cases.head_of(last), 30)
        assert child.stop() == 0
    assert logged(last) == _undisturbed(tmp_path, 30 * machines)
    assert SECRET not in told.read_text()


def _undisturbed(tmp_path: Path, readings: int) -> "Counter[tuple[object, ...]]":
    with serving(tmp_path / "undisturbed") as url:
        client = Client(url, patience_s=60)
        client.register("high", cases.HIGH)
        client.register("pairs", cases.PAIRS)
        feed(client, range(readings))
        cases.reached(tmp_path / "undisturbed", cases.head_of(tmp_path / "undisturbed"), 30)
    return logged(tmp_path / "undisturbed")


@pytest.mark.slow
def test_events_wait_for_the_store_and_end_with_another_server(s3: S3Bucket, tmp_path: Path) -> None:
    told, data, other = tmp_path / "log", tmp_path / "data", tmp_path / "other"
    with (
        Line(s3) as line,
        Child(data, "inprocess", told, extra=["--store", s3.uri("p", port=line.port, user=USER), "--allow-host", "127.0.0.1"]) as child,
    ):
        client = Client(child.url, patience_s=120)
        client.wait_ready(240)
        client.register("high", cases.HIGH)
        client.register("pairs", cases.PAIRS)
        feed(client, range(30))
        line.cut()
        waiting = Thread(target=feed, args=(client, range(30, 60)))
        waiting.start()
        cases.eventually(lambda: "epsparql_store_failing 1.0" in get(child, "metrics").text, 60, told.read_text)
        line.mend()
        waiting.join(60)
        assert not waiting.is_alive()
        cases.eventually(lambda: "epsparql_store_failing 0.0" in get(child, "metrics").text, 60, told.read_text)
        assert get(child, "readyz").status_code == 200
        with Child(other, "inprocess", told, extra=["--store", s3.uri("p", user=USER)]) as second:
            late = httpx.post(f"{child.url}/streams/default/events", content=event(1), headers={"Content-Type": "application/x-ndjson"}, timeout=60)
            cases.eventually(lambda: get(child, "readyz").status_code == 503, 30, told.read_text)
            hook = httpx.put(f"{child.url}/queries/high/observers/1", json={"url": "http://127.0.0.1:9/"}, timeout=60)
            answers = [late.text, hook.text, get(child, "readyz").text, get(child, "metrics").text, get(child, "livez").text]
            Client(second.url, patience_s=60).wait_ready(60)
            feed(Client(second.url, patience_s=60), range(60, 90))
            cases.reached(other, cases.head_of(other), 30)
            assert second.stop() == 0
        assert child.stop() == 0
    assert late.status_code == hook.status_code == 503
    for answer in answers[:3]:
        assert re.search(r"another server has begun to write to s3://\*\*\*@bucket-\d+/p\?.*; give each server a store of its own", answer)
    assert logged(other) == _undisturbed(tmp_path, 90)
    for text in (told.read_text(), *answers):
        assert SECRET not in text
        assert quote(SECRET, safe="") not in text


def get(child: Child, path: str) -> httpx.Response:
    return httpx.get(f"{child.url}/{path}", timeout=30)


@pytest.mark.slow
def test_all_is_there_again_but_what_retention_let_go(s3: S3Bucket, tmp_path: Path) -> None:
    """Old segments go from the store; webhooks, paused queries and the background are in the directory that an empty
    one becomes.
    """
    told, data, then = tmp_path / "log", tmp_path / "data", tmp_path / "then"
    fill(data, range(150), begin=True)
    shutil.copytree(data, tmp_path / "whole")
    options = ["--store", s3.uri("p", user=USER), "--allow-host", "127.0.0.1"]
    with receiving() as receiver:
        with Child(data, "inprocess", told, extra=[*options, "--retain-bytes", "1", "--retain-every-s", "0.5"]) as child:
            changed(child, receiver.url)
            store = open_store(s3.uri("p"))
            cases.eventually(lambda: has_forgotten(store), 180, lambda: str(s3.names()))
            feed(Client(child.url, patience_s=60), range(150, 160))
            cases.eventually(lambda: len(receiver.taken) > 0 and "observers/" in str(newest(store).files), 60, told.read_text)
            child.kill()
        with Child(then, "inprocess", told, extra=options) as child:
            client = Client(child.url, patience_s=60)
            client.wait_ready(60)
            assert {query["name"]: query["state"] for query in client.queries()}.items() >= {"high": "paused", "all": "running"}.items()
            assert "http://e/hall" in get(child, "ontologies/default").text
            taken = len(receiver.taken)
            feed(client, range(160, 220))
            cases.eventually(lambda: len(receiver.taken) > taken, 60, told.read_text)
            cases.reached(then, cases.head_of(then), 30)
            assert child.stop() == 0
        with Child(tmp_path / "whole", "inprocess", told, extra=options[2:]) as child:
            changed(child, receiver.url)
            feed(Client(child.url, patience_s=60), range(150, 220))
            cases.reached(tmp_path / "whole", cases.head_of(tmp_path / "whole"), 30)
            assert child.stop() == 0
    whole, left = emitted(tmp_path / "whole"), emitted(then)
    assert oldest(then / "log") > 0
    assert 0 < len(left) < len(whole)
    assert left == whole[-len(left) :]


def newest(store: ObjectStore) -> Manifest:
    return ManifestChain(store).look() or Manifest()


def has_forgotten(store: ObjectStore) -> bool:
    """Tell whether the first segments of both logs have gone, and in `make soak` their objects, which a server
    removes once it has run for a minute.
    """
    manifest = newest(store)
    named = {extent.name for extents in manifest.logs.values() for extent in extents}
    gone = all(extent.segment for extents in manifest.logs.values() for extent in extents)
    if not is_full():
        return gone
    return gone and {f"tail/{name}" for name in store.names("tail")} <= named | {f"tail/{number:020d}" for number in manifest.fences}


def changed(child: Child, url: str) -> None:
    """A query that is paused, one with a webhook, and knowledge."""
    client = Client(child.url, patience_s=60)
    client.wait_ready(240)
    client.register("high", cases.HIGH)
    client.register("all", cases.HIGH)
    client.pause("high")
    turtle = {"Content-Type": "text/turtle"}
    assert httpx.put(f"{child.url}/ontologies/default", content="<http://e/s> <http://e/in> <http://e/hall> .", headers=turtle).is_success
    assert httpx.put(f"{child.url}/queries/all/observers/1", json={"url": url}).is_success

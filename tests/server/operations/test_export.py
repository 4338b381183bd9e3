"""A server whose solutions go to a store: over HTTP, to an emulation of S3."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from epsparql.client import Client
from pipeline.log.segments import oldest
from server.child_server import Child
from tests.pipeline.log.test_retention import fill
from tests.pipeline.solutions.exports import Target, feed, logged, values
from tests.server.conftest import refusal_of
from tests.soak import is_full
from tests.support import spark_cases as cases
from tests.support.s3_emulator import ACCESS, CREDENTIALS, SECRET, Line, S3Bucket, Served, served

pytestmark = pytest.mark.slow
USER = f"{ACCESS}:{quote(SECRET, safe='')}@"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("store")) as found:
        yield found


@pytest.fixture
def s3(emulator: Served, monkeypatch: pytest.MonkeyPatch) -> S3Bucket:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return emulator.bucket()


@pytest.mark.parametrize("missing", [pytest.param("store", marks=pytest.mark.soak), "bucket", pytest.param("answer", marks=pytest.mark.soak)])
def test_a_store_that_is_not_there_is_told(missing: str, s3: S3Bucket, tmp_path: Path) -> None:
    """The fault is told as other faults of settings are, and without the credentials.

    test_store.py has the store itself; `answer` takes its 30 s.
    """
    with Line(s3) as line:
        if missing == "store":
            line.cut()
        if missing == "answer":
            line.hold()
        uri = s3.uri("p", port=line.port, user=USER).replace(s3.name, "no-bucket" if missing == "bucket" else s3.name)
        told = refusal_of("--data", str(tmp_path), "--port", "0", "--export", uri)
    assert re.search(r"--export s3://\*\*\*@(bucket-\d+|no-bucket)/p\?.* cannot be used: .*; check that the store can be reached", told)
    assert SECRET not in told
    assert quote(SECRET, safe="") not in told


def test_a_store_that_another_log_is_exported_to_is_refused(s3: S3Bucket, tmp_path: Path) -> None:
    uri = s3.uri("p", user=USER)
    data = tmp_path / "data"
    options = ["--export", uri, "--export-every-s", "0.1"]
    with Child(data, "inprocess", tmp_path / "log", extra=options) as child:
        client = Client(child.url, patience_s=60)
        client.wait_ready(240)
        client.register("high", cases.HIGH)
        feed(client, range(60))
        cases.eventually(lambda: ".parquet" in str(s3.names()), 30, lambda: "nothing is exported")
        told = refusal_of("--data", str(tmp_path / "other"), "--port", "0", *options)
        assert child.stop() == 0
    assert re.search(r"s3://\*\*\*@bucket-\d+/p\?.* another log; choose an empty directory, or prefix of a store, with --export", told)
    assert values(Target("s3", s3.uri("p")).rows()) == logged(data)


def test_each_solution_is_there_once_whatever_happens(s3: S3Bucket, tmp_path: Path) -> None:
    """The server is killed with -9 at a request of its export, again and again; the store is cut off for a while; at
    the stop it does not answer.
    """
    data, told, begins = tmp_path / "data", tmp_path / "log", count(step=30)

    def further(client: Client) -> None:
        begin = next(begins)
        feed(client, range(begin, begin + 30))

    with Line(s3) as line:
        options = ["--export", s3.uri("p", port=line.port, user=USER), "--export-every-s", "0.05"]
        for number in range(8) if is_full() else (0, 3):
            with Child(data, "inprocess", told, extra=options) as child:
                client = Client(child.url, patience_s=60)
                client.wait_ready(240)
                if number == 0:
                    client.register("high", cases.HIGH)
                    client.register("pairs", cases.PAIRS)
                line.hold(after=2 * number)
                further(client)
                for _ in range(30):  # an export may have fewer requests than that
                    if line.held.wait(1):
                        break
                    further(client)
                assert line.held.is_set()
                child.kill()
            line.cut()
            line.mend()
        with Child(data, "inprocess", told, extra=options) as child:
            client = Client(child.url, patience_s=60)
            client.wait_ready(60)
            line.cut()
            further(client)
            cases.eventually(lambda: "tries again in" in told.read_text(), 60, lambda: "it does not fail")
            answers = [httpx.get(f"{child.url}/{path}").text for path in ("metrics", "readyz", "livez")]
            assert "epsparql_export_failing 1.0" in answers[0]
            line.mend()
            cases.eventually(lambda: lag(child) == 0.0, 60, lambda: told.read_text())
            line.slow()
            further(client)
            assert child.stop() == 0
        assert "did not end within 10 s: the next start goes on there" in told.read_text()
        line.mend()
        with Child(data, "inprocess", told, extra=options) as child:
            Client(child.url, patience_s=60).wait_ready(60)
            cases.reached(data, cases.head_of(data), 30)
            assert child.stop() == 0
    assert values(Target("s3", s3.uri("p")).rows()) == logged(data)
    for text in (told.read_text(), *answers):
        assert SECRET not in text
        assert quote(SECRET, safe="") not in text


def lag(child: Child) -> float:
    found = re.search(r"^epsparql_export_lag_entries (.*)$", httpx.get(f"{child.url}/metrics").text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_limits_wait_for_a_store(s3: S3Bucket, tmp_path: Path) -> None:
    """Nothing goes that is not exported, however small the limits; everything does that is."""
    data = tmp_path / "data"
    fill(data, range(150), begin=True)
    limits = ["--retain-bytes", "1", "--retain-every-s", "0.05"]
    with Line(s3) as line:
        options = ["--export", s3.uri("p", port=line.port), "--export-every-s", "3", *limits]
        with Child(data, "inprocess", tmp_path / "log", extra=options) as child:
            line.cut()
            Client(child.url, patience_s=60).wait_ready(240)
            cases.eventually(lambda: "tries again in" in (tmp_path / "log").read_text(), 60, lambda: "it does not fail")
            before = oldest(data / "solutions"), oldest(data / "log")
            line.mend()
            cases.eventually(lambda: oldest(data / "solutions") > 0, 60, lambda: "nothing goes")
            assert child.stop() == 0
    assert before == (0, 0)

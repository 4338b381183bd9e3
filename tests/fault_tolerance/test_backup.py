"""`epsparql backup` copies a directory whose server runs, as docs/operations/recovery.md says, and a server continues from the
copy.
"""

import re
import threading
from contextlib import closing
from pathlib import Path
from random import Random

import httpx
import pytest

from epsparql.client import Client
from pipeline.log import LogReader, LogWriter
from pipeline.log.segments import oldest, segments
from pipeline.replication.backup import back_up
from pipeline.solutions.solution_log import SolutionWriter
from server.cli import main
from tests.pipeline.log.test_retention import SEGMENT, emitted, fill, follow, retention
from tests.pipeline.solutions.exports import feed
from tests.server.conftest import serving, until
from tests.support import spark_cases as cases
from tests.support.shell_pages import run_page

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "recovery.md"


def section() -> str:
    """Return the page's section about backups."""
    text = PAGE.read_text(encoding="utf-8")
    begin = text.index("### Backup\n")
    return text[begin : text.index("### ", begin + 4)]


@pytest.mark.slow
def test_the_page_makes_a_copy_that_a_server_continues_from(tmp_path: Path) -> None:
    data, restored = tmp_path / "data", tmp_path / "restored"
    stopping = threading.Event()
    with serving(data, allow_hosts=("127.0.0.1",)) as url:
        client = Client(url, patience_s=60)
        client.register("high", cases.HIGH)
        client.register("pairs", cases.PAIRS)
        assert httpx.put(f"{url}/ontologies/halls", content="<urn:a> <urn:b> <urn:c> .", headers={"Content-Type": "text/turtle"}).is_success
        assert httpx.put(f"{url}/queries/high/observers/1", json={"url": "http://127.0.0.1:9/"}).status_code == 201
        feed(client, range(60))
        acknowledged = cases.head_of(data)

        def feed_on() -> None:
            for number in range(60, 10_000, 5):
                if stopping.is_set():
                    return
                feed(client, range(number, number + 5))

        feeding = threading.Thread(target=feed_on)
        feeding.start()
        try:
            replaced = {"/var/lib/epsparql": str(tmp_path), "/backups": str(tmp_path / "backups")}
            run_page(re.sub(r"^epsparql verify", "epsparql verify --sample 1", section(), flags=re.MULTILINE), tmp_path, replaced)
        finally:
            stopping.set()
            feeding.join()
        cases.reached(data, cases.head_of(data), 60)
        whole = emitted(data)
    assert cases.head_of(restored) >= acknowledged
    with serving(restored, allow_hosts=("127.0.0.1",)) as url:
        cases.reached(restored, cases.head_of(restored), 60)
        assert {query["name"] for query in Client(url).queries()} == {"high", "pairs"}
        assert "urn:epsparql:graph:halls" in httpx.get(f"{url}/ontologies").text
        assert [hook["id"] for hook in httpx.get(f"{url}/queries/high/observers").json()["observers"]] == ["1"]
        found = emitted(restored)
        assert found == whole[: len(found)]
        feed(Client(url, patience_s=60), range(20_000, 20_005))
        until(lambda: len(emitted(restored)) > len(found), "the restored server goes on")


@pytest.mark.slow
def test_a_copy_of_a_directory_with_retention_goes_on(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    fill(data, range(150), begin=True)
    with retention(data) as (kept, _):
        kept.sweep(0)
        back_up(data, copy)  # while its writer is open
    assert oldest(copy / "log") == oldest(data / "log") > 0
    assert segments(copy / "solutions") == segments(data / "solutions")
    for place in (data, copy):
        with LogWriter(place, cases.frozen_clock, segment_bytes=SEGMENT) as log:
            cases.readings(log, range(150, 170), Random(3))
        with closing(SolutionWriter(place, segment_bytes=SEGMENT)) as writer, closing(LogReader(place)) as reader:
            follow(place, writer, reader)
    assert emitted(copy) == emitted(data)


def test_what_cannot_be_copied_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    assert main(["backup", str(tmp_path / "none"), str(tmp_path / "copy")]) == 2
    assert "is no data directory" in capsys.readouterr().err
    with LogWriter(data, cases.frozen_clock) as log:
        cases.register(log, "pairs", cases.PAIRS)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert main(["backup", str(data), str(tmp_path / "full")]) == 2
    assert "is not empty" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["backup", str(data), str(tmp_path / "empty")]) == 0
    assert "up to log position 1" in capsys.readouterr().out
    (path,) = (data / "log").glob("*.frames")
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    assert main(["backup", str(data), str(tmp_path / "damaged")]) == 1
    assert "is damaged at byte" in capsys.readouterr().err
    assert not (tmp_path / "damaged").exists()

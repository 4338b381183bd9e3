"""Event streams in: pages of any publisher against a real HTTP server, and those of a server of ours, with kills of
everything.
"""

import gzip
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from deltalake import DeltaTable

from connectors.configuration import parse_connector
from connectors.errors import SystemFault
from connectors.inbound.ldes import MOST_BYTES, LdesSource
from connectors.inbound.ldes_page import parse_page
from connectors.inbound.source import Message
from pipeline.formats.body_parser import N_QUADS, parse_body
from tests.connectors.systems.chaos import EX, RestartedServer, connecting, event, kill_at_random, restarted_server, wait_for
from tests.connectors.test_registry import children
from tests.server.conftest import serving
from tests.support.logs import until

PREFIXES = (
    "@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> . @prefix : <http://example.org/> . "
    "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
)


class PagePublisher:
    """Publishes the pages of a test, which may change, and remembers the requests."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[str, str]] = {}
        self.headers: dict[str, str] = {}
        self.packed = False
        self.asked: list[tuple[str, dict[str, str]]] = []
        publisher = self

        class PageHandler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                text, media_type = publisher.pages.get(self.path, ("", "text/turtle"))
                tag = f'"{hash(text)}"'
                moved = text if text.startswith("http") else ""
                known = tag == self.headers["If-None-Match"]
                self.send_response(302 if moved else 304 if known else 200 if self.path in publisher.pages else 410)
                packing = {"Content-Encoding": "gzip"} if publisher.packed else {}
                for name, value in (packing | publisher.headers | {"Content-Type": media_type, "ETag": tag, "Location": moved}).items():
                    self.send_header(name, value)
                self.end_headers()
                if not known:
                    body = (PREFIXES + text if ":" in text and media_type == "application/trig" else text).encode()
                    with suppress(OSError):
                        self.wfile.write(gzip.compress(body) if publisher.packed else body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), PageHandler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def put(self, path: str, text: str, media_type: str = "application/trig") -> None:
        self.pages[path] = (text, media_type)

    def close(self) -> None:
        if not self._thread.is_alive():
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def publisher() -> Iterator[PagePublisher]:
    found = PagePublisher()
    yield found
    found.close()


@pytest.fixture
def source(publisher: PagePublisher) -> Iterator[LdesSource]:
    given = {"type": "ldes", "stream": "s", "url": f"{publisher.url}/root", "poll_s": 0.01, "token_env": "TOKEN"}
    found = LdesSource(parse_connector("pages", given), {"token": "s3cret"})
    yield found
    found.close()


def member(number: int, more: str = "") -> str:
    return f':stream tree:member :m{number} . :m{number} :value {number} ; :at "2026-01-01T00:00:{number:02d}Z"^^xsd:dateTime {more}.\n'


ROOT = ":stream a ldes:EventStream ; tree:view </root> ; ldes:timestampPath :at . </root> tree:relation [ a tree:Relation ; tree:node </1> ] .\n"


def names(messages: Sequence[Message]) -> list[str]:
    return [message.position.rpartition("/")[2] for message in messages]


def test_pages_are_followed_and_the_last_one_is_asked_again(publisher: PagePublisher, source: LdesSource) -> None:
    back, on = "</1> tree:relation [ a tree:LessThanRelation ; tree:node </0> ] .", "</1> tree:relation [ tree:node </2> ] ."
    publisher.put("/root", ROOT)
    publisher.put("/1", member(2) + member(1) + back)
    source.seek(None)
    found = list(source.read(1, 5)) + list(source.read(10, 5))
    assert names(found) == ["m1", "m2"]  # in order of time
    assert source.read(10, 0.05) == []
    assert publisher.asked[-1][1]["if-none-match"]
    publisher.put("/1", member(2) + member(1) + member(3) + back + on)
    publisher.put("/2", "")
    found += source.read(10, 5)
    assert source.read(10, 0.05) == []
    publisher.put("/2", member(4))
    found += source.read(10, 5)
    assert names(found) == ["m1", "m2", "m3", "m4"]
    assert {request[1]["authorization"] for request in publisher.asked} == {"Bearer s3cret"}
    for at in range(4):
        source.seek(found[at].position)
        assert names([*source.read(10, 0.05), *source.read(10, 0.05)]) == names(found[at + 1 :])


def test_caching_headers_are_respected(publisher: PagePublisher, source: LdesSource) -> None:
    publisher.put("/root", ":stream ldes:timestampPath :at .\n" + member(1))
    publisher.headers = {"Cache-Control": "public, max-age=60"}
    source.seek(None)
    assert names(source.read(10, 1)) == ["m1"]
    asked = len(publisher.asked)
    assert source.read(10, 0.3) == []
    assert len(publisher.asked) == asked


FAULTS: list[Any] = [
    pytest.param({}, r"/root is gone \(410\); give the connector another source", id="no root"),
    pytest.param({"/root": ROOT}, r"/1 is gone \(410\)", id="no page"),
    pytest.param({"/root": ROOT.replace("</1>", "<http://127.0.0.1:1/1>")}, "leads to http://127.0.0.1:1/1, which is on another host", id="host"),
    pytest.param({"/root": "http://127.0.0.1:1/x"}, "on another host; give the address there as url", id="redirected to another host"),
    pytest.param({"/root": ROOT, "/1": "</1> tree:relation [ tree:node </2> ], [ tree:node </3> ] ."}, "leads to 2 pages", id="tree"),
    pytest.param({"/root": ROOT, "/1": "</1> tree:relation [ tree:node </root> ] ."}, "leads back to .*/root, so its pages have no end", id="circle"),
    pytest.param({"/root": "<a> <b> ."}, "/root cannot be read as application/trig: ", id="no RDF"),
]


@pytest.mark.parametrize(("pages", "message"), FAULTS)
def test_what_cannot_be_followed_is_told(pages: dict[str, str], message: str, publisher: PagePublisher, source: LdesSource) -> None:
    for path, text in pages.items():
        publisher.put(path, text)
    with pytest.raises(SystemFault, match=message):
        read_until_it_fails(source)


def read_until_it_fails(source: LdesSource) -> None:
    source.seek(None)
    for _ in range(20):
        source.read(10, 0.05)


def test_other_faults_are_told(publisher: PagePublisher, source: LdesSource) -> None:
    publisher.put("/root", "{}", "text/html")
    with pytest.raises(SystemFault, match="answers with text/html, which is no RDF"):
        source.seek(None)
    publisher.put("/root", ROOT)
    publisher.put("/1", member(1))
    source.seek(f"{publisher.url}/1 http://example.org/m7")
    with pytest.raises(SystemFault, match=r"has no member http://example.org/m7 any more"):
        source.read(10, 1)
    publisher.put("/root", f"{publisher.url}/root")
    with pytest.raises(SystemFault, match="redirected more than 5 times"):
        source.seek(None)
    publisher.close()
    with pytest.raises(SystemFault, match="does not answer"):
        source.seek(None)


LONG = "http://e/" + "x" * 200_000
ENTITIES = '<!ENTITY e0 "aaaaaaaaaaaaaaaa">' + "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 16}">' for k in range(1, 9))
RDF_XMLNS = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
STACKED = ",".join(['{"@vocab":"http://e/"}'] + [f'{{"@vocab":"{"v" * 150}/"}}'] * 1_250)
HOSTILE = {
    "application/rdf+xml": f"<!DOCTYPE r [{ENTITIES}]><rdf:RDF {RDF_XMLNS}><rdf:Description rdf:about='http://e/s' rdf:value='&e8;'/></rdf:RDF>",
    "application/ld+json": '{"\\u0040context":[' + STACKED + "]," + ",".join(f'"k{k}":1' for k in range(20_000)) + "}",
    "text/turtle": f"@prefix p: <{LONG}> .\n" + "".join(f"p:a{k} p:b p:c .\n" for k in range(10_000)),
}


@pytest.mark.slow
def test_a_page_that_expands_takes_little_memory_of_a_connector(publisher: PagePublisher, tmp_path: Path) -> None:
    publisher.put("/root", ROOT)
    given = {"type": "ldes", "stream": "s", "url": f"{publisher.url}/root", "poll_s": 0.01}
    with serving(tmp_path) as url, closing(httpx.Client(base_url=url, timeout=30)) as http:
        for media_type, page in HOSTILE.items():
            publisher.put("/1", page, media_type)
            http.put("/connectors/foreign", json=given)
            until(lambda: "ask its publisher for smaller pages" in (http.get("/connectors/foreign").json()["fault"] or ""), "the refused page")
            (worker,) = [pid for pid, command in children() if "connectors.worker" in command]
            status = Path(f"/proc/{worker}/status").read_text()
            assert int(status.partition("VmHWM:")[2].split()[0]) < 200_000, media_type  # kB
            assert http.get("/connectors/foreign").json()["restarts"] == 0
            http.delete("/connectors/foreign")


def test_a_packed_page_is_unpacked_up_to_its_bound(publisher: PagePublisher, source: LdesSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "packed", True)
    publisher.put("/root", ROOT)
    publisher.put("/1", member(1))
    source.seek(None)
    assert names(source.read(10, 1)) == ["m1"]
    publisher.put("/1", " " * (MOST_BYTES + 1))
    with pytest.raises(SystemFault, match="has more than 67108864 bytes"):
        read_until_it_fails(source)
    publisher.headers = {"Content-Encoding": "br"}
    with pytest.raises(SystemFault, match="the Content-Encoding 'br', although only gzip"):
        source.seek(None)


MEMBERS = [
    pytest.param(":s tree:member :m . :m :v [ :w 1 ] ; :at {t} . :x :y :z .", {"v", "w", "at"}, 1, id="what is said about it, and its blank nodes"),
    pytest.param(":s tree:member :m . :m :at {t} . :m {{ :x :y 1 }}", {"y"}, 1, id="its graph alone, if it has one"),
    pytest.param(":s tree:member :m . :m {{ :x :y 1 . :m :at {t} }}", {"y", "at"}, 1, id="its time is in its graph"),
    pytest.param(":s tree:member :m . :m :v 1 .", {"v"}, None, id="no time"),
    pytest.param(":s tree:member :m .", set(), None, id="nothing"),
    pytest.param(":s tree:member :m, 7, <<( :a :b :c )>> . :m :at <<( :a :b :c )>>, {t} .", {"at"}, 1, id="members and times that are none"),
]


@pytest.mark.parametrize(("text", "predicates", "timed"), MEMBERS)
def test_a_member_is_an_event_of_its_own_graph(text: str, predicates: set[str], timed: int | None) -> None:
    page = PREFIXES + ":s ldes:timestampPath :at . " + text.format(t='"2026-01-01T00:00:01Z"^^xsd:dateTime')
    (found,) = parse_page(page.encode(), "application/trig", "http://h/1", None).members
    rows = parse_body(found.text, N_QUADS, default=None, arrived=0).to_pylist()
    assert {row["p"].rpartition("/")[2][:-1] for row in rows} == predicates
    assert {row["g"] for row in rows} <= {f"<{EX}m>"}
    assert {row["start"].isoformat() for row in rows} == (
        set() if not rows else {"1970-01-01T00:00:00+00:00" if timed is None else "2026-01-01T00:00:01+00:00"}
    )


# ---------------------------------------------------------------- kills
SEEN = f"PREFIX : <{EX}> CONSTRUCT {{ ?s :seen ?v }} INTO STREAM <out> WHERE {{ ?s :value ?v }}"
FOUND = f"PREFIX : <{EX}> SELECT ?v FROM STREAM <seen> WHERE {{ ?s :seen ?v }}"


class FileWriter:
    """Writes numbered events until it is stopped: some lines a file, each in two pieces."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stopping = folder, threading.Event()
        self.written = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with (self._folder / f"{self.written:06d}.ndjson").open("w") as file:
                for _ in range(37):
                    text = event(self.written)
                    for piece in (text[:20], text[20:] + "\n"):
                        file.write(piece)
                        file.flush()
                    self.written += 1
                    self._stopping.wait(0.01)

    def stop(self) -> int:
        self._stopping.set()
        self._thread.join()
        return self.written


@pytest.mark.slow
def test_from_files_by_an_event_stream_to_another_server_each_solution_comes_once_whoever_is_killed(tmp_path: Path) -> None:
    chance = Random(10)
    first_dir, second_dir, folder = (tmp_path / name for name in ("first", "second", "in"))
    for path in (first_dir, second_dir, folder):
        path.mkdir()
    with restarted_server(first_dir) as first, restarted_server(second_dir) as second:
        first.client.register("seen", SEEN)
        second.client.register("found", FOUND)
        files = {"type": "files", "stream": "default", "path": str(folder)}
        pages = {"type": "ldes", "stream": "seen", "url": f"{first.url}/queries/seen/ldes", "poll_s": 0.1}
        table = {"type": "delta", "query": "found", "path": str(tmp_path / "table"), "columns": {"id": "id", "v": "?v"}, "every_s": 0.1}
        with (
            connecting(first_dir, first.url, {"files": files}) as reading,
            connecting(second_dir, second.url, {"pages": pages, "table": table}) as following,
        ):
            writer = FileWriter(folder)
            try:
                victims: Sequence[Callable[[], None]] = (
                    lambda: chance.choice((reading, following)).kill_worker(chance),
                    lambda: chance.choice((first, second)).restart(),
                )
                kill_at_random(victims, chance, lambda: count_solutions(second))
            finally:
                total = writer.stop()
            wait_for(lambda: count_solutions(second) >= total, "the last solution")
            wait_for(lambda: count_rows(tmp_path / "table") >= total, "the last row")
        for server, stream in ((first, "default"), (second, "seen")):
            found = server.client.stream(stream)
            assert (found["accepted"], found["late"]) == (total, 0)
        solutions = second.client.solutions("found", limit=100_000)
        assert [int(each.binding["v"]["value"]) for each in solutions if each.binding] == list(range(total))
        assert sorted(map(int, DeltaTable(tmp_path / "table").to_pyarrow_table().column("v").to_pylist())) == list(range(total))


def count_rows(path: Path) -> int:
    return DeltaTable(path).to_pyarrow_table().num_rows if DeltaTable.is_deltatable(str(path)) else 0


def count_solutions(server: RestartedServer) -> int:
    return int(server.client.query("found")["solutions"])

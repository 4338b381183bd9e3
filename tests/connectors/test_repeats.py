"""Connectors with `once_per`: of the solutions with one key, one is written within a duration, whatever fails or
begins again.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest
from deltalake import DeltaTable

from connectors.configuration import parse_connector
from connectors.errors import SystemFault, WrongOption
from connectors.outbound.delivery import OutboundDelivery
from connectors.outbound.delta import DeltaSink
from connectors.outbound.repeats import RepeatFilter
from connectors.outbound.sink import SolutionMessage
from connectors.server_access import ServerAccess
from connectors.status import StatusBoard
from epsparql.client import Client
from server.cli.connect import connect
from tests.server.conftest import EX, event, serving, until, values

ONCE = {"variables": ["v"], "within": "PT10S"}
FEED = [(0, "a"), (1, "b"), (4, "a"), (10, "a"), (11, "b"), (12, "a"), (19, "a"), (20, "a")]
DUE = ["00:00 a", "00:01 b", "00:10 a", "00:11 b", "00:20 a"]


class FailingSink(DeltaSink):
    """Writes to a table, and fails once before a write and once after one, as if the process had ended there."""

    faults: list[str]

    def write(self, solutions: Sequence[SolutionMessage]) -> None:
        fault = self.faults.pop() if self.faults else ""
        if fault == "before":
            raise SystemFault(fault)
        super().write(solutions)
        if fault == "after":
            raise SystemFault(fault)


@contextmanager
def delivering(url: str, directory: Path, query: str, faults: Sequence[str] = (), once_per: object = ONCE) -> Iterator[StatusBoard]:
    """Run a connector in this process, in small batches."""
    table = str(directory / "t")
    columns = {"id": "id", "v": "?v", "end": "end"}
    connector = parse_connector(
        "c", {"type": "delta", "query": query, "path": table, "columns": columns, "batch": 3, "every_s": 0.01, "once_per": once_per}
    )
    sink, board, stopping = FailingSink(connector, {}), StatusBoard(), Event()
    sink.faults = list(faults)
    keys = RepeatFilter(connector.options["once_per"], directory / "keys" / "c.json")
    thread = Thread(target=OutboundDelivery(connector, sink, ServerAccess(url, None), board, stopping, keys).run)
    thread.start()
    try:
        yield board
    finally:
        stopping.set()
        thread.join()


def written(directory: Path) -> list[str]:
    if not DeltaTable.is_deltatable(str(directory / "t")):
        return []
    table = DeltaTable(str(directory / "t")).to_pyarrow_table(columns=["end", "v"]).sort_by("end")
    return [f"{end:%M:%S} {value}" for end, value in zip(table["end"].to_pylist(), table["v"].to_pylist(), strict=True)]


def send(client: Client, stream: str, feed: list[tuple[int, str]]) -> None:
    client.send(stream, "\n".join(event(number, text) for number, text in feed))


@pytest.mark.parametrize("faults", [["before", "after"], ["after", "before", "after"]])
def test_repeats_are_left_out_over_faults_and_restarts(faults: list[str], tmp_path: Path, url: str, client: Client, name: str, stream: str) -> None:
    client.register(name, values(stream))
    send(client, stream, FEED[:3])
    with delivering(url, tmp_path, name, faults) as board:
        until(lambda: written(tmp_path) == DUE[:2], "the first alerts")
        until(lambda: board.present.suppressed >= 1, "the first repeat")
    for first in range(3, len(FEED)):
        with delivering(url, tmp_path, name, ["after"]):
            send(client, stream, FEED[first : first + 1])
            due = [each for each in DUE if int(each[3:5]) <= FEED[first][0]]
            until(lambda due=due: written(tmp_path) == due, "the alerts so far")  # type: ignore[misc]
    (tmp_path / "keys" / "c.json").write_text("{")  # damaged: what follows is decided without keys
    with delivering(url, tmp_path, name):
        send(client, stream, [(21, "a"), (22, "a")])
        until(lambda: written(tmp_path) == [*DUE, "00:21 a"], "one alert more")


def test_another_registration_begins_anew_and_what_has_no_key_is_told(tmp_path: Path, url: str, client: Client, name: str, stream: str) -> None:
    client.register(name, values(stream))
    send(client, stream, FEED[:3])
    with delivering(url, tmp_path, name) as board:
        until(lambda: written(tmp_path) == DUE[:2], "the first alerts")
        client.register(name, values(stream).replace(" }", ' FILTER(?v != "c") }'), replace=True)
        send(client, stream, [(5, "a"), (6, "a")])
        until(lambda: written(tmp_path) == [*DUE[:2], "00:05 a"], "an alert of the new registration")
    selects = f"PREFIX : <{EX}> SELECT ?s FROM STREAM <{stream}> WHERE {{ ?s :value ?w }}"
    faults = [(selects, "?v, which the query does not select; its variables are ?s"), (selects.replace("SELECT ?s", "ASK"), "is no SELECT")]
    for second, (text, words) in enumerate(faults, 7):
        client.register(name, text, replace=True)
        send(client, stream, [(10 * second, "a"), (10 * second + 1, "b")])  # an ASK waits for the next event
        with delivering(url, tmp_path, name) as board:
            until(lambda words=words, board=board: words in (board.present.fault or ""), "the fault")  # type: ignore[misc]
    assert len(written(tmp_path)) == 3


def test_wrong_settings_are_refused(tmp_path: Path) -> None:
    for given, words in (
        ("v", "once_per must be an object"),
        ({"variables": ["v"]}, "once_per.within"),
        ({"variables": "v", "within": 1}, "once_per.variables"),
    ):
        with pytest.raises(WrongOption, match=words):
            parse_connector("c", {"type": "delta", "query": "q", "path": "t", "once_per": given})
    with pytest.raises(WrongOption, match="once_per"):
        parse_connector("c", {"type": "files", "stream": "s", "path": "t", "once_per": ONCE})
    file = tmp_path / "c.toml"
    file.write_text('[connectors.c]\ntype = "delta"\nquery = "q"\npath = "t"\nonce_per = { variables = ["v"], within = 10 }\n')
    with pytest.raises(WrongOption, match="has once_per; give state too"):
        connect(file)


@pytest.mark.slow
def test_a_server_keeps_the_keys_over_a_restart_and_drops_them_with_the_connector(tmp_path: Path) -> None:
    options = {"type": "delta", "query": "q", "path": str(tmp_path / "t"), "columns": {"id": "id", "v": "?v", "end": "end"}, "once_per": ONCE}
    for feed, due in ((FEED[:4], DUE[:3]), (FEED[4:], DUE)):
        with serving(tmp_path / "data", connector_files=tmp_path) as url, closing(httpx.Client(base_url=url)) as http:
            client = Client(url)
            client.register("q", values("s"))
            if due != DUE:
                assert http.put("/connectors/c", json=options | {"every_s": 0.01}).status_code == 201
            send(client, "s", feed)
            until(lambda due=due: written(tmp_path) == due, "the alerts so far")  # type: ignore[misc]
            until(lambda: http.get("/connectors/c").json()["suppressed"] > 0, "the count")
            assert 'epsparql_connector_suppressed_total{connector="c"}' in http.get("/metrics").text
            (kept,) = (tmp_path / "data" / "sent-keys").glob("*.json")
            if due == DUE:
                assert http.delete("/connectors/c").status_code == 204
    assert not kept.exists()

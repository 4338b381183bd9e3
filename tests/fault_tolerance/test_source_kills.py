"""A server is killed with -9 while a connector without state of its own reads backlogs: each message is evaluated
once, in order, and none is late.
"""

from contextlib import ExitStack
from pathlib import Path
from random import Random
from threading import Timer

import pytest

from epsparql.client import Client, Solution, Source
from server.child_server import Child
from tests.server.conftest import COMPILING_S, event, moment, until, values
from tests.soak import is_full

pytestmark = pytest.mark.slow
SOURCES = ("readings:0", "readings:1")
MESSAGES = 1500 if is_full() else 200
"""Each source has so many messages, and each message one event."""


def read_on(client: Client, child: Child, chance: Random, life: int | None) -> bool:
    """Read the sources one after the other, from where the log stands; the server dies after `life` bodies.

    Return whether all is read.
    """
    positions, bodies = client.sources("default"), 0
    for k, source in enumerate(SOURCES):
        position = positions[source]
        at = int(position or 0)
        while at < MESSAGES:
            after = min(at + chance.randrange(1, 6), MESSAGES)
            body = "\n".join(event(2 * number + k) for number in range(at, after))
            if bodies == life:
                Timer(chance.uniform(0, 0.02), child.kill).start()
            try:
                client.send("default", body, source=Source(source, position, str(after)))
            except OSError:
                return False
            at, position, bodies = after, str(after), bodies + 1
    return True


def solutions(client: Client) -> list[Solution]:
    until(lambda: len(client.solutions("q", limit=10_000)) >= 2 * MESSAGES, "all solutions are there")
    return client.solutions("q", limit=10_000)


@pytest.mark.parametrize("store", [False, True])
def test_each_message_of_two_backlogs_is_evaluated_once(store: bool, tmp_path: Path) -> None:
    """The server is killed again and again; one with a store begins with an empty directory each time."""
    chance, kills, log = Random(5), 20 if is_full() else 2, tmp_path / "log"
    for life in range(kills + 1):
        with ExitStack() as stack:
            data = tmp_path / (f"data {life}" if store else "data")
            child = stack.enter_context(Child(data, "inprocess", log, extra=["--store", str(tmp_path / "store")] if store else []))
            client = Client(child.url)
            client.wait_ready(COMPILING_S)
            if not life:
                client.create_stream("default", sources=SOURCES)
                client.register("q", values("default"))
            dies = life < kills
            over = read_on(client, child, chance, chance.randrange(1, 2 * MESSAGES // (8 * kills)) if dies else None)
            assert over is not dies, "each life but the last ends in the middle of the backlogs"
            if not dies:
                client.finish("default")
                found, stream = solutions(client), client.stream("default")
                assert client.sources("default") == dict.fromkeys(SOURCES, str(MESSAGES))
    assert [each.end for each in found] == [moment(number) for number in range(2 * MESSAGES)]
    assert (stream["accepted"], stream["late"]) == (2 * MESSAGES, 0)
    assert "Traceback" not in log.read_text()

"""Clients of several servers: a request to one that is paused ends as soon as another serves, however long the client
would wait.
"""

import socket
import time
from collections.abc import Iterator

import pytest

from epsparql.client import Client

PATIENCE_S, SOON_S = 600.0, 30.0


@pytest.fixture
def paused() -> Iterator[str]:
    """The URL of a server that takes connections, as the system does for a process that is stopped, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_request_to_a_paused_server_goes_on_at_the_one_that_serves(paused: str, url: str) -> None:
    client, began = Client(f"{paused},{url}", patience_s=PATIENCE_S), time.monotonic()
    with pytest.raises(OSError, match=r"closed|reset"):
        client.request("GET", "/queries")
    assert client.request("GET", "/queries")[0] == 200
    assert time.monotonic() - began < SOON_S


def test_a_subscription_goes_on_at_the_one_that_serves(paused: str, url: str, name: str) -> None:
    Client(url).register(name, "SELECT * FROM STREAM <s> WHERE { ?s ?p ?o }")
    began = time.monotonic()
    with Client(f"{paused},{url}", patience_s=PATIENCE_S).follow(name) as subscription:
        subscription.open()
    assert time.monotonic() - began < SOON_S


def test_a_request_to_one_server_alone_waits(paused: str) -> None:
    with pytest.raises(TimeoutError):
        Client(paused, patience_s=-28.5).request("GET", "/queries")

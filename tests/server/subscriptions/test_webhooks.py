"""Webhooks: signed, in order, tried again, given up in sight, gone on with after a restart; and where they may not go."""

import asyncio
import base64
import hashlib
import hmac
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest

from epsparql.client import ApiError, Client, segment
from server.webhook_delivery.signing import sign_delivery
from server.webhook_delivery.target_policy import TargetPolicy, TargetRefused, explain_non_public, parse_target
from tests.server.conftest import event, serving, until, values
from tests.server.routes.test_streams import assert_problem
from tests.support.webhook_receiver import OK, Answer, Delivery, receiving

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
FAST = {"allow_hosts": ("127.0.0.1",), "webhook_first_s": 0.01, "webhook_longest_s": 0.05}


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("hooked"), webhook_attempts=3, max_webhooks=3, **FAST) as found:
        yield found


@pytest.fixture
def api(hooked: str) -> Client:
    return Client(hooked)


def put(api: Client, query: str, observer: str, **members: object) -> dict[str, Any]:
    _, _, content = api.request("PUT", path(query, observer), json.dumps(members), Content_Type="application/json")
    found: dict[str, Any] = json.loads(content)
    return found


def get(api: Client, query: str, observer: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(api.request("GET", path(query, observer))[2])
    return found


def path(query: str, observer: str) -> str:
    return f"/queries/{segment(query)}/observers/{segment(observer)}"


def send(api: Client, stream: str, first: int, beyond: int) -> None:
    api.send(stream, "\n".join(event(number) for number in range(first, beyond)))


def numbers(deliveries: list[Delivery]) -> list[int]:
    return [int(delivery.solution["binding"]["v"]["value"]) for delivery in deliveries]


def test_a_position_that_cannot_be_saved_ends_no_deliveries(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(tmp_path, **FAST) as url, receiving() as receiver:
        api = Client(url)
        api.register("q", values("s"))
        put(api, "q", "1", url=receiver.url)
        (file,) = (tmp_path / "observers").glob("*.json")
        in_the_way = file.with_suffix(".tmp")
        in_the_way.mkdir()
        send(api, "s", 0, 2)
        until(lambda: "continues in" in caplog.text, "the fault is told of")
        in_the_way.rmdir()
        until(lambda: bool(get(api, "q", "1")["delivered"] == 2), "both deliveries")
    assert numbers(receiver.taken) == [0, 1]


def test_deliveries_are_signed_in_order_and_those_to_come(api: Client, name: str, stream: str) -> None:
    api.register(name, values(stream))
    send(api, stream, 0, 3)
    until(lambda: api.query(name)["solutions"] == 3, "three solutions")
    with receiving() as receiver:
        made = put(api, name, "é/1", url=receiver.url + "?a=1")
        assert (made["state"], made["last"]) == ("active", api.query(name)["last"])
        send(api, stream, 3, 20)
        until(lambda: len(receiver.taken) == 17, "all deliveries")
        until(lambda: bool(get(api, name, "é/1")["delivered"] == 17), "the count")
        shown = get(api, name, "é/1")
        api.request("DELETE", path(name, "é/1"))
    assert numbers(receiver.taken) == list(range(3, 20))
    assert shown["last"] == api.query(name)["last"]
    assert shown["secret"] is None
    first = receiver.taken[0]
    signed = b".".join((first.headers["webhook-id"].encode(), first.headers["webhook-timestamp"].encode(), first.body))
    key = base64.b64decode(made["secret"].removeprefix("whsec_"))
    assert first.headers["webhook-signature"] == "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert json.loads(first.body)["timestamp"] == first.solution["end"]
    assert len({delivery.headers["webhook-id"] for delivery in receiver.taken}) == 17


def test_a_known_signature() -> None:
    """The example of the specification's reference libraries."""
    found = sign_delivery("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_failed_delivery_is_repeated_before_the_next(api: Client, name: str, stream: str) -> None:
    api.register(name, values(stream))

    def answer(number: int, _delivery: Delivery) -> Answer:
        return (503, {}) if number in (1, 2) else OK

    with receiving(answer) as receiver:
        put(api, name, "o", url=receiver.url, secret=SECRET)
        send(api, stream, 0, 3)
        until(lambda: len(receiver.taken) == 3, "all deliveries")
        api.drop(name)
    assert numbers(receiver.seen) == [0, 1, 1, 1, 2]
    again = receiver.seen[1:4]
    assert len({(delivery.headers["webhook-id"], delivery.body) for delivery in again}) == 1


def test_what_is_given_up_is_seen_and_can_be_had_again(api: Client, name: str, stream: str) -> None:
    api.register(name, values(stream))
    broken = [True]

    def answer(_number: int, delivery: Delivery) -> Answer:
        return (500, {}) if broken and numbers([delivery]) == [1] else OK

    with receiving(answer) as receiver:
        put(api, name, "o", url=receiver.url, secret=SECRET)
        send(api, stream, 0, 3)
        until(lambda: len(receiver.taken) == 2, "the others")
        until(lambda: bool(get(api, name, "o")["delivered"] == 2), "the count")
        shown = get(api, name, "o")
        assert (shown["given_up"], shown["state"]) == (1, "active")
        (dead,) = shown["dead"]
        assert (dead["attempts"], dead["error"]) == (3, "answered 500")
        ids = [solution.id for solution in api.solutions(name)]
        assert dead["id"] == ids[1]
        broken.clear()
        put(api, name, "o", url=receiver.url, after=ids[0])
        until(lambda: len(receiver.taken) == 4, "those after the first once more")
        api.drop(name)
    assert numbers(receiver.taken) == [0, 2, 1, 2]


def test_gone_disables_and_a_put_begins_again(api: Client, name: str, stream: str) -> None:
    api.register(name, values(stream))
    with receiving(lambda number, _delivery: (410, {}) if number == 0 else OK) as receiver:
        put(api, name, "o", url=receiver.url)
        send(api, stream, 0, 2)
        until(lambda: bool(get(api, name, "o")["state"] == "disabled"), "disabled")
        assert get(api, name, "o")["error"] == "answered 410"
        put(api, name, "o", url=receiver.url)
        until(lambda: len(receiver.taken) == 2, "both")
        api.drop(name)
    assert numbers(receiver.taken) == [0, 1]


@pytest.mark.parametrize("status", [400, 413, 414, 422, 431])
def test_a_message_that_its_receiver_will_never_take_holds_up_no_other(api: Client, name: str, stream: str, status: int) -> None:
    api.register(name, values(stream))
    with receiving(lambda _number, delivery: (status, {}) if numbers([delivery]) == [1] else OK) as receiver:
        put(api, name, "o", url=receiver.url)
        send(api, stream, 0, 3)
        until(lambda: bool(get(api, name, "o")["delivered"] == 2), "the others")
        (dead,) = get(api, name, "o")["dead"]
        api.drop(name)
    assert (dead["attempts"], dead["error"]) == (1, f"answered {status}")
    assert numbers(receiver.seen) == [0, 1, 2]


def test_a_change_that_a_full_disk_does_not_take_changes_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, **FAST) as url, receiving() as receiver, receiving() as other:
        api = Client(url, patience_s=0)
        api.register("q", values("s"))
        put(api, "q", "o", url=receiver.url)
        (file,) = (tmp_path / "observers").glob("*.json")
        file.with_suffix(".tmp").symlink_to("/dev/full")
        with pytest.raises(ApiError) as refused:
            put(api, "q", "o", url=other.url)
        assert (refused.value.status, refused.value.code) == (503, "disk-full")
        file.with_suffix(".tmp").unlink()
        send(api, "s", 0, 2)
        until(lambda: bool(get(api, "q", "o")["delivered"] == 2), "deliveries go on as before")
    assert (numbers(receiver.taken), other.seen) == ([0, 1], [])


def test_redirects_are_not_followed(api: Client, name: str, stream: str) -> None:
    api.register(name, values(stream))
    with receiving() as other, receiving(lambda _number, _delivery: (307, {"Location": other.url})) as receiver:
        put(api, name, "o", url=receiver.url)
        send(api, stream, 0, 1)
        until(lambda: bool(get(api, name, "o")["given_up"] == 1), "given up")
        assert "redirects are not followed" in get(api, name, "o")["dead"][0]["error"]
        api.drop(name)
    assert other.seen == []


def test_an_observer_goes_with_its_query_and_stays_with_a_replacement(api: Client, name: str, stream: str) -> None:
    api.register(name, values(stream))
    with receiving() as receiver:
        put(api, name, "o", url=receiver.url)
        api.register(name, values(stream) + " # new", replace=True)
        send(api, stream, 0, 2)
        until(lambda: len(receiver.taken) == 2, "the new one's solutions")
        api.drop(name)
        api.register(name, values(stream))
        with pytest.raises(ApiError, match="no webhook of this query named 'o'"):
            get(api, name, "o")
        assert json.loads(api.request("GET", f"/queries/{segment(name)}/observers")[2]) == {"observers": []}


def test_there_is_a_limit(api: Client, name: str, stream: str) -> None:
    api.register(name, values(stream))
    for number in range(3):
        put(api, name, str(number), url="http://127.0.0.1:1/")
    with pytest.raises(ApiError) as refused:
        put(api, name, "3", url="http://127.0.0.1:1/")
    assert refused.value.code == "too-many-observers"
    api.drop(name)


def test_a_restart_goes_on_where_deliveries_were(tmp_path: Path) -> None:
    down = [True]

    def answer(_number: int, delivery: Delivery) -> Answer:
        return (503, {}) if down and numbers([delivery]) == [1] else OK

    with receiving(answer) as receiver:
        with serving(tmp_path, **FAST, webhook_attempts=1000) as url:
            api = Client(url)
            api.register("q", values("default"))
            put(api, "q", "o", url=receiver.url, secret=SECRET)
            send(api, "default", 0, 3)
            until(lambda: len(receiver.seen) >= 3, "it is tried again")
        assert oct(next((tmp_path / "observers").glob("*.json")).stat().st_mode)[-3:] == "600"
        down.clear()
        with serving(tmp_path, **FAST) as url:
            send(Client(url), "default", 3, 4)
            until(lambda: len(receiver.taken) == 4, "the rest")
    assert numbers(receiver.taken) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("members", "status", "code"),
    [
        ({"url": "ftp://example.org/"}, 400, "invalid-url"),
        ({"url": "https:///x"}, 400, "invalid-url"),
        ({"url": "https://u:p@example.org/"}, 400, "invalid-url"),
        ({"url": "https://example.org/#x"}, 400, "invalid-url"),
        ({"url": "https://example.org:99999/"}, 400, "invalid-url"),
        ({"url": "http://a b/"}, 400, "invalid-url"),
        ({}, 400, "invalid-url"),
        ({"url": "https://example.org/", "secret": "hunter2"}, 400, "invalid-secret"),
        ({"url": "https://example.org/", "secret": "whsec_AAAA"}, 400, "invalid-secret"),
        ({"url": "http://127.0.0.1:1/", "after": "x"}, 400, "bad-id"),
        ({"url": "http://127.0.0.1:1/", "more": "x"}, 400, "unknown-member"),
        ({"url": "http://no-such-host.invalid/"}, 422, "target-refused"),
    ],
)
def test_wishes_that_cannot_be(hooked: str, api: Client, members: dict[str, str], status: int, code: str) -> None:
    api.register("wishes", values("wishes"))
    assert_problem(httpx.put(f"{hooked}/queries/wishes/observers/o", json=members), status, code)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.2", "0.0.0.0", "2130706434", "0x7f.2", "127.2", "017700000002", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "240.0.0.1", "[::1]", "[::]", "[fe80::1]", "[fc00::1]", "[ff02::1]",
        "[::ffff:127.0.0.2]", "[::ffff:10.0.0.1]", "[64:ff9b::7f00:2]", "[2002:7f00:2::1]", "[2001:db8::1]", "[::127.0.0.2]",
        "[fec0::1]", "[feff::1]", "[::ffff:0:127.0.0.2]", "[::7f00:2]", "[64:ff9b:1::7f00:2]", "[2001:0:7f00:2::1]", "[2001:20::1]", "[100::1]",
        "[3fff::1]", "[5f00::1]", "[4000::1]", "[400::1]", "[2606:4700::5efe:10.0.0.1]", "[2606:4700::200:5efe:10.0.0.1]", "192.88.99.1", "192.0.0.9",
    ],
)  # fmt: skip
def test_targets_that_are_not_public(hooked: str, api: Client, host: str) -> None:
    api.register("targets", values("targets"))
    assert_problem(httpx.put(f"{hooked}/queries/targets/observers/o", json={"url": f"http://{host}:8000/"}), 422, "target-refused")


@pytest.mark.parametrize("address", ["93.184.215.14", "192.31.196.1", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "::ffff:93.184.215.14"])
def test_public_addresses_are_not_refused(address: str) -> None:
    assert not explain_non_public(ip_address(address))


def test_names_of_this_machine() -> None:
    with pytest.raises(TargetRefused, match="this machine"):
        asyncio.run(TargetPolicy().resolve_target(parse_target("http://localhost/")))


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, list[str]]], list[str]]:
    """Has names under `.test` stand for addresses, the next one at each question: the name server is the attacker's.

    Gives the questions.
    """
    real, asked = socket.getaddrinfo, list[str]()

    def let(answers: dict[str, list[str]]) -> list[str]:
        def resolve(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
            if host in answers:
                asked.append(host)
                addresses = answers[host]
                host = addresses.pop(0) if len(addresses) > 1 else addresses[0]
            return real(host, port, *args, **kwargs)

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        return asked

    return let


def test_a_name_that_comes_to_stand_for_this_machine(api: Client, name: str, stream: str, names: Callable[[dict[str, list[str]]], list[str]]) -> None:
    names({"rebound.test": ["93.184.215.14", "127.0.0.2"]})
    api.register(name, values(stream))
    with receiving(host="127.0.0.2") as receiver:
        put(api, name, "o", url=receiver.url.replace("127.0.0.2", "rebound.test"))
        send(api, stream, 0, 1)
        until(lambda: bool(get(api, name, "o")["given_up"] == 1), "given up")
        assert "rebound.test (127.0.0.2) is this machine" in get(api, name, "o")["dead"][0]["error"]
        api.drop(name)
    assert receiver.seen == []


def test_the_address_that_was_checked_is_the_one_connected_to(tmp_path: Path, names: Callable[[dict[str, list[str]]], list[str]]) -> None:
    """A second question would lead to the other receiver."""
    asked = names({"pinned.test": ["127.0.0.2", "127.0.0.2", "127.0.0.3"]})
    with ExitStack() as stack:
        receiver = stack.enter_context(receiving(host="127.0.0.2"))
        port = int(receiver.url.rpartition(":")[2].partition("/")[0])
        other = stack.enter_context(receiving(host="127.0.0.3", port=port))
        api = Client(stack.enter_context(serving(tmp_path, allow_hosts=("127.0.0.2/31",))))
        api.register("q", values("default"))
        put(api, "q", "o", url=f"http://pinned.test:{port}/hook")
        send(api, "default", 0, 1)
        until(lambda: len(receiver.taken) == 1, "the delivery")
        assert asked == ["pinned.test"] * 2
        assert receiver.taken[0].headers["host"] == f"pinned.test:{port}"
    assert other.seen == []

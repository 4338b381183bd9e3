"""Webhooks with `once_per`: of the solutions with one key, one is delivered within a duration, whatever fails or
begins again.
"""

import re
from pathlib import Path

import pytest

from epsparql.client import ApiError, Client
from epsparql.solutions import once_per
from epsparql.solutions.once_per import OncePer, SentKeys, SolutionKey
from tests.server.conftest import EX, event, moment, serving, until, values
from tests.server.subscriptions.test_webhooks import FAST, get, put
from tests.support.webhook_receiver import OK, Answer, Delivery, receiving

ONCE = {"variables": ["v"], "within": "PT10S"}
FEED = [(0, "a"), (1, "b"), (4, "a"), (10, "a"), (11, "b"), (12, "a"), (19, "a"), (20, "a"), (22, "a")]
DUE = ["a@0", "b@1", "b@11", "a@12", "a@22"]
"""Two solutions of a key are sent if they are ten seconds apart, and a@10 is given up, so that a@12 is sent."""


def send(api: Client, stream: str, feed: list[tuple[int, str]]) -> None:
    api.send(stream, "\n".join(event(number, text) for number, text in feed))


def alerts(deliveries: list[Delivery]) -> list[str]:
    seconds = {moment(number): number for number in range(120)}
    return [f"{each.solution['binding']['v']['value']}@{seconds[each.solution['end']]}" for each in deliveries]


def test_repeats_are_left_out_over_failures_and_restarts(tmp_path: Path) -> None:
    """A failed delivery is tried again.

    One that is given up does not count as sent, so that the next of its key is due.
    """

    def answer(number: int, delivery: Delivery) -> Answer:
        if alerts([delivery]) == ["a@10"]:
            return 400, {}
        return (503, {}) if number in (0, 2) else OK

    with receiving(answer) as receiver:
        with serving(tmp_path, **FAST) as url:
            api = Client(url)
            api.register("q", values("s"))
            put(api, "q", "1", url=receiver.url, once_per=ONCE)
            send(api, "s", FEED[:3])
            until(lambda: bool(get(api, "q", "1")["suppressed"] == 1), "the first that is left out")
        with serving(tmp_path, **FAST) as url:
            api = Client(url)
            send(api, "s", FEED[3:])
            until(lambda: bool(get(api, "q", "1")["delivered"] == 5), "the end")
            shown = get(api, "q", "1")
            metrics = api.request("GET", "/metrics")[2].decode()
            put(api, "q", "1", url=receiver.url, once_per=ONCE, after=f"{0:016x}-{0:08x}")
            until(lambda: len(receiver.taken) == 10, "all that is due after the beginning, again")
    assert alerts(receiver.taken) == [*DUE, *DUE]
    assert (shown["once_per"], shown["suppressed"], shown["given_up"], shown["forgotten"]) == (ONCE, 3, 1, 0)
    assert "epsparql_webhook_suppressed 3.0" in metrics


BAD = [
    ("q", "v", "must be an object"),
    ("q", {"within": "PT1H"}, "once_per.variables must be 1 to 20 names"),
    ("q", {"variables": [], "within": "PT1H"}, "once_per.variables must be 1 to 20 names"),
    ("q", {"variables": ["sensor"], "within": "PT1H"}, "?sensor, which the query does not select; its variables are ?s, ?v"),
    ("q", {"variables": ["v"]}, "once_per.within must be a day-time duration"),
    ("q", {"variables": ["v"], "within": "P1M"}, 'not "P1M"'),
    ("q", {"variables": ["v"], "within": 0}, "longer than zero"),
    ("q", {"variables": ["v"], "within": True}, "not true"),
    ("q", {"variables": ["v"], "withn": "PT1H"}, "once_per.withn is not known; the nearest member is within"),
    ("q", {"variables": ["v"], "within": "PT1H", "until": "x"}, "once_per.until is not known"),
]


def test_what_no_key_can_be_taken_of_is_refused_and_another_setting_begins_anew(tmp_path: Path) -> None:
    with serving(tmp_path, **FAST) as url, receiving() as receiver:
        api = Client(url)
        api.register("q", values("s"))
        api.register("ask", "ASK FROM STREAM <s> WHERE { ?s ?p ?v }")
        for query, given, message in [*BAD, ("ask", ONCE, "once_per is for the solutions of a SELECT")]:
            with pytest.raises(ApiError, match=re.escape(message)) as refused:
                put(api, query, "1", url=receiver.url, once_per=given)
            assert (refused.value.status, refused.value.code) == (400, "bad-once-per")
        put(api, "q", "1", url=receiver.url, once_per={"variables": ["?v"], "within": 10})
        send(api, "s", [(0, "a"), (1, "a")])
        until(lambda: bool(get(api, "q", "1")["suppressed"] == 1), "the repeat")
        put(api, "q", "1", url=receiver.url, once_per=ONCE)
        send(api, "s", [(2, "a")])
        until(lambda: bool(get(api, "q", "1")["suppressed"] == 2), "the same setting goes on")
        put(api, "q", "1", url=receiver.url, once_per={"variables": ["s", "v"], "within": 10})
        send(api, "s", [(3, "a"), (4, "a")])
        until(lambda: bool(get(api, "q", "1")["suppressed"] == 3), "another setting begins anew")
        api.register("q", f"PREFIX : <{EX}> SELECT ?s FROM STREAM <s> WHERE {{ ?s :value ?w }}", replace=True)
        send(api, "s", [(5, "a"), (6, "a")])
        until(lambda: len(receiver.taken) == 4, "all solutions of a query without the variables")
    assert [each.solution["end"] for each in receiver.taken] == [moment(each) for each in (0, 3, 5, 6)]


def test_of_too_many_keys_those_that_suppress_nothing_go_first_and_then_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once_per, "MOST_KEYS", 3)
    sent, within = SentKeys(), 10
    for digest, end in (("a", 1), ("b", 11), ("c", 12), ("d", 12)):  # a suppresses nothing that ends at 12 or later
        assert not sent.is_repeat(SolutionKey(digest, end), within)
        sent.record_sent(SolutionKey(digest, end), within)
    assert (sent.ends, sent.forgotten) == ({"b": 11, "c": 12, "d": 12}, 0)
    sent.record_sent(SolutionKey("e", 13), within)
    assert (sent.ends, sent.forgotten) == ({"c": 12, "d": 12, "e": 13}, 1)
    sent.record_sent(SolutionKey("e", 5), within)  # a late one does not shorten what it is closed for
    assert [sent.is_repeat(SolutionKey("e", end), within) for end in (22, 23)] == [True, False]


def test_keys_are_told_apart_by_terms_and_an_unbound_variable_is_one() -> None:
    setting, id_ = OncePer(("x", "y"), 1), f"{(1 << 63) + 7:016x}-{0:08x}"
    one = {"type": "literal", "value": "1"}
    bindings = [{}, {"x": one}, {"y": one}, {"x": {"type": "uri", "value": "1"}}, {"x": one | {"datatype": "d"}}, {"x": one | {"xml:lang": "en"}}]
    keys = [setting.make_key({"id": id_, "binding": binding | {"z": one}}) for binding in bindings]
    assert len({key.digest for key in keys}) == len(bindings)
    assert {key.end for key in keys} == {7}
    assert setting.make_key({"id": id_, "binding": {"x": dict(reversed((one | {"datatype": "d"}).items()))}}) == keys[4]

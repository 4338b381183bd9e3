"""Templates of webhooks: what each kind of receiver gets, what is refused at the PUT, what a receiver says, and test
messages.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from epsparql.client import Client, segment
from server.webhook_delivery.templates import CUSTOM, Template, render_message
from tests.server.conftest import EX, event, moment, serving, until, values
from tests.server.routes.test_streams import assert_problem
from tests.server.subscriptions.test_webhooks import FAST, get, path, put, send
from tests.support.webhook_receiver import OK, WORDS, Answer, Delivery, Receiver, receiving

KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("templates"), webhook_attempts=2, **FAST) as found:
        yield found


@pytest.fixture
def api(hooked: str) -> Client:
    return Client(hooked)


def deliver(api: Client, query: str, receiver: Receiver, texts: list[str], **members: Any) -> list[Delivery]:
    """Register a query for all values, and return what is posted for events with these values."""
    stream = query.replace(" ", "_")
    api.register(query, values(stream))
    put(api, query, "o", url=receiver.url, **members)
    api.send(stream, "\n".join(event(number, text) for number, text in enumerate(texts)))
    until(lambda: len(receiver.taken) == len(texts), "all deliveries")
    return receiver.taken


def test_slack_gets_a_message_for_each_solution_in_order(api: Client) -> None:
    with receiving() as receiver:
        taken = deliver(api, "to slack", receiver, ["8.5", "a<b & c>", "7"], template="slack")
    texts = [json.loads(delivery.body) for delivery in taken]
    assert texts[0] == {"text": f"*to slack* {moment(0)}\n• s: {EX}s\n• v: 8.5"}
    assert [each["text"].rpartition(": ")[2] for each in texts] == ["8.5", "a&lt;b &amp; c&gt;", "7"]
    assert taken[0].headers["content-type"] == "application/json"
    assert {"webhook-id", "webhook-signature", "webhook-timestamp"} <= taken[0].headers.keys()


def test_teams_gets_an_adaptive_card(api: Client) -> None:
    with receiving() as receiver:
        (delivery,) = deliver(api, "teams", receiver, ["8.5"], template="teams")
    message = json.loads(delivery.body)
    (attachment,) = message["attachments"]
    assert (message["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    title, when, facts = attachment["content"]["body"]
    assert (title["text"], when["text"]) == ("teams", moment(0))
    assert facts["facts"] == [{"title": "s", "value": f"{EX}s"}, {"title": "v", "value": "8.5"}]


def test_pagerduty_gets_an_alert_and_its_key_is_shown_nowhere(api: Client) -> None:
    with receiving() as receiver:
        (delivery,) = deliver(api, "pager", receiver, ["8.5"], template="pagerduty", routing_key=KEY)
        put(api, "pager", "o", url=receiver.url, template="pagerduty")
        send(api, "pager", 1, 2)
        until(lambda: len(receiver.taken) == 2, "a delivery with the stored key")
        shown = get(api, "pager", "o")
    alert = json.loads(delivery.body)
    assert (alert["routing_key"], alert["event_action"], alert["dedup_key"]) == (KEY, "trigger", delivery.headers["webhook-id"])
    assert alert["payload"]["summary"] == f"pager: s {EX}s, v 8.5"
    assert (alert["payload"]["severity"], alert["payload"]["timestamp"]) == ("warning", moment(0))
    assert alert["payload"]["custom_details"]["v"] == "8.5"
    assert json.loads(receiver.taken[1].body)["routing_key"] == KEY
    assert shown["template"] == "pagerduty"
    assert KEY not in json.dumps(shown)


def test_cloudevents_are_headers_and_the_solution_is_the_data(api: Client) -> None:
    with receiving() as receiver:
        (delivery,) = deliver(api, "é cloud", receiver, ["8.5"], template="cloudevents")
    found = {name: value for name, value in delivery.headers.items() if name.startswith("ce-")}
    assert found == {
        "ce-specversion": "1.0",
        "ce-id": delivery.headers["webhook-id"],
        "ce-source": f"/queries/{segment('é cloud')}",
        "ce-type": "epsparql.solution",
        "ce-time": moment(0),
    }
    assert json.loads(delivery.body)["binding"]["v"]["value"] == "8.5"


def test_a_template_of_ones_own_stays_json_whatever_the_values_are(api: Client) -> None:
    value = 'say \\ "hi" {id} é'
    hard = json.dumps(json.dumps(value)[1:-1])[1:-1]  # in N-Triples, and that in JSON
    body = '{"text": "{v} at {end} of {query}, {{v}}", "v": {v}, "none": null}'
    with receiving() as receiver:
        (delivery,) = deliver(
            api, "own", receiver, [hard], template={"content_type": "application/vnd.x+json", "body": body, "headers": {"X-Value": "v={v}"}}
        )
        shown = get(api, "own", "o")["template"]
    assert json.loads(delivery.body) == {"text": f"{value} at {moment(0)} of own, {{v}}", "v": value, "none": None}
    assert delivery.headers["content-type"] == "application/vnd.x+json"
    assert delivery.headers["x-value"] == 'v=say \\ "hi" {id} %C3%A9'
    assert shown == {"content_type": "application/vnd.x+json", "body": body, "headers": ["X-Value"]}


def test_a_body_given_as_json_and_one_of_plain_text(api: Client) -> None:
    with receiving() as receiver:
        api.register("two", values("two"))
        put(api, "two", "json", url=receiver.url, template={"body": {"text": "v is {v}"}})
        put(api, "two", "text", url=receiver.url, template={"content_type": "text/plain", "body": "{v} {"})
        send(api, "two", 5, 6)
        until(lambda: len(receiver.taken) == 2, "both deliveries")
    assert sorted(delivery.body for delivery in receiver.taken) == [b"5 {", b'{"text": "v is 5"}']


XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({"type": "literal", "value": "8.5", "datatype": XSD + "decimal"}, 8.5),
        ({"type": "literal", "value": "true", "datatype": XSD + "boolean"}, True),
        ({"type": "literal", "value": "+5", "datatype": XSD + "integer"}, "+5"),
        ({"type": "literal", "value": "INF", "datatype": XSD + "double"}, "INF"),
        ({"type": "literal", "value": "5"}, "5"),
        ({"type": "bnode", "value": "b"}, "_:b"),
        (None, None),
    ],
)
def test_values_outside_of_strings(term: dict[str, str] | None, expected: object) -> None:
    line = {"query": "q", "id": "i", "start": "s", "end": "e", "binding": {} if term is None else {"v": term}}
    message = render_message(Template(CUSTOM, "application/json", '{"v": {v}}'), "i", json.dumps(line))
    assert json.loads(message.body) == {"v": expected}


def test_without_a_template_again_the_body_is_ours(api: Client) -> None:
    with receiving() as receiver:
        deliver(api, "back", receiver, ["1"], template="slack")
        put(api, "back", "o", url=receiver.url)
        send(api, "back", 5, 6)
        until(lambda: len(receiver.taken) == 2, "the second delivery")
        assert get(api, "back", "o")["template"] is None
    assert receiver.taken[1].solution["binding"]["v"]["value"] == "5"


@pytest.mark.parametrize(
    ("members", "code", "told"),
    [
        ({"template": "slak"}, "bad-template", "'slack'"),
        ({"template": 5}, "bad-template", "no template 5"),
        ({"template": "pagerduty"}, "bad-template", "routing_key"),
        ({"template": "slack", "routing_key": KEY}, "invalid-member", "routing_key"),
        ({"template": {}}, "bad-template", "body is missing"),
        ({"template": {"body": "x", "bdy": 1}}, "unknown-member", "nearest member is body"),
        ({"template": {"body": '{"a": "{valu}"}'}}, "bad-placeholder", "nearest placeholder is {value}"),
        ({"template": {"body": "{}", "headers": {"X": "{stat}"}}}, "bad-placeholder", "nearest placeholder is {start}"),
        ({"template": {"body": '{"a": x{value}}'}}, "bad-template", "no JSON"),
        ({"template": {"body": "{value}" * 101, "content_type": "text/plain"}}, "bad-template", "101 placeholders"),
        ({"template": {"body": "{}", "headers": {"Webhook-Id": "1"}}}, "bad-template", "'Webhook-Id'"),
        ({"template": {"body": "{}", "headers": {"a b": "1"}}}, "bad-template", "'a b'"),
        ({"template": {"body": "{}", "headers": {"X": "1\r\nY: 2"}}}, "bad-template", "one line"),
        ({"template": {"body": "{}", "headers": {"X": 1}}}, "invalid-member", "headers.X"),
        ({"template": {"body": "{}", "headers": []}}, "invalid-member", "headers"),
        ({"template": {"body": "{}", "content_type": "json"}}, "bad-template", "content_type"),
        ({"template": {"body": ["\ud800"]}}, "invalid-member", "surrogate"),
    ],
)
def test_templates_that_cannot_be(hooked: str, api: Client, members: dict[str, Any], code: str, told: str) -> None:
    api.register("refused", f"PREFIX : <{EX}> SELECT ?value WHERE {{ ?s :value ?value }}")
    answer = httpx.put(
        f"{hooked}/queries/refused/observers/o",
        content=json.dumps({"url": "http://127.0.0.1:1/", **members}),
        headers={"Content-Type": "application/json"},
    )
    assert told in str(assert_problem(answer, 400, code)["detail"])


def test_the_receivers_words_are_in_the_status(api: Client, hooked: str) -> None:
    def answer(_number: int, delivery: Delivery) -> Answer:
        return 400, {WORDS: "invalid_payload:\n\x1b " + delivery.headers["authorization"] + "x" * 600}

    with receiving(answer) as receiver:
        api.register("words", values("words"))
        put(api, "words", "o", url=receiver.url, template={"body": "{}", "headers": {"Authorization": "Bearer hunter2-hunter2"}})
        send(api, "words", 0, 1)
        until(lambda: bool(get(api, "words", "o")["given_up"] == 1), "given up")
        shown = get(api, "words", "o")
    assert shown["error"] == f"answered 400: {('invalid_payload: Bearer …' + 'x' * 600)[:500]}"
    assert shown["dead"][0]["error"] == shown["error"]


TOO_LARGE = [
    pytest.param("largebody", {"body": {"text": "{v}" * 50}}, {"text": "1" * 50}, "more than 1048576 characters", id="body"),
    pytest.param(
        "largehead",
        {"body": {"text": "{v}"}, "headers": {"X-Value": "{v}"}},
        {"text": "1"},
        "headers have more than 8192 bytes .* put long values into",
        id="headers",
    ),
]


@pytest.mark.parametrize(("name", "template", "body", "fault"), TOO_LARGE)
def test_a_solution_too_large_for_its_template_is_given_up_and_the_next_comes(
    api: Client, name: str, template: object, body: object, fault: str
) -> None:
    with receiving() as receiver:
        api.register(name, values(name))
        put(api, name, "o", url=receiver.url, template=template)
        api.send(name, event(0, "x" * 30_000) + "\n" + event(1))
        until(lambda: len(receiver.taken) == 1, "the next one")
        assert re.search(fault, get(api, name, "o")["dead"][0]["error"])
    assert json.loads(receiver.taken[0].body) == body


def tried(hooked: str, query: str) -> dict[str, Any]:
    answer = httpx.post(f"{hooked}{path(query, 'o')}/test")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("template", [None, "slack", "teams", "pagerduty", "cloudevents", {"body": '{"text": "{v} {id}"}'}])
def test_a_test_message_is_marked_and_changes_nothing(hooked: str, api: Client, template: Any) -> None:
    api.register("try", values("try"))
    with receiving(lambda number, _delivery: (200, {WORDS: "ok"}) if number == 0 else (404, {WORDS: "no_service"})) as receiver:
        put(api, "try", "o", url=receiver.url, **{"template": template, **({"routing_key": KEY} if template == "pagerduty" else {})})
        before = get(api, "try", "o")
        told = tried(hooked, "try")
        assert (told["delivered"], told["status"], told["answer"], told["error"]) == (True, 200, "ok", None)
        refused = tried(hooked, "try")
        assert (refused["delivered"], refused["status"], refused["answer"]) == (False, 404, "no_service")
        assert refused["error"] == "answered 404: no_service"
        assert get(api, "try", "o") == before
    seen = receiver.seen[0]
    assert seen.headers["webhook-id"] == told["id"]
    assert told["id"].startswith("test-")
    assert "test" in seen.body.decode()
    assert seen.headers.get("ce-type", "epsparql.test") == "epsparql.test"


@pytest.mark.parametrize(
    ("query", "member"),
    [
        ("CONSTRUCT {{ ?s :seen ?v }} INTO STREAM <t> FROM STREAM <s> WHERE {{ ?s :value ?v }}", "triples"),
        ("ASK FROM STREAM <s> {{ ?s :value 9 }}", "boolean"),
    ],
)
def test_a_test_of_other_forms(hooked: str, api: Client, query: str, member: str) -> None:
    api.register(member, f"PREFIX : <{EX}> " + query.replace("{{", "{").replace("}}", "}"))
    with receiving() as receiver:
        for template in (None, "slack"):
            put(api, member, "o", url=receiver.url, template=template)
            assert tried(hooked, member)["delivered"]
    assert member in receiver.seen[0].solution


def test_a_test_without_an_answer_and_of_an_unknown_webhook(hooked: str, api: Client) -> None:
    api.register("silent", values("silent"))
    put(api, "silent", "o", url="http://127.0.0.1:1/")
    told = tried(hooked, "silent")
    assert (told["delivered"], told["status"], told["answer"]) == (False, None, None)
    assert told["error"]
    assert_problem(httpx.post(f"{hooked}{path('silent', 'p')}/test"), 404, "unknown-observer")


def test_a_rejected_delivery_is_repeated_with_the_same_body(api: Client) -> None:
    with receiving(lambda number, _delivery: (429, {"Retry-After": "0", WORDS: "rate_limited"}) if number == 0 else OK) as receiver:
        deliver(api, "limited", receiver, ["1", "2"], template="slack")
    assert receiver.seen[0].body == receiver.seen[1].body
    assert [json.loads(delivery.body)["text"][-1] for delivery in receiver.taken] == ["1", "2"]

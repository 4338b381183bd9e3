"""Makes the content of a webhook's requests: ours, that of a kind of receiver, or that of a template of the user's own.

In a template, `{name}` stands for a variable or a word of WORDS, and `{{name}}` for the text `{name}`. Bodies of JSON
stay JSON whatever the values are: inside a string a placeholder is escaped, and outside it is written as a JSON
value.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any
from urllib.parse import quote

from epsparql.deferred_methods import dataclass
from epsparql.solutions.solution import term_of
from server.http.path_names import encode_name

SLACK, TEAMS, PAGERDUTY, CLOUDEVENTS, CUSTOM = "slack", "teams", "pagerduty", "cloudevents", "custom"
KINDS = (SLACK, TEAMS, PAGERDUTY, CLOUDEVENTS)
WORDS = ("query", "id", "start", "end")
"""These placeholders are the solution's own in every template; a variable of the same name is hidden."""
SOLUTION, TEST, PROMOTED = "epsparql.solution", "epsparql.test", "epsparql.promoted"
JSON = "application/json"
_MOST_CHARACTERS = 1 << 20
_MOST_HEADERS = 8 << 10
"""The headers that a template makes of a solution have at most so many bytes, names included: receivers often take no
more.
"""
_FACTS, _FACT, _SUMMARY = 20, 300, 1024  # lines of a chat message, characters of each, and characters of PagerDuty's summary
PLACEHOLDER = re.compile(r"\{\{(?P<literal>\w+)\}\}|\{(?P<name>\w+)\}")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SECRET = 8  # a word of a header with so many characters may be a secret
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false")
_XSD = "http://www.w3.org/2001/XMLSchema#"
_UNQUOTED = {_XSD + name for name in ("integer", "decimal", "double", "float", "boolean", "int", "long", "short", "byte", "nonNegativeInteger")}


@dataclass(frozen=True, slots=True)
class Template:
    """Says what a webhook posts.

    Only the kind `custom` has a content type, a body and headers, and only `pagerduty` has a routing key.
    """

    kind: str
    content_type: str = ""
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    routing_key: str = ""

    def secrets(self) -> list[str]:
        """Return what no message and no answer of the API may show."""
        words = [word for value in self.headers.values() for word in value.split() if len(word) >= _SECRET]
        return [*words, self.routing_key] if self.routing_key else words


@dataclass(frozen=True, slots=True)
class DeliveryContent:
    """Holds what is posted: its id, which stays the same at each attempt, the headers that describe the body, and the
    body.
    """

    id: str
    headers: dict[str, str]
    body: bytes


class MessageTooLarge(Exception):
    """Reports a solution that makes a message of more characters than are posted."""


def render_notice(message_id: str, line: str) -> DeliveryContent:
    """Return the message for a notice, which only a webhook without a template is sent."""
    at = json.loads(line)["at"]
    return DeliveryContent(message_id, {"Content-Type": JSON}, f'{{"type":"{PROMOTED}","timestamp":"{at}","data":{line}}}'.encode())


def render_message(template: Template | None, message_id: str, line: str, *, is_test: bool = False) -> DeliveryContent:
    """Return the message for a solution, given as a line of ndjson. Raises: MessageTooLarge."""
    event, solution = TEST if is_test else SOLUTION, json.loads(line)
    if template is None:
        return DeliveryContent(message_id, {"Content-Type": JSON}, f'{{"type":"{event}","timestamp":"{solution["end"]}","data":{line}}}'.encode())
    mark = "[test] " if is_test else ""
    match template.kind:
        case "slack":
            body = json.dumps({"text": _write_slack_text(mark, solution)}, ensure_ascii=False)
        case "teams":
            body = json.dumps(_make_teams_card(mark, solution), ensure_ascii=False)
        case "pagerduty":
            body = json.dumps(_make_pagerduty_event(template.routing_key, message_id, mark, solution), ensure_ascii=False)
        case "cloudevents":
            return DeliveryContent(message_id, _make_cloudevents_headers(event, message_id, solution), line.encode())
        case _:
            return _fill_template(template, message_id, solution)
    return DeliveryContent(message_id, {"Content-Type": JSON}, body.encode())


# ---------------------------------------------------------------- kinds of receivers
def _write_slack_text(mark: str, solution: Mapping[str, Any]) -> str:
    """Return a message of Slack's mrkdwn, in which three characters are escaped."""
    lines = [f"*{_escape(mark + solution['query'])}* {_describe_time(solution)}"]
    lines += [f"• {_escape(name)}: {_escape(text)}" for name, text in _list_facts(solution)]
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _make_teams_card(mark: str, solution: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with an adaptive card, which a workflow of Teams posts."""
    title = {"type": "TextBlock", "text": mark + solution["query"], "weight": "Bolder", "size": "Medium", "wrap": True}
    when = {"type": "TextBlock", "text": _describe_time(solution), "isSubtle": True, "wrap": True}
    facts = {"type": "FactSet", "facts": [{"title": name, "value": text} for name, text in _list_facts(solution)]}
    schema = "http://adaptivecards.io/schemas/adaptive-card.json"
    card = {"$schema": schema, "type": "AdaptiveCard", "version": "1.4", "body": [title, when, facts]}
    return {"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}]}


def _make_pagerduty_event(key: str, message_id: str, mark: str, solution: Mapping[str, Any]) -> dict[str, Any]:
    """Return an alert of PagerDuty's Events API v2. Its `dedup_key` makes one alert of repeated deliveries."""
    facts = dict(_list_facts(solution))
    summary = f"{mark}{solution['query']}: " + ", ".join(f"{name} {text}" for name, text in facts.items())
    return {
        "routing_key": key,
        "event_action": "trigger",
        "dedup_key": message_id,
        "payload": {
            "summary": summary[:_SUMMARY],
            "source": "epsparql",
            "severity": "info" if mark else "warning",
            "timestamp": solution["end"],
            "custom_details": {"start": solution["start"], "end": solution["end"], **facts},
        },
    }


def _make_cloudevents_headers(event: str, message_id: str, solution: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of CloudEvents 1.0 in the binary mode of HTTP; the body is the event's data."""
    return {
        "Content-Type": JSON,
        "ce-specversion": "1.0",
        "ce-id": message_id,
        "ce-source": f"/queries/{encode_name(solution['query'])}",
        "ce-type": event,
        "ce-time": solution["end"],
    }


def _describe_time(solution: Mapping[str, Any]) -> str:
    start, end = solution["start"], solution["end"]
    return str(end) if start == end else f"{start} to {end}"


def _list_facts(solution: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a person reads of a solution: at most _FACTS lines, each of at most _FACT characters, and how many
    more there are.
    """
    if "triples" in solution:
        found = [(f"triple {number}", line) for number, line in enumerate(solution["triples"].splitlines(), 1)]
    elif "boolean" in solution:
        found = [("answer", "yes" if solution["boolean"] else "no")]
    else:
        found = [(name, _write_term(term)) for name, term in solution["binding"].items()]
    shown = [(name, text if len(text) <= _FACT else f"{text[:_FACT]}…") for name, text in found[:_FACTS]]
    return shown if len(found) <= _FACTS else [*shown, ("more", f"{len(found) - _FACTS} not shown")]


def _write_term(term: Mapping[str, Any]) -> str:
    """Return a term as SPARQL's CSV results write it: bare."""
    if term["type"] == "triple":
        return str(term_of(term))
    return f"_:{term['value']}" if term["type"] == "bnode" else str(term["value"])


# ---------------------------------------------------------------- templates of users
def _fill_template(template: Template, message_id: str, solution: Mapping[str, Any]) -> DeliveryContent:
    """Fill a custom template.

    A variable that the solution does not bind is an empty text, or null outside of JSON's strings.
    """
    terms: dict[str, Mapping[str, Any]] = dict(solution.get("binding", {}))
    terms |= {word: {"type": "literal", "value": solution[word]} for word in WORDS}
    headers = _fill_headers(template.headers, terms)
    body = (fill_json if is_json(template.content_type) else _fill_text)(template.body, terms)
    return DeliveryContent(message_id, {**headers, "Content-Type": template.content_type}, body.encode())


def _fill_headers(headers: Mapping[str, str], terms: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return headers with the values of a solution. Raises: MessageTooLarge."""
    filled, room = dict[str, str](), _MOST_HEADERS
    for name, value in headers.items():
        filled[name] = quote(_fill_text(value, terms), safe=_PRINTABLE).strip()
        room -= len(name) + len(filled[name])
        if room < 0:
            detail = f"the template's headers have more than {_MOST_HEADERS} bytes with the values of this solution"
            raise MessageTooLarge(f"{detail}; put long values into the body")
    return filled


_PRINTABLE = "".join(map(chr, range(32, 127)))
"""These characters stand in headers as they are; others are percent-encoded as UTF-8, so that no value begins another
header.
"""


def is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == JSON or media_type.endswith("+json")


def _text_of(terms: Mapping[str, Mapping[str, Any]], name: str) -> str:
    return _write_term(terms[name]) if name in terms else ""


def _fill_text(text: str, terms: Mapping[str, Mapping[str, Any]]) -> str:
    return _fill(text, lambda name: _text_of(terms, name))


def fill_json(text: str, terms: Mapping[str, Mapping[str, Any]]) -> str:
    """Fill a JSON text, its strings and what is outside of them in turn."""
    return "".join(_each_filled(text, terms))


def _each_filled(text: str, terms: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    def escape(name: str) -> str:
        return json.dumps(_text_of(terms, name), ensure_ascii=False)[1:-1]

    def write_value(name: str) -> str:
        if name not in terms:
            return "null"
        term, written = terms[name], _write_term(terms[name])
        is_plain = term.get("datatype") in _UNQUOTED and _NUMBER.fullmatch(written)
        return written if is_plain else json.dumps(written, ensure_ascii=False)

    at, room = 0, _MOST_CHARACTERS
    for string in [*_STRING.finditer(text), None]:
        outside = _fill(text[at : string.start() if string else None], write_value, room)
        inside = _fill(string[0], escape, room - len(outside)) if string else ""
        room -= len(outside) + len(inside)
        yield outside + inside
        at = string.end() if string else at


def _fill(text: str, write: Callable[[str], str], most: int = _MOST_CHARACTERS) -> str:
    """Replace placeholders by what `write` returns. Raises: MessageTooLarge."""
    left = most - len(text)

    def fill_placeholder(found: re.Match[str]) -> str:
        nonlocal left
        written = f"{{{found['literal']}}}" if found["name"] is None else write(found["name"])
        left -= len(written)
        if left < 0:
            raise MessageTooLarge(
                f"the template makes a message of more than {_MOST_CHARACTERS} characters of this solution; use fewer or shorter values"
            )
        return written

    return PLACEHOLDER.sub(fill_placeholder, text)

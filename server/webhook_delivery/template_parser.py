"""Reads the template of a webhook from a request, and checks it.

So a fault is reported at the PUT and not at the first solution.
"""

import json
import re
from collections.abc import Sequence
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

from server.http.body_parsing import read_text_member
from server.http.problem_details import Fault, Problem, bad_request
from server.webhook_delivery.templates import CUSTOM, JSON, KINDS, PAGERDUTY, PLACEHOLDER, WORDS, Template, fill_json, is_json

_MEMBERS = ("content_type", "body", "headers")
_MOST_PLACEHOLDERS, _MOST_HEADERS, _LONGEST_HEADER = 100, 20, 2000
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[^\x00-\x1f\x7f]*")
_OURS = (
    "host",
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "accept-encoding",
    "user-agent",
    "te",
    "trailer",
    "upgrade",
    "expect",
)


def parse_template(found: dict[str, Any], names: Sequence[str], known: Template | None) -> Template | None:
    """Return the template that a request wishes, if any, for a query with the variables `names`.

    The routing key of the `known` template stays unless another one is given. Raises: Fault 400.
    """
    wished, key = found.get("template"), read_text_member(found, "routing_key", "")
    if key and wished != PAGERDUTY:
        raise bad_request("invalid-member", "routing_key belongs to the template pagerduty", expected='"template": "pagerduty"')
    if wished is None:
        return None
    if isinstance(wished, dict):
        template = _parse_custom_template(wished)
        _check_placeholders(template, names)
        return template
    if wished not in KINDS:
        near = get_close_matches(str(wished)[:100], KINDS, n=1, cutoff=0.0)[0]
        detail = f"there is no template {json.dumps(wished)[:100]}; the nearest one is {near!r}"
        raise bad_request("bad-template", detail, expected=", ".join(KINDS) + ", or an object with content_type, body and headers")
    key = key or (known.routing_key if known else "")
    if wished == PAGERDUTY and not key:
        detail = "the template pagerduty needs routing_key, the integration key of the service in PagerDuty"
        raise bad_request("bad-template", detail, expected="routing_key")
    return Template(wished, routing_key=key if wished == PAGERDUTY else "")


def _parse_custom_template(wished: dict[str, Any]) -> Template:
    """Return a template of the user's own. Its body may be given as JSON in place of text. Raises: Fault 400."""
    for name in wished:
        if name not in _MEMBERS:
            near = get_close_matches(name[:100], _MEMBERS, n=1, cutoff=0.0)[0]
            raise bad_request("unknown-member", f"template.{name[:100]} is not known; the nearest member is {near}", expected=", ".join(_MEMBERS))
    body = wished.get("body")
    if isinstance(body, dict | list):
        body = json.dumps(body, ensure_ascii=False)
    if not body:
        raise bad_request("bad-template", "template.body is missing", expected="a text or a JSON object with placeholders such as {id}")
    content_type = _check_header(
        "content_type", read_text_member({"template.content_type": wished.get("content_type", JSON)}, "template.content_type", JSON)
    )
    headers = wished.get("headers", {})
    if not isinstance(headers, dict) or len(headers) > _MOST_HEADERS:
        raise bad_request(
            "invalid-member", f"template.headers must be an object of at most {_MOST_HEADERS} headers", expected='{"Authorization": "…"}'
        )
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or name.lower() in _OURS or name.lower().startswith("webhook-"):
            detail = f"template.headers has {name[:100]!r}, which is no name of a header or one that the server sets"
            raise bad_request("bad-template", detail, expected="names of other headers; the type of the body is content_type")
        _check_header(f"headers.{name}", read_text_member({f"template.headers.{name}": value}, f"template.headers.{name}", ""))
    return Template(CUSTOM, content_type, read_text_member({"template.body": body}, "template.body", ""), headers)


def _check_header(place: str, value: str) -> str:
    """Return the value of a header. Raises: Fault 400 for a value with line ends, or too long."""
    if not _VALUE.fullmatch(value) or len(value) > _LONGEST_HEADER or (place == "content_type" and not (value.isascii() and "/" in value)):
        detail = f"template.{place} must be one line of at most {_LONGEST_HEADER} characters"
        raise bad_request("bad-template", detail, expected="a media type" if place == "content_type" else "one line of text")
    return value


def _check_placeholders(template: Template, names: Sequence[str]) -> None:
    """Check that placeholders are known, and that a body of JSON is one.

    Raises: Fault 400 with the nearest placeholder, or the place.
    """
    texts = {"body": template.body, **{f"headers.{name}": value for name, value in template.headers.items()}}
    known, count = [*names, *WORDS], 0
    for place, text in texts.items():
        for found in PLACEHOLDER.finditer(text):
            count += 1
            name = found["name"]
            if name is not None and name not in known:
                near = get_close_matches(name[:100], known, n=1, cutoff=0.0)[0]
                detail = f"template.{place}: the query has no variable {name[:100]!r}; the nearest placeholder is {{{near}}}"
                raise bad_request("bad-placeholder", detail, expected=", ".join(f"{{{each}}}" for each in known) + "; {{…}} writes a name in braces")
    if count > _MOST_PLACEHOLDERS:
        raise bad_request("bad-template", f"the template has {count} placeholders; it may have {_MOST_PLACEHOLDERS}")
    if is_json(template.content_type):
        try:
            json.loads(fill_json(template.body, {}))
        except (ValueError, RecursionError) as error:
            line, column = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (None, None)
            detail = "template.body is no JSON once its placeholders are filled, as its content_type says"
            raise Fault(Problem(HTTPStatus.BAD_REQUEST, "bad-template", detail, line, column, "JSON, or another content_type")) from None

"""The server keeps to its own OpenAPI document, whatever it is asked: schemathesis makes the requests, and judges the
answers.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import schemathesis.specs.openapi.adapter.parameters
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from epsparql.client import Client
from server.app import create_app, document
from server.cli.openapi_doc import _never
from tests.server.conftest import event, serving, until, values
from tests.soak import is_full

pytestmark = pytest.mark.filterwarnings(  # the server's threads are of this process: they lift the limit while they read a query, and draw numbers
    "ignore:The recursion limit will not be reset:hypothesis.errors.HypothesisWarning",
    "ignore:Do not use the `random` module inside strategies:hypothesis.errors.HypothesisDeprecationWarning",
)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance, response_schema_conformance]
EXAMPLES = 25 if is_full() else 3  # of each operation
KNOWN: dict[str, Any] = {"name": "0", "id": "0", "instance": "0", "version": 1, "signal": "logs"}
"""These are names of what is there, so that not all that is asked for is unknown."""


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with serving(
        tmp_path_factory.mktemp("described"), max_wait_s=0.05, max_body=10_000, max_query=10_000, max_queries=50, allow_hosts=("127.0.0.1",)
    ) as url:
        client = Client(url)
        client.register("0", values("0"))
        client.send("0", event(1) + "\n" + event(2))
        until(lambda: client.query("0")["solutions"] == 2, "solutions")
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


OPERATIONS = [
    (path, method)
    for path, operations in document(create_app(_never))["paths"].items()
    for method in operations
    if not (path.startswith("/queries/") and path.endswith("/events"))  # which do not end
]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_answers_are_as_described(described: Any, path: str, method: str) -> None:
    @given(case=described[path][method].as_strategy())
    @settings(max_examples=EXAMPLES, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def answered(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)
        known = {name: value for name, value in KNOWN.items() if name in (case.path_parameters or {})}
        if known and method != "delete":
            case.path_parameters = known
            case.call_and_validate(checks=CHECKS)

    answered()

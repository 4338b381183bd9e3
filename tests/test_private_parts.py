"""Parts of libraries that are not public, the files that use them, and the versions with which they were tried.

A private part may change in any release. So its library has an upper bound in pyproject.toml, and a version that was
not tried fails here.
"""

import ast
import re
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.source_trees import statements_of

ROOT = Path(__file__).parent.parent
PACKAGES = ("epsparql", "engine", "pipeline", "server", "connectors", "verification")
PRIVATE = re.compile(r"(uvicorn\.protocols|fastapi\.dependencies|pyspark\.(daemon|java_gateway))\b")
PARTS = {
    "fastapi": "fastapi.dependencies.models",
    "pyspark": "pyspark.daemon pyspark.java_gateway",
    "uvicorn": "uvicorn.protocols.http.flow_control uvicorn.protocols.http.httptools_impl uvicorn.protocols.websockets.websockets_sansio_impl",
}
TRIED = {"fastapi": "0.165", "pyspark": "4.3", "uvicorn": "0.54"}
"""The newest release of each library with which all tests passed."""


def private_imports() -> dict[str, set[str]]:
    """Return the private modules that the product imports, by library."""
    found: dict[str, set[str]] = {}
    for file in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        for node in statements_of(file):
            for name in names_of(node):
                if PRIVATE.match(name):
                    found.setdefault(name.partition(".")[0], set()).add(name)
    return found


def names_of(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
        return [node.module]
    return []


def test_private_parts_are_named_here() -> None:
    assert {library: sorted(names) for library, names in private_imports().items()} == {library: parts.split() for library, parts in PARTS.items()}


@pytest.mark.parametrize("library", PARTS)
def test_a_version_was_tried(library: str) -> None:
    found = version(library)
    assert numbers(found)[:2] <= numbers(TRIED[library]), (
        f"{library} {found} was not tried: run all tests, then name it in TRIED and in pyproject.toml"
    )
    for part in PARTS[library].split():
        import_module(part)


@pytest.mark.parametrize("library", PARTS)
def test_a_library_has_an_upper_bound(library: str) -> None:
    """The bound admits the release that was tried, and none after it."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (requirement,) = {each for extra in ("engine", "server") for each in extras[extra] if re.match(rf"{library}\b", each)}
    bound = re.search(r"<([\d.]+)$", requirement)
    assert bound is not None, f"{requirement} has no upper bound"
    major, minor = numbers(TRIED[library])
    assert numbers(bound[1]) == (major, minor + 1)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])

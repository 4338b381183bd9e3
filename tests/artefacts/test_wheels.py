"""The wheel, in empty environments: on each Python that this machine has, with the newest and the oldest libraries
that it asks for.
"""

import json
import re
import resource
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.artefacts.platform_wheels import TARGETS, build_wheels, inspect_wheel
from tests.support.wheels import ROOT, build_wheel, call, call_uv, copy_sources, find_pythons, make_environment

pytestmark = pytest.mark.slow

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
TRIED = [pytest.param(version, marks=pytest.mark.soak if version in ("3.11", "3.12") else ()) for version in VERSIONS]
"""Outside of `make soak`, the newest ones that a machine may have. The oldest one has the oldest libraries."""
CSV = "time,sensor,temp\n2026-01-01T10:00:00Z,cellar,8.5\n2026-01-01T10:40:00Z,cellar,14.1\n"
QUERY = """PREFIX : <http://example.org/>
SELECT ?sensor ?cold ?warm WHERE { { ?sensor :temp ?cold FILTER(?cold < 10) } SEQ { ?sensor :temp ?warm } FILTER(?warm >= ?cold + 5) }
"""
FIRST_S = 600
"""Other tests compute at the same time."""
TERMS = """
import pickle
from epsparql.client import Solution
term = Solution("q", "1-0", "", "", {"x": {"type": "literal", "value": "01", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}}, None)["x"]
assert (str(term), term.toPython(), str(pickle.loads(pickle.dumps(term)))) == ("01", 1, "01"), term
"""
OLDEST = ("--resolution", "lowest-direct", "-r", str(ROOT / "pyproject.toml"))


@pytest.fixture(scope="module")
def pythons() -> dict[str, str]:
    found = find_pythons()
    print(f"tried: {', '.join(found)}; not on this machine: {', '.join(version for version in VERSIONS if version not in found)}")
    return found


def interpreter(pythons: dict[str, str], version: str) -> str:
    if version not in pythons:
        pytest.skip(f"this machine has no Python {version}")
    return pythons[version]


def test_the_wheel_has_what_a_server_serves(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    assert {"server/console/dist/index.html", "ontologies/weather.ttl", "epsparql/client.py", "pipeline/spark/shipped/sitecustomize.py"} <= names
    assert not any(name.startswith("tests/") for name in names)


@pytest.mark.parametrize("version", TRIED)
def test_the_base_on_each_python(wheel: Path, pythons: dict[str, str], version: str, tmp_path: Path) -> None:
    commands = make_environment(tmp_path / "venv", interpreter(pythons, version), str(wheel))
    assert call([commands / "epsparql", "--version"]).stdout.startswith("epsparql 0.")
    done = call([commands / "python", "-c", "import epsparql.client, epsparql; print(epsparql.render(epsparql.parse('ASK { ?s ?p ?o }').query))"])
    assert "ASK" in done.stdout, done.stderr


def test_the_base_with_the_oldest_libraries(wheel: Path, pythons: dict[str, str], tmp_path: Path) -> None:
    commands = make_environment(tmp_path / "venv", interpreter(pythons, "3.11"), *OLDEST)
    call_uv("pip", "install", "--quiet", "--no-deps", "--python", str(commands / "python"), str(wheel))
    assert {"pyparsing==3.2.0", "rdflib==7.0.0", "websockets==15.0"} <= {*call_uv("pip", "freeze", "--python", str(commands / "python")).splitlines()}
    for statement in ("import epsparql; epsparql.parse('ASK { ?s ?p ?o }')", TERMS):
        assert call([commands / "python", "-W", "error", "-c", statement]).stderr == ""


def test_the_parts_list_names_the_libraries_and_their_licences(wheel: Path, tmp_path: Path) -> None:
    """`make sbom` writes the same of an environment with the server."""
    commands = make_environment(tmp_path / "venv", sys.executable, str(wheel))
    found = call([sys.executable, "-m", "cyclonedx_py", "environment", "--no-validate", str(commands / "python")])
    parts = {part["name"]: part for part in json.loads(found.stdout)["components"]}
    assert {"epsparql", "pyparsing", "rdflib", "websockets"} <= parts.keys()
    assert all(part.get("licenses") for part in parts.values())


def first_solution(commands: Path, directory: Path) -> tuple[str, float]:
    """Carry out what follows `pip install` for a newcomer with a file of CSV: two commands, in a home without a cache.

    Check the solution. Return what the second one said on standard error, and the processor time of both in seconds.
    """
    (directory / "home").mkdir(parents=True)
    home = {"HOME": str(directory / "home"), "XDG_CACHE_HOME": ""}
    (directory / "readings.csv").write_text(CSV, encoding="utf-8")
    (directory / "warmup.rq").write_text(QUERY, encoding="utf-8")
    began, used = time.monotonic(), _used_s()
    mapping = call([commands / "epsparql", "map", "readings.csv"], directory, FIRST_S, **home)
    assert mapping.returncode == 0, mapping.stderr
    (directory / "m.json").write_text(mapping.stdout, encoding="utf-8")
    command: list[str | Path] = [commands / "epsparql", "replay", "--query", "warmup.rq", "--stream", "readings.csv", "--mapping", "m.json"]
    done = call(command, directory, FIRST_S, **home)
    used = _used_s() - used
    print(f"{done.stderr}{time.monotonic() - began:.1f} s, {used:.1f} s of CPU")
    assert done.returncode == 0, done.stderr
    assert '"14.1"' in done.stdout
    return done.stderr, used


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("version", TRIED)
def test_the_first_solution_on_each_python(wheel: Path, pythons: dict[str, str], version: str, tmp_path: Path) -> None:
    """One module serves each Python, and nothing is compiled."""
    commands = make_environment(tmp_path / "venv", interpreter(pythons, version), f"{wheel}[engine]")
    _, used_s = first_solution(commands, tmp_path / "work")
    assert used_s < 20


@pytest.mark.soak
def test_the_engine_with_the_oldest_libraries(wheel: Path, pythons: dict[str, str], tmp_path: Path) -> None:
    """They have no wheels for newer Pythons, so they are tried on 3.11 alone."""
    commands = make_environment(tmp_path / "venv", interpreter(pythons, "3.11"), *OLDEST, "--extra", "engine")
    call_uv("pip", "install", "--quiet", "--no-deps", "--python", str(commands / "python"), str(wheel))
    installed = {line.split("==")[0]: line for line in call_uv("pip", "freeze", "--python", str(commands / "python")).splitlines() if "==" in line}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name, bound in (re.split(">=|,", each)[:2] for each in extras["engine"]):
        assert installed[name].startswith(f"{name}=={bound}")
    first_solution(commands, tmp_path / "work")


@pytest.mark.soak
def test_two_clones_on_two_pythons_share_nothing(pythons: dict[str, str], tmp_path: Path) -> None:
    """Each clone is compiled once, when it is installed.

    Any Python loads the modules of any clone, and nothing is written to the home.
    """
    built = list[tuple[Path, Path]]()
    versions = [version for version in VERSIONS if version in pythons][:2]
    for number, version in enumerate(versions):
        clone = copy_sources(tmp_path / f"clone{number}")
        commands = make_environment(tmp_path / f"venv{number}", pythons[version], "--editable", f"{clone}[engine]")
        compiled = {file: file.stat().st_mtime_ns for file in clone.rglob("*.so")}
        first_solution(commands, tmp_path / f"work{number}")
        assert compiled == {file: file.stat().st_mtime_ns for file in clone.rglob("*.so")}
        assert list((tmp_path / f"work{number}" / "home").rglob("*")) == []
        built.append((clone, commands))
    for clone, _ in built:
        for _, commands in built:
            done = call([commands / "python", "-c", "import engine.native.entries; print(engine.native.entries.__file__)"], PYTHONPATH=str(clone))
            assert Path(done.stdout.strip()).is_relative_to(clone), done.stderr
    assert len(built) == 2


@pytest.mark.soak
def test_a_build_without_a_compiler_and_without_header_files(tmp_path: Path) -> None:
    """The compiler is then that of the wheel ziglang, which pip fetches for the build alone."""
    tools = tmp_path / "tools"
    tools.mkdir()
    wheel = build_wheel(tmp_path / "wheel", PATH=str(tools), CC="")
    commands = make_environment(tmp_path / "venv", sys.executable, f"{wheel}[engine]")
    for build in ("portable", "avx2"):
        done = call([commands / "python", "-c", "from engine.native.entries import join_crcs; print(join_crcs(0, 0, 0))"], EPSPARQL_NATIVE=build)
        assert done.stdout == "0\n", done.stderr


@pytest.mark.soak
def test_wheels_for_other_platforms_have_what_they_should(tmp_path: Path) -> None:
    for platform, wheel in build_wheels(tmp_path).items():
        inspect_wheel(wheel, TARGETS[platform])

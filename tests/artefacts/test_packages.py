"""The base install in an environment of its own: small, quick to import, of use against a real server, and clear
about what it lacks.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import serving
from tests.support.wheels import call, make_environment

pytestmark = pytest.mark.slow
MOST_MEGABYTES, MOST_SECONDS = 25, 0.3
_EVERYWHERE = re.compile(r"(pip|setuptools)(-.*)?|pkg_resources|_distutils_hack|distutils-precedence\.pth")
SAY = """
import sys
from datetime import datetime, UTC
import epsparql
from epsparql.client import Client

client = Client(sys.argv[1])
client.register("base", "SELECT ?v FROM STREAM <base> WHERE { ?s <x:value> ?v }")
client.send("base", '{"s":"<x:s>","p":"<x:value>","o":"\\\\"8.50\\\\"^^<http://www.w3.org/2001/XMLSchema#decimal>","at":"2026-01-01T00:00:00Z"}')
(solution,) = client.solutions("base", wait_s=30)
with client.follow("base") as subscription:
    assert next(iter(subscription)) == solution
print(epsparql.parse("ASK { ?s ?p ?o }").warnings, solution["v"].n3(), solution["v"].toPython(), epsparql.__version__)
"""


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the commands of an environment that has nothing but the base."""
    directory = tmp_path_factory.mktemp("base")
    yield make_environment(directory / "venv", sys.executable, str(wheel))
    shutil.rmtree(directory)


def test_it_is_small(base: Path) -> None:
    (packages,) = (base.parent / "lib").glob("python3*/site-packages")
    ours = [part for part in packages.iterdir() if not _EVERYWHERE.fullmatch(part.name)]
    files = [file for part in ours for file in ([part] if part.is_file() else part.rglob("*")) if file.is_file()]
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    print(f"{megabytes:.1f} MB: {', '.join(sorted(part.name for part in ours))}")
    assert megabytes <= MOST_MEGABYTES


def test_the_client_is_imported_at_once(base: Path) -> None:
    """Processor time, the least of ten tries: other tests compute at the same time."""
    timed = "import time; began = time.process_time(); import epsparql.client; print(time.process_time() - began)"
    seconds = min(float(call([base / "python", "-c", timed]).stdout) for _ in range(10))
    print(f"{seconds:.3f} s")
    assert seconds <= MOST_SECONDS


def test_the_client_works(base: Path, tmp_path: Path) -> None:
    with serving(tmp_path / "data") as url:
        done = call([base / "python", "-c", SAY, url])
    assert done.stderr == ""
    assert done.stdout.startswith('() "8.50"^^<http://www.w3.org/2001/XMLSchema#decimal> 8.50 0.')


@pytest.mark.parametrize(
    ("command", "extra"),
    [("serve", "server"), ("demo", "server"), ("replay", "engine"), ("check", "engine"), ("warm", "engine"), ("--help", "engine")],
)
def test_a_command_names_the_extra_that_it_lacks(base: Path, command: str, extra: str) -> None:
    done = call([base / "epsparql", command])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"epsparql: epsparql {command} needs ")
    assert done.stderr.endswith(f", which is not installed; add it with: pip install 'epsparql[{extra}]'\n")


def test_the_version_is_there(base: Path) -> None:
    assert call([base / "epsparql", "--version"]).stdout.startswith("epsparql 0.")


@pytest.mark.parametrize(
    ("statement", "user", "extra"),
    [
        ("import engine.engine", "the engine", "engine"),
        ("import pipeline.log", "the pipeline", "engine"),
        ("import epsparql; epsparql.run('ASK {}')", "epsparql.run()", "engine"),
        ("from epsparql.client import Solutions; Solutions().to_frame()", "a frame", "pandas"),
        ("from epsparql.client import Solutions; Solutions().to_frame('polars')", "a frame", "polars"),
    ],
)
def test_a_module_names_the_extra_that_it_lacks(base: Path, statement: str, user: str, extra: str) -> None:
    done = call([base / "python", "-c", statement])
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"epsparql.extras.MissingExtra: {user} needs ")
    assert last.endswith(f"pip install 'epsparql[{extra}]'")

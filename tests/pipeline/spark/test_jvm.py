"""These tests check which Java Spark gets."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import JavaMissing
from pipeline.spark import jvm

REPORT = """Property settings:
    java.home = {home}
    java.specification.version = {version}
    java.version = {version}.0.1
openjdk version "{version}.0.1"
"""


def fake_java(directory: Path, version: str, home: str) -> Path:
    """A `java` that only tells its version."""
    binary = directory / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{REPORT.format(home=home, version=version)}END\n")
    binary.chmod(0o755)
    return directory


@pytest.mark.parametrize(
    ("version", "major"), [pytest.param("17", 17, id="17"), pytest.param("25", 25, id="25"), pytest.param("1.8", 8, id="8 calls itself 1.8")]
)
def test_the_version_is_read_from_javas_own_report(version: str, major: int) -> None:
    assert jvm.parse_settings(REPORT.format(home="/opt/java home", version=version)) == (major, Path("/opt/java home"))


def test_what_is_no_report_is_no_java() -> None:
    assert jvm.parse_settings("java: command not found") is None


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    first, second = fake_java(tmp_path / "a", "21", "/first"), fake_java(tmp_path / "b", "17", "/second")
    path = f"{second / 'bin'}:{os.environ['PATH']}"
    assert jvm.java_home({"JAVA_HOME": str(first), "PATH": path}) == Path("/first")
    assert jvm.java_home({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": path}) == Path("/second")


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11", "/old")
    environment = {"JAVA_HOME": str(old), "PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    assert jvm.java_home(environment) == jvm.pypi_home(environment)
    with pytest.raises(JavaMissing, match=r"old/bin/java is Java 11"):
        jvm.java_home({**environment, jvm.CHOICE: "system"})


def test_a_wrong_choice_is_named() -> None:
    with pytest.raises(JavaMissing, match="must be 'system' or 'pypi'"):
        jvm.java_home({jvm.CHOICE: "sun"})


def test_the_java_of_pypi_starts_with_sparks_flag(tmp_path: Path) -> None:
    home = jvm.java_home({jvm.CHOICE: "pypi", "XDG_CACHE_HOME": str(tmp_path)})
    assert home.is_relative_to(tmp_path)
    subprocess.run([home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"], check=True, capture_output=True)


def test_processes_that_make_it_together_agree(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("EPSPARQL_CACHE", None)
    command = [sys.executable, "-c", "from pipeline.spark.jvm import pypi_home; print(pypi_home())"]

    def make(_: int) -> str:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(4) as pool:
        homes = set(pool.map(make, range(4)))
    assert len(homes) == 1
    assert [entry.name for entry in (tmp_path / "epsparql").iterdir()] == [Path(homes.pop().strip()).name]


def test_a_cache_that_cannot_be_written_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert jvm.cache_directory({"XDG_CACHE_HOME": str(tmp_path / "file")}) == tmp_path / f"epsparql-{os.getuid()}"


# ---------------------------------------------------------------- the process that workers are forked from
LOADED = """
import os, sys
from pipeline.spark.worker_daemon import HIDDEN, load_engine
os.environ[HIDDEN] = sys.argv[1]
load_engine()
assert "engine.native.entries" in sys.modules, "the kernel's code is loaded"
assert {"pyspark.worker", "pipeline.spark.long_running_task"} <= set(sys.modules), "a worker would import them for itself"
print(len(os.listdir("/proc/self/task")), "pandas" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("hidden", "loaded"), [pytest.param("", "1 True", id="for any task"), pytest.param("pandas", "1 False", id="for a server")])
def test_the_engine_is_loaded_and_no_thread_runs(hidden: str, loaded: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", LOADED, hidden], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == f"{loaded}\n", done.stderr

"""Dockerfile and compose.yaml, as far as they can be checked without Docker: what they name is there."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.cli.commands import parser

ROOT = Path(__file__).parents[2]
INSTRUCTIONS = {"ARG", "FROM", "RUN", "ENV", "WORKDIR", "COPY", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    found = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    return [(name, rest.strip()) for name, rest in found]


def last(name: str) -> str:
    return [rest for found, rest in instructions() if found == name][-1]


def compose() -> dict[str, Any]:
    found = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def test_only_known_instructions() -> None:
    assert {name for name, _ in instructions()} <= INSTRUCTIONS


def test_what_is_copied_is_there_and_is_let_in() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}
    sources = [source for name, rest in instructions() if name == "COPY" and "--from" not in rest for source in shlex.split(rest)[:-1]]
    assert sources
    assert {source for source in sources if not (ROOT / source).exists()} == set()
    assert set(sources) == let_in


def test_every_package_is_copied() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]["find"]["include"]
    copied = {rest.split()[0] for name, rest in instructions() if name == "COPY"}
    assert {package.rstrip("*") for package in packages} <= copied


def test_stages_copy_from_stages_that_are_there() -> None:
    stages = {rest.split(" AS ")[1] for name, rest in instructions() if name == "FROM" and " AS " in rest}
    assert set(re.findall(r"--from=(\S+)", " ".join(rest for name, rest in instructions() if name == "COPY"))) <= stages


def test_it_runs_as_nobody_in_particular_and_tells_its_health() -> None:
    assert last("USER") == "epsparql"
    assert "/livez" in json.loads(last("HEALTHCHECK").partition("CMD ")[2])[2]


def commands() -> list[Any]:
    services = compose()["services"]
    return [
        pytest.param(json.loads(last("CMD")), id="Dockerfile"),
        *(pytest.param(service["command"], id=name) for name, service in services.items() if "entrypoint" not in service),
    ]


@pytest.mark.parametrize("command", commands())
def test_the_flags_exist(command: list[str]) -> None:
    assert json.loads(last("ENTRYPOINT")) == ["epsparql"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    assert "epsparql" in scripts
    options = parser().parse_args(command)
    assert options.token_file, "it can be reached from elsewhere"


def test_services_are_a_master_two_workers_and_a_server() -> None:
    found = compose()
    assert set(found["services"]) == {"master", "worker-1", "worker-2", "server"}
    for service in found["services"].values():
        assert set(service.get("depends_on", ())) <= set(found["services"])
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= set(found["volumes"])
        assert set(service.get("secrets", ())) <= set(found["secrets"])


def test_spark_s_processes_know_each_other_by_a_secret() -> None:
    """The commands in the comment write the secret where Spark looks for it.

    The test tests/fault_tolerance/test_cluster.py runs Spark to see that it then authenticates.
    """
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert "spark.authenticate true" in text
    assert "> spark-defaults.conf" in text
    for service in compose()["services"].values():
        assert service["environment"]["SPARK_CONF_DIR"] == "/run/secrets"
        assert "spark-defaults.conf" in service["secrets"]
    assert "spark-defaults.conf" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_spark_s_classes_and_script_are_where_compose_says() -> None:
    import pyspark

    home = Path(pyspark.__path__[0])
    (core,) = (home / "jars").glob("spark-core_*.jar")
    names = re.findall(r"org\.apache\.spark\.deploy\.\w+\.\w+", " ".join(service["command"][0] for service in compose()["services"].values()))
    assert set(names) == {"org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"}
    with zipfile.ZipFile(core) as jar:
        assert {name.replace(".", "/") + ".class" for name in names} <= set(jar.namelist())
    assert (home / "bin" / "spark-class").exists()


def unit() -> dict[str, str]:
    """Return the settings of the service that docs/operations/deployment.md shows."""
    text = (ROOT / "docs" / "operations" / "deployment.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```ini\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    read = configparser.RawConfigParser()
    read.optionxform = str  # type: ignore[assignment,method-assign]  # the names of settings keep their case
    read.read_string(block)
    return dict(read["Service"])


def test_the_service_runs_commands_that_exist() -> None:
    found = unit()
    for setting, command in (("ExecStartPre", "warm"), ("ExecStart", "serve")):
        program, *words = shlex.split(found[setting])
        assert (program, words[0]) == ("/opt/epsparql/bin/epsparql", command)
        options = parser().parse_args(words)
    assert options.token_file, "it can be reached from elsewhere"
    assert Path(options.data).parent == Path("/var/lib") / found["StateDirectory"]
    assert found["Environment"] == f"EPSPARQL_CACHE=/var/cache/{found['CacheDirectory']}"


def test_systemd_takes_the_service(tmp_path: Path) -> None:
    """The programs are not installed here, so others stand in their place."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("this machine has no systemd")
    text = (ROOT / "docs" / "operations" / "deployment.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```ini\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    file = tmp_path / "epsparql.service"
    file.write_text(block.replace("/opt/epsparql/bin/epsparql", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, check=False, timeout=60)
    assert [line for line in done.stderr.splitlines() if file.name in line] == []
    security = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=30", str(file)]  # tenths of a point of exposure
    assert subprocess.run(security, capture_output=True, check=False, timeout=60).returncode == 0
    file.write_text(file.read_text().replace("KillMode=mixed", "KillMod=mixed"))
    wrong = subprocess.run(["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, check=False, timeout=60)
    assert "KillMod" in wrong.stderr

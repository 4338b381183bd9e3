"""The steps of the Dockerfile, one by one, where no container runtime is available: in a directory of their own in
place of the image's root.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.connectors.systems.brokers import free_port
from tests.docs.test_image import ROOT, instructions
from tests.server.operations.test_security import digest
from tests.support.wheels import find_pythons

pytestmark = [pytest.mark.slow, pytest.mark.soak]

OWN = ("/opt/venv", "/opt/epsparql-cache", "/src", "/site", "/data", "/run/secrets")
"""Paths of the image, which lie below the directory here."""
SYSTEM = ("apt-get", "useradd")
"""Steps that begin so change the machine, and are left out."""


@dataclass
class BuildSteps:
    """Carries out instructions of the Dockerfile."""

    root: Path
    variables: dict[str, str]
    directory: str = "/"
    left_out: list[str] = field(default_factory=list)
    last: dict[str, str] = field(default_factory=dict)

    def placed(self, text: str) -> str:
        """Return a text with the image's own paths below the directory, and with variables replaced."""
        text = re.sub(r"\$\{(\w+)\}", lambda found: self.variables.get(found[1], ""), text)
        return re.sub("|".join(OWN), lambda found: f"{self.root}{found[0]}", text)

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EPSPARQL_", "NUMBA_"))}
        return kept | {name: self.placed(value) for name, value in self.variables.items() if name != "PATH"} | {"PATH": self.variables["PATH"]}

    def follow(self, name: str, rest: str) -> None:
        match name:
            case "RUN" if rest.split()[0] in SYSTEM:
                self.left_out.append(rest.split("&&")[0].strip())
            case "RUN":
                where = self.root / self.directory.strip("/")
                where.mkdir(parents=True, exist_ok=True)
                done = subprocess.run(
                    ["bash", "-ec", self.placed(rest)], cwd=where, env=self.environment(), capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{rest}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
            case "COPY":
                self.copy(*shlex.split(rest))
            case "WORKDIR":
                self.directory = rest
            case "ENV":
                for each in shlex.split(rest):
                    key, _, value = each.partition("=")
                    self.variables[key] = self.placed(value.replace("$PATH", self.variables["PATH"]))
            case "ARG":
                key, _, value = rest.partition("=")
                self.variables.setdefault(key, value)
            case _:
                self.last[name] = rest

    def copy(self, *words: str) -> None:
        *sources, target = [word for word in words if not word.startswith("--")]
        if any(word.startswith("--from") for word in words):
            if self.placed(target) != self.placed(sources[0]):  # all stages have one root here
                shutil.copytree(self.placed(sources[0]), self.placed(target), dirs_exist_ok=True)
            return
        into = self.root / self.directory.strip("/") / target
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
            else:
                into.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, into)


def test_the_steps_give_a_server_that_tells_its_health(tmp_path: Path) -> None:
    """Steps of the system are named: they are for Debian's packages and the user of the image."""
    version = next(rest.partition("=")[2] for name, rest in instructions() if rest.startswith("PYTHON="))
    python = find_pythons().get(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}, which the image has")
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "python").symlink_to(python)
    stage = BuildSteps(tmp_path, {"PATH": f"{commands}:{os.environ['PATH']}"})
    for name, rest in instructions():
        if name == "FROM":
            stage.directory = "/"
        else:
            stage.follow(name, rest)
    print(f"left out: {', '.join(stage.left_out)}")
    assert {step.split()[0] for step in stage.left_out} == set(SYSTEM)
    (tmp_path / "run" / "secrets").mkdir(parents=True)
    (tmp_path / "run" / "secrets" / "tokens").write_text(f"{digest('root')} admin\n")
    port = str(free_port())
    words = [*json.loads(stage.last["ENTRYPOINT"]), *json.loads(stage.last["CMD"])]
    command = [stage.placed(word).replace("8080", port).replace("0.0.0.0", "127.0.0.1") for word in words]
    check = [word.replace("8080", port) for word in json.loads(stage.last["HEALTHCHECK"].partition("CMD ")[2])]
    (tmp_path / "data").mkdir(exist_ok=True)
    server = subprocess.Popen(
        [shutil.which(command[0], path=stage.variables["PATH"]) or command[0], *command[1:]], cwd=tmp_path / "data", env=stage.environment()
    )
    try:
        deadline = time.monotonic() + 120
        while subprocess.run(check, env=stage.environment(), capture_output=True, check=False).returncode != 0:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not tell its health"
            time.sleep(0.5)
        page = [sys.executable, "-c", f"import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:{port}/docs/').read().decode())"]
        assert "epsparql" in subprocess.run(page, capture_output=True, text=True, check=True).stdout
    finally:
        server.terminate()
        server.wait(180)

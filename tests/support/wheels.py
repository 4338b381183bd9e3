"""Builds the wheel, and environments that have it: nothing of this checkout or of this environment is seen in them."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPILING_S = 3_600
"""Compiling takes minutes, and other tests compute at the same time."""
_MADE = shutil.ignore_patterns("__pycache__", "*.egg-info", "compiled")


def build_wheel(directory: Path, compiled_on: Iterable[str] = ()) -> Path:
    """Build the wheel from a copy of the sources, since a build leaves files beside them; with code compiled on some Pythons, as `make wheel` does."""
    source = directory / "source"
    source.mkdir(parents=True)
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]["find"]["include"]
    for part in (*(package.rstrip("*") for package in packages), "pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, ignore=_MADE)
        else:
            shutil.copy(ROOT / part, source / part)
    for number, python in enumerate(compiled_on):
        commands = make_environment(directory / f"python-{number}", python, "-r", str(ROOT / "pyproject.toml"), "--extra", "engine")
        done = call([commands / "python", "-m", "pipeline.warmup", "portable"], source, COMPILING_S, EPSPARQL_CACHE=str(directory / "cache"))
        assert done.returncode == 0, done.stderr
    call_uv("build", "--quiet", "--wheel", "--out-dir", str(directory / "dist"), str(source))
    (wheel,) = (directory / "dist").glob("*.whl")
    return wheel


def make_environment(directory: Path, python: str, *install: str) -> Path:
    """Make an environment of a Python, and return the folder with its commands. `install` is what `uv pip install` takes."""
    call_uv("venv", "--quiet", "--python", python, str(directory))
    call_uv("pip", "install", "--quiet", "--python", str(directory / "bin" / "python"), *install)
    return directory / "bin"


def call_uv(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=os.environ | {"UV_PYTHON_DOWNLOADS": "never"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def find_pythons() -> dict[str, str]:
    """Return the interpreters of this machine by their versions, of those that the package is for: on the path, or beside our own."""
    found = {}
    for minor in range(11, 15):
        name = f"python3.{minor}"
        beside = sorted(str(path) for path in Path(sys.base_prefix).parent.glob(f"3.{minor}.*/bin/{name}"))
        for path in (*beside, shutil.which(name)):
            if path is not None and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
                found[f"3.{minor}"] = path
    return found


def call(command: list[str | Path], directory: Path | str = "/", timeout_s: float = 120, **variables: str) -> subprocess.CompletedProcess[str]:
    """Return the result of a command that sees nothing of this checkout."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EPSPARQL_"))}
    return subprocess.run(command, capture_output=True, text=True, cwd=directory, env=outside | variables, timeout=timeout_s, check=False)

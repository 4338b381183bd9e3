"""Builds the wheel, and environments that have it: nothing of this checkout or of this environment is seen in them."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
_MADE = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so")


def copy_sources(directory: Path) -> Path:
    """Copy what a build needs, since it leaves files beside the sources, and return the folder of the copy."""
    source = directory / "source"
    source.mkdir(parents=True)
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]["find"]["include"]
    for part in (*(package.rstrip("*") for package in packages), "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, ignore=_MADE)
        else:
            shutil.copy(ROOT / part, source / part)
    return source


def build_wheel(directory: Path, **variables: str) -> Path:
    """Build the wheel of this machine from a copy of the sources, with these variables of the environment."""
    call_uv("build", "--quiet", "--wheel", "--out-dir", str(directory / "dist"), str(copy_sources(directory)), **variables)
    (wheel,) = (directory / "dist").glob("*.whl")
    return wheel


def make_environment(directory: Path, python: str, *install: str) -> Path:
    """Make an environment of a Python, and return the folder with its commands.

    `install` is what `uv pip install` takes.
    """
    call_uv("venv", "--quiet", "--python", python, str(directory))
    call_uv("pip", "install", "--quiet", "--python", str(directory / "bin" / "python"), *install)
    return directory / "bin"


def call_uv(*arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=os.environ | {"UV_PYTHON_DOWNLOADS": "never"} | variables,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def find_pythons() -> dict[str, str]:
    """Return the interpreters of this machine by their versions, of those that the package is for: on the path, or
    beside our own.
    """
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

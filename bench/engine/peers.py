"""This bench runs Esper, and Flink CEP, in turns with our engine, over the same events in the same minutes.

Neither is a part of this project. Esper's directory has a `run.sh EVENTS QUERY PASSES JARS`, which prints a line for
each pass (bench/README.md). Flink's has the jars of the package apache-flink-libraries, for which
`FlinkBench.java` is compiled.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.engine import engine
from bench.measurement import UnusableInput, WrongCount, line, median
from bench.server import end_to_end
from bench.workloads import WORKLOADS, Drawn, drawn

_PASSES = 4
"""The first is left out, because Java compiles its code meanwhile."""
_LONGEST_S = 900
_FLINK_PROGRAM = str(Path(__file__).parent / "FlinkBench.java")
_PASS = re.compile(r"RESULT (?:esper|flink) .* events=(\d+) matches=(\d+) wall=([\d.]+) .* cpu=([\d.]+)")


_OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util")]


@dataclass(frozen=True, slots=True)
class Pass:
    """Holds what one pass of a peer found, and what it took: elapsed seconds, and the CPU seconds of all its threads."""

    matches: int
    wall_s: float
    cpu_s: float


def measure(directory: Path | None, n: int, k: int, flink: Path | None = None) -> Iterator[str]:
    """Yield a line for each workload.

    Raises: UnusableInput where a peer does not run, WrongCount where it finds other matches than our engine.
    """
    if directory is None:
        raise UnusableInput("the benchmark peers needs the directory of Esper's run.sh: name it with --peers")
    with tempfile.TemporaryDirectory(prefix="epsparql-bench-") as scratch:
        path = Path(scratch) / f"ev_{n}_{k}.csv"
        write_events(path, drawn(n, k))
        classes = None if flink is None else _compile_flink(flink, Path(scratch))
        for workload in WORKLOADS:
            passes = {"esper": _run_esper(directory, path, workload, n)}
            if classes is not None:
                passes["flink"] = _run_flink(classes, path, workload, n)
            blocks, bytes_ = (_apart(measured, workload, n, k) for measured in (_measure_blocks, _measure_bytes))
            for peer, found in passes.items():
                if {each.matches for each in found} != {blocks["matches"]}:
                    raise WrongCount(f"{peer.capitalize()} on {workload}", found[-1].matches, blocks["matches"])
            yield line("peers", workload=workload, n=n, k=k, matches=blocks["matches"], **_compare(n, passes, blocks, bytes_))


def write_events(path: Path, events: Drawn) -> None:
    """Write events as lines of number, type, id, value and milliseconds."""
    columns = ["abc"[kind] for kind in events.types.tolist()], events.ids.tolist(), events.values.tolist()
    lines = [f"{at},{kind},{id_},{value!r},{at}\n" for at, (kind, id_, value) in enumerate(zip(*columns, strict=True))]
    path.write_text("i,type,id,x,ts\n" + "".join(lines), encoding="ascii")


def _run_esper(directory: Path, path: Path, workload: str, n: int) -> Sequence[Pass]:
    """Return Esper's passes but the first. Raises: UnusableInput."""
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    jars = Path(spark.origin).parent / "jars"
    return _run_passes("Esper", ["bash", str(directory / "run.sh"), str(path), f"{workload}_any", str(_PASSES), str(jars)], workload, n)


def _compile_flink(jars: Path, scratch: Path) -> str:
    """Compile the program for Flink's jars, and return the class path of both. Raises: UnusableInput."""
    javac, found = shutil.which("javac"), sorted(map(str, jars.glob("*.jar")))
    if javac is None or not any("flink-cep" in each for each in found):
        raise UnusableInput(
            f"Flink needs a JDK, and its jars in {jars}: pip download --no-deps apache-flink-libraries, whose wheel has them in pyflink/lib"
        )
    path = ":".join([str(scratch), *found])
    made = subprocess.run([javac, "-nowarn", "-cp", path, "-d", str(scratch), _FLINK_PROGRAM], capture_output=True, text=True, check=False)
    if made.returncode:
        raise UnusableInput(f"the program for Flink does not compile: {made.stderr.strip()[-300:]}")
    return path


def _run_flink(classes: str, path: Path, workload: str, n: int) -> Sequence[Pass]:
    """Return Flink's passes but the first. Raises: UnusableInput."""
    return _run_passes("Flink", ["java", "-Xmx4g", *_OPENED, "-cp", classes, "FlinkBench", str(path), workload, str(_PASSES)], workload, n)


def _run_passes(peer: str, command: Sequence[str], workload: str, n: int) -> Sequence[Pass]:
    """Run a peer's program, and return its passes but the first. Raises: UnusableInput."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    passes = read_passes(ran.stdout, n)
    if ran.returncode or len(passes) != _PASSES:
        raise UnusableInput(f"{peer} did not run on {workload}: {ran.stderr.strip()[-300:] or ran.stdout.strip()[-300:]}")
    return passes[1:]


def read_passes(text: str, n: int) -> list[Pass]:
    """Return the passes over all `n` events that a peer's program told of."""
    return [Pass(int(found[2]), float(found[3]), float(found[4])) for found in _PASS.finditer(text) if int(found[1]) == n]


def _apart(measured: Callable[[str, int, int], str], workload: str, n: int, k: int) -> dict[str, Any]:
    """Return the figures of a bench in a process of its own: it keeps to one core, and Esper may use all."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found: dict[str, Any] = json.loads(pool.submit(measured, workload, n, k).result())
    return found


def _measure_blocks(workload: str, n: int, k: int) -> str:
    return next(engine.measure(workload, n, k))


def _measure_bytes(workload: str, n: int, k: int) -> str:
    return next(end_to_end.measure(workload, n, k))


def _compare(n: int, passes: Mapping[str, Sequence[Pass]], blocks: dict[str, Any], bytes_: dict[str, Any]) -> dict[str, float]:
    """Return rates, and ratios to Esper and Flink: by elapsed time, and by CPU time where other programs run."""
    esper, esper_cpu = _rates(n, passes["esper"])
    found = {
        "esper_events_per_s": round(esper),
        "esper_events_per_cpu_s": round(esper_cpu),
        "blocks_events_per_s": blocks["events_per_s"],
        "blocks_events_per_cpu_s": blocks["events_per_cpu_s"],
        "bytes_events_per_s": bytes_["events_per_s"],
        "blocks_ratio": round(blocks["events_per_s"] / esper, 2),
        "blocks_cpu_ratio": round(blocks["events_per_cpu_s"] / esper_cpu, 2),
        "bytes_ratio": round(bytes_["events_per_s"] / esper, 2),
    }
    if "flink" in passes:
        flink, flink_cpu = _rates(n, passes["flink"])
        found |= {
            "flink_events_per_s": round(flink),
            "flink_events_per_cpu_s": round(flink_cpu),
            "flink_ratio": round(blocks["events_per_s"] / flink, 2),
            "flink_cpu_ratio": round(blocks["events_per_cpu_s"] / flink_cpu, 2),
        }
    return found


def _rates(n: int, passes: Sequence[Pass]) -> tuple[float, float]:
    """Return events a second, and events a CPU second, of the median pass."""
    return n / median([each.wall_s for each in passes]), n / median([each.cpu_s for each in passes])

"""This module ships our code to executors that may not have it, or have another version.

Spark unpacks the archive beside them (`pipeline/spark/shipped/sitecustomize.py`).
"""

import os
import zipfile
from pathlib import Path

PACKAGES = ("epsparql", "engine", "pipeline")
NAME = "epsparql_code"


def settings(scratch: Path) -> dict[str, str]:
    """Return Spark's settings that bring the archive, made in `scratch`, to each executor and its bootstrap to the
    front of its Python's path.
    """
    archive = scratch / f"{NAME}.zip"
    pack(archive)
    path = os.pathsep.join([NAME, str(Path(__file__).parents[2])])  # executors that see the driver's own files may use them
    return {"spark.archives": f"{archive}#{NAME}", "spark.executorEnv.PYTHONPATH": path}


def pack(archive: Path) -> None:
    here = Path(__file__).parents[1]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.write(here / "spark" / "shipped" / "sitecustomize.py", "sitecustomize.py")
        for file in sorted(file for package in PACKAGES for file in (here.parent / package).rglob("*.py")):
            out.write(file, Path("code") / file.relative_to(here.parent))

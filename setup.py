"""Builds the compiled code (engine/native) with the system's C compiler, or with the one of the wheel `ziglang` where there is none."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("engine/native/source")
ZIG = "ziglang==0.17.1"
OPTIMIZED = ["-O3", "-g0"]
CHECKED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
BUILDS = {"portable": OPTIMIZED, "avx2": [*OPTIMIZED, "-march=x86-64-v3"], "checked": CHECKED}
COMMON = ["-std=gnu11", "-fPIC", "-fvisibility=hidden", "-fwrapv", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror"]
UNITS = ["module", "common", "formats", "dictionary", "aggregation", "kernel"]


def compiler() -> list[str]:
    """Return the command of the compiler: the one that CC names, the system's, or that of `ziglang`."""
    if named := os.environ.get("CC"):
        return shlex.split(named)
    return ["cc"] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]


def builds() -> list[str]:
    """Return which builds are made: EPSPARQL_BUILDS names them, else those that users need on this kind of processor."""
    if named := os.environ.get("EPSPARQL_BUILDS"):
        return named.split()
    return ["portable", "avx2"] if platform.machine() in ("x86_64", "AMD64") else ["portable"]


class BuildNative(build_ext):
    """Compiles the units of all builds beside each other, with the headers that follow from the layouts in Python."""

    def run(self) -> None:
        headers = Path(self.build_temp, "headers")
        headers.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "engine/native/headers.py", str(headers)], check=True)
        super().run()

    def build_extension(self, extension: Extension) -> None:
        """Compile and link one build."""
        name = extension.name.rpartition("._")[2]
        place = Path(self.build_temp, name)
        place.mkdir(parents=True, exist_ok=True)
        target = Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = [*COMMON, *BUILDS[name], f"-DMODULE=_{name}", f"-I{SOURCE}", f"-I{Path(self.build_temp, 'headers')}"]

        def compile_unit(unit: str) -> str:
            made = str(place / f"{unit}.o")
            subprocess.run([*compiler(), *flags, "-c", str(SOURCE / f"{unit}.c"), "-o", made], check=True)
            return made

        print(f"compiling {target.name}", file=sys.stderr, flush=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compile_unit, UNITS))
        subprocess.run([*compiler(), "-shared", *BUILDS[name], *objects, "-o", str(target), "-lm"], check=True)


setup(
    ext_modules=[Extension(f"engine.native._{name}", [str(SOURCE / f"{unit}.c") for unit in UNITS], py_limited_api=True) for name in builds()],
    cmdclass={"build_ext": BuildNative},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    setup_requires=[] if os.environ.get("CC") or shutil.which("cc") else [ZIG],
)

"""Builds the compiled code (engine/native) with the system's C compiler, or with that of the wheel `ziglang` where there is none.

CC names another compiler. EPSPARQL_TARGET names another platform as zig does, such as aarch64-macos. EPSPARQL_BUILDS names the builds that are made.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("engine/native/source")
UNITS = ["module", "common", "formats", "dictionary", "aggregation", "kernel"]
ZIG = "ziglang==0.17.1"
PLATFORMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
TARGET = os.environ.get("EPSPARQL_TARGET") or f"{platform.machine().lower().replace('amd64', 'x86_64')}-{PLATFORMS.get(sys.platform, sys.platform)}"

COMMON = ["-std=gnu11", "-fPIC", "-fvisibility=hidden", "-fwrapv", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Wno-unused-function"]
COMMON += ["-ffp-contract=off"]  # the same numbers, whatever the processor has
OPTIMIZED = ["-O3", "-g0"]
V3 = ["-mavx2", "-mbmi", "-mbmi2", "-mf16c", "-mfma", "-mlzcnt", "-mmovbe", "-mpopcnt"]  # x86-64-v3, whose name zig spells in its own way
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
BUILDS = {"portable": OPTIMIZED, "avx2": [*OPTIMIZED, *V3], "checked": ["-O1", "-g", "-fno-omit-frame-pointer", "-Werror", "-DCHECKED", *SANITIZED]}


def compiler() -> list[str]:
    """Return the command of the compiler."""
    if "EPSPARQL_TARGET" in os.environ:
        return [sys.executable, "-m", "ziglang", "cc", "-target", TARGET]
    if named := os.environ.get("CC"):
        return shlex.split(named)
    return ["cc"] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]


def builds() -> list[str]:
    """Return which builds are made."""
    if named := os.environ.get("EPSPARQL_BUILDS"):
        return named.split()
    return ["portable", "avx2"] if TARGET.startswith("x86_64") else ["portable"]


def python_library(directory: Path) -> list[str]:
    """Make what a module for Windows is linked with, from the names of Python's stable ABI that it uses, and return the linker's arguments."""
    names = re.findall(r"^IMPORTED .*?\b(_?Py\w+)(?=[;,(])|, \*(PyExc_\w+)", (SOURCE / "stable_abi.h").read_text(), re.MULTILINE)
    definition, library = directory / "python3.def", directory / "python3.lib"
    definition.write_text("LIBRARY python3.dll\nEXPORTS\n" + "\n".join(first or second for first, second in names) + "\n")
    subprocess.run([*compiler()[:3], "dlltool", "-m", "i386:x86-64", "-d", str(definition), "-l", str(library)], check=True)
    return [str(library)]


class BuildNative(build_ext):
    """Compiles the units of each build beside each other, with the headers that follow from the layouts in Python."""

    def run(self) -> None:
        self._headers = Path(self.build_temp, "headers")
        self._headers.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "engine/native/headers.py", str(self._headers)], check=True)
        super().run()

    def get_ext_filename(self, name: str) -> str:
        """Return the file of a module, as Python looks for it on the platform that it is built for."""
        return name.replace(".", os.sep) + (".pyd" if "windows" in TARGET else ".abi3.so")

    def build_extension(self, extension: Extension) -> None:
        """Compile and link one build."""
        build = extension.name.rpartition("._")[2]
        objects, target = Path(self.build_temp, TARGET, build), Path(self.get_ext_fullpath(extension.name))
        objects.mkdir(parents=True, exist_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = [*COMMON, *BUILDS[build], f"-DMODULE=_{build}", f"-I{SOURCE}", f"-I{self._headers}"]

        def compile_unit(unit: str) -> str:
            made = str(objects / f"{unit}.o")
            subprocess.run([*compiler(), *flags, "-c", str(SOURCE / f"{unit}.c"), "-o", made], check=True)
            return made

        print(f"compiling {target.name} with {compiler()[-1]}", file=sys.stderr, flush=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(compile_unit, UNITS))
        linked = python_library(objects) if "windows" in TARGET else ["-Wl,-undefined,dynamic_lookup"] if "macos" in TARGET else ["-lm"]
        subprocess.run([*compiler(), "-shared", *BUILDS[build], *made, "-o", str(target), *linked], check=True)


setup(
    ext_modules=[Extension(f"engine.native._{build}", [str(SOURCE / f"{unit}.c") for unit in UNITS], py_limited_api=True) for build in builds()],
    cmdclass={"build_ext": BuildNative},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    setup_requires=[ZIG] if compiler()[1:3] == ["-m", "ziglang"] else [],
)
